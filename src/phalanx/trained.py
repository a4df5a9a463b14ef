"""A trained policy from a run folder or checkpoint, as a defender that anyone can play."""

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.agents import agent_path
from phalanx.cage2.scenario import NUM_ACTIONS
from phalanx.cage2.workflow import CODES, parse_order
from phalanx.checkpoint import last_checkpoint, load_checkpoint
from phalanx.config import TrainConfig
from phalanx.errors import CheckpointError, ConfigError
from phalanx.learn.blas import use_one_thread_per_product
from phalanx.learn.compiled import CompiledStepper
from phalanx.learn.policy import Policy
from phalanx.recipe import Network, chosen_actions, make_policy, orders_of


class TrainedDefender:
    """Plays the most likely actions of a policy, or draws them.

    logits: what the policy makes of observations: float32 [N, D] -> [N, 145].
    horizon: that of its training, which its history observations are to show.
    condition: numbers that it was told with every observation.
    workflow: the order of repair that it was trained to follow, `all`, or None.
    is_told: whether the code of an order comes after the condition.
    policy: the compiled networks behind `logits`, if it has such.
    """

    def __init__(
        self,
        logits: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
        observation: str,
        useful: npt.NDArray[np.bool_],
        horizon: int,
        condition: Sequence[float] = (),
        workflow: str | None = None,
        is_told: bool = False,
        policy: Policy | None = None,
    ) -> None:
        self.logits, self.observation, self.useful = logits, observation, useful
        self.horizon, self.condition = horizon, np.array(condition, np.float32)
        self.workflow, self.is_told, self.policy = workflow, is_told, policy
        self._orders: npt.NDArray[np.int64] | None = None
        self._random: np.random.Generator | None = None
        self._width = 1

    def sampling(self, seed: int | Sequence[int], width: int) -> "TrainedDefender":
        """The same policy, drawing its actions; for `width` networks, as `RandomDefender`."""
        other = copy(self)
        other._random, other._width = np.random.default_rng(seed), width
        return other

    def following(self, orders: npt.NDArray[np.int64] | None) -> "TrainedDefender":
        """The same policy, told to follow these orders: [N], one for each network."""
        other = copy(self)
        other._orders = orders
        return other

    def told(self, size: int, orders: npt.NDArray[np.int64] | None) -> npt.NDArray[np.float32]:
        """What comes after the observations of `size` networks: float32 [N, C]."""
        told = np.broadcast_to(self.condition, (size, len(self.condition)))
        if not self.is_told:
            return told
        if orders is None and self.workflow not in (None, "all"):
            orders = np.full(size, parse_order(str(self.workflow)))
        if orders is None:
            raise ConfigError("this policy follows whichever order it is told: give --workflow")
        return np.hstack([told, CODES[orders]])

    def act(
        self, obs: npt.NDArray[Any], alerts: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        told = self.told(len(obs), self._orders)
        logits: npt.NDArray[Any] = self.logits(np.hstack([obs, told]))
        logits = np.where(masks & self.useful, logits, -np.inf)
        if self._random is not None:
            size = max(len(obs), self._width)
            logits = logits + self._random.gumbel(size=(size, NUM_ACTIONS))[: len(obs)]
        return logits.argmax(axis=1)


def load_defender(path: Path | str, network: Network | None = None) -> TrainedDefender:
    """The policy of a run folder's last checkpoint, of a file, or one that comes with phalanx.

    CyborgAgent(load_defender("champion"))  # for the challenge's own evaluation script

    network: the factory of a torch module, if the run trained one of the user's own. Checkpoints
        hold numbers only; code never comes out of a file.
    """
    use_one_thread_per_product()
    path = agent_path(path)
    arrays, facts = load_checkpoint(last_checkpoint(path))
    try:
        saved = facts["config"]
        _needed = [saved[name] for name in ("observation", "hidden", "actions", "critic_truth")]
        config = TrainConfig(**_settings(saved))
        policy = make_policy(config)
        if "theta" in arrays:
            if network is not None:
                raise CheckpointError(f"{path} has the built-in network; leave out --network")
            if arrays["theta"].shape != policy.theta.shape or arrays["theta"].dtype != np.float32:
                raise CheckpointError(f"{path}: the weights do not fit the settings beside them")
            policy.theta[:] = arrays["theta"]
            return _defender(config, policy.logits, policy)
        if network is None and any(name.startswith("weights_") for name in arrays):
            raise CheckpointError(
                f"{path} holds a network of your own; say which: --network module:factory"
            )
    except (KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(
            f"{path} is no policy for CAGE-2, or of another version of phalanx ({error})"
        ) from None
    if network is None:
        raise CheckpointError(f"{path} is no checkpoint of a training run (it has no weights)")
    from phalanx.learn.own_network import build_own_network
    from phalanx.learn.plain import set_weights

    obs = np.zeros((2, policy.obs_size), np.float32)
    module = build_own_network(network, obs, policy.truth_size, NUM_ACTIONS)
    set_weights(module, arrays)
    return _defender(config, module_logits(module, policy.truth_size))


def _settings(saved: dict[str, Any]) -> dict[str, Any]:
    """The settings of a checkpoint, with tuples where JSON has lists."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in saved.items()}


def _defender(config: TrainConfig, logits: Any, policy: Policy | None = None) -> TrainedDefender:
    return TrainedDefender(
        logits, config.observation, chosen_actions(config.actions), config.horizon,
        config.condition, config.workflow, orders_of(config).codes.shape[1] > 0, policy,
    )  # fmt: skip


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
    stepper = run.learner.stepper
    if isinstance(stepper, CompiledStepper):
        return _defender(run.config, stepper.policy.logits, stepper.policy)
    logits = module_logits(stepper.module, run.sampler.rollout.truth.shape[2])
    return _defender(run.config, logits)
