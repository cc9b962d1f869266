"""DiffusionMap against dense Markov matrices and Nystrom's formula; the bandwidths of all embeddings."""

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_wine, make_moons
from sklearn.metrics import adjusted_rand_score

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.data.source import open_source
from daskspectral.embedding.bandwidth import chosen_bandwidth
from daskspectral.embedding.diffusion_functions import joining_bandwidth
from daskspectral.solvers import BurerMonteiro
from tests.common import unreliable
from tests.embedding.moons import gaussian, gram_error, moons, wine

Array = NDArray[Any]
X = make_moons(300, noise=0.08, random_state=0)[0]
NEW = make_moons(50, noise=0.08, random_state=1)[0]
WINE = {  # the leading eigenvalues of A_bar for wine, standardized with ddof = 1, by independent code
    1.5: [0.99842548, 0.99730533, 0.99600608, 0.99272465, 0.99118375, 0.98808862],
    4: [0.50686037, 0.32640594, 0.15621408, 0.13039475, 0.12254375, 0.10770946],
}


def make(bandwidth: float = 0.5, count: int = 120, **options: Any) -> dsp.DiffusionMap:
    landmarks = Landmarks(n_landmarks=count, method="cholesky")
    return dsp.DiffusionMap(bandwidth, **({"n_components": 3, "landmarks": landmarks, "random_state": 0} | options))


@pytest.mark.parametrize("bandwidth", WINE)
def test_wine(bandwidth: float) -> None:
    with pytest.warns(dsp.ReliabilityWarning, match="outliers") if bandwidth == 1.5 else nullcontext():
        found = make(bandwidth, n_components=6).fit(wine())
    np.testing.assert_allclose(found.spectrum_, WINE[bandwidth], rtol=0, atol=6e-9)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("method", "alpha", "time", "symmetric"),
    [
        ("exact", 0.0, 1, True),
        ("exact", 0.5, 0, True),
        ("exact", 1.0, 2.5, False),
        ("lowrank", 0.0, 0, True),
        ("lowrank", 0.7, 1, False),
    ],
)
def test_eigenvectors_and_formula_1_3(method: str, alpha: float, time: float, symmetric: bool) -> None:
    """P f = lambda f for the largest but 1, f of unit norm and orthogonal to constants in its stationary measure.

    P is the Markov matrix with density^alpha divided out; at few landmarks Y, of the kernel k(x, Y) K_YY^-1 k(Y, x).
    """
    found = make(method=method, count=40, alpha=alpha, time=time, symmetric=symmetric).fit(X)
    assert found.method_ == method
    k, at = gaussian(X, X, 0.5), gaussian(NEW, X, 0.5)
    if method == "lowrank":
        y = found.functions_.points
        middle = np.linalg.pinv(gaussian(y, y, 0.5), rcond=1e-10, hermitian=True)
        k, at = (gaussian(x, y, 0.5) @ middle @ gaussian(y, X, 0.5) for x in (X, NEW))
    tolerance = 1e-9 if method == "exact" else 1e-7
    values, psi = found.spectrum_, found.embedding_ / found.spectrum_**time
    q = k.sum(axis=1)
    divided = k / np.outer(q, q) ** alpha
    m = divided.sum(axis=1)
    p, stationary = divided / m[:, None], m / m.sum()
    np.testing.assert_allclose(values, np.sort(scipy.linalg.eigvals(p).real)[::-1][1:4], atol=tolerance)
    f = psi / np.sqrt(stationary)[:, None] if symmetric else psi
    np.testing.assert_allclose(p @ f, f * values, atol=100 * tolerance)
    np.testing.assert_allclose(f.T @ (stationary[:, None] * f), np.eye(3), atol=100 * tolerance)
    np.testing.assert_allclose(stationary @ f, 0, atol=tolerance)
    assert (psi[np.abs(psi).argmax(axis=0), np.arange(3)] > 0).all()
    rows = at / np.outer(at.sum(axis=1), q) ** alpha
    degree = rows.sum(axis=1, keepdims=True)
    expected = (rows / np.sqrt(degree * m) if symmetric else rows / degree) @ psi * values ** (time - 1)
    np.testing.assert_allclose(found.transform(NEW), expected, atol=1e-5)
    np.testing.assert_allclose(found.transform(X[100:220:3]), found.embedding_[100:220:3], atol=1e-9)


