"""The score on new rows: closed forms, bounds, every container, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.kernels import Gaussian
from daskspectral.operators import Cross, Generator, Laplacian, Schroedinger, Transfer

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(0, np.pi, (2, 20_000, 1))
SQUARES = np.array([0.0, 1.0, 4.0, 9.0])
BASIS = dsp.basis.MonomialBasis(1, 4)


def model(scale: float = 1.0, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(
        kernel=Gaussian(scale), **{"n_landmarks": 50, "n_components": 4, "random_state": 0} | options
    )


def ou(n: int, seed: int, decay: float = 0.8) -> np.ndarray:
    """A stationary autoregression: singular values decay^k, with Hermite polynomials."""
    noise = np.random.default_rng(seed).standard_normal(n)
    x = np.empty(n)
    x[0] = noise[0]
    for t in range(1, n):
        x[t] = decay * x[t - 1] + np.sqrt(1 - decay**2) * noise[t]
    return x[:, None]


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return model().fit(X)


def test_an_interval(fitted: dsp.SpectralDecomposition) -> None:
    """Eigenvalues k^2: the Ritz values of exact functions on 20 000 rows are theirs to 1 %."""
    assert fitted.score(NEW) == pytest.approx(-14, abs=0.15)
    assert model(0.5, dtype="float32").fit(X).score(NEW) == pytest.approx(-14, abs=0.15)


def test_polynomials_that_are_known_exactly() -> None:
    """The constant and x span; on new rows the Ritz values are 0 and 1 / variance, exactly."""
    line = dsp.SpectralDecomposition(basis=dsp.basis.MonomialBasis(1, 1), n_components=2).fit(X)
    for rows in (NEW, NEW[:3], 1e3 * NEW[:50] + 7):
        assert line.score(rows) == pytest.approx(-1 / rows.var(), rel=1e-8)
    weights = np.arange(50) % 4
    expected = -1 / np.cov(NEW[:50, 0], fweights=weights, ddof=0)
    assert line.score(NEW[:50], sample_weight=weights) == pytest.approx(expected, rel=1e-9)
    assert line.score(np.repeat(NEW[:50], weights, axis=0)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"n_components": 2}])
def test_on_the_rows_of_the_fit_it_is_the_sum_of_the_eigenvalues(options: dict[str, Any]) -> None:
    """All rows being measured."""
    est = model(exclude_landmarks=False, **options).fit(X)
    assert est.score(X) == pytest.approx(-est.eigenvalues_.sum(), rel=1e-9)


def test_the_first_functions_count() -> None:
    est = model(exclude_landmarks=False).fit(X)
    assert est.set_params(n_components=2).score(X) == pytest.approx(-est.eigenvalues_[:2].sum(), rel=1e-9)
    assert est.set_params(n_components=5).score(X) == -np.inf


def test_functions_rotated_among_themselves_score_the_same(fitted: dsp.SpectralDecomposition) -> None:
    before = fitted.score(NEW)
    rotated = model().fit_moments(fitted.moments_)
    rotated.coefficients_ = rotated.coefficients_ @ np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    assert rotated.score(NEW) == pytest.approx(before, rel=1e-9)


def test_the_score_of_a_narrow_kernel_is_worse_though_its_eigenvalues_are_less() -> None:
    """Spikes at the landmarks: by their own rows they are the better functions, on new rows the worse."""
    few = X[:300]
    wide, narrow = (
        model(scale, solver="cut", landmarks="uniform", n_landmarks=100, min_support=0).fit(few) for scale in (1, 0.05)
    )
    assert narrow.eigenvalues_.sum() < wide.eigenvalues_.sum()
    assert narrow.score(NEW) < 2 * wide.score(NEW)


def test_fewer_functions_than_components_are_the_worst() -> None:
    with pytest.warns(dsp.RankWarning, match="n_components=4"):
        est = dsp.SpectralDecomposition(basis=dsp.basis.MonomialBasis(1, 1), n_components=4).fit(X)
    assert est.score(NEW) == -np.inf


def test_functions_that_vanish_on_the_new_rows_are_not_rewarded(fitted: dsp.SpectralDecomposition) -> None:
    for rows in (NEW[:100] + 1e3, np.repeat(NEW[:2], 50, axis=0)):
        with pytest.warns(dsp.RankWarning, match="of 4 functions vanish on the 100 rows .* and the score is -inf"):
            assert fitted.score(rows) == -np.inf


CONTAINERS: dict[str, Callable[[Path], Any]] = {
    "dask": lambda path: da.from_array(NEW, chunks=(3000, 1)),
    "xarray": lambda path: xr.DataArray(NEW, dims=("row", "column")),
    "zarr": lambda path: zarr.create_array(path / "a.zarr", data=NEW, chunks=(3000, 1)),
    "path": lambda path: str(zarr.create_array(path / "a.zarr", data=NEW, chunks=(3000, 1)).store.root),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    assert fitted.score(CONTAINERS[kind](tmp_path)) == pytest.approx(fitted.score(NEW), rel=1e-9)


def test_a_saved_model_scores_the_same(tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    dsp.save(fitted, tmp_path / "m.zarr")
    assert dsp.load(tmp_path / "m.zarr").score(NEW) == fitted.score(NEW)


def test_invalid_rows_and_fields() -> None:
    est = dsp.SpectralDecomposition(Schroedinger("V"), Gaussian(1.0), n_landmarks=60, n_components=3, random_state=0)
    x, new = RNG.uniform(-5, 5, (2, 8000, 1))
    est.fit(x, fields={"V": x[:, 0] ** 2})
    potential = new[:, 0] ** 2
    assert est.score(new, fields={"V": potential}) == pytest.approx(-9, abs=0.5)  # 1 + 3 + 5
    spoilt = new.copy()
    spoilt[7] = np.nan
    with pytest.raises(dsp.InvalidRowError, match="row 7"):
        est.score(spoilt, fields={"V": potential})
    rest = np.delete(np.arange(8000), 7)
    assert est.score(spoilt, fields={"V": potential}, on_invalid="skip") == pytest.approx(
        est.score(new[rest], fields={"V": potential[rest]}), rel=1e-9
    )


# -- two sides ---------------------------------------------------------------------------------------------------------


def canonical(f: np.ndarray, g: np.ndarray) -> float:
    """The sum of squared canonical correlations of functions at the rows (n, k), from their QR decompositions."""
    return float(np.linalg.norm(np.linalg.qr(f)[0].T @ np.linalg.qr(g)[0]) ** 2)


@pytest.mark.parametrize("center", [False, True])
def test_vamp_2_of_views(center: bool) -> None:
    x, y = X, np.sin(X) + 0.2 * RNG.standard_normal(X.shape)
    right = dsp.basis.MonomialBasis(1, 3)
    est = dsp.SpectralDecomposition(Cross(center=center), basis=BASIS, right_basis=right, n_components=3).fit((x, y))
    new = NEW[:900], np.sin(NEW[:900]) + 0.2 * RNG.standard_normal((900, 1))
    f, g = est.transform(new[0]), est.transform_right(new[1])
    if center:
        f, g = f - f.mean(axis=0), g - g.mean(axis=0)
    assert est.score(new) == pytest.approx(canonical(f, g), rel=1e-8)
    assert est.score((x, y)) == pytest.approx(np.sum(est.singular_values_**2), rel=1e-9)
    views = da.from_array(new[0], chunks=(200, 1)), new[1]
    assert est.score(views) == pytest.approx(est.score(new), rel=1e-9)


@pytest.mark.parametrize("solver", ["singular", "eigen"])
def test_vamp_2_of_a_transfer_operator(solver: str) -> None:
    """Singular values, and eigenvalues, decay^k of a reversible process."""
    est = dsp.SpectralDecomposition(Transfer(2, solver), basis=BASIS, n_components=3).fit(ou(20_000, 0))
    new = ou(20_000, 1)
    assert est.score(new) == pytest.approx(1 + 0.8**4 + 0.8**8, abs=0.05)
    sides = (est.transform, est.transform_right) if solver == "singular" else (est.transform, est.transform_left)
    pieces = [new[:700], new[5000:8000]]
    f = np.concatenate([sides[0](x[:-2]) for x in pieces])
    g = np.concatenate([sides[1](x[2:]) for x in pieces])
    assert est.score(pieces) == pytest.approx(canonical(f.real, g.real), rel=1e-7)


def test_conjugate_functions_count_as_their_real_and_imaginary_parts() -> None:
    rng = np.random.default_rng(5)
    turn = 0.9 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    x = np.zeros((6000, 2))
    for t in range(1, 6000):
        x[t] = turn @ x[t - 1] + 0.4 * rng.standard_normal(2)
    old, new = x[:3000], x[3000:]
    est = dsp.SpectralDecomposition(Transfer(1, "eigen"), basis=dsp.basis.MonomialBasis(2, 1), n_components=3).fit(old)
    assert np.abs(est.eigenvalues_.imag).max() > 0.2
    f, g = est.transform(new[:-1]), est.transform_left(new[1:])
    f, g = (np.column_stack([a[:, 0].real, a[:, 1].real, a[:, 1].imag]) for a in (f, g))
    assert est.score(new) == pytest.approx(canonical(f, g), rel=1e-8)
    assert est.score(new) == pytest.approx(1 + 2 * 0.81, abs=0.1)


def test_more_functions_than_there_are_do_not_spoil_vamp_2() -> None:
    with pytest.warns(dsp.RankWarning, match="n_components=9"):
        est = dsp.SpectralDecomposition(Transfer(1), basis=BASIS, n_components=9).fit(ou(3000, 0))
    assert 1 < est.score(ou(3000, 1)) <= 5


# -- generators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reversible", [True, False])
def test_a_generator(reversible: bool) -> None:
    """Ornstein-Uhlenbeck: 0, -1, -1, -2, -2, -2 in two dimensions; a rotation leaves the real parts as they are."""
    x, new = RNG.standard_normal((2, 20_000, 2))
    operator = Generator("drift", np.sqrt(2), reversible=reversible)
    drift = np.array([[-1.0, 1.0], [-1.0, -1.0]])  # a row's, from the left

    def fields(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {} if reversible else {"drift": rows @ drift}

    est = dsp.SpectralDecomposition(operator, basis=dsp.basis.MonomialBasis(2, 2), n_components=6)
    est.fit(x, fields=fields(x))
    assert est.score(new, fields=fields(new)) == pytest.approx(-8, abs=0.3)
    assert est.score(x, fields=fields(x)) == pytest.approx(est.eigenvalues_.real.sum(), rel=1e-8)
    assert est.set_params(n_components=7).score(new, fields=fields(new)) == -np.inf


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (NEW[:1], {}, r"a score of 4 functions needs more than 4 rows, and X has 1 rows; .* lower n_components"),
        (NEW[:4], {}, r"a score of 4 functions needs more than 4 rows, and X has 4 rows"),
        (np.hstack([NEW, NEW]), {}, r"X has 2 features, but \w+ is expecting 1 features"),
        (NEW, {"sample_weight": np.ones(3)}, r"sample_weight has 3 rows and X has 20000"),
        (NEW, {"on_invalid": "keep"}, r"on_invalid must be 'raise' or 'skip'; it is 'keep'"),
        (NEW, {"fields": {"potential": NEW[:, 0]}}, r"the operator laplacian reads no fields"),
    ],
    ids=["one row", "few rows", "columns", "weights", "invalid", "fields"],
)
def test_bad_data_before_any_task(
    rows: Any, options: dict[str, Any], message: str, fitted: dsp.SpectralDecomposition
) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.score(rows, **options)


def test_bad_data_after_a_pass(fitted: dsp.SpectralDecomposition) -> None:
    spoilt = np.where(np.arange(10)[:, None] < 3, NEW[:10], np.nan)
    with pytest.raises(ValueError, match=r"needs more than 4 rows, and 3 are left of 10"):
        fitted.score(spoilt, on_invalid="skip")
    with pytest.raises(ValueError, match="the total sample weight is 0"):
        fitted.score(NEW, sample_weight=np.zeros(len(NEW)))
    with pytest.raises(ValueError, match="not fitted"):
        model().score(NEW)
    sphere = NEW[:, :1] * [[1.0, 0, 0]]
    est = dsp.SpectralDecomposition(
        Laplacian(dsp.manifolds.Sphere(3)), dsp.kernels.Polynomial(2), n_landmarks=20, n_components=2, random_state=0
    ).fit(dsp.manifolds.Sphere(3).sample(500, RNG))
    with pytest.raises(ValueError, match=r"expected points on Sphere\(d=3\)"):
        est.score(sphere)
    transfer = dsp.SpectralDecomposition(Transfer(5), basis=BASIS, n_components=2).fit(ou(100, 0))
    with pytest.raises(ValueError, match="the lag is 5 rows and trajectory 1 has 4"):
        transfer.score([ou(100, 1), ou(4, 2)])
