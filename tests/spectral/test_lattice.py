"""SpectralDecomposition on a Fourier lattice: closed forms, what must not change them, its box, and what is refused."""

import sys
import warnings
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import daskspectral as dsp
from daskspectral import operators as op
from daskspectral.basis import FourierBasis
from daskspectral.errors import ReliabilityWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.manifolds import PeriodicBox, Sphere
from daskspectral.solvers import Regularized, Truncated
from tests.common import assert_close, unreliable

RNG = np.random.default_rng(5)
N = 20_000
NORMAL = RNG.standard_normal((N, 2))
SQUARE = RNG.uniform(0, np.pi, (N, 2))
ANGLES = RNG.uniform(-6 * np.pi, 6 * np.pi, (N, 2))
LINE = RNG.uniform(-6, 6, (N, 1))
for points in (NORMAL, SQUARE, ANGLES, LINE):
    points.flags.writeable = False
X = NORMAL[:2000]
SMALL = FourierBasis(5, kernel=Matern(1.5, 1.5))
STRETCHED = np.sort([a * a + 4 * b * b for a in range(6) for b in range(4)])


def make(operator: op.Operator | None = None, basis: Any = SMALL, **options: Any) -> dsp.SpectralDecomposition:
    """A small fit of a given prior."""
    given: dict[str, Any] = {"solver": Regularized(1.0), "n_components": 5, "random_state": 0}
    return dsp.SpectralDecomposition(operator, basis, **given | options)


def modes(moments: dsp.Moments) -> dict[str, Any]:
    return {name: values for name, values in moments.arrays.items() if name.startswith("modes")}


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)


L_SHAPE = RNG.uniform(0, 2, (2 * N, 2))
L_SHAPE = L_SHAPE[~(L_SHAPE > 1).all(axis=1)][:N]
BALL = Sphere(3).sample(N, RNG)
BOX = PeriodicBox([0, 0], [2, 2])
TURN = 2 * np.pi
ELLIPTIC = {((1, 0), (1, 0)): "a", ((0, 1), (0, 1)): 4.0, ((0, 0), (0, 0)): "v"}
SPECTRA: dict[str, tuple[Any, Any, FourierBasis, Any, dict[str, Any]]] = {
    "torus": (None, ANGLES, FourierBasis(3, periods=(TURN, TURN)), [0, 1, 1, 1, 1, 2, 2, 2, 2], {}),
    "L-shape": (None, L_SHAPE, FourierBasis(10), [0, 1.4756, 3.5340, 9.8696, 9.8696, 11.3895], {}),
    "sphere": (op.Laplacian(Sphere(3)), BALL, FourierBasis(3), [0, 2, 2, 2, 6, 6, 6, 6, 6], {}),
    "periodic box": (op.Laplacian(BOX), SQUARE * 2 / np.pi, FourierBasis(3), [0] + [np.pi**2] * 4, {}),
    "oscillator": (op.Schroedinger(), LINE, FourierBasis(20), [1, 3, 5, 7], {"potential": LINE[:, 0] ** 2}),
    "coefficients": (op.DifferentialOperator(ELLIPTIC, solver="symmetric"), SQUARE, FourierBasis(5),
                     3 + STRETCHED[:6], {"a": np.ones(N), "v": np.full(N, 3.0)}),
}  # fmt: skip
LONG = ("L-shape", "sphere")


@unreliable
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in SPECTRA])
def test_spectra_in_closed_form(name: str) -> None:
    operator, x, lattice, wanted, fields = SPECTRA[name]
    model = dsp.SpectralDecomposition(operator, lattice, n_components=len(wanted)).fit(dsp.Rows(x, fields=fields))
    tolerance = 0.1 if name == "L-shape" else 0.06
    assert_allclose(model.eigenvalues_, wanted, rtol=tolerance, atol=1e-9 if wanted[0] == 0 else 0)
    functions = model.transform(x)
    assert_allclose(functions.T @ functions / len(x), np.eye(len(wanted)), atol=1e-6)


