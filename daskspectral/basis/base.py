"""What a basis of p functions offers: features of a block of points, and sums of products of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.edges import Edge
from daskspectral.basis.evaluation import Block, Evaluation, Mapped, scalar_feature, scalar_pairs
from daskspectral.errors import SmoothnessError
from daskspectral.forms import Atom, AtomProduct
from daskspectral.registry import Registered
from daskspectral.workspace import Workspace

if TYPE_CHECKING:
    from daskspectral.basis.landmark import Landmarks
    from daskspectral.basis.network import NeuralBasis

Array = NDArray[np.floating[Any]]
VALUE = Atom("value")


@dataclass(frozen=True, eq=False)
class Translation:
    """A `basis` of functions g of points x + delta, g(x + delta) = T f(x) + t with `turn` (p, p) and `rest` (p,)."""

    basis: Basis
    turn: Array
    rest: Array

    @classmethod
    def same(cls, basis: Basis) -> Translation:
        """That of functions that move with the points."""
        return cls(basis, np.eye(basis.size), np.zeros(basis.size))

    @property
    def is_same(self) -> bool:
        """Whether the functions move with the points."""
        return not self.rest.any() and np.array_equal(self.turn, np.eye(len(self.rest)))


class GradientSum(Protocol):
    """A basis's own short cut for sum_k <grad phi_i, grad phi_j>(x_k)."""

    def add(self, evaluation: Any) -> None:
        """Add one block."""

    def result(self, gram: Array) -> Array:
        """The matrix (p, p), given the sum of phi phi^T over the same blocks, where the blocks were."""


class GivenFunctions:
    """Functions as estimators take them: a basis, or what becomes one when the data have been seen.

    Examples
    --------
    >>> from daskspectral.basis import Landmarks, MonomialBasis, NeuralBasis
    >>> [given.open_landmarks is None for given in (Landmarks(), MonomialBasis(1, 2))]
    [False, True]
    >>> NeuralBasis((8,)).untrained is None
    False
    """

    @property
    def open_landmarks(self) -> Landmarks | None:
        """The landmarks at which they are to sit, as far as these are known; None for a basis."""
        return None

    @property
    def untrained(self) -> NeuralBasis | None:
        """The functions, where their parameters are still to be trained; else None."""
        return None

    def placed(self, found: Any) -> Any:
        """A basis at landmarks, or `Landmarks`, in the place of the landmarks."""
        return found

    def asking(self, outputs: int) -> Self:
        """The same with a number of outputs of a network, where none is given."""
        return self

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The functions, 0 at the ends of the data, by which its functions are multiplied."""
        return ()

    @property
    def periodic(self) -> bool:
        """Whether periods of columns, in the units of these, are given with the functions."""
        return False

    @property
    def vanishes(self) -> bool:
        """Whether its functions vanish at the ends of the data, so that no constant belongs among them."""
        return bool(self.edges)


class Basis(Registered, GivenFunctions, ABC):
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
    def components(self) -> int:
        """The number k of components of a function's values; features are (p, k c), component by component."""
        return 1

    @property
    def portable(self) -> bool:
        """Whether its functions are evaluated on any device, where the block lies; if not, on the host."""
        return False

    @property
    def local(self) -> NDArray[np.bool_]:
        """Which functions decay away from a centre, so that they may rest on few points, (p,)."""
        return np.zeros(self.size, dtype=bool)

    @property
    def holds_constant(self) -> bool:
        """Whether a constant function is among them, so that an estimator adds none."""
        return False

    def translated(self, delta: Array) -> Translation | None:
        """The basis of the same span of points x + delta, for a vector delta (d,).

        None if there is none: the span of the functions and the constant depends on the origin, or is not known.
        """
        return None

    def in_units(self, units: Array) -> Basis:
        """The same span, of functions in the range of float32 for columns of these magnitudes (d,), if they can be."""
        return self

    @property
    def leads_with_constant(self) -> bool:
        """Whether the first function is 1."""
        return False

    def norm(self, gram: Array) -> Array:
        """K (p, p), by which aᵀ K a is the squared norm of sum a_i φ_i in its function space.

        The mean squares of the functions, the diagonal of their Gram matrix (p, p), where no space is known.
        """
        return np.diag(np.diag(gram))

    @property
    def slope_norm(self) -> float | None:
        """The squared norm of f -> df/dx_a in that space, the same for every direction; None where it is unknown."""
        return None

    def takes(self, d: int) -> bool:
        """Whether points have d columns, as far as is known before the training."""
        return self.dimension == d

    @property
    def core(self) -> Basis:
        """The basis without such functions."""
        return self

    def kills(self, atom: Atom) -> bool:
        """Whether the atom of every basis function is identically zero."""
        return False

    def gradient_sum(self, dtype: Any, workspace: Workspace) -> GradientSum | None:
        """A short cut for the Dirichlet form, or None for the generic sum over coordinates."""
        return None

    def span_gradient(self, coefficients: Array) -> Callable[[Array], Array] | None:
        """A short cut for the gradients (c, m, d) of m functions with coefficients (p, m); None for partial ones."""
        return None

    def condensed(self, coefficients: Array) -> tuple[Basis, Array]:
        """Functions, fewer where they can be, and coefficients of the same combinations (p, k) of these functions."""
        return self, coefficients

    def contraction(
        self, right: Basis, products: Sequence[AtomProduct], dtype: Any, workspace: Workspace
    ) -> Contraction:
        """An accumulator of these products between this basis (left) and another (right)."""
        if self.parts == (self,) and right.parts == (right,):
            return PairContraction(self, right, products, dtype, workspace)
        from daskspectral.basis.concatenated import BlockContraction

        return BlockContraction(self, right, products, dtype, workspace)

    @property
    def parts(self) -> tuple[Basis, ...]:
        """The bases that this one concatenates; itself when it is one."""
        return (self,)

    def values(self, x: Array, dtype: Any = float) -> Array:
        """φ_i(x_k), shape (p, c)."""
        block = Block({"x": x}, np.dtype(dtype), Workspace())
        return self.at(block, [VALUE]).feature(VALUE)

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


