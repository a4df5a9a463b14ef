"""Small networks on a CPU: forward and backward passes as compiled functions of flat weights.

A network of layer sizes (in, h1, ..., out) keeps its weights in one float32 vector: for each layer
a matrix [in, out], then its biases [out]. Hidden layers are tanh. What a row gives depends on that
row alone, to the last digit. The matrix products of backward passes go to BLAS; everything else is
written so that the compiler turns it into vector instructions.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import llvmlite.ir as ir
import numpy as np
import numpy.typing as npt
import scipy.linalg.cython_blas  # noqa: F401  the library of compiled matrix products
from numba import types
from numba.extending import intrinsic, overload
from threadpoolctl import threadpool_limits

from phalanx.compiled.llvm import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Type,
    TypingContext,
    Value,
    Values,
)
from phalanx.compiled.part import as_part
from phalanx.learn.compiled.lanes import multiply

Floats = npt.NDArray[np.float32]
Sizes = npt.NDArray[np.int64]  # [layers + 1]: in, hidden ..., out


class Network(NamedTuple):
    """The weights of a network and the sizes of its layers."""

    theta: Floats
    sizes: Sizes


# Sums are taken as they are written, but for `add_up`, where there is only one way to reorder them:
# so results stay the same when all is compiled again.
FASTMATH = {"contract", "nsz", "arcp", "nnan", "ninf"}
Function = TypeVar("Function", bound=Callable[..., object])


def fast(function: Function) -> Function:
    """Compiled into whoever calls it, with the freedom to use vector instructions."""
    return _compiled(function, FASTMATH)


def _compiled(function: Function, fastmath: set[str]) -> Function:
    return as_part(function, fastmath=fastmath, boundscheck=False)


def bits_as_float(bits: np.int32) -> np.float32:
    """The float32 of these bits."""
    return np.int32(bits).view(np.float32)


@intrinsic  # type: ignore[untyped-decorator]
def _bitcast(typing_context: TypingContext, bits: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@overload(bits_as_float)
def _compiled_bits_as_float(bits):  # type: ignore[no-untyped-def]
    return lambda bits: _bitcast(bits)


@fast
def exp(x: np.float32) -> np.float32:
    """eˣ to 1e-7 relative: 2ⁿ from the exponent bits, the rest by a polynomial (Cephes)."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    n = x * np.float32(1.44269504) + np.float32(12582912.0) - np.float32(12582912.0)  # rounds
    f = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = p * f * f + f + np.float32(1.0)
    return p * bits_as_float(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))


@fast
def tanh(x: np.float32) -> np.float32:
    """tanh to 3e-7 by a ratio of polynomials (Eigen's)."""
    x = min(max(x, np.float32(-7.90531110763549805)), np.float32(7.90531110763549805))
    s = x * x
    p = np.float32(-2.76076847742355e-16)
    p = p * s + np.float32(2.00018790482477e-13)
    p = p * s + np.float32(-8.60467152213735e-11)
    p = p * s + np.float32(5.12229709037114e-08)
    p = p * s + np.float32(1.48572235717979e-05)
    p = p * s + np.float32(6.37261928875436e-04)
    p = p * s + np.float32(4.89352455891786e-03)
    q = np.float32(1.19825839466702e-06)
    q = q * s + np.float32(1.18534705686654e-04)
    q = q * s + np.float32(2.26843463243900e-03)
    q = q * s + np.float32(4.89352518554385e-03)
    return x * p / q


def _add_up(row: Floats) -> np.float32:
    """The sum of a row, in the order that suits vector instructions."""
    total = np.float32(0)
    for k in range(len(row)):
        total += row[k]
    return total


add_up = _compiled(_add_up, FASTMATH | {"reassoc"})


def use_one_thread_per_product() -> None:
    """For the whole process. Products that start threads of their own would fight for the cores."""
    threadpool_limits(1, user_api="blas")


def weight_count(sizes: Iterable[int] | Sizes) -> int:
    """How many numbers a network of these layer sizes has."""
    return int(sum((i + 1) * o for i, o in pairwise(sizes)))


