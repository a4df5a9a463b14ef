"""Recorded games of the original come out equal, and what does not is named."""

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from phalanx.cli.commands import main
from phalanx.errors import TraceError
from phalanx.verify.replay import GAMES, verify

GOLDEN = Path(__file__).parents[1] / "golden"
COUNTS = {"final": (333, 21_210), "leaderboard": (208, 13_730)}
PACKED = {"2.1-final": (125, 7_710), "2.1-leaderboard": (101, 6_190)}


@pytest.mark.parametrize("name", COUNTS)
def test_every_recorded_step_comes_out_equal(name: str) -> None:
    result = verify(GOLDEN / name, rules=f"2.1-{name}")
    assert (result.episodes, result.steps) == COUNTS[name]
    assert result.mismatches == 0
    assert result.first_mismatch is None


def test_the_recordings_tell_the_two_rule_sets_apart(tmp_path: Path) -> None:
    """Played by the other rules, the leaderboard's recordings must differ, or they test nothing."""
    shutil.copytree(GOLDEN / "leaderboard", tmp_path / "traces")
    codebook = json.loads((tmp_path / "traces" / "codebook.json").read_text())
    codebook["rules"] = "2.1-final"
    (tmp_path / "traces" / "codebook.json").write_text(json.dumps(codebook))
    result = verify(tmp_path / "traces")
    assert result.broken_episodes >= 56
    assert result.by_field["remembered ports"] > 0


def test_a_folder_of_folders_is_verified_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(GOLDEN)]) == 0
    assert "541 episodes, 34940 steps, 0 mismatches" in capsys.readouterr().out


