"""A recorded game of the original is told as it was recorded."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from phalanx.cage2.rules.observation import NUM_BITS
from phalanx.cage2.rules.scenario import CHALLENGE_NAMES, EXPLOITS, HOSTS, RED_AGENTS
from phalanx.errors import TraceError
from phalanx.show.replay.recorded_game import find_episode, record_trace
from phalanx.verify.traces import read_folder

GOLDEN = Path(__file__).parent.parent.parent / "golden"


@pytest.mark.parametrize("folder", ["final", "leaderboard"])
@pytest.mark.parametrize("name", CHALLENGE_NAMES)
def test_a_trajectory_equals_the_recorded_arrays(folder: str, name: str) -> None:
    path = GOLDEN / folder / f"{name}.npz"
    (traces,) = (one for one in read_folder(GOLDEN / folder) if one.path == path)
    for episode in (0, len(traces.red) // 2, len(traces.red) - 1):
        play = record_trace(path, episode).as_play()
        rows = slice(int(traces.start[episode]), int(traces.start[episode + 1]))
        steps = {key: values[rows] for key, values in traces.steps.items()}
        states, turns = play["states"], play["turns"]
        count = len(steps["blue"])
        assert len(turns["blue"]) == count
        assert (play["source"], play["seed"], play["episode"]) == ("trace", None, episode)
        assert play["attacker"] == RED_AGENTS[CHALLENGE_NAMES.index(name)]
        assert turns["blue"] == steps["blue"].tolist()
        assert [round(10 * reward) for reward in turns["reward"]] == steps["reward10"].tolist()
        assert turns["red_success"] == "".join(str(int(ok == 1)) for ok in steps["red_ok"])
        for t in range(count):
            after = {key: values[t].tolist() for key, values in steps.items()}
            assert states["access"][t + 1] == _digits(after["access"])
            assert states["files"][t + 1] == _digits(after["files"])
            assert states["decoys"][t + 1] == after["decoys"]
            known = np.maximum(after["known"], 2 * np.array(after["scanned"]))
            assert states["known"][t + 1] == _digits(known.tolist())
            assert int(states["service"][t + 1]) == after["misc"] & 1
            bits = np.array(after["obs"]).reshape(NUM_BITS // 4, 4)
            assert states["activity"][t + 1] == _digits((bits[:, 0] + 2 * bits[:, 1]).tolist())
            assert states["compromised"][t + 1] == _digits((bits[:, 2] + 2 * bits[:, 3]).tolist())
            if after["exploit"] >= 0:
                host = HOSTS[after["red_tgt"]]
                said = f"exploits {host} by {EXPLOITS[after['exploit']]}:"
                assert said in turns["red_words"][t]
                if after["detect"] == 1:
                    assert turns["red_words"][t].endswith("detected")
                if after["detect"] == 0:
                    assert not turns["red_words"][t].endswith("detected")


RECORDED = GOLDEN.parent / "scenarios" / "recorded"


@pytest.mark.parametrize(
    "name",
    [
        "more_users-meander-final",
        "other_access-meander-leaderboard",
        "green-meander-final",
    ],
)
def test_a_recording_of_another_network_is_told_by_its_names(name: str) -> None:
    (traces,) = read_folder(RECORDED / name)
    recorder = record_trace(RECORDED / name, 0)
    play, hosts = recorder.as_play(), traces.scenario.host_names
    rows = slice(int(traces.start[0]), int(traces.start[1]))
    steps = {key: values[rows] for key, values in traces.steps.items()}
    rewards = [round(10 * reward) for reward in play["turns"]["reward"]]
    assert rewards == steps["reward10"].tolist()
    assert recorder.place.hosts == hosts
    for t, access in enumerate(steps["access"].tolist()):
        assert play["states"]["access"][t + 1] == _digits(access)
        scanned = int(steps["green"][t]) - 1
        if scanned >= 0:
            assert play["turns"]["green_words"][t].startswith(f"scans {hosts[scanned]}: ")
    has_green = name.startswith("green")
    assert ("green_words" in play["turns"]) == has_green
    assert (play["states"]["belief"] is None) == has_green  # its chance is not recorded
    assert ("notes" in play) == has_green


def _digits(numbers: list[int]) -> str:
    return "".join(map(str, numbers))


def test_episodes_are_counted_through_all_files_of_a_folder() -> None:
    lengths = {one.path.name: len(one.red) for one in read_folder(GOLDEN / "final")}
    first = next(iter(lengths.values()))
    traces, number = find_episode(GOLDEN / "final", first + 2, None)
    assert (traces.path.name, number) == (list(lengths)[1], 2)
    traces, number = find_episode(GOLDEN / "final", 5, "meander")
    assert (traces.path.name, number) == ("RedMeanderAgent.npz", 5)
    traces, number = find_episode(GOLDEN / "final" / "SleepAgent.npz", 1, None)
    assert (traces.path.name, number) == ("SleepAgent.npz", 1)
    total = sum(lengths.values())
    with pytest.raises(TraceError, match=f"has {total} episodes, numbered from 0; got --episode"):
        find_episode(GOLDEN / "final", total, None)
    with pytest.raises(TraceError, match="has 0 episodes of coin"):
        find_episode(GOLDEN / "final", 0, "coin")


def test_what_is_no_recorded_game_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is not a folder"):
        record_trace(tmp_path / "nowhere.npz", 0)
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(TraceError, match=r"codebook\.json"):
        record_trace(tmp_path / "x.npz", 0)


def test_a_recording_that_the_rules_do_not_explain_is_refused(tmp_path: Path) -> None:
    for name in ("codebook.json", "B_lineAgent.npz"):
        shutil.copy(GOLDEN / "final" / name, tmp_path / name)
    with np.load(tmp_path / "B_lineAgent.npz") as file:
        arrays = dict(file)
    arrays["st_reward10"] = arrays["st_reward10"].copy()
    arrays["st_reward10"][3] -= 7
    np.savez_compressed(tmp_path / "B_lineAgent.npz", **arrays)
    with pytest.raises(TraceError, match=r"the replay leaves the recording: .* step 4 .*reward"):
        record_trace(tmp_path, 0)
    assert record_trace(tmp_path, 1).turns  # others are as good as before