def test_all_pairs_are_of_few_rows() -> None:
    many = moons(2001)
    assert make(count=20, bandwidth=1.0).fit(many).method_ == "lowrank"
    with pytest.raises(ValueError, match="2000 rows"):
        make(method="exact").fit(many)


def test_points_of_the_fit_beyond_all_landmarks_are_refused() -> None:
    with pytest.raises(ValueError, match="1 of 301 points"):
        make(method="lowrank", landmarks=Landmarks(points=X[:120])).fit(np.vstack([X, [[30.0, 0.0]]]))


def test_bandwidths_beyond_the_data() -> None:
    for bandwidth in (1e7, 1e-4):
        with pytest.raises(ValueError, match="bandwidth"):
            make(bandwidth).fit(X)
    with pytest.warns(dsp.RankWarning):
        assert make(1e3).fit(X).embedding_.shape == (300, 2)


# -- bandwidths, of the SDP as well ------------------------------------------------------------------------------------

Z = make_moons(200, noise=0.1, random_state=0)[0]
MANY = Landmarks(n_landmarks=150, method="cholesky")
ESTIMATORS: dict[str, Any] = {
    "exact": dsp.SDPEmbedding(method="exact", solver=BurerMonteiro(tolerance=1e-6), random_state=0),
    "lowrank": dsp.SDPEmbedding(method="lowrank", landmarks=MANY, solver=BurerMonteiro(tolerance=1e-6), random_state=0),
    "diffusion": dsp.DiffusionMap(random_state=0),
    "diffusion, lowrank": dsp.DiffusionMap(method="lowrank", landmarks=MANY, random_state=0),
    "kernel embedding": dsp.KernelEmbedding(random_state=0),
}


def expected(x: Any, word: str) -> float:
    return chosen_bandwidth(open_source(x, progress=False), word, 0)


def test_words_for_bandwidths() -> None:
    assert expected(Z, "auto") == pytest.approx(joining_bandwidth(cdist(Z, Z, "sqeuclidean")), rel=1e-9)
    assert expected(Z, "median") == pytest.approx(np.median(pdist(Z)), rel=1e-12)
    for word in ("auto", "median"):
        with pytest.raises(ValueError, match="differ"):
            expected(np.full((30, 2), 2.0), word)
        with pytest.raises(ValueError, match="no rows"):
            expected(dsp.Rows(np.full((3, 2), np.nan), on_invalid="skip"), word)
        with pytest.raises(dsp.InvalidRowError, match="row 3"):
            expected(np.where(np.arange(30)[:, None] == 3, np.nan, Z[:30]), word)


def test_the_bandwidth_connects_points_when_the_tenth_eigenvalue_falls() -> None:
    """Of D^-1 K, from the non-symmetric matrix; of fewer than a hundred points a tenth of their number.

    The bandwidth is the first of 64 an octave, from the root of the median square on, that is above the crossing.
    """
    two, thrice = np.array([[0.0], [5.0]]), np.repeat(moons(15), 3, axis=0)
    for x, mode in ((moons(150), 10), (moons(37), 3), (thrice, 1), (1e3 * moons(20), 2), (two, 1)):
        squares = ((x[:, None] - x) ** 2).sum(axis=2)
        first = np.sqrt(np.median(squares[squares > 0]))

        def above(log: float, squares: Array = squares, mode: int = mode, first: float = first) -> float:
            k = np.exp(-squares / (first * 2**log) ** 2)
            return float(np.sort(scipy.linalg.eigvals(k / k.sum(axis=1, keepdims=True)).real)[-1 - mode]) - 0.9

        crossing = scipy.optimize.brentq(above, -6, 6, xtol=1e-9)
        assert joining_bandwidth(squares) == pytest.approx(first * 2 ** (np.ceil(64 * crossing) / 64))


@pytest.mark.parametrize(
    ("name", "word"),
    [("exact", "auto"), ("lowrank", "median"), ("diffusion", "auto"), ("kernel embedding", "auto")],
)
def test_a_word_equals_its_number(name: str, word: str) -> None:
    est = clone(ESTIMATORS[name]).set_params(bandwidth=word).fit(Z)
    assert est.bandwidth == word
    if name != "diffusion":
        assert est.bandwidth_ == pytest.approx(expected(Z, word), rel=1e-12)
    number = clone(est).set_params(bandwidth=est.bandwidth_).fit(Z)
    assert number.bandwidth_ == est.bandwidth_
    np.testing.assert_allclose(est.spectrum_, number.spectrum_, rtol=1e-9)


