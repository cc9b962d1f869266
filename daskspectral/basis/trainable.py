"""Bases whose functions are trained before they are measured: a network, and a user's own function in JAX."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.callable import name_of
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.forms import Atom
from daskspectral.forms.differentiable import feature, jax
from daskspectral.registry import Function as Saved
from daskspectral.validation import POSITIVE, check_flag, check_integer, check_number, check_option

ROUNDING = 1e-12  # of its mean: a column of less spread is constant


@dataclass(frozen=True, eq=False, kw_only=True)
class Trainable(Basis):
    """Functions with parameters, which an estimator trains by the loss of its operator where they are not `frozen`.

    Parameters
    ----------
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

    Examples
    --------
    >>> from daskspectral.basis import NeuralBasis
    >>> basis = NeuralBasis((32, 32), steps=500).asking(4)
    >>> isinstance(basis, Trainable), basis.frozen, basis.outputs
    (True, False, 4)
    """

    outputs: int | None = None
    mu: Any = None
    steps: int = 4000
    batch: int = 256
    rate: float = 2e-3
    rows: int = 100_000
    checks: int = 16

    def __post_init__(self) -> None:
        least_of = {"steps": 1, "batch": 4, "rows": 1, "checks": 1, **({} if self.outputs is None else {"outputs": 1})}
        for name, least in least_of.items():
            check_integer(name, getattr(self, name), least)
        check_number("rate", self.rate, POSITIVE)
        if self.mu is not None:
            object.__setattr__(self, "mu", _checked_mu(self.mu))

    @property
    @abstractmethod
    def frozen(self) -> bool:
        """Whether its functions are trained, and stay as they are."""

    @property
    @abstractmethod
    def variables(self) -> Any:
        """What is trained: arrays, in lists and mappings."""

    @abstractmethod
    def with_variables(self, variables: Any) -> Self:
        """The same functions at other parameters, frozen."""

    @property
    def origin(self) -> Array:
        """Where points are counted from by `apply`, (d,): in single precision those far from 0 would be alike."""
        return np.zeros(self.dimension)

    @abstractmethod
    def apply(self, variables: Any, x: Any) -> Any:
        """The outputs (c, k) at points (c, d), counted from the origin, in JAX."""

    @abstractmethod
    def started(self, points: Array, outputs: int, seed: int, metric: bool = True) -> Self:
        """The functions before the first step, for points (m, d) like these. Raises ValueError where they do not fit.

        `metric` says that the forms take derivatives by the points, so that columns keep their units.
        """

    def asking(self, outputs: int) -> Self:
        return self if self.outputs is not None or self.frozen else replace(self, outputs=outputs)

    @property
    def untrained(self) -> Self | None:
        return None if self.frozen else self


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


def _checked_mu(mu: Any) -> Any:
    """Return mu as one float or a tuple of them."""
    if np.ndim(mu):
        return tuple(check_number("mu", one, POSITIVE) for one in mu)
    return check_number("mu", mu, POSITIVE)


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
        neurons = tuple(check_integer("hidden", count) for count in self.hidden)
        object.__setattr__(self, "hidden", neurons)
        for name, known in (("features", FEATURES), ("activation", tuple(ACTIVATIONS))):
            check_option(name, getattr(self, name), known)
        if self.weights is None:
            return
        for name in ("biases", "centre", "scale"):
            if getattr(self, name) is None:
                raise ValueError(f"a trained network has weights, biases, centre and scale; {name} is missing")
        for name in ("weights", "biases"):
            object.__setattr__(self, name, tuple(np.asarray(v, dtype=float) for v in getattr(self, name)))
        for name in ("centre", "scale"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))

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


Function = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class JaxBasis(Trainable):
    """The p functions that `function` evaluates, (parameters, x (d,)) -> (p,), in JAX (extra `neural`).

    `parameters` are arrays in lists and mappings, those at which the training begins; with trained=True they stay as
    they are. All derivatives follow from the function. It is called on the workers: these need jax, and the module in
    which the function lies; a saved model keeps its import path, and loads with `trusted=`. `holds_constant=True` says
    that the span holds a constant, so that estimators add none. The other parameters are those of `NeuralBasis`.

    Raises ImportError without jax, ValueError where the function does not give a vector.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> waves = JaxBasis(lambda w, x: jnp.sin(w @ x), np.array([[1.0], [2.0]]), d=1, trained=True)
    >>> waves.values(np.array([[np.pi / 2]])).round(9).ravel().tolist()
    [1.0, 0.0]
    """

    expects: ClassVar = {"function": Saved}
    order = math.inf

    function: Function
    parameters: Any
    d: int = field(kw_only=True)
    trained: bool = field(default=False, kw_only=True)
    holds_constant: bool = field(default=False, kw_only=True)
    _size: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise TypeError(f"JaxBasis takes a function (parameters, x (d,)) -> (p,); it got {self.function!r}")
        check_integer("d", self.d)
        for name in ("trained", "holds_constant"):
            check_flag(name, getattr(self, name))
        package = jax()
        arrays = package.tree_util.tree_map(lambda v: np.asarray(v, dtype=float), self.parameters)
        object.__setattr__(self, "parameters", arrays)
        shape = package.eval_shape(self.function, arrays, np.zeros(self.d)).shape
        if len(shape) != 1 or not shape[0]:
            raise ValueError(
                f"the function of a JaxBasis was given a point ({self.d},) and returned shape {shape}; it must return "
                "(p,), a number for each function"
            )
        object.__setattr__(self, "_size", shape[0])

    @property
    def frozen(self) -> bool:
        return self.trained

    @property
    def variables(self) -> Any:
        return self.parameters

    def with_variables(self, variables: Any) -> JaxBasis:
        return replace(self, parameters=variables, trained=True)

    def started(self, points: Array, outputs: int, seed: int, metric: bool = True) -> JaxBasis:
        return self

    def asking(self, outputs: int) -> JaxBasis:
        return self

    @property
    def size(self) -> int:
        return self._size

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def description(self) -> str:
        return f"the functions of {name_of(self.function)}"

    def apply(self, variables: Any, x: Any) -> Any:
        return jax().vmap(self.function, in_axes=(None, 0))(variables, x)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _JaxEvaluation(self, block)


class _JaxEvaluation(Evaluation):
    """One block, each atom computed when it is asked for."""

    def __init__(self, basis: JaxBasis, block: Block):
        self._basis, self._block = basis, block

    def feature(self, atom: Atom) -> Array:
        basis, block = self._basis, self._block
        read = {atom.view: np.asarray(block.x, dtype=float)}
        if atom.direction is not None:
            read[atom.direction.name] = np.asarray(block.fields[atom.direction.name], dtype=float)
        with jax().enable_x64(True):
            fields = {name: jax().numpy.asarray(values) for name, values in read.items()}
            found = feature(lambda x: basis.apply(basis.parameters, x), atom, fields)
            return block.weighted(np.array(found.T, dtype=block.dtype, order="C"))

    def second(self, atom: Atom, block: Block) -> Array:
        return self.feature(atom)
