"""Several bases in one pass, folds kept apart: the seam that model selection and error bars stand on."""

import pickle
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_run
from daskspectral.forms import first_moment, gram
from daskspectral.kernels import Exponential, Gaussian, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments import Measure, MeasureMany
from daskspectral.operators import Laplacian

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 3))
X /= np.linalg.norm(X, axis=1)[:, None]
Y = X[:20].copy()
WEIGHT = RNG.uniform(0.5, 2, len(X))
FOLD = RNG.integers(0, 4, len(X))


def measures() -> dict[str, Measure]:
    plain, tangential = Laplacian(), Laplacian(Sphere(3))
    narrow, wide = LandmarkBasis(Gaussian(0.7), Y), LandmarkBasis(Gaussian(1.4), Y)
    rough = Concatenated((ConstantBasis(3), LandmarkBasis(Exponential(1.0), Y)))
    other = LandmarkBasis(Matern(2.5, 1.0), X[30:60].copy())
    dot = LandmarkBasis(Polynomial(2), Y)
    return {
        "narrow": Measure(narrow, narrow, plain.forms, {"first": first_moment}, plain),
        "wide": Measure(wide, wide, plain.forms, operator=plain),
        "rough": Measure(rough, rough, plain.forms, operator=plain),
        "tangential": Measure(wide, wide, tangential.forms, operator=tangential),
        "other": Measure(other, other, plain.forms, operator=plain, rows=64),
        "dot": Measure(dot, dot, plain.forms, operator=plain),
    }


def test_one_pass_over_many_bases_is_each_alone() -> None:
    many = pickle.loads(pickle.dumps(MeasureMany(measures())))
    together = many([{"x": X[:300], "weight": WEIGHT[:300]}, {"x": X[300:], "weight": WEIGHT[300:]}])
    for name, measure in measures().items():
        alone = measure([{"x": X, "weight": WEIGHT}])
        for key, value in alone.items():
            np.testing.assert_allclose(together[f"{name}/{key}"], value, rtol=1e-11, atol=1e-11 * np.abs(value).max())


@pytest.mark.parametrize("splits", [1, 7])
def test_folds_are_kept_apart_through_the_engine(splits: int) -> None:
    source = open_source(X, weight=WEIGHT, fold=FOLD)
    plan = plan_run(np.linspace(0, len(X), splits + 1).astype(int), flops_per_row=1e9, row_bytes=24)
    total = Run(source, plan).reduce(MeasureMany(measures(), folds=4))
    for fold in range(4):
        rows = fold == FOLD
        assert total.sums["fold/count"][fold] == rows.sum()
        np.testing.assert_allclose(total.sums["fold/weight"][fold], WEIGHT[rows].sum(), rtol=1e-13)
        for name, measure in measures().items():
            for key, value in measure([{"x": X[rows], "weight": WEIGHT[rows]}]).items():
                got = total.sums[f"{name}/{fold}/{key}"]
                np.testing.assert_allclose(got, value, rtol=1e-11, atol=1e-11 * np.abs(value).max())


def test_a_fold_without_rows_in_a_range_adds_nothing() -> None:
    fold = np.repeat([0, 1], [400, 300])
    source = open_source(X, fold=fold)
    plan = plan_run(np.array([0, 200, 400, 700]), flops_per_row=1e9, row_bytes=24)
    total = Run(source, plan).reduce(MeasureMany({"wide": measures()["wide"]}, folds=2))
    for k in range(2):
        expected = measures()["wide"]([{"x": X[fold == k]}])["form"]
        np.testing.assert_allclose(total.sums[f"wide/{k}/form"], expected, rtol=1e-12, atol=1e-10)


def test_distances_to_shared_landmarks_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    products = []
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b, **kw: products.append(a.shape) or matmul(a, b, **kw))
    MeasureMany({k: v for k, v in measures().items() if k in {"narrow", "wide", "rough"}})([{"x": X}])
    assert products.count((20, 5)) == 1  # [-2 y, |y|^2, 1] against the points, for three kernels


def test_a_fold_without_rows_sends_nothing() -> None:
    fold = np.where(FOLD == 2, 0, FOLD)
    sums = MeasureMany(measures(), folds=4)([{"x": X, "weight": WEIGHT, "fold": fold}])
    assert sums["fold/count"][2] == 0
    for name, measure in measures().items():
        for key, value in measure([{"x": X, "weight": WEIGHT}]).items():
            assert f"{name}/2/{key}" not in sums
            total = np.sum([sums[f"{name}/{k}/{key}"] for k in (0, 1, 3)], axis=0)
            np.testing.assert_allclose(total, value, rtol=1e-11, atol=1e-11 * np.abs(value).max())


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        (np.where(FOLD == 2, 4, FOLD), r"0 to 3; one row has 4"),
        (FOLD - 1, r"one row has -1"),
        (FOLD + 0.5, r"one row has \d\.5"),
        (None, r"a field `fold` of the rows, and the data have \['x'\]"),
    ],
)
def test_rows_of_no_fold_are_an_error(fold: np.ndarray | None, message: str) -> None:
    source = open_source(X, fold=fold)
    plan = plan_run(np.array([0, len(X)]), flops_per_row=1e9, row_bytes=24)
    with pytest.raises(ValueError, match=message):
        Run(source, plan).reduce(MeasureMany(measures(), folds=4))


def test_what_cannot_be_measured_together_is_refused() -> None:
    plane = LandmarkBasis(Gaussian(1.0), Y[:, :2])
    with pytest.raises(ValueError, match="needs one measure at least"):
        MeasureMany({})
    with pytest.raises(ValueError, match=r"same variables; they have .*'flat': 2"):
        MeasureMany({**measures(), "flat": Measure(plane, plane, Laplacian().forms)})
    with pytest.raises(ValueError, match=r"1 or more; it is 0"):
        MeasureMany(measures(), folds=0)


def test_a_flag_that_blas_sets_for_finite_products_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    multiply = np.matmul

    def flagged(*args: Any, **kwargs: Any) -> Any:
        np.subtract(np.inf, np.inf)
        return multiply(*args, **kwargs)

    basis, x = LandmarkBasis(Gaussian(), np.zeros((1, 2))), np.ones((5, 2))
    wanted = Measure(basis, basis, {"gram": gram})([{"x": x}])["gram"]
    monkeypatch.setattr(np, "matmul", flagged)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        np.matmul(x, x.T)
    np.testing.assert_array_equal(Measure(basis, basis, {"gram": gram})([{"x": x}])["gram"], wanted)
