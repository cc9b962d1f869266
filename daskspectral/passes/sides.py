"""How the left and right functions of an operator are chosen: a basis that is given, or a kernel at landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis, Vanishing
from daskspectral.data.source import Source, label_of
from daskspectral.errors import renumbered
from daskspectral.kernels import Kernel
from daskspectral.landmarks import METHODS
from daskspectral.operators import Operator
from daskspectral.operators.facts import derivatives, fields_at_derivatives, units_of
from daskspectral.passes.density import with_density
from daskspectral.passes.edges import check_edges
from daskspectral.passes.landmarks import choose_landmarks
from daskspectral.passes.parameters import (
    check_one_of,
    check_whole,
    checked_kernel,
    given_landmarks,
)
from daskspectral.passes.periods import Periods, check_periods, periodic, periods_of
from daskspectral.passes.scale import standardized
from daskspectral.passes.sums import Discretisation


@dataclass(frozen=True, eq=False)
class Side:
    """An estimator's parameters for the left or the right functions; `prefix` begins their names, "" or "right_".

    The functions are a `basis`, or a `kernel` at `landmarks`: an array, or the method that chooses `count` of
    `sample` rows. `view` is the field of points on which they are evaluated; `constant` adds the constant function.
    `vanishing` is a Vanishing("landmarks", ...) into which the kernel at landmarks goes. `periods` are the periods of
    columns of X by their numbers.
    """

    prefix: str
    view: str
    basis: Basis | None
    kernel: Kernel | None
    landmarks: Any
    count: int
    sample: int | None
    constant: bool
    vanishing: Vanishing | None = None
    periods: Mapping[Any, Any] | None = None

    @property
    def drawn(self) -> bool:
        """Whether rows of the data become landmarks."""
        return self.basis is None and isinstance(self.landmarks, str)

    @property
    def vanishes(self) -> bool:
        """Whether its functions vanish at the ends of the data."""
        return self.vanishing is not None or (isinstance(self.basis, Basis) and self.basis.vanishes)

    @property
    def size(self) -> int:
        """The number of functions wanted, known before landmarks are drawn."""
        if self.basis is not None:
            return self.basis.size + self._adds_constant(self.basis)
        return (self.count if self.drawn else len(self.landmarks)) + self.constant

    def check(self) -> None:
        """Raise ValueError or TypeError for parameters that cannot work with any data."""
        basis = f"{self.prefix}basis"
        if self.basis is not None:
            if not isinstance(self.basis, Basis):
                raise TypeError(f"{basis} must be one of daskspectral.basis, such as MonomialBasis; got {self.basis!r}")
            named = {f"{self.prefix}kernel": self.kernel is not None}
            named[f"{self.prefix}landmarks"] = not isinstance(self.landmarks, str)
            for name, given in named.items():
                if given:
                    raise ValueError(f"{basis} takes the place of a kernel at landmarks; give it or {name}, not both")
            if self.periods is not None:
                raise ValueError(
                    f"periods are for kernels at landmarks, and {basis} has functions of its own: they have to be "
                    "periodic themselves, as LandmarkBasis(Periodic(kernel, periods), points) is"
                )
        else:
            checked_kernel(self.kernel)
        check_periods(self.periods)
        if self.vanishes and self.constant:
            raise ValueError(
                f"constant=True would add a function that does not vanish to {basis}, whose functions vanish at the "
                "ends of the data; leave constant out"
            )
        if isinstance(self.landmarks, str):
            check_one_of(f"{self.prefix}landmarks", self.landmarks, METHODS)
            if self.landmarks != "uniform" and self.sample is not None:
                check_whole("landmark_sample", self.sample, self.count)

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError where the functions do not fit the data, or the operator with derivatives of this order."""
        dimension = source.dimension_at(self.view)
        if self.basis is not None:
            if self.basis.dimension != dimension:
                raise ValueError(
                    f"{self.prefix}basis has functions of {self.basis.dimension} variables, and "
                    f"{label_of(self.view)} has {dimension} columns"
                )
            self.basis.check_order(order, operator.title)
            return
        if self.vanishing is not None:
            self.vanishing.check_dimension(dimension)
        kernel = self._kernel(operator, source)
        self._laid(LandmarkBasis(kernel, np.zeros((1, dimension)))).check_order(order, operator.title)
        if not self.drawn:
            given_landmarks(self.landmarks, source.width(self.view), label_of(self.view))

    def choose(
        self, source: Source, rng: np.random.Generator, operator: Operator, *, on_invalid: str, progress: bool | None
    ) -> tuple[Basis, NDArray[np.int64] | None]:
        """The basis, and the sorted numbers of the rows that became landmarks, None where no rows did."""
        basis, rows = self._chosen(source, rng, operator, on_invalid=on_invalid, progress=progress)
        if basis.edges:
            check_edges(basis.edges, source, rng, view=self.view, on_invalid=on_invalid, progress=progress)
        return _with_constant(basis) if self._adds_constant(basis) else basis, rows

    def _chosen(
        self, source: Source, rng: np.random.Generator, operator: Operator, **options: Any
    ) -> tuple[Basis, NDArray[np.int64] | None]:
        if self.basis is not None:
            return self.basis, None
        kernel, points, rows = choose_landmarks(
            source,
            self._kernel(operator, source),
            self.landmarks,
            self.count,
            rng,
            view=self.view,
            sample_size=self.sample,
            **options,
        )
        if rows is not None and not self.prefix:
            with renumbered(lambda k: rows[k]):
                operator.check_points(points)
        return self._laid(LandmarkBasis(kernel, points)), None if rows is None else np.sort(rows)

    def _laid(self, basis: Basis) -> Basis:
        return basis if self.vanishing is None else self.vanishing.of(basis)

    def periods_in(self, source: Source, operator: Operator) -> Periods | None:
        """The period of each prepared column; None where none has one. Raises ValueError for two that differ."""
        given = None if self.periods is None else periods_of(self.periods, source, self.view)
        if given is not None and operator.periods is not None and operator.periods != given:
            raise ValueError(
                f"{operator} has the periods {operator.periods}, and periods= asks for {given}; give them once"
            )
        return operator.periods if given is None else given

    def _kernel(self, operator: Operator, source: Source) -> Kernel:
        """A copy of the kernel, periodic where the columns or the operator's manifold are."""
        periods = self.periods_in(source, operator)
        return periodic(
            checked_kernel(self.kernel), periods, f"{operator} has" if self.periods is None else "periods= asks for"
        )

    def _adds_constant(self, basis: Basis) -> bool:
        return self.constant and not basis.holds_constant


