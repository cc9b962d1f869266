"""What `Measure` sums, for every kind of basis and of form: features of plain formulas, and sums of features."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import CallableBasis, Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.forms import Form, tangential_dirichlet
from daskspectral.manifolds import FlatTorus, Manifold, Sphere
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.testing.basis import derivative, feature
from daskspectral.testing.form import _sum_over_rows
from tests.basis.common import PAIRINGS, UNIT, ZERO, derivatives, forms, make_batch, paired, stacked
from tests.common import assert_close
from tests.kernels.common import KERNELS, at_landmarks, gauss
from tests.manifolds.test_manifolds import clifford, radial

BATCH = make_batch()
Y = 1.5 * np.random.default_rng(1).standard_normal((4, 3))
W = 1.2 * np.random.default_rng(0).standard_normal((3, 3))


def monomials(basis: MonomialBasis) -> Any:
    return derivatives(lambda x: np.prod((x / basis.scale) ** basis.exponents[:, None], axis=2))


def features(x: Any) -> Any:
    return np.stack([np.sin(x[:, 0]) * x[:, 1], np.exp(x[:, 1] - x[:, 2]), x[:, 0] ** 2, x[:, 2]])


def slopes(x: Any) -> Any:
    zero, swell = np.zeros(len(x)), np.exp(x[:, 1] - x[:, 2])
    rows = [
        [np.cos(x[:, 0]) * x[:, 1], np.sin(x[:, 0]), zero],
        [zero, swell, -swell],
        [2 * x[:, 0], zero, zero],
        [zero, zero, zero + 1],
    ]
    return np.moveaxis(np.array(rows), 1, 2)


def waves(basis: Any) -> Any:
    """1, then cosines and sines, by their definition: the first entry of k but 0 is positive."""
    every = itertools.product(*(range(-most, most + 1) for most in basis.m))
    half = [k for k in every if k > (0,) * basis.dimension and sum(map(abs, k)) <= basis.degree]
    turns = 2 * np.pi / np.array(basis.periods)
    yield lambda x: np.ones(len(x))
    for of in (np.cos, np.sin):
        yield from (lambda x, k=k, of=of: np.sqrt(2) * of(x @ (turns * k)) for k in half)


LANDMARKS = {name: LandmarkBasis(kernel, Y) for name, (kernel, _, _) in KERNELS.items()}
ANGLES = dsp.basis.TrigonometricBasis((3.0, 5.0, 7.0), 2, (1, 2, 1))
MONOMIALS, SOME = MonomialBasis(3, 3, scale=1.7), MonomialBasis(3, 2, constant=False)
OWN = CallableBasis(features, slopes, d=3)
CELLS = dsp.basis.NormalizedRBF(Y, 0.8)
SAYS = CallableBasis(lambda x: np.ones((1, len(x))), lambda x: np.zeros((1, *x.shape)), d=3, holds_constant=True)
ONE = derivatives(lambda x: np.ones((1, len(x))))
CASES: dict[str, tuple[dsp.basis.Basis, Any]] = {
    **{name: (LANDMARKS[name], derivatives(at_landmarks(q, Y), r)) for name, (_, q, r) in KERNELS.items()},
    "fourier": (
        dsp.basis.RandomFourierFeatures(W, 2.5),
        derivatives(lambda x: np.sqrt(2.5 / 3) * np.vstack([np.cos(W @ x.T), np.sin(W @ x.T)])),
    ),
    "angles": (ANGLES, derivatives(lambda x: np.stack([wave(x) for wave in waves(ANGLES)]))),
    "monomials": (MONOMIALS, monomials(MONOMIALS)),
    "without a constant": (SOME, monomials(SOME)),
    "callable": (OWN, derivatives(features)),
    "soft cells": (CELLS, derivatives(lambda x: (v := at_landmarks(lambda s, t: gauss(s), Y)(x)) / v.sum(axis=0), 0.1)),
}


def mixture(*names: str) -> tuple[dsp.basis.Basis, Any]:
    parts = [CASES[name] for name in names]
    whole = Concatenated((ConstantBasis(3), Concatenated(tuple(basis for basis, _ in parts))))
    return whole, stacked(ONE, *(function for _, function in parts))


def vanishing() -> tuple[dsp.basis.Basis, Any]:
    """Times (x_0 + 9) (9 - x_0) / 81, x_1 + 9, 9 - x_2 and 1 - |x - c|^2 / 100."""
    inf, center = np.inf, (0.5, 0.1, 0.0)
    edges = (dsp.basis.BoxBoundary([-9, -9, -inf], [9, inf, 9]), dsp.basis.BallBoundary(10.0, center))
    whole, plain = LANDMARKS["gaussian"], at_landmarks(KERNELS["gaussian"][1], Y)

    def formula(x: Any) -> Any:
        box = (81 - x[:, 0] ** 2) / 81 * (x[:, 1] + 9) * (9 - x[:, 2])
        return plain(x) * box * (1 - ((x - center) ** 2).sum(axis=1) / 100)

    return dsp.basis.DirichletFunctions(dsp.basis.DirichletFunctions(whole, edges[0]), edges[1]), derivatives(formula)


CASES["mixture"] = mixture("gaussian", "fourier", "without a constant")
CASES["vanishing"] = vanishing()
CASES["own and kernels"] = mixture("exponential", "callable", "linear")
CASES["the same twice"] = mixture("gaussian", "gaussian", "dot sum")
HOLDING = ("angles", "monomials", "soft cells", "mixture", "own and kernels", "the same twice")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CASES)
def test_every_form_of_every_basis(name: str) -> None:
    """Features against formulas, sums against features, and alone as in one pass in blocks, in both precisions."""
    basis, f = CASES[name]
    assert_close(basis.values(BATCH["x"]), f(BATCH["x"], ZERO), 1e-14)
    for alpha in itertools.product(range(4), repeat=3):
        if sum(alpha) <= min(basis.order, 3):
            found, wanted = feature(basis, {"x": BATCH["x"][:4]}, derivative(alpha)), f(BATCH["x"][:4], alpha)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * max(1, np.abs(wanted).max()))
    several = forms(basis.order)
    wanted = summed(basis, basis, several)
    assert_close({what: Measure(basis, basis, {what: several[what]})([BATCH])[what] for what in several}, wanted)
    wanted |= paired(f, BATCH)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        together = Measure(basis, basis, several, PAIRINGS, dtype=dtype, rows=5)([BATCH])
        assert_close(together, wanted, tolerance)


def summed(left: dsp.basis.Basis, right: dsp.basis.Basis, several: dict[str, Form]) -> dict[str, Any]:
    """Sums over rows of products of features."""
    return {what: _sum_over_rows(bilinear, left, right, BATCH) for what, bilinear in several.items()}


PAIRS = [("gaussian", "mixture"), ("mixed product", "own and kernels"), ("fourier", "the same twice")]


@pytest.mark.parametrize("pair", PAIRS)
def test_two_bases(pair: tuple[str, str]) -> None:
    for first, other in itertools.permutations(CASES[name][0] for name in pair):
        several = {f"{what} of both": bilinear for what, bilinear in forms(min(first.order, other.order)).items()}
        assert_close(Measure(first, other, several, rows=6)([BATCH]), summed(first, other, several))


@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize(
    ("basis", "holds"),
    [
        *((basis, name in HOLDING) for name, (basis, _) in CASES.items() if name != "vanishing"),
        (dsp.basis.RandomFourierFeatures(0 * W[:1]), True),
        (SAYS, True),
        (dsp.basis.HarmonicBasis(Sphere(3), 4), True),
    ],
)
def test_one_constant_and_no_second_one(basis: dsp.basis.Basis, holds: bool) -> None:
    """A basis says whether it holds the constant; an estimator adds one only where it does not."""
    assert basis.holds_constant is holds
    x = Sphere(3).sample(60, np.random.default_rng(0))
    for functions in (basis, Concatenated((ConstantBasis(3), basis))):
        model = dsp.SpectralDecomposition(basis=functions, n_components=1, folds=None).fit(x)
        assert model.basis_.size == basis.size + (not holds or functions is not basis)
        assert model.eigenvalues_[0] == pytest.approx(0, abs=1e-9)


# the tangential forms


@pytest.mark.parametrize(
    ("manifold", "kernel", "field", "normals"),
    [
        (Sphere(3), "gaussian", "normal", radial),
        (FlatTorus(2), "exponential", "tangent", clifford),
    ],
    ids=["sphere", "torus"],
)
def test_tangential_forms(manifold: Manifold, kernel: str, field: str, normals: Callable[[Any], Any]) -> None:
    d = manifold.ambient
    rng = np.random.default_rng(5)
    batch = {"x": rng.standard_normal((11, d)), "weight": rng.random(11)}
    k, formula, radius = KERNELS[kernel]
    y = 2 * rng.standard_normal((4, d))
    basis, f = Concatenated((LandmarkBasis(k, y), ConstantBasis(d))), derivatives(at_landmarks(formula, y), radius)
    gradient = np.stack([f(batch["x"], tuple(e)) for e in np.eye(d, dtype=int).tolist()], axis=2)
    given = normals(batch["x"]).reshape(-1, 11, d)
    for n in given:
        gradient = gradient - np.einsum("pcd,cd->pc", gradient, n)[:, :, None] * n
    wanted = np.zeros((5, 5))
    wanted[:4, :4] = np.einsum("pcd,qcd,c->pq", gradient, gradient, batch["weight"])
    operator = Laplacian(manifold)
    assert set(operator.form.fields) == {"x", field}
    assert_close(Measure(basis, basis, operator.forms, operator=operator, rows=4)([batch])["form"], wanted)
    told = tangential_dirichlet(normals=len(given))  # the normals as a field of the data
    found = Measure(basis, basis, {"form": told}, rows=4)([{**batch, "normal": np.moveaxis(given, 0, 1)}])
    assert_close(found["form"], wanted)


# arithmetic: coincident points, units, dtypes, weights, additivity


@pytest.mark.parametrize("kernel", ["exponential", "radial sum", "matern", "gaussian"])
def test_landmarks_among_the_points(kernel: str) -> None:
    """There the gradient is 0, also of a kernel with a cone."""
    y = BATCH["x"][[3, 7, 11, 12]]
    basis, touching = LandmarkBasis(KERNELS[kernel][0], y), (BATCH["x"] == y[:, None]).all(axis=2)
    slopes = [feature(basis, BATCH, derivative(e)) for e in UNIT]
    assert not np.any([slope[touching] for slope in slopes])
    wanted = summed(basis, basis, forms(1)) | {"dirichlet": sum((s * BATCH["weight"]) @ s.T for s in slopes)}
    for dtype, tolerance in (("float64", 1e-12), ("float32", 3e-5)):
        sums = Measure(basis, basis, forms(1), dtype=dtype, rows=6)([BATCH])
        assert_close(sums, wanted, tolerance)
        assert np.linalg.eigvalsh(sums["dirichlet"])[0] > -tolerance * np.abs(sums["dirichlet"]).max()
