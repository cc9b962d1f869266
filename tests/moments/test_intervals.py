"""Error bars against a jackknife and held-out values by hand, from the sums of folds or from the rows themselves."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Gaussian, Linear
from daskspectral.moments.intervals import _intervals, errors_of, held_out_by_folds, reliable_by
from daskspectral.operators import Covariance, Cross, Generator, Laplacian
from tests.moments.common import folds_of, moments_of, problem_of

RNG = np.random.default_rng(3)
N, K = 400, 5
X = RNG.standard_normal((N, 2)) * [1.0, 1.05]
ROWS = {"x": X, "weight": RNG.uniform(0.5, 2, N)}
FOLD = RNG.integers(0, K, N)
APART = np.where(np.arange(N) < 60, K, FOLD)  # the last group are landmarks
CONSTANT = ConstantBasis(2)


def turned(overlap: Any, nulls: int) -> Any:
    """The rotation that brings functions closest to those of the whole, constants apart."""
    parts = [scipy.linalg.polar(overlap[s, s])[0] for s in (slice(nulls), slice(nulls, None)) if overlap[s, s].size]
    return scipy.linalg.block_diag(*parts)


def errors(moments: Any, count: int, penalty: float | None = None) -> tuple[Any, Any, Any]:
    """The problem of moments, its solution, and the errors of this."""
    problem = problem_of(moments, count, penalty)
    return problem, problem.whole, errors_of(problem, moments.folds)


def check(found: Any, values: Any, samples: Any, held_out: Any, share: float, nulls: int = 0) -> Any:
    """Everything that follows from the values without each fold, and on rows held out. Gives the groups."""
    factor = (K - 1) / K / share

    def spread(each: Any) -> Any:
        return np.sqrt(factor * sum((each - np.mean(each, axis=0)) ** 2))

    standard = spread(samples)
    np.testing.assert_allclose(found.standard, standard, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.held_out, held_out, rtol=1e-8, atol=1e-9)
    groups = [0]
    for i in range(1, len(values)):
        far = abs(values[i] - values[i - 1]) > 2 * np.sqrt(standard[i] ** 2 + standard[i - 1] ** 2)
        groups.append(groups[-1] + int(far or i == nulls))
    assert found.groups.tolist() == groups
    for i, group in enumerate(groups):
        members = np.flatnonzero(np.array(groups) == group)
        wanted = _intervals(*(np.asarray(part)[[i]] for part in (values, held_out, standard)), K)
        if len(members) > 1:
            of_mean = spread(np.mean(np.array(samples)[:, members], axis=1, keepdims=True))
            means = (np.mean(np.asarray(part)[members], keepdims=True) for part in (values, held_out))
            wanted = np.vstack([wanted, _intervals(*means, of_mean, K)])
        ends = wanted[:, 0].min(), wanted[:, 1].max()
        np.testing.assert_allclose(found.intervals[i], ends, rtol=1e-6, atol=1e-7)
    return groups


def jackknife(problem: Any, folds: Any, whole: Any, metric: Any = None) -> tuple[Any, Any, Any]:
    """By fold: the values without it, turned, the turn and the overlap; then the values of all on rows held out."""
    sums, weight = {"form": folds.arrays["gram"], **folds.arrays}, folds.weight  # variances: the Gram matrix alone
    samples, turns, form, gram = [], [], 0.0, 0.0
    span = np.eye(len(whole.right)) if problem.span is None else problem.span
    for k in range(folds.number):
        rest = weight.sum() - weight[k]
        means = {name: np.delete(sums[name], k, axis=0).sum(axis=0) / rest for name in ("form", "gram", "first")}
        means = {name: span.T @ mean @ span if mean.ndim == 2 else span.T @ mean for name, mean in means.items()}
        found = problem.solve_part(means, problem.rows * rest / weight.sum())
        overlap = (span @ found.right).T @ problem.means["gram"] @ whole.right
        turn = turned(overlap, problem.nulls)
        samples.append(np.diag(turn.T @ np.diag(found.values) @ turn))
        turns.append((turn, overlap))
        functions = span @ found.right @ turn
        form = form + functions.T @ sums["form"][k] @ functions
        gram = gram + functions.T @ (sums["gram"][k] if metric is None else weight[k] * metric) @ functions
    held_out = scipy.linalg.eigvalsh(form, gram)
    return samples, turns, held_out[::-1] if problem.operator.solver.signed(1.0) < 0 else held_out


KERNEL = Concatenated((CONSTANT, LandmarkBasis(Gaussian(0.7), X[:40])))
CASES: dict[str, Any] = {
    "monomials": (MonomialBasis(2, 3), Laplacian(), FOLD, None),
    "penalized": (KERNEL, Laplacian(), APART, 2.0),
    "penalized, the constant twice": (Concatenated((CONSTANT, KERNEL)), Laplacian(), FOLD, 2.0),
    "descending": (MonomialBasis(2, 2), Generator(diffusion=np.sqrt(2.0), reversible=True), APART, 1.0),
    "variances": (Concatenated((CONSTANT, LandmarkBasis(Linear(), np.eye(2)))), Covariance(), FOLD, None),
}


@pytest.mark.parametrize("name", CASES)
def test_symmetric_problems(name: str) -> None:
    basis, operator, fold, penalty = CASES[name]
    moments = moments_of(basis, ROWS, fold, operator, landmarks=fold is APART)
    folds, (problem, whole, found) = folds_of(moments), errors(moments, 6, penalty)
    metric = problem.left.norm if operator.solver.by_norm else None
    samples, turns, held_out = jackknife(problem, folds, whole, metric)
    share = 1 - (folds.weight[K] / folds.weight.sum() if fold is APART else 0)
    groups = check(found, whole.values, samples, held_out, share, problem.nulls)
    assert name == "variances" or len(set(groups)) < len(groups)
    np.testing.assert_allclose(held_out_by_folds(problem, folds), held_out, rtol=1e-8, atol=1e-9)
    sines = np.zeros((len(turns), len(groups)))
    for i, group in enumerate(groups):
        members = np.flatnonzero(np.array(groups) == group)
        for k, (turn, overlap) in enumerate(turns):
            cosines = np.linalg.svd(turn[:, members].T @ overlap[:, members], compute_uv=False)
            sines[k, i] = np.sqrt(max(0, 1 - cosines.min() ** 2))
    wanted = np.minimum(1, np.sqrt((K - 1) / K / share * np.sum(sines**2, axis=0)))
    np.testing.assert_allclose(found.angles, wanted, rtol=1e-5, atol=1e-7)


def test_correlations_about_the_means_that_were_fitted() -> None:
    """By the rows: means, functions and all of the others; on the fold they are subtracted, not the fold's own."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, 2)) + 3
    y = np.column_stack([x @ [1.0, 0.4], x @ [-0.3, 0.5], np.zeros(N)]) + rng.standard_normal((N, 3))
    x, y = x + 0.5 * (FOLD == 0)[:, None], y - 0.5 * (FOLD == 1)[:, None]  # so that means of folds differ
    bases = MonomialBasis(2, 1, constant=False), MonomialBasis(3, 1, constant=False)
    w, fold = ROWS["weight"], FOLD

    def solved(chosen: Any) -> Any:
        own = w[chosen] / w[chosen].sum()
        mean, other = own @ x[chosen], own @ y[chosen]
        f, g = (np.sqrt(own)[:, None] * z for z in (x[chosen] - mean, y[chosen] - other))
        left, right = (np.linalg.inv(np.linalg.cholesky(z.T @ z)).T for z in (f, g))
        u, s, vt = np.linalg.svd(left.T @ f.T @ g @ right)
        return s, mean, other, left @ u, right @ vt.T[:, :2]

    moments = moments_of(bases[0], {"x": x, "y": y, "weight": w}, fold, Cross(center=True), bases[1])
    _, whole, found = errors(moments, 2)
    np.testing.assert_allclose(whole.values, solved(fold < K)[0], rtol=1e-9)
    samples, f, g, sines = [], np.zeros((N, 2)), np.zeros((N, 2)), []
    beyond = [z - w @ z / w.sum() for z in (x, y)]  # functions are compared without the means of all rows
    for k in range(K):
        s, mean, other, left, right = solved(fold != k)
        overlap = right.T @ (w[:, None] * beyond[1]).T @ beyond[1] @ whole.right / w.sum()
        turn = turned(left.T @ (w[:, None] * beyond[0]).T @ beyond[0] @ whole.left / w.sum() + overlap, 0)
        samples.append(np.diag(turn.T @ np.diag(s) @ turn))
        f[fold == k] = (x[fold == k] - mean) @ left @ turn
        g[fold == k] = (y[fold == k] - other) @ right @ turn
        sines.append(np.maximum(0, 1 - np.sum(turn * overlap, axis=0) ** 2))
    white = [np.linalg.inv(np.linalg.cholesky((w[:, None] * z).T @ z)) for z in (f, g)]
    held_out = np.linalg.svd(white[0] @ (w[:, None] * f).T @ g @ white[1].T, compute_uv=False)
    assert check(found, whole.values, samples, held_out, 1.0) == [0, 1]
    np.testing.assert_allclose(found.angles, np.minimum(1, np.sqrt(0.8 * np.maximum(np.sum(sines, axis=0), 0))))


