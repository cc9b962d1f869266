"""The left or the right functions of an operator: a basis, or landmarks that a fit draws; where they vanish."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    Concatenated,
    ConstantBasis,
    FourierLattice,
    GivenFunctions,
    LandmarkBasis,
    Landmarks,
    as_lattice,
)
from daskspectral.basis.edges import Edge
from daskspectral.choosing.landmarks import (
    MOST_SPANNING,
    Periods,
    choose_landmarks,
    given_points,
    leading_landmarks,
    moved,
    periodic,
    periods_of,
    sketched,
    spanning_landmarks,
)
from daskspectral.choosing.lattice import boxed, check_lattice, check_prior
from daskspectral.data.source import Source, label_of
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import TrustWarning, renumbered, warn_user
from daskspectral.kernels import Gaussian, Kernel, Linear, Periodic
from daskspectral.moments.folds import FoldRule
from daskspectral.operators import Operator
from daskspectral.solvers import Solving

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Side:
    """The left or the right `functions`; `prefix` begins the names of their attributes, "" or "right_".

    `view` is the field of points on which they are evaluated; `constant` adds the constant function. The landmarks of a
    linear kernel that are `spanning` give all its functions; those that are `leading` so many principal components.
    `units` (d,) are the magnitudes of columns whose unit does not matter.
    """

    prefix: str
    view: str
    functions: GivenFunctions
    constant: bool
    spanning: bool = False
    leading: int = 0
    units: Array | None = None

    @classmethod
    def of(cls, functions: Any, prefix: str, view: str, operator: Operator, outputs: int) -> Side:
        """The functions that an estimator is given as its argument `basis`; networks have so many `outputs`.

        Raises TypeError or ValueError for what cannot work with any data.
        """
        name = f"{prefix}basis"
        functions = copy.deepcopy(functions)  # kernels can be changed in place
        if not isinstance(functions, GivenFunctions):
            raise TypeError(f"{name} must be one of daskspectral.basis, such as Landmarks(kernel); got {functions!r}")
        landmarks, lattice = functions.open_landmarks, as_lattice(functions)
        constant = operator.annihilates_constants and not functions.vanishes
        if landmarks is not None and type(landmarks.kernel) is Linear and landmarks.periods is None:
            constant = not (operator.center or functions.vanishes)  # whose span has no origin
        if landmarks is not None and landmarks.constant is not None:
            constant = landmarks.constant
        if landmarks is not None and constant and functions.vanishes:
            raise ValueError(f"functions of {name} vanish at the ends of the data. Leave constant out.")
        if lattice is not None:
            check_prior(lattice)
        if lattice is not None and prefix:
            raise ValueError("the functions of a Fourier lattice are the same on both sides. Leave right_basis out.")
        return cls(prefix, view, functions.asking(outputs), constant)

    @property
    def landmarks(self) -> Landmarks | None:
        """How the landmarks of a kernel are drawn, None for a basis that is given."""
        return self.functions.open_landmarks

    @property
    def drawing(self) -> Landmarks:
        """The same, of functions that are those of a kernel at landmarks."""
        own = self.landmarks
        assert own is not None
        return own

    @property
    def basis(self) -> Basis | None:
        """The basis that is given, None for a kernel at landmarks."""
        return cast(Basis, self.functions) if self.landmarks is None else None

    @property
    def lattice(self) -> FourierLattice | None:
        """The lattice on which modes are summed; None for other functions."""
        return as_lattice(self.functions)

    @property
    def has_periods(self) -> bool:
        """Whether the periods of some columns are given with the functions."""
        return (self.landmarks or self.functions).periodic

    @property
    def automatic(self) -> bool:
        """Whether the data decide the kernel or its scale."""
        return self.landmarks is not None and self.landmarks.automatic

    def movable(self, dimension: int, operator: Operator) -> bool:
        """Whether the functions of points about any center span the same, with the constant or less their means."""
        own, known = self.landmarks, self.basis
        if self.functions.untrained is not None:
            return False
        if own is not None:
            if type(own.kernel) is not Linear or own.periods is not None or self.functions.vanishes:
                return False
            known = LandmarkBasis(own.kernel, np.ones((1, dimension)))
        assert known is not None
        found = self.completed(known).translated(np.ones(dimension)) if known.takes(dimension) else None
        return found is not None and not found.is_same and (operator.center or not found.rest.any())

    @property
    def drawn(self) -> int:
        """The number of rows of the data that become landmarks."""
        return int(self.landmarks.count) if self.landmarks is not None and self.landmarks.drawn else 0

    @property
    def size(self) -> int:
        """The number of functions wanted, known before landmarks are drawn."""
        known = self.basis
        if known is not None:
            return known.size + (self.constant and not known.holds_constant)
        return (self.drawn or len(self.drawing.points)) + self.constant

    def fitted_to(self, count: int, source: Source, operator: Operator, components: int = 0) -> Side:
        """The same for these data: a lattice of so many variables; `count` landmarks if their number is open.

        Of a linear kernel as many as span all its functions, or so many principal `components`. Raises ValueError for a
        lattice of more than three columns, and for an operator without modes.
        """
        dimension, lattice, own = source.dimension_at(self.view), self.lattice, self.landmarks
        if lattice is not None:
            check_lattice(lattice, operator, dimension)
            return replace(self, functions=lattice.on_box(dimension, None, self.periods_in(source, operator), source.n))
        if own is None or own.count != "auto":
            return self
        linear = own.drawn and type(own.kernel) is Linear and own.periods is None and not self.functions.vanishes
        gaps = source.on_invalid == "pairwise"
        least = dimension if gaps else min(source.n, dimension)
        spanning = linear and (gaps or least <= MOST_SPANNING)
        few = linear and not spanning and sketched(components) < least
        leading = components if few and operator.solver.by_norm and self.constant else 0
        count = least if spanning else sketched(leading) if leading else min(count, own.sample or count)
        functions = self.functions.placed(replace(own, count=count))
        return replace(self, functions=functions, spanning=spanning, leading=leading)

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError where the functions do not fit the data, or the operator with derivatives of this order."""
        dimension, known = source.dimension_at(self.view), self.basis
        if known is not None:
            if not known.takes(dimension):
                raise ValueError(
                    f"{self.prefix}basis has functions of {known.dimension} variables, and {label_of(self.view)} has "
                    f"{dimension} columns"
                )
            known.check_order(order, operator.name)
            return
        self.at(LandmarkBasis(self.kernel(operator, source), np.zeros((1, dimension)))).check_order(
            order, operator.name
        )
        given_points(self.drawing, source, self.view)
        if source.n < self.drawn and not self.spanning:
            raise ValueError(f"{self.drawn} landmarks are drawn from X, which has {source.rows}: lower their count")

    def choose(
        self,
        source: Source,
        rng: np.random.Generator,
        operator: Operator,
        *,
        at_most: bool = False,
        fold_rule: FoldRule | None = None,
    ) -> tuple[Basis, GivenFunctions | None]:
        """The basis, and the argument of an estimator that gives it again, None for a basis that is given.

        Fewer landmarks than their count are no warning where this is `at_most`. Principal components are found with the
        folds of the rows, by the `fold_rule`.
        """
        basis, again, preparation = self.basis, None, source.preparations[self.view]
        if basis is not None and preparation.mean is not None and preparation.scale is None:
            found = basis.translated(-preparation.mean)
            assert found is not None
            basis = found.basis
        if basis is not None and self.units is not None:
            basis = basis.in_units(self.units)
        if self.lattice is not None:
            basis = boxed(self.lattice, source, operator, rng, periods=self.periods_in(source, operator))
        elif basis is None:
            basis, again = self._at_landmarks(source, rng, operator, at_most, fold_rule)
        if basis.edges:
            check_edges(basis.edges, source, rng, view=self.view)
        return self.completed(basis), again

    def _at_landmarks(
        self,
        source: Source,
        rng: np.random.Generator,
        operator: Operator,
        at_most: bool,
        fold_rule: FoldRule | None,
    ) -> tuple[Basis, GivenFunctions]:
        own = self.drawing
        if self.spanning:
            units = None if operator.solver.by_norm else self.units
            found = spanning_landmarks(source, view=self.view, centred=self.constant, units=units)
        elif self.leading:
            found = leading_landmarks(source, rng, self.leading, fold_rule, view=self.view)
        else:
            wanted = replace(own, kernel=self.kernel(operator, source))
            found = choose_landmarks(source, wanted, rng, view=self.view, at_most=at_most)
        rows = found.rows
        if rows is not None and not self.prefix:
            with renumbered(lambda k: rows[k]):
                operator.check_points(found.points)
        spread = 0.0 if isinstance(own.spread, str) else own.spread
        found = replace(found, points=moved(found.points, found.kernel, spread))
        basis = self.at(found.basis)
        if self.leading or (self.spanning and basis.size < basis.dimension):
            return basis, self.functions.placed(replace(own, count="auto"))  # as other rows need others
        return basis, self.given_at(found.raw, found.kernel, spread)

    def at(self, basis: LandmarkBasis) -> Basis:
        """Functions at landmarks as they are used: within a vanishing basis where one is asked for."""
        found: Basis = self.functions.placed(basis)
        return found

    def given_at(self, raw: Array, kernel: Kernel, spread: float) -> GivenFunctions:
        """The argument of an estimator that gives functions of this kernel at the landmarks `raw` again."""
        if isinstance(kernel, Periodic) and not isinstance(self.drawing.kernel, Periodic):
            kernel = kernel.kernel  # without the periods that are added
        kernel = copy.deepcopy(kernel)  # one that is changed in place changes no fitted model
        found = replace(self.drawing, kernel=kernel, points=raw, count=len(raw), spread=spread)
        again: GivenFunctions = self.functions.placed(found)
        return again

    def of_rows(self, basis: Basis) -> bool:
        """Whether these chosen functions are combinations of the rows, which other rows do not share."""
        return self.leading > 0 or (self.spanning and basis.size - self.constant < basis.dimension)

    def periods_in(self, source: Source, operator: Operator) -> Periods | None:
        """The period of each prepared column; None where none has one.

        Raises ValueError for two that differ.
        """
        own = None if self.landmarks is None else self.landmarks.periods
        given = None if own is None else periods_of(own, source, self.view)
        if given is not None and operator.periods is not None and operator.periods != given:
            raise ValueError(f"{operator} has the periods {operator.periods}, got periods={given}. Give them once.")
        return operator.periods if given is None else given

    def kernel(self, operator: Operator, source: Source) -> Kernel:
        """The kernel, periodic where the columns or the operator's manifold are; one that is open stands for others."""
        own, periods = self.drawing.kernel, self.periods_in(source, operator)
        whose = f"{operator} has" if self.drawing.periods is None else "periods= asks for"
        return periodic(own if isinstance(own, Kernel) else Gaussian("auto"), periods, whose)

    def completed(self, basis: Basis) -> Basis:
        """The basis with the constant function before it, where that is added."""
        if not self.constant or basis.holds_constant:
            return basis
        return Concatenated((ConstantBasis(basis.dimension), *basis.parts))


