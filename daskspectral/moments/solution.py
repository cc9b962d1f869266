"""From moments to an estimator's attributes: values, functions, error bars; and a score on moments of other rows."""

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
from daskspectral.moments.sample import graph_size
from daskspectral.moments.trust import SLOWER, Reliability, advise_clipped, advise_manifold, advise_rank
from daskspectral.operators import Operator
from daskspectral.operators.paired import of_trajectories, scoring_operator
from daskspectral.solve.neighbors import energy_ratios
from daskspectral.solve.problems import NEGLIGIBLE
from daskspectral.solvers import Solving, Truncated

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]
LEAST_HALVED = 16  # landmarks, below which half of them tell nothing
LOWERED = 1.5  # the power of the factor by which half of the functions change values, of the lower ends of intervals
MOST_STEEP = 6.0  # the power with which errors fall as frequencies are added
LEAST_LEFT = 1e-9  # of the variance of the columns
JUDGED = 4  # functions at least that are compared with those of a graph
BLOCK_ROWS = 256  # of a sample, at which all functions of a basis are evaluated at a time


def _is_approximate(basis: LandmarkBasis, moments: Moments) -> bool:
    """Whether more landmarks would give more functions of the kernel on the data."""
    if not isinstance(basis.kernel, Linear):
        return True
    if basis.size == basis.dimension and np.array_equal(basis.landmarks != 0, np.eye(basis.size, dtype=bool)):
        return False  # the columns themselves, each in a unit
    if SQUARES not in moments.arrays or basis is not moments.basis.parts[-1]:
        return bool(np.linalg.matrix_rank(basis.landmarks) < basis.dimension)
    return not moments.spanned and _left_of_columns(basis, moments) > LEAST_LEFT


