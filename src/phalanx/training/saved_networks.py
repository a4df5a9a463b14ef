"""From a checkpoint to networks: sizes are compared with the settings before any is built."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from gymnasium import spaces

from phalanx.arrays import Array
from phalanx.arrays_file import Declared
from phalanx.cage2.scenario.packed import scenario_of
from phalanx.envs.layout import AnySpace
from phalanx.errors import CheckpointError
from phalanx.files import Facts
from phalanx.learn.compiled.actor import count_outputs
from phalanx.learn.compiled.mlp import weight_count
from phalanx.learn.normalise import SEEN
from phalanx.learn.ppo import Stepper
from phalanx.learn.rollout import Actor
from phalanx.training.checkpoint import LEARNT, load_checkpoint, read_facts
from phalanx.training.config import TrainConfig
from phalanx.training.on_pool import can_be_compiled, open_networks, sees_normalised
from phalanx.training.recipe import Network, import_torch, plain_is_asked

NOT_SAVED_ONCE = {"normalize_observation": False, "normalize_reward": False}
Shaped = Mapping[str, Declared | Array]
MINIBATCH = 256  # rows that a learner makes room for
SIZED = (
    "env",
    "scenario",
    "observation",
    "hidden",
    "condition",
    "workflow",
    "critic_truth",
    "network",
    "normalize_observation",
)


def saved_config(path: Path, facts: Facts) -> TrainConfig:
    """The settings that a checkpoint was trained with."""
    try:
        saved = facts["config"]
        _needed = [saved[name] for name in ("observation", "hidden", "actions", "critic_truth")]
        return TrainConfig(**NOT_SAVED_ONCE | saved | {"scenario": scenario_of(facts)})
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path} is no policy of a training run, or of another version of phalanx ({error})"
        ) from None


def load_networks(
    path: Path,
    config: TrainConfig,
    obs_space: AnySpace,
    action_space: AnySpace,
    network: Network | None,
) -> tuple[Actor, Stepper]:
    """The actor and stepper of a run in worker processes, with what it has learnt."""
    _, declared = read_facts(path)
    config = replace(config, num_threads=1, minibatch_size=MINIBATCH)  # nothing is learnt here
    is_point = not isinstance(action_space, spaces.Discrete)
    if is_point and "theta" not in declared:  # continuous actions were once learnt by torch only
        config = replace(config, learner="torch")
    compiled = can_be_compiled(obs_space, action_space) and not plain_is_asked(config, network)
    width, wanted = int(np.prod(obs_space.shape or ())), dict[str, tuple[int, ...]]()
    if compiled:
        check_has_weights(path, declared, network, built_in="theta" in declared)
        outputs = count_outputs(action_space)
        size = count_weights(width, outputs, config.hidden, 0)
        wanted["theta"] = (size + outputs if is_point else size,)  # a deviation for each
    elif network is None:
        check_has_weights(path, declared, network, built_in=True)
        wanted = shapes_of_module(config, obs_space, action_space)
    if sees_normalised(config, obs_space):  # then statistics must be beside the weights
        shape = (width,) if compiled else obs_space.shape or ()
        wanted |= {f"{SEEN}_count": (), f"{SEEN}_mean": shape, f"{SEEN}_var": shape}
    # What users' own networks have is theirs.
    known = LEARNT if compiled or network is None else SEEN
    check_declared(path, wanted, {k: v for k, v in declared.items() if k.startswith(known)})
    actor, stepper, _device = open_networks(config, obs_space, action_space, network)
    stepper.load_weights(load_checkpoint(path)[0])
    actor.set_weights(stepper.weights())
    return actor, stepper


def check_has_weights(
    path: Path, declared: Mapping[str, Declared], network: Network | None, built_in: bool = False
) -> None:
    if not any(name.startswith(LEARNT) for name in declared):
        raise CheckpointError(f"{path} is no checkpoint of a training run (it has no weights)")
    if network is None and not built_in:
        raise CheckpointError(
            f"{path} holds a network of your own; say which: --network module:factory"
        )


def check_declared(
    path: Path, wanted: Mapping[str, tuple[int, ...]], declared: Mapping[str, Declared]
) -> None:
    """Compare weights with the settings beside them, before any network is built."""
    needed = {
        name: Declared(shape, np.dtype(np.float64 if name.startswith(SEEN) else np.float32))
        for name, shape in wanted.items()
    }
    for name in misfits(declared, needed):
        raise CheckpointError(
            f"{path}: the weights do not fit the settings beside them, or the environment: {name} "
            f"is {declared.get(name, 'missing')}, needed is {needed.get(name, 'no such')}; a "
            "network of your own is named by --network module:factory"
        )


def misfits(there: Shaped, needed: Shaped) -> list[str]:
    """Weights that only one side has, and arrays of both that differ in shape or kind."""
    both = there.keys() & needed.keys()
    missing = [name for name in there.keys() ^ needed.keys() if name.startswith(LEARNT)]
    shapes, shapes_needed = (
        {name: (arrays[name].shape, arrays[name].dtype) for name in both}
        for arrays in (there, needed)
    )
    return sorted(missing + [name for name in both if shapes[name] != shapes_needed[name]])


def as_flags(theirs: Facts, config: TrainConfig) -> str:
    """The settings that decide the sizes of networks, where another run had others."""
    mine, flags = config.as_dict(), ""
    for name in SIZED:
        if name in theirs and theirs[name] != mine[name]:
            given = theirs[name] if isinstance(theirs[name], list) else [theirs[name]]
            flags += f" --{name.replace('_', '-')} {','.join(map(str, given))}"
    return flags and f":{flags}"


def count_weights(obs_size: int, num_actions: int, hidden: tuple[int, ...], truth_size: int) -> int:
    """How many numbers the networks of a `Policy` have."""
    actor, critic = (obs_size, *hidden, num_actions), (obs_size + truth_size, *hidden, 1)
    return weight_count(actor) + weight_count(critic)


def shapes_of_module(
    config: TrainConfig, obs_space: AnySpace, action_space: AnySpace
) -> dict[str, tuple[int, ...]]:
    """The weights of the built-in torch network, which takes no memory to find out."""
    import_torch(config)
    import torch

    from phalanx.learn.torch.networks import EnvNetwork

    with torch.device("meta"):
        module = EnvNetwork(obs_space, action_space, config.hidden)
    return {f"weights_{name}": tuple(one.shape) for name, one in module.state_dict().items()}
