"""What a basis of p functions offers: features of a block of points, and sums of products of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.edges import Edge
from daskspectral.errors import SmoothnessError
from daskspectral.forms import Atom, Field, Pairing, Product
from daskspectral.kernels.base import unit_index
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]
VALUE = Atom("value")


class Arena:
    """Buffers by name, allocated once at their largest size and handed out as contiguous views.

    Examples
    --------
    >>> arena = Arena()
    >>> arena.get("s", (2, 3), float).base is arena.get("s", (3, 2), float).base
    True
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}
        self._made: dict[str, Any] = {}

    def made(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gave at the first call with this name, such as the plan of a transform."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def get(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An uninitialised array of this shape; its contents last until the next call with this name."""
        size = int(np.prod(shape))
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


@dataclass(frozen=True)
class Block:
    """One block of c rows: its fields, and `scale`, the square roots of the sample weights (c,), where given.

    `points` names the field that holds the points of this view; `owner` keeps apart the buffers of evaluations that
    live at the same time. `shared` holds common work, such as distances, where several bases see the block.

    Examples
    --------
    >>> block = Block({"x": np.zeros((5, 2)), "force": np.ones((5, 3))}, np.dtype(float), Arena())
    >>> block.x.shape, block.field(Field("force", 0)).shape
    ((5, 2), (5,))
    """

    fields: Mapping[str, Array]
    dtype: Any
    arena: Arena
    scale: Array | None = None
    points: str = "x"
    owner: str = ""
    shared: dict[Any, Any] | None = None

    def field(self, field: Field) -> Array:
        """The values of a field, (c,), (c, d) or (c, d, d)."""
        entries: Any = (slice(None), *field.path)
        return np.asarray(self.fields[field.name][entries])

    def view(self, name: str) -> Block:
        """This block with the points of another view."""
        return replace(self, points=name)

    def part(self, name: str) -> Block:
        """This block for one of several bases, with buffers of its own."""
        return replace(self, owner=f"{self.owner}{name} ")

    def buffer(self, name: str, shape: tuple[int, ...]) -> Array:
        """A buffer for the evaluation of this basis at this view."""
        return self.arena.get(f"{self.owner}{self.points} {name}", shape, self.dtype)

    @property
    def x(self) -> Array:
        """The points (c, d)."""
        return self.fields[self.points]


class Evaluation(ABC):
    """A basis on one block. Features are multiplied by the square root of the sample weight.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> block = Block({"x": np.array([[2.0], [3.0]])}, np.dtype(float), Arena())
    >>> MonomialBasis(1, 2).at(block, []).feature(Atom("partial", alpha=(1,)))
    array([[0., 0.],
           [1., 1.],
           [4., 6.]])
    """

    @abstractmethod
    def feature(self, atom: Atom) -> Array:
        """One scalar atom of all functions at all points, (p, c); valid until the next block."""

    def second(self, atom: Atom, block: Block) -> Array:
        """sum_ab matrix_ab d_a d_b of all functions, (p, c), by partial derivatives; without matrices the Laplacian."""
        d = block.fields[atom.view].shape[1]
        diagonal = [(a, a) for a in range(d)]
        mixed = [] if atom.direction is None else [(a, b) for a in range(d) for b in range(a)]
        weights: list[Any] = [1.0 for _ in diagonal]
        if atom.direction is not None:
            matrix = block.field(atom.direction)
            weights = [matrix[:, a, a] for a, _ in diagonal] + [matrix[:, a, b] + matrix[:, b, a] for a, b in mixed]
        alphas = [tuple((k == a) + (k == b) for k in range(d)) for a, b in [*diagonal, *mixed]]
        return add_up((self.feature(Atom("partial", atom.view, alpha)) for alpha in alphas), weights, block.dtype)


class GradientSum(Protocol):
    """A basis's own short cut for sum_k <grad phi_i, grad phi_j>(x_k)."""

    def add(self, evaluation: Any) -> None:
        """Add one block."""

    def result(self, gram: Array) -> Array:
        """The matrix (p, p), given the sum of phi phi^T over the same blocks."""


class Basis(Registered, ABC):
    """p functions of d variables. Immutable; it is sent to the workers once per run.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> basis = MonomialBasis(1, 2)
    >>> basis.size, basis.holds_constant
    (3, True)
    >>> basis.values(np.array([[2.0], [3.0]]))
    array([[1., 1.],
           [2., 3.],
           [4., 9.]])
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of functions p."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of variables d."""

    @property
    @abstractmethod
    def order(self) -> float:
        """Highest order of a bounded derivative."""

    @property
    @abstractmethod
    def description(self) -> str:
        """A noun phrase for the basis in messages."""

    @abstractmethod
    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        """Evaluate what these atoms need on the points `block.x` (c, d)."""

    @property
    def local(self) -> NDArray[np.bool_]:
        """Which functions decay away from a centre, so that they may rest on few points, (p,)."""
        return np.zeros(self.size, dtype=bool)

    @property
    def holds_constant(self) -> bool:
        """Whether a constant function is among them, so that an estimator adds none."""
        return False

    def norm(self, gram: Array) -> Array:
        """K (p, p), by which a^T K a is the squared norm of sum a_i phi_i in its function space.

        The mean squares of the functions, the diagonal of their Gram matrix (p, p), where no space is known.
        """
        return np.diag(np.diag(gram))

    @property
    def slope_norm(self) -> float | None:
        """The squared norm of f -> df/dx_a in that space, the same for every direction; None where it is unknown."""
        return None

    @property
    def vanishes(self) -> bool:
        """Whether its functions vanish at the ends of the data, so that no constant belongs among them."""
        return False

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The functions, 0 at the ends of the data, by which its functions are multiplied."""
        return ()

    @property
    def core(self) -> Basis:
        """The basis without such functions."""
        return self

    def kills(self, atom: Atom) -> bool:
        """Whether the atom of every basis function is identically zero."""
        return False

    def gradient_sum(self, dtype: Any, arena: Arena) -> GradientSum | None:
        """A short cut for the Dirichlet form, or None for the generic sum over coordinates."""
        return None

    def contraction(self, right: Basis, products: Sequence[Product], dtype: Any, arena: Arena) -> Contraction:
        """An accumulator of these products between this basis (left) and another (right)."""
        parts = right.parts
        if len(parts) > 1:
            from daskspectral.basis.concatenated import BlockContraction

            return BlockContraction(self, right, products, dtype, arena)
        return PairContraction(self, right, products, dtype, arena)

    @property
    def parts(self) -> tuple[Basis, ...]:
        """The bases that this one concatenates; itself when it is one."""
        return (self,)

    def values(self, x: Array, dtype: Any = float) -> Array:
        """phi_i(x_k), shape (p, c)."""
        block = Block({"x": x}, np.dtype(dtype), Arena())
        return self.at(block, [VALUE]).feature(VALUE)

    def probe(self) -> Array:
        return self.values(np.repeat(np.linspace(0.25, 0.75, 3)[:, None], self.dimension, axis=1))

    def check_order(self, order: int, operator: str) -> None:
        """Raise SmoothnessError where `operator`, as messages call it, takes a derivative that the basis lacks."""
        if order > self.order:
            lacking = self
            while (part := next(p for p in lacking.parts if order > p.order)) is not lacking:
                lacking = part
            raise SmoothnessError(
                f"{operator} takes derivatives of order {order}, and {self.description} has them up to "
                f"order {self.order:g}; {lacking.remedy(order)}"
            )

    def remedy(self, order: int) -> str:
        """What to do where this basis has no derivatives of this order, for messages."""
        return "use functions that have them, such as FourierBasis, MonomialBasis or a smooth kernel"


class Contraction(ABC):
    """Sums of products over blocks: one matrix (p, q) for each product.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> basis, block = MonomialBasis(1, 1), Block({"x": np.array([[2.0], [3.0]])}, np.dtype(float), Arena())
    >>> squares, seen = Product(VALUE, VALUE), {"x": basis.at(block, [VALUE])}
    >>> pair = basis.contraction(basis, [squares], float, block.arena)
    >>> pair.add(seen, seen, block)
    >>> pair.result()[squares].tolist()
    [[2.0, 5.0], [5.0, 13.0]]
    """

    @abstractmethod
    def add(self, lefts: Mapping[str, Evaluation], rights: Mapping[str, Evaluation], block: Block) -> None:
        """Add one block, seen through the two bases at each view."""

    @abstractmethod
    def result(self) -> dict[Product, Array]:
        """The sums so far, in float64."""


class PairContraction(Contraction):
    """Products of features, one GEMM (or SYRK) each; gradients by the basis's short cut where it has one."""

    def __init__(self, left: Basis, right: Basis, products: Sequence[Product], dtype: Any, arena: Arena):
        shape = (left.size, right.size)
        self.products = tuple(products)
        live = [p for p in products if not (left.kills(p.left) or right.kills(p.right))]
        self.gradients: dict[Product, GradientSum] = {}
        needed: list[Product] = []
        for product in live:
            shortcut = left.gradient_sum(dtype, arena) if left is right and _is_dirichlet(product) else None
            if shortcut is None:
                needed.append(product)
            else:
                self.gradients[product] = shortcut
                needed.append(_gram_of(product))
        self.sums: dict[Product, Array] = {p: np.zeros(shape) for p in dict.fromkeys(needed)}
        self.buffer = arena.get("product", shape, dtype)
        self.dimension = left.dimension
        self.shape = shape

    def add(self, lefts: Mapping[str, Evaluation], rights: Mapping[str, Evaluation], block: Block) -> None:
        for product, total in self.sums.items():
            for a, b in scalar_pairs(product, block, self.dimension):
                left = scalar_feature(lefts, a, block)
                if product.weight is None and a == b and all(lefts[v] is rights[v] for v in a.views):
                    right = left
                else:
                    right = scalar_feature(rights, b, block)
                if product.weight is not None:
                    left = left * block.field(product.weight).astype(left.dtype, copy=False)
                np.matmul(left, right.T, out=self.buffer)
                np.add(total, self.buffer, out=total)
        for product, shortcut in self.gradients.items():
            shortcut.add(lefts[product.left.view])

    def result(self) -> dict[Product, Array]:
        results = dict(self.sums)
        for product, shortcut in self.gradients.items():
            results[product] = shortcut.result(self.sums[_gram_of(product)])
        return {p: results.get(p, np.zeros(self.shape)) for p in self.products}


def _is_dirichlet(product: Product) -> bool:
    return product.left.kind == "gradient" and product.left == product.right and product.weight is None


def _gram_of(product: Product) -> Product:
    value = replace(VALUE, view=product.left.view)
    return Product(value, value)


def scalar_pairs(product: Product, block: Block, d: int) -> Iterator[tuple[Atom, Atom]]:
    """The product as pairs of scalar atoms: a pair of vectors is the sum over their coordinates."""
    if not product.left.vector:
        yield product.left, product.right
        return
    lefts, rights = _coordinates(product.left, block, d), _coordinates(product.right, block, d)
    if len(lefts) != len(rights):
        raise ValueError(
            f"inner() pairs the same number of directions on both sides: {product.left.direction} has {len(lefts)} in "
            f"a row, and {product.right.direction} has {len(rights)}"
        )
    yield from zip(lefts, rights, strict=True)


def _coordinates(atom: Atom, block: Block, d: int) -> list[Atom]:
    """The coordinates of a gradient, or of the derivatives along each of several directions."""
    if atom.direction is None:
        return [replace(atom, kind="partial", alpha=unit_index(axis, d)) for axis in range(d)]
    count, path = block.field(atom.direction).shape[1], atom.direction.path
    directions = [replace(atom.direction, index=(*path, m)) for m in range(count)]
    return [replace(atom, kind="along", direction=direction) for direction in directions]


def scalar_feature(evaluations: Mapping[str, Evaluation], atom: Atom, block: Block) -> Array:
    """A scalar atom of all functions, (p, c); the terms of a sum, at any views, are added row by row."""
    if atom.kind == "second":
        return evaluations[atom.view].second(atom, block)
    if atom.kind != "sum":
        return evaluations[atom.view].feature(atom)
    weights = [t.factor if t.weight is None else t.factor * block.field(t.weight) for t in atom.terms]
    return add_up((scalar_feature(evaluations, t.atom, block) for t in atom.terms), weights, block.dtype)


def add_up(features: Iterable[Array], weights: Iterable[Any], dtype: Any) -> Array:
    """sum_t weight_t feature_t, a new array (p, c), for features (p, c) and weights that are numbers or (c,)."""
    total: Any = 0.0
    for feature, weight in zip(features, weights, strict=True):
        scaled = feature * np.asarray(weight, dtype)
        total = np.add(total, scaled, out=scaled)
    return np.asarray(total)


def pair_with_field(evaluation: Evaluation, pairing: Pairing, block: Block, d: int) -> Array:
    """sum_k w_k atom(phi_i)(x_k) target_k over one block, (p,) or (p, m); a gradient needs a field (c, d)."""
    target: Array = np.ones(len(block.x)) if pairing.target is None else block.field(pairing.target)
    if pairing.weight is not None:
        weight = block.field(pairing.weight)
        target = target * (weight if target.ndim == 1 else weight[:, None])
    if block.scale is not None:
        target = target * (block.scale if target.ndim == 1 else block.scale[:, None])
    target = target.astype(block.dtype, copy=False)
    atom = pairing.atom
    if atom.kind != "gradient":
        return np.asarray(scalar_feature({atom.view: evaluation}, atom, block) @ target, dtype=float)
    if target.ndim != 2 or target.shape[1] != d:
        raise ValueError(
            f"the gradient pairs with a field of vectors of shape (n, {d}); the field has rows of shape "
            f"{target.shape[1:]}"
        )
    partials = (replace(atom, kind="partial", alpha=unit_index(a, d)) for a in range(d))
    parts = [evaluation.feature(partial) @ target[:, a] for a, partial in enumerate(partials)]
    return np.asarray(np.sum(parts, axis=0, dtype=float))
