"""A network, whose functions are trained before they are measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.forms import Atom
from daskspectral.validation import POSITIVE, check_integer, check_number, check_option, check_type

ROUNDING = 1e-12  # of its mean: a column of less spread is constant


def place_of(points: Array, metric: bool) -> tuple[Array, Array]:
    """The means of columns, and scales by which these have about the variance 1.

    Of forms with derivatives (`metric`) all columns have the scale of the widest one: on thin ones slopes would begin
    steep, and stay so.
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
"""Each gives its values and its slopes; the names are those of `jax.nn`."""


@dataclass(frozen=True, eq=False)
class NeuralBasis(Basis):
    """Functions of a multilayer perceptron, trained by the loss of the operator, then frozen and measured exactly.

    `SpectralDecomposition(basis=NeuralBasis())` trains the network on rows of the data (extra `neural`: jax and optax),
    then sums the forms of its functions over all rows and solves, as of any other basis: the solution repairs what
    the loss shrinks and rotates. `basis_` is the trained network; given as `basis`, it is not trained again. Its values
    and first derivatives are matrix products of numpy: workers, files and machines that load them need no jax.

    The loss is equation (18) of Cabannes and Bach (2024) for symmetric operators, and the low-rank loss for operators
    between two spaces; see `help(daskspectral.neural)`.

    Parameters
    ----------
    hidden : tuple of int
        Numbers of neurons of the hidden layers.
    features : {"hidden", "outputs"}
        Whether the neurons of the last hidden layer are the functions, or the outputs.
    activation : {"tanh", "silu"}
        The nonlinearity of the hidden layers.
    outputs : int, optional
        Outputs that are trained; by default as many as there are components.
    mu : float or sequence of float, optional
        mu_j of equation (18), above the eigenvalues that are wanted: one for all outputs, or one for each, by which
        these become single eigenfunctions. By default twice the last value that is wanted, as rows held out tell it in
        the course of the training.
    steps, batch, rate : int, int, float
        Steps of Adam, rows of each, and the first learning rate, which falls to 0 along a cosine.
    rows : int
        Rows in memory, from which batches are drawn; of larger data they are drawn anew in the course of the training.
    checks : int
        How often rows held out tell whether the functions are better than before; the best are kept.
    weights, biases, centre, scale : arrays, optional
        The trained network: matrices (out, in) and vectors (out,) of all layers, from points (x - centre) / scale.

    Examples
    --------
    >>> basis = NeuralBasis((8, 4)).initialised(2, outputs=3, centre=np.zeros(2), scale=np.ones(2), seed=0)
    >>> basis.size, basis.dimension, basis.values(np.ones((5, 2))).shape
    (4, 2, (4, 5))
    """

    order = 1
    portable = True

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
    weights: tuple[Array, ...] | None = field(default=None, repr=False, kw_only=True)
    biases: tuple[Array, ...] | None = field(default=None, repr=False, kw_only=True)
    centre: Array | None = field(default=None, repr=False, kw_only=True)
    scale: Array | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        least_of = {"steps": 1, "batch": 4, "rows": 1, "checks": 1, **({} if self.outputs is None else {"outputs": 1})}
        for name, least in least_of.items():
            check_integer(name, getattr(self, name), least)
        check_number("rate", self.rate, POSITIVE)
        if self.mu is not None:
            checked = tuple(check_number("mu", one, POSITIVE) for one in np.atleast_1d(self.mu).tolist())
            self._set(mu=checked if np.ndim(self.mu) else checked[0])
        check_type("hidden", self.hidden, (tuple, list, np.ndarray), "the neurons of each hidden layer, (96, 96)")
        self._set(hidden=tuple(check_integer("hidden", count) for count in self.hidden))
        check_integer("the number of hidden layers", len(self.hidden))
        for name, known in (("features", FEATURES), ("activation", tuple(ACTIVATIONS))):
            check_option(name, getattr(self, name), known)
        if self.weights is None:
            return
        for name in ("biases", "centre", "scale"):
            if getattr(self, name) is None:
                raise ValueError(f"a trained network has weights, biases, centre and scale; {name} is missing")
        for name in ("weights", "biases"):
            self._set(**{name: tuple(np.asarray(v, dtype=float) for v in getattr(self, name))})
        for name in ("centre", "scale"):
            self._set(**{name: np.asarray(getattr(self, name), dtype=float)})

    @property
    def frozen(self) -> bool:
        """Whether it is trained, and stays as it is."""
        return self.weights is not None

    def asking(self, outputs: int) -> NeuralBasis:
        return self if self.outputs is not None or self.frozen else replace(self, outputs=outputs)

    @property
    def untrained(self) -> NeuralBasis | None:
        return None if self.frozen else self

    @property
    def size(self) -> int:
        if self.features == "hidden":
            return self.hidden[-1]
        if self.weights is not None:
            return len(self.weights[-1])
        if self.outputs is None:
            raise ValueError("the number of outputs is not known before the network is trained; give outputs")
        return self.outputs

    @property
    def dimension(self) -> int:
        return len(self._layer("centre"))

    def takes(self, d: int) -> bool:
        return not self.frozen or super().takes(d)

    def _layer(self, name: str) -> Any:
        """An array of the trained network. Raises ValueError before it is trained."""
        found = getattr(self, name)
        if found is None:
            raise ValueError(
                "this NeuralBasis is not trained: SpectralDecomposition(basis=NeuralBasis()) trains it, and basis_ of "
                "the fit is the trained network"
            )
        return found

    @property
    def description(self) -> str:
        return f"a network of {len(self.hidden)} hidden layers"

    def remedy(self, order: int) -> str:
        return f"networks are differentiated once; {super().remedy(order)}"

    def initialised(self, d: int, *, outputs: int, centre: Array, scale: Array, seed: int) -> NeuralBasis:
        """The network of d variables at random weights: normal, of variance 1 / in, biases uniform in [-1, 1]."""
        rng = np.random.default_rng(seed)
        sizes = [d, *self.hidden, outputs]
        weights = [rng.normal(0, 1 / math.sqrt(a), (b, a)) for a, b in pairwise(sizes)]
        biases = [rng.uniform(-1, 1, b) for b in sizes[1:-1]] + [np.zeros(outputs)]
        return replace(self, weights=tuple(weights), biases=tuple(biases), centre=centre, scale=scale)

    @property
    def origin(self) -> Array:
        """Where points are counted from by `apply`, (d,): in single precision those far from 0 would be alike."""
        return np.asarray(self._layer("centre"))

    def started(self, points: Array, outputs: int, seed: int, metric: bool = True) -> NeuralBasis:
        """The functions before the first step, for points (m, d) like these.

        `metric` says that the forms take derivatives by the points, so that columns keep their units.
        """
        given = replace(self, outputs=outputs) if self.features == "outputs" else self
        centre, scale = place_of(points, metric)
        return given.initialised(points.shape[1], outputs=outputs, centre=centre, scale=scale, seed=seed)

    @property
    def variables(self) -> dict[str, list[Array]]:
        """What is trained: arrays, in lists."""
        return {"weights": list(self._layer("weights")), "biases": list(self._layer("biases"))}

    def with_variables(self, variables: Any) -> NeuralBasis:
        """The same network at other parameters."""
        weights, biases = (tuple(np.asarray(v, dtype=float) for v in variables[k]) for k in ("weights", "biases"))
        return replace(self, weights=weights, biases=biases)

    def apply(self, variables: Any, x: Any) -> Any:
        """The outputs (c, k) at points (c, d), counted from the origin, in JAX."""
        import jax

        nonlinear = getattr(jax.nn, self.activation) if self.activation != "tanh" else jax.numpy.tanh
        h = x / self._layer("scale").astype(x.dtype)
        *inner, last = zip(variables["weights"], variables["biases"], strict=True)
        for w, b in inner:
            h = nonlinear(h @ w.T + b)
        return h @ last[0].T + last[1]

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        self._layer("weights")
        return _NeuralEvaluation(self, block, any(atom.order for atom in atoms))


