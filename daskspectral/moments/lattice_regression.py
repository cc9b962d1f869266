"""Regression on a Fourier lattice: kernel, scale and penalty by the folds of modes, then one Cholesky factorisation.

f = Σ_k a_k φ_k minimises the mean squared error plus alpha Σ_k a_k² / S_k², for the prior S² of a kernel; the
constant has a wide prior. With an intercept these are the coefficients of values about their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.lattice import WeighedLattice, shrunk_orders
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.moments.lattice import Arrays, among_all, lattice_of, written_out
from daskspectral.moments.moments import Moments
from daskspectral.moments.prior_choice import Chosen, families_of, kernel_of
from daskspectral.moments.regression import ridge_problem
from daskspectral.moments.search import RidgeEvaluator, Setting, Threads
from daskspectral.solve.ridge import RidgeFit, RidgeProblem, solve_diagonal, summed

Array = NDArray[np.floating[Any]]
GAUSSIAN = Gaussian("auto")

INTERCEPT = 10.0  # root of the constant's prior variance; that of all other functions together is 1
TRIED, EXACT = 450, 1000  # functions of the lattices on which kernels are compared, and penalties
PARTS = 5  # into which folds are merged
UNIT = 0.25


@dataclass(frozen=True, eq=False)
class Regressed:
    """The fit, the coefficients (p, m) of all measured functions, the ridge problem, and how the kernel was chosen."""

    fit: RidgeFit
    coefficients: Array
    problem: RidgeProblem
    chosen: Chosen


@dataclass(frozen=True, eq=False)
class Prior(WeighedLattice):
    """The functions of a weighed lattice, with a wide prior of the constant."""

    @property
    def weights(self) -> Array:
        return np.append(INTERCEPT**2, super().weights[1:])

    def norm(self, gram: Array) -> Array:
        return np.eye(self.size)


def problem_of(moments: Moments, basis: Prior, gradient_weight: float) -> RidgeProblem:
    """Return the ridge problem of modes on a weighed lattice: S F S for forms F, S b for right-hand sides b."""
    written, scale = written_out(moments, basis.inner), np.sqrt(basis.weights)
    shapes = {"gram": scale[:, None] * scale, "dirichlet": scale[:, None] * scale, "first": scale}
    shapes |= {"values": scale[:, None], "slopes": scale[:, None]}

    def scaled(sums: Arrays, _: float) -> dict[str, Array]:
        return {name: values * shapes.get(name, 1.0) for name, values in sums.items()}

    return ridge_problem(written.mapped(scaled, basis=basis), gradient_weight)


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

    def problem_at(candidate: Setting) -> RidgeProblem:
        own = kernel_of(families[candidate.family], candidate.factor, moments)
        return problem_of(moments, Prior(tried, own), gradient_weight)

    reason = "every parameter was given, or there are no folds"
    chosen = Chosen(kernel_of(families[0], UNIT, moments), given, reason=reason)
    if families[0].automatic and moments.folds is not None and np.count_nonzero(moments.folds.weight) > 1:
        chosen = Chosen.by(RidgeEvaluator(problem_at, given, cut), families, moments, threads)
    near = shrunk_orders(orders, EXACT)
    basis = Prior(lattice.truncated(near), chosen.kernel)
    problem = problem_of(moments, basis, gradient_weight)
    fit = problem.solve(alpha, cut)
    coefficients: Array = np.sqrt(basis.weights)[:, None] * fit.coefficients
    if near != orders:
        basis = Prior(lattice.truncated(orders), chosen.kernel)
        coefficients = _direct(moments, basis, fit.alpha, gradient_weight)
    return Regressed(fit, among_all(coefficients, moments, basis.inner), problem, chosen)


def _direct(moments: Moments, basis: Prior, alpha: float, gradient_weight: float) -> Array:
    """Return the coefficients (p, m) of a lattice's functions at one penalty, by a Cholesky factorization."""
    form, target = summed(problem_of(replace(moments, folds=None), basis, gradient_weight).observed)
    least = np.full(len(form), max(alpha, 1e-14 * float(np.trace(form))))
    return np.asarray(np.sqrt(basis.weights)[:, None] * solve_diagonal(form, target, least))