# invariances

NARROW = FourierBasis(5, kernel=Gaussian("auto"))


@pytest.mark.one_in(3)
@unreliable
@pytest.mark.parametrize(
    "changes", [{"basis": NARROW}, {"basis": SMALL, "solver": Truncated()}, {"basis": None}], ids=str
)
def test_other_solutions_of_the_same_moments(changes: dict[str, Any], fitted: dsp.SpectralDecomposition) -> None:
    basis = changes["basis"] or FourierBasis(5)
    found, wanted = make(**changes).fit_moments(fitted.moments_), make(**changes | {"basis": basis}).fit(X)
    assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)
    assert_array_equal(found.validation_values_, wanted.validation_values_)


# the box


@pytest.mark.usefixtures("small_tasks")
@unreliable
def test_rows_outside_a_fixed_box_are_absent() -> None:
    lattice = FourierBasis(4, box=[(-2.9, 2.9), (-5, 5)], kernel=SMALL.kernel)
    x = np.concatenate([np.full((180, 2), 4.9), X[:1800]])  # the first task has no row inside
    inside = np.abs(x[:, 0]) <= 2.9
    found = make(basis=replace(lattice, outside=0.1)).fit(da.from_array(x, chunks=(180, 2)))
    assert found.moments_.count == inside.sum() < len(x) == found.moments_.rows
    assert_close(modes(found.moments_), modes(make(basis=lattice).fit(x[inside]).moments_), 1e-12, dtype=complex)


@pytest.mark.slow
@unreliable
def test_far_outliers_are_cut_with_a_warning() -> None:
    """A thousandth of the rows in a box 30 times as wide changes no value beyond its error."""
    normal = NORMAL[:8000]
    x = np.concatenate([normal, np.random.default_rng(1).uniform(-150, 150, (8, 2))])
    options: dict[str, Any] = {"basis": FourierBasis(8, kernel=Gaussian(2.0)), "n_components": 4}
    with pytest.warns(ReliabilityWarning, match="smaller interval"):
        model = make(**options).fit(x)
    assert len(x) - model.moments_.count <= 12
    np.testing.assert_allclose(model.eigenvalues_, make(**options).fit(normal).eigenvalues_, rtol=0.03, atol=1e-9)


@pytest.mark.slow
@unreliable
def test_without_finufft_modes_are_summed_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "finufft", None)
    model = make().fit(X)
    assert (model.basis_.method, model.basis_.version) == ("matmul", None)
    assert model.score(X) == pytest.approx(-model.eigenvalues_.sum(), rel=1e-9)
    with pytest.raises(ImportError, match="finufft"):
        make(basis=FourierBasis(5, method="nufft")).fit(X)


@pytest.mark.slow
def test_the_change_by_more_frequencies_is_that_of_more_frequencies() -> None:
    """On a square .23 of a value is lost with half of the frequencies, and all of them are right to .02."""
    x = np.random.default_rng(0).random((8000, 2))
    model = dsp.SpectralDecomposition(basis=FourierBasis(n_frequencies=8), n_components=6, random_state=0)
    with warnings.catch_warnings(action="error"):
        model.fit(x)
    assert model.reliable_.all()
    assert (model.discretization_errors_[1:] < 0.05 * model.eigenvalues_[1:]).all()


@unreliable
def test_values_that_fewer_frequencies_do_not_have_are_not_trusted() -> None:
    x = 3 * np.random.default_rng(0).random((3000, 1))
    model = dsp.SpectralDecomposition(basis=FourierBasis(n_frequencies=4), n_components=8, random_state=0).fit(x)
    assert model.reliable_[:4].all()
    assert not model.reliable_[6:].any()
    assert abs(model.eigenvalues_[7] / (7 * np.pi / 3) ** 2 - 1) > 0.3
