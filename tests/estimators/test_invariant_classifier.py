"""InvariantClassifier: scikit-learn's coefficients, held-out values, invariance, labels of any kind, containers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis
from daskspectral.cli.describing import describe
from daskspectral.engine import Run
from daskspectral.groups import Automorphisms, Cyclic, Generated, Group, Orthogonal, Permutations, SignFlips
from daskspectral.manifolds import SO3, Manifold, PeriodicBox, Sphere
from daskspectral.passes import multinomial as passes
from tests.common import written
from tests.estimators.common import CONTAINERS

Array = NDArray[Any]
N = 400
S2, S3 = Sphere(3), Permutations(3)
X = S2.sample(N, np.random.default_rng(0))
NUMBERS = np.digitize(
    np.sort(X, axis=1) @ [1.0, 2.0, -1.0] + 0.3 * np.random.default_rng(1).standard_normal(N), [-1, -0.4]
)
NAMES = np.array(["left", "middle", "right"])[NUMBERS]
W = np.random.default_rng(2).integers(0, 3, N).astype(float)


def make(**changes: Any) -> dsp.InvariantClassifier:
    options = {
        "manifold": S2,
        "group": S3,
        "smoothness": 2.0,
        "n_eigenfunctions": 49,
        "alpha": 1e-4,
        "folds": None,
        "tolerance": 1e-18,
    }
    return dsp.InvariantClassifier(**(options | changes))


def features(model: dsp.InvariantClassifier, x: Array) -> tuple[Array, Array]:
    """The functions but the constant, in units in which the penalty is the identity, (n, r - 1); these units."""
    scale = model.basis_.cumulative[1:].astype(float) ** (model.smoothness / model.manifold.dimension)
    return model.basis_.values(x)[1:].T / scale, scale


def scikit_learn(model: dsp.InvariantClassifier, x: Array, y: Array, w: Array | None = None) -> LogisticRegression:
    total = len(x) if w is None else w.sum()
    binary = 2 if len(set(y.tolist())) == 2 else 1  # scikit-learn penalises one vector of two
    other = LogisticRegression(C=binary / (total * model.alpha_), solver="newton-cholesky", tol=1e-10, max_iter=200)
    return other.fit(features(model, x)[0], y, sample_weight=w)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("y", [NUMBERS, NAMES, NUMBERS > 1], ids=["numbers", "names", "truths"])
def test_scikit_learn_on_the_same_functions(y: Array, weights: Array | None) -> None:
    model = make().fit(X, y, sample_weight=weights)
    other = scikit_learn(model, X, y, weights)
    new = S2.sample(100, np.random.default_rng(3))
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_allclose(model.predict_proba(new), other.predict_proba(features(model, new)[0]), atol=1e-6)
    np.testing.assert_array_equal(model.predict(new), other.predict(features(model, new)[0]))
    scores, theirs = model.decision_function(new), other.decision_function(features(model, new)[0])
    assert scores.shape == theirs.shape
    if scores.ndim == 2:
        theirs = theirs - theirs.mean(axis=1, keepdims=True)
        c = other.coef_.T / features(model, new)[1][:, None]
        np.testing.assert_allclose(model._coefficients[1:], c - c.mean(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(scores, theirs, atol=1e-6)
    np.testing.assert_allclose(model.predict_log_proba(new), np.log(model.predict_proba(new)))
    assert model.score(X, y) == accuracy_score(y, model.predict(X))
    assert model.score(X, y, W) == pytest.approx(accuracy_score(y, model.predict(X), sample_weight=W))


def test_weight_two_is_the_row_twice() -> None:
    rows = np.repeat(np.arange(N), W.astype(int))
    one, other = make().fit(X, NAMES, sample_weight=W), make().fit(X[rows], NAMES[rows])
    np.testing.assert_allclose(one._coefficients, other._coefficients, atol=1e-8)
    np.testing.assert_allclose(one.shares_, other.shares_, rtol=1e-13)


def test_coefficients_are_those_of_each_levels_harmonics() -> None:
    model = make().fit(X, NAMES)
    new = S2.sample(9, np.random.default_rng(3))
    expected = sum(S2.eigenfunctions(level).values(new) @ c for level, c in enumerate(model.coef_))
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-10)
    assert model.invariant_dimensions_.tolist() == [1, 1, 1, 2, 2, 2, 3]
    assert model.n_eigenfunctions_ == 49
    np.testing.assert_allclose(sum(c.sum(axis=1) ** 2 for c in model.coef_ if len(c) == 1), 0, atol=1e-20)


def test_held_out_values_are_those_of_models_without_a_fold() -> None:
    """The models of all folds go through one pass; here they are fitted one by one."""
    labels = np.random.default_rng(5).integers(0, 4, N)
    model = make(folds=labels, alpha=1e-3).fit(X, NAMES, sample_weight=W)
    losses, hits, weights = [], [], []
    for fold in range(4):
        rest, own = labels != fold, labels == fold
        other = make(alpha=1e-3).fit(X[rest], NAMES[rest], sample_weight=W[rest])
        p = other.predict_proba(X[own])
        losses.append(log_loss(NAMES[own], p, sample_weight=W[own], labels=other.classes_))
        hits.append(other.score(X[own], NAMES[own], W[own]))
        weights.append(W[own].sum())
    mean = np.average(losses, weights=weights)
    assert model.held_out_ is not None
    assert model.held_out_.log_loss == pytest.approx(mean, abs=2e-3)  # of loose descents
    assert model.held_out_.log_loss_error == pytest.approx(np.sqrt(np.sum((losses - mean) ** 2) / 12), rel=0.05)
    assert model.held_out_.accuracy == pytest.approx(np.average(hits, weights=weights), abs=0.01)
    np.testing.assert_allclose(
        model._coefficients, make(alpha=1e-3).fit(X, NAMES, sample_weight=W)._coefficients, atol=1e-7
    )


def test_the_penalty_is_the_best_of_those_that_were_compared() -> None:
    model = dsp.InvariantClassifier(S2, S3).fit(X, NAMES)
    curve = model.held_out_curve_
    best = int(np.argmin(curve[:, 1]))
    assert model.alpha_ == curve[best, 0]
    assert 0 < best < len(curve) - 1
    np.testing.assert_allclose(curve[1:, 0] / curve[:-1, 0], 0.1)
    assert (model.held_out_.log_loss, model.held_out_.log_loss_error) == tuple(curve[best, 1:])
    new = S2.sample(20_000, np.random.default_rng(8))
    noise = 0.3 * np.random.default_rng(9).standard_normal(20_000)
    y = np.array(["left", "middle", "right"])[np.digitize(np.sort(new, axis=1) @ [1.0, 2.0, -1.0] + noise, [-1, -0.4])]
    fresh = log_loss(y, model.predict_proba(new))
    assert abs(fresh - model.held_out_.log_loss) < 4 * model.held_out_.log_loss_error
    for alpha in (100 * model.alpha_, model.alpha_ / 100):
        assert fresh < log_loss(
            y, make(alpha=alpha, n_eigenfunctions=None, tolerance=1e-9).fit(X, NAMES).predict_proba(new)
        )


CASES: dict[str, tuple[Manifold, Group | None]] = {
    "sphere, permutations": (S2, S3),
    "sphere, cube": (S2, Generated([S3, SignFlips(3)])),
    "S^3, shifts": (Sphere(4), Cyclic(4)),
    "box": (PeriodicBox([0, 0], [1, 1]), Automorphisms([[[0, -1], [1, 0]]])),
    "rotations": (SO3(), Orthogonal([np.kron([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]], np.eye(3))])),
    "no group": (S2, None),
}


@pytest.mark.parametrize("name", CASES)
def test_exactly_invariant(name: str) -> None:
    manifold, group = CASES[name]
    x = manifold.sample(300, np.random.default_rng(0))
    y = (np.sin(5 * x @ np.arange(1, manifold.ambient + 1)) > 0.2) * 1 + (x[:, 0] > 0.5)
    model = make(manifold=manifold, group=group, smoothness=4.0, tolerance=1e-8).fit(x, y)

    @settings(max_examples=10, deadline=None)
    @given(seed=st.integers(0, 2**32))
    def check(seed: int) -> None:
        rng = np.random.default_rng(seed)
        points = manifold.sample(20, rng)
        before = model.predict_proba(points)
        np.testing.assert_allclose(before.sum(axis=1), 1, atol=1e-12)
        if group is not None:
            assert np.abs(model.predict_proba(group.word(rng, 15)(points)) - before).max() < 1e-10

    check()


KINDS: dict[str, Any] = {
    "text": NAMES,
    "objects": NAMES.astype(object),
    "list": NAMES.tolist(),
    "int8": NUMBERS.astype(np.int8) - 5,
    "large": NUMBERS.astype(np.int64) + 2**53,
    "whole floats": NUMBERS.astype(float) * 1e6,
    "truths": NUMBERS > 0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_any_kind(kind: str, tmp_path: Path) -> None:
    y = KINDS[kind]
    model = make(tolerance=1e-8).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.predict(X).dtype == np.asarray(y).dtype
    assert model.score(X, y) == np.mean(model.predict(X) == np.asarray(y)) > 0.7
    dsp.save(model, tmp_path / "model.zarr")
    loaded = dsp.load(tmp_path / "model.zarr")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("cache", ["auto", "never"])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers(kind: str, cache: str, tmp_path: Path) -> None:
    wrap, given = CONTAINERS[kind]
    expected = make(tolerance=1e-9, folds=5).fit(X, NUMBERS, sample_weight=W)
    x, y = wrap(tmp_path, "x", X), wrap(tmp_path, "y", NUMBERS)
    found = make(tolerance=1e-9, folds=5, cache=cache).fit(x, y, sample_weight=wrap(tmp_path, "w", W))
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-7)
    assert found.held_out_.log_loss == pytest.approx(expected.held_out_.log_loss, abs=1e-9)
    for name in ("predict", "predict_proba", "decision_function"):
        values = getattr(expected, name)(x)
        assert isinstance(values, given)
        np.testing.assert_allclose(np.asarray(values), getattr(expected, name)(X), atol=1e-13)
        assert values.dtype == getattr(expected, name)(X).dtype
    assert found.score(x, y) == expected.score(X, NUMBERS)


def test_text_outside_memory(tmp_path: Path) -> None:
    expected = make().fit(X, NAMES)
    stored = zarr.create_array(tmp_path / "y.zarr", shape=(N,), dtype=str, chunks=(130,))
    stored[:] = NAMES
    x = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(130, 3))
    lazy = da.from_array(NAMES, chunks=130)
    for a, b in ((X, stored), (x, stored), (x, f"{tmp_path}/y.zarr"), (da.from_array(X, chunks=100), lazy), (X, lazy)):
        model = make().fit(a, b)
        np.testing.assert_array_equal(model.classes_, expected.classes_)
        np.testing.assert_allclose(model._coefficients, expected._coefficients, atol=1e-7)
        assert model.score(a, b) == expected.score(X, NAMES)
    named = expected.predict(xr.DataArray(X, dims=("row", "f"), coords={"row": np.arange(N)}).chunk({"row": 100}))
    assert dask.is_dask_collection(named)
    assert named.dims == ("row",)
    np.testing.assert_array_equal(named.values, expected.predict(X))
    odds = expected.predict_proba(xr.DataArray(X, dims=("row", "f")))
    assert odds.coords["class"].values.tolist() == ["left", "middle", "right"]


def test_plain_coordinates() -> None:
    """Without a manifold columns lie in intervals; rows beyond their ends have those there, and are told."""
    x, y = make_moons(400, noise=0.15, random_state=0)
    model = dsp.InvariantClassifier().fit(x, y)
    fresh, truth = make_moons(2000, noise=0.15, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dsp.TrustWarning)
        assert model.score(fresh, truth) > 0.97
    with pytest.warns(dsp.TrustWarning, match=r"1 of 2 rows .* beyond the end .* by 2\.19 times .* `manifold_` has"):
        far = model.predict_proba([[10.0, 0.5], [0.5, 0.5]])
    end = [[model.manifold_.ends[1, 0], 0.5], [0.5, 0.5]]
    np.testing.assert_allclose(far, model.predict_proba(end), atol=1e-12)


def test_rows_where_the_fit_had_none_are_counted(tmp_path: Path) -> None:
    """A fit on a cap of the sphere: far from it the leverage is above 1, of saved models too."""
    rng = np.random.default_rng(0)
    x = Sphere(3).sample(4000, rng)
    cap = x[x[:, 2] > 0.7]
    weight = rng.integers(0, 3, len(cap)).astype(float)
    model = dsp.InvariantClassifier(Sphere(3), alpha=1e-4, n_eigenfunctions=16).fit(
        cap, cap[:, 0] > 0, sample_weight=weight
    )
    leverage = model.leverage(x)
    gram_of = HarmonicBasis(Sphere(3), len(model._coverage.whitening))
    u, new = gram_of.values(cap), gram_of.values(x)
    direct = np.sum(new * np.linalg.solve((u * weight) @ u.T, new), axis=0)
    np.testing.assert_allclose(leverage, direct, rtol=1e-4)
    assert (leverage[x[:, 2] < 0] > 1).all()
    assert (model.leverage(cap)[weight > 0] <= 1).all()
    model.save(tmp_path / "m.zarr")
    again = dsp.load(tmp_path / "m.zarr")
    for predicted in (model.predict, again.predict_proba, again.decision_function):
        with pytest.warns(dsp.TrustWarning, match=rf"{np.count_nonzero(leverage > 1)} of 4000 rows lie where the fit"):
            predicted(x)


def test_described_in_a_shell() -> None:
    text = describe(make(folds=4, tolerance=1e-6).fit(X, NAMES))
    assert "classes     3, shares left" in text
    assert "functions   12 invariant ones of 49" in text
    assert "held out    log loss" in text


def test_outputs_are_written(tmp_path: Path) -> None:
    model = make().fit(X, NAMES)
    assert model.predict_proba(X, out=tmp_path / "p.zarr") is None
    np.testing.assert_array_equal(written(tmp_path / "p.zarr"), model.predict_proba(X))


def test_invalid_rows() -> None:
    x, y = X.copy(), NAMES.astype(object)
    x[7], y[11] = np.nan, None
    with pytest.raises(dsp.InvalidRowError, match=r"row 7 is the first that cannot be used: X holds NaN"):
        make().fit(x, y)
    with pytest.raises(dsp.InvalidRowError, match=r"row 11 is the first that cannot be used: y is NaN"):
        make().fit(X, y)
    kept = np.setdiff1d(np.arange(N), [7, 11])
    for cache in ("auto", "never"):
        model = make(cache=cache).fit(x, y, on_invalid="skip")
        np.testing.assert_allclose(model._coefficients, make().fit(X[kept], NAMES[kept])._coefficients, atol=1e-7)
    assert np.isnan(model.predict_proba(x, on_invalid="skip")[7]).all()
    with pytest.raises(dsp.InvalidRowError, match=r"row 7"):
        model.predict(x)
    assert model.score(x, y, on_invalid="skip") == pytest.approx(model.score(X[kept], NAMES[kept]))
    unknown = NAMES.copy()
    unknown[:200] = "other"
    assert model.score(X, unknown) == pytest.approx(np.mean(model.predict(X) == unknown))


# -- what is refused ---------------------------------------------------------------------------------------------------

FRACTIONS = NUMBERS + 0.5
BAD: list[tuple[dict[str, Any], Any, str]] = [
    ({}, None, r"requires y to be passed, but the target y is None: give the label of each row"),
    ({}, np.zeros(N), r"y has one class, 0.0, and a classifier tells two or more apart"),
    ({}, np.full(N, np.nan), r"y has no labels beside 400 rows whose label is missing, and"),
    ({}, FRACTIONS, r"y is continuous, with values such as 0.5, which name no class; give labels of classes, or"),
    ({}, np.where(NUMBERS, NUMBERS, np.inf), r"y is continuous, with values such as inf, which name no class"),
    ({}, np.array([-np.inf, 1.0] * 200, dtype=object), r"y is continuous, with values such as -inf, which name no"),
    ({}, np.arange(N), r"y has 400 distinct labels in 400 rows: too few rows for each class"),
    ({}, NUMBERS[:-1], r"y has 399 rows and X has 400; they go together row by row"),
    ({}, np.eye(3)[NUMBERS], r"y must have shape \(n,\), a label for each row; it has shape \(400, 3\)"),
    ({}, NAMES.astype("S6"), r"labels are numbers or text; y has dtype |S6"),
    ({}, NUMBERS + 0j, r"Complex data not supported: y has dtype complex128"),
    ({}, np.array([1, "a"] * 200, dtype=object), r"labels are values of one kind, which can be sorted"),
    ({"alpha": 0.0}, NUMBERS, r"alpha must be positive: the log loss of separable classes has no minimum"),
    ({"alpha": "a"}, NUMBERS, r"alpha must be a number"),
    ({"alpha": None}, NUMBERS, r"folds=None of 400 rows leave none to choose the penalty by: give alpha"),
    ({"folds": 1}, NUMBERS, r"folds must be a whole number of 2 or more"),
    ({"tolerance": 0.0}, NUMBERS, r"tolerance must be positive"),
    ({"max_passes": 0}, NUMBERS, r"max_passes must be a whole number"),
    ({"cache": "always"}, NUMBERS, r"cache must be 'auto' or 'never'"),
    ({"smoothness": 0.5}, NUMBERS, r"smoothness must be above half the dimension"),
    ({"group": Permutations(4)}, NUMBERS, r"Sphere\(d=3\) has 3 coordinates, and Permutations\(d=4\) acts on 4"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "y", "message"), BAD)
def test_refused_before_any_task(changes: dict[str, Any], y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes).fit(X, y)


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("changes", "error"),
    [({"manifold": "sphere"}, TypeError), ({"group": "cube"}, TypeError), ({"manifold": Sphere(4)}, ValueError)],
)
def test_manifolds_and_groups_that_do_not_fit(changes: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make(**({"group": None} | changes)).fit(X, NUMBERS)


def test_weights_that_leave_nothing() -> None:
    with pytest.raises(ValueError, match=r"the class 'right' has no row of positive weight: leave its rows out"):
        make().fit(X, NAMES, sample_weight=(NAMES != "right").astype(float))
    with pytest.raises(ValueError, match=r"the total sample weight is 0"):
        make().fit(X, NAMES, sample_weight=np.zeros(N))
    with pytest.raises(dsp.InvalidRowError, match=r"row 3 .*the sample weight is negative"):
        make().fit(X, NAMES, sample_weight=np.where(np.arange(N) == 3, -1.0, 1.0))
    model = make().fit(X, NAMES)
    with pytest.raises(ValueError, match=r"the total sample weight is 0"):
        model.score(X, NAMES, np.zeros(N))
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
        model.score(X[:, :2], NAMES)
    with pytest.raises(ValueError, match=r"at distance 1"):
        model.predict(2 * X)


def test_a_descent_that_is_cut_short_says_so() -> None:
    with pytest.warns(
        ConvergenceWarning, match=r"ended after 3 passes with half the squared gradient at .*raise max_pas"
    ):
        make(max_passes=3).fit(X, NAMES)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def test_conventions() -> None:
    model = make(alpha=1e-3, tolerance=1e-8)
    assert is_classifier(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    copy = clone(model)
    assert copy.get_params(deep=False) == model.get_params(deep=False)
    before = model.get_params(deep=False)
    assert model.fit(X, NAMES) is model
    assert model.get_params(deep=False) == before
    assert model.n_features_in_ == 3
    assert cross_val_score(model, X, NAMES, cv=3).min() > 0.7
    search = GridSearchCV(model, {"alpha": [1e-4, 1e1]}, cv=3, scoring="neg_log_loss").fit(X, NAMES)
    assert search.best_params_ == {"alpha": 1e-4}
    unit = FunctionTransformer(lambda x: x / np.linalg.norm(x, axis=1, keepdims=True))
    piped = make_pipeline(unit, model).fit(3 * X, NAMES)
    np.testing.assert_allclose(piped.predict_proba(2 * X), model.predict_proba(X), atol=1e-10)


# -- many passes -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("cache", ["auto", "never"])
def test_checkpoint(cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that were made are not made again, and the end has the same bits."""
    model = make(folds=3, tolerance=1e-6, cache=cache)
    whole = clone(model).fit(X, NAMES, checkpoint=tmp_path / "other")
    made, reduce = [], Run.reduce

    def failing(self: Run, task: Any, *arguments: Any, **options: Any) -> Any:
        made.append(type(task).__name__)
        if len(made) == 6:
            raise KeyboardInterrupt
        return reduce(self, task, *arguments, **options)

    monkeypatch.setattr(Run, "reduce", failing)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, NAMES, checkpoint=tmp_path / "run", checkpoint_every=0)
    before = whole.n_passes_ - 5
    resumed = clone(model).fit(X, NAMES, checkpoint=tmp_path / "run")
    assert len(made) - 6 == before
    np.testing.assert_array_equal(resumed._coefficients, whole._coefficients)
    assert resumed.held_out_ == whole.held_out_
    with pytest.raises(ValueError, match=r"is of another run: .*y"):
        clone(model).fit(X, NAMES[::-1], checkpoint=tmp_path / "run")


