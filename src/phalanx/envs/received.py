"""What `recv` gives: the rows of the environments that are ready."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.envs.block import Info
from phalanx.envs.layout import Layout, Objects, Rows
from phalanx.envs.serial import Serial
from phalanx.envs.shared_memory import INFO, LOST, TERMINATED, TRUNCATED, Board, Ints
from phalanx.envs.workers import Workers

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Received(NamedTuple):
    """Some rows, one for each environment that is ready: copies, for the caller to keep."""

    env_ids: Ints
    """int64 [k]; 0, 1, ... when all are waited for"""
    obs: Rows
    """what to act on next, in the structure of the space; k rows. At the end of an episode this is
    already the first observation of the next one, unless the pool has another autoreset mode"""
    rewards: Floats
    """float64 [k]; 0 after a reset"""
    terminated: Bools
    truncated: Bools
    final_obs: Rows
    """what the action led to: `obs`, but for rows whose episode ended their last observation"""
    episode_returns: Floats
    """float64 [k]; of the episode that ended here, NaN in other rows"""
    episode_lengths: Ints
    """int64 [k]; of the episode that ended here, -1 in other rows"""
    lost: Bools
    """bool [k]; the environment failed and begins again: its episode is truncated and not to be
    counted; the action was not played, and `final_obs` is no successor of anything"""
    versions: Ints
    """int64 [k]; the version that was sent with the action"""
    action_masks: Bools | None
    """bool [k, actions], if the environment gives info["action_mask"]: what may be done next"""
    infos: list[Info] | None
    """one dict for each row, without the mask; None if there is nothing in any. At the end of an
    episode it is the info of the reset, with that of the last step under "final_info" """


Quiet = tuple[Bools, Bools, Bools, Floats, Ints]


def quiet(board: Board, count: int) -> Quiet:
    """The columns from `terminated` to `lost` if no episode ends; made while workers step."""
    return (
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        board.no_returns[:count].copy(),
        board.no_lengths[:count].copy(),
    )


def gather(
    board: Board, runner: Serial | Workers, ids: Ints, versions: Ints, prepared: Quiet
) -> Received:
    """Copies of the rows `ids`. versions: of all environments."""
    layout = board.observations
    if isinstance(layout, Objects):
        runner.read_messages(ids)
    if ids is board.everybody:
        obs = final_obs = layout.take(board.obs, slice(None))
        rewards, flags, versions = board.rewards.copy(), board.flags, versions.copy()
    else:
        obs = final_obs = layout.take(board.obs, ids)
        rewards, flags, versions = board.rewards[ids], board.flags[ids], versions[ids]
    terminated, truncated, lost, returns, lengths = prepared
    infos: list[Info] | None = None
    if flags.tobytes() != bytes(len(flags)):
        terminated, truncated = flags & TERMINATED != 0, flags & TRUNCATED != 0
        lost = flags & LOST != 0
        ended = terminated | truncated
        if lost.any():
            runner.read_messages(ids[lost])
        if ended.any():
            over = ids[ended]
            returns[ended] = board.episode_returns[over]
            lengths[ended] = board.episode_lengths[over]
            whole = ended & ~lost
            if isinstance(layout, Layout):
                final_obs = layout.replace(obs, whole, board.final_obs, ids[whole])
            else:
                last = zip(ids.tolist(), whole.tolist(), strict=True)
                final_obs = layout.batch(
                    [(board.final_obs if w else board.obs)[i] for i, w in last]
                )
        if (flags & INFO).any():
            told = (flags & INFO != 0).tolist()
            infos = [
                runner.info(i) if has else {} for i, has in zip(ids.tolist(), told, strict=True)
            ]
    masks = board.masks[ids] if board.num_masked else None
    return Received(
        ids,
        obs,
        rewards,
        terminated,
        truncated,
        final_obs,
        returns,
        lengths,
        lost,
        versions,
        masks,
        infos,
    )