@dataclass(frozen=True, eq=False)
class Open:
    """The left and right functions for an operator, as the parameters of an estimator leave them to the data.

    `right` is None where the right functions are the left ones. With `compares_bases` functions of other kinds are
    compared with landmarks, and none if landmarks are `given` with options of their own.
    """

    operator: Operator
    left: Side
    right: Side | None
    components: int
    solver: Solving
    dtype: str = "float64"
    compares_bases: bool = False
    given: bool = False

    @property
    def sides(self) -> tuple[Side, ...]:
        """The left functions, and the right ones where they differ."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def judge(self) -> Operator:
        """The operator by which solutions are compared, or itself."""
        return self.operator.validation_operator or self.operator

    @property
    def alone(self) -> bool:
        """Whether nothing of the functions is given, so that those of other kinds may take part."""
        own = self.left.landmarks
        open_ = own is not None and own.kernel == "auto" and not self.left.functions.vanishes
        return open_ and self.right is None and not self.given


# -- functions that are to vanish at the ends of the data --------------------------------------------------------------


SAMPLE = 20_000
ROUNDING = 1e-9
MOST_ON_EDGE = 0.05
LARGE = 0.25  # of the largest value: no function that vanishes near the data is nowhere smaller
FEW, GAP = 10, 0.5  # rows that end at the zeros come ten times nearer than the tenth of them
FEWEST = 100  # rows from which the smallest value says something


def check_edges(edges: tuple[Edge, ...], source: Source, rng: np.random.Generator, *, view: str) -> None:
    """Raise ValueError for a function that does not vanish where the data end, on up to 20 000 rows.

    It is negative, or 0 on more than a twentieth of the rows, or nowhere below a quarter of its largest value. A gap
    between the last rows and its zeros, wider than that between the last rows and the next hundredth of all, gives a
    TrustWarning. A function that vanishes at some ends of the data alone cannot be told from one that is meant so.
    """
    numbers, x = draw_rows(source, SAMPLE, rng, view=view)
    for edge in dict.fromkeys(edges):
        values, name = edge.values(x), f"the vanishing function {edge!r}"
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{name} is {values[row]} at row {numbers[row]} of the data.")
        largest, least = float(np.abs(values).max()), float(values.min())
        zero = np.abs(values) <= ROUNDING * largest
        beyond = edge.outside(x) & ~zero
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
        for distance in edge.sides(x).T if len(x) > few else ():
            nearest, near = (float(np.partition(distance, k)[k]) for k in (0, few))
            if nearest > GAP * near:
                warn_user(
                    f"the zeros of {name} lie beyond the data, with a gap of {nearest:.3g} without rows, across which "
                    "functions need no slope: eigenvalues come out too small. Move the zeros to where the data end",
                    TrustWarning,
                )
                break
