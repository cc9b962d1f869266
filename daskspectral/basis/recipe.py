"""Recipes of bases: descriptions from which a fit builds a basis of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.boundary import Boundary
from daskspectral.kernels import Gaussian, Kernel, Periodic
from daskspectral.kernels.names import kernel_by_name
from daskspectral.registry import CallRepr, Parameterized, Registered
from daskspectral.validation import is_word

if TYPE_CHECKING:
    from daskspectral.basis.base import Basis
    from daskspectral.basis.nystrom import Landmarks

Array = NDArray[np.floating[Any]]
Periods = tuple[float | None, ...]


class Sample(Protocol):
    """Rows of the points of one function space, for which a recipe builds a basis.

    `raw` points have the data's columns (m, n_features_in), `points` (m, d) the prepared ones.
    """

    @property
    def dimension(self) -> int: ...

    @property
    def operator(self) -> Any: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def periods(self) -> Periods | None:
        """Period of each prepared column, or None."""

    @property
    def at_most(self) -> bool:
        """True if fewer functions than requested cause no warning."""

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return indices, raw and prepared points of up to `size` random rows."""

    def given(self, points: Any) -> Array:
        """Return a copy of raw points, or raise ValueError for invalid ones."""

    def prepared(self, raw: Array, *, directions: bool = False) -> Array:
        """Return raw points in the prepared columns; `directions` are scaled only."""

    def directions(self, points: Array) -> Array:
        """Return prepared directions in the raw columns of X."""

    def periodic(self, kernel: Kernel) -> Kernel:
        """Return the kernel with the periods of the data, or raise ValueError."""

    def check(self, rows: Array, points: Array) -> None:
        """Raise an error with the row number unless the operator is defined here."""

    def boxed(self, recipe: Any, rng: np.random.Generator) -> Basis:
        """Return a Fourier lattice on the box of the recipe or of the rows."""

    def trained(self, recipe: Any, rng: np.random.Generator) -> Basis: ...

    def centered(self, basis: Basis) -> Basis:
        """Return a basis of the same span at centered points."""


class BasisRecipe(Registered, ABC):
    """Construction of a basis from the data: what estimators accept as `basis`.

    A subclass implements `cost`, `probe` and `build`. A basis is the recipe of itself.

    See Also
    --------
    Basis : The functions.
    Landmarks : The default recipe.

    Examples
    --------
    >>> from daskspectral.basis import DirichletBasis, BoxBoundary, Landmarks
    >>> recipe = DirichletBasis(Landmarks("gaussian:1.0", 30), BoxBoundary(0, 1))
    >>> recipe.cost(None, 1, 1000), recipe.vanishes
    (30, True)
    """

    trained: ClassVar[bool] = False
    "True for a network that a fit trains on rows of the data."
    after_pass: ClassVar[bool] = False
    "True if a kernel, the spectral density of the coefficients, is chosen after the pass."

    @abstractmethod
    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        """Return the number of functions for data of this shape, for the plan of a pass."""

    @abstractmethod
    def probe(self, sample: Sample) -> Basis:
        """Return a basis with the smoothness and symmetries of the one to be built."""

    def resolved(self, sample: Sample, rng: np.random.Generator) -> BasisRecipe:
        """Return the recipe with all data-dependent settings, which builds the same basis again."""
        return self

    @abstractmethod
    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        """Return the basis for these data."""

    @property
    def recipe(self) -> BasisRecipe:
        """Recipe with the hyperparameters of this one, or of a basis."""
        return self

    @property
    def landmark_recipe(self) -> Landmarks | None:
        """Recipe of the landmarks; None if the functions have no chosen landmarks."""
        return None

    def with_landmarks(self, landmarks: Landmarks) -> Self:
        """Return the recipe with other landmarks."""
        return self

    def finished(self, basis: Basis) -> Basis:
        """Return the functions of this recipe from those of the innermost one."""
        return basis

    @property
    def holds_constant(self) -> bool:
        """True if the span contains the constant, so that estimators add none."""
        return False

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """Boundary functions that multiply the functions."""
        return ()

    @property
    def periodic(self) -> bool:
        """True if it contains periods of columns, in the units of the data."""
        return False

    @property
    def vanishes(self) -> bool:
        """True if the functions are 0 at the boundary of the data, so that no constant is added."""
        return bool(self.boundaries)


class OpenKernel(CallRepr, Parameterized):
    """Recipe with a kernel that may be "auto"."""

    kernel: Kernel | str
    periods: Any

    @property
    def periodic(self) -> bool:
        return self.periods is not None or isinstance(self.kernel, Periodic)

    def set_params(self, **params: Any) -> Self:
        given = params.get("kernel", self.kernel)
        if isinstance(given, str) and any(p.startswith("kernel__") for p in params):
            params = {**params, "kernel": Gaussian("auto") if given == "auto" else kernel_by_name(given)}
        return super().set_params(**params)

    def _name_kernel(self) -> None:
        """Replace the name of a kernel by the kernel."""
        if not is_word(self.kernel, "auto"):
            object.__setattr__(self, "kernel", kernel_by_name(self.kernel))