@pytest.mark.parametrize("rules", [None, *PACKED])
def test_games_come_with_phalanx(
    rules: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", *(["--rules", rules] if rules else [])]) == 0
    which = [rules] if rules else list(PACKED)
    episodes, steps = (sum(PACKED[one][k] for one in which) for k in (0, 1))
    said = capsys.readouterr().out
    assert f"rules {', '.join(which)}: {episodes} episodes, {steps} steps, 0 mismatches" in said


def kinds_of_events(arrays: dict[str, Any]) -> set[tuple[Any, ...]]:
    """What happens in recorded games: moves with their outcomes, and what each field can hold."""
    moves = ("red", "red_tgt", "red_ok", "red_nobs", "exploit", "detect")
    pairs = [arrays[f"st_{name}"].tolist() for name in moves]
    events: set[tuple[Any, ...]] = {("red", *move) for move in zip(*pairs, strict=True)}
    actions = zip(arrays["st_blue"].tolist(), arrays["st_blue_ok"].tolist(), strict=True)
    events |= {("blue", *action) for action in actions}
    bits = arrays["st_obs"].reshape(-1, 26, 2)
    by_host = {name: arrays[f"st_{name}"] for name in ("decoys", "red_ports", "access", "files")}
    by_host |= {"seen": bits @ np.array([1, 2]), "session": arrays["st_sess"] & np.uint64(3)}
    by_host |= {name: arrays[f"st_{name}"][:, None] for name in ("misc", "reward10")}
    for name, values in by_host.items():
        for column in range(values.shape[1]):
            events |= {(name, column, value) for value in np.unique(values[:, column]).tolist()}
    return events


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent", "SleepAgent"])
def test_the_games_that_come_with_phalanx_hold_all_that_was_recorded(name: str, red: str) -> None:
    """Fewer episodes, and every kind of event of the whole set."""
    with (
        np.load(GOLDEN / name / f"{red}.npz") as whole,
        np.load(GAMES / f"2.1-{name}" / f"{red}.npz") as few,
    ):
        assert kinds_of_events(dict(few)) == kinds_of_events(dict(whole))
        assert set(few["ep_seed"].tolist()) <= set(whole["ep_seed"].tolist())


# --- differences ----------------------------------------------------------------------------------


def copy_with(tmp_path: Path, **changes: Any) -> Path:
    """The Meander recordings, with some arrays changed: name=function of the array."""
    folder = tmp_path / "changed"
    folder.mkdir()
    shutil.copy(GOLDEN / "final" / "codebook.json", folder)
    with np.load(GOLDEN / "final" / "RedMeanderAgent.npz") as archive:
        arrays = dict(archive)
    for name, change in changes.items():
        arrays[name] = change(arrays[name])
    np.savez_compressed(folder / "RedMeanderAgent.npz", **arrays)
    return folder


def flip(row: int, *column: int) -> Any:
    """Another value in one place."""

    def change(values: Any) -> Any:
        values = values.copy()
        values[(row, *column)] = values[(row, *column)] ^ 1
        return values

    return change


FIELDS = {
    "st_red_nobs": ("hosts that red is shown", ()),
    "st_green": ("green's move", ()),
    "st_blue_ok": ("blue success", ()),
    "st_reward10": ("reward in tenths", ()),
    "st_obs": ("observation", (40,)),
    "st_known": ("known", (3,)),
    "st_scanned": ("scanned", (3,)),
    "st_access": ("access", (3,)),
    "st_sess": ("session class", (3,)),
    "st_decoys": ("decoys", (3,)),
    "st_files": ("files", (3,)),
    "st_red_ports": ("remembered ports", (3,)),
    "st_hname_known": ("hostname known", (3,)),
    "st_subnets_known": ("subnets known", ()),
    "st_misc": ("flags", ()),
    "st_mem": ("agent memory", (2,)),
    "st_red_ok": ("red success", ()),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_difference_in_any_field_is_found_and_named(name: str, tmp_path: Path) -> None:
    field, column = FIELDS[name]
    row = 205  # episode 3, step 56 of this file
    result = verify(copy_with(tmp_path, **{name: flip(row, *column)}))
    with np.load(GOLDEN / "final" / "RedMeanderAgent.npz") as archive:
        start = archive["ep_start"]
    episode = int(np.searchsorted(start, row, side="right")) - 1
    assert result.mismatches == 1
    first = result.first_mismatch
    assert first is not None
    assert first.field.startswith(field)
    assert (first.episode, first.step) == (episode, row - start[episode] + 1)
    assert first.expected != first.got


def test_what_is_not_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every array of a recording is replayed from, compared, or listed with the reason."""
    played = {"ep_red", "ep_horizon", "ep_start", "st_blue"}
    outcomes = {"st_red", "st_red_tgt", "st_exploit", "st_detect"}  # replayed from, and compared
    with np.load(GOLDEN / "final" / "RedMeanderAgent.npz") as archive:
        names = {name.replace("init_", "st_") for name in archive}
    report = tmp_path / "report.json"
    assert main(["verify", str(GOLDEN / "final"), "--json", str(report)]) == 0
    left = json.loads(report.read_text())["not_compared"]
    assert names == played | outcomes | set(FIELDS) | set(left)
    assert all(left.values())
    said = capsys.readouterr().out
    assert f"recorded, but not compared: {', '.join(left)}; --json says why" in said


def test_steps_are_counted_as_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However many values of a field differ in one step."""

    def change(values: Any) -> Any:
        values = values.copy()
        values[[205, 206]] ^= 1
        return values

    folder = copy_with(tmp_path, st_obs=change, st_known=change)
    result = verify(folder)
    assert result.mismatches == 2
    assert result.by_field == {"observation": 2, "known": 2}
    main(["verify", str(folder)])
    said = capsys.readouterr().out
    assert "steps that differ: 2, in 1 episodes; observation on 2, known on 2" in said


@pytest.mark.parametrize("value", [2, 7, 255, -1, 10**12])
def test_an_observation_of_other_than_bits_is_a_difference(tmp_path: Path, value: int) -> None:
    def change(values: Any) -> Any:
        values = values.astype(np.int64)
        values[300, 4 * 11 + 1] = value
        return values

    first = verify(copy_with(tmp_path, st_obs=change)).first_mismatch
    assert first is not None
    assert (first.field, first.host) == ("observation (activity)", "User3")
    assert str(value) in str(first.expected)


def test_a_wrong_red_action_or_target_is_found(tmp_path: Path) -> None:
    def other_target(targets: Any) -> Any:
        targets = targets.copy()
        targets[0] = 0  # the first sweep goes to User, not to Enterprise
        return targets

    result = verify(copy_with(tmp_path, st_red_tgt=other_target))
    said = str(result.first_mismatch)
    assert said.endswith(
        "red move should be DiscoverRemoteSystems Enterprise, got DiscoverRemoteSystems User"
    )


def test_a_wrong_beginning_is_found(tmp_path: Path) -> None:
    result = verify(copy_with(tmp_path, init_known=flip(4, 3)))
    assert result.mismatches == 1
    assert "episode 4, step 0 (blue: reset): known of Enterprise2" in str(result.first_mismatch)


def test_an_impossible_outcome_is_not_obeyed(tmp_path: Path) -> None:
    """A recorded target that the rules do not allow must show, not be played."""

    def defender(targets: Any) -> Any:
        targets = targets.copy()
        targets[1] = 0  # the first scan, when red knows user hosts only
        return targets

    result = verify(copy_with(tmp_path, st_red_tgt=defender))
    assert result.first_mismatch is not None
    assert result.first_mismatch.field == "red move"
    assert result.first_mismatch.expected == "DiscoverNetworkServices Defender"


def test_a_reused_process_id_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def flag(misc: Any) -> Any:
        misc = misc.copy()
        misc[[300, 301, 5000]] |= 0x80
        return misc

    assert main(["verify", str(copy_with(tmp_path, st_misc=flag))]) == 0
    assert "2 episodes hold a process id" in capsys.readouterr().out


def test_the_command_reports_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_with(tmp_path, st_obs=flip(300, 4 * 11))
    report = tmp_path / "report.json"
    assert main(["verify", str(folder), "--json", str(report)]) == 1
    said = capsys.readouterr().out
    assert "157 episodes, 10520 steps, 1 mismatches" in said
    assert "observation (activity) of User3 should be" in said
    result = json.loads(report.read_text())
    assert result["episodes"] == 157
    assert result["mismatches"] == 1
    assert result["first_mismatch"]["host"] == "User3"


# --- files that cannot be read --------------------------------------------------------------------


def test_no_folder_no_codebook_no_traces(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is not a folder"):
        verify(tmp_path / "nowhere")
    with pytest.raises(TraceError, match=r"codebook\.json"):
        verify(tmp_path)
    shutil.copy(GOLDEN / "final" / "codebook.json", tmp_path)
    with pytest.raises(TraceError, match=r"no \.npz files"):
        verify(tmp_path)


@pytest.mark.parametrize("keep", [0, 10, 1000, 60_000])
def test_truncated_files_are_refused(tmp_path: Path, keep: int) -> None:
    shutil.copy(GOLDEN / "final" / "codebook.json", tmp_path)
    whole = (GOLDEN / "final" / "B_lineAgent.npz").read_bytes()
    (tmp_path / "B_lineAgent.npz").write_bytes(whole[:keep])
    with pytest.raises(TraceError, match="truncated"):
        verify(tmp_path)


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "final" / "codebook.json", tmp_path)
    data = bytearray((GOLDEN / "final" / "B_lineAgent.npz").read_bytes())
    data[20_000:20_400] = bytes(400)
    (tmp_path / "B_lineAgent.npz").write_bytes(data)
    with pytest.raises(TraceError, match=r"B_lineAgent\.npz"):
        verify(tmp_path)


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    folder = copy_with(tmp_path, st_red=lambda red: red.astype(object))
    with pytest.raises(TraceError, match="cannot read"):
        verify(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ep_start": lambda start: start[:-1]}, "ep_start"),
        ({"ep_start": lambda start: start * 2}, "does not cut"),
        ({"ep_start": lambda start: start.astype(np.float64)}, "whole numbers"),
        ({"st_blue": lambda blue: blue.astype(np.int64) - 10**12}, "is not one of 0..144"),
        ({"st_blue": lambda blue: np.full(blue.shape, np.nan)}, "whole numbers"),
        ({"ep_red": lambda red: red.astype(np.int8) - 2}, "red agent"),
        ({"init_known": lambda known: known[1:]}, "init_known has shape"),
        ({"ep_horizon": lambda horizon: horizon + 1}, "ep_horizon"),
        ({"st_obs": lambda obs: obs[:, :51]}, "st_obs has shape"),
        ({"st_mem": lambda memory: memory[:-5]}, "st_mem has shape"),
        ({"st_blue": lambda blue: np.full_like(blue, 145)}, "blue action 145"),
        ({"ep_red": lambda red: np.full_like(red, 7)}, "red agent"),
    ],
)
def test_files_that_contradict_themselves_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        verify(copy_with(tmp_path, **changes))


def test_a_file_without_episodes_is_refused(tmp_path: Path) -> None:
    with np.load(GOLDEN / "final" / "SleepAgent.npz") as archive:
        names = list(archive)
    empty = {name: lambda array: array[:0] for name in names} | {
        "ep_start": lambda start: start[:1]
    }
    with pytest.raises(TraceError, match="no episodes"):
        verify(copy_with(tmp_path, **empty))


def bomb(folder: Path) -> None:
    """A small file that would unfold to a thousand times its size."""
    with ZipFile(folder / "SleepAgent.npz", "w", ZIP_DEFLATED) as archive:
        for name in ("st_obs.npy", "st_known.npy"):
            archive.writestr(name, bytes(30_000_000))


def forge(folder: Path, old: bytes, new: bytes) -> None:
    """One array's header says something else."""
    with ZipFile(GOLDEN / "final" / "SleepAgent.npz") as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    assert old in members["st_obs.npy"][:128]
    members["st_obs.npy"] = members["st_obs.npy"].replace(old, new, 1)
    with ZipFile(folder / "SleepAgent.npz", "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def lengthen_a_name(folder: Path) -> None:
    """A local header says that its name runs on into 20,000 bytes of numbers."""
    whole = bytearray((GOLDEN / "final" / "RedMeanderAgent.npz").read_bytes())
    whole[26:28] = (20_000).to_bytes(2, "little")
    (folder / "x.npz").write_bytes(whole)


def add_foreign(folder: Path) -> None:
    with np.load(GOLDEN / "final" / "SleepAgent.npz") as archive:
        np.savez_compressed(folder / "SleepAgent.npz", **dict(archive), weights=np.zeros(3))


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (bomb, "it unfolds to 60 MB; 32 may be"),
        (
            lambda f: forge(f, b"(1690, 52)", b"(9690, 52)"),
            r"st_obs.npy declares uint8 \[9690",
        ),
        (lambda f: forge(f, b"'|u1'", b"'|O8'"), "st_obs.npy is no array of plain numbers"),
        (lambda f: forge(f, b"'|u1'", b"'<f8'"), "st_obs.npy declares float64"),
        (lambda f: forge(f, b"{'descr'", b"(1).real"), "st_obs.npy is no array of plain numbers"),
        (lengthen_a_name, "BadZipFile: File name in directory"),
        (add_foreign, r"there is no member 'weights.npy' in such a file"),
        (lambda f: os.mkfifo(f / "SleepAgent.npz"), "no plain file|Is a directory"),
        (lambda f: (f / "SleepAgent.npz").mkdir(), "no plain file|Is a directory"),
        (lambda f: (f / "SleepAgent.npz").symlink_to("/dev/zero"), "no plain file|Is a directory"),
    ],
)
def test_hostile_files_are_refused_and_cost_nothing(
    tmp_path: Path, attack: Callable[[Path], None], message: str
) -> None:
    shutil.copy(GOLDEN / "final" / "codebook.json", tmp_path)
    attack(tmp_path)
    tracemalloc.start()
    with pytest.raises(TraceError, match=message) as refused:
        verify(tmp_path)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64])
