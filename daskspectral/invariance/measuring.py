"""Number of invariant or equivariant functions of a regression, decided on a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import EquivariantBasis, HarmonicBasis, InvariantBasis
from daskspectral.data.source import Source
from daskspectral.engine.sampling import draw_fields
from daskspectral.errors import FitWarning, ParameterError, renumbered, warn_user
from daskspectral.groups import Group, Representation
from daskspectral.groups.invariants import Invariants
from daskspectral.invariance.intervals import advise_products, ranges_of, symmetric_ranges
from daskspectral.invariance.levels import InvariantSolver
from daskspectral.manifolds import Interval, Manifold
from daskspectral.manifolds.base import MOST_FUNCTIONS
from daskspectral.moments.folds import distinct_rows
from daskspectral.operators.regression import Regression
from daskspectral.passes.parameters import sobolev_order
from daskspectral.validation import NOT_NEGATIVE, check_integer, check_number

Array = NDArray[np.floating[Any]]
TOLERANCE = 1e-5  # largest distance of points from the manifold
MOST = 1000  # maximum number of invariant functions
START = 50  # the first levels have this number of invariant functions, or
HARMONICS = 1000  # this number of eigenfunctions, whichever are more
TERMS = 20_000  # maximum number of terms (such as eigenfunctions) that are summed over all rows
WORK = 2e8  # maximum of terms times rows, if there are more than HARMONICS terms
PILOT = 3000  # number of rows among which distinct ones are counted
FURTHER = 100  # maximum number of invariant functions beyond the first levels
MOST_HARMONICS = 1500  # maximum number of eigenfunctions with an output, by default


@dataclass(frozen=True)
class Levels:
    """Levels of a manifold, and their functions invariant under a group, for a given number of `rows`."""

    manifold: Manifold
    group: Group | None
    rows: int
    numbers: int = 1
    """Number of values of a function that each row determines."""
    tolerance: float = TOLERANCE
    counted: float | None = None
    """Number of distinct rows of positive weight; None for all."""

    def of(self, most: int) -> InvariantBasis:
        harmonic = HarmonicBasis(self.manifold, most, tolerance=self.tolerance)
        return InvariantBasis(harmonic, self.group) if self.group is not None else InvariantBasis.all_of(harmonic)

    def within(self, invariant: int, harmonics: int | None = None) -> InvariantBasis:
        """Return the first levels with at most this number of invariant functions; at least one level.

        `harmonics` bounds the number of all functions; by default their cost is the bound.
        """
        if self.group is None:
            most = min(invariant, self.terms if harmonics is None else harmonics)
            return self.of(max(1, most))
        return InvariantBasis.within(
            self.manifold,
            self.group,
            most_invariant=invariant,
            most=harmonics,
            most_terms=self.terms,
            tolerance=self.tolerance,
            invariants=self._invariants,
        )

    @cached_property
    def _invariants(self) -> Invariants | None:
        return None if self.group is None else Invariants.of(self.manifold, self.group)

    @property
    def most(self) -> int:
        """Largest number of invariant functions: half the values in the rows, at most 1000."""
        rows = self.rows if self.counted is None else self.counted
        return max(1, min(int(rows * self.numbers + 1e-9) // 2, MOST))

    @property
    def terms(self) -> int:
        """Number of terms that can be summed over the rows."""
        return min(TERMS, max(HARMONICS, int(WORK / self.rows)))

    @property
    def first(self) -> InvariantBasis:
        """First levels: 1000 functions or 50 invariant ones, whichever are more."""
        basis = self.within(self.most, HARMONICS)
        if basis.size < min(START, self.most):
            basis = self.within(min(START, self.most))
        level, most = len(basis.multiplicities), int(basis.multiplicities.sum())
        found = basis
        while found.size < 2 <= self.rows:  # few rows: the penalty controls the functions of the next level
            most += self.manifold.multiplicity(level)
            if most > HARMONICS:
                return basis
            found, level = self.of(most), level + 1
        return found


@dataclass(frozen=True, eq=False)
class InvariantSpace:
    """Functions selected by an estimator's parameters; without a `manifold`, on intervals over the ranges.

    `output` is the representation by which values change with the group, its name, or None (invariant).
    """

    manifold: Manifold | None
    group: Group | None
    smoothness: float | None
    most: int | None
    """`n_eigenfunctions`."""
    output: Any = None
    alpha: float | None = None
    gradient_weight: float = 1.0
    solver: str = "least_squares"

    @property
    def equivariance(self) -> tuple[Representation, Group] | None:
        """Representation and group of `output`; raises ValueError if invalid."""
        if self.output is None:
            return None
        if self.group is None:
            raise ValueError(f"output={self.output!r} requires a group: pass group=")
        return Representation.of(self.output), self.group

    def check(self) -> None:
        if self.manifold is not None and not isinstance(self.manifold, Manifold):
            raise ParameterError("manifold", "one of daskspectral.manifolds, such as Sphere(3)", self.manifold)
        if self.group is not None and not isinstance(self.group, Group):
            raise ParameterError("group", "one of daskspectral.groups, such as Permutations(3)", self.group)
        if self.most is not None:
            check_integer("n_eigenfunctions", self.most, most=MOST_FUNCTIONS)
        if self.manifold is not None:
            sobolev_order(self.smoothness, self.manifold)
            if self.group is not None:
                self.group.check(self.manifold)
        InvariantSolver.from_name(self.solver)
        check_number("gradient_weight", self.gradient_weight, NOT_NEGATIVE)
        if self.alpha is not None:
            check_number("alpha", self.alpha, NOT_NEGATIVE)
        if self.equivariance is not None:
            representation, group = self.equivariance
            representation.pairs(group)

    def check_targets(self, operator: Regression) -> None:
        """Raise ValueError if y or gradients do not fit the output."""
        solver = InvariantSolver.from_name(self.solver)
        if operator.gradients and not solver.has_penalty:
            raise ValueError(
                f'the solver {solver.name!r} does not support gradients; use solver="least_squares", or leave '
                "out the gradients"
            )
        if self.equivariance is None:
            return
        if operator.gradients:
            raise ValueError(f"gradients require invariant functions, got output={self.output!r}: omit one of them")
        representation, group = self.equivariance
        k = representation.components(group)
        if (operator.targets or 1) != k:
            what = f"output={self.output!r}" if isinstance(self.output, str) else "output"
            shape = "(n,) or (n, 1)" if k == 1 else f"(n, {k})"
            raise ValueError(
                f"y has {operator.targets or 1} columns, but {what} has {k} components: pass y of shape "
                f"{shape}, or another output"
            )

    def selected_basis(self, levels: Levels, source: Source) -> InvariantBasis | EquivariantBasis:
        """Return the functions: a requested number, or that of solver and data."""
        if self.equivariance is not None:
            return self._equivariant(levels, *self.equivariance)
        most = self.most
        if most is None:
            most = InvariantSolver.from_name(self.solver).default(source.n, self.exponent(levels.manifold))
        if most is None:
            basis, levels = decide_levels(levels, source)
        else:
            basis = levels.of(most)
            _check_size(basis, most, levels.rows * levels.numbers)
        self.advise(basis, levels, asked=most is not None)
        return basis

    def _equivariant(self, levels: Levels, representation: Representation, group: Group) -> EquivariantBasis:
        """Return the equivariant functions, by default as many as the rows determine."""
        most = self.most
        harmonic = HarmonicBasis(levels.manifold, most or MOST_HARMONICS, tolerance=levels.tolerance)
        basis = EquivariantBasis(harmonic, group, representation)
        numbers = levels.rows * basis.components
        if most is None:
            enough = np.cumsum(basis.dimensions) <= max(1, min(numbers // 2, MOST))
            basis = basis.leading(max(1, int(np.count_nonzero(enough))))
        if not basis.size:
            raise ValueError(
                f"the first {basis.multiplicities.sum()} eigenfunctions of {levels.manifold!r} have no "
                f"equivariant combination for {group!r} and output={self.output!r}: raise n_eigenfunctions, or "
                "change output"
            )
        _check_size(basis, most, numbers)
        return basis

    def advise(self, basis: InvariantBasis, levels: Levels, *, asked: bool) -> None:
        """Warn if rows are few for functions that were not `asked` for, or no function depends on two columns.

        Raises ValueError if only the constant remains.
        """
        if not asked and basis.size > 1 and basis.size > levels.most:
            warn_user(
                f"X has {levels.rows} rows, few for the {basis.size} functions of the first levels: validation "
                "values are not reliable. Pass more rows, or fewer columns",
                FitWarning,
            )
        elif self.manifold is None:
            advise_products(basis)

    def check_columns(self, source: Source) -> None:
        """Raise ValueError if columns, manifold and group do not fit."""
        d = source.n_features_in
        if self.most is not None and not InvariantSolver.from_name(self.solver).has_penalty and self.most > source.n:
            raise ValueError(f"n_eigenfunctions={self.most} is more than the {source.n} rows of X; lower it")
        if self.manifold is None:
            unit = Interval([-1.0] * d, [1.0] * d)
            sobolev_order(self.smoothness, unit)
            if self.group is not None:
                symmetric_ranges(unit.ends, self.group)
        elif d != self.manifold.ambient:
            raise ValueError(
                f"X must have {self.manifold.ambient} columns, the coordinates of {self.manifold!r}, got {d}"
            )

    def check_first(self, source: Source) -> None:
        """Raise ValueError if the first rows are off the manifold."""
        if self.manifold is None:
            return
        first = np.asarray(source.readers["x"].read(0, min(1000, source.n)), dtype=float)
        finite = np.flatnonzero(np.isfinite(first).all(axis=1))
        with renumbered(lambda k: finite[k]):
            self.manifold.check(first[finite], tolerance=TOLERANCE)

    def levels(self, source: Source, kinds: tuple[bool, bool] = (True, False)) -> Levels:
        """Return the levels for a source; without a manifold, in one pass."""
        manifold = ranges_of(source, self.group) if self.manifold is None else self.manifold
        numbers = kinds[0] + kinds[1] * manifold.dimension
        tolerance = TOLERANCE if self.manifold is not None else np.inf
        return Levels(manifold, self.group, source.n, numbers, tolerance)

    def matches(self, basis: InvariantBasis | EquivariantBasis) -> bool:
        """Return whether a basis has this manifold, group and representation."""
        if not (basis.manifold == self.manifold or (self.manifold is None and isinstance(basis.manifold, Interval))):
            return False
        asked, group = (None, self.group) if self.equivariance is None else self.equivariance
        found = basis.representation
        if (asked is None) != (found is None):
            return False
        pairs = zip(_generator_matrices(basis.group, found), _generator_matrices(group, asked), strict=False)
        same = all(a.shape == b.shape and np.allclose(a, b, rtol=0, atol=1e-12) for a, b in pairs)
        return same and len(_generator_matrices(basis.group, found)) == len(_generator_matrices(group, asked))

    def exponent(self, manifold: Manifold) -> float:
        """Return 2 s / dimension, the power of D_lambda in the Sobolev norm."""
        return 2 * sobolev_order(self.smoothness, manifold) / manifold.dimension


def decide_levels(levels: Levels, source: Source) -> tuple[InvariantBasis, Levels]:
    """Return the functions summed over all rows, whose first are selected later, and their levels.

    The `first` levels, and, with a group, further ones with up to 100 invariant functions if cheap; levels for the
    effective number of rows (distinct and of positive weight, of up to 3000).
    """
    fields = draw_fields(source, PILOT, np.random.default_rng(0))[1]
    weight = fields.get("weight", np.ones(len(fields["x"])))
    heavy = fields["x"][weight > 0]
    if len(heavy):
        levels = replace(levels, counted=levels.rows * (distinct_rows(heavy).max() + 1.0) / len(weight))
    first = levels.first
    further = min(FURTHER, levels.most)
    return (levels.within(further) if levels.group is not None and first.size < further else first), levels


def _check_size(basis: InvariantBasis | EquivariantBasis, most: int | None, numbers: int) -> None:
    """Raise ValueError for more functions than values in y and gradients."""
    if basis.size > numbers:
        raise ValueError(
            f"n_eigenfunctions={most} has {basis.size} invariant or equivariant functions, more than the "
            f"{numbers} values in y; lower it"
        )


def _generator_matrices(group: Group | None, representation: Representation | None) -> list[Array]:
    """Return (A, b) of generators and (X, b) of the algebra, with the representation."""
    if group is None:
        return []
    kinds = (group.generators, group.algebra) if representation is None else representation.pairs(group)
    return [np.column_stack([move.matrix, move.shift]) for kind in kinds for move in kind if not move.trivial]
