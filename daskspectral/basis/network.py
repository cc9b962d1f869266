"""Neural networks as bases, trained before their forms are summed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.basis.recipe import BasisRecipe, Sample
from daskspectral.forms import Atom
from daskspectral.registry import Parameterized
from daskspectral.validation import POSITIVE, check_integer, check_number, check_option, check_type

ROUNDING = 1e-12  # of its mean: a column with less variation is constant


def center_and_scale(points: Array, metric: bool) -> tuple[Array, Array]:
    """Return the means of columns, and scales by which their variances are about 1.

    With `metric`, for derivatives, all have the widest scale: initial slopes on narrow columns would remain steep.
    """
    middle, spread = points.mean(axis=0), points.std(axis=0)
    scale = np.full(len(spread), spread.max(initial=0.0)) if metric else spread.copy()
    scale[scale <= ROUNDING * np.abs(middle)] = 1.0  # a column that is constant
    scale[scale == 0] = 1.0
    return middle, scale


FEATURES = ("hidden", "outputs")


def _tanh(a: Array) -> tuple[Array, Array]:
    h = np.tanh(a)
    return h, 1 - h * h


def _silu(a: Array) -> tuple[Array, Array]:
    s = 0.5 * (1 + np.tanh(0.5 * a))
    h = a * s
    return h, s + h * (1 - s)


ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array]]] = {"tanh": _tanh, "silu": _silu}
"""Values and slopes by the names of `jax.nn`."""


@dataclass(frozen=True, eq=False)
class NeuralBasis(Parameterized, BasisRecipe):
    """Multilayer perceptron as a basis, trained by the loss of the operator and then fixed.

    The fit trains it on rows of the data (extra `neural`: jax and optax), then sums forms over all rows and solves,
    which corrects shrinkage and rotation by the loss. A trained `basis_`, passed as `basis`, is not trained again. The
    loss is equation (18) of Cabannes and Bach (2024) for symmetric operators, the low-rank loss for operators between
    two spaces (`help(daskspectral.neural)`).

    Parameters
    ----------
    hidden : tuple of int
        Numbers of neurons of the hidden layers.
    features : {"hidden", "outputs"}
        Neurons of the last hidden layer, or outputs.
    activation : {"tanh", "silu"}
        Nonlinearity of the hidden layers.
    outputs : int, optional
        Number of outputs that are trained; by default the number of components.
    mu : float or sequence of float, optional
        Values mu_j of equation (18), above the requested eigenvalues: one for all outputs, or one for each, by which
        the outputs become single eigenfunctions. By default twice the last requested eigenvalue, estimated on
        held-out rows.
    steps, batch, rate : int, int, float
        Number of steps of Adam, rows per step, and initial learning rate, which decreases to 0 along a cosine.
    rows : int
        Rows in memory for batches; of larger data they are redrawn during training.
    checks : int
        Number of comparisons with earlier functions on held-out rows; the best are kept.

    See Also
    --------
    NetworkBasis : The trained functions.
    Landmarks : Functions of a kernel, without training.

    Examples
    --------
    >>> basis = NeuralBasis((8, 4)).initialized(np.zeros((1, 2)), outputs=3, seed=0)
    >>> basis.size, basis.dimension, basis.values(np.ones((5, 2))).shape
    (4, 2, (4, 5))
    """

    trained = True

    hidden: tuple[int, ...] = (96, 96, 96)
    features: str = "hidden"
    activation: str = "tanh"
    outputs: int | None = field(default=None, kw_only=True)
    mu: Any = field(default=None, kw_only=True)
    steps: int = field(default=4000, kw_only=True)
    batch: int = field(default=256, kw_only=True)
    rate: float = field(default=2e-3, kw_only=True)
    rows: int = field(default=100_000, kw_only=True)
    checks: int = field(default=16, kw_only=True)

    def __post_init__(self) -> None:
        least_of = {"steps": 1, "batch": 4, "rows": 1, "checks": 1, **({} if self.outputs is None else {"outputs": 1})}
        for name, least in least_of.items():
            check_integer(name, getattr(self, name), least)
        check_number("rate", self.rate, POSITIVE)
        if self.mu is not None:
            checked = tuple(check_number("mu", one, POSITIVE) for one in np.atleast_1d(self.mu).tolist())
            self._set(mu=checked if np.ndim(self.mu) else checked[0])
        check_type("hidden", self.hidden, (tuple, list, np.ndarray), "the numbers of neurons, such as (96, 96)")
        self._set(hidden=tuple(check_integer("hidden", count) for count in self.hidden))
        check_integer("the number of hidden layers", len(self.hidden))
        for name, known in (("features", FEATURES), ("activation", tuple(ACTIVATIONS))):
            check_option(name, getattr(self, name), known)

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return self.hidden[-1] if self.features == "hidden" else self.outputs or 1

    def probe(self, sample: Sample) -> NetworkBasis:
        return self.initialized(np.zeros((1, sample.dimension)), self.outputs or 1, seed=0)

    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        return sample.trained(self, rng)

    def initialized(self, points: Array, outputs: int, seed: int, *, metric: bool = True) -> NetworkBasis:
        """Return the network with normal weights of variance 1 / in, and biases uniform in [-1, 1].

        Its units are those of `points` (m, d). Set `metric` for forms with derivatives, for which columns keep their
        ratios.
        """
        rng, (center, scale) = np.random.default_rng(seed), center_and_scale(points, metric)
        sizes = [points.shape[1], *self.hidden, outputs]
        weights = [rng.normal(0, 1 / math.sqrt(a), (b, a)) for a, b in pairwise(sizes)]
        biases = [rng.uniform(-1, 1, b) for b in sizes[1:-1]] + [np.zeros(outputs)]
        return NetworkBasis(tuple(weights), tuple(biases), center, scale, self.features, self.activation)


@dataclass(frozen=True, eq=False)
class NetworkBasis(Basis):
    """Functions of a trained multilayer perceptron at points (x - center) / scale.

    Values and first derivatives are computed by numpy: workers and machines that load them need no jax.

    Parameters
    ----------
    weights, biases : tuple of array
        Matrices (out, in) and vectors (out,) of all layers.
    center : array of shape (d,)
        Subtracted from points.
    scale : array of shape (d,)
        Divisor of points.
    features : {"hidden", "outputs"}
        Neurons of the last hidden layer, or outputs.
    activation : {"tanh", "silu"}
        Nonlinearity of the hidden layers.

    See Also
    --------
    NeuralBasis : Architecture and training.

    Examples
    --------
    >>> basis = NeuralBasis((4, 3)).initialized(np.array([[0.0], [1.0]]), outputs=2, seed=0)
    >>> basis.size, basis.values(np.array([[0.5]])).shape
    (3, (3, 1))
    """

    order = 1
    portable = True

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    center: Array
    scale: Array
    features: str = "hidden"
    activation: str = "tanh"

    @property
    def size(self) -> int:
        return len(self.weights[-2 if self.features == "hidden" else -1])

    @property
    def dimension(self) -> int:
        return len(self.center)

    @property
    def description(self) -> str:
        return f"a network of {len(self.weights) - 1} hidden layers"

    def remedy(self, order: int) -> str:
        return f"Networks have first derivatives only. {super().remedy(order)}"

    @property
    def variables(self) -> dict[str, list[Array]]:
        """Trained parameters, as lists of arrays."""
        return {"weights": list(self.weights), "biases": list(self.biases)}

    def with_variables(self, variables: Any) -> NetworkBasis:
        """Return the network with other parameters."""
        weights, biases = (tuple(np.asarray(v, dtype=float) for v in variables[k]) for k in ("weights", "biases"))
        return replace(self, weights=weights, biases=biases)

    def apply(self, variables: Any, x: Any) -> Any:
        """Return the outputs (c, k) in JAX at points (c, d) from which the caller has subtracted the center.

        In single precision points far from 0 would coincide.
        """
        import jax

        nonlinear = getattr(jax.nn, self.activation) if self.activation != "tanh" else jax.numpy.tanh
        h = x / self.scale.astype(x.dtype)
        *inner, last = zip(variables["weights"], variables["biases"], strict=True)
        for w, b in inner:
            h = nonlinear(h @ w.T + b)
        return h @ last[0].T + last[1]

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _NeuralEvaluation(self, block, any(atom.order for atom in atoms))


class _NeuralEvaluation(Evaluation):
    """Values of one block, and derivatives along one direction at a time."""

    def __init__(self, basis: NetworkBasis, block: Block, slopes: bool):
        self.basis, self.block = basis, block
        dtype = block.dtype
        layers = zip(basis.weights, basis.biases, strict=True)
        self._layers = [(w.astype(dtype), b.astype(dtype)[:, None]) for w, b in layers]
        if basis.features == "hidden":
            self._layers.pop()
        self._unit = (1 / basis.scale).astype(dtype)
        h = ((block.x - basis.center) / basis.scale).T.astype(dtype, order="C")
        self._slopes: list[Array | None] = []
        for number, (w, b) in enumerate(self._layers):
            h = w @ h
            h += b
            slope = None
            if number < len(basis.weights) - 1:
                h, slope = ACTIVATIONS[basis.activation](h)
            self._slopes.append(slope if slopes else None)
        self._value = np.ascontiguousarray(block.weighted(h), like=h)

    @property
    def value(self) -> Array:
        return self._value

    def along(self, direction: Array) -> Array:
        return self._through_layers(self._layers[0][0] @ (direction.T.astype(self.block.dtype) * self._unit[:, None]))

    def partial(self, alpha: tuple[int, ...]) -> Array:
        w, axis = self._layers[0][0], alpha.index(1)  # a product with a unit vector is one column
        return self._through_layers(
            np.broadcast_to(w[:, axis : axis + 1] * self._unit[axis], (len(w), len(self.block.x)))
        )

    def _through_layers(self, t: Array) -> Array:
        """Return the features' derivative from that of the first layer's input."""
        for number, (w, _) in enumerate(self._layers):
            slope = self._slopes[number]
            t = t if number == 0 else w @ t
            t = t if slope is None else t * slope
        return np.ascontiguousarray(self.block.weighted(t), like=t)
