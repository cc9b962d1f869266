"""Random Fourier features: forms against triple loops over scalars, spectral laws against their kernels."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.polynomial import hermite_e

from daskspectral.basis import Basis, Concatenated, ConstantBasis, FourierBasis, LandmarkBasis
from daskspectral.forms import (
    Form,
    along,
    along_each,
    dirichlet,
    form,
    functional,
    grad,
    gram,
    inner,
    partial,
    second,
)
from daskspectral.kernels import Exponential, FunctionKernel, Gaussian, Kernel, Linear, Matern, Radial
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.solve import Problem, Symmetric
from tests.basis.common import later, triple_loop
from tests.common import assert_close, copied

Derivative = Callable[[Any, tuple[int, ...]], Any]  # points (c, d), multi-index -> (p, c), a scalar at a time
W = np.random.default_rng(0).standard_normal((3, 3)) * 1.7
Y = np.random.default_rng(1).standard_normal((2, 3))
UNIT = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def make_batch(n: int = 11, seed: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((n, 3)),
        "future": rng.standard_normal((n, 3)),
        "drift": rng.standard_normal((n, 3)),
        "potential": rng.standard_normal(n),
        "matrix": rng.standard_normal((n, 3, 3)),
        "frame": rng.standard_normal((n, 2, 3)),
        "weight": rng.random(n) + 0.1,
    }


BATCH = make_batch()


def waves(x: Any, alpha: tuple[int, ...], variance: float = 2.5) -> Any:
    """Derivatives of cos and sin by quarter turns."""

    def entry(wave: Callable[[float], float], w: Any, point: Any) -> float:
        angle = sum(float(a) * float(b) for a, b in zip(w, point, strict=True))
        factor = math.prod(float(a) ** k for a, k in zip(w, alpha, strict=True))
        return math.sqrt(variance / len(W)) * factor * wave(angle + sum(alpha) * math.pi / 2)

    return np.array([[entry(wave, w, point) for point in x] for wave in (math.cos, math.sin) for w in W])


def gaussians(x: Any, alpha: tuple[int, ...], scale: float = 0.9) -> Any:
    """Derivatives of exp(-r^2 / (2 scale^2)) by Hermite polynomials."""

    def entry(y: Any, point: Any) -> float:
        u = (point - y) / scale
        factors = (hermite_e.hermeval(u[i], [0] * k + [1]) * (-1 / scale) ** k for i, k in enumerate(alpha))
        return float(math.prod(factors) * np.exp(-u @ u / 2))

    return np.array([[entry(y, point) for point in x] for y in Y])


def one(x: Any, alpha: tuple[int, ...]) -> Any:
    return np.full((1, len(x)), float(not any(alpha)))


BASIS = FourierBasis(W, 2.5)
MIXED = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(0.9), Y), BASIS))


def mixed(x: Any, alpha: tuple[int, ...]) -> Any:
    return np.vstack([part(x, alpha) for part in (one, gaussians, waves)])


def slope(f: Derivative, points: Any, direction: Any) -> Any:
    return sum(f(points, e) * direction[:, a] for a, e in enumerate(UNIT))


@form
def gradients_one_by_one(f: Any, g: Any, x: Any) -> Any:
    return sum(inner(partial(f, *e), partial(g, *e)) for e in UNIT)


@form
def weighted(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(f), grad(g), weight=x.potential) + 2 * inner(f, g, weight=x.potential)


@form
def drifting(f: Any, g: Any, x: Any) -> Any:
    return inner(along(f, x.drift) - f, along(g, x.drift)) + inner(f, partial(g, 0, 1, 0))


@form
def second_order(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 1, 0, 1), partial(g, 0, 2, 0)) - inner(partial(f, 0, 0, 0), partial(g, 2, 0, 0))


@form
def third(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 1, 1, 1), partial(g, 0, 0, 3)) + inner(partial(f, 2, 1, 0), partial(g, 0, 1, 0))


@form
def generators(f: Any, g: Any, x: Any) -> Any:
    along_frame = inner(along_each(f, x.frame), along_each(g, x.frame))
    return inner(second(f, x.matrix) + along(f, x.drift) - f, second(g) + partial(g, 0, 0, 3)) + along_frame


FORMS: dict[str, Form] = {
    f.name: f
    for f in (gram, dirichlet, gradients_one_by_one, weighted, drifting, second_order, third, later, generators)
}


def expected(name: str, f: Derivative, g: Derivative, batch: dict[str, Any]) -> Any:
    x, future, drift, v = batch["x"], batch["future"], batch["drift"], batch["potential"]
    w = batch.get("weight", np.ones(len(x)))
    o = (0, 0, 0)

    def loop(a: Any, b: Any, factor: Any = 1.0) -> Any:
        return triple_loop(a, b, w * factor)

    def gradients(points: Any, factor: Any = 1.0) -> Any:
        return sum(loop(f(points, e), g(points, e), factor) for e in UNIT)

    def generate() -> Any:
        pairs = [(a, b, tuple(np.add(UNIT[a], UNIT[b]).tolist())) for a in range(3) for b in range(3)]
        moved = sum(f(x, alpha) * batch["matrix"][:, a, b] for a, b, alpha in pairs) + slope(f, x, drift) - f(x, o)
        right = g(x, (2, 0, 0)) + g(x, (0, 2, 0)) + g(x, (0, 0, 2)) + g(x, (0, 0, 3))
        frames = (batch["frame"][:, m] for m in range(2))
        return loop(moved, right) + sum(loop(slope(f, x, v), slope(g, x, v)) for v in frames)

    sums: dict[str, Callable[[], Any]] = {
        "gram": lambda: loop(f(x, o), g(x, o)),
        "dirichlet": lambda: gradients(x),
        "gradients_one_by_one": lambda: gradients(x),
        "weighted": lambda: gradients(x, v) + 2 * loop(f(x, o), g(x, o), v),
        "drifting": lambda: loop(slope(f, x, drift) - f(x, o), slope(g, x, drift)) + loop(f(x, o), g(x, (0, 1, 0))),
        "second_order": lambda: loop(f(x, (1, 0, 1)), g(x, (0, 2, 0))) - loop(f(x, o), g(x, (2, 0, 0))),
        "third": lambda: loop(f(x, (1, 1, 1)), g(x, (0, 0, 3))) + loop(f(x, (2, 1, 0)), g(x, (0, 1, 0))),
        "generators": generate,
        "later": lambda: gradients(future) + loop(f(x, o), g(future, o)),
    }
    return sums[name]()


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("rows", [4, 100])
def test_every_form(name: str, rows: int) -> None:
    found = Measure(BASIS, BASIS, {"form": FORMS[name]}, rows=rows)([BATCH])["form"]
    assert_close(found, expected(name, waves, waves, BATCH))


@pytest.mark.parametrize("name", FORMS)
def test_every_form_beside_landmarks_and_a_constant(name: str) -> None:
    batch = {key: value for key, value in BATCH.items() if key != "weight"}
    assert_close(
        Measure(MIXED, MIXED, {"form": FORMS[name]}, rows=5)([batch])["form"], expected(name, mixed, mixed, batch)
    )
    assert_close(
        Measure(BASIS, MIXED, {"form": FORMS[name]}, rows=5)([BATCH])["form"], expected(name, waves, mixed, BATCH)
    )
    assert_close(
        Measure(MIXED, BASIS, {"form": FORMS[name]}, rows=5)([BATCH])["form"], expected(name, mixed, waves, BATCH)
    )


def test_all_forms_in_one_pass_in_both_precisions() -> None:
    double = Measure(MIXED, MIXED, FORMS, rows=5)([BATCH])
    single = Measure(MIXED, MIXED, FORMS, rows=5, dtype="float32")([BATCH])
    for name in FORMS:
        wanted = expected(name, mixed, mixed, BATCH)
        assert_close(double[name], wanted)
        assert_close(single[name], wanted, 3e-6)


def test_derivatives_are_those_of_complex_steps() -> None:
    x = BATCH["x"]
    for axis, e in enumerate(UNIT):
        shifted = x + 1e-30j * np.eye(3)[axis]
        angles = W @ shifted.T
        steps = math.sqrt(2.5 / 3) * np.vstack([np.cos(angles), np.sin(angles)]).imag / 1e-30
        np.testing.assert_allclose(waves(x, e), steps, rtol=0, atol=1e-14)


def test_functionals() -> None:
    pairings = {
        "hermite": functional(lambda f, x: inner(f, x.potential) + inner(grad(f), x.drift)),
        "third": functional(lambda f, x: inner(partial(f, 0, 2, 1), x.potential)),
    }
    sums = Measure(BASIS, BASIS, {"gram": gram}, pairings, rows=4)([BATCH])
    x, w, v = BATCH["x"], BATCH["weight"], BATCH["potential"]
    hermite = waves(x, (0, 0, 0)) @ (w * v) + slope(waves, x, BATCH["drift"]) @ w
    assert_close(sums["hermite"], hermite)
    assert_close(sums["third"], waves(x, (0, 2, 1)) @ (w * v))


def test_a_partial_of_the_wrong_length() -> None:
    wrong = form(lambda f, g, x: inner(f, partial(g, 1, 0)))
    with pytest.raises(ValueError, match=r"a derivative in 3 variables takes 3 orders"):
        Measure(BASIS, BASIS, {"form": wrong})([BATCH])


def test_no_tensor_of_points_functions_and_coordinates() -> None:
    d, p, c = 200, 40, 500
    basis = FourierBasis.draw(Gaussian(20.0), d, p, 0)
    batch = {"x": np.random.default_rng(0).standard_normal((c, d))}
    measure = Measure(basis, basis, {"dirichlet": dirichlet, "other": gradients_of(d)})
    tracemalloc.start()
    try:
        sums = measure([batch])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * p * c * d / 8
    assert_close(sums["dirichlet"], sums["other"])


def gradients_of(d: int) -> Form:
    return form(lambda f, g, x: sum(inner(partial(f, *e), partial(g, *e)) for e in np.eye(d, dtype=int)))


# angles


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 4e-10), ("float32", 2e-7)])
def test_large_angles_and_half_turns(dtype: str, tolerance: float) -> None:
    """Rounding of the angle alone, 1e6 times eps of float64, whatever the dtype."""
    x = np.array([[0.0], [1.0], [-1.0], [0.3]])
    basis = FourierBasis(np.array([[math.pi], [1e6], [-2 * math.pi], [1e-9]]))
    found = basis.values(x, dtype)
    assert found.dtype == dtype
    angles = basis.frequencies @ x.T
    wanted = np.vstack([np.cos(angles), np.sin(angles)]) / 2
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)
    np.testing.assert_allclose((found**2).sum(axis=0), 1, rtol=0, atol=1e-15 if dtype == "float64" else 3e-7)


def test_the_span_does_not_depend_on_the_origin() -> None:
    shifted = {**BATCH, "x": BATCH["x"] + 1000}
    forms = {"form": dirichlet, "gram": gram}
    for dtype, tolerance in (("float64", 1e-9), ("float32", 1e-4)):
        sums, moved = (Measure(BASIS, BASIS, forms, dtype=dtype)([b]) for b in (BATCH, shifted))
        values, others = (
            Symmetric().solve(Problem(s["form"], s["gram"], count=6, cut=1e-10)).values for s in (sums, moved)
        )
        np.testing.assert_allclose(others, values, rtol=tolerance, atol=0)


# spectral laws


@pytest.mark.parametrize(
    ("kernel", "degrees"),
    [
        (Gaussian(0.8), None),
        (Exponential(0.6), 1),
        (Matern(0.5, 2.0), 1),
        (Matern(1.5, 0.7), 3),
        (Matern(3.5, 1.3), 7),
        (4.0 * Matern(2.5, 1.3), 5),
    ],
)
def test_frequencies_have_the_law_of_their_kernel(kernel: Any, degrees: int | None) -> None:
    """Times the scale: normal, or Student's t of 2 nu degrees along any direction, F(d, 2 nu) in length."""
    scale = kernel.scale if degrees != 5 else 1.3
    w = FourierBasis.draw(kernel, 3, 8000, 5).frequencies * scale
    marginal = scipy.stats.norm() if degrees is None else scipy.stats.t(degrees)
    for direction in ([2 / 3, -1 / 3, 2 / 3], [0, 1, 0]):
        assert scipy.stats.kstest(w @ direction, marginal.cdf).pvalue > 1e-3
    length = scipy.stats.chi2(3, scale=1 / 3) if degrees is None else scipy.stats.f(3, degrees)
    assert scipy.stats.kstest((w**2).mean(axis=1), length.cdf).pvalue > 1e-3


