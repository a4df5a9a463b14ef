"""The plain torch version does what the compiled one does."""

import threading
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.observation import TRUTH_SIZE
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.cage2.sampler import Cage2Sampler, CompiledSampler
from phalanx.learn.cage2.torch_sampler import TorchSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import PPO
from phalanx.learn.rollout import empty_rollout
from phalanx.learn.torch.heads import Categorical
from phalanx.learn.torch.networks import ActorCritic, EnvNetwork, find_device
from phalanx.learn.torch.stepper import TorchStepper
from tests.learn.tasks import LOSS, settings

SIZE, TURNS, HORIZON = 150, 25, 20


def one_policy() -> Policy:
    policy = Policy(55, NUM_ACTIONS, hidden=(16, 16), truth_size=TRUTH_SIZE, seed=1)
    policy.theta += np.random.default_rng(2).normal(size=len(policy.theta)).astype(np.float32) / 20
    return policy


def sampler(kind: type, network: Any) -> Any:
    batch = Batch(SIZE, red_agent="b_line=0.5,meander=0.5", horizon=HORIZON, seed=4, num_threads=1)
    useful = np.random.default_rng(1).random(NUM_ACTIONS) < 0.7
    condition = np.random.default_rng(3).random((SIZE, 3)).astype(np.float32)
    options: dict[str, Any] = {"useful": useful, "condition": condition}
    if kind is TorchSampler:
        options["truth_size"] = TRUTH_SIZE
    return kind(batch, network, TURNS, **options)


SHAPING = Shaping(np.linspace(3, 1, HORIZON).astype(np.float32), 0.3, 0.1, 0.99, 0.5)


def test_both_play_the_same_games() -> None:
    policy = one_policy()
    compiled = sampler(CompiledSampler, policy).collect(SHAPING)
    plain = sampler(TorchSampler, ActorCritic(policy)).collect(SHAPING)
    # A draw at the very border of two actions may fall to either side; from there games differ.
    same = (compiled.actions == plain.actions).all(axis=0)
    assert same.mean() > 0.97
    for name in ("obs", "truth", "masks", "ended", "rewards", "discounts", "kinds"):
        one, other = getattr(compiled, name), getattr(plain, name)
        assert np.array_equal(one[:, same], other[:, same]), name
    for name in ("log_probs", "values", "next_values"):
        one, other = getattr(compiled, name), getattr(plain, name)
        assert np.allclose(one[:, same], other[:, same], atol=1e-4), name
    assert np.array_equal(compiled.next_obs[same], plain.next_obs[same])
    assert np.array_equal(compiled.obs[..., 52:], np.tile(compiled.next_obs[:, 52:], (TURNS, 1, 1)))


@pytest.mark.parametrize("threads", [1, 2])
def test_both_learn_the_same(threads: int) -> None:
    """Losses and weights after an update of 16 steps agree."""
    policy = one_policy()
    rollout = sampler(CompiledSampler, policy).collect(SHAPING)
    module = ActorCritic(policy)
    chosen = settings(minibatch_size=1000, k_epochs=4)
    steppers = (
        TorchStepper(module, Categorical(), threads),
        CompiledStepper(policy, ThreadTeam(threads), 1000),
    )
    one, other = (PPO(stepper, chosen, 3).update(rollout, 1e-3, 0.01) for stepper in steppers)
    for name, value in one.items():
        assert value == pytest.approx(other[name], abs=1e-4, rel=1e-4), name
    assert np.allclose(module.theta(), policy.theta, atol=1e-4)
    assert not np.allclose(policy.theta, one_policy().theta, atol=1e-3)


def test_the_gradients_of_a_minibatch_are_equal() -> None:
    policy = one_policy()
    rollout = sampler(CompiledSampler, policy).collect(SHAPING)
    module = ActorCritic(policy)
    # One epoch of one minibatch without clipping: Adam's mean is then a tenth of the gradient.
    chosen = settings(
        minibatch_size=SIZE * TURNS, k_epochs=1, loss=LOSS._replace(max_grad_norm=1e9)
    )
    plain = TorchStepper(module, Categorical(), 2)
    compiled = CompiledStepper(policy, ThreadTeam(1), SIZE * TURNS)
    metrics = [PPO(s, chosen, 3).update(rollout, 1e-3, 0.01) for s in (plain, compiled)]
    wanted = np.concatenate(
        [plain.adam.state[part]["exp_avg"].numpy().T.reshape(-1) for part in plain.parameters]
    )
    assert np.allclose(compiled.mean * 10, wanted * 10, atol=1e-5)
    for name in ("policy_loss", "value_loss", "entropy", "kl"):
        assert metrics[0][name] == pytest.approx(metrics[1][name], abs=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch about itself
def test_a_compiled_module_gives_the_same_numbers() -> None:
    module = ActorCritic(one_policy())
    obs, truth = torch.rand(40, 55), torch.rand(40, TRUTH_SIZE)
    with torch.no_grad():
        plain, compiled = module(obs, truth), torch.compile(module, dynamic=True)(obs, truth)
    for one, other in zip(plain, compiled, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_cuda_where_there_is_none_gets_one_line() -> None:
    if torch.cuda.is_available():
        assert find_device("auto").type == "cuda"
    else:
        with pytest.raises(ConfigError, match="no CUDA device"):
            find_device("cuda")
        assert find_device("auto").type == "cpu"


@pytest.mark.parametrize(("threads", "of_its_own"), [(1, False), (2, True)])
def test_a_stepper_of_one_thread_computes_in_that_of_its_caller(
    threads: int, of_its_own: bool
) -> None:
    places: set[str] = set()
    network = EnvNetwork(spaces.Box(-1, 1, (3,)), spaces.Discrete(2), (8,))
    network.register_forward_hook(lambda *_: places.add(threading.current_thread().name))
    rollout = empty_rollout(2, np.zeros((4, 3), np.float32), 0, 2)
    TorchStepper(network, Categorical(), threads).evaluate(rollout)
    assert (threading.current_thread().name not in places) == of_its_own


@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"num_rollouts": 2}, 2)])
def test_a_sampler_fills_one_rollout_again_and_again_unless_it_has_more(
    options: dict[str, Any], count: int
) -> None:
    batch = Batch(2, horizon=HORIZON, seed=0, num_threads=1)
    useful, condition = np.ones(NUM_ACTIONS, np.bool_), np.zeros((2, 0), np.float32)
    kept = {"truth_size": 0, "useful": useful, "condition": condition, **options}
    player = Cage2Sampler(batch, TURNS, **kept)
    filled = [player.next_rollout().obs for _ in range(4)]
    assert len({id(obs) for obs in filled}) == count
