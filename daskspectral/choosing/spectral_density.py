"""Solution of modes on a Fourier lattice: kernel, scale and penalty, each fixed or chosen by the folds.

For spectra a spectral density is solved on the modes of half of the folds and scored on the other half
(`moments.trial`). For regression f = Σ_k a_k φ_k minimizes the mean squared error plus alpha Σ_k a_k² / S_k², for the
spectral density S² of a kernel; that of the constant is large. With an intercept these are the coefficients of centered
values.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import BasisRecipe, FourierBasis, FourierLattice
from daskspectral.basis.lattice import shrunk_orders, spectral_weights
from daskspectral.choosing.candidates import (
    Hyperparameters,
    RidgeEvaluator,
    Search,
    TrialEvaluator,
    in_threads,
)
from daskspectral.choosing.lattice import compares_modes
from daskspectral.engine.memory import release
from daskspectral.errors import ReliabilityWarning, warn_user
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.moments import Moments
from daskspectral.moments.counting import repeats
from daskspectral.moments.jumps import JumpSystem
from daskspectral.moments.lattice import Arrays, ModeSystem, WeightedModes, among_all
from daskspectral.moments.problem import checked_means
from daskspectral.moments.regression import ridge_problem
from daskspectral.moments.solution import System
from daskspectral.moments.trial import Split, Trial, half_splits
from daskspectral.operators import NeighborJumps
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solve.pencil import PART, ritz_size
from daskspectral.solve.ridge import RidgeFit, RidgeProblem, solve_diagonal, summed
from daskspectral.solvers import Regularized, Solving

Array = NDArray[np.floating[Any]]

FAMILIES: tuple[Kernel, ...] = (Matern(1.5, "auto"), Gaussian("auto"))
FACTORS, LARGEST_FACTOR = (1 / 16, 1 / 8, 1 / 4, 1 / 2), 2.0
PENALTY = 1.0  # c, relative to the effective number of rows
PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)  # for a fixed kernel, whose scale may be less suitable
UNCOMPARED = 10.0  # c without a comparison: with 1 a few rows in the tails have values near 0
UNIT, REGRESSION_UNIT = 0.1, 0.25  # relative to the longest period: the scale without a comparison
TRIED, REGRESSION_TRIED = 750, 450  # functions of the lattices that are compared; fewer are inaccurate for clusters
SPAN = 160  # leading functions in which candidates are compared at several penalties
TIMES = 2  # permutations of the folds, two splits each
LEAST_FOLDS = 4
LEAST_LONG, LEAST_SHORT = 1e-4, 1e-3  # relative to the density at 0, and at half the frequency

INTERCEPT = 10.0  # root of the prior variance of the constant; the sum of all others is 1
EXACT = 1000  # functions of the lattices on which penalties of regressions are compared
PARTS = 5  # into which folds are merged


@dataclass(frozen=True, eq=False)
class ChosenDensity:
    """ChosenDensity kernel and penalty, and the table of candidates, best first, or the `reason` for no table."""

    kernel: Kernel
    penalty: float | None
    table: tuple[Candidate, ...] = ()
    edge: str = ""
    reason: str = ""

    @classmethod
    def by(
        cls, search: Search, families: Sequence[Kernel], moments: Moments, count: int | None = None
    ) -> ChosenDensity:
        """Return the best candidate of a search; the table has `count` values of each."""
        scores, order = search.scores, search.order
        kernels = [kernel_of(families[s.family], s.factor, moments) for s in order]
        table = tuple(
            Candidate.of(str(k), s.factor, s.penalty, scores[s], search.found[s][:, :count], "" if place else "best")
            for place, (k, s) in enumerate(zip(kernels, order, strict=True))
        )
        return cls(kernels[0], order[0].penalty, table, search.at_search_boundary(order[0]))

    def selection(self, moments: Moments, orders: tuple[int, ...] | None) -> Selection:
        """Return the table, and the basis that reproduces the solution; scales are in units of the period."""
        lattice: Any = moments.basis
        basis = replace((lattice if orders is None else lattice.truncated(orders)).recipe, kernel=self.kernel)
        period = float(lattice.period.max())
        return Selection(self.table, {"basis": basis}, moments.count, period, self.edge, self.reason)


def families_of(kernel: Kernel | None, usual: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return the fixed kernel, without periods, which the lattice adds, or the usual ones."""
    return usual if kernel is None else (kernel.flat,)