def _left_of_columns(basis: LandmarkBasis, moments: Moments) -> float:
    """The share of the columns' variance that linear functions, the last ones of the moments, do not explain."""
    mean, first = moments.mean(SUMS), moments.mean("first")[-basis.size :]
    covariance = moments.mean("gram")[-basis.size :, -basis.size :] - np.outer(first, first)
    norm = basis.norm(covariance)
    total = float(np.sum(moments.mean(SQUARES) - mean**2))
    return 1 - float(np.trace(np.linalg.pinv(norm, hermitian=True) @ covariance)) / total if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class System:
    """Moments to be solved, with c of the `penalty`, None for a solution by rank cut.

    `selection` says how it was chosen after the pass, None if nothing was. `fewer` are the same moments of fewer
    functions, with their share of the frequencies, the least first, from which the error of discretization is
    estimated; without them it is estimated from half of the landmarks.
    """

    moments: Moments
    penalty: float | None
    selection: Any = None
    fewer: Sequence[tuple[float, Moments]] = ()

    def finished(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes in terms of all functions that were measured."""
        return found

    def solve(
        self, solver: Solving, count: int, names: Callable[[], Sequence[str]] = tuple, device: Device = HOST
    ) -> dict[str, Any]:
        """Return the attributes of an estimator of so many functions, by name (`moments.attributes`).

        Warns of what makes results less reliable (`moments.trust`), with the `names` of the columns of X. Eigenvectors
        of large matrices are computed on the `device`. Raises ValueError if every function of a side vanishes, the
        sums are not finite, or the weights are all zero.
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
        errors = errors_of(problem, moments.folds, moments.undercut, least)
        if modes is not None and moments.folds is not None and not errors.reason:
            errors = with_modes(errors, modes, spectrum.values, moments.folds)
        shown_values, held_out = operator.reported_values(spectrum.values), operator.reported_values(errors.held_out)
        intervals = np.sort(operator.reported_values(errors.intervals), axis=1)
        dynamic = of_trajectories(operator) and operator.form.symmetric  # 1 - K was solved, and K is judged
        if dynamic and not errors.reason:
            errors = replace(errors, reliable=reliable_by(shown_values, held_out, intervals, problem.nulls))
        if len(spectrum.values) < left.basis.dimension or not own.by_norm:  # all components are no low rank
            advise_rank(spectrum, left.basis, count, right=right.basis)
        approximation, half = self._errors_of_discretization(problem, errors)
        if half and not dynamic and not own.maximizes(spectrum.values):
            errors = replace(errors, intervals=_lowered(errors.intervals, spectrum.values.real, approximation))
            intervals = np.sort(operator.reported_values(errors.intervals), axis=1)
        constants = min(problem.nulls, len(spectrum.values)) or _leading_constant(moments, shown["left"])
        certain, contradicted = np.ones(len(spectrum.values), bool), np.zeros(len(spectrum.values), bool)
        if of_trajectories(operator) and operator.right_gram is None and len(certain):
            matrices = LagMatrices.of(moments, shown["right"])
            contradicted = matrices.contradicted
            if dynamic and is_lagged(moments):
                certain = resolved(matrices.residuals(shown_values), shown_values)
        of_starts = shown[own.sides[0]]
        shared = of_trajectories(operator) and moments.right_basis is None
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
        """Return by how much more functions would change values, (k,), and whether half of the landmarks tell it."""
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
        if not half:  # fewer functions do not have all values
            approximation = np.where(np.isnan(approximation), np.abs(errors.held_out), approximation)
        return approximation, half


def _lowered(intervals: Array, values: Array, approximation: Array) -> Array:
    """Return intervals (k, 2) of values that more functions would lower: down by what half of them change, and more."""
    size = np.abs(values)
    change = np.nan_to_num(approximation / (size + NEGLIGIBLE * size.max(initial=0.0) + 1e-300))
    return lowered(intervals, (1 + change) ** -LOWERED)


def extrapolated(shares: Sequence[float], changes: Array) -> Array:
    """Return by how much values change without some of the frequencies, or would change with more of them, (k,).

    `changes` (1 or 2, k) are those without all but each of the `shares`, the least first. Of two the error is taken as
    C m^-q of m frequencies, with the q that follows from both, and what is left of it at m is returned; the first
    change if they do not fall.
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
    """Return how far the energies of the slowest functions exceed those of a graph of sampled rows, (q,).

    Empty for moments without a sample, and for functions that are periodic or 0 at the ends of the data. Of a sample of
    more points than a graph has, the other half makes a second graph if the first one calls values in question, and the
    lesser excess counts: one sample in some hundreds leaves a gap where the rows have none.
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
    """1 where the leading function of a conditional expectation is the constant, whose value is 1 by construction."""
    conditional = of_trajectories(moments.operator) or moments.operator.solver.two_sided
    if not conditional or moments.operator.center or not functions.size or "first" not in moments.arrays:
        return 0
    leading = functions[:, 0]
    square = (leading.conj() @ moments.mean("gram") @ leading).real
    return int(np.abs(moments.mean("first") @ leading) ** 2 > CONSTANT * square)


# -- functions judged by moments of rows that they were not fitted to --------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpanScore:
    """How k functions do on new rows.

    `values` (k,) are the Ritz values of the operator on their span, in the order of its eigenvalues, or the singular
    values between the spans of two sides, as `kind` says; NaN for directions that the new rows do not determine. `rows`
    were measured.
    """

    score: float
    values: Functions
    kind: str
    rows: int


def score_span(operator: Operator, moments: Moments, functions: Mapping[str, Functions], wanted: int) -> SpanScore:
    """Return the score of functions fitted for `operator`, from moments of its `scoring_operator` on new rows.

    `functions` are coefficients, "right" (p, k), and "left" where the solver has both; the first `wanted` count.

    - Values that ascend (Laplacian): minus the sum of the Ritz values, at most minus the sum of the k least
      eigenvalues.
    - Values that descend (generators): the sum of the Ritz values' real parts, at most the sum of the k largest
      eigenvalues of the operator's symmetric part (Ky Fan). These are the real parts of its own eigenvalues where it is
      normal; elsewhere eigenfunctions need not have the largest sum, and the score compares bases for the symmetric
      part, the dissipation.
    - Variances (Covariance): their sum for functions of unit norm, the variance that the functions explain of the new
      rows, about the means of the rows of the fit.
    - Values that descend by size (Transfer, Cross): the sum of the squared singular values, VAMP-2. For the eigenvalues
      of Transfer, the functions of the present are the right eigenfunctions, which span the range of their sum
      Σ_i λ_i g_i <f_i, .>, and the functions of the future the left ones. A pair of conjugate functions counts
      as its real and imaginary parts do.

    All depend on the span of the functions alone, and need many more rows than functions: of n independent rows,
    VAMP-2 comes out too large by about k² / n. The first two are -inf for fewer functions than wanted, since
    fewer have a larger sum, and where the new rows do not determine a direction, with a RankWarning. Raises ValueError
    for moments that are not finite, weights that are all zero, and for no more rows than functions.
    """
    right = functions["right"][:, :wanted]
    left = functions.get("left", right)[:, :wanted]
    check_rows(moments.count, right.shape[1], f"{moments.count} are left of {moments.rows}")
    means, kind = checked_means(moments), scoring_operator(operator).solver
    if kind.sides[0] != operator.solver.sides[0]:  # of the present and of the future
        left, right = right, left
    other = moments.right_basis or moments.basis
    right_gram = means.get("right_gram", means["gram"])
    norms = (moments.basis.norm(means["gram"]), other.norm(right_gram)) if kind.by_norm else None
    values = kind.ritz(left, right, galerkin_system(operator, means, norms, moments.dtype))
    lost = np.count_nonzero(np.isnan(values))
    if lost:
        warn_user(
            f"{lost} of {len(values)} functions vanish on the {moments.count} rows of the score, or are combinations "
            "of others there, and the score is -inf: score on more rows, in random order (KFold(shuffle=True))",
            RankWarning,
        )
    return SpanScore(kind.score(values, wanted), values, kind.measure, moments.count)


def check_rows(count: int, functions: int, has: str) -> None:
    """Raise ValueError unless there are more rows than functions; `has` says how many there are."""
    if count <= functions:
        raise ValueError(f"{functions} functions need more rows, and {has}: give more, or lower n_components")
