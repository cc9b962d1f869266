"""Galerkin problems of moments: systems for all rows or parts of them, in functions with sufficient support."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.basis.role import Role
from daskspectral.devices import HOST, Device
from daskspectral.errors import RankWarning, warn_user
from daskspectral.kernels import Linear
from daskspectral.manifolds.product import slices_of
from daskspectral.moments.counting import correlation_time, counted_rows
from daskspectral.moments.folds import Folds
from daskspectral.moments.moments import Moments
from daskspectral.moments.pairwise import PRESENT
from daskspectral.operators import Operator
from daskspectral.operators.base import derivative_orders
from daskspectral.operators.weights import check_total
from daskspectral.solve import (
    GalerkinSystem,
    Penalty,
    Pencil,
    Solution,
    Whitening,
    resolve_cut,
)
from daskspectral.solve.problems import norm_root, norm_span
from daskspectral.solve.system import PRECISION
from daskspectral.solve.whitening import CUTS, inverse_root, symmetric_part
from daskspectral.solvers import Solving, Truncated

Array = NDArray[np.inexact[Any]]
Real = NDArray[np.floating[Any]]
Sums = Mapping[str, Real]
ROUNDING = {"float64": 1e-13, "float32": 1e-5}  # of matrices with unit diagonal
EVERYTHING = Truncated(min_support=0.0)
"""Solver with all functions, in all directions above rounding."""


class GalerkinProblem:
    """Galerkin problem of moments, for the means over all rows or over parts of them.

    All parts share the retained functions and their norm. `means` are those over all rows, `rows` the effective number
    of rows. Raises ValueError if every function of a side vanishes, sums are not finite, or all weights are zero.

    Parameters
    ----------
    moments : Moments
        Sums of the forms of the operator.
    count : int
        Requested number of values.
    penalty : float or None
        Strength c of the penalty; None for all directions above the cutoff of the solver.
    solver : Regularized or Truncated
        Solver with cutoff, ridge and least support of functions of a kernel.
    half : bool, default=False
        Exclude the second half of the landmarks.
    device : Device
        Device for eigenvectors of large matrices.
    parts_alone : bool, default=False
        Solve only parts of the data, which requires fewer decompositions.
    """

    def __init__(
        self,
        moments: Moments,
        count: int,
        penalty: float | None,
        solver: Solving = EVERYTHING,
        half: bool = False,
        device: Device = HOST,
        parts_alone: bool = False,
    ):
        self.parts_alone = parts_alone
        self.operator, self.solver, self.count, self.c = moments.operator, solver, count, penalty
        self.kind, self.device = moments.operator.solver, device
        self.cut, self.least_cut = resolve_cut(solver.rtol, moments.dtype), CUTS[moments.dtype]
        self.rounding = max(ROUNDING[moments.dtype], solver.rtol or 0.0)
        means, self.count_of_rows, self.pairs = checked_means(moments), moments.count, moments.pairs
        self.rows = counted_rows(moments) / correlation_time(moments)
        self.left = self.right = _FunctionSpace(moments, Role.TRIAL, solver.min_support, half, device)
        if self.kind.two_sided and "right_gram" in means:
            self.right = _FunctionSpace(moments, Role.TEST, solver.min_support, half, device)
        self.means = self.restricted(means)

    def restricted(self, sums: Sums) -> Sums:
        left, right = self.left, self.right
        if left.kept.all() and right.kept.all():
            return sums
        within = dict(sums)
        for name in self.operator.forms.keys() & sums.keys():
            rows, columns = {"gram": (left, left), "right_gram": (right, right)}.get(name, (left, right))
            within[name] = sums[name][np.ix_(rows.kept, columns.kept)]
        for name in self.operator.functionals.keys() & sums.keys():
            within[name] = sums[name][(right if name == "right_first" else left).kept]
        return within

    def solve(
        self, means: Sums, rows: float, span: Whitening | None = None, part: bool = False, count: int = 0
    ) -> Solution:
        """Return the solution for means over an effective number of rows, in the retained functions."""
        system = self.system(means, rows) if span is None else replace(self.system(means), within=span)
        return self.kind.solve(replace(system, count=count or self.count, part=part))

    def system(self, means: Sums, rows: float | None = None) -> GalerkinSystem:
        """Return the system of means, with the penalty for an effective number of `rows`, if any."""
        found = replace(
            galerkin_system(self.operator, means, self.norms, self.left.dtype),
            count=self.count,
            cut=self.cut,
            ridge=self.solver.ridge,
            root=self._norm_root,
            within=self._norm_spans,
            device=self.device,
        )
        if rows is None or self.c is None:
            return found
        penalty = self.kind.penalty(found, partial(self._by_values, means, rows), partial(self._by_slopes, rows))
        return found if penalty is None else replace(found, within=penalty, cut=self.least_cut)

    def without(self, folds: Folds, fold: int) -> tuple[Sums, Sums]:
        """Return the means over all folds except one, and the sums over that fold."""
        weight, part = float(folds.weight.sum()), float(folds.weight[fold])
        others = np.delete(np.arange(len(folds.weight)), fold)
        means, seen = folds.means(others, weight - part, self.operator.counts), folds.of(fold)
        if self.pairs is None:
            return means, seen
        counts = folds.arrays[PRESENT].sum(axis=0) / weight
        clip = self.kind.two_sided  # negative variances are the last ones
        return self.pairs.completed(means, clip=clip), self.pairs.of_fold(seen, means, counts, part)

    @cached_property
    def whole(self) -> Solution:
        span = None if self._pencil is None else self._pencil.leading(self.means["gram"])
        return self.solve(self.means, self.rows, span)

    def leading(self, count: int) -> Solution:
        """Return the solution over all rows, with at least `count` values if they exist."""
        found = self.whole
        if self._pencil is not None and len(found.values) == self.count < count:
            found = self.solve(self.means, self.rows, self._pencil.leading(self.means["gram"]), count=count)
        return found

    def reduced(self, folds: Folds) -> Folds:
        """Return the sums of folds in the functions in which parts of the data are solved (`span`)."""
        if self.norms is not None and self.pairs is None:  # only the products of the form are required
            names = {"first", "right_first", "form" if "form" in folds.arrays else "gram"}
            folds = replace(folds, arrays={name: folds.arrays[name] for name in names & folds.arrays.keys()})
        if self.span is None and self.left.kept.all() and self.right.kept.all():
            return folds
        return folds.mapped(self._on_span)

    def _on_span(self, sums: Sums, _: float) -> Sums:
        sums, span = self.restricted(sums), self.span
        if span is None:
            return sums
        return combined(self.operator, sums, span)

    @property
    def span(self) -> Real | None:
        """Leading functions (p, m) in which parts of the data are solved; None for all functions."""
        return None if self._pencil is None else self._pencil.span

    @cached_property
    def against_whole(self) -> tuple[Array, Array]:
        """Gram matrix times the functions of all rows, left (m, k) and right (m', k), in the span.

        It is that of centered functions if the operator centers them, or the norm in which functions are orthonormal.
        """
        norms = self.norms if self.kind.two_sided else None
        grams = galerkin_system(self.operator, self.means, norms).covariances.grams
        sides = (grams[0], self.whole.left), (grams[1], self.whole.right)
        left, right = (gram @ functions for gram, functions in sides)
        return (left, right) if self.span is None else (self.span.T @ left, self.span.T @ right)

    def solve_part(self, means: Sums, rows: float) -> Solution:
        """Return the solution for means of a part of the data (`reduced`), with the penalty c kappa / rows."""
        pencil = self._pencil
        if pencil is None:
            return self.solve(means, rows, part=True)
        energy: Any = self.kind.energy(self.system(means))
        return self.solve(means, rows, pencil.part(energy, means["gram"], self.rows / rows))

    @property
    def norms(self) -> tuple[Real, Real] | None:
        """Squared norms of the functions of both sides, if values are relative to them."""
        return (self.left.norm, self.right.norm) if self.kind.by_norm else None

    @cached_property
    def _norm_root(self) -> Real | None:
        one = self.kind.by_norm and not self.kind.two_sided
        return norm_root(self.left.norm, self.device) if one else None

    @cached_property
    def _norm_spans(self) -> tuple[Whitening, Whitening] | None:
        if not (self.kind.by_norm and self.kind.two_sided):
            return None
        left = norm_span(self.left.norm, self.cut, self.device)
        return left, left if self.right is self.left else norm_span(self.right.norm, self.cut, self.device)

    def among_all(self, part: Solution) -> tuple[Array, Array]:
        """Return the left and right functions of a part, (p, k) and (q, k), in the whole basis."""
        left, right = (f if self.span is None else self.span @ f for f in (part.left, part.right))
        return self.left.spread(left), self.right.spread(right)

    @cached_property
    def _pencil(self) -> Pencil | None:
        return self.kind.pencil(replace(self.system(self.means, self.rows), part=self.parts_alone))

    @cached_property
    def nulls(self) -> int:
        """Number of leading values that are 0 for any data."""
        return self.kind.nulls(replace(self.system(self.means), cut=self.least_cut))

    def _by_values(self, means: Sums, rows: float, about_means: bool) -> Penalty:
        def matrix(side: _FunctionSpace) -> Real:
            gram = means[side.role.named("gram")]
            gram = side.about_means(gram, means[side.role.named("first")]) if about_means else gram
            return np.asarray((self.c or 0.0) * trace(side.root, gram) / rows * side.norm)

        right = None if self.right is self.left else matrix(self.right)
        return Penalty(matrix(self.left), right, rounding=self.rounding, precision=PRECISION[self.left.dtype])

    def _by_slopes(self, rows: float, energy: Real) -> Penalty:
        left = self.left
        mu = (self.c or 0.0) * roughness(self.operator, left.basis, energy, lambda: left.root) / rows
        return Penalty(mu * left.norm, None, energy, self.rounding, PRECISION[left.dtype])


def combined(operator: Operator, sums: Sums, functions: Real) -> dict[str, Real]:
    """Return the sums of forms and functionals of combinations (p, r) of the functions."""
    forms = {name: functions.T @ sums[name] @ functions for name in operator.forms.keys() & sums.keys()}
    vectors = {name: functions.T @ sums[name] for name in operator.functionals.keys() & sums.keys()}
    return {**sums, **forms, **vectors}


def galerkin_system(
    operator: Operator,
    sums: Sums,
    norms: tuple[Real, Real] | None = None,
    dtype: str = "float64",
    *,
    about_means: bool = True,
) -> GalerkinSystem:
    """Return the system of an operator from means, or from sums if not `about_means`.

    Squared `norms` of both sides replace the Gram matrices, and the means are subtracted from the form only.
    """
    form = sums["form" if "form" in sums else "gram"]
    gram, right = sums.get("gram", form), sums.get("right_gram")
    bounded, centers = max(derivative_orders(operator)) == 0, operator.center and about_means
    firsts = (sums["first"], sums.get("right_first", sums["first"])) if centers else None
    if norms is not None:
        gram, right = norms[0], norms[1] if "right_first" in sums else None
        form, firsts = form if firsts is None else form - np.outer(*firsts), None
    return GalerkinSystem(form, gram, right, firsts, energy=sums.get("energy"), bounded=bounded, dtype=dtype)


def checked_means(moments: Moments) -> dict[str, NDArray[np.floating[Any]]]:
    """Return the means of all sums; raise ValueError if they are not finite, or weights sum to 0."""
    check_total(moments.weight)
    means = {name: moments.mean(name) for name in moments.arrays if name not in moments.operator.counts}
    if not all(np.isfinite(mean).all() for mean in means.values()):
        raise ValueError(
            "moments must be finite, but the kernel, its derivatives or the targets overflow. Scale the columns "
            "(Rows(X, standardize=True)) or the targets, or change the kernel"
        )
    return means


class _FunctionSpace:
    """Functions of one side, and which of them have sufficient support."""

    def __init__(self, moments: Moments, role: Role, least: float, half: bool, device: Device):
        right = moments.right_basis if role == Role.TEST else None
        self.role, self.device = role, device
        self.basis: Basis = moments.basis if right is None else right
        first, diagonal = moments.mean(role.named("first")), np.diag(moments.mean(role.named("gram")))
        share = np.divide(first, diagonal, out=np.zeros_like(first), where=diagonal > 0) * first
        self.support = share * counted_rows(moments)
        self.kept: NDArray[np.bool_] = ~self.basis.local | (self.support >= least)
        if half:
            self.kept &= _first_half(self.basis)
        else:
            advise_support(self.kept, self.basis, least)
        self.gram, self.dtype = moments.mean(role.named("gram")), moments.dtype
        self.variances = np.maximum(diagonal - first**2, 0.0)
        self.free_of_units = not moments.operator.solver.by_norm

    @cached_property
    def norm(self) -> Real:
        """Matrix of the squared norm of the retained functions, the variance of linear ones."""
        if not self.linear.any():
            norm = self.basis.norm(self.gram)
        else:
            slices = slices_of(part.size for part in self.basis.parts)
            every = [
                np.diag(self.variances[i]) if self.linear[i].all() else part.norm(self.gram[i, i])
                for part, i in zip(self.basis.parts, slices, strict=True)
            ]
            norm = np.asarray(block_diag(*every))
        return norm if self.kept.all() else np.asarray(norm[np.ix_(self.kept, self.kept)])

    @cached_property
    def linear(self) -> NDArray[np.bool_]:
        """Which functions are linear ones whose norm is their variance, (p,)."""
        parts = [
            np.full(part.size, self.free_of_units and isinstance(part, LandmarkBasis) and type(part.kernel) is Linear)
            for part in self.basis.parts
        ]
        return np.concatenate(parts)

    def about_means(self, gram: Real, first: Real) -> Real:
        """Return the Gram matrix of the retained functions, with linear ones centered."""
        means = first * self.linear[self.kept]
        return np.asarray(gram - np.outer(means, means))

    @cached_property
    def root(self) -> Real:
        """Matrix R with R R^T the pseudo-inverse of the norm."""
        return inverse_norm(self.norm, self.dtype, self.device)

    def spread(self, coefficients: Array) -> Array:
        """Return coefficients of all functions, 0 for those not retained."""
        whole = np.zeros((len(self.kept), coefficients.shape[1]), coefficients.dtype)
        whole[self.kept] = coefficients
        return whole


def _first_half(basis: Basis) -> NDArray[np.bool_]:
    """Return a mask (p,) of all functions except those at the second half of the landmarks."""
    parts = [
        np.arange(part.size) < (part.size + 1) // 2 if part.landmark_parts else np.ones(part.size, bool)
        for part in basis.parts
    ]
    return np.concatenate(parts)


def advise_support(kept: NDArray[np.bool_], basis: Basis, least: float) -> None:
    """Warn of basis functions dropped for a support of fewer than `least` rows; ValueError if all are."""
    if not kept.any():
        raise ValueError(f"all {basis.size} basis functions have a support of fewer than min_support={least:g} rows")
    if not kept.all():
        warn_user(
            f"{np.count_nonzero(~kept)} of {basis.size} basis functions were dropped for a support of fewer than "
            f"min_support={least:g} effective rows. Widen the kernel, or use more rows",
            RankWarning,
        )


def roughness(operator: Operator, basis: Basis, energy: Real, root: Callable[[], Real]) -> float:
    """Return kappa, the mean over rows of the squared norm, in K, of the functionals of the form.

    For the Dirichlet form of a smooth radial kernel k(x, y) = q(s) this is -2 d q'(0), d / scale² for a Gaussian; if no
    such constant is known, it is tr(K^+ F) with the mean F = `energy` of the form. `root` returns `inverse_norm(K)`.
    """
    squares, slope = operator.slopes_squared(basis.dimension), basis.slope_norm
    if squares is not None and slope is not None:
        return squares * slope
    return max(trace(root(), energy), 0.0)


def inverse_norm(norm: Real, dtype: str = "float64", device: Device = HOST) -> Real:
    """Return R (p, r) with R R^T = K^+, without directions in which K^+ amplifies the rounding of sums."""
    return inverse_root(symmetric_part(norm), CUTS[dtype], device=device)


def trace(root: Real, form: Real) -> float:
    """Return tr(K^+ F) for a form F (p, p) and R with R R^T = K^+."""
    return float(np.sum(root * (form @ root)))
