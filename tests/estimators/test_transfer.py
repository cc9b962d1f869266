"""Transfer operators of trajectories: the Ornstein-Uhlenbeck process, whose singular values are exp(-k lag)."""

from __future__ import annotations

import math
import warnings
from itertools import combinations_with_replacement, pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermeval
from numpy.typing import NDArray
from scipy.signal import lfilter

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis, MonomialBasis
from daskspectral.cli import command
from daskspectral.data.trajectories import open_trajectories
from daskspectral.engine import Plan, Run
from daskspectral.engine import plan as plan_module
from daskspectral.kernels import Gaussian
from daskspectral.moments import Measure
from daskspectral.operators import Transfer
from tests.common import assert_same_bits, written

Array = NDArray[Any]
STEP = 0.5


def ornstein_uhlenbeck(n: int, d: int, seed: int, turn: float = 0.0) -> Array:
    """n rows of dX = (-1 + i turn) X dt + sqrt(2) dW, exact at any step, from the stationary law N(0, I)."""
    rng = np.random.default_rng(seed)
    decay = np.exp((-1 + 1j * turn) * STEP)
    kicks = math.sqrt(1 - abs(decay) ** 2) * rng.standard_normal((n, d))
    kicks[0] = rng.standard_normal(d)
    if not turn:
        return np.asarray(lfilter([1.0], [1.0, -decay.real], kicks, axis=0))
    path = lfilter([1.0], [1.0, -decay], kicks[:, 0] + 1j * kicks[:, 1])
    return np.column_stack([path.real, path.imag])


def trajectories(d: int, count: int = 40, n: int = 4000, turn: float = 0.0) -> list[Array]:
    return [ornstein_uhlenbeck(n, d, seed, turn) for seed in range(count)]


def eigenfunctions(x: Array, degree: int) -> list[tuple[int, Array]]:
    """The degree and values of each product of normalised Hermite polynomials up to a degree."""
    d, found = x.shape[1], []
    for k in range(degree + 1):
        for axes in combinations_with_replacement(range(d), k):
            powers = [axes.count(a) for a in range(d)]
            parts = [hermeval(x[:, a], np.eye(k + 1)[m]) / math.sqrt(math.factorial(m)) for a, m in enumerate(powers)]
            found.append((k, np.prod(parts, axis=0)))
    return found


def expected(paths: list[Array], lag: int, degree: int) -> tuple[Array, Array, Array]:
    """exp(-k lag) with multiplicities, the first-order error of these data, and its standard deviation.

    To first order, a singular value moves by the mean over the pairs of u v - sigma (u^2 + v^2) / 2, with u and v the
    exact function at both ends; a multiple one on average over its functions. Trajectories are independent, so the
    scatter of their own means gives the standard deviation.
    """
    parts = []
    for path in paths:
        functions = eigenfunctions(path, degree)
        level = np.array([k for k, _ in functions])
        each = []
        for k, h in functions:
            u, v, sigma = h[:-lag], h[lag:], math.exp(-k * lag * STEP)
            each.append(np.mean(u * v - sigma * (u**2 + v**2) / 2))
        parts.append([np.mean(np.array(each)[level == k]) for k in range(degree + 1)])
    shift = np.array(parts)
    return (
        np.exp(-level * lag * STEP),
        shift.mean(axis=0)[level],
        (shift.std(axis=0, ddof=1) / math.sqrt(len(paths)))[level],
    )