class _NeuralEvaluation(Evaluation):
    """Values of one block, and derivatives along one direction after the other."""

    def __init__(self, basis: NeuralBasis, block: Block, slopes: bool):
        self.basis, self.block = basis, block
        dtype = block.dtype
        layers = zip(basis._layer("weights"), basis._layer("biases"), strict=True)
        self._layers = [(w.astype(dtype), b.astype(dtype)[:, None]) for w, b in layers]
        if basis.features == "hidden":
            self._layers.pop()
        self._unit = (1 / basis._layer("scale")).astype(dtype)
        h = ((block.x - basis._layer("centre")) / basis._layer("scale")).T.astype(dtype, order="C")
        self._slopes: list[Array | None] = []
        for number, (w, b) in enumerate(self._layers):
            h = w @ h
            h += b
            slope = None
            if number < len(basis.hidden):
                h, slope = ACTIVATIONS[basis.activation](h)
            self._slopes.append(slope if slopes else None)
        self._value = np.ascontiguousarray(block.weighted(h), like=h)

    @property
    def value(self) -> Array:
        return self._value

    def along(self, direction: Array) -> Array:
        return self._onwards(self._layers[0][0] @ (direction.T.astype(self.block.dtype) * self._unit[:, None]))

    def partial(self, alpha: tuple[int, ...]) -> Array:
        w, axis = self._layers[0][0], alpha.index(1)  # the product with a unit vector is one column
        return self._onwards(np.broadcast_to(w[:, axis : axis + 1] * self._unit[axis], (len(w), len(self.block.x))))

    def _onwards(self, t: Array) -> Array:
        """The derivative, from that of the first layer before its nonlinearity."""
        for number, (w, _) in enumerate(self._layers):
            slope = self._slopes[number]
            t = t if number == 0 else w @ t
            t = t if slope is None else t * slope
        return np.ascontiguousarray(self.block.weighted(t), like=t)
