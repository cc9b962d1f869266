"""How the functions of each side of an operator are chosen: a basis that is given, or a kernel at landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    Concatenated,
    ConstantBasis,
    HarmonicBasis,
    InvariantBasis,
    LandmarkBasis,
    MonomialBasis,
)
from daskspectral.data.source import Source, label_of
from daskspectral.errors import renumbered
from daskspectral.estimators.common import choose_landmarks, standardized
from daskspectral.estimators.measuring import Ground, rows_of
from daskspectral.estimators.parameters import (
    check_amount,
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    checked_kernel,
    checked_operator,
    given_landmarks,
)
from daskspectral.kernels import Kernel
from daskspectral.landmarks import METHODS
from daskspectral.moments import Moments
from daskspectral.operators import Generator, Operator
from daskspectral.operators.regression import Regression
from daskspectral.solve import resolve_cut


@dataclass(frozen=True, eq=False)
class Side:
    """The parameters of one side; `prefix` is what their names begin with, "" or "right_".

    `count` is p where `landmarks` is a method, `sample` the rows among which it chooses, `view` where the points are.
    """

    prefix: str
    view: str
    basis: Basis | None
    kernel: Kernel | None
    landmarks: Any
    count: int
    sample: int | None
    constant: bool

    @property
    def drawn(self) -> bool:
        """Whether rows of the data become landmarks."""
        return self.basis is None and isinstance(self.landmarks, str)

    @property
    def size(self) -> int:
        """The number of functions, before any is drawn."""
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
        else:
            checked_kernel(self.kernel)
        if isinstance(self.landmarks, str):
            check_one_of(f"{self.prefix}landmarks", self.landmarks, METHODS)
            if self.landmarks != "uniform" and self.sample is not None:
                check_whole("landmark_sample", self.sample, self.count)

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError where the functions do not fit the data or the operator; `order` is of the derivatives."""
        dimension = source.dimension_at(self.view)
        if self.basis is not None:
            if self.basis.dimension != dimension:
                raise ValueError(
                    f"{self.prefix}basis has functions of {self.basis.dimension} variables, and "
                    f"{label_of(self.view)} has {dimension} columns"
                )
            self.basis.check_order(order, operator.title)
            return
        LandmarkBasis(checked_kernel(self.kernel), np.zeros((1, dimension))).check_order(order, operator.title)
        if not self.drawn:
            given_landmarks(self.landmarks, source.width(self.view), label_of(self.view))

    def choose(
        self, source: Source, rng: np.random.Generator, operator: Operator, *, on_invalid: str, progress: bool | None
    ) -> tuple[Basis, NDArray[np.int64] | None]:
        """The basis, and the sorted numbers of the rows that became landmarks."""
        if self.basis is not None:
            adds = self._adds_constant(self.basis)
            return _with_constant(self.basis) if adds else self.basis, None
        kernel, points, rows = choose_landmarks(
            source,
            checked_kernel(self.kernel),
            self.landmarks,
            self.count,
            rng,
            view=self.view,
            sample_size=self.sample,
            on_invalid=on_invalid,
            progress=progress,
        )
        if rows is not None and not self.prefix:
            with renumbered(lambda k: rows[k]):
                operator.check_points(points)
        basis = LandmarkBasis(kernel, points)
        return _with_constant(basis) if self.constant else basis, None if rows is None else np.sort(rows)

    def _adds_constant(self, basis: Basis) -> bool:
        return self.constant and not any(
            isinstance(part, (ConstantBasis, HarmonicBasis, InvariantBasis))
            or (isinstance(part, MonomialBasis) and part.constant)
            for part in basis.parts
        )


def _with_constant(basis: Basis) -> Basis:
    return Concatenated((ConstantBasis(basis.dimension), *basis.parts))


@dataclass(frozen=True, eq=False)
class Choice:
    """The functions of an operator, as the parameters of an estimator choose them."""

    operator: Operator
    left: Side
    right: Side | None
    components: int
    standardize: bool
    exclude_landmarks: bool

    @property
    def sizes(self) -> tuple[int, int | None]:
        """p, and q where right functions are others."""
        return self.left.size, None if self.right is None else self.right.size

    @property
    def excludes(self) -> bool:
        """Whether rows that become landmarks are left out: only derivatives see a landmark at itself."""
        return self.exclude_landmarks and self.operator.derivative_order > 0

    def check_against(self, source: Source) -> None:
        """What metadata can tell before any task is sent: raises ValueError where data and functions do not fit."""
        left, right = derivatives(self.operator)
        self.left.check_against(source, left if self.right is not None else max(left, right), self.operator)
        if self.right is not None:
            self.right.check_against(source, right, self.operator)
        scaled = fields_at_derivatives(self.operator)
        if self.standardize and scaled:
            raise ValueError(
                f"standardize=True would change the units of X and not those of {', '.join(scaled)}, which the "
                f"operator {self.operator.name} multiplies with derivatives; scale both before, without standardize"
            )
        bound = units_of(self.operator)
        if self.standardize and bound:
            raise ValueError(
                f"standardize=True would change the units of X, and {self.operator.title} {bound}; scale the "
                "columns of X before, and what depends on their units, without standardize"
            )
        rows = rows_of(source)
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

    def ground(self, source: Source, random_state: Any, *, on_invalid: str, progress: bool | None) -> Ground:
        """Scaling of columns, landmarks and bases, from a pass and draws of rows."""
        if self.standardize:
            source = standardized(source, on_invalid=on_invalid, progress=progress)
        rng = np.random.default_rng(random_state)
        basis, rows = self.left.choose(source, rng, self.operator, on_invalid=on_invalid, progress=progress)
        ground = Ground(basis, source.preparation, rows if self.excludes else None)
        if self.right is None:
            return ground
        right, _ = self.right.choose(source, rng, self.operator, on_invalid=on_invalid, progress=progress)
        own = source.preparations[self.right.view] if self.operator.own_right_basis else None
        return replace(ground, right_basis=right, right_preparation=own)