def test_complex_values_have_standard_errors_alone() -> None:
    drift = -X @ np.array([[1.0, 0.8], [-0.8, 1.0]]) + 0.1 * X**3
    moments = moments_of(MonomialBasis(2, 1), {**ROWS, "drift": drift}, FOLD, Generator("drift", 1.4))
    (_, whole, found), samples = errors(moments, 3), []
    for k in range(K):
        w = ROWS["weight"] * (k != FOLD)
        phi = np.column_stack([np.ones(N), X])
        gram, form = (phi * w[:, None]).T @ phi, (phi * w[:, None]).T @ np.column_stack([np.zeros(N), drift])
        values = scipy.linalg.eigvals(form, gram)
        samples.append([values[np.argmin(np.abs(values - value))] for value in whole.values])
    assert (np.abs(whole.values[1:].imag) > 0.5).all()
    deviations = np.abs(samples - np.mean(samples, axis=0)) ** 2
    np.testing.assert_allclose(found.standard, np.sqrt((K - 1) / K * deviations.sum(axis=0)), atol=1e-8)
    assert np.isnan(found.held_out).all()


def test_reserved_folds_judge() -> None:
    moments = moments_of(MonomialBasis(2, 2), ROWS, FOLD, reserved=(1,))
    folds, (problem, _, found) = folds_of(moments), errors(moments, 3)
    rest = {name: moments.arrays[name] - folds.arrays[name][1] for name in ("form", "gram", "first")}
    functions = problem.solve({k: v / (moments.weight - folds.weight[1]) for k, v in rest.items()}, 1.0).right
    parts = (functions.T @ folds.arrays[name][1] @ functions for name in ("form", "gram"))
    wanted = scipy.linalg.eigvalsh(*parts)
    for held_out in (held_out_by_folds(problem, folds), found.held_out):
        np.testing.assert_allclose(held_out, wanted, rtol=1e-8, atol=1e-9)


