"""Compiled passes through small networks agree with their definitions and with torch."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from phalanx.learn.compiled.lanes import multiply
from phalanx.learn.compiled.mlp import (
    Network,
    backward,
    exp,
    fast,
    forward,
    tanh,
    weight_count,
    work_size,
)


@fast
def each(function_number: int, x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = exp(x[i]) if function_number == 0 else tanh(x[i])


def test_exp_is_exact_to_seven_digits() -> None:
    x = np.linspace(-80, 80, 200_001).astype(np.float32)
    out = np.empty_like(x)
    each(0, x, out)
    assert np.allclose(out, np.exp(x.astype(np.float64)), rtol=3e-7, atol=0)


def test_tanh_is_exact_to_six_digits() -> None:
    x = np.linspace(-20, 20, 200_001).astype(np.float32)
    out = np.empty_like(x)
    each(1, x, out)
    assert np.allclose(out, np.tanh(x.astype(np.float64)), rtol=5e-7, atol=1e-7)
    assert np.abs(out).max() <= 1


@fast
def product(x: Any, weights: Any, y: Any) -> None:
    multiply(x, weights, y)


@pytest.mark.parametrize("columns", [1, 3, 4, 16, 23, 64, 145])
def test_a_row_of_a_product_does_not_depend_on_where_it_stands(columns: int) -> None:
    """To the bit: with some libraries' products every other six rows are rounded otherwise."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(64, columns)).astype(np.float32)
    x = np.repeat(random.normal(size=(1, 64)), 131, axis=0).astype(np.float32)
    y = np.full((len(x), columns), np.nan, np.float32)
    product(x, weights, y)
    assert (y == y[0]).all()
    assert np.allclose(y[0], x[0].astype(np.float64) @ weights, atol=1e-5)
    alone = np.full((1, columns), np.nan, np.float32)
    product(x[:1], weights, alone)
    assert np.array_equal(alone[0], y[0])


def torch_layers(theta: Any, sizes: tuple[int, ...]) -> list[torch.Tensor]:
    """The same weights as torch parameters, in the order in which they lie in theta."""
    at, layers = 0, []
    for n_in, n_out in pairwise(sizes):
        for shape in ((n_in, n_out), (n_out,)):
            size = int(np.prod(shape))
            part = torch.tensor(theta[at : at + size].reshape(shape), dtype=torch.float64)
            layers.append(part.requires_grad_())
            at += size
    return layers


def torch_forward(layers: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    for k in range(0, len(layers), 2):
        x = x @ layers[k] + layers[k + 1]
        if k < len(layers) - 2:
            x = torch.tanh(x)
    return x


@pytest.mark.parametrize("sizes", [(5, 3), (7, 4, 2), (52, 64, 64, 145), (20, 8, 16, 8, 1)])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_passes_agree_with_torch(sizes: tuple[int, ...], rows: int) -> None:
    random = np.random.default_rng(rows)
    theta = random.normal(size=weight_count(sizes)).astype(np.float32) * np.float32(0.3)
    x = random.normal(size=(rows, sizes[0])).astype(np.float32)
    d_out = random.normal(size=(rows, sizes[-1])).astype(np.float32)
    work, grad = np.empty(work_size(sizes, rows), np.float32), np.empty_like(theta)
    layers = torch_layers(theta, sizes)
    expected = torch_forward(layers, torch.tensor(x, dtype=torch.float64))
    network = Network(theta, np.array(sizes))
    out = forward(network, x, work)
    assert np.allclose(out, expected.detach().numpy(), atol=1e-5, rtol=1e-5)
    (expected * torch.tensor(d_out, dtype=torch.float64)).sum().backward()  # type: ignore[no-untyped-call]
    backward(network, x, work, d_out.copy(), grad)
    wanted = np.concatenate([part.grad.numpy().ravel() for part in layers])  # type: ignore[union-attr]
    assert np.allclose(grad, wanted, atol=1e-4, rtol=1e-4)