def of_level(values: Array, wanted: Array) -> Array:
    """Each value replaced by the mean of those whose exact values coincide."""
    return np.array([values[wanted == w].mean() for w in wanted])


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize(("d", "degree"), [(1, 3), (2, 3)])
def test_ornstein_uhlenbeck(d: int, degree: int, lag: int) -> None:
    paths = trajectories(d)
    basis = MonomialBasis(d, degree)  # spans the exact functions: what is left is the scatter of the data
    estimator = dsp.SpectralDecomposition(Transfer(lag), basis=basis, n_components=basis.size).fit(paths)
    wanted, shift, deviation = expected(paths, lag, degree)
    found = of_level(estimator.singular_values_, wanted)
    assert found[0] == pytest.approx(1, abs=1e-9)
    assert (np.abs(found - wanted)[1:] < 4 * deviation[1:]).all()
    assert (deviation[1:] < 0.01).all()  # or the test would tell nothing
    # and to second order in that, it is the scatter of these very data
    assert np.abs(found - wanted - shift).max() < 1.5e-3
    assert estimator.rank_ == (basis.size, basis.size)


def test_a_gaussian_kernel_learns_the_same() -> None:
    paths = trajectories(1, count=20)
    estimator = dsp.SpectralDecomposition(
        Transfer(1), Gaussian(2.0), n_landmarks=30, landmarks="uniform", n_components=4, constant=True, random_state=0
    ).fit(paths)
    wanted, _, deviation = expected(paths, 1, 3)
    assert estimator.singular_values_[0] == pytest.approx(1, abs=1e-6)
    assert (np.abs(estimator.singular_values_ - wanted)[1:] < 4 * deviation[1:] + 1e-3).all()
    x = np.linspace(-2, 2, 9)[:, None]
    for side in (estimator.transform(x), estimator.transform_right(x)):
        assert np.corrcoef(side[:, 1], x[:, 0])[0, 1] ** 2 > 0.999
    assert estimator.basis_ is estimator.moments_.basis
    assert not hasattr(estimator, "right_basis_")  # the same functions on both sides


def test_eigenvalues_of_a_rotation_are_complex() -> None:
    paths = trajectories(2, count=20, turn=2.0)
    basis, a = MonomialBasis(2, 2), np.exp((-1 + 2j) * STEP)
    estimator = dsp.SpectralDecomposition(Transfer(1, solver="eigen"), basis=basis, n_components=6).fit(paths)
    z = [x[:, 0] + 1j * x[:, 1] for x in paths]
    exact = {
        1: [np.ones(len(x)) for x in z],
        a: [x / 2**0.5 for x in z],
        a.conj(): [x.conj() / 2**0.5 for x in z],
        a**2: [x**2 / 8**0.5 for x in z],
        a.conj() ** 2: [x.conj() ** 2 / 8**0.5 for x in z],
        abs(a) ** 2: [np.abs(x) ** 2 / 2 - 1 for x in z],
    }
    for value, functions in exact.items():
        # to first order an eigenvalue moves by the mean of (v - value u) conj(u), u and v at both ends of a pair
        means = [np.mean((u[1:] - value * u[:-1]) * u[:-1].conj()) for u in functions]
        found = estimator.eigenvalues_[np.abs(estimator.eigenvalues_ - value).argmin()]
        deviation = np.std(means, ddof=1) / math.sqrt(len(means))
        assert deviation < 0.01
        assert abs(found - value) < 4 * deviation + 1e-9
    np.testing.assert_array_less(np.diff(np.abs(estimator.eigenvalues_)), 1e-9)

    right, left = ([f(x[:-1]) for x in paths] for f in (estimator.transform, estimator.transform_left))
    overlap = np.mean([np.mean(f.conj()[:, :, None] * g[:, None], axis=0) for f, g in zip(left, right, strict=True)], 0)
    np.testing.assert_allclose(overlap, np.eye(6), atol=1e-9)
    k = np.abs(estimator.eigenvalues_ - a).argmin()
    start, u = np.concatenate([x[:-1] for x in z]), np.concatenate([f[:, k] for f in right])
    assert abs(np.vdot(start, u)) > 0.99 * np.linalg.norm(start) * np.linalg.norm(u)
    for name in ("transform_right", "singular_values_", "right_coefficients_"):
        assert not hasattr(estimator, name)


# -- how the rows are read ---------------------------------------------------------------------------------------------


