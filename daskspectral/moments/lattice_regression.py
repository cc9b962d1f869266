"""Regression on a Fourier lattice: kernel, scale and penalty by the folds of modes, then one Cholesky factorisation.

f = Σ_k a_k φ_k minimises the mean squared error plus alpha Σ_k a_k² / S_k², for the prior S² of a kernel; the
constant has a wide prior. With an intercept these are the coefficients of values about their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.lattice import WeighedLattice, shrunk_orders
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.moments.lattice import Arrays, among_all, expanded, lattice_of, stacked
from daskspectral.moments.moments import Moments
from daskspectral.moments.prior_choice import FACTORS, LARGEST_FACTOR, families_of, kernel_of
from daskspectral.moments.regression import ridge_problem
from daskspectral.moments.trial import Setting, Threads, climb_families, edge_of
from daskspectral.solve.ridge import RidgeFit, RidgeProblem, solve_diagonal, summed

Array = NDArray[np.floating[Any]]
GAUSSIAN = Gaussian("auto")

INTERCEPT = 10.0  # root of the constant's prior variance; that of all other functions together is 1
TRIED, EXACT = 450, 1000  # functions of the lattices on which kernels are compared, and penalties
Judged = tuple[float, float, Array]
Table = tuple[tuple[str, float, float, float, Array], ...]
PARTS = 5  # into which folds are merged
UNIT = 0.25


@dataclass(frozen=True, eq=False)
class Regressed:
    """The fit, the coefficients (p, m) of all measured functions, its problem, the kernel, and the table of candidates.

    The table has kernel, scale in periods, penalty, the share of the spread explained and the errors by kind.
    """

    fit: RidgeFit
    coefficients: Array
    problem: RidgeProblem
    kernel: Kernel
    table: Table
    edge: str = ""


@dataclass(frozen=True, eq=False)
class _Prior(WeighedLattice):
    """Functions of a weighed lattice with a free constant."""

    def norm(self, gram: Array) -> Array:
        return np.eye(self.size)


def problem_of(moments: Moments, basis: WeighedLattice, gradient_weight: float) -> RidgeProblem:
    """The ridge problem of modes on a weighed lattice."""
    scale, lattice, operator = scale_of(basis), basis.lattice, moments.operator
    whole, folds = _scaled(expanded(lattice, operator, moments.arrays), scale), moments.folds
    if folds is not None:
        parts = (_scaled(expanded(lattice, operator, folds.of(k)), scale) for k in range(folds.number))
        folds = replace(folds, arrays=stacked(parts))
    measured = replace(moments.measured, basis=basis)
    return ridge_problem(replace(moments, arrays=whole, measured=measured, folds=folds), gradient_weight)


def scale_of(basis: WeighedLattice) -> Array:
    """S (p,), with the intercept's."""
    scale = np.sqrt(basis.weights)
    scale[0] = INTERCEPT
    return scale


def _scaled(sums: Arrays, scale: Array) -> dict[str, Array]:
    """S F S of forms, S b of right-hand sides and first moments, other sums unchanged."""
    forms = {name: sums[name] * scale[:, None] * scale for name in ("gram", "dirichlet") if name in sums}
    vectors = {name: (sums[name].T * scale).T for name in ("values", "slopes", "first") if name in sums}
    return {**sums, **forms, **vectors}


def regress(
    moments: Moments,
    *,
    kernel: Kernel | None,
    orders: Sequence[int] | None,
    alpha: float | str | None,
    gradient_weight: float,
    cut: float,
    threads: Threads,
) -> Regressed:
    """Solve a regression from modes, for a `kernel` of open scale or any (None), a penalty `alpha` or the best.

    Kernels are compared on a lattice of up to 450 functions, penalties on up to 1000, by the error on folds left out.
    Raises ValueError for moments that are not finite, or weights that are all zero.
    """
    lattice = lattice_of(moments)
    orders = lattice.orders if orders is None else tuple(orders)
    given = None if alpha is None or isinstance(alpha, str) else alpha
    families = families_of(kernel, (Matern(2.5 if "dirichlet" in moments.operator.forms else 1.5, "auto"), GAUSSIAN))
    if moments.folds is not None:
        few = moments.folds.merged(np.arange(moments.folds.number) % PARTS)
        moments = replace(moments, folds=few)
    tried = lattice.truncated(shrunk_orders(orders, TRIED))

    def judge(kernel: Kernel) -> Judged:
        problem = problem_of(moments, _Prior(tried, kernel), gradient_weight)
        curve = problem.curve(given, cut)
        assert curve.errors is not None
        place = int(np.argmin(curve.errors.sum(axis=1)))
        errors = curve.errors[place]
        return float(curve.alphas[place]), problem.explained(float(errors.sum())), errors

    table: Table = ()
    best, edge = kernel_of(families[0], UNIT, moments), ""
    if families[0].automatic and moments.folds is not None and np.count_nonzero(moments.folds.weight) > 1:
        best, table, edge = _compared(families, moments, judge, threads)
    near = shrunk_orders(orders, EXACT)
    basis = _Prior(lattice.truncated(near), best)
    problem = problem_of(moments, basis, gradient_weight)
    fit = problem.solve(alpha, cut)
    coefficients: Array = scale_of(basis)[:, None] * fit.coefficients
    if near != orders:
        basis = _Prior(lattice.truncated(orders), best)
        coefficients = _direct(moments, basis, fit.alpha, gradient_weight)
    return Regressed(fit, among_all(coefficients, moments, basis.lattice), problem, best, table, edge)


def _compared(
    families: Sequence[Kernel], moments: Moments, judge: Callable[[Kernel], Judged], threads: Threads
) -> tuple[Kernel, Table, str]:
    """The best kernel, the table of all, best first, and `edge_of` its scales."""

    def own(setting: Setting) -> Kernel:
        return kernel_of(families[setting.family], setting.factor, moments)

    def ordered(found: Mapping[Setting, Judged]) -> list[Setting]:
        return sorted(found, key=lambda s: -found[s][1])

    factors = [FACTORS] * len(families)
    tried, found = climb_families(factors, (None,), lambda s: judge(own(s)), ordered, threads, LARGEST_FACTOR)
    order = ordered(found)
    best = order[0]
    table = tuple((str(own(s)), s.factor, *found[s]) for s in order)
    return own(best), table, edge_of(tried[best.family], best.factor)


def _direct(moments: Moments, basis: WeighedLattice, alpha: float, gradient_weight: float) -> Array:
    """Return the coefficients (p, m) of a lattice's functions at one penalty, by a Cholesky factorization."""
    form, target = summed(problem_of(replace(moments, folds=None), basis, gradient_weight).observed)
    least = np.full(len(form), max(alpha, 1e-14 * float(np.trace(form))))
    return np.asarray(scale_of(basis)[:, None] * solve_diagonal(form, target, least))
