"""What else follows from sums over rows: regressions of columns, scores, coverage."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from daskspectral.basis import EquivariantBasis, HarmonicBasis, InvariantBasis, MonomialBasis
from daskspectral.errors import FitWarning
from daskspectral.groups import Permutations, VectorRepresentation
from daskspectral.invariance.levels import Projection
from daskspectral.invariance.problem import Uniformity, fit_invariant
from daskspectral.manifolds import Sphere
from daskspectral.moments import Moments
from daskspectral.moments.patterns import patterns_of
from daskspectral.moments.solution import extrapolated
from daskspectral.operators import Covariance
from daskspectral.operators.regression import Regression
from daskspectral.passes.support import Coverage, leading
from tests.common import unreliable
from tests.moments.common import moments_of

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
    return fit_invariant(invariant(points, y=y), method, exponent=1.0, most=most, gradient_weight=0.0)


@unreliable
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


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 4.0])
def test_what_more_functions_would_change_follows_from_two_changes(power: float) -> None:
    """Errors C m^-q of m functions: what is left at m = 1 is C."""
    shares, left = (0.5, 0.75), np.array([0.3, -0.02])
    changes = np.array([left * (share**-power - 1) for share in shares])
    found = extrapolated(shares, changes)
    np.testing.assert_allclose(found, np.minimum(np.abs(left), np.abs(changes[0])), rtol=0.03)
    np.testing.assert_array_equal(extrapolated(shares[:1], changes[:1]), np.abs(changes[0]))


def test_patterns_are_regressions_of_the_columns_on_functions_of_any_size() -> None:
    """On all of them together and on each alone, of weighted rows."""
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 4)) + 2, rng.uniform(0.5, 2, 200)
    basis, coefficients = MonomialBasis(4, 1), rng.standard_normal((5, 2))
    moments = moments_of(basis, {"x": x, "weight": w}, np.arange(200) % 3, Covariance(), patterns=True)
    found = patterns_of(moments, coefficients)
    values = basis.values(x).T @ coefficients
    f, y = (a - np.average(a, axis=0, weights=w) for a in (values, x))
    each = np.average(f[:, :, None] * y[:, None], axis=0, weights=w)
    variances = np.average(f**2, axis=0, weights=w)
    np.testing.assert_allclose(found.maps, np.linalg.solve((f.T * w) @ f / w.sum(), each), rtol=1e-9)
    np.testing.assert_allclose(found.single, each / variances[:, None], rtol=1e-9)
    np.testing.assert_allclose(found.variances, variances, rtol=1e-9)
    total = np.average(y**2, axis=0, weights=w).sum()
    np.testing.assert_allclose(found.explained, np.sum(each**2, axis=1) / variances / total, rtol=1e-9)
