"""Evaluation of functions in the span of a basis, and of their gradients, at rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    Block,
    ConstantBasis,
    DirichletFunctions,
    EquivariantBasis,
    Evaluation,
    LandmarkBasis,
    NormalizedRBF,
)
from daskspectral.basis.evaluation import VALUE, evaluated
from daskspectral.data.batches import usable
from daskspectral.devices import HOST, Device, device_of, least_rows
from daskspectral.engine.tasks import Tally
from daskspectral.forms import Atom
from daskspectral.kernels import Gaussian
from daskspectral.kernels.base import of_distances, unit_index
from daskspectral.manifolds import Eigenspace
from daskspectral.manifolds.product import slices_of
from daskspectral.moments import DENSE_ROWS
from daskspectral.passes.apply import Extrapolated, RowFunction
from daskspectral.passes.support import (
    FAR,
    VANISHED,
    Support,
    beyond_reach,
    nearest_points,
    peak,
)
from daskspectral.workspace import Workspace

Array = NDArray[Any]
EVERYWHERE = Support()
DETERMINED = 1e-10  # least eigenvalue of normal equations, at most 1, for half of the digits


@dataclass(frozen=True, eq=False)
class SpanFunction(RowFunction):
    """Function of rows in the span of a basis of p functions.

    Rows outside the `support` are reported; those beyond the ends of an interval have the values at the ends.
    """

    noun: ClassVar[str] = "values"
    basis: Basis
    support: Support = field(default=EVERYWHERE, kw_only=True)

    @property
    def rows(self) -> int:
        return max(least_rows(self.device), self.basis.block_rows)

    def _outside(self, x: Array) -> Extrapolated | None:
        """Return which rows are outside the domain or the reach of all functions; None if unknown."""
        if self.basis.domain is not None:
            beyond = self.basis.domain.periods_outside(x)
            return None if beyond is None else (beyond > FAR, beyond)
        far = self._vanishing(x, np.ones(len(x), bool))
        return None if far is None else (far, None)

    def _vanishing(self, x: Array, far: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Return at which of the rows `far` all nonconstant functions vanish, boundary factors apart."""
        parts = [part for part in _without_factors(self.basis) if not isinstance(part, ConstantBasis)]
        for part in parts:
            rows = np.flatnonzero(far)
            if isinstance(part, NormalizedRBF):
                far[rows] = beyond_reach(Gaussian(part.width), part.centers, x[rows])
            elif isinstance(part, LandmarkBasis) and of_distances(part.kernel.inner):
                far[rows] = beyond_reach(part.kernel, part.landmarks, x[rows]) if len(rows) else False
            else:
                return None
        return far if parts else None

    def warning_text(self, found: Tally, count: int) -> str:
        if self.basis.domain is not None:
            return (
                f"{found.count} of {count} rows are outside the box of the basis by more than {FAR:.0%} of its "
                f"width (the farthest by {found.most:.3g} times its width){', and ' if self.there else ''}{self.there}"
            )
        if self.support == EVERYWHERE:
            return super().warning_text(found, count)
        text = self.support.warning_text(found, count, self.noun)
        return f"{text}; they are NaN" if self.extrapolate == "nan" else text

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without cached values, such as the basis on a device."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _without_factors(basis: Basis) -> Sequence[Basis]:
    if isinstance(basis, DirichletFunctions):
        return _without_factors(basis.inner)
    parts = basis.parts
    return parts if len(parts) == 1 else [each for part in parts for each in _without_factors(part)]


