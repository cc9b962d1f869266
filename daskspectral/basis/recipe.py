"""Recipes of bases: what a user gives to an estimator, from which a fit builds a basis once it knows the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.boundary import Boundary
from daskspectral.kernels import Gaussian, Kernel, Periodic
from daskspectral.kernels.names import named
from daskspectral.registry import Parameterised, Registered, Written
from daskspectral.validation import is_word

if TYPE_CHECKING:
    from daskspectral.basis.base import Basis
    from daskspectral.basis.nystrom import Landmarks

Array = NDArray[np.floating[Any]]
Periods = tuple[float | None, ...]


class Sample(Protocol):
    """The data for which a recipe builds a basis: rows of the points of one function space.

    `raw` points have the columns of the data (m, n_features_in), prepared `points` (m, d) those that functions see.
    """

    @property
    def dimension(self) -> int:
        """The number of variables d."""

    @property
    def operator(self) -> Any:
        """The operator that is fitted, None if there is none."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def periods(self) -> Periods | None:
        """The period of each prepared column; None if none has one."""

    @property
    def at_most(self) -> bool:
        """Whether fewer functions than requested are no reason to warn."""

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return the numbers of up to `size` rows drawn uniformly, their raw points and their prepared ones."""

    def given(self, points: Any) -> Array:
        """Return a copy of raw points. Raise ValueError unless they are finite, in the columns of the data."""

    def prepared(self, raw: Array, *, directions: bool = False) -> Array:
        """Return the prepared points of raw ones; `directions` have no origin."""

    def directions(self, points: Array) -> Array:
        """Return the raw directions whose prepared ones are these."""

    def periodic(self, kernel: Kernel) -> Kernel:
        """Return the kernel on columns with the periods of these data. Raise ValueError for other periods."""

    def check(self, rows: Array, points: Array) -> None:
        """Raise an error with the number of the row unless the operator is defined at these points."""

    def boxed(self, recipe: Any, rng: np.random.Generator) -> Basis:
        """Return a Fourier lattice on the box of the rows, if the recipe has none, with its method of summing."""

    def trained(self, recipe: Any, rng: np.random.Generator) -> Basis:
        """Return the trained functions of a network. Raise ValueError if the fit trains none."""

    def centered(self, basis: Basis) -> Basis:
        """Return a basis of the same span for the prepared points, of a basis for points without a center."""


class BasisRecipe(Registered, ABC):
    """How a basis is made of data: what estimators accept as `basis`. A basis is the recipe of itself.

    A subclass needs `cost`, `probe` and `build`.

    Examples
    --------
    >>> from daskspectral.basis import DirichletBasis, BoxBoundary, Landmarks
    >>> recipe = DirichletBasis(Landmarks("gaussian:1.0", 30), BoxBoundary(0, 1))
    >>> recipe.cost(None, 1, 1000), recipe.vanishes
    (30, True)
    """

    trained: ClassVar[bool] = False
    """Whether it is a network that a fit trains on rows of the data."""
    after_pass: ClassVar[bool] = False
    """Whether a kernel is chosen from the moments after the pass, as the spectral density of the coefficients."""

    @abstractmethod
    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        """Return the number of functions for data of this shape, which a plan needs before there is a basis."""

    @abstractmethod
    def probe(self, sample: Sample) -> Basis:
        """Return a basis of the same kind, whose smoothness and symmetries are those of the basis to be built."""

    def resolved(self, sample: Sample, rng: np.random.Generator) -> BasisRecipe:
        """Return the recipe with everything that the data decide filled in: it builds the same basis again."""
        return self

    @abstractmethod
    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        """Return the basis for these data."""

    @property
    def recipe(self) -> BasisRecipe:
        """The recipe with the hyperparameters of this one, or of a basis, that may be chosen anew."""
        return self

    @property
    def landmark_recipe(self) -> Landmarks | None:
        """How landmarks are chosen, None for functions whose landmarks are not chosen."""
        return None

    def with_landmarks(self, landmarks: Landmarks) -> Self:
        """Return the recipe with other landmarks."""
        return self

    def finished(self, basis: Basis) -> Basis:
        """Return the functions made of a basis of the innermost recipe."""
        return basis

    @property
    def holds_constant(self) -> bool:
        """Whether a constant function is among its functions, so that an estimator adds none."""
        return False

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """The boundary functions that multiply its functions."""
        return ()

    @property
    def periodic(self) -> bool:
        """Whether periods of columns, in the units of the data, are part of it."""
        return False

    @property
    def vanishes(self) -> bool:
        """Whether its functions are 0 at the boundary of the data, so that no constant is added."""
        return bool(self.boundaries)


class OpenKernel(Written, Parameterised):
    """Functions of a kernel that may be left to the data: a Gaussian if a search sets its scale."""

    kernel: Kernel | str
    periods: Any

    @property
    def periodic(self) -> bool:
        return self.periods is not None or isinstance(self.kernel, Periodic)

    def set_params(self, **params: Any) -> Self:
        given = params.get("kernel", self.kernel)
        if isinstance(given, str) and any(p.startswith("kernel__") for p in params):
            params = {**params, "kernel": Gaussian("auto") if given == "auto" else named(given)}
        return super().set_params(**params)

    def _name_kernel(self) -> None:
        """Replace the name of a kernel by the kernel. Raise TypeError or ValueError for anything else."""
        if not is_word(self.kernel, "auto"):
            object.__setattr__(self, "kernel", named(self.kernel))
