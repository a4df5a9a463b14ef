"""A trained policy from a run folder or checkpoint, as a defender that anyone can play."""

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.observation import HISTORY_SIZE, NUM_BITS
from phalanx.cage2.scenario import NUM_ACTIONS
from phalanx.checkpoint import last_checkpoint, load_checkpoint
from phalanx.errors import CheckpointError
from phalanx.learn.collect import TRUTH_SIZE
from phalanx.learn.compiled import CompiledStepper
from phalanx.learn.policy import Policy
from phalanx.recipe import Network, chosen_actions


class TrainedDefender:
    """Plays the most likely actions of a policy, or draws them.

    logits: what the policy makes of observations: float32 [N, D] -> [N, 145].
    horizon: that of its training, which its history observations are to show.
    condition: numbers that it was told with every observation.
    """

    def __init__(
        self,
        logits: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
        observation: str,
        useful: npt.NDArray[np.bool_],
        horizon: int,
        condition: Sequence[float] = (),
    ) -> None:
        self.logits, self.observation, self.useful = logits, observation, useful
        self.horizon, self.condition = horizon, np.array(condition, np.float32)
        self._random: np.random.Generator | None = None
        self._width = 1

    def sampling(self, seed: int | Sequence[int], width: int) -> "TrainedDefender":
        """The same policy, drawing its actions; for `width` networks, as `RandomDefender`."""
        other = copy(self)
        other._random, other._width = np.random.default_rng(seed), width
        return other

    def act(
        self, obs: npt.NDArray[Any], alerts: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        told = np.broadcast_to(self.condition, (len(obs), len(self.condition)))
        logits: npt.NDArray[Any] = self.logits(np.hstack([obs, told]))
        logits = np.where(masks & self.useful, logits, -np.inf)
        if self._random is not None:
            size = max(len(obs), self._width)
            logits = logits + self._random.gumbel(size=(size, NUM_ACTIONS))[: len(obs)]
        return logits.argmax(axis=1)


def load_defender(path: Path, network: Network | None = None) -> TrainedDefender:
    """The policy of a run folder's last checkpoint, or of a checkpoint file.

    network: the factory of a torch module, if the run trained one of the user's own. Checkpoints
        hold numbers only; code never comes out of a file.
    """
    arrays, facts = load_checkpoint(last_checkpoint(path))
    try:
        config = facts["config"]
        observation, condition = str(config["observation"]), config.get("condition", [])
        policy = Policy(
            {"bits": NUM_BITS, "history": HISTORY_SIZE}[observation] + len(condition),
            NUM_ACTIONS,
            hidden=tuple(config["hidden"]),
            truth_size=TRUTH_SIZE if config["critic_truth"] else 0,
            seed=0,
        )
        useful, horizon = chosen_actions(config["actions"]), int(config["horizon"])
        if "theta" in arrays:
            if arrays["theta"].shape != policy.theta.shape or arrays["theta"].dtype != np.float32:
                raise CheckpointError(f"{path}: the weights do not fit the settings beside them")
            policy.theta[:] = arrays["theta"]
            return TrainedDefender(policy.logits, observation, useful, horizon, condition)
        if network is None and any(name.startswith("weights_") for name in arrays):
            raise CheckpointError(
                f"{path} holds a network of your own; say which: --network module:factory"
            )
        module = network(policy.obs_size, policy.truth_size, NUM_ACTIONS) if network else None
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is no checkpoint of a training run ({error})") from None
    if module is None:
        raise CheckpointError(f"{path} is no checkpoint of a training run (it has no weights)")
    from phalanx.learn.plain import set_weights

    set_weights(module, arrays)
    logits = module_logits(module, policy.truth_size)
    return TrainedDefender(logits, observation, useful, horizon, condition)


def module_logits(module: Any, truth_size: int) -> Callable[[npt.NDArray[Any]], Any]:
    """A torch module as a function of observations; the truth that it may not see is 0."""
    import torch

    def logits(obs: npt.NDArray[Any]) -> Any:
        device = next(module.parameters()).device
        x = torch.from_numpy(np.ascontiguousarray(obs, np.float32)).to(device)
        with torch.no_grad():
            return module(x, torch.zeros(len(x), truth_size, device=device))[0].cpu().numpy()

    return logits


def defender_of(run: Any) -> TrainedDefender:
    """The policy of a run in memory."""
    config, learner = run.config, run.learner
    if isinstance(learner.stepper, CompiledStepper):
        logits: Any = learner.stepper.policy.logits
    else:
        logits = module_logits(learner.stepper.module, run.sampler.rollout.truth.shape[2])
    useful = chosen_actions(config.actions)
    return TrainedDefender(logits, config.observation, useful, config.horizon, config.condition)