@final
@dataclass(frozen=True, eq=False)
class SpanValues(SpanFunction):
    """Values (c, k) at rows of k functions in the span of a basis of p functions.

    Rows outside the box of a FourierBasis have the values at its nearest point. `coefficients` (p, k), real or complex,
    determine the dtype; `means` (k,), if given, are subtracted.
    """

    coefficients: Array
    means: Array | None = None

    @property
    def columns(self) -> int:
        return int(self.coefficients.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.coefficients.dtype)

    @cached_property
    def _there(self) -> tuple[Device, Basis, Array]:
        device = device_of(self.device)
        return device, device.moved(self.basis), device.put(self.coefficients)

    @cached_property
    def _evaluator(self) -> Callable[[Array], Array] | None:
        return self.basis.evaluator(self.coefficients, device_of(self.device))

    def block(self, x: Array, out: Array) -> Extrapolated | None:
        extrapolated, judged = None, self.support.coverage is not None
        if self._evaluator is not None:
            out[:] = self._evaluator(x)
            extrapolated = self._outside(x)
        else:
            device, basis, coefficients = self._there
            feature = _features(basis, self.support.nearest(x), device)
            out[:] = device.get(feature.T @ coefficients)
            extrapolated = self.support.extrapolated(x, device.get(feature) if judged else None)
            if extrapolated is None and isinstance(self.basis, NormalizedRBF):
                extrapolated = self._outside(x)  # values there are those of the nearest cell
            elif extrapolated is None and (far := self._far(x, out)) is not None:
                extrapolated = far, None
                if far.any() and self.extrapolate == "nearest":
                    parts = self.basis.landmark_parts
                    near = nearest_points(x[far], np.concatenate([b.landmarks for b in parts]), parts[0].kernel)
                    out[far] = device.get(_features(basis, near, device).T @ coefficients)
        if self.means is not None:
            out -= self.means
        return extrapolated

    def _far(self, x: Array, out: Array) -> NDArray[np.bool_] | None:
        """Return at which rows all functions at landmarks vanish; None if there are others, except constants."""
        constant, most = 0.0, 0.0
        for part, own in zip(self.basis.parts, slices_of(b.size for b in self.basis.parts), strict=True):
            if isinstance(part, ConstantBasis):
                constant = constant + self.coefficients[own].sum(axis=0)
            elif isinstance(part, LandmarkBasis) and of_distances(part.kernel.inner):
                most = most + np.abs(self.coefficients[own]).sum(axis=0) * peak(part.kernel, part.landmarks)
            else:
                return None
        return self._vanishing(x, np.all(np.abs(out - constant) <= 2 * VANISHED * most, axis=1))


@final
@dataclass(frozen=True, eq=False)
class FittedValues(RowFunction):
    """Values (c, k) at rows of k linear functions Aᵀ (x - mean), from the present entries of x.

    With A = Q R, the values are Rᵀ g, with Q g the least-squares fit of deviations from the `mean` (d,) in the present
    entries. They are exact for complete rows, and NaN if g is not determined. `weights` are A (d, k).
    """

    gaps = True
    weights: Array
    mean: Array

    @property
    def columns(self) -> int:
        return int(self.weights.shape[1])

    @property
    def rows(self) -> int:
        return DENSE_ROWS

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        q, r = np.linalg.qr(self.weights)
        return q, r

    def block(self, x: Array, out: Array) -> None:
        (q, r), (d, k), present = self._factors, self.weights.shape, usable(x)
        products = (q[:, :, None] * q[:, None, :]).reshape(d, k * k)
        normal = (present @ products).reshape(-1, k, k)
        deviations = np.where(present, x - self.mean, 0.0)
        known = np.linalg.eigvalsh(normal)[:, 0] > DETERMINED
        out[:] = np.nan
        out[known] = np.linalg.solve(normal[known], (deviations[known] @ q)[:, :, None])[:, :, 0] @ r


@final
@dataclass(frozen=True, eq=False)
class SpanLeverage(SpanFunction):
    """Leverage (c, 1) of rows among those of a fit, for a `support` with a coverage."""

    @property
    def columns(self) -> int:
        return 1

    def block(self, x: Array, out: Array) -> None:
        assert self.support.coverage is not None
        out[:, 0] = self.support.coverage.leverage(
            _features(self.basis, self.support.nearest(x)), self.basis.components
        )


