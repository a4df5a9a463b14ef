"""What a trained policy thinks in a turn: its likely actions, and what its critic expects."""

import numpy as np
import numpy.typing as npt

from phalanx.learn.compiled.mlp import forward, work_size
from phalanx.play.trained import TrainedDefender

TOLD = 5  # likely actions
LEAST = 0.0005  # a probability that is worth telling
Floats = npt.NDArray[np.float64]


class PolicyView:
    """Asks a policy what it thinks of one network.

    view = PolicyView(phalanx.load_defender("champion"), horizon=100)
    chances = view.probabilities(obs, mask)      # [145]
    view.value(obs, net)                         # points to come

    order: the number of the order of repair that the policy is told, if it follows one.
    """

    def __init__(self, policy: TrainedDefender, horizon: int, order: int | None = None) -> None:
        self.policy, self.horizon = policy, horizon
        orders = None if order is None else np.array([order])
        self._told = policy.told(1, orders)[0]

    def probabilities(self, obs: npt.NDArray[np.generic], mask: npt.NDArray[np.bool_]) -> Floats:
        """[145] of each action; 0 for what the policy may not play."""
        logits = self.policy.logits(np.hstack([obs, self._told])[None])[0].astype(np.float64)
        logits = np.where(self.policy.allowed(obs[None], mask[None])[0], logits, -np.inf)
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    def value(self, obs: npt.NDArray[np.generic], net: np.void) -> float | None:
        """What the critic expects of the turns to come, in points; None if there is no critic.

        Where training counted the rewards of some turns more than of others, so does its critic:
        then this is what it expects if losses are spread evenly over the turns to come.
        """
        policy, worth, turn = self.policy.policy, self.policy.value_worth, int(net["turn"])
        counted = float(self.policy.turn_weights[turn:].sum())
        if policy is None or turn >= len(worth) or not counted:
            return None
        truth = truth_of(net)[: policy.truth_size]
        seen = np.hstack([obs, self._told, truth])[None].astype(np.float32)
        work = np.empty(work_size(policy.critic_sizes, 1), np.float32)
        value = float(forward(policy.networks.critic, np.ascontiguousarray(seen), work)[0, 0])
        return float(value * worth[turn] * (self.horizon - turn) / counted)


def truth_of(net: np.void) -> npt.NDArray[np.float32]:
    """What a critic may be shown of the truth, as `write_truth` writes it."""
    known, scanned, session, root = (
        int(net[name]) >> np.arange(len(net["decoys"])) & 1
        for name in ("known", "scanned", "sessions", "root")
    )
    return np.hstack([known, scanned, (session + root) / 2]).astype(np.float32)


def likeliest(chances: Floats, played: int) -> list[tuple[int, float]]:
    """The most likely actions with their probabilities; the one that was played is among them."""
    ranked = [int(a) for a in np.argsort(-chances, kind="stable")[:TOLD] if chances[a] >= LEAST]
    if played not in ranked:
        ranked = [*ranked[: TOLD - 1], played]
    return [(action, float(chances[action])) for action in ranked]