PATHS = [*trajectories(2, count=2, n=100), ornstein_uhlenbeck(57, 2, 9)]
WEIGHT = [np.random.default_rng(i).integers(0, 3, len(a)).astype(float) for i, a in enumerate(PATHS)]
BASIS = LandmarkBasis(Gaussian(1.0), np.random.default_rng(1).standard_normal((6, 2)))


def by_hand(lag: int) -> dict[str, Array]:
    """The sums by a loop over pairs."""
    sums = {name: np.zeros((6, 6)) for name in ("form", "gram", "right_gram")}
    for path, weight in zip(PATHS, WEIGHT, strict=True):
        phi = BASIS.values(path)
        for t in range(len(path) - lag):
            u, v, w = phi[:, t], phi[:, t + lag], weight[t]
            sums["form"] += w * np.outer(u, v)
            sums["gram"] += w * np.outer(u, u)
            sums["right_gram"] += w * np.outer(v, v)
    return sums


@settings(max_examples=12, deadline=None)
@given(
    chunk=st.integers(5, 40),
    lag=st.integers(1, 56),
    cuts=st.lists(st.integers(1, 250), max_size=4),
    size=st.integers(10, 64),
)
def test_additivity_over_chunks_and_trajectories(
    chunk: int, lag: int, cuts: list[int], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, operator = tmp_path_factory.mktemp("paths"), Transfer(lag)
    stored = [zarr.create_array(folder / f"{i}.zarr", data=a, chunks=(chunk, 2)) for i, a in enumerate(PATHS)]
    source = open_trajectories(stored, lag, fields={"weight": WEIGHT})
    plan = Plan(tuple(pairwise(sorted({0, *(c for c in cuts if c < source.n), source.n}))), 2, 2)
    measure = Measure(BASIS, BASIS, operator.forms, operator.functionals, operator, rows=size)
    with dask.config.set(scheduler="synchronous"):
        found = Run(source, plan).reduce(measure)
    for name, wanted in by_hand(lag).items():
        np.testing.assert_allclose(found.sums[name], wanted, rtol=0, atol=1e-12 * max(1.0, np.abs(wanted).max()))
    assert found.count == sum(len(a) - lag for a in PATHS)


def make(**changes: Any) -> dsp.SpectralDecomposition:
    defaults = {"kernel": Gaussian(1.0), "landmarks": BASIS.landmarks, "n_components": 4, "min_support": 0.0}
    return dsp.SpectralDecomposition(Transfer(5), **(defaults | changes))


KINDS: dict[str, Any] = {
    "numpy": lambda folder: PATHS,
    "paths": lambda folder: [str(folder / f"{i}.zarr") for i in range(3)],
    "dask": lambda folder: [da.from_array(a, chunks=(13, 1)) for a in PATHS],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, a in enumerate(PATHS):
        zarr.create_array(tmp_path / f"{i}.zarr", data=a, chunks=(13, 2))
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_any_array_on_any_scheduler_the_same_bits(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "LEAST_FLOPS", 1e3)
    paths = KINDS[kind](folder)
    fitted = []
    for options in ({"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 3}):
        with dask.config.set(**options):
            fitted.append(make().fit(paths, sample_weight=WEIGHT))
            assert len(fitted[0].plan(paths, sample_weight=WEIGHT).ranges.ranges) > 5
    assert_same_bits(fitted[0].moments_, fitted[1].moments_)
    np.testing.assert_array_equal(fitted[0].singular_values_, fitted[1].singular_values_)
    for name, wanted in by_hand(5).items():
        np.testing.assert_allclose(fitted[0].moments_.arrays[name], wanted, rtol=0, atol=1e-11)


def test_landmarks_are_rows_that_begin_a_pair() -> None:
    short = [np.full((6, 1), 100.0 * i) + np.arange(6.0)[:, None] for i in range(30)]
    estimator = dsp.SpectralDecomposition(Transfer(4), Gaussian(1.0), n_landmarks=60, n_components=2, min_support=0)
    landmarks = estimator.fit(short).basis_.landmarks
    assert sorted(landmarks[:, 0].tolist()) == sorted(100.0 * i + t for i in range(30) for t in (0, 1))
    assert estimator.moments_.count == 60  # no derivative sees a landmark at itself


def test_appended_rows_are_folded_in() -> None:
    cut = [PATHS[0], PATHS[1][:60]]
    model = make().fit(cut, sample_weight=[WEIGHT[0], WEIGHT[1][:60]])
    model.update(PATHS, sample_weight=WEIGHT)  # more of the second, and a third
    whole = make().fit(PATHS, sample_weight=WEIGHT)
    assert (model.moments_.count, model.moments_.rows) == (whole.moments_.count, whole.moments_.rows)
    np.testing.assert_allclose(model.moments_.arrays["form"], whole.moments_.arrays["form"], rtol=1e-11)
    np.testing.assert_allclose(model.singular_values_, whole.singular_values_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"X has 242 pairs of rows 5 apart, and the model has seen 242"):
        model.update(PATHS)


def test_a_checkpoint_of_trajectories(folder: Path) -> None:
    paths = KINDS["paths"](folder)
    first = make().fit(paths, checkpoint=folder / "run", checkpoint_every=0)
    again = make().fit(paths, checkpoint=folder / "run")
    assert_same_bits(first.moments_, again.moments_)
    with pytest.raises(ValueError, match="is of another run: X "):
        make().fit(paths[:2], checkpoint=folder / "run")
    with pytest.raises(ValueError, match=r"is of another run: .*parameter operator"):
        make().set_params(operator=Transfer(6)).fit(paths, checkpoint=folder / "run")
    with pytest.raises(ValueError, match=r"is of another run: sample_weight \(then None"):
        make().fit(paths, sample_weight=WEIGHT, checkpoint=folder / "run")


def test_an_invalid_row_of_a_trajectory() -> None:
    broken = [a.copy() for a in PATHS]
    broken[1][70] = np.nan
    with pytest.raises(dsp.InvalidRowError, match="row 70 of trajectory 1 cannot be used: future holds NaN"):
        make().fit(broken)
    for options in ({"standardize": True}, {"landmarks": "uniform", "n_landmarks": 5}):
        with pytest.raises(dsp.InvalidRowError, match="row 70 of trajectory 1 cannot be used"):
            make(**options).fit(broken)
    assert make().fit(broken, on_invalid="skip").moments_.skipped == 2


def test_a_list_of_trajectories_is_not_transformed() -> None:
    estimator = make().fit(PATHS)
    for few in (PATHS, [PATHS[0], PATHS[0]]):
        with pytest.raises(ValueError, match=r"X is a list of \d arrays, such as trajectories.*: call this for"):
            estimator.transform(few)


def test_standardized_by_the_rows_that_begin_a_pair() -> None:
    start = np.concatenate([a[:-5] for a in PATHS])
    estimator = make(standardize=True).fit(PATHS)
    np.testing.assert_allclose(estimator.preparation_.mean, start.mean(axis=0), rtol=1e-11)
    manual = make(landmarks=(BASIS.landmarks - start.mean(axis=0)) / start.std(axis=0))
    manual.fit([(a - start.mean(axis=0)) / start.std(axis=0) for a in PATHS])
    np.testing.assert_allclose(estimator.singular_values_, manual.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(estimator.moments_.arrays["form"], manual.moments_.arrays["form"], rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "x", "match"),
    [
        ({}, [PATHS[0], PATHS[1][:5]], "the lag is 5 rows and trajectory 1 has 5"),
        ({}, PATHS[0][:5], "the lag is 5 rows and the trajectory X has 5"),
        (
            {"landmarks": "uniform", "n_landmarks": 500},
            PATHS,
            "X has 242 pairs of rows 5 apart, fewer than n_land.*=500",
        ),
        ({"ridge": 0.1}, PATHS, "ridge is for symmetric operators, and transfer is solved by 'singular'"),
    ],
)
def test_refused(options: dict[str, Any], x: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make(**options).fit(x)
    with pytest.raises(ValueError, match=match):
        make(**options).plan(x)


def test_other_right_functions_of_the_same_points() -> None:
    right = LandmarkBasis(Gaussian(2.0), BASIS.landmarks[:3])
    by_basis = make(right_basis=right, n_components=3).fit(PATHS)
    by_kernel = make(right_kernel=Gaussian(2.0), right_landmarks=right.landmarks, n_components=3).fit(PATHS)
    assert_same_bits(by_basis.moments_, by_kernel.moments_)
    start, end = (np.concatenate(part) for part in zip(*((a[:-5], a[5:]) for a in PATHS), strict=True))
    wanted = BASIS.values(start) @ right.values(end).T
    np.testing.assert_allclose(by_basis.moments_.arrays["form"], wanted, rtol=1e-11)
    assert by_basis.right_coefficients_.shape == (3, 3)
    assert by_basis.right_basis_ is right
    np.testing.assert_allclose(
        by_basis.transform_right(end), right.values(end).T @ by_basis.right_coefficients_, rtol=1e-9, atol=1e-12
    )
    with pytest.raises(ValueError, match="right_kernel is for operators with singular values, and transfer is solved"):
        make(right_kernel=Gaussian(2.0)).set_params(operator=Transfer(5, solver="eigen")).fit(PATHS)


def test_from_a_shell(folder: Path) -> None:
    def done(*arguments: Any) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dsp.RankWarning)
            result = CliRunner().invoke(command, [str(a) for a in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    points, model = folder / "0.zarr", folder / "model.zarr"
    fit = ["fit", points, "--operator", "transfer", "--lag", 5, "--landmarks", 8, "--components", 3, "--no-progress"]
    table = done(*fit, "--kernel", "gaussian:1.5", "--out", model)
    described = done("info", model)
    assert described in table
    assert "singular value" in described
    loaded = dsp.load(model)
    assert described.rstrip().endswith("no error bars from 95 rows: 100 at least are needed")
    values = [float(line.split()[1]) for line in described.splitlines() if line.split()[:1] in (["0"], ["1"], ["2"])]
    np.testing.assert_allclose(values, loaded.singular_values_, rtol=1e-4)
    for name, functions in (("--right", loaded.transform_right), ("--no-progress", loaded.transform)):
        done("transform", model, points, "--out", folder / "out.zarr", "--overwrite", name)
        np.testing.assert_allclose(written(folder / "out.zarr"), functions(PATHS[0]), rtol=1e-9, atol=1e-12)
    loaded.save(folder / "copy.zarr")
    done("merge", model, folder / "copy.zarr", "--out", folder / "twice.zarr")
    assert dsp.load(folder / "twice.zarr").moments_.count == 2 * loaded.moments_.count
    for bad in (["--operator", "transfer"], ["--lag", 5]):
        result = CliRunner().invoke(command, ["fit", str(points), *map(str, bad), "--out", str(folder / "no.zarr")])
        assert result.exit_code == 2
        assert "--lag" in result.output


def test_rows_that_are_computed_on_the_way_choose_what_stored_rows_in_the_same_chunks_choose() -> None:
    """Also where the pilot reads a part of the chunks; in other chunks it may see other rows, and choose otherwise."""
    x = np.random.default_rng(0).standard_normal((520, 3)).cumsum(axis=0)
    components = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2).fit(x)
    computed = components.transform(da.from_array(x, chunks=(2, 3)))
    stored = da.from_array(np.asarray(computed), chunks=computed.chunks)
    options: dict[str, Any] = {"n_landmarks": 5, "penalty": 1.0, "n_components": 3, "random_state": 0}
    models = [dsp.SpectralDecomposition(Transfer(1), Gaussian("auto"), **options).fit(z) for z in (computed, stored)]
    assert_same_bits(models[0].moments_, models[1].moments_)
    np.testing.assert_array_equal(models[0].singular_values_, models[1].singular_values_)
