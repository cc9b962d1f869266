"""The two-metric singular value decomposition against explicit inverse square roots and centered features."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve import GalerkinSystem, Penalty, Solution, TwoMetricSVD, norm_span, whiten
from tests.solve.common import Array, positive, spd

CUT = 1e-10
IDENTITY = 2 * (norm_span(np.eye(420), CUT),)


def inverse_root(a: Array) -> Array:
    return np.linalg.inv(scipy.linalg.sqrtm(a).real)


@pytest.mark.parametrize(("p", "q", "count"), [(6, 9, 4), (9, 6, 12), (1, 1, 1)])
def test_nonsingular_problems_are_scipys(p: int, q: int, count: int) -> None:
    """A = U^T Phi^(-1/2), B = V^T Psi^(-1/2), with one sign for a pair."""
    rng = np.random.default_rng(p)
    phi, psi, form = spd(p, rng), spd(q, rng), rng.standard_normal((p, q))
    a, b = inverse_root(phi), inverse_root(psi)
    u, expected, vt = scipy.linalg.svd(a @ form @ b)
    found = TwoMetricSVD().solve(GalerkinSystem(form, phi, right_gram=psi, count=count, cut=CUT))
    k = min(count, p, q)
    assert found.rank == (p, q)
    assert found.status.startswith(f"{k} of {count} requested values; ranks {p} of {p} and {q} of {q}; residuals")
    np.testing.assert_allclose(found.values, expected[:k], atol=1e-10)
    signs = np.sign(np.sum(u[:, :k] * (a @ phi @ found.left), axis=0))
    np.testing.assert_allclose(found.left, signs * (a @ u[:, :k]), atol=1e-8)
    np.testing.assert_allclose(found.right, signs * (b @ vt[:k].T), atol=1e-8)
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-12 * (p + q)
    assert positive(np.linalg.solve(whiten(phi, CUT).matrix, found.left))


# -- centering ---------------------------------------------------------------------------------------------------------


def cross(f: Array, g: Array, count: int = 30, **options: Any) -> Solution:
    """Of features (p, n) and (q, n), without their means."""
    n, means = f.shape[1], (f.mean(axis=1), g.mean(axis=1))
    options = {"means": means, "cut": CUT, **options}
    return TwoMetricSVD().solve(
        GalerkinSystem(f @ g.T / n, f @ f.T / n, right_gram=g @ g.T / n, count=count, **options)
    )


def canonical_correlations(f: Array, g: Array) -> Array:
    """Cosines of the angles between the centered features (Bjorck and Golub 1973), of full rank each."""
    q, r = (np.linalg.qr((a - a.mean(axis=1, keepdims=True)).T)[0] for a in (f, g))
    return np.linalg.svd(q.T @ r)[1]


@pytest.mark.parametrize(("shift", "constant"), [(0.0, False), (3.0, True), (100.0, True), (50.0, False)])
def test_centered_problems_are_those_of_centered_features(shift: float, constant: bool) -> None:
    """Of any offset, whether the constant is among the functions or not."""
    rng = np.random.default_rng(0)
    f, g = rng.standard_normal((3, 40)) + shift, rng.standard_normal((5, 40)) - shift
    f, g = f * rng.uniform(0.1, 10, (3, 1)), g * rng.uniform(0.1, 10, (5, 1))
    one = [np.ones((1, 40))] if constant else []
    left, right = np.concatenate([*one, f]), np.concatenate([g, *one])
    found = cross(left, right, 5, cut=1e-12)
    assert found.rank == (3, 5)
    np.testing.assert_allclose(found.values, canonical_correlations(f, g), atol=1e-6)
    for functions, features in ((found.left, left), (found.right, right)):
        values = functions.T @ features
        values -= values.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(values @ values.T / 40, np.eye(3), atol=1e-5)


@pytest.mark.parametrize("within", [None, Penalty(1e-3 * np.eye(3), 1e-3 * np.eye(4))])
@pytest.mark.parametrize("shift", [0.0, 300.0, 1e6])
def test_functions_far_from_zero_are_no_constants(shift: float, within: Penalty | None) -> None:
    """A share of 1 - 1e-12 of their mean squares is that of their means; the values are those of all others."""
    rng = np.random.default_rng(0)
    f = rng.standard_normal((3, 4000))
    g = np.vstack([f[:1], f]) + rng.standard_normal((4, 4000))
    found = cross(f + shift, g - shift, within=within)
    assert found.rank == (3, 4)
    np.testing.assert_allclose(found.values, canonical_correlations(f, g), rtol=1e-9 + 1e-14 * shift**2)


# -- among leading functions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [1e-2, 1e-9])
def test_a_few_values_of_a_large_part_are_those_of_all(least: float) -> None:
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.standard_normal((410, 420)).T)[0] for _ in range(2))
    form = u * np.geomspace(1, least / 2, 410) @ v.T
    found = TwoMetricSVD().solve(
        GalerkinSystem(form, np.eye(420), right_gram=np.eye(420), count=4, cut=CUT, part=True, within=IDENTITY)
    )
    np.testing.assert_allclose(found.values, scipy.linalg.svdvals(form)[:4], rtol=1e-12)
    assert found.residuals.max() < 1e-12
    assert found.rank == (420, 420)
