"""SpectralDecomposition on a Fourier lattice: spectra in closed form, and what must not change them."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral import operators as op
from daskspectral.basis import FourierLattice
from daskspectral.kernels import Matern
from daskspectral.manifolds import PeriodicBox, Sphere
from tests.common import Scheduling, assert_close, assert_same_bits
from tests.estimators.lattice import ANGLES, LINE, NORMAL, RNG, SQUARE, STRETCHED, TURN, N, X, make, modes


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)


L_SHAPE = RNG.uniform(0, 2, (2 * N, 2))
L_SHAPE = L_SHAPE[~(L_SHAPE > 1).all(axis=1)][:N]
BALL = Sphere(3).sample(N, RNG)
BOX = PeriodicBox([0, 0], [2, 2])
ELLIPTIC = {((1, 0), (1, 0)): "a", ((0, 1), (0, 1)): 4.0, ((0, 0), (0, 0)): "v"}
DIFFUSION, DIRECTION = (np.broadcast_to(np.diag([1.0, b]), (N, 2, 2)).copy() for b in (4.0, 2.0))
SPECTRA: dict[str, tuple[Any, Any, Any, Any, dict[str, Any]]] = {
    "normal": (None, NORMAL, 8, [0, 1, 1, 2, 2, 2], {}),
    "L-shape": (None, L_SHAPE, 10, [0, 1.4756, 3.5340, 9.8696, 9.8696, 11.3895], {}),
    "sphere": (op.Laplacian(Sphere(3)), BALL, 3, [0, 2, 2, 2, 6, 6, 6, 6, 6], {}),
    "periodic box": (op.Laplacian(BOX), SQUARE * 2 / np.pi, 3, np.pi**2 * np.array([0, 1, 1, 1, 1]), {}),
    "oscillator": (op.Schroedinger(), LINE, 20, [1, 3, 5, 7], {"potential": LINE[:, 0] ** 2}),
    "generator": (op.Generator(diffusion=math.sqrt(2), reversible=True), NORMAL, 8, [0, -1, -1, -2, -2, -2], {}),
    "diffusion": (op.AnisotropicDiffusion(), SQUARE, 5, STRETCHED[:6], {"diffusion": DIFFUSION}),
    "tangents": (op.TangentPropagation(), SQUARE, 5, STRETCHED[:6] / 2, {"direction": DIRECTION}),
    "coefficients": (op.DifferentialOperator(ELLIPTIC, solver="symmetric"), SQUARE, 5, 3 + STRETCHED[:6],
                     {"a": np.ones(N), "v": np.full(N, 3.0)}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
@pytest.mark.parametrize("name", [*SPECTRA, "torus"])
def test_spectra_in_closed_form(name: str) -> None:
    torus = (None, ANGLES, 3, [0, 1, 1, 1, 1, 2, 2, 2, 2], {})
    operator, x, m, wanted, fields = SPECTRA.get(name, torus)
    model = dsp.SpectralDecomposition(operator, basis=FourierLattice(m), n_components=len(wanted))
    model.set_params(periods=TURN if name == "torus" else None).fit(x, fields=fields)
    tolerance = 0.1 if name == "L-shape" else 0.06
    np.testing.assert_allclose(model.eigenvalues_, wanted, rtol=tolerance, atol=1e-9 if wanted[0] == 0 else 0)
    functions = model.transform(x)
    np.testing.assert_allclose(functions.T @ functions / len(x), np.eye(len(wanted)), atol=1e-6)


def test_a_generator_that_is_not_reversible() -> None:
    """A rotating OU process: k1 (-1 + 2i) + k2 (-1 - 2i)."""
    drift = NORMAL @ np.array([[-1.0, 2.0], [-2.0, -1.0]]).T
    model = make(operator=op.Generator("drift", math.sqrt(2)), basis=FourierLattice(8), kernel=Matern(2.5, 3.0))
    model.set_params(n_components=6).fit(NORMAL, fields={"drift": drift})
    found = model.eigenvalues_[np.lexsort((model.eigenvalues_.imag, -model.eigenvalues_.real.round(1)))]
    np.testing.assert_allclose(found, [0, -1 - 2j, -1 + 2j, -2 - 4j, -2, -2 + 4j], atol=0.06)


def test_functions_of_the_interval_are_cosines() -> None:
    model = make(basis=FourierLattice(12), n_components=3, kernel=Matern(1.5, 3.0), penalty=0.1).fit(LINE)
    x = np.linspace(-5.8, 5.8, 200)[:, None]
    wanted = np.sqrt(2) * np.cos(np.pi * np.arange(1, 3) * (x + 6) / 12)
    found = model.transform(x)[:, 1:]
    np.testing.assert_allclose(found * np.sign(np.sum(found * wanted, axis=0)), wanted, atol=0.1)


# invariances


@pytest.mark.parametrize("unit", [1e-9, 1e3])
@pytest.mark.parametrize("options", [{}, {"kernel": None, "penalty": "auto"}], ids=str)
def test_values_scale_with_the_unit_and_not_with_the_origin(unit: float, options: dict[str, Any]) -> None:
    plain = make(**options).fit(X)
    given = options or {"kernel": Matern(1.5, 1.5 * unit)}
    other = make(**given).fit((X + 1e5 * (unit == 1e3)) * unit)
    np.testing.assert_allclose(other.eigenvalues_ * unit**2, plain.eigenvalues_, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(other.held_out_ * unit**2, plain.held_out_, rtol=1e-5, atol=1e-10)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", ["matmul", None])
def test_chunks_the_order_of_rows_and_weights_change_rounding_only(method: Any) -> None:
    weight, basis = np.random.default_rng(1).integers(0, 3, len(X)), FourierLattice(4, box=[(-5, 5)] * 2, method=method)
    wanted = modes(make(basis=basis).fit(np.repeat(X, weight, axis=0)).moments_)
    blocks = da.from_array(X, chunks=(333, 1))
    for x, w in ((blocks, weight), (X[::-1], weight[::-1])):
        assert_close(modes(make(basis=basis).fit(x, sample_weight=w).moments_), wanted, 1e-13, dtype=complex)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("scheduler", ["threads 3", pytest.param("cluster", marks=pytest.mark.slow)])
def test_any_scheduler_gives_the_same_bits(scheduling: Scheduling, scheduler: str) -> None:
    models = []
    for name in ("synchronous", scheduler):
        with scheduling(name):
            models.append(make(basis=FourierLattice(4)).fit(da.from_array(X, chunks=(250, 2))))
    assert_same_bits(models[0].moments_, models[1].moments_)
    np.testing.assert_array_equal(models[0].eigenvalues_, models[1].eigenvalues_)


def test_invalid_rows_are_skipped(fitted: dsp.SpectralDecomposition) -> None:
    broken = np.concatenate([X, [[np.nan, 0.0], [0.0, np.inf]]])
    model = make().fit(broken, on_invalid="skip")
    assert_close(modes(model.moments_), modes(fitted.moments_), 1e-13, dtype=complex)
    assert model.moments_.skipped == 2
    with pytest.raises(dsp.InvalidRowError, match=f"row {len(X)} is the first that cannot be used"):
        make().fit(broken)
    assert np.isnan(model.transform(broken, on_invalid="skip")[-2:]).all()


def test_columns_and_standardize() -> None:
    wide = np.column_stack([X[:, 1] * 3, np.full(len(X), np.nan), X[:, 0] + 7])
    found = make(columns=[2, 0], standardize=True).fit(wide)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(np.abs(found.transform(wide)), np.abs(make().fit(z).transform(z)), atol=1e-6)


def test_a_period_for_some_columns() -> None:
    x = np.column_stack([SQUARE[:, 0], SQUARE[:, 1], ANGLES[:, 0]])
    model = make(columns=[2, 0], periods={2: 2 * np.pi}, kernel=Matern(1.5, 2.0)).fit(x)
    assert model.basis_.box[0] is None
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 1, 2], rtol=0.06, atol=1e-9)
    np.testing.assert_allclose(model.transform(x[:9]), model.transform(x[:9] + np.array([0, 0, 6 * np.pi])), atol=1e-7)


def test_a_density_may_be_divided_out() -> None:
    x = np.pi * np.log1p(19 * np.random.default_rng(0).random((N, 1))) / np.log(20)
    model = make(operator=op.Laplacian(density=1.0), basis=FourierLattice(10), n_components=4).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 4, 9], rtol=0.1, atol=1e-9)
