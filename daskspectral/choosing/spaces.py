"""Trial and test spaces of an operator: a basis or a recipe; boundaries at which functions vanish."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    BasisRecipe,
    Boundary,
    Concatenated,
    ConstantBasis,
    Landmarks,
)
from daskspectral.basis.recipe import Periods
from daskspectral.basis.role import Role
from daskspectral.choosing.landmarks import MOST_SPANNING, FitSample, LinearDirections, periods_of, sketched
from daskspectral.choosing.lattice import check_modes
from daskspectral.data.source import Source, label_of
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import ReliabilityWarning, warn_user
from daskspectral.kernels import Kernel, Linear
from daskspectral.operators import Operator
from daskspectral.operators.laplacian import periods_of_space
from daskspectral.passes.wide import wide_components
from daskspectral.solve import NormConstrained
from daskspectral.solvers import Solving

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class FunctionSpace:
    """Trial (left) or test (right) functions, as a `recipe`, by their `role`.

    `view` is the field of points at which they are evaluated; `constant` adds the constant function. `count` is their
    number without it, once it is known. `units` (d,) are the magnitudes of columns whose unit is arbitrary.
    """

    role: Role
    view: str
    recipe: BasisRecipe
    constant: bool
    count: int = 0
    units: Array | None = None

    @classmethod
    def of(cls, functions: Any, role: Role, view: str, operator: Operator) -> FunctionSpace:
        """Return the functions of the argument `basis` of an estimator.

        Raises TypeError or ValueError for functions that are invalid for any data.
        """
        name = role.named("basis")
        if not isinstance(functions, BasisRecipe):
            raise TypeError(f"{name} must be one of daskspectral.basis, such as Landmarks(kernel), got {functions!r}")
        recipe = copy.deepcopy(functions).recipe  # kernels are mutable
        landmarks = recipe.landmark_recipe
        constant = operator.annihilates_constants and not recipe.vanishes
        if landmarks is not None and landmarks.linear:
            constant = not (operator.center or recipe.vanishes)  # the span has no origin
        if landmarks is not None and landmarks.constant is not None:
            constant = landmarks.constant
        if landmarks is not None and constant and recipe.vanishes:
            raise ValueError(f"functions of {name} vanish at the boundary of the data: omit constant.")
        if recipe.after_pass and role == Role.TEST:
            raise ValueError("a Fourier basis has the same functions on both sides: omit right_basis.")
        return cls(role, view, recipe, constant)

    @property
    def landmarks(self) -> Landmarks | None:
        """Recipe of the landmarks of a kernel, None for other functions."""
        return self.recipe.landmark_recipe

    @property
    def drawing(self) -> Landmarks:
        landmarks = self.landmarks
        assert landmarks is not None
        return landmarks

    @property
    def automatic(self) -> bool:
        """Return whether the kernel or its scale is chosen from the data."""
        return self.landmarks is not None and self.landmarks.automatic

    @property
    def directions(self) -> LinearDirections | None:
        """Directions as landmarks of the linear kernel, None for other functions."""
        return self.recipe if isinstance(self.recipe, LinearDirections) else None

    @property
    def spanning(self) -> bool:
        """Return whether the functions are all linear functions on the data."""
        return self.directions is not None and not self.directions.components

    @property
    def drawn(self) -> int:
        """Number of rows of the data that become landmarks."""
        return self.count if self.landmarks is not None and self.landmarks.drawn else 0

    @property
    def size(self) -> int:
        return self.count + (self.constant and not self.recipe.holds_constant)

    def probe(self, source: Source, operator: Operator) -> Basis:
        """Return a basis with the smoothness, symmetries and sums of the one that will be built."""
        return self.recipe.probe(self.sample(source, operator))

    def sample(self, source: Source, operator: Operator, **options: Any) -> FitSample:
        periods = self.periods_in(source, operator)
        return FitSample(source, self.view, periods, operator, units=self.units, **options)

    def movable(self, source: Source, operator: Operator) -> bool:
        """Return whether centering the points preserves the span, with the constant or minus their means."""
        basis = self.completed(self.probe(source, operator))
        found = basis.translated(np.ones(basis.dimension))
        return found is not None and not found.is_identity and (operator.center or not found.constant.any())

    def fitted_to(self, source: Source, operator: Operator, components: int = 0) -> FunctionSpace:
        """Return the functions for these data, with their number.

        If their number is open, landmarks of a linear kernel span all its functions, or `components` principal ones.
        Raises ValueError for a lattice of more than three columns, and for an operator without modes.
        """
        dimension, known, recipe = source.dimension_at(self.view), self.landmarks, self.recipe
        if recipe.after_pass:
            check_modes(operator)
        if known is not None and known.linear and known.drawn and known.n_landmarks == "auto" and not recipe.vanishes:
            gaps = source.on_invalid == "pairwise"
            least = dimension if gaps else min(source.n, dimension)
            few, one = sketched(components), operator.solver == NormConstrained()
            if one and components and not gaps and source.n < dimension and source.n <= MOST_SPANNING:
                size = wide_components(components, source.n)
                recipe = LinearDirections(known, size, components, self.constant, of_rows=True)
            elif gaps or least <= MOST_SPANNING:
                recipe = LinearDirections(known, least, 0, self.constant)
            elif few < least and operator.solver.by_norm and self.constant:
                recipe = LinearDirections(known, few, components, self.constant)
        return replace(self, recipe=recipe, count=recipe.cost(operator, dimension, source.n))

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError if the functions do not fit the data, or derivatives of this order."""
        known, dimension = self.probe(source, operator), source.dimension_at(self.view)
        if known.dimension != dimension:
            found = f"the {dimension} columns of {label_of(self.view)}, got functions of {known.dimension}"
            raise ValueError(f"{self.role.named('basis')} must have functions of {found}")
        known.check_order(order, operator.name)
        if self.landmarks is not None and self.landmarks.points is not None:
            self.sample(source, operator).given(self.landmarks.points)
        if source.n < self.drawn and not self.spanning:
            raise ValueError(
                f"X must have at least {self.drawn} rows for its landmarks, got {source.rows}: reduce n_landmarks"
            )

    def choose(
        self, source: Source, rng: np.random.Generator, operator: Operator, **options: Any
    ) -> tuple[Basis, BasisRecipe | None]:
        """Return the basis, and the argument of an estimator that reproduces it, None for a fixed basis.

        The `options` are those of the sample. The operator checks the points of the left functions.
        """
        sample = self.sample(source, operator, checked=self.role == Role.TRIAL, **options)
        recipe = self.recipe.resolved(sample, rng)
        basis = recipe.build(sample, rng)
        if basis.boundaries:
            check_boundaries(basis.boundaries, source, rng, view=self.view)
        if self.directions is not None:  # which depend on the rows
            asked, points = self.directions.asked, basis.landmark_parts[0].landmarks
            recipe = asked if self.of_rows(basis) else asked.closed(Linear(), sample.directions(points))
        return self.completed(basis), None if self.landmarks is None else recipe

    def basis_argument(self, raw: Array, kernel: Kernel, jitter: float) -> BasisRecipe:
        """Return the argument of an estimator for functions of this kernel at the landmarks `raw`."""
        return self.recipe.with_landmarks(self.drawing.closed(kernel, raw, jitter))

    def of_rows(self, basis: Basis) -> bool:
        """Return whether these functions are combinations of the rows, specific to these data."""
        directions = self.directions
        return directions is not None and (directions.components > 0 or basis.landmark_parts[0].size < basis.dimension)

    def periods_in(self, source: Source, operator: Operator) -> Periods | None:
        """Return the period of each prepared column; None if no column is periodic.

        Raises ValueError if two periods differ.
        """
        periods = None if self.landmarks is None else self.landmarks.periods
        given = None if periods is None else periods_of(periods, source, self.view)
        of_space = periods_of_space(operator)
        if given is not None and of_space is not None and of_space != given:
            raise ValueError(f"periods must equal {of_space} of {operator}, got {given}: omit them.")
        return of_space if given is None else given

    def completed(self, basis: Basis) -> Basis:
        """Return the basis with the constant function before it, if that is added."""
        if not self.constant or basis.holds_constant:
            return basis
        return Concatenated((ConstantBasis(basis.dimension), *basis.parts))


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Left and right functions of an operator, with the parameters that an estimator leaves open.

    `right` is only set if the right functions differ from the left ones. With `compares_bases` other families are
    compared with landmarks, but not if landmarks are `given` with options.
    """

    operator: Operator
    left: FunctionSpace
    right: FunctionSpace | None
    components: int
    solver: Solving
    dtype: str = "float64"
    compares_bases: bool = False
    given: bool = False

    @property
    def sides(self) -> tuple[FunctionSpace, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def is_open(self) -> bool:
        """Return whether the functions are completely open, so that other families may participate."""
        landmarks = self.left.landmarks
        open_ = landmarks is not None and landmarks.kernel == "auto" and not self.left.recipe.vanishes
        return open_ and self.right is None and not self.given


# -- functions that vanish at the boundary of the data --------------------------------------------------------------


SAMPLE = 20_000
ROUNDING = 1e-9
MOST_ON_EDGE = 0.05
LARGE = 0.25  # relative to the largest value: a function that vanishes near the data has smaller ones
FEW, GAP = 10, 0.5  # if rows end at the zeros, the nearest one is about ten times as near as the tenth
FEWEST = 100  # rows from which the smallest value is informative


def check_boundaries(boundaries: tuple[Boundary, ...], source: Source, rng: np.random.Generator, *, view: str) -> None:
    """Raise ValueError for a function that does not vanish at the boundary of the data.

    On up to 20 000 rows, it is negative, or 0 at more than a twentieth of the rows, or nowhere below a quarter of its
    largest value. A gap between the last rows and its zeros, wider than that between the last rows and the next
    hundredth of all, causes a ReliabilityWarning. A function that vanishes at only some of the boundaries is not
    detected.
    """
    numbers, x = draw_rows(source, SAMPLE, rng, view=view)
    for boundary in dict.fromkeys(boundaries):
        values, name = boundary.values(x), f"the boundary function {boundary!r}"
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{name} must be finite, got {values[row]} at row {numbers[row]}.")
        largest, least = float(np.abs(values).max()), float(values.min())
        zero = np.abs(values) <= ROUNDING * largest
        beyond = boundary.outside(x) & ~zero
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"the domain of {name} must contain the data, but {np.count_nonzero(beyond)} of {len(x)} rows are "
                f"outside, such as row {numbers[row]} at {x[row]}. Enlarge it, or drop these rows."
            )
        if zero.mean() > MOST_ON_EDGE or (len(x) >= FEWEST and least > LARGE * largest):
            raise ValueError(
                f"{name} must be 0 at the boundary of the data and positive inside, got values from {least:.3g} to "
                f"{largest:.3g}, 0 at {np.count_nonzero(zero)} of {len(x)} rows."
            )
        few = max(FEW, len(x) // 100)
        for distance in boundary.sides(x).T if len(x) > few else ():
            nearest, near = (float(np.partition(distance, k)[k]) for k in (0, few))
            if nearest > GAP * near:
                warn_user(
                    f"the zeros of {name} are {nearest:.3g} outside of the data, so that eigenvalues are too small. "
                    "Move them to the boundary of the data",
                    ReliabilityWarning,
                )
                break
