"""Interface of bases: features of a block of points, and sums of products of features."""

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
DENSE_ROWS = 2048  # enough that adding products (p, p) is cheap; panels fit the cache


@dataclass(frozen=True, eq=False)
class Translation:
    """Functions g(x + delta) = T f(x) + t of the functions f of another basis, T = `matrix`, t = `constant`."""

    basis: Basis
    matrix: Array
    constant: Array

    @classmethod
    def identity(cls, basis: Basis) -> Translation:
        """Return the identity, for functions that move with the points."""
        return cls(basis, np.eye(basis.size), np.zeros(basis.size))

    @property
    def is_identity(self) -> bool:
        """True for the identity."""
        return not self.constant.any() and np.array_equal(self.matrix, np.eye(len(self.constant)))


class Basis(BasisRecipe):
    """Basis of p functions of d variables; immutable, sent to the workers once per run.

    See Also
    --------
    BasisRecipe : Construction of a basis from the data.
    daskspectral.testing.check_basis : Test of a user-defined basis.

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
    """True if its sums are cheaper than other sums over all rows, which are then skipped or subsampled."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of functions p."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of variables d."""

    @property
    @abstractmethod
    def order(self) -> float:
        """Highest order of a bounded derivative."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Description of the basis for messages, a noun phrase."""

    @abstractmethod
    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        """Return an `Evaluation` at the points `block.x` (c, d), for the features (p, c) of these atoms."""

    @property
    def components(self) -> int:
        """Number of components k of a value; features are (p, k c), component by component."""
        return 1

    @property
    def portable(self) -> bool:
        """True if the functions are evaluated on the block's device; otherwise on the host."""
        return False

    @property
    def local(self) -> NDArray[np.bool_]:
        """Mask (p,) of functions that decay away from a center, and so may be supported by few points."""
        return np.zeros(self.size, dtype=bool)

    def translated(self, delta: Array) -> Translation | None:
        """Return the basis of the same span at points x + delta (d,), or None if this is not known.

        The span includes the constant.
        """
        return None

    def in_units(self, units: Array) -> Basis:
        """Return the same span by functions in float32's range, if possible; `units` (d,) are column magnitudes."""
        return self

    @property
    def leads_with_constant(self) -> bool:
        """True if the first function is 1."""
        return False

    def norm(self, gram: Array) -> Array:
        """Return K (p, p) of the squared norm aᵀ K a of sum a_i φ_i; by default the diagonal of the Gram matrix."""
        return np.diag(np.diag(gram))

    @property
    def slope_norm(self) -> float | None:
        """Squared norm of f -> df/dx_a in the function space of `norm`, for any a; None if unknown."""
        return None

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return self.size

    def probe(self, sample: Sample) -> Basis:
        return self

    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        return sample.centered(self)

    @property
    def landmark_parts(self) -> tuple[LandmarkBasis, ...]:
        """Kernel functions at landmarks among its parts, without the boundary functions that multiply them.

        Examples
        --------
        >>> from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
        >>> from daskspectral.kernels import Gaussian
        >>> basis = Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(1.0), np.array([[0.0], [1.0]]))))
        >>> [part.size for part in basis.landmark_parts]
        [2]
        """
        return ()

    def is_zero(self, atom: Atom) -> bool:
        """Return whether the atom of every function is identically zero."""
        return False

    def gradient_sum(self, out: Array, dtype: Any, workspace: Workspace) -> GradientSum | None:
        """Return a fast sum of the Dirichlet form in `out` (p, p), or None for the sum over coordinates."""
        return None

    def evaluator(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array] | None:
        """Return a fast evaluator x (c, d) -> (c, k) for coefficients (p, k), or None."""
        return None

    def span_gradient(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array] | None:
        """Return a fast evaluator of gradients, x (c, d) -> (c, k, d), or None."""
        return None

    def condensed(self, coefficients: Array) -> tuple[Basis, Array]:
        """Return an equivalent, smaller basis and coefficients of the combinations (p, k) in it."""
        return self, coefficients

    def accumulator(
        self, right: Basis, forms: Forms, functionals: Functionals, *, dtype: Any, workspace: Workspace
    ) -> Accumulator:
        """Return an accumulator of forms and functionals, with `right` as the test functions.

        The form `gram` pairs trial with trial functions, `right_gram` test with test, all others trial with test. The
        functional `right_first` is of test functions, all others of trial functions.
        """
        return MatrixSums(self, right, forms, functionals, dtype, workspace)

    def matrices(self, forms: Forms, functionals: Functionals, sums: Mapping[str, Array]) -> dict[str, Array]:
        """Return the matrices of forms and functionals from the sums that an accumulator returns."""
        return dict(sums)

    def sum_cost(self, forms: Forms, functionals: Functionals, device: str) -> SumCost | None:
        """Return the cost of the sums, for plans; None if they are the matrices of the forms."""
        return None

    @property
    def block_rows(self) -> int:
        """Number of rows that are summed or evaluated at once."""
        return DENSE_ROWS

    @property
    def domain(self) -> Box | None:
        """Box outside of which the functions do not represent the data, or None."""
        return None

    def difference(self, other: Basis) -> str:
        """Return the parameters in which two lattices of frequencies differ, as text; "" for other bases."""
        return ""

    @property
    def parts(self) -> tuple[Basis, ...]:
        """Concatenated bases; otherwise the basis itself."""
        return (self,)

    def values(self, x: Array, dtype: Any = float) -> Array:
        """Return the values φ_i(x_k), (p, c), at points x (c, d)."""
        block = Block({"x": x}, np.dtype(dtype), Workspace())
        return self.at(block, [VALUE]).feature(VALUE)

    def check_order(self, order: int, operator: str) -> None:
        """Raise SmoothnessError, which names the `operator`, without derivatives of this order."""
        if order > self.order:
            lacking = self
            while (part := next(p for p in lacking.parts if order > p.order)) is not lacking:
                lacking = part
            raise SmoothnessError(
                f"{operator} requires derivatives of order {order}, but {self.description} has them up to "
                f"order {self.order:g}. {lacking.remedy(order)}"
            )

    def remedy(self, order: int) -> str:
        """Return advice, a sentence, for a basis without derivatives of this order."""
        return "Use smoother functions, such as RandomFourierFeatures, MonomialBasis or those of a smooth kernel."


def unit_points(c: int, d: int) -> Array:
    """Return points (c, d) of the unit cube."""
    return np.repeat(np.linspace(0.25, 0.75, c)[:, None], d, axis=1)
