"""What else follows from sums over rows: regressions of columns, scores, coverage."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from daskspectral.basis import EquivariantBasis, HarmonicBasis, InvariantBasis, MonomialBasis
from daskspectral.errors import FitWarning, ManifoldWarning, RankWarning
from daskspectral.groups import Permutations, VectorRepresentation
from daskspectral.invariance.levels import LeastSquares, Objective, Projection
from daskspectral.invariance.problem import Uniformity, fit_invariant, problem_of
from daskspectral.manifolds import FlatTorus, Sphere
from daskspectral.moments import Moments
from daskspectral.moments.patterns import MissingSumsError, patterns_of
from daskspectral.moments.solution import check_rows, extrapolated, score_span
from daskspectral.moments.trust import advise_manifold
from daskspectral.operators import Cross, Generator, Laplacian
from daskspectral.operators.laplacian import OFF
from daskspectral.operators.regression import Regression
from daskspectral.passes.support import Coverage, leading
from tests.common import doubtful
from tests.moments.common import moments_of

RNG = np.random.default_rng(2)
N = 200
X = RNG.standard_normal((N, 2)) @ np.array([[1.0, 0.3], [0.0, 0.7]]) + [1.0, -2.0]
W = RNG.uniform(0.5, 2, N)
ROWS, FOLD = {"x": X, "weight": W}, np.arange(N) % 4
CUBIC = MonomialBasis(2, 3)
PHI = CUBIC.values(X)


def test_columns_regressed_on_functions() -> None:
    """All functions together, and each alone; constants explain nothing."""
    c = np.column_stack([np.eye(10)[0], RNG.standard_normal((10, 2))])
    found = patterns_of(moments_of(CUBIC, ROWS, FOLD, patterns=True), c)
    p, f = W / W.sum(), PHI.T @ c
    centred, z = f - p @ f, X - p @ X
    maps = np.linalg.lstsq(np.sqrt(p)[:, None] * centred[:, 1:], np.sqrt(p)[:, None] * z, rcond=None)[0]
    variances = p @ centred**2
    single = (centred[:, 1:] * p[:, None]).T @ z / variances[1:, None]
    wanted = {
        **{"mean": p @ X, "offset": p @ f, "variances": [0, *variances[1:]], "total": p @ z**2},
        **{"maps": np.vstack([np.zeros((1, 2)), maps]), "single": np.vstack([np.zeros((1, 2)), single])},
        "explained": [0, *(np.sum(single**2, axis=1) * variances[1:] / np.sum(p @ z**2))],
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(getattr(found, name), values, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(found.reconstructed(f), p @ X + centred[:, 1:] @ maps, atol=1e-9)
    raw = found.in_columns(3, (2, 0), np.array([1.0, 2.0]), np.array([10.0, 0.5]))
    np.testing.assert_allclose(raw.mean, [found.mean[1] * 0.5 + 2, 0, found.mean[0] * 10 + 1])
    np.testing.assert_allclose(raw.maps[:, [2, 0]], found.maps * [10, 0.5])
    np.testing.assert_allclose(raw.single[:, [2, 0]], found.single * [10, 0.5])
    np.testing.assert_allclose(raw.total, [found.total[1] / 4, 0, found.total[0] * 100])
    np.testing.assert_allclose(found.in_columns(2, None, None, None).mean, found.mean)
    np.testing.assert_array_equal(raw.explained, found.explained)
    turned = patterns_of(moments_of(CUBIC, ROWS, FOLD, patterns=True), c * np.exp(0.7j))
    np.testing.assert_allclose(turned.explained, found.explained, atol=1e-9)
    np.testing.assert_allclose(turned.reconstructed(f * np.exp(0.7j)), found.reconstructed(f), atol=1e-9)
    with pytest.raises(MissingSumsError):
        patterns_of(Moments({}, 1.0, 1, CUBIC, Laplacian()), c)


@pytest.mark.parametrize("descending", [False, True])
def test_the_score_of_functions(descending: bool) -> None:
    operator = Generator(diffusion=np.sqrt(2.0), reversible=True) if descending else Laplacian()
    moments = moments_of(CUBIC, ROWS, FOLD, operator)
    c, sign = RNG.standard_normal((10, 4)), -1 if descending else 1
    parts = [c[:, :3].T @ moments.arrays[name] @ c[:, :3] for name in ("form", "gram")]
    wanted = sign * np.sort(scipy.linalg.eigvalsh(sign * parts[0], parts[1]))
    found = score_span(operator, moments, {"right": c}, 3)
    np.testing.assert_allclose(found.values, wanted, rtol=1e-8)
    assert (found.score, found.kind, found.rows) == (pytest.approx(-sign * wanted.sum()), "Ritz value", N)
    assert score_span(operator, moments, {"right": c}, 5).score == -np.inf
    with pytest.warns(RankWarning):
        lost = score_span(operator, moments, {"right": c[:, [0, 1, 1]]}, 3)
    assert lost.score == -np.inf
    assert np.isnan(lost.values).tolist() == [False, False, True]
    check_rows(5, 4, "")
    with pytest.raises(ValueError, match="n_components"):
        check_rows(4, 4, "there are 4")


def test_the_score_of_pairs_of_functions() -> None:
    y = np.column_stack([X @ [1.0, 0.5] + RNG.standard_normal(N), RNG.standard_normal(N)])
    right = MonomialBasis(2, 1)
    moments = moments_of(CUBIC, {"x": X, "y": y}, FOLD, Cross(center=True), right)
    c, d = RNG.standard_normal((10, 2)), RNG.standard_normal((3, 2))
    f, g = (z - z.mean(axis=0) for z in (PHI.T @ c, right.values(y).T @ d))
    values = np.linalg.svd(np.linalg.qr(f)[0].T @ np.linalg.qr(g)[0], compute_uv=False)
    found = score_span(Cross(center=True), moments, {"left": c, "right": d}, 2)
    np.testing.assert_allclose(found.values, values, rtol=1e-8)
    assert found.score == pytest.approx(np.sum(values**2))


# functions of a group


INVARIANT = InvariantBasis(HarmonicBasis(Sphere(3), 100), Permutations(3))
POINTS = Sphere(3).sample(300, np.random.default_rng(0))
U, SUMS = INVARIANT.values(POINTS), POINTS.sum(axis=1)


def test_new_rows_far_from_all() -> None:
    """By (u.A^-1 u) / n in whole levels of as many functions as a tenth of the rows; of vectors the largest value."""
    ends = [part.stop for part in INVARIANT.slices if part.stop]
    wanted = [ends[0], ends[0], ends[0], ends[1], ends[-1]]
    assert [leading(INVARIANT, most) for most in (0, ends[0], ends[1] - 1, ends[1], 99)] == wanted
    for rows, k in ((300.0, leading(INVARIANT, 30)), (45.0, leading(INVARIANT, 4)), (3.0, 1)):
        found = Coverage.of(INVARIANT, U @ U.T / 300, rows)
        assert (len(found.whitening), found.rows) == (k, rows)
        leverage = np.einsum("ic,ij,jc->c", U[:k], np.linalg.inv(U[:k] @ U[:k].T / 300), U[:k]) / rows
        np.testing.assert_allclose(found.leverage(U), leverage, rtol=1e-8)
    basis = EquivariantBasis(HarmonicBasis(Sphere(3), 9), Permutations(3), VectorRepresentation())
    v = basis.values(POINTS).reshape(basis.size, 3, 300)
    coverage = Coverage.of(basis, np.einsum("iac,jac->ij", v, v) / 300, 600.0)
    inverse = np.linalg.inv(np.einsum("iac,jac->ij", v, v) / 300) / 600
    largest = np.linalg.eigvalsh(np.einsum("iac,ij,jbc->cab", v, inverse, v))[:, -1]
    np.testing.assert_allclose(coverage.leverage(v.reshape(basis.size, -1), 3), largest, rtol=1e-8)


def invariant(points: Any, **fields: Any) -> Moments:
    return moments_of(INVARIANT, {"x": points, **fields}, np.arange(len(points)) % 4, Regression())


def fit(points: Any, y: Any, method: Any, most: int | None = None) -> Any:
    return fit_invariant(invariant(points, y=y), method, Objective(1.0, most, None, 0.0))


@doubtful
def test_rows_that_are_not_uniform() -> None:
    uniformity = Uniformity.of(invariant(POINTS, y=SUMS + 1), 150.0)
    means = U[1:].mean(axis=1)
    assert (uniformity.deviation, uniformity.functions) == (pytest.approx(np.linalg.norm(means)), 21)
    assert uniformity.chance == pytest.approx(np.sqrt(21 / 150))
    assert uniformity.likelihood == pytest.approx(scipy.special.gammaincc(10.5, 75 * means @ means))
    assert [replace(uniformity, likelihood=p).uniform for p in (9e-7, 1e-6)] == [False, True]
    near = POINTS[POINTS[:, 0] > 0]
    y = near.sum(axis=1) + 1
    with pytest.warns(FitWarning, match="not uniform") as caught:
        found, _ = fit(near, y, Projection(), most=9)
    u = INVARIANT.values(near)[: len(found.coefficients)]
    means = np.append(y.mean(), u[1:] @ (y - y.mean()) / len(y))  # the constant has the mean of y, others what is left
    right = np.linalg.solve(u @ u.T, u @ y)
    off = np.linalg.norm(means - right) / np.linalg.norm(right)
    assert f"{100 * off:.2g} %" in str(caught[-1].message)


def test_what_a_regression_poses_and_explains() -> None:
    moments = invariant(POINTS, y=SUMS, weight=np.full(300, 0.01))
    found = problem_of(moments, Objective(0.7, 5, 0.1, 0.0))
    (observed,) = found.observed
    assert (found.rows, observed.count) == (300, pytest.approx(300))  # as relative weights count
    np.testing.assert_allclose(found.shares, 0.25)
    np.testing.assert_allclose(observed.target[:, 0], U @ SUMS / 300, atol=1e-12)
    assert fit(POINTS, SUMS, LeastSquares())[1].score > 0.999
    for constant in (2.0, 0.0):
        fit(POINTS, np.full(300, constant), LeastSquares())


def test_rows_off_the_manifold() -> None:
    for squares, told in ((1e-10, False), (1.21e-10, True)):
        moments = Moments({OFF: np.array([50 * squares])}, 50.0, 50, INVARIANT, Laplacian(FlatTorus(2)))
        with pytest.warns(ManifoldWarning, match="1.1e-05") if told else np.errstate():
            advise_manifold(moments)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 4.0])
def test_what_more_functions_would_change_follows_from_two_changes(power: float) -> None:
    """Errors C m^-q of m functions: what is left at m = 1 is C."""
    shares, left = (0.5, 0.75), np.array([0.3, -0.02])
    changes = np.array([left * (share**-power - 1) for share in shares])
    found = extrapolated(shares, changes)
    np.testing.assert_allclose(found, np.minimum(np.abs(left), np.abs(changes[0])), rtol=0.03)
    np.testing.assert_array_equal(extrapolated(shares[:1], changes[:1]), np.abs(changes[0]))
