"""What networks' outputs mean, beside torch's own distributions."""

import math
from typing import Any

import pytest
import torch
from torch import distributions

from phalanx.learn.torch.heads import Categorical, Gaussian

ROWS, SIZE = 5, 3
DICE = torch.Generator().manual_seed(0)
OUTPUTS = torch.randn(ROWS, 2 * SIZE, generator=DICE)
POINTS = torch.randn(ROWS, SIZE, generator=DICE)
ALL = torch.ones(ROWS, 2 * SIZE, dtype=torch.bool)


def test_points_are_judged_as_independent_normals() -> None:
    means, logs = OUTPUTS[:, :SIZE], OUTPUTS[:, SIZE:]
    normal: Any = distributions.Independent(distributions.Normal(means, logs.exp()), 1)
    log_probs, entropies = Gaussian(SIZE).evaluate(OUTPUTS, ALL, POINTS)
    assert torch.allclose(log_probs, normal.log_prob(POINTS))
    assert torch.allclose(entropies, normal.entropy())
    assert torch.allclose(Gaussian(SIZE).best(OUTPUTS, ALL), means)


def test_a_drawn_point_is_its_mean_and_its_deviation_times_the_noise() -> None:
    noise = torch.randn(ROWS, SIZE, generator=DICE)
    points, log_probs = Gaussian(SIZE).draw(OUTPUTS, ALL, noise)
    assert torch.allclose(points, OUTPUTS[:, :SIZE] + OUTPUTS[:, SIZE:].exp() * noise)
    assert torch.allclose(log_probs, Gaussian(SIZE).evaluate(OUTPUTS, ALL, points)[0])


def test_actions_are_judged_as_those_that_are_allowed() -> None:
    masks = ALL.clone()
    masks[:, ::2] = False
    chosen = torch.tensor([1, 3, 5, 1, 3])
    allowed: Any = distributions.Categorical(logits=OUTPUTS[:, 1::2])
    log_probs, entropies = Categorical().evaluate(OUTPUTS, masks, chosen)
    assert torch.allclose(log_probs, allowed.log_prob(chosen // 2))
    assert torch.allclose(entropies, allowed.entropy())
    assert (
        Categorical().best(OUTPUTS, masks).tolist()
        == (2 * OUTPUTS[:, 1::2].argmax(dim=1) + 1).tolist()
    )


@pytest.mark.parametrize(
    ("noise", "action"), [(0.0, 1), (0.24, 1), (0.26, 2), (0.74, 2), (0.76, 4), (1.0, 4)]
)
def test_an_action_is_drawn_by_its_share_of_what_is_allowed(noise: float, action: int) -> None:
    outputs = torch.tensor([[9.0, 0.0, math.log(2), 9.0, 0.0]])
    masks = torch.tensor([[False, True, True, False, True]])
    actions, log_probs = Categorical().draw(outputs, masks, torch.tensor([noise]))
    assert actions.tolist() == [action]
    share = 0.5 if action == 2 else 0.25
    assert torch.allclose(log_probs, torch.tensor([share]).log())