@pytest.mark.usefixtures("small_tasks")
def test_rows_are_evaluated_once_where_their_functions_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    values = passes.LabelledRows._values

    def counted(self: Any, fields: Any, arena: Any) -> Any:
        if not self.kept:
            evaluated.append(len(fields["x"]))
        return values(self, fields, arena)

    monkeypatch.setattr(passes.LabelledRows, "_values", counted)
    model = make(tolerance=1e-9).fit(X, NAMES)
    assert sum(evaluated) == N
    evaluated.clear()
    again = make(tolerance=1e-9, cache="never").fit(X, NAMES)
    assert sum(evaluated) == N * again.n_passes_
    np.testing.assert_allclose(again._coefficients, model._coefficients, atol=1e-9)


@pytest.mark.parametrize("name", ["synchronous", "threads 3", "cluster"])
def test_schedulers(name: str, scheduling: Any) -> None:
    expected = make(folds=4, tolerance=1e-9).fit(X, NAMES)
    with scheduling(name):
        found = make(folds=4, tolerance=1e-9).fit(da.from_array(X, chunks=(130, 3)), da.from_array(NAMES, chunks=130))
    np.testing.assert_allclose(found._coefficients, expected._coefficients, atol=1e-8)
    assert found.held_out_.accuracy == pytest.approx(expected.held_out_.accuracy)