def test_numbers_of_any_kind_and_size_are_compared(tmp_path: Path, dtype: Any) -> None:
    """Whatever a file holds in place of what was recorded is a difference."""

    def extreme(values: Any) -> Any:
        values = values.astype(dtype)
        values[3], values[4] = np.iinfo(dtype).min, np.iinfo(dtype).max
        return values

    drawn = {"st_red", "st_red_tgt", "st_exploit", "st_detect"}
    changes = dict.fromkeys(drawn | set(FIELDS), extreme)
    result = verify(copy_with(tmp_path, **changes))
    assert result.mismatches >= 2
    assert set(result.by_field) >= {name for name, _column in FIELDS.values()}


def test_episodes_that_are_too_long_or_empty_are_refused(tmp_path: Path) -> None:
    def as_one(start: Any) -> Any:
        return start[[0, -1]]

    whole = {name: (lambda values: values[:1]) for name in ("ep_red", "ep_seed", "ep_policy")}
    with np.load(GOLDEN / "final" / "RedMeanderAgent.npz") as archive:
        whole |= {name: (lambda values: values[:1]) for name in archive if "init" in name}
        rows = len(archive["st_blue"])
    whole |= {"ep_start": as_one, "ep_horizon": lambda _: np.array([rows])}
    with pytest.raises(TraceError, match="an episode has 10520 steps; it can have 1 to 10000"):
        verify(copy_with(tmp_path, **whole))