def unit_points(c: int, d: int) -> Array:
    """Points (c, d) of the unit cube."""
    return np.repeat(np.linspace(0.25, 0.75, c)[:, None], d, axis=1)


def evaluated(basis: Basis, block: Block, atoms: Sequence[Atom]) -> Evaluation:
    """The basis on a block: on its device, or on the host where its functions cannot be evaluated elsewhere."""
    if block.host is None or basis.portable:
        return basis.at(block, atoms)
    return Mapped(basis.at(block.host, atoms), block.workspace.device.put)


class Contraction(ABC):
    """Sums of products over blocks: one matrix (p, q) for each product.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> basis, block = MonomialBasis(1, 1), Block({"x": np.array([[2.0], [3.0]])}, np.dtype(float), Workspace())
    >>> squares, seen = AtomProduct(VALUE, VALUE), {"x": basis.at(block, [VALUE])}
    >>> pair = basis.contraction(basis, [squares], float, block.workspace)
    >>> pair.add(seen, seen, block)
    >>> pair.result()[squares].tolist()
    [[2.0, 5.0], [5.0, 13.0]]
    """

    @abstractmethod
    def add(self, lefts: Mapping[str, Evaluation], rights: Mapping[str, Evaluation], block: Block) -> None:
        """Add one block, seen through the two bases at each view."""

    @abstractmethod
    def result(self) -> dict[AtomProduct, Array]:
        """The sums so far, in float64, on the host."""


class PairContraction(Contraction):
    """Products of features, one GEMM (or SYRK) each; gradients by the basis's short cut where it has one."""

    def __init__(self, left: Basis, right: Basis, products: Sequence[AtomProduct], dtype: Any, workspace: Workspace):
        shape = (left.size, right.size)
        self.products = tuple(products)
        live = [p for p in products if not (left.kills(p.left) or right.kills(p.right))]
        self.device = workspace.device
        here = not self.device.accelerated or left.portable  # a short cut reads what functions evaluated there keep
        self.gradients: dict[AtomProduct, GradientSum] = {}
        needed: list[AtomProduct] = []
        for product in live:
            can = here and left is right and _is_dirichlet(product)
            shortcut = left.gradient_sum(dtype, workspace) if can else None
            if shortcut is None:
                needed.append(product)
            else:
                self.gradients[product] = shortcut
                needed.append(_gram_of(product))
        self.sums: dict[AtomProduct, Array] = {p: workspace.zeros(shape) for p in dict.fromkeys(needed)}
        self.buffer = workspace.get("product", shape, dtype)
        self.dimension = left.dimension
        self.shape = shape

    def add(self, lefts: Mapping[str, Evaluation], rights: Mapping[str, Evaluation], block: Block) -> None:
        for product, total in self.sums.items():
            for a, b in scalar_pairs(product, block, self.dimension):
                left = scalar_feature(lefts, a, block)
                if product.weight is None and a == b and all(lefts[v] is rights[v] for v in a.views):
                    self.device.add_square(total, left, self.buffer)
                    continue
                right = scalar_feature(rights, b, block)
                if product.weight is not None:
                    weight = block.field(product.weight).astype(left.dtype, copy=False)
                    left, right = (left * weight, right) if block.host is not None else _weighted(left, right, weight)
                np.matmul(left, right.T, out=self.buffer)
                np.add(total, self.buffer, out=total)
        for product, shortcut in self.gradients.items():
            shortcut.add(lefts[product.left.view])

    def result(self) -> dict[AtomProduct, Array]:
        results = dict(self.sums)
        for product, shortcut in self.gradients.items():
            results[product] = shortcut.result(self.sums[_gram_of(product)])
        return {p: self.device.get(results[p]) if p in results else np.zeros(self.shape) for p in self.products}


def _weighted(left: Array, right: Array, weight: Array) -> tuple[Array, Array]:
    """Features (p, c) and (q, c) times the weights (c,) on the left; without rows of weight 0 if most are."""
    kept = weight.nonzero()[0]
    if 2 * len(kept) < len(weight):
        left, right, weight = left[:, kept], right[:, kept], weight[kept]
    return left * weight, right


def _is_dirichlet(product: AtomProduct) -> bool:
    return product.left.kind == "gradient" and product.left == product.right and product.weight is None


def _gram_of(product: AtomProduct) -> AtomProduct:
    value = replace(VALUE, view=product.left.view)
    return AtomProduct(value, value)