def _with_constant(basis: Basis) -> Basis:
    return Concatenated((ConstantBasis(basis.dimension), *basis.parts))


@dataclass(frozen=True, eq=False)
class Choice:
    """The left and right functions for an operator, as the parameters of an estimator choose them."""

    operator: Operator
    left: Side
    right: Side | None
    components: int
    standardize: bool
    exclude_landmarks: bool

    @property
    def sizes(self) -> tuple[int, int | None]:
        """The numbers of functions wanted: p left, and q right ones where they differ, else None."""
        return self.left.size, None if self.right is None else self.right.size

    @property
    def excludes(self) -> bool:
        """Whether rows that become landmarks are left out of the sums; only where the form has derivatives."""
        return self.exclude_landmarks and self.operator.derivative_order > 0

    def check_against(self, source: Source) -> None:
        """Raise ValueError where data and functions do not fit, as far as metadata tell, before any task is sent."""
        left, right = derivatives(self.operator)
        self.left.check_against(source, left if self.right is not None else max(left, right), self.operator)
        if self.right is not None:
            self.right.check_against(source, right, self.operator)
        scaled = fields_at_derivatives(self.operator)
        if self.standardize and scaled:
            raise ValueError(
                f"standardize=True would change the units of X and not the units of {', '.join(scaled)}, which the "
                f"operator {self.operator.name} multiplies with derivatives; scale both before, without standardize"
            )
        sides = [side for side in (self.left, self.right) if side is not None]
        for what, given in {
            "periods": any(side.periods is not None for side in sides),
            "a function that vanishes at the ends of the data": any(side.vanishes for side in sides),
        }.items():
            if self.standardize and given:
                raise ValueError(
                    f"standardize=True would change the units of X, and {what} is in them; scale the columns of X "
                    "before, without standardize"
                )
        bound = units_of(self.operator)
        if self.standardize and bound:
            raise ValueError(
                f"standardize=True would change the units of X, and {self.operator.title} {bound}; scale the "
                "columns of X before, and what depends on their units, without standardize"
            )
        rows = source.rows
        if source.n < self.components:
            raise ValueError(f"X has {rows}, fewer than the n_components={self.components} asked for")
        for side in (self.left, self.right):
            if side is not None and side.drawn and source.n < side.count:
                raise ValueError(f"X has {rows}, fewer than n_landmarks={side.count}; lower n_landmarks")
        if self.left.drawn and source.n == self.left.count and self.excludes:
            raise ValueError(
                f"all {rows} would become landmarks and none would be left to measure; lower n_landmarks or set "
                "exclude_landmarks=False"
            )

    def discretise(
        self, source: Source, random_state: Any, *, on_invalid: str, progress: bool | None
    ) -> Discretisation:
        """Choose the scaling of columns, the landmarks and the bases, by a pass and draws of rows where needed."""
        if self.standardize:
            source = standardized(source, on_invalid=on_invalid, progress=progress)
        rng = np.random.default_rng(random_state)
        basis, rows = self.left.choose(source, rng, self.operator, on_invalid=on_invalid, progress=progress)
        found = Discretisation(basis, source.preparation, rows if self.excludes else None)
        if self.right is not None:
            right, _ = self.right.choose(source, rng, self.operator, on_invalid=on_invalid, progress=progress)
            own = source.preparations[self.right.view] if self.operator.own_right_basis else None
            found = replace(found, right_basis=right, right_preparation=own)
        if not self.operator.exponent or self.operator.estimate is not None:
            return found
        periods = self.left.periods_in(source, self.operator)
        operator = with_density(self.operator, source, rng, periods=periods, on_invalid=on_invalid, progress=progress)
        return replace(found, operator=operator)


