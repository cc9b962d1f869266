"""SpectralDecomposition on a Fourier lattice: spectra in closed form, and what must not change them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.stats
import zarr

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.kernels import Matern
from daskspectral.manifolds import PeriodicBox, Sphere
from daskspectral.operators import (
    AnisotropicDiffusion,
    DifferentialOperator,
    Generator,
    Laplacian,
    Schroedinger,
    TangentPropagation,
)
from tests.common import Scheduling, assert_close, assert_same_bits
from tests.estimators.lattice import (
    ANGLES,
    LINE,
    NORMAL,
    RNG,
    SQUARE,
    STRETCHED,
    TURN,
    N,
    X,
    make,
    modes,
)


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
        {"operator": Laplacian(PeriodicBox([0, 0], [2, 2]))},
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


@pytest.mark.parametrize("unit", [1e-9, 1e3])
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
    x = np.column_stack([SQUARE[:, 0], np.random.default_rng(1).random(N), ANGLES[:, 0]])
    model = make(columns=[2, 0], periods={2: 2 * np.pi}, kernel=Matern(1.5, 2.0)).fit(x)
    assert model.basis_.periods == (2 * np.pi, None)
    assert model.basis_.box[0] is None
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 1, 2], rtol=0.06, atol=1e-9)
    np.testing.assert_allclose(model.transform(x[:9]), model.transform(x[:9] + np.array([0, 0, 6 * np.pi])), atol=1e-7)


def test_a_density_may_be_divided_out() -> None:
    x = np.pi * np.log1p(19 * np.random.default_rng(0).random((N, 1))) / np.log(20)
    model = make(operator=Laplacian(density=1.0), basis=FourierLattice(10), n_components=4).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 4, 9], rtol=0.1, atol=1e-9)
