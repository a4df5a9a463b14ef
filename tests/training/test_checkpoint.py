"""Checkpoints come from anyone: nothing in them is executed, believed or unfolded unseen."""

import contextlib
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.agents import AGENTS
from phalanx.arrays import Arrays
from phalanx.arrays_file import PIECE
from phalanx.cli.commands import main
from phalanx.errors import CheckpointError
from phalanx.training.checkpoint import (
    FORMAT,
    last_checkpoint,
    load_checkpoint,
    read_facts,
    save_checkpoint,
)

FACTS: dict[str, Any] = {
    "config": {"env": "cage2", "hidden": [64, 64], "seed": 0},
    "updates": 3,
    "seconds": {"collect": 1.0, "learn": 2.0, "other": -0.5},
    "recent": [[0, "b_line", 30, -1.5, 0, 0, 0, 0.0, -31.5]],
    "tables": {"updates": 10, "episodes": 20},
}
THETA = np.arange(6, dtype=np.float32)


def saved(tmp_path: Path, facts: dict[str, Any] | None = None, **arrays: Any) -> Path:
    path = tmp_path / "one.npz"
    save_checkpoint(path, arrays or {"theta": THETA}, FACTS if facts is None else facts)
    return path


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, members: dict[str, bytes], way: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", way) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    odd: Arrays = {
        "theta": THETA,
        "prices": np.array(2.5),
        "weights_a.b": np.asfortranarray(np.eye(3)[:2]),
    }
    path = tmp_path / "one.npz"
    save_checkpoint(path, odd, FACTS)
    arrays, facts = load_checkpoint(path)
    assert facts == {"format": FORMAT, **FACTS}
    for name, array in odd.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


def test_arrays_that_are_read_in_several_pieces_are_whole(tmp_path: Path) -> None:
    large = np.arange(2.5 * PIECE / 4, dtype=np.float32)
    arrays, _facts = load_checkpoint(saved(tmp_path, theta=large))
    assert np.array_equal(arrays["theta"], large)


def test_games_are_read_only_where_they_are_wanted(tmp_path: Path) -> None:
    games = np.zeros((2, 3), np.uint8)
    path = saved(tmp_path, theta=THETA, sampler_nets=games)
    assert set(load_checkpoint(path)[0]) == {"theta"}
    both: Arrays = {"theta": THETA, "sampler_nets": games}
    assert set(load_checkpoint(path, both)[0]) == set(both)


@pytest.mark.parametrize(
    "template",
    [{}, {"theta": THETA[:5]}, {"theta": THETA.astype(np.float64)}, {"theta": THETA[None]}],
)
def test_other_shapes_and_kinds_do_not_fit(tmp_path: Path, template: Any) -> None:
    with pytest.raises(CheckpointError, match=r"does not fit: theta is float32 \[6\]"):
        load_checkpoint(saved(tmp_path), template)


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("ran"),)


@pytest.mark.parametrize("member", ["facts", "theta", "digest"])
@pytest.mark.parametrize("form", ["npy", "bare"])
def test_no_member_is_ever_unpickled(
    tmp_path: Path, member: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evil = npy(np.array([Payload()], object)) if form == "npy" else pickle.dumps(Payload())
    path = saved(tmp_path)
    rewrite(path, members_of(path) | {f"{member}.npy": evil})
    with pytest.raises(CheckpointError, match="no array of plain numbers"):
        load_checkpoint(path)
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    "name", ["../theta.npy", "/theta.npy", "prices", "theta.npy.npy", "extra.npy", "sampler_x.npy"]
)
def test_members_of_unknown_names_are_refused(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path)
    rewrite(path, members_of(path) | {name: npy(THETA)})
    with pytest.raises(CheckpointError, match="there is no member"):
        load_checkpoint(path)