def test_an_array_under_an_archives_name_is_refused(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "final" / "codebook.json", tmp_path)
    with (tmp_path / "x.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(TraceError, match="cannot read"):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("st_exploit", 99), ("st_red_tgt", 99), ("st_red", 77)]
)
def test_numbers_without_a_name_are_shown_as_they_are(
    tmp_path: Path, name: str, value: int
) -> None:
    def change(values: Any) -> Any:
        values = values.copy()
        values[3] = value
        return values

    first = verify(copy_with(tmp_path, **{name: change})).first_mismatch
    assert first is not None
    assert first.expected != first.got
    assert str(value) in str(first.expected)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "final" / "codebook.json", tmp_path)
    np.savez(tmp_path / "x.npz", ep_red=np.zeros(1), ep_start=np.zeros(2))
    with pytest.raises(TraceError, match="has no ep_horizon, st_blue"):
        verify(tmp_path)


def test_traces_of_another_rule_set_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(GOLDEN / "leaderboard"), "--rules", "2.1-final"]) == 2
    assert "was recorded under rules 2.1-leaderboard, not 2.1-final" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": "3.0"}, "phalanx plays 2.1-final, 2.1-leaderboard"),
        ({"hosts": ["Alpha"]}, "numbers hosts as"),
        ({"red_agents": None}, "red_agents"),
        ({"red_agents": ["GreenAgent"]}, "GreenAgent"),
        ({"red_agents": []}, "red_agents"),
        ({"red_agents": [["B_lineAgent"]]}, "red_agents"),
        ({"rules": ["2.1-final"]}, "phalanx plays"),
        ({"hosts": ["x" * 50_000]}, "numbers hosts as .{,300}, phalanx as"),
    ],
)
def test_codebooks_of_another_game_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = copy_with(tmp_path)
    codebook = json.loads((folder / "codebook.json").read_text())
    (folder / "codebook.json").write_text(json.dumps(codebook | change))
    with pytest.raises(TraceError, match=message):
        verify(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '"word"', "[" * 90_000, "9" * 5000, " " * 200_000, '{"a": "\x00"}']
)
def test_codebooks_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    folder = copy_with(tmp_path)
    (folder / "codebook.json").write_text(text)
    with pytest.raises(TraceError, match="codebook"):
        verify(folder)
