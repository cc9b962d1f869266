"""What a basis of p functions offers: features of a block of points, and sums of products of features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.accumulators import Accumulator, GradientSum, MatrixSums
from daskspectral.basis.boundary import Box
from daskspectral.basis.evaluation import VALUE, Block, Evaluation
from daskspectral.basis.recipe import BasisRecipe, Sample
from daskspectral.devices import HOST, Device
from daskspectral.errors import SmoothnessError
from daskspectral.forms import Atom, Forms, Functionals
from daskspectral.modes.sums import SumCost
from daskspectral.workspace import Workspace

if TYPE_CHECKING:
    from daskspectral.basis.landmark import LandmarkBasis

Array = NDArray[np.floating[Any]]
DENSE_ROWS = 2048  # enough for adding products of p x p to cost little; panels are cut for the cache


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


class Basis(BasisRecipe):
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

    cheap_sums: ClassVar[bool] = False
    """Whether its sums cost less than other sums over all rows, which are then left out or taken of some rows."""

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

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return self.size

    def probe(self, sample: Sample) -> Basis:
        return self

    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        return sample.centered(self)

    @property
    def landmark_parts(self) -> tuple[LandmarkBasis, ...]:
        """The parts that are functions of a kernel at landmarks, without boundary functions.

        Examples
        --------
        >>> from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
        >>> from daskspectral.kernels import Gaussian
        >>> basis = Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(1.0), np.array([[0.0], [1.0]]))))
        >>> [part.size for part in basis.landmark_parts]
        [2]
        """
        return ()

    def kills(self, atom: Atom) -> bool:
        """Whether the atom of every basis function is identically zero."""
        return False

    def gradient_sum(self, dtype: Any, workspace: Workspace) -> GradientSum | None:
        """A short cut for the Dirichlet form, or None for the generic sum over coordinates."""
        return None

    def evaluator(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array] | None:
        """Return a short cut x (c, d) -> (c, k) to k functions with coefficients (p, k); None if there is none."""
        return None

    def span_gradient(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array] | None:
        """Return a short cut x (c, d) -> (c, k, d) to their gradients; None if there is none."""
        return None

    def condensed(self, coefficients: Array) -> tuple[Basis, Array]:
        """Functions, fewer where they can be, and coefficients of the same combinations (p, k) of these functions."""
        return self, coefficients

    def accumulator(
        self, right: Basis, forms: Forms, functionals: Functionals, *, dtype: Any, workspace: Workspace
    ) -> Accumulator:
        """Return an accumulator of forms between this basis (left) and another (right), and of functionals.

        The form named `gram` is summed between left and left functions, `right_gram` between right and right, every
        other form between left and right; the functional `right_first` of right functions, every other one of left
        functions.
        """
        return MatrixSums(self, right, forms, functionals, dtype, workspace)

    def matrices(self, forms: Forms, functionals: Functionals, sums: Mapping[str, Array]) -> dict[str, Array]:
        """Return the sums of forms and functionals, and all others, from what an accumulator returns."""
        return dict(sums)

    def sum_cost(self, forms: Forms, functionals: Functionals, device: str) -> SumCost | None:
        """Return the cost of its sums, for the plan of a pass; None for sums of matrices of the forms."""
        return None

    @property
    def block_rows(self) -> int:
        """The rows of a block that is summed or evaluated at once."""
        return DENSE_ROWS

    @property
    def domain(self) -> Box | None:
        """The box of points outside of which the functions say nothing of the data; None if there is no such box."""
        return None

    def difference(self, other: Basis) -> str:
        """Return in words how two bases of one kind differ that could be equal; "" otherwise."""
        return ""

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
        return "use functions that have them, such as RandomFourierFeatures, MonomialBasis or a smooth kernel"


def unit_points(c: int, d: int) -> Array:
    """Points (c, d) of the unit cube."""
    return np.repeat(np.linspace(0.25, 0.75, c)[:, None], d, axis=1)