def test_intervals_go_down_to_what_other_functions_have() -> None:
    """A factor of each value; beyond a tenth it is not reliable. The constant is known."""
    basis = Concatenated((CONSTANT, MonomialBasis(2, 3)))
    problem, _, plain = errors(moments_of(basis, ROWS, FOLD, Laplacian()), 4)
    found = errors_of(problem, folds_of(moments_of(basis, ROWS, FOLD, Laplacian())), np.array([0.5, 0.95, 0.8]))
    np.testing.assert_allclose(found.intervals[:, 1], plain.intervals[:, 1])
    np.testing.assert_allclose(found.intervals[1:, 0], plain.intervals[1:, 0] * [0.95, 0.8, 1.0])
    assert found.reliable.tolist() == (plain.reliable & [True, True, False, True]).tolist()


class Doubled(Laplacian):
    def reported_values(self, values: Any) -> Any:
        return 2 * values


def test_standard_errors_are_of_reported_values() -> None:
    one, two = (errors(moments_of(MonomialBasis(2, 1), ROWS, FOLD, o), 2)[-1] for o in (Laplacian(), Doubled()))
    np.testing.assert_allclose(two.standard, 2 * one.standard)
    np.testing.assert_array_equal(two.intervals, one.intervals)


def test_without_folds_or_rows_the_reason_is_reported() -> None:
    for rows, fold, reason in (
        (ROWS, np.zeros(N, dtype=int), "no error bars without folds"),
        ({"x": X[:99]}, FOLD[:99], "no error bars from 99 rows: at least 100 are required"),
        ({"x": X[:100]}, FOLD[:100] % 2, ""),
    ):
        found = errors(moments_of(MonomialBasis(2, 1), rows, fold), 2)[-1]
        assert (found.reason, found.intervals.shape) == (reason, (2, 2))
        assert np.isnan(found.intervals).all() == np.isnan(found.standard).all() == bool(reason)
        assert found.groups.tolist() == [0, 1] or not reason
        assert found.reliable.any() != bool(reason)  # the constant always where errors are known


