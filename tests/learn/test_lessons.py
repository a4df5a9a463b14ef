"""Learning what a teacher does: the gradient is that of its decisions' log-probabilities."""

from typing import Any

import numpy as np
import pytest
import torch

from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.lessons import Lessons, teach
from phalanx.learn.torch.heads import Categorical
from phalanx.learn.torch.networks import ActorCritic
from phalanx.learn.torch.stepper import TorchStepper
from tests.learn.tasks import LOSS

ROWS, WIDTH = 600, 20
ONCE = LOSS._replace(rate=0.01, max_grad_norm=1e9)


def some_lessons() -> Lessons:
    rng = np.random.default_rng(0)
    obs = rng.random((ROWS, WIDTH), np.float32)
    masks = rng.random((ROWS, NUM_ACTIONS)) < 0.5
    actions = (obs[:, 0] * 3).astype(np.uint8)
    masks[np.arange(ROWS), actions] = True
    return Lessons(obs, masks, actions)


def new_policy() -> Policy:
    policy = Policy(WIDTH, NUM_ACTIONS, hidden=(16,), truth_size=3, seed=1)
    policy.actor[:] *= 3
    return policy


def steps_of(stepper: Any, times: int, weight: float = 2.0) -> list[float]:
    chosen = np.tile(np.arange(ROWS), (times, 1))
    return [
        teach(stepper, some_lessons(), 3, ONCE, weight, chosen[k : k + 1])["teacher_loss"]
        for k in range(times)
    ]


def test_the_gradient_of_a_lesson_is_that_of_its_log_probability() -> None:
    lessons, module = some_lessons(), ActorCritic(new_policy())
    before = {name: part.detach().clone() for name, part in module.named_parameters()}
    stepper = TorchStepper(module, Categorical(), 1, False)
    steps_of(stepper, 1, weight=2.0)
    taken = {n: p.grad.clone() for n, p in module.named_parameters() if p.grad is not None}
    module.load_state_dict(before, strict=False)
    logits, _values = module(torch.from_numpy(lessons.obs), torch.zeros(ROWS, 3))
    logits = logits.masked_fill(~torch.from_numpy(lessons.masks), -1e9)
    actions = torch.from_numpy(lessons.actions.astype(np.int64))
    loss = 2.0 * torch.nn.functional.cross_entropy(logits, actions)
    wanted = torch.autograd.grad(loss, list(module.parameters()), allow_unused=True)
    some = 0
    for (name, _part), gradient in zip(module.named_parameters(), wanted, strict=True):
        if gradient is None:  # the critic's
            assert not taken[name].any()
        else:
            assert torch.allclose(taken[name], gradient, atol=1e-6), name
            some += int(gradient.any())
    assert some >= 4


def test_both_ways_of_learning_take_the_same_steps() -> None:
    policy = new_policy()
    plain = TorchStepper(ActorCritic(policy), Categorical(), 1, False)
    compiled = CompiledStepper(policy, ThreadTeam(2), ROWS)
    critic = policy.critic.copy()
    one, other = steps_of(compiled, 5), steps_of(plain, 5)
    assert one == pytest.approx(other, rel=1e-3)
    assert one[-1] < one[0]
    assert np.array_equal(policy.critic, critic)


def test_decisions_are_learnt() -> None:
    stepper = CompiledStepper(new_policy(), ThreadTeam(1), ROWS)
    losses = steps_of(stepper, 60)
    assert losses[-1] < losses[0] / 4
