"""What a basis of p functions offers: features of a block of points, and sums of products of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import SmoothnessError
from daskspectral.forms import Atom, Field, Pairing, Product
from daskspectral.kernels.base import unit_index

Array = NDArray[np.floating[Any]]
VALUE = Atom("value")


class Arena:
    """Buffers by name, allocated once at their largest size and handed out as contiguous views."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An uninitialised array of that shape; its contents last until the next call with this name."""
        size = int(np.prod(shape))
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


@dataclass(frozen=True)
class Block:
    """One block of c rows: its fields, and the square roots of the sample weights (c,) where given.

    `points` names the field that holds the points of this view; `owner` keeps the buffers of evaluations that
    live at the same time apart. `shared`, where several bases see the block, keeps what they have in common.
    """

    fields: Mapping[str, Array]
    dtype: Any
    arena: Arena
    scale: Array | None = None
    points: str = "x"
    owner: str = ""
    shared: dict[Any, Any] | None = None

    def field(self, field: Field) -> Array:
        """The values of a field, (c,) or (c, d)."""
        values = self.fields[field.name]
        return values if field.index is None else values[:, field.index]

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
    """A basis on one block. Features come times the square root of the sample weight."""

    @abstractmethod
    def feature(self, atom: Atom) -> Array:
        """One atom (not the gradient) of all functions at all points, (p, c); valid until the next block."""


class GradientSum(Protocol):
    """A basis's own short cut for sum_k <grad phi_i, grad phi_j>(x_k)."""

    def add(self, evaluation: Any) -> None:
        """Add one block."""

    def result(self, gram: Array) -> Array:
        """The matrix (p, p), given the sum of phi phi^T over the same blocks."""


class Basis(ABC):
    """p functions of d variables. Immutable; it travels to the workers once a run."""

    @property
    @abstractmethod
    def size(self) -> int:
        """p."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @property
    @abstractmethod
    def order(self) -> float:
        """Highest order of a bounded derivative."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What the basis is made of, for messages."""

    @abstractmethod
    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        """Evaluate what these atoms need on the points `block.x` (c, d)."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain data and arrays from which `basis_from_state` makes an equal basis."""

    @property
    def local(self) -> NDArray[np.bool_]:
        """Which functions decay away from a centre, and so may rest on few points, (p,)."""
        return np.zeros(self.size, dtype=bool)

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

    def check_order(self, order: int, operator: str) -> None:
        """Raise SmoothnessError where the operator takes a derivative that the basis does not have."""
        if order > self.order:
            raise SmoothnessError(
                f"{operator} takes derivatives of order {order}, and {self.description} has them up to "
                f"order {self.order:g}; use a smoother kernel, such as Gaussian(scale) or "
                f"Matern(nu={order // 2 + 1.5})"
            )


class Contraction(ABC):
    """Sums of products over blocks: one matrix (p, q) a product."""

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
            for a, b in _scalar_pairs(product, self.dimension):
                left = lefts[a.view].feature(a)
                symmetric = a == b and lefts[a.view] is rights[b.view]
                if product.weight is not None:
                    left = left * block.field(product.weight).astype(left.dtype, copy=False)
                    right = rights[b.view].feature(b)
                else:
                    right = left if symmetric else rights[b.view].feature(b)
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


def _scalar_pairs(product: Product, d: int) -> Iterator[tuple[Atom, Atom]]:
    """The product as pairs of scalar atoms: a gradient pair is the sum over the coordinates."""
    if product.left.kind != "gradient":
        yield product.left, product.right
        return
    for axis in range(d):
        alpha = unit_index(axis, d)
        yield (
            replace(product.left, kind="partial", alpha=alpha),
            replace(product.right, kind="partial", alpha=alpha),
        )


def pair_with_field(evaluation: Evaluation, pairing: Pairing, block: Block, d: int) -> Array:
    """sum_k w_k atom(phi_i)(x_k) target_k over one block, (p,) or (p, m); a gradient takes a (c, d) field."""
    target: Array = np.ones(len(block.x)) if pairing.target is None else block.field(pairing.target)
    if pairing.weight is not None:
        weight = block.field(pairing.weight)
        target = target * (weight if target.ndim == 1 else weight[:, None])
    if block.scale is not None:
        target = target * (block.scale if target.ndim == 1 else block.scale[:, None])
    target = target.astype(block.dtype, copy=False)
    atom = pairing.atom
    if atom.kind != "gradient":
        return np.asarray(evaluation.feature(atom) @ target, dtype=float)
    if target.ndim != 2 or target.shape[1] != d:
        raise ValueError(
            f"the gradient pairs with a field of vectors of shape (n, {d}); the field has rows of shape "
            f"{target.shape[1:]}"
        )
    partials = (replace(atom, kind="partial", alpha=unit_index(a, d)) for a in range(d))
    parts = [evaluation.feature(partial) @ target[:, a] for a, partial in enumerate(partials)]
    return np.asarray(np.sum(parts, axis=0, dtype=float))
