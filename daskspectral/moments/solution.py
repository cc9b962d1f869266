"""Attributes of an estimator from moments: values, functions, error bars; and scores on moments of other rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import LandmarkBasis
from daskspectral.devices import HOST, Device
from daskspectral.errors import RankWarning, warn_user
from daskspectral.kernels import Linear
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.counting import advise_weights
from daskspectral.moments.field_modes import LEAST_ROWS as FEWEST
from daskspectral.moments.field_modes import significance_of, with_modes
from daskspectral.moments.intervals import LEAST_ROWS, Errors, errors_of, held_out_by_folds, lowered, reliable_by
from daskspectral.moments.lags import CONSTANT, LagMatrices, Starts, is_lagged, resolved, starts_of
from daskspectral.moments.moments import Moments
from daskspectral.moments.pairwise import SQUARES, SUMS
from daskspectral.moments.problem import GalerkinProblem, checked_means, galerkin_system
from daskspectral.moments.reliability import SLOWER, Reliability, advise_clipped, advise_manifold, advise_rank
from daskspectral.moments.sample import graph_size
from daskspectral.operators import Operator
from daskspectral.operators.paired import of_trajectories, scoring_operator
from daskspectral.solve.neighbors import energy_ratios
from daskspectral.solve.problems import NEGLIGIBLE
from daskspectral.solvers import Solving, Truncated

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]
LEAST_HALVED = 16  # minimum number of landmarks, for the error without half of them
LOWERED = 1.5  # lower ends are divided by this power of the factor by which half of the functions change values
MOST_STEEP = 6.0  # maximum order of convergence in the number of frequencies
LEAST_LEFT = 1e-9  # of the variance of the columns
JUDGED = 4  # minimum number of functions that are compared with those of a graph
BLOCK_ROWS = 256  # rows of a sample per evaluation of a basis


def _is_approximate(basis: LandmarkBasis, moments: Moments) -> bool:
    """Return whether more landmarks would add functions of the kernel on the data."""
    if not isinstance(basis.kernel, Linear):
        return True
    if basis.size == basis.dimension and np.array_equal(basis.landmarks != 0, np.eye(basis.size, dtype=bool)):
        return False  # scaled columns
    if SQUARES not in moments.arrays or basis is not moments.basis.parts[-1]:
        return bool(np.linalg.matrix_rank(basis.landmarks) < basis.dimension)
    return not moments.spanned and _left_of_columns(basis, moments) > LEAST_LEFT


def _left_of_columns(basis: LandmarkBasis, moments: Moments) -> float:
    """Return the share of the variance of columns that linear functions do not explain."""
    mean, first = moments.mean(SUMS), moments.mean("first")[-basis.size :]
    covariance = moments.mean("gram")[-basis.size :, -basis.size :] - np.outer(first, first)
    norm = basis.norm(covariance)
    total = float(np.sum(moments.mean(SQUARES) - mean**2))
    return 1 - float(np.trace(np.linalg.pinv(norm, hermitian=True) @ covariance)) / total if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class System:
    """Moments to be solved, with the strength c of the `penalty`, None for a solution by truncation.

    `selection` is the table of candidates if hyperparameters were selected after the pass. `fewer` are moments of fewer
    functions with their shares of the frequencies, ascending, for the discretization error; otherwise half of the
    landmarks estimate it.
    """

    moments: Moments
    penalty: float | None
    selection: Any = None
    fewer: Sequence[tuple[float, Moments]] = ()

    def finished(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes in terms of all measured functions."""
        return found

    def solve(
        self, solver: Solving, count: int, names: Callable[[], Sequence[str]] = tuple, device: Device = HOST
    ) -> dict[str, Any]:
        """Return the attributes of an estimator of `count` functions, by name (`moments.attributes`).

        Issues warnings of unreliable results, with the `names` of the columns of X. Raises ValueError if every function
        of a side vanishes, sums are not finite, or all weights are zero.
        """
        moments, operator, own = self.moments, self.moments.operator, self.moments.operator.solver
        problem = GalerkinProblem(moments, count, self.penalty, solver, device=device)
        spectrum, left, right = problem.whole, problem.left, problem.right
        advise_manifold(moments)
        advise_weights(moments)
        advise_clipped(moments)
        shown = {"left": left.spread(spectrum.left), "right": right.spread(spectrum.right)}
        modes = significance_of(moments, shown["left"]) if spectrum.values.size else None
        least = LEAST_ROWS if modes is None else FEWEST
        errors = errors_of(problem, moments.folds, moments.finalist_gap, least)
        if modes is not None and moments.folds is not None and not errors.reason:
            errors = with_modes(errors, modes, spectrum.values, moments.folds)
        shown_values, held_out = operator.reported_values(spectrum.values), operator.reported_values(errors.held_out)
        intervals = np.sort(operator.reported_values(errors.intervals), axis=1)
        dynamic = of_trajectories(operator) and operator.form.symmetric  # solved for 1 - K, reported for K
        if dynamic and not errors.reason:
            errors = replace(errors, reliable=reliable_by(shown_values, held_out, intervals, problem.nulls))
        if len(spectrum.values) < left.basis.dimension or not own.by_norm:  # all components are not a low rank
            advise_rank(spectrum, left.basis, count, right=right.basis)
        approximation, half = self._errors_of_discretization(problem, errors)
        if half and not dynamic and not own.maximizes(spectrum.values):
            errors = replace(errors, intervals=_lowered(errors.intervals, spectrum.values.real, approximation))
            intervals = np.sort(operator.reported_values(errors.intervals), axis=1)
        constants = min(problem.nulls, len(spectrum.values)) or _leading_constant(moments, shown["left"])
        certain, contradicted = np.ones(len(spectrum.values), bool), np.zeros(len(spectrum.values), bool)
        of_starts = shown[own.sides[0]]
        shared = of_trajectories(operator) and moments.right_basis is None
        if shared and len(certain):
            matrices = LagMatrices.of(moments, of_starts)
            contradicted = matrices.contradicted
            if dynamic and is_lagged(moments):
                certain = resolved(matrices.residuals(shown_values), shown_values)
        starts = starts_of(moments, of_starts) if shared and of_starts.size else Starts()
        ratios = _ratios_to_graph(problem, moments)
        tests = (constants, starts, contradicted, ratios, names, modes)
        reliability = Reliability(problem, moments, spectrum, errors, approximation, certain, *tests)
        reliability.advise()
        attributes = Attributes(own)
        found = {
            attributes.values: shown_values,
            **{name: shown[side] for name, side in attributes.functions.items()},
            "rank_": spectrum.rank,
            "residuals_": spectrum.residuals,
            "message_": f"{spectrum.status}; {errors.reason}" if errors.reason else spectrum.status,
            **{name: {"left": left, "right": right}[side].support for name, side in attributes.supports.items()},
            attributes.errors: intervals,
            "standard_errors_": errors.standard,
            "validation_values_": held_out,
            "multiplets_": errors.groups,
            "function_errors_": errors.angles,
            "discretization_errors_": approximation,
            "reliable_": reliability.reliable,
            "n_constants_": constants,
            **({} if modes is None else {"_significance_": modes}),
        }
        return self.finished(found)

    def _errors_of_discretization(self, problem: GalerkinProblem, errors: Errors) -> tuple[Array, bool]:
        values, solver = problem.whole.values, problem.solver
        some = (b for b in self.moments.basis.landmark_parts if b.size >= LEAST_HALVED)
        half = not self.fewer and any(_is_approximate(b, self.moments) for b in some)
        parts = [(0.5, self.moments)] if half else self.fewer
        if not parts or errors.reason:
            return np.full(len(values), np.nan), half
        every, changes = Truncated(solver.rtol, 0.0, solver.ridge), np.full((len(parts), len(values)), np.nan)
        for change, (_, part) in zip(changes, parts, strict=True):
            less, other = GalerkinProblem(part, problem.count, self.penalty, every, half, problem.device), values
            found: Functions = less.whole.values
            if half and part.folds is not None:
                found, other = held_out_by_folds(less, part.folds), errors.held_out
            known = min(len(found), len(other))
            change[:known] = np.abs(found[:known] - other[:known])
        approximation = extrapolated([share for share, _ in parts], changes)
        if not half:  # fewer functions have fewer values
            approximation = np.where(np.isnan(approximation), np.abs(errors.held_out), approximation)
        return approximation, half


