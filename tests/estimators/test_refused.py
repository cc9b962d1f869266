"""Bad input is refused before any task is sent; warnings of what the data cannot give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import daskspectral as dsp
from daskspectral.forms import form, inner
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial
from tests.estimators.common import N, X, make


def unknown_blocks(path: Path) -> da.Array:
    x = da.from_array(X, chunks=100)
    return x[x[:, 0] > 0]


def in_group(path: Path) -> str:
    group = zarr.open_group(path / "g.zarr", mode="w")
    group.create_array("a", data=X)
    group.create_array("b", data=X)
    return f"{path}/g.zarr"


BAD_DATA: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "one dimension": (lambda path: X[:, 0], ValueError, "X must have 2 dimensions"),
    "three dimensions": (lambda path: X[None], ValueError, "X must have 2 dimensions"),
    "empty": (lambda path: X[:0], ValueError, r"X is empty: 0 sample\(s\)"),
    "complex": (lambda path: X + 1j, ValueError, "Complex data not supported: X has dtype complex128"),
    "objects": (lambda path: X.astype(str).astype(object), TypeError, "X holds text, such as"),
    "text": (lambda path: [["a", "b"]], TypeError, "real numbers are wanted"),
    "unknown blocks": (unknown_blocks, ValueError, r"X is a dask array with blocks of unknown size; call X\."),
    "missing": (lambda path: path / "no.zarr", FileNotFoundError, "there is no zarr array at .*no.zarr"),
    "group": (in_group, ValueError, r"g.zarr is a zarr group, .*: \S*/g.zarr/a, \S*/g.zarr/b$"),
    "fewer rows than landmarks": (lambda path: X[:19], ValueError, "X has 19 rows, fewer than n_landmarks=20"),
    "not data": (lambda path: 3, TypeError, "X is a int; give a numpy, dask, zarr or xarray array"),
}


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_before_any_task(kind: str, tmp_path: Path) -> None:
    bad, error, message = BAD_DATA[kind]
    x = bad(tmp_path)
    for options in ({}, {"standardize": True, "kernel": None, "landmarks": "kmeans++"}):
        with pytest.raises(error, match=message):
            make(**options).fit(x)


LARGE = dsp.operators.Laplacian(dsp.manifolds.Sphere(5))
BAD_PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"n_components": 0}, ValueError, "n_components must be a whole number of 1 or more; it is 0"),
    ({"n_components": True}, ValueError, "n_components must be a whole number"),
    ({"n_landmarks": 2.0}, ValueError, "n_landmarks must be a whole number of 1 or more; it is 2.0"),
    ({"kernel": "gaussian"}, TypeError, "kernel must be one of daskspectral.kernels"),
    ({"kernel": 1.0}, TypeError, "kernel must be one of .*Gaussian, Exponential, Matern, Polynomial, Linear"),
    ({"kernel": Gaussian}, TypeError, "kernel must be one of"),
    ({"operator": "laplacian"}, TypeError, r"operator must be one of daskspectral.operators, such as Laplacian\(\)"),
    ({"operator": LARGE}, ValueError, r"Sphere\(d=5\) lives in 5 dimensions and the data have 3 columns"),
    ({"kernel": Matern(0.5, 1.0) * Matern(0.5, 1.0)}, None, ""),  # type: ignore[list-item]
    ({"landmarks": "random"}, ValueError, "landmarks must be 'uniform' or 'kmeans\\+\\+' or .*; it is 'random'"),
    ({"landmarks": None}, ValueError, r"landmarks must be one of uniform, .*, or an array \(p, 3\)"),
    ({"landmarks": X[:5, :2]}, ValueError, r"array \(p, 3\), one column for each of X; they have shape \(5, 2\)"),
    ({"landmarks": X[:0]}, ValueError, r"they have shape \(0, 3\)"),
    ({"landmarks": X[:5] * np.nan}, ValueError, r"landmarks must be finite; row 0 is"),
    ({"landmarks": [["a", "b", "c"]]}, ValueError, "their dtype is <U1"),
    ({"landmarks": X[:5] + 1j}, ValueError, "their dtype is complex128"),
    ({"landmark_sample": 19, "landmarks": "leverage"}, ValueError, "landmark_sample must be a whole number of 20 or"),
    ({"landmark_sample": 2.5, "landmarks": "farthest"}, ValueError, "landmark_sample must be a whole number"),
    ({"columns": [3]}, ValueError, "columns must be a list of distinct numbers of the 3 columns"),
    ({"columns": [0.5]}, ValueError, "columns must be a list of distinct numbers"),
    ({"columns": [True, False, True]}, ValueError, "columns must be a list of distinct numbers"),
    ({"constant": "yes"}, ValueError, "constant must be None or True or False; it is 'yes'"),
    ({"min_support": -1}, ValueError, "min_support must be a number of 0 or more; it is -1"),
    ({"ridge": -1.0}, ValueError, "ridge must be a number of 0 or more; it is -1.0"),
    ({"ridge": None}, ValueError, "ridge must be a number of 0 or more"),
    ({"rtol": "a"}, ValueError, "rtol must be a number; it is 'a'"),
    ({"rtol": 1.0}, ValueError, r"rtol must lie in \[0, 1\) for dtype float64"),
    ({"dtype": "float16"}, ValueError, "dtype must be 'float64' or 'float32'; it is 'float16'"),
    ({"dtype": float}, ValueError, "dtype must be 'float64' or 'float32'"),
    ({"random_state": -1}, ValueError, "random_state must be a whole number of 0 or more, a numpy Generator, or None"),
    ({"random_state": "seed"}, ValueError, "random_state must be"),
]
BAD_PARAMETERS = [bad for bad in BAD_PARAMETERS if bad[1] is not None]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "error", "message"), BAD_PARAMETERS, ids=[str(b[0])[:40] for b in BAD_PARAMETERS])
def test_bad_parameters_before_any_task(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**({"standardize": True} | changes)).fit(X)


@pytest.mark.usefixtures("no_tasks")
def test_kernel_that_is_not_smooth_enough() -> None:
    @form
    def hessian(f: Any, g: Any, x: Any) -> Any:
        return inner(dsp.partial(f, 2, 0, 0), dsp.partial(g, 2, 0, 0))

    with pytest.raises(
        dsp.SmoothnessError, match=r"takes derivatives of order 2, and the kernel Exponential.* order 1"
    ):
        make(kernel=Exponential(1.0), operator=dsp.operators.SymmetricForm(hessian)).fit(X)


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sample_weight": np.ones(9)}, ValueError, "sample_weight has 9 rows and X has 3000"),
        ({"sample_weight": np.ones((N, 1))}, ValueError, "sample_weight must have one dimension"),
        ({"sample_weight": "no.zarr"}, FileNotFoundError, "there is no zarr array at no.zarr"),
        ({"on_invalid": "ignore"}, ValueError, "on_invalid must be 'raise' or 'skip'; it is 'ignore'"),
    ],
)
def test_bad_options_before_any_task(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(standardize=True).fit(X, **options)


def test_bad_transforms(fitted: dsp.SpectralDecomposition, no_tasks: None, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        make().transform(X)
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
        fitted.transform(X[:, :2])
    with pytest.raises(ValueError, match="on_invalid must be"):
        fitted.transform(X, on_invalid="drop")
    with pytest.raises(FileNotFoundError, match=r"the directory for out.zarr, is missing"):
        fitted.transform(X, out=tmp_path / "no" / "out.zarr")


@pytest.mark.parametrize("standardize", [False, True])
def test_weights_that_weigh_nothing(standardize: bool) -> None:
    with pytest.raises(ValueError, match="the total sample weight is 0; some row needs a weight above zero"):
        make(standardize=standardize).fit(X, sample_weight=np.zeros(N))
    weight = np.ones(N)
    weight[[500, 40]] = -2
    with pytest.raises(dsp.InvalidRowError, match=r"row 40 is the first .*the sample weight is negative \(-2.0\)"):
        make(standardize=standardize).fit(X, sample_weight=weight)


def test_numbers_that_overflow() -> None:
    with pytest.raises(ValueError, match=r"the moments are not finite: .*standardize=True"):
        make(kernel=Polynomial(6)).fit(1e60 * X)
    assert make(kernel=Gaussian(1.0)).fit(1e100 * X).eigenvalues_.max() == 0
    with pytest.raises(ValueError, match="the squares of the columns overflow; divide X by a constant first"):
        make(standardize=True).fit(1e152 * X, sample_weight=np.full(N, 1e5))
    for model in (make(), make(standardize=True), dsp.DiffusionMap(2.0), dsp.SDPEmbedding(2.0), dsp.KernelEmbedding()):
        few = X[:60].copy()
        few[3, 1] = 1e160
        with pytest.raises(
            dsp.InvalidRowError, match=r"row 3 .* X holds 1e\+160 in column 1, whose square overflows: "
        ):
            model.fit(few)


@pytest.mark.parametrize("lazy", [False, True])
def test_points_whose_squares_overflow_are_invalid_rows(fitted: dsp.SpectralDecomposition, lazy: bool) -> None:
    points = X[:5].copy()
    points[2, 1] = -1e160
    rows: Any = da.from_array(points, chunks=(3, -1)) if lazy else points
    with pytest.raises(dsp.InvalidRowError, match=r"row 2 .* X holds -1e\+160 in column 1, whose square overflows: "):
        np.asarray(fitted.transform(rows))
    found = np.asarray(fitted.transform(rows, on_invalid="skip"))
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, False, True, False, False])


@pytest.mark.parametrize("kernel", [Gaussian("median"), Exponential("median"), 2 * Matern(1.5, "median")])
def test_the_median_of_very_small_and_very_large_data(kernel: Kernel) -> None:
    """The spectrum scales with the units, up to where powers of them overflow, and this is said."""
    plain = make(kernel=kernel).fit(X).eigenvalues_
    for unit in (2.0**-240, 2.0**240):
        found = make(kernel=kernel).fit(unit * X).eigenvalues_
        np.testing.assert_allclose(found * unit**2, plain, rtol=1e-9, atol=1e-9)
    for unit in (1e-300, 1e-160, 1e-100, 1e-80, 1e80, 1e100, 1e150):
        with pytest.raises(ValueError, match=r"the median distance of the points is \d.*overflow: bring the data to"):
            make(kernel=kernel).fit(unit * X)
    with pytest.raises(ValueError, match=r"needs a positive scale .*below 1e-75 or above 1e\+75 overflow"):
        Gaussian(1e-90)


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize("most", [2**63, 10**30, 10**6 + 1])
def test_absurd_numbers_of_eigenfunctions(most: int) -> None:
    sphere, x = dsp.manifolds.Sphere(3), X[:50] / np.linalg.norm(X[:50], axis=1, keepdims=True)
    models: list[Any] = [dsp.SobolevRidge(sphere, n_eigenfunctions=most)]
    models += [dsp.InvariantRegressor(sphere, None, 2.0, most, solver) for solver in ("projection", "least_squares")]
    for model in models:
        with pytest.raises(
            ValueError, match=f"n_eigenfunctions must be a whole number of 1000000 or less; it is {most}"
        ):
            model.fit(x, x[:, 0])
    with pytest.raises(ValueError, match=f"count of 1000000 eigenfunctions at most, received {most}"):
        dsp.basis.HarmonicBasis(sphere, most)


def test_a_failed_fit_leaves_the_estimator_as_it_was(fitted: dsp.SpectralDecomposition) -> None:
    estimator = clone(fitted).fit(X)
    before = estimator.transform(X[:5])
    with pytest.raises(dsp.InvalidRowError):
        estimator.fit(np.full_like(X, np.nan))
    np.testing.assert_array_equal(estimator.transform(X[:5]), before)


def test_warning_of_the_rank() -> None:
    advice = "polynomials of degree 1 in 3 variables have 4 dimensions"
    with pytest.warns(dsp.RankWarning, match=rf"rank 4 .* n_components=5: 4 eigenvalues are returned; {advice}"):
        estimator = make(kernel=Polynomial(1)).fit(X)
    assert estimator.eigenvalues_.shape == (4,)
    assert estimator.transform(X).shape == (N, 4)
    with pytest.warns(dsp.RankWarning, match=r"rank 4 .* use more landmarks or a narrower kernel"):
        make(n_landmarks=3).fit(X)


def test_warning_of_landmarks_that_coincide() -> None:
    x = np.repeat(X[:8], 100, axis=0)
    with pytest.warns(dsp.RankWarning, match=r"only 8 of 20 landmarks could be chosen by 'kmeans\+\+'"):
        make(landmarks="kmeans++", exclude_landmarks=False).fit(x)


def test_warning_of_functions_with_too_few_points() -> None:
    with pytest.warns(dsp.RankWarning, match=r"\d+ of 21 basis functions rest on fewer than min_support=10") as caught:
        estimator = make(kernel=Gaussian(0.08), n_components=1, landmarks="uniform", min_support=10.0).fit(X)
    dropped = int(str(caught[0].message).split()[0])
    assert np.count_nonzero(estimator.support_ < 10) == dropped > 0
    assert np.count_nonzero((estimator.coefficients_ == 0).all(axis=1)) >= dropped
    with pytest.raises(ValueError, match="each of the 20 basis functions rests on fewer than min_support=10"):
        make(kernel=Gaussian(1e-3), constant=False, solver="cut").fit(X)  # 10 is its default


def test_points_that_all_coincide() -> None:
    with pytest.raises(ValueError, match="their median distance is 0 and sets no scale; give a scale"):
        make(kernel=Gaussian("median")).fit(np.ones((100, 2)))
    with pytest.warns(dsp.RankWarning, match="rank 1"):
        assert make(landmarks="uniform").fit(np.ones((100, 2))).rank_ == 1


def test_nothing_is_said_when_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    make().fit(X, progress=False).transform(X, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "values"), [("standardize", "True or False"), ("exclude_landmarks", "None or True or False")]
)
def test_switches_are_true_or_false(name: str, values: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be {values}; it is 'no'"):
        make(**{name: "no"}).fit(X)


def test_a_manifold_is_no_word() -> None:
    with pytest.raises(TypeError, match=r"one of daskspectral\.manifolds, such as Sphere\(3\); got 'sphere'"):
        dsp.operators.Laplacian("sphere")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="integer"):
        dsp.manifolds.Sphere(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "estimator", [dsp.SpectralDecomposition, dsp.HermiteRegressor, dsp.SDPEmbedding, dsp.GraphLaplacian]
)
def test_an_array_in_place_of_the_number_of_landmarks(estimator: Any) -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match=r"n_landmarks is how many .* array of shape \(5, 2\).* as landmarks="):
        estimator(n_landmarks=x[:5]).fit(x, x[:, 0])
    with pytest.raises(ValueError, match="n_landmarks must be a whole number of 1 or more; it is 'many'"):
        estimator(n_landmarks="many").fit(x, x[:, 0])