def test_a_member_is_there_once(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("theta.npy", npy(THETA))
    with pytest.raises(CheckpointError, match="twice"):
        load_checkpoint(path)


@pytest.mark.parametrize("way", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_nothing_is_unfolded(tmp_path: Path, way: int) -> None:
    path = saved(tmp_path)
    rewrite(path, members_of(path), way)
    with pytest.raises(CheckpointError, match="packed in an unusual way"):
        load_checkpoint(path)


def header(descr: str, shape: str, order: str = "False") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text = text.ljust(118 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (header("'<f4'", "(999999999999,)"), "declares float32"),
        (header("'<f4'", "(5,)"), "declares float32"),
        (header("'<f4'", "(-6,)"), "plain numbers"),
        (header("'>f4'", "(6,)"), "plain numbers"),
        (header("'|O'", "(6,)"), "plain numbers"),
        (header("[('a', '<f4')]", "(6,)"), "plain numbers"),
        (header("'<f4'", "(6,)", "1"), "plain numbers"),
        (header("'<f4'", "(" * 200 + "6" + ")" * 200), "plain numbers"),
        (header("'<f4'", "(6,1,1,1,1,1,1,1,1,)"), "9 dimensions"),
        (header("'<f4'", "(" + "1" * 200 + "X,)"), "plain numbers"),  # read in a moment
    ],
)
def test_a_header_is_believed_only_if_the_bytes_are_there(
    tmp_path: Path, head: bytes, why: str
) -> None:
    path = saved(tmp_path)
    rewrite(path, members_of(path) | {"theta.npy": head + THETA.tobytes()})
    with pytest.raises(CheckpointError, match=why):
        load_checkpoint(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_are_numbers(tmp_path: Path, value: float) -> None:
    with pytest.raises(CheckpointError, match="theta holds what is no number"):
        load_checkpoint(saved(tmp_path, theta=np.array([1.0, value])))


@pytest.mark.parametrize("change", ["weights", "facts", "name", "shape", "without"])
def test_the_checksum_is_over_all_of_it(tmp_path: Path, change: str) -> None:
    """Each member is whole in itself; only the checksum tells that they belong together."""
    path = saved(tmp_path)
    members = members_of(path)
    other = {"format": FORMAT, **FACTS, "updates": 4}
    changes = {
        "weights": {"theta.npy": npy(THETA + 1)},
        "facts": {"facts.npy": npy(np.frombuffer(json.dumps(other).encode(), np.uint8))},
        "name": {"prices.npy": members["theta.npy"]},
        "shape": {"theta.npy": npy(THETA.reshape(2, 3))},
        "without": {},
    }
    members |= changes[change]
    if change == "name":
        del members["theta.npy"]
    if change == "without":
        del members["digest.npy"]
    with pytest.raises(CheckpointError, match="checksum"):
        load_checkpoint(rewrite(path, members))


def test_every_flipped_byte_is_noticed_or_means_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole, good = path.read_bytes(), load_checkpoint(path)
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with contextlib.suppress(CheckpointError):
            arrays, facts = load_checkpoint(path)
            assert facts == good[1]
            assert np.array_equal(arrays["theta"], THETA)


@pytest.mark.parametrize("length", [0, 1, 30, 200, -100, -1])
def test_a_cut_file_is_refused(tmp_path: Path, length: int) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match="not a whole checkpoint"):
        load_checkpoint(path)


BAD: dict[str, Callable[[], Any]] = {
    "config": lambda: [{"a": {}}, {"a": [[1]]}, {"a": [0] * 2000}, {"a": "x" * 20_000}, 3, None],
    "updates": lambda: [-1, 1.5, True, "3", None, 2**70],
    "seconds": lambda: [{}, {"collect": 1}, {"collect": "x", "learn": 1, "other": 1}, 3],
    "recent": lambda: [
        {},
        [1],
        [[0] * 9],
        [["0", "x", 1, 1, 0, 0, 0, 0, 0]],
        [FACTS["recent"][0]] * 3000,
    ],
    "tables": lambda: [
        {"updates": 1},
        {"updates": -1, "episodes": 0},
        {"/x": 0, "episodes": 0},
        [],
    ],
}


@pytest.mark.parametrize("name", BAD)
def test_facts_are_of_their_kind(tmp_path: Path, name: str) -> None:
    for value in BAD[name]():
        path = saved(tmp_path, FACTS | {name: value})
        with pytest.raises(CheckpointError, match=f"its {name} are not what phalanx writes"):
            read_facts(path)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[1]",
        b"[" * 100_000,
        b'{"format": 2, "updates": NaN}',
        b'{"a": ' + b"9" * 5000,
        b'{"format": 2, "x": 1e999, "updates": Infinity}',
    ],
)
def test_facts_are_a_table_of_plain_json(tmp_path: Path, text: bytes) -> None:
    path = saved(tmp_path)
    rewrite(path, members_of(path) | {"facts.npy": npy(np.frombuffer(text, np.uint8))})
    with pytest.raises(CheckpointError, match="not a whole checkpoint"):
        read_facts(path)