def test_intervals_on_both_scales() -> None:
    t = 1.15 * scipy.stats.t.ppf(0.975, 9)
    fitted, held_out = np.array([1e-5, 2.0, -1.0, 0.1, t, 0.3]), np.array([1e-4, 2.1, 1.0, np.nan, t, 0.0])
    standard = np.array([1e-3, 0.05, 0.2, 0.01, 1.0, 0.1])
    found = _intervals(fitted, held_out, standard, 10)
    factor = np.exp(t * 0.05 / 2 + np.log(2.1 / 2) / 2)
    wanted = [
        [0.0, 1e-4 + t * 1e-3],  # no wider than its errors, and of one sign
        [np.sqrt(4.2) / factor, np.sqrt(4.2) * factor],
        [-1 - t * 0.2, 1 + t * 0.2],
        [0.1 / np.exp(t * 0.1), 0.1 * np.exp(t * 0.1)],
        [0.0, 2 * t],  # errors as large as the value
        [-0.1 * t, 0.3 + 0.1 * t],
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    np.testing.assert_allclose(_intervals(-fitted, -held_out, standard, 10), -found[:, ::-1], atol=1e-15)


def test_a_value_is_reliable_independently_of_those_before_it() -> None:
    """Values differ by less than a tenth held out, and intervals are narrower than 30 %, but for a thousandth."""
    fitted = np.array([0.0, 1.0, 2.0, 10.0])
    held_out = np.array([0.0009, 1.1, 2.2, np.nan])  # (2.2 + .01) / (2 + .01) < 1.1
    other, exact = np.array([0.0011, 1.2, 1.8, 9.2]), np.column_stack([fitted, fitted])
    assert reliable_by(fitted, other, exact, 0).tolist() == [False, False, False, True]
    for width, good in ((0.2, True), (0.4, False)):
        intervals = np.column_stack([fitted, fitted + width * (fitted + 0.01)])
        assert reliable_by(fitted, held_out, intervals, 0).tolist() == [good] * 4
        intervals[2, 1] = intervals[2, 0]
        assert reliable_by(fitted, held_out, intervals, 0).tolist() == [good, good, True, good]
        assert reliable_by(fitted, held_out, intervals, 1).tolist() == [True, good, True, good]  # 0 by construction
    near, beyond = np.array([1e-5, 0.5]), np.array([3e-4, 0.52])  # of a walk: the first is known to a hundredth
    wide = np.column_stack([0 * near, [2e-3, 0.9]])
    assert reliable_by(near, beyond, wide, 0).tolist() == [False, False]
    assert reliable_by(near, beyond, wide, 0, 0.01).tolist() == [True, False]
