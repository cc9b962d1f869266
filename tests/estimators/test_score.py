"""The score on new rows: closed forms, correlations of functions at the rows, and R^2 as scikit-learn has it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import r2_score

import daskspectral as dsp
from daskspectral.basis import Landmarks, MonomialBasis
from daskspectral.kernels import Gaussian
from daskspectral.operators import Cross, Generator, Transfer
from tests.common import autoregression, reloaded
from tests.estimators.common import hermite, make

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(0, np.pi, (2, 5000, 1))


def polynomials(operator: Any, degree: int, k: int, d: int = 1) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(operator, MonomialBasis(d, degree), n_components=k)


def test_an_interval() -> None:
    """Eigenvalues k^2: the Ritz values of exact functions on 5000 rows are theirs to 2 %."""
    fitted = make(basis=Landmarks(Gaussian(1.0), 30, drop_landmark_rows=False), n_components=4).fit(X)
    assert fitted.score(NEW) == pytest.approx(-14, abs=0.3)
    assert fitted.score(da.from_array(NEW, chunks=(900, 1))) == pytest.approx(fitted.score(NEW), rel=1e-7)
    assert fitted.score(X) == pytest.approx(-fitted.eigenvalues_.sum(), rel=1e-7)
    again = reloaded(fitted)
    assert again.set_params(n_components=2).score(X) == pytest.approx(-fitted.eigenvalues_[:2].sum(), rel=1e-7)
    assert again.set_params(n_components=5).score(X) == -np.inf  # fewer functions than components


def test_polynomials_that_are_known_exactly() -> None:
    """The constant and x span; on new rows the Ritz values are 0 and 1 / variance, exactly."""
    line = polynomials(None, 1, 2).fit(X)
    for rows in (NEW[:3], 1e3 * NEW[:50] + 7):
        assert line.score(rows) == pytest.approx(-1 / rows.var(), rel=1e-8)
    weights = np.arange(50) % 4
    expected = -1 / np.cov(NEW[:50, 0], fweights=weights, ddof=0)
    assert line.score(NEW[:50], sample_weight=weights) == pytest.approx(expected, rel=1e-9)


# -- two sides ---------------------------------------------------------------------------------------------------------


def canonical(f: np.ndarray, g: np.ndarray) -> float:
    """The sum of squared canonical correlations of functions at the rows (n, k), from their QR decompositions."""
    return float(np.linalg.norm(np.linalg.qr(f)[0].T @ np.linalg.qr(g)[0]) ** 2)


@pytest.mark.parametrize("center", [False, True])
def test_vamp_2_of_views(center: bool) -> None:
    y, new_y = (np.sin(x) + 0.2 * RNG.standard_normal(x.shape) for x in (X, NEW[:900]))
    est = polynomials(Cross(center=center), 4, 3).set_params(right_basis=MonomialBasis(1, 3)).fit((X, y))
    f, g = est.transform(NEW[:900]), est.transform(new_y, side="right")
    if center:
        f, g = f - f.mean(axis=0), g - g.mean(axis=0)
    assert est.score((da.from_array(NEW[:900], chunks=(200, 1)), new_y)) == pytest.approx(canonical(f, g), rel=1e-8)
    assert est.score((X, y)) == pytest.approx(np.sum(est.singular_values_**2), rel=1e-9)


@pytest.mark.parametrize("solver", ["singular", "eigen"])
def test_vamp_2_of_a_transfer_operator(solver: str) -> None:
    """Singular values, and eigenvalues, decay^k of a reversible process."""
    est, new = polynomials(Transfer(2, solver), 4, 3).fit(autoregression(20_000, 0.8)), autoregression(20_000, 0.8, 1)
    assert est.score(new) == pytest.approx(1 + 0.8**4 + 0.8**8, abs=0.05)
    sides = est.transform, partial(est.transform, side="right" if solver == "singular" else "left")
    pieces = [new[:700], new[5000:8000]]
    f = np.concatenate([sides[0](x[:-2]) for x in pieces])
    g = np.concatenate([sides[1](x[2:]) for x in pieces])
    assert est.score(pieces) == pytest.approx(canonical(f.real, g.real), rel=1e-7)


@pytest.mark.parametrize("reversible", [True, False])
def test_a_generator(reversible: bool) -> None:
    """Ornstein-Uhlenbeck: 0, -1, -1, -2, -2, -2 in two dimensions; a rotation leaves the real parts as they are."""
    x, new = RNG.standard_normal((2, 20_000, 2))
    drift = np.array([[-1.0, 1.0], [-1.0, -1.0]])  # a row's, from the left
    of_x, of_new = ({} if reversible else {"drift": rows @ drift} for rows in (x, new))
    est = polynomials(Generator("drift", np.sqrt(2), reversible=reversible), 2, 6, d=2).fit(dsp.Rows(x, fields=of_x))
    assert est.score(dsp.Rows(new, fields=of_new)) == pytest.approx(-8, abs=0.3)
    assert est.score(dsp.Rows(x, fields=of_x)) == pytest.approx(est.eigenvalues_.real.sum(), rel=1e-8)


RANDOM = np.random.default_rng(0)
SPHERE = dsp.manifolds.Sphere(3)
POINTS = SPHERE.sample(900, RANDOM)
PAIR = np.column_stack([POINTS[:, 0] ** 2, 1e6 + POINTS[:, 1] ** 3]) + 0.02 * RANDOM.standard_normal((900, 2))
TARGET = PAIR[:, 0]
W = RANDOM.integers(0, 4, 900).astype(float)
far_mean = pytest.mark.filterwarnings("ignore:the values of y have the mean:daskspectral.errors.FitWarning")


def invariant() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(SPHERE, dsp.groups.SignFlips(3), n_eigenfunctions=16, solver="least_squares")


@far_mean
@pytest.mark.parametrize(
    ("make", "reading"), [(hermite, {}), (hermite, {"standardize": True, "columns": [2, 0]}), (invariant, {})]
)
def test_it_is_that_of_scikit_learn(make: Callable[[], Any], reading: dict[str, Any]) -> None:
    est, y = make().fit(dsp.Rows(POINTS[:400], **reading), PAIR[:400]), PAIR
    new, predicted = POINTS[400:], est.predict(POINTS[400:])
    assert est.score(new, y[400:]) == pytest.approx(r2_score(y[400:], predicted), rel=1e-9, abs=1e-9)
    expected = r2_score(y[400:], predicted, sample_weight=W[400:])
    assert est.score(new, y[400:], W[400:]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@far_mean
def test_rows_are_read_in_pieces() -> None:
    """No block of the predictions holds all rows, and y is never gathered."""
    longest = []

    def look(block: np.ndarray) -> np.ndarray:
        longest.append(len(block))
        return block

    x, y = (da.from_array(a, chunks=(100, *a.shape[1:])).map_blocks(look, meta=a[:0]) for a in (POINTS, TARGET))
    assert hermite().fit(POINTS, TARGET).score(x, y) > 0.5
    assert max(longest) == 100


@far_mean
def test_invalid_targets_are_rows_left_out() -> None:
    fitted, keep = hermite().fit(POINTS, TARGET), np.arange(900) != 33
    y = np.where(keep, TARGET, np.nan)
    with pytest.raises(dsp.InvalidRowError) as caught:
        fitted.score(POINTS, y)
    assert caught.value.row == 33
    wanted = fitted.score(POINTS[keep], TARGET[keep])
    assert fitted.score(dsp.Rows(POINTS, on_invalid="skip"), y) == pytest.approx(wanted, rel=1e-12)