def check_parameters(estimator: Any, operator: Operator, on_invalid: str) -> None:
    """Raise ValueError for parameters of an estimator that cannot work, those of its functions apart."""
    for name in ("n_components", "n_landmarks"):
        check_whole(name, getattr(estimator, name))
    check_one_of("dtype", estimator.dtype, ("float64", "float32"))
    check_one_of("constant", estimator.constant, (None, True, False))
    for name in ("standardize", "exclude_landmarks"):
        check_one_of(name, getattr(estimator, name), (True, False))
    check_one_of("on_invalid", on_invalid, ("raise", "skip"))
    check_amount("ridge", estimator.ridge)
    check_amount("min_support", estimator.min_support)
    if estimator.rtol is not None:
        check_number("rtol", estimator.rtol)
    resolve_cut(estimator.rtol, estimator.dtype)
    check_random_state(estimator.random_state)
    if estimator.ridge and operator.solver != "symmetric":
        raise ValueError(f"ridge is for symmetric operators, and {operator.name} is solved by {operator.solver!r}")


def check_moments(given: Operator | None, moments: Moments) -> None:
    """Raise ValueError for moments that a SpectralDecomposition of the operator that was given cannot solve."""
    if isinstance(moments.operator, Regression):
        raise ValueError("these are moments of a regression, not of an operator; solve them with HermiteRegressor")
    if given is not None and checked_operator(given) != moments.operator:
        raise ValueError(
            f"these are moments of {moments.operator}, and the operator of this estimator is {given}: leave the "
            "operator out, or fit it to the data"
        )


def choose_functions(estimator: Any, operator: Operator, on_invalid: str = "raise") -> Choice:
    """The choice that the parameters of an estimator make. Raises ValueError or TypeError where they cannot work."""
    check_parameters(estimator, operator, on_invalid)
    constant = operator.kills_constants if estimator.constant is None else estimator.constant
    shared = {"count": estimator.n_landmarks, "sample": estimator.landmark_sample, "constant": constant}
    left = Side("", "x", estimator.basis, estimator.kernel, estimator.landmarks, **shared)
    left.check()
    right = None
    given = [
        name for name in ("right_basis", "right_kernel", "right_landmarks") if getattr(estimator, name) is not None
    ]
    if given and operator.solver != "singular":
        raise ValueError(
            f"{given[0]} is for operators with singular values, and {operator.name} is solved by {operator.solver!r}: "
            "its functions are the same on both sides"
        )
    if operator.center and operator.solver != "singular":
        raise ValueError(f"center is for operators with singular values, and {operator.name} is not")
    if given or operator.own_right_basis:
        basis = estimator.right_basis
        kernel = estimator.right_kernel
        if basis is None and kernel is None:
            kernel = estimator.kernel
        landmarks = estimator.right_landmarks
        if landmarks is None:
            landmarks = estimator.landmarks if isinstance(estimator.landmarks, str) else "uniform"
        right = Side("right_", operator.right_view, basis, kernel, landmarks, **shared)
        right.check()
    return Choice(operator, left, right, estimator.n_components, estimator.standardize, estimator.exclude_landmarks)


def derivatives(operator: Operator) -> tuple[int, int]:
    """The highest derivatives that any form of an operator takes of left and of right functions."""
    left, right = operator.form.orders
    own = operator.right_gram
    left = max(left, *operator.gram.orders)
    return left, right if own is None else max(right, *own.orders)


def fields_at_derivatives(operator: Operator) -> list[str]:
    """The fields of the user that multiply derivatives, and so are in the units of the data."""
    found: set[str] = set()
    for form in operator.forms.values():
        for product in form.products:
            if max(product.left.order, product.right.order) > 0:
                found |= {s for name in product.fields for s in operator.derived.get(name, frozenset({name}))}
    return sorted(found & operator.data_fields)


def units_of(operator: Operator) -> str:
    """What ties an operator to the units of the data, besides such fields; "" where standardised ones suit it too.

    The gradient and the Laplacian may be those of the standardised columns; a derivative along one column, and a sum
    of derivatives of different orders, may not.
    """
    if isinstance(operator, Generator) and isinstance(operator.diffusion, float):
        return f"has diffusion={operator.diffusion:g} in them"
    for form in operator.forms.values():
        parts = [part for product in form.products for _, part, _ in product.expanded]
        orders = sorted({part.left.order + part.right.order for part in parts})
        if len(orders) > 1:
            return f"adds products of {' and '.join(map(str, orders))} derivatives in all, which scale differently"
        if not orders[0]:
            continue
        made = {name for product in form.products for name in product.fields & operator.derived.keys()}
        if any(atom.kind == "partial" for part in parts for atom in (part.left, part.right)) or any(
            "x" in operator.derived[name] for name in made
        ):
            return "takes derivatives along directions in them"
    return ""