KERNELS: list[Kernel] = [
    Gaussian(0.8),
    Exponential(0.6),
    Matern(1.5, 0.7),
    Matern(2.5, 1.3),
    3.0 * Gaussian(0.8),
    Gaussian(0.5) + 2 * Exponential(2.0),
    Gaussian(0.9) * Matern(1.5, 1.1),
    0.5 * (Matern(2.5) * Matern(2.5)) + Gaussian(0.3) * Exponential(1.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("d", [1, 4])
def test_products_of_features_approach_the_kernel(kernel: Kernel, d: int) -> None:
    """A mean of m cosines, each of variance (k(2 r) + 1) / 2 - k(r)^2 for k(0) = 1: within 4.5 deviations."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((12, d)) / np.sqrt(d)
    m = 20_000
    basis = FourierBasis.draw(kernel, d, 2 * m, rng)
    values = basis.values(x)
    top = float(kernel.diagonal(x)[0])
    exact = kernel(x, x) / top
    origin = np.zeros((1, d))
    twice = np.array([[kernel(2 * (a - b)[None], origin)[0, 0] for a in x] for b in x]) / top
    deviation = np.sqrt(np.maximum((twice + 1) / 2 - exact**2, 0) / m)
    error = np.abs(values.T @ values / top - exact)
    assert (error <= 4.5 * deviation + 1e-12).all()
    assert error.max() > 0.1 * deviation.max()  # the bound is one of the right size
    np.testing.assert_allclose((values**2).sum(axis=0), top, rtol=1e-12)


def test_draws_are_reproducible() -> None:
    first = FourierBasis.draw(Gaussian(2.0), 2, 6, 4)
    again = FourierBasis.draw(Gaussian(2.0), 2, 6, np.random.default_rng(4))
    other = FourierBasis.draw(Gaussian(2.0), 2, 6, 5)
    assert np.array_equal(first.frequencies, again.frequencies)
    assert not np.isclose(first.frequencies, other.frequencies).any()
    assert first.frequencies.shape == (3, 2)
    assert (first.size, first.dimension, first.variance) == (6, 2, 1.0)
    assert FourierBasis.draw(2.5 * Gaussian(1.0), 2, 6, 4).variance == 2.5
    assert not first.local.any()


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Linear(), r"Linear\(\)"),
        (Gaussian() + Linear(), r"Sum\(left=Gaussian"),
        (Gaussian() + Radial(lambda s: 1 / (1 + s)), r"Radial\("),
        (FunctionKernel(lambda x, y: np.ones((len(y), len(x)))), r"FunctionKernel\("),
    ],
)
def test_kernels_without_a_known_density(kernel: Kernel, name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"the spectral density of {name}.* drawn for Gaussian, Exponential and Matern"
    ):
        FourierBasis.draw(kernel, 2, 10)


def test_draws_refused() -> None:
    with pytest.raises(TypeError, match=r"kernel must be one of daskspectral.kernels, .* it is 'gaussian'"):
        FourierBasis.draw("gaussian", 2, 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"p is even, a cosine and a sine for each frequency; it is 7"):
        FourierBasis.draw(Gaussian(), 2, 7)
    for p in (0, -2, 4.5, True):
        with pytest.raises(ValueError, match=rf"p is a whole number of 2 or more; it is {p}"):
            FourierBasis.draw(Gaussian(), 2, p)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"dimension is a whole number of 1 or more; it is 0"):
        FourierBasis.draw(Gaussian(), 0, 4)
    with pytest.raises(ValueError, match=r"the scale is still 'median'"):
        FourierBasis.draw(Gaussian("median"), 2, 4)
    for frequencies in (np.ones(3), np.ones((0, 2)), np.array([[np.nan, 1.0]])):
        with pytest.raises(ValueError, match=r"frequencies are finite numbers \(m, d\), one in each row"):
            FourierBasis(frequencies)
    with pytest.raises(ValueError, match=r"variance, the kernel's value at x = y, is a positive number; it is 0"):
        FourierBasis(np.ones((2, 2)), 0)


# bases as values


def test_states() -> None:
    whole = Concatenated((FourierBasis.draw(2 * Matern(1.5), 3, 8, 1), ConstantBasis(3)))
    for copy in (copied(whole), pickle.loads(pickle.dumps(whole))):
        assert np.array_equal(copy.values(BATCH["x"]), whole.values(BATCH["x"]))
        assert (copy.size, copy.dimension, copy.order) == (9, 3, math.inf)
        assert copy.description == "random Fourier features with the constant"
    whole.check_order(40, "a form")


def test_integer_points() -> None:
    x = np.arange(12).reshape(4, 3) % 5
    real: Basis = FourierBasis(W)
    assert np.array_equal(real.values(x), real.values(x.astype(float)))


def test_the_laplacian_of_the_normal_law() -> None:
    """0, 1, 2, 3: degrees of the Hermite polynomials."""
    n = 40_000
    x = np.random.default_rng(8).standard_normal((n, 1))
    basis = Concatenated((ConstantBasis(1), FourierBasis.draw(Gaussian(2.0), 1, 30, 0)))
    sums = Measure(basis, basis, Laplacian().forms)([{"x": x}])
    found = Symmetric().solve(Problem(sums["form"] / n, sums["gram"] / n, count=4, cut=1e-10))
    assert abs(found.values[0]) < 1e-12
    np.testing.assert_allclose(found.values[1:], [1, 2, 3], rtol=0.05, atol=0)