def test_probabilities_that_underflow_have_logarithms(tmp_path: Path) -> None:
    x = np.concatenate([np.linspace(-1, -0.5, 40), np.linspace(0.5, 1, 40)])[:, None]
    model = dsp.InvariantClassifier(alpha=1e-12, max_passes=300).fit(x, np.repeat([0, 1], 40))
    model._coefficients = 1e4 * model._coefficients
    found = model.predict_log_proba(x)
    assert np.isfinite(found).all()
    assert found.min() < -1000
    assert model.predict_log_proba(x, out=tmp_path / "log.zarr") is None


def test_few_rows_of_many_columns_are_told() -> None:
    x = np.random.default_rng(0).normal(size=(20, 12))
    y = (x[:, 0] > 0).astype(int)
    with pytest.warns(dsp.FitWarning, match="X has 20 rows, few for the 13 functions of the first levels"):
        assert dsp.InvariantClassifier().fit(x, y).score(x, y) > 0.8
    with pytest.raises(ValueError, match="only the constant function is left"):
        dsp.InvariantClassifier(n_eigenfunctions=5).fit(x, y)


def test_a_fold_without_weight_is_left_out() -> None:
    x = np.random.default_rng(0).normal(size=(60, 1))
    y, folds = (x[:, 0] > 0).astype(int), np.arange(60) % 3
    there, line = folds != 2, dsp.manifolds.Interval(-4.0, 4.0)
    with pytest.warns(dsp.FitWarning, match="no row of positive weight is in fold 2: 2 folds are left"):
        found = dsp.InvariantClassifier(line, n_eigenfunctions=8, folds=folds).fit(x, y, sample_weight=1.0 * there)
    wanted = dsp.InvariantClassifier(line, n_eigenfunctions=8, folds=folds[there]).fit(x[there], y[there])
    assert found.alpha_ == pytest.approx(wanted.alpha_)
    assert found.held_out_.log_loss == pytest.approx(wanted.held_out_.log_loss, rel=1e-4)
    assert found.held_out_.log_loss_error == pytest.approx(wanted.held_out_.log_loss_error, rel=1e-4)
    with pytest.raises(ValueError, match="1 of 3 folds has a row of positive weight: give other folds, fewer of them"):
        dsp.InvariantClassifier(folds=folds).fit(x, y, sample_weight=(folds == 0).astype(float))