def kernel_of(kernel: Kernel, factor: float, moments: Moments) -> Kernel:
    """Return the kernel with its scale, if open, resolved to a factor of the longest period."""
    return kernel.resolve(factor * float(cast(FourierLattice, moments.basis).period.max()), "auto")


def searched(evaluator: TrialEvaluator | RidgeEvaluator, families: Sequence[Kernel]) -> Search:
    """Search the scales of all families whose scale is open."""
    search = Search(evaluator, _in_threads)
    for family, kernel in enumerate(families):
        search.line_search(family, FACTORS if kernel.automatic else (1.0,), LARGEST_FACTOR)
    return search


def _in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Apply `in_threads`, then release freed large matrices, which threads would otherwise retain."""
    found = in_threads(function, items)
    release()
    return found


# -- spectra -----------------------------------------------------------------------------------------------------------


def system_of(moments: Moments, *, basis: Any, solver: Solving, count: int) -> System:
    """Return the system of moments: matrices as measured, or of the leading functions of a kernel.

    The kernel of a lattice, which is applied after the pass, and the penalty are those of an estimator's `basis` and
    `solver`; open ones are chosen by the folds. Raises ValueError for more frequencies than were measured.
    """
    if isinstance(moments.operator, NeighborJumps):
        return JumpSystem.of(moments, count)
    if not moments.basis.after_pass:
        return System(moments, solver.resolved(1.0 if moments.penalty is None else moments.penalty))
    checked_means(moments)
    orders, kernel = _given(basis, moments)
    penalty = solver.resolved("auto" if moments.penalty is None else moments.penalty)
    c = penalty if isinstance(penalty, float) else None
    if penalty is None or not (c is None or kernel is None or kernel.automatic):
        family = FAMILIES[0] if kernel is None else kernel
        chosen = ChosenDensity(kernel_of(family, UNIT, moments), c, reason="every parameter is fixed")
    else:
        chosen = choose_spectral_density(moments, kernel=kernel, penalty=c, count=count)
        if not chosen.table:
            warn_user(
                f"kernels of the lattice were not compared, because {chosen.reason}: {chosen.kernel} and penalty="
                f"{chosen.penalty:g} are used. Fit with folds, or pass kernel and penalty",
                ReliabilityWarning,
            )
    release()
    selection = chosen.selection(moments, orders)
    if penalty is not None:
        selection = selection.with_parameters({"solver": Regularized(chosen.penalty or 0.0)})
    return replace(ModeSystem.of(moments, chosen.kernel, orders, chosen.penalty, count), selection=selection)


def spectral_density_search(
    trial: Trial, halves: Sequence[Split], families: Sequence[Kernel], penalties: Sequence[float], count: int
) -> Search:
    """Return a search that compares spectral densities of modes by halves of the folds.

    `trial` has the modes by fold, of which `count` values are compared. Raises LinAlgError if no candidate converges.
    """
    whole, measured = trial.moments, cast(FourierLattice, trial.moments.basis)
    kind = whole.operator.solver
    lattice = measured.truncated(shrunk_orders(measured.orders, TRIED))
    moments, ritz = whole.expanded(lattice), ritz_size(kind.n_compared(count))
    most = min(SPAN, PART * ritz) if len(penalties) == 1 else SPAN  # halves are solved in no more

    def tried(prior: Hyperparameters) -> Trial:
        weighed = WeightedModes(moments, kernel_of(families[prior.family], prior.factor, whole), lattice)
        span, _ = weighed.leading(min(penalties), ritz, most)
        return replace(trial, moments=weighed.reduced(span))

    evaluator = TrialEvaluator(tried, halves, penalties, kind, count)
    search = searched(evaluator, families)
    if len(evaluator.failed) == len(search.found):
        raise np.linalg.LinAlgError(next(iter(evaluator.failed.values())))
    return search


def choose_spectral_density(
    moments: Moments, *, kernel: Kernel | None, penalty: float | None, count: int
) -> ChosenDensity:
    """Return the spectral density of modes chosen by their folds, for a fixed or open kernel and penalty.

    Without folds, and for operators whose solutions cannot be compared, it is Matern 3/2 with a tenth of the longest
    period and c = 10. An open penalty is relative to the effective number of rows. Raises LinAlgError if no candidate
    converges.
    """
    operator, folds = moments.operator.validation_operator, moments.folds
    families = families_of(kernel, FAMILIES)
    reason, unit = "", repeats(moments)
    if not compares_modes(operator):
        reason = f"solutions of {moments.operator} cannot be compared on validation rows"
    elif folds is None or np.count_nonzero(folds.weight[: folds.number]) < LEAST_FOLDS:
        reason = f"fewer than {LEAST_FOLDS} folds have rows"
    if reason or operator is None or folds is None:
        plain = kernel_of(families[0], UNIT, moments)
        return ChosenDensity(plain, UNCOMPARED * unit if penalty is None else penalty, reason=reason)
    usual = (PENALTY,) if families[0].automatic else PENALTIES
    penalties = tuple(c * unit for c in usual) if penalty is None else (penalty,)
    compared_by = replace(moments, operator=operator)
    trial, halves = Trial(compared_by, folds.number).merged(half_splits(folds.number, TIMES, np.random.default_rng(0)))
    return ChosenDensity.by(
        spectral_density_search(trial, halves, families, penalties, count), families, moments, count
    )


# -- regressions -------------------------------------------------------------------------------------------------------


def deviations(kernel: Kernel, lattice: FourierLattice) -> Array:
    """Return S (p,) of the functions of a lattice, with a large value for the constant."""
    return np.asarray(np.sqrt(np.append(INTERCEPT**2, spectral_weights(kernel, lattice)[1:])))


def problem_of(moments: Moments, lattice: FourierLattice, scale: Array, gradient_weight: float) -> RidgeProblem:
    """Return the ridge problem of modes on a weighted lattice: S F S for forms F, S b for right-hand sides b."""
    shapes = {"gram": scale[:, None] * scale, "dirichlet": scale[:, None] * scale, "first": scale}
    shapes |= {"values": scale[:, None], "slopes": scale[:, None]}

    def scaled(sums: Arrays, _: float) -> dict[str, Array]:
        return {name: values * shapes.get(name, 1.0) for name, values in sums.items()}

    found = ridge_problem(moments.expanded(lattice).mapped(scaled), gradient_weight)
    return replace(found, penalty=np.eye(lattice.size))


def regress(
    moments: Moments, *, basis: Any, alpha: float | str | None, gradient_weight: float, cut: float
) -> tuple[RidgeProblem, RidgeFit, Array, Selection | None]:
    """Return the ridge problem of a regression, fit, coefficients (p, m) of all functions, and selection.

    The kernel of a lattice is that of the estimator's `basis`, or chosen by the folds; other functions have no
    selection (None). Kernels are compared on a lattice of up to 450 functions, penalties on up to 1000, by the
    validation error. Raises ValueError for moments that are not finite, or weights that are all zero.
    """
    if not moments.basis.after_pass:
        problem = ridge_problem(moments, gradient_weight)
        fit = problem.solve(alpha, cut)
        return problem, fit, fit.coefficients, None
    asked, fixed = _given(basis, moments)
    lattice: Any = moments.basis
    orders = lattice.orders if asked is None else asked
    given = None if alpha in (None, "gcv") else float(alpha)
    families = families_of(fixed, (Matern(2.5 if "dirichlet" in moments.operator.forms else 1.5, "auto"), FAMILIES[1]))
    if moments.folds is not None:
        few = moments.folds.merged(np.arange(moments.folds.number) % PARTS)
        moments = replace(moments, folds=few)
    tried = lattice.truncated(shrunk_orders(orders, REGRESSION_TRIED))

    def problem_at(candidate: Hyperparameters) -> RidgeProblem:
        kernel = kernel_of(families[candidate.family], candidate.factor, moments)
        return problem_of(moments, tried, deviations(kernel, tried), gradient_weight)

    reason = "every parameter is fixed, or there are no folds"
    chosen = ChosenDensity(kernel_of(families[0], REGRESSION_UNIT, moments), given, reason=reason)
    if families[0].automatic and moments.folds is not None and np.count_nonzero(moments.folds.weight) > 1:
        chosen = ChosenDensity.by(searched(RidgeEvaluator(problem_at, given, cut), families), families, moments)
    near = shrunk_orders(orders, EXACT)
    functions = lattice.truncated(near)
    scale = deviations(chosen.kernel, functions)
    problem = problem_of(moments, functions, scale, gradient_weight)
    fit = problem.solve(alpha, cut)
    found = fit.coefficients
    if near != orders:
        functions = lattice.truncated(orders)
        scale = deviations(chosen.kernel, functions)
        found = _direct(problem_of(replace(moments, folds=None), functions, scale, gradient_weight), fit.alpha)
    coefficients = among_all(scale[:, None] * found, moments, functions)
    return problem, fit, coefficients, chosen.selection(moments, asked)


def _direct(problem: RidgeProblem, alpha: float) -> Array:
    """Return the coefficients (p, m) of a problem at one penalty, by a Cholesky factorization."""
    form, target = summed(problem.observed)
    return solve_diagonal(form, target, np.full(len(form), max(alpha, 1e-14 * float(np.trace(form)))))


# -- parameters of an estimator ----------------------------------------------------------------------------------------


def _given(basis: Any, moments: Moments) -> tuple[tuple[int, ...] | None, Kernel | None]:
    """Return the frequencies and the kernel of an estimator's basis; None for each that is open.

    Raises TypeError or ValueError for a kernel without a spectral density, ValueError for frequencies that were not
    measured.
    """
    lattice, kernel = cast(FourierLattice, moments.basis), None
    recipe = basis.recipe if isinstance(basis, BasisRecipe) else None
    fourier = recipe if isinstance(recipe, FourierBasis) else None
    if fourier is not None and fourier.kernel != "auto":
        kernel = cast(Kernel, copy.deepcopy(fourier.kernel))  # kernels can be changed in place
    if kernel is not None and not kernel.automatic:
        advise_range(kernel, lattice)
    release()  # memory of the pass over the rows
    return None if fourier is None else _given_orders(fourier, lattice), kernel


def advise_range(kernel: Kernel, lattice: FourierLattice) -> None:
    """Warn if a smooth kernel is too wide to vary within the gap between opposite ends of the box.

    Waves of twice the gap then have almost no spectral density, and those of the gap much less.
    """
    for axis, (period, (closed, _)) in enumerate(zip(lattice.period, lattice.ends, strict=True)):
        if closed:
            continue
        gap = float(period) * lattice.margin / (1 + lattice.margin)
        line = FourierLattice((2,), periods=(2 * gap,))
        still, long, short = spectral_weights(kernel, line)[:3]
        if long < LEAST_LONG * still and short < LEAST_SHORT * max(long, LEAST_LONG**2 * still):
            warn_user(
                f"the kernel {kernel} is too wide for the gap of {gap:.3g} between opposite ends of column {axis}: "
                f"choose a narrower or rougher kernel, or FourierBasis(margin={2 * lattice.margin:.2g})",
                ReliabilityWarning,
            )
            return


def _given_orders(basis: FourierBasis, measured: FourierLattice) -> tuple[int, ...] | None:
    other = {
        "box": any(side not in (None, known) for side, known in zip(basis.box or (), measured.box or (), strict=False)),
        "margin": basis.box is None
        and basis.margin not in (None, measured.margin),  # with a box it may be computed from m
        "periods": basis.periods not in (None, measured.periods),
    }
    given = basis.n_frequencies
    orders = given if isinstance(given, tuple) else (given or 0,) * measured.dimension
    other["n_frequencies"] = len(orders) != measured.dimension or any(np.array(orders) > measured.orders)
    for name in (name for name, differs in other.items() if differs):
        raise ValueError(
            f"{name} of the basis must be {getattr(measured.recipe, name)!r}, as in the moments, got "
            f"{getattr(basis, name)!r}. Fit the estimator to the data, or omit {name}."
        )
    return None if given is None or orders == measured.orders else orders
