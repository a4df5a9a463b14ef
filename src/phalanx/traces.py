"""Recorded games of the original: read from disk and checked, ready to be replayed."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from phalanx.cage2.observation import NUM_BITS
from phalanx.cage2.scenario import (
    CHALLENGE_NAMES,
    DECOYS,
    EXPLOITS,
    HOSTS,
    NUM_ACTIONS,
    NUM_HOSTS,
    RULE_SETS,
    SUBNETS,
)
from phalanx.errors import TraceError

Array = npt.NDArray[Any]

EPISODE_ARRAYS = ("ep_red", "ep_horizon", "ep_start")
STATE_NAMES = (
    "known", "scanned", "access", "sess", "decoys", "files", "red_ports", "hname_known",
    "subnets_known", "misc",
)  # fmt: skip
STEP_SHAPES: dict[str, tuple[int, ...]] = {
    "st_blue": (), "st_blue_ok": (), "st_red": (), "st_red_tgt": (), "st_red_ok": (),
    "st_red_nobs": (),
    "st_exploit": (), "st_detect": (), "st_reward10": (), "st_subnets_known": (), "st_misc": (),
    "st_obs": (NUM_BITS,), "st_known": (NUM_HOSTS,), "st_scanned": (NUM_HOSTS,),
    "st_access": (NUM_HOSTS,), "st_hname_known": (NUM_HOSTS,), "st_sess": (NUM_HOSTS,),
    "st_decoys": (NUM_HOSTS,), "st_files": (NUM_HOSTS,), "st_red_ports": (NUM_HOSTS,),
    "st_mem": (6,),
}  # fmt: skip


@dataclass(frozen=True)
class Traces:
    """The recorded episodes of one file."""

    path: Path
    rules: str
    red: Array  # [E] our number of the red agent
    start: Array  # [E + 1] rows of episode e: start[e] up to start[e + 1]
    steps: dict[str, Array]  # by name without "st_", [T, ...]
    initial: dict[
        str, Array
    ]  # the state at the beginning by the same names, [E, ...]; may be empty

    def first(self, episodes: int) -> "Traces":
        """The first few episodes only."""
        start = self.start[: episodes + 1]
        steps = {name: values[: start[-1]] for name, values in self.steps.items()}
        initial = {name: values[:episodes] for name, values in self.initial.items()}
        return Traces(self.path, self.rules, self.red[:episodes], start, steps, initial)


def read_folder(folder: Path) -> list[Traces]:
    """The traces of a folder (codebook.json and .npz files), or of all such folders in it."""
    if not folder.is_dir():
        raise TraceError(f"{folder} is not a folder; {_WANTED}")
    if not (folder / "codebook.json").exists():
        inner = sorted(path.parent for path in folder.glob("*/codebook.json"))
        if inner:
            return [traces for one in inner for traces in read_folder(one)]
    codebook = _read_codebook(folder / "codebook.json")
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise TraceError(f"no .npz files in {folder}; {_WANTED}")
    rules = codebook.get("rules", RULE_SETS[0])
    if rules not in RULE_SETS:
        known = ", ".join(RULE_SETS)
        raise TraceError(f"{folder} was recorded under rules {rules!r}; phalanx plays {known}")
    return [_read_file(path, rules, codebook["red_agents"]) for path in files]


_WANTED = "give a folder with codebook.json and .npz files"


def _read_codebook(path: Path) -> dict[str, Any]:
    try:
        codebook = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TraceError(f"cannot read {path} ({why}); it must lie beside the .npz files") from None
    ours = {
        "hosts": list(HOSTS),
        "exploits": list(EXPLOITS),
        "subnets": list(SUBNETS),
        "decoy_bits": [decoy.name for decoy in DECOYS],
    }
    if not isinstance(codebook, dict):
        raise TraceError(f"{path} holds no table of codes")
    for name, expected in ours.items():
        if codebook.get(name) != expected:
            raise TraceError(
                f"{path} numbers {name} as {codebook.get(name)}, phalanx as {expected}"
            )
    if not isinstance(codebook.get("red_agents"), list):
        raise TraceError(f"{path} has no list of red_agents")
    return codebook


def _read_file(path: Path, rules: str, red_agents: list[str]) -> Traces:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = [name for name in (*EPISODE_ARRAYS, *STEP_SHAPES) if name not in archive]
            if names:
                raise TraceError(f"{path} has no {', '.join(names)}; is it a recorded trace?")
            arrays = {name: archive[name] for name in (*EPISODE_ARRAYS, *STEP_SHAPES)}
            begun = all(f"init_{name}" in archive for name in STATE_NAMES)
            initial = {name: archive[f"init_{name}"] for name in STATE_NAMES if begun}
    except TraceError:
        raise
    except (
        OSError,
        TypeError,
        ValueError,
        EOFError,
        KeyError,
        AttributeError,
        NotImplementedError,
        BadZipFile,
        zlib.error,
    ):
        raise TraceError(f"cannot read {path}: it is truncated, damaged or no .npz file") from None
    _check_shapes(path, arrays, initial)
    start, red = arrays["ep_start"].astype(np.int64), arrays["ep_red"]
    if not len(red):
        raise TraceError(f"{path} holds no episodes")
    rows = len(arrays["st_blue"])
    if start[0] != 0 or start[-1] != rows or (np.diff(start) < 0).any():
        raise TraceError(f"{path}: ep_start does not cut its {rows} steps into {len(red)} episodes")
    if not np.array_equal(np.diff(start), arrays["ep_horizon"]):
        raise TraceError(f"{path}: ep_horizon does not agree with ep_start; is the file truncated?")
    wrong = (arrays["st_blue"] < 0) | (arrays["st_blue"] >= NUM_ACTIONS)
    if wrong.any():
        action = arrays["st_blue"][wrong][0]
        raise TraceError(f"{path}: blue action {action} is not one of 0..{NUM_ACTIONS - 1}")
    unknown = [name for name in red_agents if name not in CHALLENGE_NAMES]
    if unknown or red.min() < 0 or red.max() >= len(red_agents):
        raise TraceError(
            f"{path}: red agents {red_agents} are not all of {', '.join(CHALLENGE_NAMES)}"
        )
    numbers = np.array([CHALLENGE_NAMES.index(name) for name in red_agents])
    steps = {name.removeprefix("st_"): arrays[name] for name in STEP_SHAPES}
    return Traces(path, rules, numbers[red], start, steps, initial)


def _check_shapes(path: Path, arrays: dict[str, Array], initial: dict[str, Array]) -> None:
    """Whole numbers everywhere, a row for each episode or step."""
    episodes, rows = arrays["ep_red"].size, arrays["st_blue"].size
    shapes = {name: (rows, *shape) for name, shape in STEP_SHAPES.items()}
    shapes |= {"ep_red": (episodes,), "ep_horizon": (episodes,), "ep_start": (episodes + 1,)}
    named = arrays | {f"init_{name}": values for name, values in initial.items()}
    shapes |= {f"init_{name}": (episodes, *STEP_SHAPES[f"st_{name}"]) for name in initial}
    for name, values in named.items():
        if values.shape != shapes[name]:
            raise TraceError(f"{path}: {name} has shape {values.shape}, expected {shapes[name]}")
        if values.dtype.kind not in "iu":
            raise TraceError(f"{path}: {name} must hold whole numbers, got {values.dtype}")