def choose_functions(estimator: Any, operator: Operator) -> Choice:
    """The functions that an estimator's parameters choose. Raises ValueError or TypeError where they cannot work."""
    shared = {"count": estimator.n_landmarks, "sample": estimator.landmark_sample}
    basis = _functions(estimator, operator, estimator.basis)
    left = Side(
        "", "x", kernel=estimator.kernel, landmarks=estimator.landmarks, periods=estimator.periods, **basis, **shared
    )
    left.check()
    right = None
    given = [
        name for name in ("right_basis", "right_kernel", "right_landmarks") if getattr(estimator, name) is not None
    ]
    if given and not operator.solver.two_sided:
        raise ValueError(
            f"{given[0]} is for operators with singular values, and {operator.name} is solved by {operator.solver!r}: "
            "its functions are the same on both sides"
        )
    if operator.center and not operator.solver.two_sided:
        raise ValueError(f"center is for operators with singular values, and {operator.name} is not")
    if given or operator.own_right_basis:
        own = _functions(estimator, operator, estimator.right_basis)
        kernel = estimator.right_kernel
        if own["basis"] is None and kernel is None:
            kernel = estimator.kernel
        landmarks = estimator.right_landmarks
        if landmarks is None:
            landmarks = estimator.landmarks if isinstance(estimator.landmarks, str) else "uniform"
        periods = None if operator.own_right_basis or own["basis"] is not None else estimator.periods
        view = operator.right_view
        right = Side("right_", view, kernel=kernel, landmarks=landmarks, periods=periods, **own, **shared)
        right.check()
    return Choice(operator, left, right, estimator.n_components, estimator.standardize, estimator.exclude_landmarks)


def _functions(estimator: Any, operator: Operator, basis: Any) -> dict[str, Any]:
    """The fields of a Side that a basis decides: what the kernel at landmarks goes into, or itself; the constant."""
    vanishes = isinstance(basis, Basis) and basis.vanishes
    constant = (operator.kills_constants and not vanishes) if estimator.constant is None else estimator.constant
    if isinstance(basis, Vanishing) and basis.at_landmarks:
        return {"basis": None, "vanishing": basis, "constant": constant}
    return {"basis": basis, "constant": constant}
