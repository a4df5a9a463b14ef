"""Recorded games of the original: read from disk without trust, ready to be replayed."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phalanx.arrays import Array
from phalanx.arrays_file import ArraysFile, BadArrays, open_arrays
from phalanx.cage2.rules.scenario import (
    CHALLENGE_NAMES,
    DECOYS,
    EXPLOITS,
    RULE_SETS,
)
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import CAGE2, read_scenario
from phalanx.cage2.settings import FIRST_OWN, MAX_HORIZON
from phalanx.errors import TraceError
from phalanx.files import read_plain

MAX_BYTES = 32_000_000  # that a file may unfold to: about 90,000 steps
MAX_CODEBOOK = 100_000

EPISODE_ARRAYS = ("ep_red", "ep_horizon", "ep_start")
MOVES = ("blue", "blue_ok", "red", "red_tgt", "red_ok", "red_nobs", "green", "exploit", "detect")
OF_HOSTS = ("known", "scanned", "access", "sess", "decoys", "files", "red_ports", "hname_known")
OF_ALL = ("subnets_known", "misc")
STATE_NAMES = OF_HOSTS + OF_ALL
# Besides, where the attacker is of the user's own, and may hold any number of sessions on a host.
OF_OWN = ("n_sess", "n_root", "n_sus", "systems")
COMPARED_OF_OWN = ("st_esc", "st_n_sess", "st_n_root", "st_n_sus")
# Recorded too, and neither read nor compared: why not.
NOT_COMPARED = {
    "ep_seed": "where the original's dice began; what they gave is recorded, and replayed",
    "ep_policy": "which script chose blue's actions; the actions are recorded",
    "st_esc": "which of its sessions red escalated through; each leads to the same for the "
    "challenge's attackers, and for others it is replayed",
    "st_esc_n": "how many of them there were",
    "st_n_sess": "how many sessions red has on a host; those after the oldest, also in st_sess, "
    "change nothing for the challenge's attackers, and are compared for others",
    "st_n_root": "how many of them are root",
    "st_n_sus": "how many of them Remove would stop",
    "st_n_vsftpd": "how many Vsftpd decoys stand on a host; one does what several do",
}
KNOWN = {*EPISODE_ARRAYS, *NOT_COMPARED, "st_obs", "st_mem", "st_reward10"}
KNOWN |= {f"st_{name}" for name in (*MOVES, *STATE_NAMES, *OF_OWN)}
KNOWN |= {name.replace("st_", "init_") for name in KNOWN}


def step_shapes(num_hosts: int, is_own: bool = False) -> dict[str, tuple[int, ...]]:
    """What is recorded of a step, and its shape."""
    return {
        **{f"st_{name}": () for name in (*MOVES, "reward10", *OF_ALL, *("esc",) * is_own)},
        **{f"st_{name}": (num_hosts,) for name in (*OF_HOSTS, *OF_OWN * is_own)},
        "st_obs": (4 * num_hosts,),
        "st_mem": (6,),
    }


@dataclass(frozen=True)
class Traces:
    """The recorded episodes of one file."""

    path: Path
    scenario: Scenario
    rules: str
    red: Array  # [E] our number of the red agent; FIRST_OWN for one of the user's own
    start: Array  # [E + 1] rows of episode e: start[e] up to start[e + 1]
    steps: dict[str, Array]  # by name without "st_", [T, ...]
    initial: dict[str, Array]  # the state at the beginning by the same names, [E, ...], or empty


def read_traces(path: Path) -> Iterator[Traces]:
    """The traces of a folder, as `read_folder` reads it, or of one of its files."""
    if not path.is_file():
        yield from read_folder(path)
    else:
        yield _read_file(path, *_read_codebook(path.parent / "codebook.json"))


def read_folder(folder: Path) -> Iterator[Traces]:
    """The traces of a folder (codebook.json and .npz files), or of all such folders in it.

    One file at a time is in memory.
    """
    if not folder.is_dir():
        raise TraceError(f"{folder} is not a folder; {_WANTED}")
    inner = [] if (folder / "codebook.json").exists() else sorted(folder.glob("*/codebook.json"))
    for codebook in inner or [folder / "codebook.json"]:
        book = _read_codebook(codebook)
        files = sorted(codebook.parent.glob("*.npz"))
        if not files:
            raise TraceError(f"no .npz files in {codebook.parent}; {_WANTED}")
        for path in files:
            yield _read_file(path, *book)


_WANTED = "give a folder with codebook.json and .npz files"


# --- the codebook ---------------------------------------------------------------------------------


def _read_codebook(path: Path) -> tuple[Scenario, str, list[str]]:
    """What was played, by which rules, and the names of the red agents in the order of their
    numbers.
    """
    try:
        codebook = json.loads(_read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise TraceError(
            f"cannot read {path} ({why!s:.200}); it must lie beside the .npz files"
        ) from None
    if not isinstance(codebook, dict):
        raise TraceError(f"{path} holds no table of codes")
    scenario = _read_scenario(path, codebook.get("scenario"))
    ours = {
        "hosts": list(scenario.host_names),
        "exploits": list(EXPLOITS),
        "subnets": list(scenario.subnet_names),
        "decoy_bits": [decoy.name for decoy in DECOYS],
    }
    for name, expected in ours.items():
        if codebook.get(name) != expected:
            raise TraceError(
                f"{path} numbers {name} as {codebook.get(name)!r:.200}, phalanx as {expected}"
            )
    rules = codebook.get("rules", RULE_SETS[0])
    if rules not in RULE_SETS:
        raise TraceError(f"{path} is of rules {rules!r:.80}; phalanx plays {', '.join(RULE_SETS)}")
    agents = codebook.get("red_agents")
    named = [name for name in agents if isinstance(name, str)] if isinstance(agents, list) else []
    are_known = set(named) <= set(CHALLENGE_NAMES) or named == [codebook.get("own_red_agent")]
    if not named or named != agents or not are_known:
        raise TraceError(
            f"{path}: red_agents {agents!r:.200} are not all of {', '.join(CHALLENGE_NAMES)}"
        )
    return scenario, rules, named


def _read_scenario(codebook: Path, name: object) -> Scenario:
    """The file beside the codebook that was played; CAGE-2 if none is named."""
    if name is None:
        return CAGE2
    if not isinstance(name, str) or Path(name).name != name:
        raise TraceError(f"{codebook}: scenario must be a file beside it, got {name!r:.80}")
    return read_scenario(codebook.parent / name)


def _read_text(path: Path) -> str:
    text = read_plain(path, MAX_CODEBOOK + 1)
    if len(text) > MAX_CODEBOOK:
        raise ValueError(f"it has more than {MAX_CODEBOOK} bytes")
    return text.decode()


# --- the recordings -------------------------------------------------------------------------------


def _read_file(path: Path, scenario: Scenario, rules: str, red_agents: list[str]) -> Traces:
    is_own = red_agents[0] not in CHALLENGE_NAMES
    shapes = step_shapes(len(scenario.hosts), is_own)
    try:
        with open_arrays(
            path, is_known=KNOWN.__contains__, max_bytes=MAX_BYTES, packed=True
        ) as file:
            arrays = _read_arrays(file, shapes)
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from None
    except BadArrays as error:
        raise TraceError(
            f"cannot read {path}: {error}; is it truncated, damaged or no recorded trace?"
        ) from None
    start, red, blue = arrays["ep_start"].astype(np.int64), arrays["ep_red"], arrays["st_blue"]
    lengths, rows = np.diff(start), len(blue)
    if start[0] != 0 or start[-1] != rows or (lengths < 0).any():
        raise TraceError(f"{path}: ep_start does not cut its {rows} steps into {len(red)} episodes")
    if not np.array_equal(lengths, arrays["ep_horizon"]):
        raise TraceError(f"{path}: ep_horizon does not agree with ep_start; is the file truncated?")
    if lengths.min() < 1 or lengths.max() > MAX_HORIZON:
        wrong = lengths.min() if lengths.min() < 1 else lengths.max()
        raise TraceError(f"{path}: an episode has {wrong} steps; it can have 1 to {MAX_HORIZON}")
    num_actions = len(scenario.actions)
    wrong = (blue < 0) | (blue >= num_actions)
    if wrong.any():
        raise TraceError(f"{path}: blue action {blue[wrong][0]} is not one of 0..{num_actions - 1}")
    if red.min() < 0 or red.max() >= len(red_agents):
        raise TraceError(
            f"{path}: ep_red numbers red agents from {red.min()} to {red.max()}; codebook.json "
            f"names {len(red_agents)}"
        )
    arrays["st_blue"] = blue.astype(np.uint16)
    if is_own:
        numbers = np.array([FIRST_OWN])
    else:
        numbers = np.array([CHALLENGE_NAMES.index(name) for name in red_agents])
    steps = {name.removeprefix("st_"): arrays[name] for name in shapes}
    known = STATE_NAMES + OF_OWN * is_own
    initial = {name: arrays[f"init_{name}"] for name in known if f"init_{name}" in arrays}
    return Traces(path, scenario, rules, numbers[red], start, steps, initial)


def _read_arrays(file: ArraysFile, step_shapes: dict[str, tuple[int, ...]]) -> dict[str, Array]:
    """Whole numbers everywhere, a row for each episode or step: declared so before any is read."""
    declared = file.declared
    missing = [name for name in (*EPISODE_ARRAYS, *step_shapes) if name not in declared]
    if missing:
        raise BadArrays(f"it has no {', '.join(missing)}")
    episodes, rows = (math.prod(declared[name].shape) for name in ("ep_red", "st_blue"))
    if not episodes:
        raise BadArrays("it holds no episodes")
    shapes = {name: (rows, *shape) for name, shape in step_shapes.items()}
    shapes |= {"ep_red": (episodes,), "ep_horizon": (episodes,), "ep_start": (episodes + 1,)}
    known = [name for name in (*STATE_NAMES, *OF_OWN) if f"st_{name}" in step_shapes]
    begun = {f"init_{name}": (episodes, *step_shapes[f"st_{name}"]) for name in known}
    if begun.keys() <= declared.keys():
        shapes |= begun
    for name, shape in shapes.items():
        if declared[name].shape != shape:
            raise BadArrays(f"{name} has shape {declared[name].shape}, expected {shape}")
        if declared[name].dtype.kind not in "iu":
            raise BadArrays(f"{name} must hold whole numbers, got {declared[name].dtype}")
    return {name: file.read(name) for name in shapes}
