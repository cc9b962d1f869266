"""The trial or test space of an operator: a basis, or landmarks that a fit draws; boundaries where functions vanish."""

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

    `view` is the field of points on which they are evaluated; `constant` adds the constant function. `count` is their
    number without it, once it is known. `units` (d,) are the magnitudes of columns whose unit does not matter.
    """

    role: Role
    view: str
    recipe: BasisRecipe
    constant: bool
    count: int = 0
    units: Array | None = None

    @classmethod
    def of(cls, functions: Any, role: Role, view: str, operator: Operator) -> FunctionSpace:
        """Return the functions that an estimator is given as its argument `basis`.

        Raise TypeError or ValueError for what cannot work with any data.
        """
        name = role.named("basis")
        if not isinstance(functions, BasisRecipe):
            raise TypeError(f"{name} must be one of daskspectral.basis, such as Landmarks(kernel); got {functions!r}")
        recipe = copy.deepcopy(functions).recipe  # kernels can be changed in place
        landmarks = recipe.landmark_recipe
        constant = operator.annihilates_constants and not recipe.vanishes
        if landmarks is not None and landmarks.linear:
            constant = not (operator.center or recipe.vanishes)  # whose span has no origin
        if landmarks is not None and landmarks.constant is not None:
            constant = landmarks.constant
        if landmarks is not None and constant and recipe.vanishes:
            raise ValueError(f"functions of {name} vanish at the ends of the data. Leave constant out.")
        if recipe.after_pass and role == Role.TEST:
            raise ValueError("the functions of a Fourier lattice are the same on both sides. Leave right_basis out.")
        return cls(role, view, recipe, constant)

    @property
    def landmarks(self) -> Landmarks | None:
        """How the landmarks of a kernel are drawn, None for other functions."""
        return self.recipe.landmark_recipe

    @property
    def drawing(self) -> Landmarks:
        """The same, of functions that are those of a kernel at landmarks."""
        own = self.landmarks
        assert own is not None
        return own

    @property
    def automatic(self) -> bool:
        """Whether the data decide the kernel or its scale."""
        return self.landmarks is not None and self.landmarks.automatic

    @property
    def directions(self) -> LinearDirections | None:
        """Directions as landmarks of the linear kernel, None for other functions."""
        return self.recipe if isinstance(self.recipe, LinearDirections) else None

    @property
    def spanning(self) -> bool:
        """Whether the functions are all linear ones on the data."""
        return self.directions is not None and not self.directions.components

    @property
    def drawn(self) -> int:
        """The number of rows of the data that become landmarks."""
        return self.count if self.landmarks is not None and self.landmarks.drawn else 0

    @property
    def size(self) -> int:
        """The number of functions wanted, known before landmarks are drawn."""
        return self.count + (self.constant and not self.recipe.holds_constant)

    def probe(self, source: Source, operator: Operator) -> Basis:
        """Return a basis of the kind that is to be built, whose smoothness, symmetries and sums are the same."""
        return self.recipe.probe(self.sample(source, operator))

    def sample(self, source: Source, operator: Operator, **options: Any) -> FitSample:
        """Return the rows of a source, as the recipe draws them."""
        periods = self.periods_in(source, operator)
        return FitSample(source, self.view, periods, operator, units=self.units, **options)

    def movable(self, source: Source, operator: Operator) -> bool:
        """Whether the functions of points about any center span the same, with the constant or minus their means."""
        basis = self.completed(self.probe(source, operator))
        found = basis.translated(np.ones(basis.dimension))
        return found is not None and not found.is_same and (operator.center or not found.rest.any())

    def fitted_to(self, source: Source, operator: Operator, components: int = 0) -> FunctionSpace:
        """Return the same for these data, with the number of functions.

        Landmarks of a linear kernel, if their number is open, are as many as span all its functions, or `components`
        principal ones. Raise ValueError for a lattice of more than three columns, and for an operator without modes.
        """
        dimension, own, recipe = source.dimension_at(self.view), self.landmarks, self.recipe
        if recipe.after_pass:
            check_modes(operator, dimension)
        if own is not None and own.linear and own.drawn and own.n_landmarks == "auto" and not recipe.vanishes:
            gaps = source.on_invalid == "pairwise"
            least = dimension if gaps else min(source.n, dimension)
            few, one = sketched(components), operator.solver == NormConstrained()
            if one and components and not gaps and source.n < dimension and source.n <= MOST_SPANNING:
                size = wide_components(components, source.n)
                recipe = LinearDirections(own, size, components, self.constant, of_rows=True)
            elif gaps or least <= MOST_SPANNING:
                recipe = LinearDirections(own, least, 0, self.constant)
            elif few < least and operator.solver.by_norm and self.constant:
                recipe = LinearDirections(own, few, components, self.constant)
        return replace(self, recipe=recipe, count=recipe.cost(operator, dimension, source.n))

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError if the functions do not fit the data, or the operator with derivatives of this order."""
        known, dimension = self.probe(source, operator), source.dimension_at(self.view)
        if known.dimension != dimension:
            found = f"functions of {known.dimension} variables, and {label_of(self.view)} has {dimension} columns"
            raise ValueError(f"{self.role.named('basis')} has {found}")
        known.check_order(order, operator.name)
        if self.landmarks is not None and self.landmarks.points is not None:
            self.sample(source, operator).given(self.landmarks.points)
        if source.n < self.drawn and not self.spanning:
            raise ValueError(f"{self.drawn} landmarks are drawn from X, which has {source.rows}: lower their count")

    def choose(
        self, source: Source, rng: np.random.Generator, operator: Operator, **options: Any
    ) -> tuple[Basis, BasisRecipe | None]:
        """Return the basis, and the argument of an estimator that gives it again, None for a basis that is given.

        The `options` are those of the sample. The points of the left functions are checked by the operator.
        """
        sample = self.sample(source, operator, checked=self.role == Role.TRIAL, **options)
        recipe = self.recipe.resolved(sample, rng)
        basis = recipe.build(sample, rng)
        if basis.boundaries:
            check_boundaries(basis.boundaries, source, rng, view=self.view)
        if self.directions is not None:  # to which other rows may need others
            asked, points = self.directions.asked, basis.landmark_parts[0].landmarks
            recipe = asked if self.of_rows(basis) else asked.closed(Linear(), sample.directions(points))
        return self.completed(basis), None if self.landmarks is None else recipe

    def given_at(self, raw: Array, kernel: Kernel, jitter: float) -> BasisRecipe:
        """Return the argument of an estimator that gives functions of this kernel at the landmarks `raw` again."""
        return self.recipe.with_landmarks(self.drawing.closed(kernel, raw, jitter))

    def of_rows(self, basis: Basis) -> bool:
        """Return whether these chosen functions are combinations of the rows, which other rows do not share."""
        own = self.directions
        return own is not None and (own.components > 0 or basis.landmark_parts[0].size < basis.dimension)

    def periods_in(self, source: Source, operator: Operator) -> Periods | None:
        """Return the period of each prepared column; None if none has one.

        Raise ValueError for two that differ.
        """
        own = None if self.landmarks is None else self.landmarks.periods
        given = None if own is None else periods_of(own, source, self.view)
        of_space = periods_of_space(operator)
        if given is not None and of_space is not None and of_space != given:
            raise ValueError(f"{operator} has the periods {of_space}, got periods={given}. Give them once.")
        return of_space if given is None else given

    def completed(self, basis: Basis) -> Basis:
        """Return the basis with the constant function before it, if that is added."""
        if not self.constant or basis.holds_constant:
            return basis
        return Concatenated((ConstantBasis(basis.dimension), *basis.parts))


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The left and right functions for an operator, as the parameters of an estimator leave them to the data.

    `right` is None where the right functions are the left ones. With `compares_bases` functions of other kinds are
    compared with landmarks, and none if landmarks are `given` with options of their own.
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
        """The left functions, and the right ones where they differ."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def alone(self) -> bool:
        """Whether nothing of the functions is given, so that those of other kinds may take part."""
        own = self.left.landmarks
        open_ = own is not None and own.kernel == "auto" and not self.left.recipe.vanishes
        return open_ and self.right is None and not self.given


# -- functions that are to vanish at the ends of the data --------------------------------------------------------------


SAMPLE = 20_000
ROUNDING = 1e-9
MOST_ON_EDGE = 0.05
LARGE = 0.25  # of the largest value: no function that vanishes near the data is nowhere smaller
FEW, GAP = 10, 0.5  # rows that end at the zeros come ten times nearer than the tenth of them
FEWEST = 100  # rows from which the smallest value says something


def check_boundaries(boundaries: tuple[Boundary, ...], source: Source, rng: np.random.Generator, *, view: str) -> None:
    """Raise ValueError for a function that does not vanish where the data end, on up to 20 000 rows.

    It is negative, or 0 on more than a twentieth of the rows, or nowhere below a quarter of its largest value. A gap
    between the last rows and its zeros, wider than that between the last rows and the next hundredth of all, gives a
    ReliabilityWarning. A function that vanishes at some ends of the data alone cannot be told from one that is meant
    so.
    """
    numbers, x = draw_rows(source, SAMPLE, rng, view=view)
    for boundary in dict.fromkeys(boundaries):
        values, name = boundary.values(x), f"the boundary function {boundary!r}"
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{name} is {values[row]} at row {numbers[row]} of the data.")
        largest, least = float(np.abs(values).max()), float(values.min())
        zero = np.abs(values) <= ROUNDING * largest
        beyond = boundary.outside(x) & ~zero
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"{name} must hold the data, and {np.count_nonzero(beyond)} of {len(x)} rows lie outside its domain, "
                f"row {numbers[row]} at {x[row]} the first of them. Widen it, or leave such rows out."
            )
        if zero.mean() > MOST_ON_EDGE or (len(x) >= FEWEST and least > LARGE * largest):
            raise ValueError(
                f"{name} must be 0 where the data end and positive elsewhere, and goes from {least:.3g} to "
                f"{largest:.3g}, 0 on {np.count_nonzero(zero)} of {len(x)} rows."
            )
        few = max(FEW, len(x) // 100)
        for distance in boundary.sides(x).T if len(x) > few else ():
            nearest, near = (float(np.partition(distance, k)[k]) for k in (0, few))
            if nearest > GAP * near:
                warn_user(
                    f"the zeros of {name} lie beyond the data, with a gap of {nearest:.3g} without rows, across which "
                    "functions need no slope: eigenvalues come out too small. Move the zeros to where the data end",
                    ReliabilityWarning,
                )
                break
