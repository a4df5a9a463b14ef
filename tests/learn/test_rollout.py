"""Columns of rollouts."""

import numpy as np

from phalanx.learn.rollout import PER_COLUMN, Rollout, columns_of, empty_rollout, side_by_side

T, N = 3, 4


def numbered(first: int = 0) -> Rollout:
    """Every column has its own number everywhere."""
    rollout = empty_rollout(T, np.zeros((N, 2), np.float32), 5, 6)
    for name, array in rollout._asdict().items():
        if array.dtype.names is None:
            number = np.arange(first, first + N)
            at = number if name in PER_COLUMN else np.broadcast_to(number, (T, N))
            array[...] = at.reshape(at.shape + (1,) * (array.ndim - at.ndim))
    return rollout


def numbers(rollout: Rollout) -> list[int]:
    """Of the columns, which must be the same in every array."""
    assert rollout.rewards.shape == (T, len(rollout.versions))
    assert np.array_equal(rollout.next_obs[:, 0], rollout.versions)
    assert np.array_equal(rollout.obs[T - 1, :, 1], rollout.versions)
    assert np.array_equal(rollout.rewards[0], rollout.versions)
    return rollout.versions.tolist()


def test_an_empty_rollout_holds_no_numbers_that_could_be_taken_for_real_ones() -> None:
    rollout = empty_rollout(T, np.ones((N, 2), np.float32), 5, 6)
    for name in ("truth", "log_probs", "values", "next_values", "rewards", "discounts", "returns"):
        assert np.isnan(getattr(rollout, name)).all()
    assert rollout.masks.all()
    assert rollout.masks.shape == (T, N, 6)
    assert rollout.truth.shape == (T, N, 5)
    assert not rollout.ended.any()
    assert not rollout.counted.any()
    assert (rollout.next_obs == 1).all()


def test_some_columns_are_views_of_a_slice_and_copies_of_numbers() -> None:
    rollout = numbered()
    assert numbers(columns_of(rollout, slice(1, 3))) == [1, 2]
    assert columns_of(rollout, slice(1, 3)).rewards.base is not None
    chosen = columns_of(rollout, np.array([3, 0]))
    rollout.rewards[:] = -1
    assert numbers(chosen) == [3, 0]


def test_columns_of_several_rollouts_stand_side_by_side() -> None:
    one = numbered()
    assert side_by_side([one]) is one
    assert numbers(side_by_side([one, numbered(10)])) == [0, 1, 2, 3, 10, 11, 12, 13]