def test_another_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="reads format 2, not 1"):
        read_facts(saved(tmp_path, FACTS | {"format": 1}))


def test_objects_are_never_written(tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    with pytest.raises(ValueError, match="pickle"):
        save_checkpoint(path, {"theta": np.array([Payload()], object)}, FACTS)
    assert list(tmp_path.iterdir()) == []


EPISODE = FACTS["recent"][0]
JUST_RIGHT: dict[str, Callable[[], Any]] = {
    "config": lambda: [
        {"a": [0] * 256},
        {"a": "x" * 10_000},
        {str(i): 1 for i in range(1000)},
        {"a": None},
        {"a": True, "b": -1.5},
    ],
    "updates": lambda: [0, 2**62 - 1],
    "recent": lambda: [[], [EPISODE] * 2000, [EPISODE[:8]]],  # of eight: before own returns
    "tables": lambda: [{"updates": 0, "episodes": 0}],
}
JUST_WRONG: dict[str, Callable[[], Any]] = {
    "config": lambda: [
        {"a": [0] * 1001},
        {"a": "x" * 10_001},
        {str(i): 1 for i in range(1001)},
        {"a": "\0"},
    ],
    "updates": lambda: [2**62],
    "recent": lambda: [[EPISODE] * 2001, [EPISODE[:7]], [[*EPISODE, 0.0]]],
    "tables": lambda: [{"updates": 0, "episodes": 0, "faults": 0}],
}


@pytest.mark.parametrize("name", JUST_RIGHT)
def test_facts_may_be_as_large_as_the_largest_that_phalanx_writes(
    tmp_path: Path, name: str
) -> None:
    for value in JUST_RIGHT[name]():
        assert read_facts(saved(tmp_path, FACTS | {name: value}))[0][name] == value
    for value in JUST_WRONG[name]():
        with pytest.raises(CheckpointError, match=f"its {name} are not"):
            read_facts(saved(tmp_path, FACTS | {name: value}))


def test_the_newest_checkpoint_of_a_folder_is_its_last_or_a_searchs_winner(tmp_path: Path) -> None:
    last, winner = tmp_path / "checkpoints" / "last.npz", tmp_path / "policies" / "winner.npz"
    assert last_checkpoint(tmp_path) == last  # there is none: the message names it
    for path in (winner, last):
        path.parent.mkdir()
        path.write_bytes(b"")
        assert last_checkpoint(tmp_path) == path
    assert last_checkpoint(winner) == winner


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "one.npz")
    with pytest.raises(CheckpointError, match="no plain file"):
        read_facts(tmp_path / "one.npz")


def test_a_policy_that_was_trained_on_a_cluster_plays_anywhere(tmp_path: Path) -> None:
    arrays, facts = load_checkpoint(AGENTS["champion"])
    facts["config"] |= {"runner": "ray", "ray_address": "auto"}
    save_checkpoint(tmp_path / "far.npz", arrays, facts)
    assert phalanx.load_defender(tmp_path / "far.npz").rules == "2.1-leaderboard"
    evaluate = ["evaluate", str(tmp_path / "far.npz"), "--episodes", "2", "--horizon", "2"]
    assert main(evaluate) == 0
