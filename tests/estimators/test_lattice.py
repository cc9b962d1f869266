"""SpectralDecomposition on a Fourier lattice, from data to spectra: closed forms, invariances, persistence, errors."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.stats
import zarr
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import daskspectral as dsp
from daskspectral.basis import FourierLattice, MonomialBasis
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.kernels import Gaussian, Matern, Polynomial
from daskspectral.manifolds import Box, Sphere
from daskspectral.operators import (
    AnisotropicDiffusion,
    Augmentation,
    Cross,
    DifferentialOperator,
    Generator,
    Laplacian,
    PartialDerivative,
    Schroedinger,
    TangentPropagation,
    Transfer,
)
from daskspectral.passes import lattice as passes
from tests.common import Scheduling, assert_close, assert_same_bits
from tests.estimators.common import CONTAINERS

RNG = np.random.default_rng(5)
N = 20_000
NORMAL = RNG.standard_normal((N, 2))
SQUARE = RNG.uniform(0, np.pi, (N, 2))
ANGLES = RNG.uniform(-6 * np.pi, 6 * np.pi, (N, 2))
LINE = RNG.uniform(-6, 6, (N, 1))
for points in (NORMAL, SQUARE, ANGLES, LINE):
    points.flags.writeable = False
X = NORMAL[:4000]
TURN = {0: 2 * np.pi, 1: 2 * np.pi}
STRETCHED = np.sort([a * a + 4 * b * b for a in range(6) for b in range(4)])


def make(**changes: Any) -> dsp.SpectralDecomposition:
    """A small fit of a given prior."""
    defaults = {"kernel": Matern(1.5, 1.5), "penalty": 1.0, "basis": FourierLattice(5), "n_components": 5}
    return dsp.SpectralDecomposition(**(defaults | {"random_state": 0} | changes))


def modes(moments: dsp.Moments) -> dict[str, Any]:
    return {name: values for name, values in moments.arrays.items() if name.startswith("modes")}


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)


# spectra in closed form; nothing but the lattice is given


def l_shape() -> Any:
    x = RNG.uniform(0, 2, (2 * N, 2))
    return x[~(x > 1).all(axis=1)][:N]


SPECTRA: dict[str, tuple[Any, Any, Any, float, dict[str, Any]]] = {
    "normal, d = 1": (scipy.stats.norm.ppf((np.arange(N) + 0.5) / N)[:, None], 10, [0, 1, 2, 3], 0.06, {}),
    "normal, d = 2": (NORMAL, 8, [0, 1, 1, 2, 2, 2], 0.05, {}),
    "normal, d = 3": (RNG.standard_normal((N, 3)), 3, [0, 1, 1, 1, 2], 0.06, {}),
    "interval": (LINE, 15, [(k * np.pi / 12) ** 2 for k in range(5)], 0.05, {}),
    "L-shape": (l_shape(), 10, [0, 1.4756, 3.5340, 9.8696, 9.8696, 11.3895], 0.1, {}),
    "torus": (ANGLES, 3, [0, 1, 1, 1, 1, 2, 2, 2, 2], 0.06, {"periods": TURN}),
    "sphere, ambient": (Sphere(3).sample(N, RNG), 3, [0, 2, 2, 2, 6, 6, 6, 6, 6], 0.06, {}),
    "sphere, tangential": (
        Sphere(3).sample(N, RNG),
        3,
        [0, 2, 2, 2, 6, 6, 6, 6, 6],
        0.06,
        {"operator": Laplacian(Sphere(3))},
    ),
    "periodic box": (
        RNG.uniform(0, 2, (N, 2)),
        3,
        np.pi**2 * np.array([0, 1, 1, 1, 1]),
        0.06,
        {"operator": Laplacian(Box([0, 0], [2, 2]))},
    ),
    "oscillator": (
        LINE,
        20,
        [1, 3, 5, 7],
        0.05,
        {"operator": Schroedinger(), "fields": {"potential": LINE[:, 0] ** 2}},
    ),
    "reversible generator": (
        NORMAL,
        8,
        [0, -1, -1, -2, -2, -2],
        0.05,
        {"operator": Generator(diffusion=math.sqrt(2), reversible=True)},
    ),
    "anisotropic diffusion": (
        SQUARE,
        5,
        STRETCHED[:6],
        0.05,
        {
            "operator": AnisotropicDiffusion(),
            "fields": {"diffusion": np.broadcast_to(np.diag([1.0, 4.0]), (N, 2, 2)).copy()},
        },
    ),
    "tangents": (
        SQUARE,
        5,
        STRETCHED[:6] / 2,
        0.05,
        {
            "operator": TangentPropagation(),
            "fields": {"direction": np.broadcast_to(np.diag([1.0, 2.0]), (N, 2, 2)).copy()},
        },
    ),
    "constant coefficients": (
        SQUARE,
        5,
        STRETCHED[:6],
        0.05,
        {"operator": DifferentialOperator({((1, 0), (1, 0)): 1.0, ((0, 1), (0, 1)): 4.0})},
    ),
    "fields for coefficients": (
        SQUARE,
        5,
        3 + STRETCHED[:6],
        0.05,
        {
            "operator": DifferentialOperator(
                {((1, 0), (1, 0)): "a", ((0, 1), (0, 1)): 4.0, ((0, 0), (0, 0)): "v"}, solver="symmetric"
            ),
            "fields": {"a": np.ones(N), "v": np.full(N, 3.0)},
        },
    ),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_in_closed_form(name: str) -> None:
    x, m, wanted, tolerance, options = SPECTRA[name]
    fields = options.get("fields")
    given = {k: v for k, v in options.items() if k != "fields"}
    model = dsp.SpectralDecomposition(basis=FourierLattice(m), n_components=len(wanted), **given).fit(x, fields=fields)
    np.testing.assert_allclose(model.eigenvalues_, wanted, rtol=tolerance, atol=1e-9 if wanted[0] == 0 else 0)
    assert bool(model.choice_.candidates) == ("kernel" not in given)
    errors = model.eigenvalue_errors_
    inside = (errors[:, 0] <= np.asarray(wanted) + 1e-9) & (np.asarray(wanted) <= errors[:, 1] + 1e-9)
    assert inside.mean() >= 0.5
    functions = model.transform(x)
    np.testing.assert_allclose(functions.T @ functions / len(x), np.eye(len(wanted)), atol=1e-6)


def test_a_generator_that_is_not_reversible() -> None:
    """A rotating OU process: k1 (-1 + 2i) + k2 (-1 - 2i)."""
    drift = NORMAL @ np.array([[-1.0, 2.0], [-2.0, -1.0]]).T
    model = make(operator=Generator("drift", math.sqrt(2)), basis=FourierLattice(8), kernel=Matern(2.5, 3.0))
    model.set_params(n_components=6).fit(NORMAL, fields={"drift": drift})
    found = model.eigenvalues_[np.lexsort((model.eigenvalues_.imag, -model.eigenvalues_.real.round(1)))]
    np.testing.assert_allclose(found, [0, -1 - 2j, -1 + 2j, -2 - 4j, -2, -2 + 4j], atol=0.06)
    assert model.transform(NORMAL[:5]).dtype == complex


def test_functions_of_the_interval_are_cosines() -> None:
    model = dsp.SpectralDecomposition(basis=FourierLattice(12), n_components=3).fit(LINE)
    x = np.linspace(-5.8, 5.8, 200)[:, None]
    wanted = np.sqrt(2) * np.cos(np.pi * np.arange(1, 3) * (x + 6) / 12)
    found = model.transform(x)[:, 1:]
    np.testing.assert_allclose(found * np.sign(np.sum(found * wanted, axis=0)), wanted, atol=0.1)


# invariances


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("chosen", [False, True])
def test_values_scale_with_the_unit(unit: float, chosen: bool) -> None:
    options: dict[str, Any] = {"kernel": None, "penalty": "auto"} if chosen else {}
    plain = make(**options).fit(X)
    other = make(**options | ({} if chosen else {"kernel": Matern(1.5, 1.5 * unit)})).fit(X * unit)
    np.testing.assert_allclose(other.eigenvalues_ * unit**2, plain.eigenvalues_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.held_out_ * unit**2, plain.held_out_, rtol=1e-6, atol=1e-12)


def test_values_do_not_depend_on_the_origin(fitted: dsp.SpectralDecomposition) -> None:
    np.testing.assert_allclose(make().fit(X + 1e5).eigenvalues_, fitted.eigenvalues_, rtol=1e-8, atol=1e-12)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", ["matmul", None])
def test_chunks_and_the_order_of_rows_change_rounding_only(tmp_path: Path, method: Any) -> None:
    def fit(x: Any) -> Any:
        return modes(make(basis=FourierLattice(4, method=method)).fit(x).moments_)

    wanted = fit(X)
    store = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(170, 2))
    order = np.random.default_rng(0).permutation(len(X))
    for x in (store, da.from_array(X, chunks=(333, 1)), X[order], X[::-1]):
        assert_close(fit(x), wanted, 1e-13, dtype=complex)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", ["matmul", None])
@pytest.mark.parametrize("scheduler", ["threads 3", "own pool", "cluster"])
def test_any_scheduler_gives_the_same_bits(scheduling: Scheduling, scheduler: str, method: Any) -> None:
    def fit() -> dsp.SpectralDecomposition:
        return make(basis=FourierLattice(4, method=method), kernel=None, penalty="auto").fit(blocks)

    blocks = da.from_array(X, chunks=(250, 2))
    with scheduling("synchronous"):
        wanted = fit()
    with scheduling(scheduler):
        found = fit()
    assert_same_bits(found.moments_, wanted.moments_)
    np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)


def test_weight_two_is_the_row_twice() -> None:
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    basis = FourierLattice(4, box=[(-5, 5)] * 2)
    weighted, repeated = (
        make(basis=basis).fit(X, sample_weight=weight),
        make(basis=basis).fit(np.repeat(X, weight, axis=0)),
    )
    assert_close(modes(weighted.moments_), modes(repeated.moments_), 1e-13, dtype=complex)
    assert weighted.moments_.weight == repeated.moments_.weight
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-9, atol=1e-12)


def test_invalid_rows_are_skipped(fitted: dsp.SpectralDecomposition) -> None:
    broken = np.concatenate([X, [[np.nan, 0.0], [0.0, np.inf]]])
    model = make().fit(broken, on_invalid="skip")
    assert_close(modes(model.moments_), modes(fitted.moments_), 1e-13, dtype=complex)
    assert (model.moments_.skipped, model.moments_.count) == (2, len(X))
    with pytest.raises(dsp.InvalidRowError, match=f"row {len(X)} is the first that cannot be used"):
        make().fit(broken)
    shown = model.transform(broken, on_invalid="skip")
    assert np.isnan(shown[-2:]).all()
    np.testing.assert_array_equal(shown[:-2], model.transform(X))


def test_columns_and_standardize() -> None:
    wide = np.column_stack([X[:, 1] * 3, np.full(len(X), np.nan), X[:, 0] + 7])
    found = make(columns=[2, 0], standardize=True).fit(wide)
    manual = make().fit((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(found.eigenvalues_, manual.eigenvalues_, rtol=1e-8, atol=1e-12)
    u, v = found.transform(wide), manual.transform((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(np.abs(u), np.abs(v), atol=1e-6)


def test_a_period_for_some_columns() -> None:
    x = np.column_stack([SQUARE[:, 0], RNG.random(N), ANGLES[:, 0]])
    model = make(columns=[2, 0], periods={2: 2 * np.pi}, kernel=Matern(1.5, 2.0)).fit(x)
    assert model.basis_.periods == (2 * np.pi, None)
    assert model.basis_.box[0] is None
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 1, 2], rtol=0.06, atol=1e-9)
    np.testing.assert_allclose(model.transform(x[:9]), model.transform(x[:9] + np.array([0, 0, 6 * np.pi])), atol=1e-7)


def test_a_density_may_be_divided_out() -> None:
    x = np.pi * np.log1p(19 * np.random.default_rng(0).random((N, 1))) / np.log(20)
    model = make(operator=Laplacian(density=1.0), basis=FourierLattice(10), n_components=4).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 4, 9], rtol=0.1, atol=1e-9)


# models and moments that are kept


def test_a_saved_model_is_the_model(tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    fitted.save(tmp_path / "model.zarr")
    found = dsp.load(tmp_path / "model.zarr")
    assert found.basis_ == fitted.basis_
    assert found.kernel_ == fitted.kernel_
    for name in fitted.fitted_attributes:
        if name not in ("moments_", "choice_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(fitted, name), err_msg=name)
    np.testing.assert_array_equal(found.transform(X), fitted.transform(X))
    assert_same_bits(found.moments_, fitted.moments_)
    again = found.fit_moments(found.moments_)
    np.testing.assert_array_equal(again.eigenvalues_, fitted.eigenvalues_)
    np.testing.assert_array_equal(again.held_out_, fitted.held_out_)
    dsp.save(fitted.moments_, tmp_path / "moments.zarr")
    assert_same_bits(dsp.load(tmp_path / "moments.zarr"), fitted.moments_)


def test_a_clone_fits_the_same(fitted: dsp.SpectralDecomposition) -> None:
    copy = clone(fitted)
    assert copy.get_params()["basis"] == FourierLattice(5)
    np.testing.assert_array_equal(copy.fit(X).eigenvalues_, fitted.eigenvalues_)
    assert isinstance(fitted.basis, FourierLattice)
    assert fitted.basis.box is None  # parameters stay as they were given


@pytest.mark.parametrize("m", [3, (4, 5)])
def test_chosen_parameters_give_the_fit_again(m: Any) -> None:
    model = dsp.SpectralDecomposition(basis=FourierLattice(m, margin=0.5), n_components=4).fit(X)
    again = dsp.SpectralDecomposition(**model.choice_.parameters).fit(X)
    same = again.basis_.orders == model.basis_.orders  # fewer frequencies are other transforms
    rounding = {"rtol": 0 if same else 1e-7, "atol": 0 if same else 1e-9}
    np.testing.assert_allclose(again.eigenvalues_, model.eigenvalues_, **rounding)
    np.testing.assert_allclose(again.held_out_, model.held_out_, **rounding)
    assert again.kernel_ == model.kernel_


def test_update_reads_new_rows_in_the_same_box() -> None:
    model = make(basis=FourierLattice(4)).fit(X[:3000])
    box = model.basis_.box
    found = model.update(X)
    assert found.basis_.box == box
    whole = make(basis=found.basis_).fit(X)
    assert_close(modes(found.moments_), modes(whole.moments_), 1e-13, dtype=complex)
    outside = np.sum(~(([s[0] for s in box] <= X) & ([s[1] for s in box] >= X)).all(axis=1))
    assert (found.moments_.rows, found.moments_.count) == (len(X), len(X) - outside)


def test_halves_with_one_box_add_up() -> None:
    basis = FourierLattice(4, box=[(-5, 5)] * 2)
    one, two = make(basis=basis).fit(X[:1700]), make(basis=basis).fit(X[1700:])
    whole = make(basis=basis).fit(X)
    both = make(basis=basis).fit_moments(one.moments_ + two.moments_)
    assert_close(modes(both.moments_), modes(whole.moments_), 1e-13, dtype=complex)
    np.testing.assert_allclose(both.eigenvalues_, whole.eigenvalues_, rtol=1e-10, atol=1e-13)
    with pytest.raises(ValueError, match=r"different Fourier lattices, m=\(5, 5\) and m=\(4, 4\); box="):
        _ = make().fit(X[:1700]).moments_ + two.moments_


class Halt(Exception):
    pass


def test_a_halted_fit_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST_FLOPS", 1e5)
    monkeypatch.setattr(planning, "EPOCH", 2)
    blocks, run, add = da.from_array(X, chunks=(200, 2)), tmp_path / "run.zarr", Checkpoint.add

    def add_and_halt(self: Checkpoint, epochs: int, total: Any) -> None:
        self._cost = 0.0
        add(self, epochs, total)
        if epochs == 3:
            raise Halt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", add_and_halt)
        with pytest.raises(Halt):
            make().fit(blocks, checkpoint=run, checkpoint_every=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(passes, "_extent", lambda *a, **k: pytest.fail("the box is in the checkpoint"))
        resumed = make().fit(blocks, checkpoint=run)
    assert_same_bits(resumed.moments_, make().fit(blocks).moments_)


def test_other_solutions_of_the_same_moments(fitted: dsp.SpectralDecomposition) -> None:
    moments = fitted.moments_
    for changes in (
        {"kernel": Gaussian(1.0)},
        {"kernel": Gaussian("auto")},
        {"kernel": None, "penalty": "auto"},
        {"penalty": 10.0},
        {"solver": "cut"},
        {"basis": None},
        {"n_components": 2},
    ):
        found, wanted = make(**changes).fit_moments(moments), make(**changes | {"basis": FourierLattice(5)}).fit(X)
        np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_, err_msg=str(changes))
        np.testing.assert_array_equal(found.held_out_, wanted.held_out_, err_msg=str(changes))
    lower = make(basis=FourierLattice((3, 4))).fit_moments(moments)
    assert np.count_nonzero(np.any(lower.coefficients_ != 0, axis=1)) == 7 * 9
    assert lower.eigenvalues_[1] != fitted.eigenvalues_[1]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"basis": FourierLattice(8)}, ValueError, r"frequencies up to \(5, 5\), .* asks for \(8, 8\)"),
        ({"basis": FourierLattice((2, 2, 2))}, ValueError, r"are of 2 variables, .* m=\(2, 2, 2\), for 3"),
        ({"kernel": Polynomial(2)}, TypeError, "prior of its coefficients"),
        ({"kernel": Gaussian("median")}, ValueError, "takes no median"),
        ({"operator": Schroedinger()}, ValueError, "the operator of this estimator is"),
    ],
)
def test_moments_that_cannot_be_solved_so(
    fitted: dsp.SpectralDecomposition, changes: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**changes).fit_moments(fitted.moments_)


# functions of new rows


@pytest.mark.parametrize("container", CONTAINERS)
def test_functions_in_every_container(tmp_path: Path, fitted: dsp.SpectralDecomposition, container: str) -> None:
    x3 = np.column_stack([X[:300], np.zeros(300)])
    model = make(columns=[0, 1]).fit(np.column_stack([X, np.zeros(len(X))]))
    wrap, kind = CONTAINERS[container]
    found = model.transform(wrap(tmp_path, "x", x3))
    assert isinstance(found, kind)
    assert found.dtype == float
    np.testing.assert_allclose(np.asarray(found), fitted.transform(X[:300]), atol=1e-9)


def test_functions_are_sums_of_waves(fitted: dsp.SpectralDecomposition) -> None:
    wanted = fitted.basis_.values(X[:50]).T @ fitted.coefficients_
    np.testing.assert_allclose(fitted.transform(X[:50]), wanted, atol=1e-7)


def test_nothing_is_wrapped_around_the_box(fitted: dsp.SpectralDecomposition) -> None:
    """Rows far outside have the values of the nearest point of the box, not those of the other end."""
    (lower, upper), (below, _) = fitted.basis_.box
    far = np.array([[50.0, 0.0], [upper + 0.3, 0.0], [-1e9, -1e9], [upper + fitted.basis_.period[0], 0.0]])
    edge = np.array([[upper, 0.0], [upper, 0.0], [lower, below], [upper, 0.0]])
    np.testing.assert_allclose(fitted.transform(far), fitted.transform(edge), atol=1e-9)


def test_score_and_bounds(fitted: dsp.SpectralDecomposition) -> None:
    assert fitted.score(X) == pytest.approx(-fitted.eigenvalues_.sum(), rel=1e-6)
    fresh = fitted.score(NORMAL[4000:9000])
    assert fresh < fitted.score(X)
    assert fresh == pytest.approx(-fitted.held_out_.sum(), rel=0.3)
    bound = fitted.variance_bound(X)
    assert bound.count == len(X)
    np.testing.assert_array_equal(bound.eigenvalues, fitted.eigenvalues_)
    assert (bound.standard_errors[1:] > 0).all()
    with pytest.raises(ValueError, match=r"2000 of 2000 rows lie outside the box|and the others are outside the box"):
        fitted.score(X[:2000] + 100)


def test_the_plan_is_small() -> None:
    plan = make(basis=FourierLattice(15)).plan(da.zeros((10**9, 2), chunks=(10**6, 2), dtype="f4"))
    assert plan.memory.peak - plan.memory.now < 500e6
    assert len(plan.ranges.ranges) >= 500


def test_a_grid_search_over_kernels() -> None:
    search = GridSearchCV(make(), {"kernel__scale": [0.3, 3.0], "penalty": [1.0]}, cv=2).fit(X)
    assert search.best_params_["kernel__scale"] == 3.0
    bases = GridSearchCV(make(), {"basis": [FourierLattice(1), FourierLattice(4)]}, cv=2).fit(SQUARE)
    assert bases.best_params_["basis"] == FourierLattice(4)


# the box


@pytest.mark.usefixtures("small_tasks")
def test_rows_outside_a_given_box_are_absent() -> None:
    box = [(-2.9, 2.9), (-5, 5)]
    inside = np.abs(X[:, 0]) <= 2.9
    found = make(basis=FourierLattice(4, box=box)).fit(da.from_array(X, chunks=(200, 2)))
    assert found.moments_.count == inside.sum() < len(X) == found.moments_.rows
    wanted = make(basis=FourierLattice(4, box=box)).fit(X[inside])
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("small_tasks")
def test_tasks_without_a_row_inside() -> None:
    far = np.concatenate([np.full((60, 2), 9.0), X])
    model = make(basis=FourierLattice(4, box=[(-5, 5)] * 2), folds=None).fit(da.from_array(far, chunks=(60, 2)))
    assert model.moments_.count == len(X)
    skipped = np.concatenate([np.full((60, 2), np.nan), X])
    again = make(basis=FourierLattice(4, box=[(-5, 5)] * 2), folds=None)
    again.fit(da.from_array(skipped, chunks=(60, 2)), on_invalid="skip")
    assert_close(modes(model.moments_), modes(again.moments_), 1e-13, dtype=complex)


def test_far_outliers_are_cut_with_a_warning() -> None:
    """A thousandth of the rows in a box 30 times as wide changes no value beyond its error."""
    clean = make(basis=FourierLattice(8), kernel=Gaussian(2.0), n_components=4).fit(NORMAL)
    far = RNG.uniform(-150, 150, (20, 2))
    x = np.concatenate([NORMAL, far])
    with pytest.warns(dsp.TrustWarning, match=r"column 0 goes from .* box of the lattice is cut at .* count as absent"):
        model = make(basis=FourierLattice(8), kernel=Gaussian(2.0), n_components=4).fit(x)
    assert len(x) - model.moments_.count <= 25
    np.testing.assert_allclose(model.eigenvalues_, clean.eigenvalues_, rtol=0.03, atol=1e-9)


def test_heavy_tails_are_cut_with_a_warning() -> None:
    x = np.random.default_rng(0).standard_t(3, (N, 1))
    with pytest.warns(dsp.TrustWarning, match="Of heavy tails the spectrum depends on where they are cut"):
        model = make(basis=FourierLattice(20)).fit(x)
    assert 0 < N - model.moments_.count < 0.002 * N


def test_light_tails_are_not_cut() -> None:
    model = make().fit(X)
    for side, column in zip(model.basis_.box, X.T, strict=True):
        assert side == (column.min(), column.max())
    assert model.moments_.count == len(X)


def test_too_small_a_margin_warns() -> None:
    with pytest.warns(dsp.TrustWarning, match="the margin 0.01 leaves a gap of .* are neighbours"):
        make(basis=FourierLattice(5, margin=0.01)).fit(SQUARE[:2000])


# what cannot work is said before any task is sent

WIDE = np.random.default_rng(0).standard_normal((500, 5))


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("changes", "x", "error", "message"),
    [
        ({}, WIDE, ValueError, "1 to 4 variables, and 5 are asked for.*take a kernel at landmarks"),
        ({"operator": Cross()}, (X, X), ValueError, "cross takes functions at y besides x.*gains nothing"),
        ({"operator": Transfer(1)}, X, ValueError, "transfer takes functions at .* besides x"),
        ({"operator": Augmentation(2)}, (X, X), ValueError, "augmentation takes functions at .* besides x"),
        ({"kernel": Polynomial(2)}, X, TypeError, r"function of \|x - y\|"),
        ({"kernel": "gauss"}, X, TypeError, "kernel must be one of daskspectral.kernels"),
        ({"kernel": 3}, X, TypeError, "kernel must be one of daskspectral.kernels"),
        ({"kernel": Gaussian("median")}, X, ValueError, "takes no median of distances"),
        ({"landmarks": X[:20]}, X, ValueError, "without landmarks; leave landmarks out"),
        ({"basis": FourierLattice(5, box=[(0, 1)])}, X, ValueError, "functions of 1 variables, and X has 2 columns"),
        ({"basis": FourierLattice((5, 5, 5))}, X, ValueError, "functions of 3 variables, and X has 2 columns"),
        ({"basis": FourierLattice(30), "solver": "cut"}, X, ValueError, "takes all 3721 functions"),
        ({"right_basis": FourierLattice(5)}, X, ValueError, "right_basis is for operators with singular values"),
        (
            {"operator": PartialDerivative(0), "right_basis": MonomialBasis(2, 2)},
            X,
            ValueError,
            "leave right_basis out",
        ),
        ({"operator": PartialDerivative(0), "right_kernel": Gaussian()}, X, ValueError, "leave right_kernel out"),
        ({"operator": PartialDerivative(0), "right_landmarks": X[:5]}, X, ValueError, "leave right_landmarks out"),
        ({"periods": {7: 1.0}}, X, ValueError, "periods names the column 7"),
        ({"periods": {0: 1.0}, "standardize": True}, X, ValueError, "periods is in them"),
        ({"basis": FourierLattice(5, periods=[1.0, None]), "standardize": True}, X, ValueError, "periods is in them"),
        ({"basis": FourierLattice(5, periods=[1.0, None]), "periods": {0: 2.0}}, X, ValueError, "give them once"),
    ],
    ids=lambda v: str(v)[:40] if isinstance(v, dict) else "",
)
def test_refused_before_the_pass(changes: Any, x: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make(**changes).fit(x)


@pytest.mark.parametrize(
    ("changes", "x", "message"),
    [
        ({}, np.column_stack([X[:, 0], np.ones(len(X))]), "column 1 is 1 in every row, .*choose other columns"),
        ({"columns": [2]}, np.column_stack([X, np.ones(len(X))]), "column 2 is 1 in every row"),
        ({}, np.ones((50, 2)), "column 0 is 1 in every row"),
        ({}, X[:1], "in every row"),
        (
            {},
            np.column_stack([X[:, 0], np.arange(len(X)) == 7]),
            "1 is 0 in nearly every row, and goes from 0 to 1",
        ),
        (
            {"basis": FourierLattice(5, box=[(0, 5), (-5, 5)])},
            X,
            r"of 4000 rows lie outside the box \[\(0, 5\), \(-5, 5\)\] of the lattice, and 0.02 of them is the most",
        ),
        (
            {"basis": FourierLattice(5, box=[(90, 91), (-5, 5)])},
            X,
            r"0 of 4000 are invalid, and the others are outside the box \[\(90, 91\), \(-5, 5\)\].*give a wider one",
        ),
    ],
)
def test_data_that_cannot_work(changes: Any, x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes).fit(x)


def test_a_share_outside_may_be_meant() -> None:
    model = make(basis=FourierLattice(5, box=[(0, 5), (-5, 5)], outside=0.6)).fit(X)
    assert model.moments_.count == np.sum(X[:, 0] >= 0)


@pytest.mark.parametrize("options", [{"folds": None}, {"folds": "blocks"}, {"folds": 2}, {"ridge": 1e-6}], ids=str)
def test_options_that_change_little(fitted: dsp.SpectralDecomposition, options: Any) -> None:
    model = make(**options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, fitted.eigenvalues_, rtol=1e-4, atol=1e-3)
    chosen = make(kernel=None, penalty="auto", **options).fit(X)
    few = options.get("folds", 10) in (None, 2)
    assert bool(chosen.choice_.candidates) != few
    assert ("fewer than 4 folds" in chosen.choice_.reason) == few


# without finufft


def test_without_finufft_modes_are_summed_by_products(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "finufft", None)
    monkeypatch.setattr(passes, "_version", lambda: None)
    model = make(basis=FourierLattice(8), kernel=None, penalty="auto").fit(X)
    assert (model.basis_.method, model.basis_.version) == ("matmul", None)
    assert model.transform(X).shape == (len(X), 5)
    assert model.score(X) == pytest.approx(-model.eigenvalues_.sum(), rel=1e-9)
    model.update(np.concatenate([X, X[:10]])).save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").transform(X), model.transform(X))
    with pytest.raises(ImportError, match=r"pip install 'daskspectral\[lattice\]', or take method='matmul'"):
        make(basis=FourierLattice(5, method="nufft")).fit(X)


def test_a_model_that_finufft_measured_serves_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("finufft", reason="finufft is not installed")
    model = make(basis=FourierLattice(8, method="nufft")).fit(X)
    wanted = model.transform(X)
    monkeypatch.setitem(sys.modules, "finufft", None)
    np.testing.assert_allclose(model.transform(X), wanted, atol=1e-6)
    assert make(kernel=Gaussian(1.0), basis=None).fit_moments(model.moments_).eigenvalues_[0] == 0
    with pytest.raises(ImportError, match="finufft"):
        model.score(X)
