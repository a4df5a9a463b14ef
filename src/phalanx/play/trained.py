"""A trained policy from a run folder or checkpoint, as a defender that anyone can play."""

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from phalanx.agents import agent_path
from phalanx.cage2.registration import CAGE2_ENVS, ENV_ID
from phalanx.cage2.rules.observation import OBS_SIZES
from phalanx.cage2.rules.scenario import DEFAULT_RULES, NUM_ACTIONS
from phalanx.cage2.workflow import CODES, parse_order
from phalanx.errors import CheckpointError, ConfigError
from phalanx.learn.compiled.mlp import use_one_thread_per_product
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.training.checkpoint import last_checkpoint, load_checkpoint, read_facts
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import chosen_actions, orders_of, policy_sizes
from phalanx.training.recipe import Network
from phalanx.training.saved_networks import (
    check_declared,
    check_has_weights,
    count_weights,
    load_networks,
    saved_config,
)
from phalanx.trust import check_named


class TrainedDefender:
    """Plays the most likely actions of a policy, or draws them.

    defender = phalanx.load_defender("champion")
    envs = Cage2VectorEnv(64, red_agent="meander", **defender.env_settings)   # as it was trained
    obs, _ = envs.reset()
    actions = defender.act(obs, masks=envs.action_masks())

    logits: what the policy makes of observations: float32 [N, D] -> [N, 145].
    observation, horizon, rules: of its training; the horizon is what its observations are to show.
    condition: numbers that it was told with every observation.
    workflow: the order of repair that it was trained to follow, `all`, or None.
    compliance_rule: by which its fixes were judged.
    is_told: whether the code of an order comes after the condition.
    policy: the compiled networks behind `logits`, if it has such.
    """

    def __init__(
        self,
        logits: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
        *,
        observation: str,
        useful: npt.NDArray[np.bool_],
        horizon: int,
        rules: str,
        condition: Sequence[float] = (),
        workflow: str | None = None,
        compliance_rule: str | None = None,
        is_told: bool = False,
        policy: Policy | None = None,
    ) -> None:
        self.logits, self.observation, self.useful = logits, observation, useful
        self.horizon, self.rules = horizon, rules
        self.condition = np.array(condition, np.float32)
        self.workflow, self.is_told, self.policy = workflow, is_told, policy
        self.compliance_rule = compliance_rule
        self._orders: npt.NDArray[np.int64] | None = None
        self._random: np.random.Generator | None = None
        self._width = 1

    @property
    def env_settings(self) -> dict[str, Any]:
        """What an environment must be made with to be the one that it was trained on."""
        return {"observation": self.observation, "horizon": self.horizon, "rules": self.rules}

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
        self,
        obs: npt.NDArray[Any],
        alerts: npt.NDArray[np.int8] | None = None,
        masks: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Actions [N] for observations [N, D]; alerts are not looked at.

        masks: bool [N, 145], False for decoys that cannot be placed; without them it may try some.
        """
        check_shown(obs, self.observation)
        told = self.told(len(obs), self._orders)
        logits: npt.NDArray[Any] = self.logits(np.hstack([obs, told]))
        logits = np.where(self.useful if masks is None else masks & self.useful, logits, -np.inf)
        if self._random is not None:
            size = max(len(obs), self._width)
            logits = logits + self._random.gumbel(size=(size, NUM_ACTIONS))[: len(obs)]
        return logits.argmax(axis=1)


def check_shown(obs: Any, observation: str) -> None:
    """Refuse observations of another kind than a policy was trained on."""
    shape, size = np.shape(obs), OBS_SIZES[observation]
    if len(shape) == 2 and shape[1] == size:
        return
    if len(shape) != 2:
        raise ConfigError(f"observations must be [networks, {size}], got an array of shape {shape}")
    kinds = {other: kind for kind, other in OBS_SIZES.items()}
    got = f"{shape[1]} = {kinds[shape[1]]}" if shape[1] in kinds else f"{shape[1]}"
    raise ConfigError(
        f"this policy sees {observation} ({size} numbers), got {got}; make the environment with "
        f"observation={observation!r}"
    )


def load_defender(path: Path | str, network: Network | None = None) -> TrainedDefender:
    """The policy of a run folder's last checkpoint, of a file, or one that comes with phalanx.

    CyborgAgent(load_defender("champion"))  # for the challenge's own evaluation script

    network: the factory of a torch module, if the run trained one of the user's own. Checkpoints
        hold numbers only; code never comes out of a file.
    """
    use_one_thread_per_product()
    path = last_checkpoint(agent_path(path))
    facts, declared = read_facts(path)
    config = saved_config(path, facts)
    if config.env not in CAGE2_ENVS:
        raise CheckpointError(f"{path} is no policy for CAGE-2: it was trained on {config.env}")
    check_named(facts["config"], {"network": network}, path)
    if config.env != "cage2":
        spaces = bare_spaces(OBS_SIZES[game_of(config)["observation"]])
        _, stepper = load_networks(path, config, *spaces, network)
        return _defender_of(config, stepper, 0)
    sizes = policy_sizes(config)
    if "theta" in declared:
        if network is not None:
            raise CheckpointError(f"{path} has the built-in network; leave out --network")
        check_declared(path, {"theta": (count_weights(**sizes),)}, declared)
        policy = Policy(**sizes, seed=0)
        policy.theta[:] = load_checkpoint(path)[0]["theta"]
        return _defender(config, policy.logits, policy)
    check_has_weights(path, declared, network)
    from phalanx.learn.torch.networks import build_own_network, set_weights

    obs = np.zeros((2, sizes["obs_size"]), np.float32)
    module = build_own_network(network, obs, sizes["truth_size"], NUM_ACTIONS)  # type: ignore[arg-type]
    set_weights(module, load_checkpoint(path)[0])
    return _defender(config, module_logits(module, sizes["truth_size"]))


def bare_spaces(obs_size: int) -> tuple[spaces.Box, spaces.Discrete]:
    """Those of CAGE-2 as an environment."""
    return spaces.Box(0, 1, (obs_size,), np.float32), spaces.Discrete(NUM_ACTIONS)


# --- from networks to a defender ------------------------------------------------------------------


def game_of(config: TrainConfig) -> dict[str, Any]:
    """What a run on CAGE-2 was shown, and how it was played."""
    if config.env == ENV_ID:  # made without settings
        return {"observation": "bits", "horizon": 100, "rules": DEFAULT_RULES}
    return {name: getattr(config, name) for name in ("observation", "horizon", "rules")}


def _defender(config: TrainConfig, logits: Any, policy: Policy | None = None) -> TrainedDefender:
    if config.env != "cage2":  # an environment like others: no order, no condition, all actions
        every = np.ones(NUM_ACTIONS, np.bool_)
        return TrainedDefender(logits, useful=every, policy=policy, **game_of(config))
    return TrainedDefender(
        logits, useful=chosen_actions(config.actions), condition=config.condition,
        workflow=config.workflow, compliance_rule=config.compliance_rule,
        is_told=orders_of(config).codes.shape[1] > 0, policy=policy,
        **game_of(config),
    )  # fmt: skip


def _defender_of(config: TrainConfig, stepper: Any, truth_size: int) -> TrainedDefender:
    if isinstance(stepper, CompiledStepper):
        return _defender(config, stepper.policy.logits, stepper.policy)
    return _defender(config, module_logits(stepper.module, truth_size))


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
    truth_size = policy_sizes(run.config)["truth_size"] if run.config.env == "cage2" else 0
    return _defender_of(run.config, run.learner.stepper, truth_size)