def _lowered(intervals: Array, values: Array, approximation: Array) -> Array:
    """Return intervals (k, 2), extended downwards by a multiple of the change by half of the functions."""
    size = np.abs(values)
    change = np.nan_to_num(approximation / (size + NEGLIGIBLE * size.max(initial=0.0) + 1e-300))
    return lowered(intervals, (1 + change) ** -LOWERED)


def extrapolated(shares: Sequence[float], changes: Array) -> Array:
    """Return the extrapolated discretization errors of values, (k,).

    `changes` (1 or 2, k) are those for each of the `shares` of the frequencies, ascending. Two changes determine C and
    q of the error C m^-q of m frequencies, and its value at m is returned; otherwise, or if changes do not decrease,
    the first change.
    """
    first = np.abs(changes[0])
    if len(changes) < 2 or not shares[0] < shares[1] < 1:
        return np.asarray(first)
    steeper = np.linspace(0.1, MOST_STEEP, 100)
    growth = [np.expm1(-steeper * np.log(share)) for share in shares]
    ratio = np.divide(first, np.abs(changes[1]), out=np.full_like(first, np.inf), where=changes[1] != 0)
    power = np.interp(ratio, growth[0] / growth[1], steeper)
    left = np.minimum(first, first / np.expm1(-power * np.log(shares[0])))
    return np.asarray(np.where(np.isnan(changes).any(axis=0), np.nan, left))


