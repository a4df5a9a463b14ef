"""The batch keeps Gymnasium's rules for many environments: seeds, masks, names, wrappers."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

from phalanx.cage2 import Cage2Env, Cage2VectorEnv
from phalanx.errors import ConfigError

N = 3
SETTINGS: dict[str, Any] = {"red_agent": "meander", "horizon": 9}
MODES = list(AutoresetMode)


def sync(mode: AutoresetMode = AutoresetMode.SAME_STEP, **settings: Any) -> SyncVectorEnv[Any, Any]:
    """Gymnasium's own vector of single environments."""
    return SyncVectorEnv(
        [lambda: gymnasium.make("phalanx/Cage2-v0", **SETTINGS, **settings)] * N,
        autoreset_mode=mode,
    )


def both(mode: AutoresetMode) -> tuple[Cage2VectorEnv, SyncVectorEnv[Any, Any]]:
    return Cage2VectorEnv(N, autoreset_mode=mode, **SETTINGS), sync(mode)


def actions_of(turns: int, num_envs: int = N) -> Any:
    return np.random.default_rng(0).integers(145, size=(turns, num_envs))


def assert_equal_steps(ours: Any, theirs: Any) -> None:
    """Observations, rewards and flags; final observations where episodes ended."""
    for one, other in zip(ours[:4], theirs[:4], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert ("final_obs" in ours[4]) == ("final_obs" in theirs[4])
    if "final_obs" in ours[4]:
        assert np.array_equal(ours[4]["_final_obs"], theirs[4]["_final_obs"])
        for i in np.flatnonzero(ours[4]["_final_obs"]):
            assert np.array_equal(ours[4]["final_obs"][i], theirs[4]["final_obs"][i])


@pytest.mark.parametrize("seed", [7, [5, 0, 2**63]])
@pytest.mark.parametrize("mode", MODES)
def test_a_batch_equals_gymnasiums_vector_of_single_environments(
    mode: AutoresetMode, seed: Any
) -> None:
    ours, theirs = both(mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == mode
    assert np.array_equal(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
    for actions in actions_of(30):
        step = ours.step(actions)
        assert_equal_steps(step, theirs.step(actions))
        if mode == AutoresetMode.DISABLED and (over := step[3]).any():
            resets = [envs.reset(options={"reset_mask": over.copy()})[0] for envs in (ours, theirs)]
            assert np.array_equal(resets[0], resets[1])
    assert ours.np_random_seed == theirs.np_random_seed


@pytest.mark.parametrize("mode", MODES)
def test_seeds_and_masks_together_mean_what_gymnasium_means(mode: AutoresetMode) -> None:
    pair = both(mode)
    some, other = np.array([True, False, True]), np.array([False, True, False])
    resets: list[dict[str, Any]] = [
        {"seed": 3},
        {"seed": 40, "options": {"reset_mask": some}},
        {"seed": [None, 8, 9], "options": {"reset_mask": other}},
        {"options": {"reset_mask": some}},
        {"seed": [None, 6, None]},
        {},
    ]
    for reset in resets:
        ours, theirs = (
            envs.reset(**reset | {"options": dict(reset.get("options", {}))})[0] for envs in pair
        )
        assert np.array_equal(ours, theirs)
        for actions in actions_of(2 if mode == AutoresetMode.DISABLED else 5):
            assert_equal_steps(*(envs.step(actions) for envs in pair))
        assert pair[0].np_random_seed == pair[1].np_random_seed


def test_a_number_spreads_over_the_networks_as_seed_plus_i() -> None:
    def dice(seed: Any) -> Any:
        envs = Cage2VectorEnv(N)
        envs.reset(seed=seed)
        return envs.batch.nets["stream"].tolist()

    assert dice(7) == dice([7, 8, 9]) == dice(np.int64(7)) == dice(np.array([7, 8, 9]))
    assert len({*dice(7), *dice(10)}) == 6


def test_without_any_seed_each_batch_plays_other_games_and_tells_their_seeds() -> None:
    first, second = Cage2VectorEnv(N), Cage2VectorEnv(N)
    streams = [envs.batch.nets["stream"].tolist() for envs in (first, second)]
    assert len({*streams[0], *streams[1]}) == 2 * N
    first.reset()
    assert first.batch.nets["stream"].tolist() == streams[0]
    second.reset(seed=list(first.np_random_seed))
    assert second.batch.nets["stream"].tolist() == streams[0]


def test_a_seed_of_the_settings_is_that_of_the_first_reset() -> None:
    first, second = (Cage2VectorEnv(N, seed=5, **SETTINGS) for _ in range(2))
    assert np.array_equal(first.reset()[0], second.reset()[0])
    for actions in actions_of(9):
        assert np.array_equal(first.step(actions)[1], second.step(actions)[1])
    assert first.np_random_seed == (5, -1, -1)  # (5, 1) and (5, 2) are no seeds of a reset
    alone = Cage2Env(seed=5, **SETTINGS)
    alone.reset()
    assert alone.np_random_seed == 5


def test_seeds_stay_until_others_are_given() -> None:
    envs = Cage2VectorEnv(N)
    envs.reset(seed=42)
    assert envs.np_random_seed == (42, 43, 44)
    envs.reset()
    assert envs.np_random_seed == (42, 43, 44)
    assert [dice.integers(9) for dice in envs.np_random] == [
        np.random.default_rng(seed).integers(9) for seed in (42, 43, 44)
    ]
    envs.restore(envs.save())
    assert envs.np_random_seed == (-1, -1, -1)


def test_the_callers_options_and_mask_are_left_as_they_were() -> None:
    envs = Cage2VectorEnv(N)
    envs.reset()
    mask = np.array([True, False, False])
    options = {"reset_mask": mask}
    envs.reset(seed=1, options=options)
    assert options["reset_mask"] is mask
    assert mask.tolist() == [True, False, False]


def test_the_first_reset_is_of_all_networks() -> None:
    envs = Cage2VectorEnv(N)
    with pytest.raises(ResetNeeded, match="reset all networks once"):
        envs.reset(options={"reset_mask": np.array([True, False, True])})
    envs.reset(options={"reset_mask": np.ones(N, bool)})
    assert envs.batch.nets["episode"].tolist() == [0] * N


def test_wrong_kinds_are_type_errors_as_in_gymnasium() -> None:
    for envs in (Cage2VectorEnv(N), sync()):
        envs.reset(seed=1)
        mask: Any
        for mask in ([True] * N, np.ones(N), np.ones(N, int)):
            with pytest.raises(TypeError, match="reset_mask"):
                envs.reset(options={"reset_mask": mask})
        for mask in (np.ones(N + 1, bool), np.ones((1, N), bool), np.zeros(N, bool)):
            with pytest.raises(ValueError, match="reset_mask"):
                envs.reset(options={"reset_mask": mask})


@pytest.mark.parametrize(
    "use",
    [
        lambda envs: envs.reset(),
        lambda envs: envs.step(np.zeros(N, int)),
        lambda envs: envs.render(),
        lambda envs: envs.call("access"),
        lambda envs: envs.set_attr("label", 1),
    ],
)
def test_a_closed_batch_says_so(use: Callable[[Any], Any]) -> None:
    envs = Cage2VectorEnv(N, num_threads=1, render_mode="ansi")
    envs.reset()
    envs.close()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        use(envs)


# --- each network as if it were an environment ----------------------------------------------------


def test_names_are_answered_as_single_environments_answer_them() -> None:
    ours, theirs = Cage2VectorEnv(N, render_mode="ansi", **SETTINGS), sync(render_mode="ansi")
    for envs in (ours, theirs):
        envs.reset(seed=2)
        for actions in actions_of(6):
            envs.step(actions)
    for name in ("access", "known", "scanned", "np_random_seed", "render_mode", "observation_space",
                 "action_space"):  # fmt: skip
        one, other = ours.get_attr(name), theirs.get_attr(name)
        assert isinstance(one, tuple)
        assert len(one) == N
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)), name
    for method in ("action_masks", "render"):
        pairs = zip(ours.call(method), theirs.call(method), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)
    for envs in (ours, theirs):
        with pytest.raises(AttributeError):
            envs.get_attr("gravity")


def test_a_network_keeps_attributes_of_ones_own() -> None:
    envs = Cage2VectorEnv(N)
    envs.set_attr("label", ["a", "b", "c"])
    assert envs.get_attr("label") == ("a", "b", "c")
    envs.set_attr("label", 4)
    assert envs.get_attr("label") == (4, 4, 4)
    with pytest.raises(ValueError, match="got 2 values of label for 3 networks"):
        envs.set_attr("label", [1, 2])
    envs.set_attr("tell", lambda word: word.upper())
    assert envs.call("tell", "x") == ("X",) * N


@pytest.mark.parametrize("name", ["horizon", "red_agent", "access", "num_envs", "render_mode"])
def test_what_the_game_has_cannot_be_set_for_some(name: str) -> None:
    envs = Cage2VectorEnv(N)
    with pytest.raises(ConfigError, match="cannot be set network by network"):
        envs.set_attr(name, ["ansi", None, 5])


def test_what_plays_all_networks_is_not_called_for_each() -> None:
    with pytest.raises(ConfigError, match="step plays all networks at once"):
        Cage2VectorEnv(N).call("step", 0)


def test_attributes_are_the_callers_to_keep() -> None:
    envs = Cage2VectorEnv(N, seed=1, **SETTINGS)
    envs.reset()
    before = envs.get_attr("access")
    copies = [row.copy() for row in before]
    for actions in actions_of(8):
        envs.step(actions)
    assert all(np.array_equal(a, b) for a, b in zip(before, copies, strict=True))
    assert any((a != b).any() for a, b in zip(before, envs.access, strict=True))


def test_pictures_are_one_text_for_each_network() -> None:
    envs = Cage2VectorEnv(N, render_mode="ansi")
    with pytest.raises(ResetNeeded):
        envs.render()
    envs.reset()
    pictures = envs.render()
    assert pictures is not None
    assert len(pictures) == N
    assert all("Op_Server0" in text for text in pictures)
    assert Cage2VectorEnv(N).render() is None
    with pytest.raises(ConfigError, match="render_mode of a batch must be 'ansi'"):
        Cage2VectorEnv(N, render_mode="rgb_array")


# --- Gymnasium's wrappers -------------------------------------------------------------------------

OBSERVATIONS: dict[str, Callable[[Any], Any]] = {
    "FlattenObservation": wrappers.FlattenObservation,
    "RescaleObservation": lambda envs: wrappers.RescaleObservation(
        envs, np.float32(-1), np.float32(1)
    ),
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.uint8),
    "ReshapeObservation": lambda envs: wrappers.ReshapeObservation(envs, (4, 13)),
    "NormalizeObservation": wrappers.NormalizeObservation,
    "TransformObservation": lambda envs: wrappers.TransformObservation(envs, lambda obs: obs * 2),
    "VectorizeTransformObservation": lambda envs: wrappers.VectorizeTransformObservation(
        envs, gymnasium.wrappers.TransformObservation, func=lambda obs: obs * 2,
        observation_space=None,
    ),
}  # fmt: skip
OTHERS: dict[str, Callable[[Any], Any]] = {
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "NormalizeReward": wrappers.NormalizeReward,
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -1.0, 0.0),
    "TransformReward": lambda envs: wrappers.TransformReward(envs, lambda rewards: rewards * 2),
    "TransformAction": lambda envs: wrappers.TransformAction(envs, lambda actions: 144 - actions),
    "VectorizeTransformReward": lambda envs: wrappers.VectorizeTransformReward(
        envs, gymnasium.wrappers.TransformReward, func=lambda reward: reward * 2
    ),
    "DictInfoToList": wrappers.DictInfoToList,
}