def test_auto_is_no_narrower_than_landmarks_cover() -> None:
    """Twenty landmarks cover two moons at a multiple of the bandwidth alone; other words are taken as they are."""
    few = make("auto", 20, n_components=2, method="lowrank")  # type: ignore[arg-type]
    scale = dsp.DiffusionMap().fit(Z).bandwidth_
    ratio = clone(few).fit(Z).bandwidth_ / scale
    assert ratio > 1
    assert 2 * np.log2(ratio) == pytest.approx(round(2 * np.log2(ratio)), abs=1e-9)
    with pytest.raises(ValueError, match="20 landmarks"):
        clone(few).set_params(bandwidth=scale).fit(Z)


def test_auto_is_the_distance_to_the_tenth_neighbor() -> None:
    """Copies of rows, shifts and units change nothing."""
    x = moons(200)
    scale = np.median(np.sort(cdist(x, x), axis=1)[:, 10])
    for z, unit in ((x, 1.0), (np.repeat(x, 2, axis=0), 1.0), (1e5 + 1e3 * x, 1e3)):
        assert dsp.DiffusionMap(random_state=0).fit(z).bandwidth_ == pytest.approx(unit * scale, rel=1e-6)


@pytest.mark.parametrize(("load", "count", "least"), [(load_wine, 3, 0.9), (load_breast_cancer, 2, 0.65)])
def test_outliers_do_not_come_first(load: Any, count: int, least: float) -> None:
    table, labels = load(return_X_y=True)
    x = (table - table.mean(axis=0)) / table.std(axis=0)
    found = dsp.DiffusionMap(n_components=count - 1).fit(x)
    assert adjusted_rand_score(labels, KMeans(count, n_init=10, random_state=0).fit_predict(found.embedding_)) > least
    assert found.row_shares_.min() > 0.1
    with pytest.warns(dsp.ReliabilityWarning, match=r"coordinate . rests on . of") as caught:
        narrow = clone(found).set_params(bandwidth=1.2).fit(x)
    assert str(caught[0].message) in narrow.warnings_[0]
    squares = narrow.embedding_**2
    np.testing.assert_allclose(narrow.row_shares_, squares.sum(axis=0) ** 2 / len(x) / np.sum(squares**2, axis=0))


def test_eigenvalues_in_a_cluster_have_different_vectors() -> None:
    """Forty groups, of which a walk leaves none: the eigenvalue 1 is of multiplicity 40."""
    groups = np.arange(400)[:, None] // 10 * 1000.0
    f = clone(make(1.0, n_components=39, method="exact", time=0)).fit(
        groups + NEW[:10].repeat(40, axis=0)[:, :1] * 1e-3
    )
    np.testing.assert_allclose(f.spectrum_, 1, atol=1e-12)
    np.testing.assert_allclose(f.embedding_.T @ f.embedding_, np.eye(39), atol=1e-9)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "kernel embedding"])
def test_invalid_rows(name: str) -> None:
    x, valid = Z.copy(), ~np.isin(np.arange(200), [30, 77])
    x[~valid, 1] = np.nan
    est = clone(ESTIMATORS[name]).set_params(bandwidth=0.7)
    with pytest.raises(dsp.InvalidRowError, match="row 30 "):
        clone(est).fit(x)
    skipped = dsp.Rows(x, on_invalid="skip")
    found, without = clone(est).fit(skipped), clone(est).fit(x[valid])
    e = np.asarray(found.embedding_)
    np.testing.assert_array_equal(np.isnan(e).all(axis=1), ~valid)
    assert gram_error(e[valid], without.embedding_) < 1e-4
    np.testing.assert_allclose(found.transform(skipped), e, atol=1e-9)


@unreliable
@pytest.mark.parametrize("name", ["exact", "diffusion", "kernel embedding"])
def test_columns_of_different_spread_are_warned_of(name: str) -> None:
    """In the words of SpectralDecomposition, with a remedy that works."""
    raw, model = load_wine().data, ESTIMATORS[name]
    with pytest.warns(dsp.ReliabilityWarning, match="column 7") as found:
        clone(model).fit(raw)
    remedied = raw / raw.std(axis=0)
    if "standardize" in str(found[0].message):
        remedied = dsp.Rows(raw, standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dsp.ReliabilityWarning)
        clone(model).fit(remedied)
