"""The built-in networks of torch: checkpoints of them fit as long as their shapes stay."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from phalanx.learn.torch.networks import EnvNetwork

HIDDEN = (32, 16, 8)


def shapes_of(module: torch.nn.Module) -> list[tuple[int, ...]]:
    return [
        tuple(weights.shape) for name, weights in module.named_parameters() if "bias" not in name
    ]


@pytest.mark.parametrize("shape", [(64, 48, 3), (3, 64, 48)])
def test_images_are_seen_by_three_convolutions_and_one_layer(shape: tuple[int, ...]) -> None:
    network = EnvNetwork(spaces.Box(0, 255, shape, np.uint8), spaces.Discrete(5), HIDDEN)
    assert shapes_of(network.eyes) == [(16, 3, 8, 8), (32, 16, 4, 4), (32, 32, 3, 3)]
    assert shapes_of(network.actor) == [(8, 4 * 3 * 32), (5, 8)]
    assert shapes_of(network.critic) == [(8, 4 * 3 * 32), (1, 8)]
    logits, values = network(torch.zeros(2, *shape), torch.zeros(2, 0))
    assert (logits.shape, values.shape) == ((2, 5), (2,))


def test_both_orders_of_an_images_axes_look_the_same() -> None:
    last = spaces.Box(0, 255, (64, 48, 3), np.uint8)
    first = spaces.Box(0, 255, (3, 64, 48), np.uint8)
    one, other = (EnvNetwork(space, spaces.Discrete(5), HIDDEN) for space in (last, first))
    other.load_state_dict(one.state_dict())
    images = torch.randint(0, 255, (2, 64, 48, 3), generator=torch.Generator().manual_seed(0))
    seen = one(images, torch.zeros(2, 0))
    turned = other(images.permute(0, 3, 1, 2), torch.zeros(2, 0))
    assert torch.equal(seen[0], turned[0])
    assert torch.equal(seen[1], turned[1])


def test_vectors_go_through_all_hidden_layers() -> None:
    network = EnvNetwork(spaces.Box(-1, 1, (7,)), spaces.Box(-1, 1, (2,)), HIDDEN)
    assert shapes_of(network.actor) == [(32, 7), (16, 32), (8, 16), (2, 8)]
    outputs, _values = network(torch.zeros(3, 7), torch.zeros(3, 0))
    assert outputs.shape == (3, 4)  # means, and logs of deviations