@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, AutoresetMode.NEXT_STEP) for name in OBSERVATIONS]
    + [(name, mode) for name in OTHERS for mode in MODES],
)
def test_gymnasiums_wrappers_do_here_what_they_do_elsewhere(name: str, mode: AutoresetMode) -> None:
    ours, theirs = ({**OBSERVATIONS, **OTHERS}[name](envs) for envs in both(mode))
    assert np.array_equal(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    for actions in actions_of(9):
        one, other = ours.step(actions), theirs.step(actions)
        assert all(np.array_equal(a, b) for a, b in zip(one[:4], other[:4], strict=True))
    assert one[3].all()
    if name == "RecordEpisodeStatistics":
        assert np.array_equal(one[4]["episode"]["r"], other[4]["episode"]["r"])
        assert one[4]["episode"]["l"].tolist() == [9] * N
    if name == "DictInfoToList":
        assert [info["episode_length"] for info in one[4]] == [9] * N


def test_statistics_of_a_wrapper_follow_a_mask() -> None:
    """Gymnasium's own vector takes the mask out of the options, and the wrapper forgets all."""
    envs = wrappers.RecordEpisodeStatistics(
        Cage2VectorEnv(N, autoreset_mode=AutoresetMode.DISABLED, **SETTINGS)
    )
    envs.reset(seed=1)
    for actions in actions_of(4):
        envs.step(actions)
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert envs.episode_lengths.tolist() == [0, 4, 4]