@final
@dataclass(frozen=True, eq=False)
class EquivariantValues(SpanFunction):
    """Values (c, k) at rows of the combination of equivariant functions with `coefficients` (r, 1)."""

    basis: EquivariantBasis
    coefficients: Array

    @property
    def columns(self) -> int:
        return self.basis.components

    @cached_property
    def _levels(self) -> list[tuple[Eigenspace, Array]]:
        """Levels with A^T in their raw functions, (k, q)."""
        found = []
        for space, a in zip(self.basis.harmonic.levels, self.basis.by_level(self.coefficients), strict=True):
            if a.any():
                found.append((space, np.ascontiguousarray(a.T if space.transform is None else a.T @ space.transform)))
        return found

    @cached_property
    def _first(self) -> EquivariantBasis | None:
        coverage = self.support.coverage
        if coverage is None:
            return None
        return self.basis.leading(sum(part.stop <= len(coverage.whitening) for part in self.basis.slices))

    def block(self, x: Array, out: Array) -> Extrapolated | None:
        points = self.support.nearest(x)
        self.basis.check(points)
        out[:] = 0
        for space, a in self._levels:
            out += (a @ space.raw(points)).T
        feature = None if self._first is None else _features(self._first, points)
        return self.support.extrapolated(x, feature, self.basis.components)


@final
@dataclass(frozen=True, eq=False)
class SpanSlopes(SpanFunction):
    """Gradients (c, m n_features) at rows of m functions in the span of a basis.

    Derivatives are with respect to the raw columns of X, function by function; 0 for unused columns, and beyond the
    ends of an interval or box.
    """

    noun = "gradients"
    nearest = "have the gradient 0"
    coefficients: Array
    n_features: int

    @property
    def columns(self) -> int:
        return int(self.coefficients.shape[1]) * self.n_features

    @cached_property
    def _gradient(self) -> Callable[[Array], Array] | None:
        return self.basis.span_gradient(self.coefficients, device_of(self.device))

    def _partials(self, x: Array) -> tuple[Array, Extrapolated | None]:
        """Return the gradients from partial derivatives of the basis, and where they are extrapolated."""
        d = self.basis.dimension
        atoms = [Atom("partial", alpha=unit_index(axis, d)) for axis in range(d)]
        points = self.support.nearest(x)
        judged = [] if self.support.coverage is None else [VALUE]
        device = device_of(self.device)
        evaluation, coefficients = _at(device.moved(self.basis), points, device, atoms + judged), self.coefficients
        found = device.get(np.stack([evaluation.feature(a).T @ device.put(coefficients) for a in atoms], axis=2))
        feature = device.get(evaluation.feature(VALUE)) if judged else None
        return np.where((points == x)[:, None], found, 0.0), self.support.extrapolated(x, feature)

    def block(self, x: Array, out: Array) -> Extrapolated | None:
        columns, scale = self.preparation.columns, self.preparation.scale
        slopes = np.zeros((len(x), self.coefficients.shape[1], self.n_features))
        found, extrapolated = self._partials(x) if self._gradient is None else (self._gradient(x), None)
        slopes[:, :, slice(None) if columns is None else list(columns)] = found if scale is None else found / scale
        out[:] = slopes.reshape(len(x), -1)
        held = self.extrapolate == "nearest" and self.basis.domain is not None  # gradients of clipped values
        return extrapolated if held or self.support != EVERYWHERE else self._outside(x)


def _features(basis: Basis, points: Array, device: Device = HOST) -> Array:
    """Return values (p, c) of functions at points on the device, (p, k c) for k components."""
    return _at(basis, points, device, [VALUE]).feature(VALUE)


def _at(basis: Basis, points: Array, device: Device, atoms: list[Atom]) -> Evaluation:
    workspace = Workspace(device)
    return evaluated(basis, Block({"x": points}, np.dtype(float), workspace).on(workspace), atoms)
