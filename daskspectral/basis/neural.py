"""A network as a basis: a multilayer perceptron whose last hidden layer, or whose outputs, are the functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskspectral.basis.base import Array
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.basis.trainable import Trainable, place_of
from daskspectral.forms import Atom
from daskspectral.kernels.base import whole

FEATURES = ("hidden", "outputs")


def _tanh(a: Array) -> tuple[Array, Array]:
    h = np.tanh(a)
    return h, 1 - h * h


def _logistic(a: Array) -> Array:
    found: Array = 0.5 * (1 + np.tanh(0.5 * a))
    return found


def _silu(a: Array) -> tuple[Array, Array]:
    s = _logistic(a)
    h = a * s
    return h, s + h * (1 - s)


def _softplus(a: Array) -> tuple[Array, Array]:
    return np.logaddexp(a, a.dtype.type(0)), _logistic(a)


ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array]]] = {"tanh": _tanh, "silu": _silu, "softplus": _softplus}
"""Each gives its values and its slopes; the names are those of `jax.nn`."""


@dataclass(frozen=True, eq=False)
class NeuralBasis(Trainable):
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
        Neurons of the hidden layers.
    features : {"hidden", "outputs"}
        Whether the neurons of the last hidden layer are the functions, or the outputs.
    activation : {"tanh", "silu", "softplus"}
        The nonlinearity of the hidden layers.
    outputs, mu, steps, batch, rate, rows, checks
        How it is trained: see `daskspectral.basis.Trainable`.
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
    weights: tuple[Array, ...] | None = field(default=None, repr=False, kw_only=True)
    biases: tuple[Array, ...] | None = field(default=None, repr=False, kw_only=True)
    centre: Array | None = field(default=None, repr=False, kw_only=True)
    scale: Array | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.hidden, (tuple, list, np.ndarray)) or not len(self.hidden):
            raise ValueError(f"hidden has the number of neurons of each hidden layer, (96, 96); it is {self.hidden!r}")
        neurons = tuple(whole("hidden of a NeuralBasis", count) for count in self.hidden)
        object.__setattr__(self, "hidden", neurons)
        for name, known in (("features", FEATURES), ("activation", tuple(ACTIVATIONS))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {' or '.join(map(repr, known))}; it is {getattr(self, name)!r}")
        if self.weights is not None:
            self._check_weights()

    def _check_weights(self) -> None:
        for name in ("biases", "centre", "scale"):
            if getattr(self, name) is None:
                raise ValueError(f"a trained network has weights, biases, centre and scale; {name} is missing")
        for name in ("weights", "biases"):
            object.__setattr__(self, name, tuple(np.asarray(v, dtype=float) for v in getattr(self, name)))
        for name in ("centre", "scale"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        found = [[v.shape for v in self._layer(name)] for name in ("weights", "biases")]
        d, last = self._layer("centre").size, self.hidden[-1]
        outputs = found[0][-1][0] if found[0] and found[0][-1] else 0
        wanted = [(b, a) for a, b in pairwise([d, *self.hidden, outputs])]
        if found != [wanted, [shape[:1] for shape in wanted]] or self._layer("scale").shape != (d,):
            raise ValueError(
                f"a network of {d} variables with the hidden layers {self.hidden} has weights of the shapes "
                f"{wanted[:-1]} and (outputs, {last}), and a bias for each row of them; these have {found[0]} and "
                f"{found[1]}"
            )

    @property
    def frozen(self) -> bool:
        return self.weights is not None

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
        return np.asarray(self._layer("centre"))

    def started(self, points: Array, outputs: int, seed: int, metric: bool = True) -> NeuralBasis:
        given = replace(self, outputs=outputs) if self.features == "outputs" else self
        centre, scale = place_of(points, metric)
        return given.initialised(points.shape[1], outputs=outputs, centre=centre, scale=scale, seed=seed)

    @property
    def variables(self) -> dict[str, list[Array]]:
        return {"weights": list(self._layer("weights")), "biases": list(self._layer("biases"))}

    def with_variables(self, variables: Any) -> NeuralBasis:
        weights, biases = (tuple(np.asarray(v, dtype=float) for v in variables[k]) for k in ("weights", "biases"))
        return replace(self, weights=weights, biases=biases)

    def apply(self, variables: Any, x: Any) -> Any:
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
