"""A trained policy from a run folder or checkpoint, as a defender that anyone can play."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from phalanx.agents import agent_path
from phalanx.arrays import Array
from phalanx.arrays_file import Declared
from phalanx.cage2.registration import CAGE2_ENVS, ENV_ID
from phalanx.cage2.rules.masks import effective_actions
from phalanx.cage2.rules.observation import OBS_SIZES, observation_kind
from phalanx.cage2.rules.scenario import DEFAULT_RULES, NUM_ACTIONS
from phalanx.cage2.rules.sizes import are_alike, observation_size
from phalanx.cage2.rules.world import Worlds, num_hosts_of
from phalanx.cage2.scenario.names import CAGE2_NAME, short_name
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.cage2.workflow import CODES, parse_order
from phalanx.errors import CheckpointError, ConfigError
from phalanx.learn.compiled.mlp import use_one_thread_per_product
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import Stepper
from phalanx.training.cage2_extension import turn_weights, value_worth
from phalanx.training.checkpoint import LEARNT, last_checkpoint, load_checkpoint, read_facts
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import (
    by_host,
    chosen_actions,
    hosts_network,
    leaves_out_vain,
    orders_of,
    policy_sizes,
    worlds_of_run,
)
from phalanx.training.recipe import Network
from phalanx.training.saved_networks import (
    check_declared,
    check_has_weights,
    count_weights,
    load_networks,
    saved_config,
)
from phalanx.training.scenario_config import HOSTS
from phalanx.trust import check_named

if TYPE_CHECKING:
    from torch.nn import Module

    from phalanx.training.run import Run

GAME = ("observation", "horizon", "rules", "prior")  # what a policy must be shown as in training


@dataclass(eq=False)
class TrainedDefender:
    """Plays the most likely actions of a policy, or draws them.

    defender = phalanx.load_defender("champion")
    envs = Cage2VectorEnv(64, red_agent="meander", **defender.env_settings)   # as it was trained
    obs, _ = envs.reset()
    actions = defender.act(obs, masks=envs.action_masks())
    """

    logits: Callable[[Array], npt.NDArray[np.float32]]
    """what the policy makes of observations: float32 [N, D] -> [N, actions]"""
    observation: str
    horizon: int
    """of its training, which its observations are to show"""
    rules: str
    prior: str
    """whom its belief expects, if its observations show one"""
    useful: npt.NDArray[np.bool_]
    """[actions] those that it may play"""
    effective_in: Worlds | None = None
    """its networks, if it never plays what the belief it is shown says is in vain"""
    condition: Sequence[float] = ()
    """numbers that it was told with every observation"""
    workflow: str | None = None
    """the order of repair that it was trained to follow, `all`, or None"""
    compliance_rule: str | None = None
    """by which its fixes were judged"""
    is_told: bool = False
    """whether the code of an order comes after the condition"""
    policy: Policy | None = None
    """the compiled networks behind `logits`, if it has such"""
    turn_weights: npt.NDArray[np.float64] = field(default_factory=lambda: np.ones(100))
    """[turns] what a reward counted in each turn of its training's episodes"""
    value_worth: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """[turns] how many points, as turns count, its critic's value stands for; or no such critic"""
    orders: npt.NDArray[np.int64] | None = None
    """[N] that it is told to follow now"""
    dice: np.random.Generator | None = None
    """that draw its actions"""
    width: int = 1
    """networks that it draws for, whether all are played or not"""
    scenario: str = CAGE2_NAME
    """the network of its training"""
    by_host: bool | None = None
    """whether its observations have as many numbers for each host; None: as usual"""
    shown_size: int | None = None
    """numbers of its observations, if they are not CAGE-2's"""
    refit: "Callable[[Worlds], TrainedDefender] | None" = None
    """the same weights for other networks, if they are shared over hosts"""

    @property
    def env_settings(self) -> dict[str, Any]:
        """What an environment must be made with to be the one that it was trained on."""
        names = GAME if self.observation == "belief" else GAME[:-1]
        more = {"scenario": self.scenario, "by_host": self.by_host}
        given = {name: value for name, value in more.items() if value not in (None, CAGE2_NAME)}
        return {name: getattr(self, name) for name in names} | given

    def on(self, worlds: Worlds, name: str = "this policy") -> "TrainedDefender":
        """The same policy on these networks; refused in one line if its weights are for others.

        worlds: of a batch that was made with its `by_host`.
        """
        if self.refit is not None:
            return self.refit(worlds)
        mine = open_scenarios(self.scenario).worlds(self.by_host)
        if not are_alike(observation_kind(self.observation), mine, worlds):
            known, asked = (
                [int(one[0]) for one in (each["num_hosts"], each["num_actions"])]
                for each in (mine, worlds)
            )
            raise ConfigError(
                f"{name} was trained on {short_name(self.scenario)} ({known[0]} hosts, {known[1]} "
                f"actions) and cannot play a network of {asked[0]} hosts, {asked[1]} actions, or "
                "with other images: its weights belong to those hosts; a policy that was trained "
                "with --network hosts plays any network"
            )
        return self

    def sampling(self, seed: int | Sequence[int], width: int) -> "TrainedDefender":
        """The same policy, drawing its actions; for `width` networks, as `RandomDefender`."""
        return replace(self, dice=np.random.default_rng(seed), width=width)

    def following(self, orders: npt.NDArray[np.int64] | None) -> "TrainedDefender":
        """The same policy, told to follow these orders: [N], one for each network."""
        return replace(self, orders=orders)

    def told(self, size: int, orders: npt.NDArray[np.int64] | None) -> npt.NDArray[np.float32]:
        """What comes after the observations of `size` networks: float32 [N, C]."""
        # Tiled, not broadcast: all would be compiled once more for arrays that are read-only.
        told = np.tile(np.array(self.condition, np.float32), (size, 1))
        if not self.is_told:
            return told
        if orders is None and self.workflow not in (None, "all"):
            orders = np.full(size, parse_order(str(self.workflow)))
        if orders is None:
            raise ConfigError("this policy follows whichever order it is told: give --workflow")
        return np.hstack([told, CODES[orders]])

    def act(
        self,
        obs: Array,
        alerts: npt.NDArray[np.int8] | None = None,
        masks: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Actions [N] for observations [N, D]; alerts are not looked at.

        masks: bool [N, 145], False for decoys that cannot be placed; without them it may try some.
        """
        check_shown(obs, self.observation, self.shown_size)
        told = self.told(len(obs), self.orders)
        logits: Array = self.logits(np.hstack([obs, told]))
        logits = np.where(self.allowed(obs, masks), logits, -np.inf)
        if self.dice is not None:
            size = max(len(obs), self.width)
            logits = logits + self.dice.gumbel(size=(size, len(self.useful)))[: len(obs)]
        return logits.argmax(axis=1)

    def allowed(
        self, obs: Array, masks: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.bool_]:
        """bool [N, actions]: what it may play on seeing this, of what `masks` leave."""
        useful = self.useful if masks is None else masks & self.useful
        if self.effective_in is None:
            return useful
        return useful & effective_actions(self.effective_in, obs)


def check_shown(obs: npt.ArrayLike, observation: str, wanted: int | None = None) -> None:
    """Refuse observations of another kind than a policy was trained on.

    wanted: their size, if it is not that of CAGE-2.
    """
    shape, size = np.shape(obs), wanted or OBS_SIZES[observation]
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
    """As `phalanx.load_defender` (play/plan.py), for policies that do not plan."""
    use_one_thread_per_product()
    path = last_checkpoint(agent_path(path))
    facts, declared = read_facts(path)
    config = saved_config(path, facts)
    if config.env not in CAGE2_ENVS:
        raise CheckpointError(f"{path} is no policy for CAGE-2: it was trained on {config.env}")
    check_named(facts["config"], {"network": network}, path)
    if config.env != "cage2":  # as an environment like others
        shown = spaces.Box(0, 1, (OBS_SIZES[_shown_of(config)["observation"]],), np.float32)
        _, stepper = load_networks(path, config, shown, spaces.Discrete(NUM_ACTIONS), network)
        return _defender(config, _networks_of(stepper))
    sizes = policy_sizes(config)
    if config.network == HOSTS:
        return _hosts_defender(path, config, declared)
    if "theta" in declared:
        if network is not None:
            raise CheckpointError(f"{path} has the built-in network; leave out --network")
        check_declared(path, {"theta": (count_weights(**sizes),)}, declared)
        policy = Policy(**sizes, seed=0)
        policy.theta[:] = load_checkpoint(path)[0]["theta"]
        return _defender(config, policy)
    check_has_weights(path, declared, network)
    from phalanx.learn.torch.networks import build_own_network, set_weights

    obs = np.zeros((2, sizes["obs_size"]), np.float32)
    module = build_own_network(network, obs, sizes["truth_size"], sizes["num_actions"])  # type: ignore[arg-type]
    set_weights(module, load_checkpoint(path)[0])
    return _defender(config, module)


def defender_of(run: "Run") -> TrainedDefender:
    """The policy of a run in memory."""
    networks = _networks_of(run.learner.stepper)
    if run.config.network == HOSTS and not isinstance(networks, Policy):
        return _sharing(run.config, networks.state_dict(), worlds_of_run(run.config))
    return _defender(run.config, networks)


def _hosts_defender(
    path: Path, config: TrainConfig, declared: Mapping[str, Declared]
) -> TrainedDefender:
    """A policy that shares weights over hosts, on the networks of its training."""
    import torch

    from phalanx.learn.torch.networks import set_weights

    with torch.device("meta"):  # sizes are compared before memory is taken
        bare = hosts_network(config, worlds_of_run(config))
    wanted = {f"weights_{name}": tuple(one.shape) for name, one in bare.state_dict().items()}
    learnt = {name: one for name, one in declared.items() if name.startswith(LEARNT)}
    check_declared(path, wanted, learnt)
    module = hosts_network(config, worlds_of_run(config))
    set_weights(module, load_checkpoint(path)[0])
    return _sharing(config, module.state_dict(), worlds_of_run(config))


def _sharing(config: TrainConfig, weights: Mapping[str, object], worlds: Worlds) -> TrainedDefender:
    """These weights on these networks."""
    module = hosts_network(config, worlds)
    module.load_state_dict(weights)
    defender = _defender(config, module, worlds)
    return replace(defender, refit=lambda others: _sharing(config, weights, others))


# --- from networks to a defender ------------------------------------------------------------------


def _networks_of(stepper: Stepper) -> "Policy | Module":
    if isinstance(stepper, CompiledStepper):
        return stepper.policy.wide()
    from phalanx.learn.torch.stepper import TorchStepper

    assert isinstance(stepper, TorchStepper)
    return stepper.module


def _shown_of(config: TrainConfig) -> dict[str, Any]:
    """What a run on CAGE-2 was shown, and how it was played."""
    if config.env == ENV_ID:  # made without settings
        return dict(zip(GAME, ("bits", 100, DEFAULT_RULES, DEFAULT_PRIOR), strict=True))
    return {name: getattr(config, name) for name in GAME}


def _defender(
    config: TrainConfig, networks: "Policy | Module", worlds: Worlds | None = None
) -> TrainedDefender:
    """networks: a compiled `Policy`, or a torch module.

    worlds: that it plays on, if not those of its training.
    """
    known = {**_shown_of(config), "useful": np.ones(NUM_ACTIONS, np.bool_)}
    truth_size = 0
    if config.env == "cage2":  # an environment like others has no order, no condition, all actions
        worlds = worlds_of_run(config) if worlds is None else worlds
        truth_size = 3 * num_hosts_of(worlds) if config.critic_truth else 0
        known |= {
            "useful": chosen_actions(config, worlds),
            "scenario": config.scenario,
            "by_host": by_host(config),
            "shown_size": observation_size(observation_kind(config.observation), worlds),
            "condition": config.condition,
            "workflow": config.workflow,
            "compliance_rule": config.compliance_rule,
            "is_told": orders_of(config).codes.shape[1] > 0,
            "effective_in": worlds if leaves_out_vain(config) else None,
            "turn_weights": turn_weights(config).astype(np.float64),
        }
        if config.workflow is None:  # else the critic also values how an order is followed
            known["value_worth"] = value_worth(config)
    if isinstance(networks, Policy):
        return TrainedDefender(networks.logits, policy=networks, **known)
    import torch

    def logits(obs: Array) -> npt.NDArray[np.float32]:
        device = next(networks.parameters()).device
        x = torch.from_numpy(np.ascontiguousarray(obs, np.float32)).to(device)
        truth = torch.zeros(len(x), truth_size, device=device)  # it may not see any
        with torch.no_grad():
            return networks(x, truth)[0].cpu().numpy()

    return TrainedDefender(logits, **known)
