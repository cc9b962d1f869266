"""Kernels against the plain formulas; derivatives against Cauchy's integral of these, exact to rounding."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.base import clone

from daskspectral.kernels import (
    Dot,
    Exponential,
    FunctionKernel,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    Radial,
    algebra,
    parse,
)
from daskspectral.kernels.algebra import DotSum, RadialProduct, RadialSum
from daskspectral.kernels.radial import clean_distances
from tests.common import assert_close

Plain = Callable[..., Any]
D = 3
RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((4, D)), RNG.standard_normal((3, D))


def rational(s: Any) -> Any:
    return 1 / (1 + s)


def rational1(s: Any) -> Any:
    return -1 / (1 + s) ** 2


def rational2(s: Any) -> Any:
    return 2 / (1 + s) ** 3


def rational3(s: Any) -> Any:
    return -6 / (1 + s) ** 4


def cosine(x: Any, y: Any) -> Any:
    return np.cos(x.sum(axis=1)) * (2 + np.sin(y.sum(axis=1)))[:, None]


def cosine_gradient(x: Any, y: Any, axis: int) -> Any:
    return -np.sin(x.sum(axis=1)) * (2 + np.sin(y.sum(axis=1)))[:, None]


def matern32(s: Any, scale: float) -> Any:
    z = np.sqrt(3 * s) / scale
    return (1 + z) * np.exp(-z)


def matern52(s: Any, scale: float) -> Any:
    z = np.sqrt(5 * s) / scale
    return (1 + z + z * z / 3) * np.exp(-z)


# kernels of one variable: s = |x - y|^2 (radial) or x.y (dot)
RADIAL: dict[str, tuple[Any, Plain]] = {
    "gaussian": (Gaussian(0.8), lambda s: np.exp(-s / (2 * 0.8**2))),
    "exponential": (Exponential(0.7), lambda s: np.exp(-np.sqrt(s) / 0.7)),
    "matern 1/2": (Matern(0.5, 1.3), lambda s: np.exp(-np.sqrt(s) / 1.3)),
    "matern 3/2": (Matern(1.5, 0.9), lambda s: matern32(s, 0.9)),
    "matern 5/2": (Matern(2.5, 1.1), lambda s: matern52(s, 1.1)),
    "radial": (Radial(rational, (rational1, rational2, rational3)), rational),
    "radial sum": (Gaussian(0.8) + Matern(2.5, 1.1), lambda s: np.exp(-s / 1.28) + matern52(s, 1.1)),
    "radial product": (Gaussian(0.8) * Matern(1.5), lambda s: np.exp(-s / 1.28) * matern32(s, 1.0)),
    "radial multiple": (2.5 * Exponential(), lambda s: 2.5 * np.exp(-np.sqrt(s))),
}
DOT: dict[str, tuple[Any, Plain]] = {
    "linear": (Linear(), lambda t: t),
    "polynomial": (Polynomial(4, offset=0.5, scale=1.7), lambda t: (0.5 + t / 1.7**2) ** 4),
    "polynomial 3": (Polynomial(), lambda t: (1 + t) ** 3),
    "polynomial 1": (Polynomial(1), lambda t: 1 + t),
    "homogeneous": (Polynomial(5, offset=0.0), lambda t: t**5),
    "dot": (Dot(np.exp, (np.exp, np.exp, np.exp)), np.exp),
    "dot sum": (Linear() + Polynomial(3), lambda t: t + (1 + t) ** 3),
    "dot product": (Linear() * Polynomial(3), lambda t: t * (1 + t) ** 3),
    "dot multiple": (Polynomial(3) * 3, lambda t: 3 * (1 + t) ** 3),
}


def radial_plain(q: Plain) -> Plain:
    return lambda x, y: q(((x - y) ** 2).sum(axis=-1))


def dot_plain(q: Plain) -> Plain:
    return lambda x, y: q((x * y).sum(axis=-1))


KERNELS: dict[str, tuple[Kernel, Plain]] = {
    **{name: (k, radial_plain(q)) for name, (k, q) in RADIAL.items()},
    **{name: (k, dot_plain(q)) for name, (k, q) in DOT.items()},
    "mixed sum": (Gaussian() + Linear(), lambda x, y: np.exp(-((x - y) ** 2).sum(-1) / 2) + (x * y).sum(-1)),
    "mixed product": (
        Matern(2.5) * Polynomial(2),
        lambda x, y: matern52(((x - y) ** 2).sum(-1), 1.0) * (1 + (x * y).sum(-1)) ** 2,
    ),
    "mixed multiple": (
        0.5 * (Gaussian() + Linear()) * Gaussian(2.0),
        lambda x, y: 0.5 * (np.exp(-((x - y) ** 2).sum(-1) / 2) + (x * y).sum(-1))
        * np.exp(-((x - y) ** 2).sum(-1) / 8),
    ),
    "function": (
        FunctionKernel(cosine, cosine_gradient),
        lambda x, y: np.cos(x.sum(-1)) * (2 + np.sin(y.sum(-1))),
    ),
}  # fmt: skip


def cauchy(f: Plain, x: Any, alpha: tuple[int, ...], radius: float, nodes: int = 32) -> Any:
    """The derivative of f at one point x (d,), by the trapezoidal rule on a circle for each axis of alpha."""
    if not sum(alpha):
        return f(x[None])[0]
    axes = [a for a, order in enumerate(alpha) if order]
    angles = 2 * np.pi * np.arange(nodes) / nodes
    grid = np.stack(np.meshgrid(*[angles] * len(axes), indexing="ij"), axis=-1).reshape(-1, len(axes))
    points = np.tile(x.astype(complex), (len(grid), 1))
    points[:, axes] += radius * np.exp(1j * grid)
    orders = np.array([alpha[a] for a in axes])
    factor = np.prod([math.factorial(a) for a in alpha]) / radius ** sum(alpha)
    return factor * np.mean(f(points) * np.exp(-1j * grid @ orders)).real


def table(plain: Plain, x: Any, y: Any, alpha: tuple[int, ...]) -> Any:
    def entry(a: Any, b: Any) -> Any:
        radius = 0.25 * float(np.linalg.norm(a - b))  # well inside the circle on which |x - y| vanishes
        return cauchy(lambda z: plain(z, b), a, alpha, radius)

    return np.array([[entry(a, b) for a in x] for b in y])


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_the_formula(name: str) -> None:
    kernel, plain = KERNELS[name]
    expected = table(plain, X, Y, (0, 0, 0))
    assert_close(kernel.values(X, Y), expected, 1e-14)
    assert_close(kernel(Y, X), expected, 1e-14)
    assert_close(kernel.diagonal(X), np.array([plain(a, a) for a in X]), 1e-14)
    assert_close(kernel.values(X.astype(np.float32), Y.astype(np.float32)), expected, 5e-6, dtype=None)


@pytest.mark.parametrize("name", KERNELS)
def test_partial_derivatives_up_to_order_three(name: str) -> None:
    kernel, plain = KERNELS[name]
    alphas = [a for a in itertools.product(range(4), repeat=D) if 0 < sum(a) <= min(3, kernel.order)]
    assert len(alphas) == {1: 3, 3: 19}[int(min(3, kernel.order))]
    x, y = X[:2], Y[:2]
    for alpha in alphas:
        expected = table(plain, x, y, alpha)
        found = kernel.partial(x, y, alpha)
        assert found.shape == (2, 2)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-10 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize(
    ("name", "alpha"),
    [
        ("gaussian", (2, 0, 2)),
        ("matern 5/2", (1, 4, 0)),
        ("radial product", (1, 2, 0)),
        ("polynomial", (4, 0, 0)),
        ("mixed product", (2, 0, 2)),
    ],
)
def test_partial_derivatives_of_higher_order(name: str, alpha: tuple[int, ...]) -> None:
    kernel, plain = KERNELS[name]
    expected = table(plain, X, Y, alpha)
    np.testing.assert_allclose(kernel.partial(X, Y, alpha), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", [*RADIAL, *DOT])
def test_profile_derivatives_and_pair(name: str) -> None:
    kernel, plain = (RADIAL | DOT)[name]
    s = np.random.default_rng(1).uniform(0.3, 4, (3, 5))
    copy = s.copy()
    for order in range(4 if kernel.order >= 3 else 2):
        out = np.full_like(s, np.nan)
        assert kernel.profile(s, order, out) is out
        expected = [cauchy(lambda z: plain(z[:, 0]), np.array([v]), (order,), 0.25 * v) for v in s.ravel()]
        np.testing.assert_allclose(out.ravel(), expected, rtol=0, atol=1e-11 * max(1, np.abs(expected).max()))
    assert np.array_equal(s, copy)
    if name in RADIAL:
        q, t = np.full_like(s, np.nan), np.full_like(s, np.nan)
        kernel.pair(s, q, t)
        assert_close(q, kernel.profile(s, 0, np.empty_like(s)), 1e-15)
        assert_close(kernel.slope * t, 2 * kernel.profile(s, 1, np.empty_like(s)), 1e-15)
        assert np.array_equal(s, copy)
        if kernel.proportional is not None:
            assert_close(t, kernel.proportional * q, 1e-15)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 5.5, 12.5, 19.5])
def test_matern_is_its_bessel_function(nu: float) -> None:
    s = np.linspace(0.01, 9, 40)
    z = np.sqrt(2 * nu * s) / 1.2
    expected = 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z)
    kernel = Matern(nu, 1.2)
    assert_close(kernel.profile(s, 0, np.empty_like(s)), expected, 1e-13)
    assert kernel.order == 2 * nu
    assert kernel.profile(np.zeros(1), 0, np.empty(1))[0] == pytest.approx(1, rel=1e-15)
    assert np.isfinite(kernel.profile(np.zeros(1), int(2 * nu), np.empty(1))).all()


@pytest.mark.parametrize("name", RADIAL)
def test_coincident_points(name: str) -> None:
    kernel, plain = RADIAL[name]
    x = 10 + RNG.standard_normal((5, D))
    y = np.vstack([x[1], x[3], x[0] + 1])
    direction = RNG.standard_normal(x.shape)
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        assert kernel.values(x, y)[0, 1] == pytest.approx(float(plain(0.0)), rel=1e-12 if kernel.order < 99 else 1e-9)
        for alpha in [(1, 0, 0), (0, 0, 1), (3, 0, 0), (1, 1, 1), (0, 1, 2)]:
            if sum(alpha) <= kernel.order:
                assert np.abs(kernel.partial(x, y, alpha)[[0, 1], [1, 3]]).max() < 1e-12
        assert np.abs(kernel.along(x, y, direction)[[0, 1], [1, 3]]).max() < 1e-12
        s = np.array([0.0, 1.0])
        q, t = np.empty(2), np.empty(2)
        kernel.pair(s, q, t)
    assert np.isfinite(t).all()
    assert_close(kernel.slope * t, 2 * kernel.profile(s, 1, np.empty(2)), 1e-15)
    if kernel.order == 1:
        assert t[0] == 0
        assert kernel.values(x, y)[0, 1] == kernel.diagonal(x)[0]  # exactly: no distance is left to rounding


def test_the_derivative_of_matern_jumps_where_its_order_ends() -> None:
    near, at = np.array([[1e-5, 0.0]]), np.zeros((1, 2))
    assert abs(Matern(1.5).partial(near, at, (3, 0))[0, 0]) > 1
    assert Matern(1.5).partial(at, at, (3, 0))[0, 0] == 0
    assert Matern(1.5).partial(at, at, (2, 0))[0, 0] == pytest.approx(-3)
    assert Matern(2.5).partial(at, at, (5, 0))[0, 0] == 0
    assert Matern(2.5).partial(at, at, (2, 2))[0, 0] == pytest.approx(25 / 3)  # 4 q''(0), q'' = (25/12) exp(-z)


@pytest.mark.parametrize("name", RADIAL)
def test_accuracy_far_from_the_origin(name: str) -> None:
    kernel = RADIAL[name][0]
    x, y = (np.round(a * 2**20) / 2**20 for a in (X, Y))  # the shift by 1000 is exact
    v = RNG.standard_normal(x.shape)
    assert_close(kernel.values(x + 1e3, y + 1e3), kernel.values(x, y), 2e-14)
    assert_close(kernel.partial(x + 1e3, y + 1e3, (0, 1, 0)), kernel.partial(x, y, (0, 1, 0)), 2e-14)
    assert_close(kernel.along(x + 1e3, y + 1e3, v), kernel.along(x, y, v), 5e-14)
    if kernel.order >= 2:
        m = RNG.standard_normal((4, D, D))
        assert_close(kernel.second(x + 1e3, y + 1e3, m), kernel.second(x, y, m), 1e-13)


def test_distances_within_rounding_are_none() -> None:
    """r^2 at most 64 eps (|x|^2 + |y|^2) counts as 0 where that matters, and no distance is negative."""
    eps, half = np.finfo(float).eps, np.array([0.5])
    for given, exact, wanted, touching in (
        (64 * eps, True, 0.0, True),
        (64.5 * eps, True, 64.5 * eps, False),
        (64 * eps, False, 64 * eps, True),
        (-eps, False, 0.0, True),
    ):
        s = np.array([[given]])
        assert clean_distances(s, half, half, exact=exact) is touching
        assert s == wanted
    x, y = np.array([[1.0], [5.0]]), np.array([[1 + 2e-7], [5.0]])
    assert Gaussian(2e-7).values(x, y)[0, 0] == pytest.approx(math.exp(-0.5), rel=0.1)  # smooth: it need not be
    assert Exponential(2e-7).values(x, y)[0, 0] == 1


# what is refused


@pytest.mark.parametrize("scale", [0, math.nan, 1e-76, 1e76, "mean", True])
@pytest.mark.parametrize("kernel", [Gaussian, Exponential, lambda scale: Matern(1.5, scale)])
def test_scales_refused(kernel: Any, scale: Any) -> None:
    with pytest.raises(ValueError, match="scale"):
        kernel(scale)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Matern(1.0), "nu"),
        (lambda: Matern(20.5), "nu"),
        (lambda: Polynomial(0), "degree"),
        (lambda: Polynomial(2, offset=-1), "offset"),
        (lambda: Gaussian() * 0, "factor"),
        (lambda: RadialSum(Gaussian(), Linear()), "Linear"),
        (lambda: Gaussian().partial(X, Y, (1, 0)), "orders"),
        (lambda: FunctionKernel(lambda x, y: np.ones(len(y))).values(X, Y), "shape"),
    ],
)
def test_parameters_refused(make: Callable[[], Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        make()


# parameters, names, states


def test_sums_and_products_stay_in_their_family() -> None:
    assert type(Gaussian() + Exponential()) is RadialSum
    assert type(Gaussian() * Exponential()) is RadialProduct
    assert type(Linear() + Polynomial()) is DotSum
    assert type(Gaussian() + Linear()) is algebra.SumOfKernels
    assert type(Gaussian() * Linear()) is algebra.ProductOfKernels
    assert type(2 * (Gaussian() + Linear())) is algebra.MultipleOfKernel


def test_parameters_by_name() -> None:
    kernel = Gaussian(0.5) + 2 * Matern(2.5, 3.0)
    assert kernel.get_params()["right__kernel__nu"] == 2.5
    assert set(kernel.get_params(deep=False)) == {"left", "right"}
    assert kernel.set_params(left__scale=1.5, right__kernel__scale=4.0, right__factor=3.0) is kernel
    assert kernel == Gaussian(1.5) + 3 * Matern(2.5, 4.0)
    assert kernel.set_params(left=Exponential()) == Exponential() + 3 * Matern(2.5, 4.0)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"scale": 1.0}, "RadialSum has no parameter 'scale'; it has left, right"),
        ({"left__scale": 2.0, "right__scale": -1.0}, "scale must"),
        ({"left__scale__x": 2.0}, "scale of Gaussian is 0.5"),
    ],
)
def test_parameters_that_cannot_be_set_change_nothing(params: dict[str, Any], match: str) -> None:
    kernel = Gaussian(0.5) + Exponential(3.0)
    with pytest.raises(ValueError, match=match):
        kernel.set_params(**params)
    assert kernel == Gaussian(0.5) + Exponential(3.0)


def test_the_median_is_a_scale_to_be_resolved() -> None:
    kernel = Gaussian("median") + 2 * Exponential(3.0)
    assert kernel.needs_median
    assert clone(kernel) == kernel
    with pytest.raises(ValueError, match="still 'median'"):
        kernel.values(X, Y)
    resolved = kernel.resolve(0.7)
    assert resolved == Gaussian(0.7) + 2 * Exponential(3.0) != kernel
    assert not resolved.needs_median
    assert Matern(1.5, "median").resolve(2.0) == Matern(1.5, 2.0)
    assert Polynomial(3).resolve(2.0) == Polynomial(3)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("matern:2.5:3", Matern(2.5, 3)),
        ("gaussian:median + linear + matern:1.5", Gaussian("median") + Linear() + Matern(1.5)),
    ],
)
def test_kernels_by_name(text: str, kernel: Kernel) -> None:
    assert parse(text) == kernel