def _ratios_to_graph(problem: GalerkinProblem, moments: Moments) -> Array:
    """Return the ratios (q,) of the energies of functions to those of a neighbor graph.

    Empty without a sample, and for functions that are periodic or vanish on a boundary. If the ratios of the first half
    of a large sample are large, the lesser ones of two graphs count: one sample in some hundred has a gap that the rows
    do not have.
    """
    basis = moments.basis
    if moments.sample is None or basis.periodic or basis.vanishes:
        return np.empty(0)
    points, weights = moments.sample.distinct
    found, enough = problem.leading(JUDGED), len(points) <= graph_size(points.shape[1])
    functions = problem.right.spread(found.right)
    ratios: Array = np.empty(0)
    for part in [slice(None)] if enough else [slice(0, None, 2), slice(1, None, 2)]:
        own = points[part]
        blocks = range(0, len(own), BLOCK_ROWS)
        values = [basis.values(own[start : start + BLOCK_ROWS]).T @ functions for start in blocks]
        again = energy_ratios(own, np.concatenate(values), weights[part]) if values else np.empty(0)
        shared = min(len(again), len(ratios)) if len(ratios) else len(again)
        ratios = np.minimum(again[:shared], ratios[:shared]) if len(ratios) else again
        if not (ratios > SLOWER).any():
            break
    sizes = np.abs(found.values[len(found.values) - len(ratios) :])
    return np.asarray(np.where(sizes > NEGLIGIBLE * sizes.max(initial=0.0), ratios, np.minimum(ratios, 1.0)))


def _leading_constant(moments: Moments, functions: Any) -> int:
    """Return 1 if the leading function is the constant, of value 1, otherwise 0."""
    conditional = of_trajectories(moments.operator) or moments.operator.solver.two_sided
    if not conditional or moments.operator.center or not functions.size or "first" not in moments.arrays:
        return 0
    leading = functions[:, 0]
    square = (leading.conj() @ moments.mean("gram") @ leading).real
    return int(np.abs(moments.mean("first") @ leading) ** 2 > CONSTANT * square)


# -- validation of functions by moments of other rows ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpanScore:
    """Score of k functions on new rows.

    `values` (k,) are the Ritz values of the operator on their span, in the order of its eigenvalues, or the singular
    values between two spans, as named by `kind`; NaN for directions that the new rows do not determine. `rows` is the
    number of rows.
    """

    score: float
    values: Functions
    kind: str
    rows: int


def score_span(operator: Operator, moments: Moments, functions: Mapping[str, Functions], wanted: int) -> SpanScore:
    """Return the score of fitted functions from moments of new rows.

    Functions were fitted for `operator`; the moments are those of its `scoring_operator`.

    `functions` are coefficients, "right" (p, k), and "left" if the solver has both; the first `wanted` count.

    - Ascending values (Laplacian): minus the sum of the Ritz values, at most minus the sum of the k least eigenvalues.
    - Descending values (generators): the sum of the real parts of the Ritz values, at most the sum of the k largest
      eigenvalues of the symmetric part of the operator (Ky Fan). For a normal operator these are the real parts of its
      eigenvalues; otherwise eigenfunctions need not maximize the sum, and the score compares bases for the symmetric
      part, the dissipation.
    - Variances (Covariance): their sum for functions of unit norm, the variance of the new rows that the functions
      explain, about the means of the fit.
    - Values descending by modulus (Transfer, Cross): the sum of the squared singular values, VAMP-2. For the
      eigenvalues of Transfer, the functions of the present are the right eigenfunctions, which span the range of the
      sum Σ_i λ_i g_i <f_i, .>, and the functions of the future the left ones. A pair of conjugate functions counts as
      its real and imaginary parts.

    All scores depend only on the span of the functions, and require many more rows than functions: for n independent
    rows, VAMP-2 is too large by about k² / n. The first two are -inf if there are fewer functions than wanted, because
    fewer have a larger sum, or, with a RankWarning, if the new rows do not determine a direction. Raises ValueError if
    moments are not finite, all weights are zero, or there are no more rows than functions.
    """
    right = functions["right"][:, :wanted]
    left = functions.get("left", right)[:, :wanted]
    check_rows(moments.count, right.shape[1], f"{moments.count} of {moments.rows} remain")
    means, kind = checked_means(moments), scoring_operator(operator).solver
    if kind.sides[0] != operator.solver.sides[0]:  # functions of the present and of the future
        left, right = right, left
    other = moments.right_basis or moments.basis
    right_gram = means.get("right_gram", means["gram"])
    norms = (moments.basis.norm(means["gram"]), other.norm(right_gram)) if kind.by_norm else None
    values = kind.ritz(left, right, galerkin_system(operator, means, norms, moments.dtype))
    lost = np.count_nonzero(np.isnan(values))
    if lost:
        warn_user(
            f"{lost} of {len(values)} functions vanish on the {moments.count} rows of the score, or are linearly "
            "dependent, so that the score is -inf. Score on more rows, in random order (KFold(shuffle=True))",
            RankWarning,
        )
    return SpanScore(kind.score(values, wanted), values, kind.measure, moments.count)


def check_rows(count: int, functions: int, has: str) -> None:
    """Raise ValueError unless there are more rows than functions; `has` describes the rows in the message."""
    if count <= functions:
        raise ValueError(f"{functions} functions require more rows, but {has}. Pass more rows, or lower n_components")