def work_size(sizes: Sequence[int] | Sizes, rows: int) -> int:
    """Room for the outputs of all layers, and for their gradients."""
    return 2 * rows * int(sum(sizes[1:]))


@fast
def forward(network: Network, x: Floats, work: Floats) -> Floats:
    """Outputs [rows, out] of a network for x [rows, in]; all layers' outputs stay in `work`."""
    weights, y = first_layer(network, x.shape[0], work)
    multiply(x, weights, y)
    return forward_from(network, y, work)


@fast
def first_layer(network: Network, rows: int, work: Floats) -> tuple[Floats, Floats]:
    """The weights of the first layer, and room for its product [rows, h1]."""
    n_in, n_out = network.sizes[0], network.sizes[1]
    weights = network.theta[: n_in * n_out].reshape(n_in, n_out)
    return weights, work[: rows * n_out].reshape(rows, n_out)


@fast
def forward_from(network: Network, y: Floats, work: Floats) -> Floats:
    """The rest of a forward pass; y: the product of the first layer, at the beginning of `work`."""
    theta, sizes = network
    rows, used, at = y.shape[0], 0, 0
    layers = len(sizes) - 1
    x = y
    for layer in range(layers):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights = theta[at : at + n_in * n_out].reshape(n_in, n_out)
        biases = theta[at + n_in * n_out : at + (n_in + 1) * n_out]
        at += (n_in + 1) * n_out
        y = work[used : used + rows * n_out].reshape(rows, n_out)
        used += rows * n_out
        if layer > 0:
            multiply(x, weights, y)
        for r in range(rows):
            if layer < layers - 1:
                for c in range(n_out):
                    y[r, c] = tanh(y[r, c] + biases[c])
            else:
                for c in range(n_out):
                    y[r, c] += biases[c]
        x = y
    return x


@fast
def join_columns(obs: Floats, truth: Floats, out: Floats) -> Floats:
    """[rows, D] and [rows, K] beside each other in `out`: what the critic sees."""
    rows, d, k = obs.shape[0], obs.shape[1], truth.shape[1]
    x = out[: rows * (d + k)].reshape(rows, d + k)
    for r in range(rows):
        for c in range(d):
            x[r, c] = obs[r, c]
        for c in range(k):
            x[r, d + c] = truth[r, c]
    return x


@fast
def backward(network: Network, x: Floats, work: Floats, d_out: Floats, grad: Floats) -> None:
    """Gradient of the weights into `grad`, given that of the outputs; after `forward`."""
    dy = backward_to_first(network, x.shape[0], work, d_out, grad)
    n_in, n_out = network.sizes[0], network.sizes[1]
    np.dot(x.T, dy, grad[: n_in * n_out].reshape(n_in, n_out))


@fast
def backward_to_first(
    network: Network, rows: int, work: Floats, d_out: Floats, grad: Floats
) -> Floats:
    """A backward pass but for the first layer's matrix; returns the gradient of its product."""
    theta, sizes = network
    layers = len(sizes) - 1
    total = 0
    for layer in range(layers):
        total += sizes[layer + 1]
    at, used, spare = len(theta), rows * total, rows * total
    dy = d_out
    for layer in range(layers - 1, -1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        at -= (n_in + 1) * n_out
        used -= rows * n_out
        weights = theta[at : at + n_in * n_out].reshape(n_in, n_out)
        d_biases = grad[at + n_in * n_out : at + (n_in + 1) * n_out]
        d_biases[:] = 0
        for r in range(rows):
            for c in range(n_out):
                d_biases[c] += dy[r, c]
        if layer > 0:
            below = work[used - rows * n_in : used].reshape(rows, n_in)
            np.dot(below.T, dy, grad[at : at + n_in * n_out].reshape(n_in, n_out))
            dx = work[spare : spare + rows * n_in].reshape(rows, n_in)
            spare += rows * n_in
            np.dot(dy, weights.T, dx)
            for r in range(rows):
                for c in range(n_in):
                    dx[r, c] *= np.float32(1) - below[r, c] * below[r, c]
            dy = dx
    return dy
