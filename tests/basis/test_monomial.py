"""Monomials: forms against triple loops over scalars, derivatives against numpy's polynomials."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from daskspectral.basis import Concatenated, ConstantBasis, FourierBasis, LandmarkBasis, MonomialBasis
from daskspectral.forms import Form, along, dirichlet, form, functional, grad, gram, inner, partial, second
from daskspectral.kernels import Gaussian
from daskspectral.moments import Measure
from tests.basis.common import later, triple_loop
from tests.common import assert_close, copied

Derivative = Callable[[Any, tuple[int, ...]], Any]
UNIT = [(1, 0), (0, 1)]


def make_batch(n: int = 12, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((n, 2)),
        "future": rng.standard_normal((n, 2)),
        "drift": rng.standard_normal((n, 2)),
        "potential": rng.standard_normal(n),
        "matrix": rng.standard_normal((n, 2, 2)),
        "weight": rng.random(n) + 0.1,
    }


BATCH = make_batch()


def monomials(basis: MonomialBasis) -> Derivative:
    """Derivatives of x_1^a x_2^b / scale^(a + b), one number at a time."""

    def entry(exponents: Any, point: Any, alpha: tuple[int, ...]) -> float:
        factors = (
            polynomial.polyval(float(u) / basis.scale, polynomial.polyder([0.0] * int(e) + [1.0], k)) / basis.scale**k
            for e, u, k in zip(exponents, point, alpha, strict=True)
        )
        return float(math.prod(factors))

    return lambda x, alpha: np.array([[entry(e, point, alpha) for point in x] for e in basis.exponents])


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
    return inner(along(f, x.drift) - f, along(g, x.drift)) + inner(f, partial(g, 0, 1))


@form
def second_order(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 1, 1), partial(g, 0, 2)) - inner(partial(f, 0, 0), partial(g, 2, 0))


@form
def third(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 1, 2), partial(g, 0, 3)) + inner(partial(f, 2, 1), partial(g, 0, 1))


@form
def generators(f: Any, g: Any, x: Any) -> Any:
    return inner(second(f, x.matrix) + along(f, x.drift) - f, second(g) + partial(g, 0, 3))


FORMS: dict[str, Form] = {
    f.name: f
    for f in (gram, dirichlet, gradients_one_by_one, weighted, drifting, second_order, third, later, generators)
}


def expected(name: str, f: Derivative, g: Derivative, batch: dict[str, Any]) -> Any:
    x, future, drift, v, o = batch["x"], batch["future"], batch["drift"], batch["potential"], (0, 0)
    w = batch.get("weight", np.ones(len(x)))

    def loop(a: Any, b: Any, factor: Any = 1.0) -> Any:
        return triple_loop(a, b, w * factor)

    def gradients(points: Any, factor: Any = 1.0) -> Any:
        return sum(loop(f(points, e), g(points, e), factor) for e in UNIT)

    def generate() -> Any:
        pairs = [(a, b, tuple(np.add(UNIT[a], UNIT[b]).tolist())) for a in range(2) for b in range(2)]
        moved = sum(f(x, alpha) * batch["matrix"][:, a, b] for a, b, alpha in pairs) + slope(f, x, drift) - f(x, o)
        return loop(moved, g(x, (2, 0)) + g(x, (0, 2)) + g(x, (0, 3)))

    sums: dict[str, Callable[[], Any]] = {
        "gram": lambda: loop(f(x, o), g(x, o)),
        "dirichlet": lambda: gradients(x),
        "gradients_one_by_one": lambda: gradients(x),
        "weighted": lambda: gradients(x, v) + 2 * loop(f(x, o), g(x, o), v),
        "drifting": lambda: loop(slope(f, x, drift) - f(x, o), slope(g, x, drift)) + loop(f(x, o), g(x, (0, 1))),
        "second_order": lambda: loop(f(x, (1, 1)), g(x, (0, 2))) - loop(f(x, o), g(x, (2, 0))),
        "third": lambda: loop(f(x, (1, 2)), g(x, (0, 3))) + loop(f(x, (2, 1)), g(x, (0, 1))),
        "generators": generate,
        "later": lambda: gradients(future) + loop(f(x, o), g(future, o)),
    }
    return sums[name]()


BASES = [MonomialBasis(2, 3), MonomialBasis(2, 3, constant=False), MonomialBasis(2, 4, scale=1.7)]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("basis", BASES, ids=str)
def test_every_form(basis: MonomialBasis, name: str) -> None:
    found = Measure(basis, basis, {"form": FORMS[name]}, rows=5)([BATCH])["form"]
    assert_close(found, expected(name, monomials(basis), monomials(basis), BATCH))


@pytest.mark.parametrize("basis", BASES[:2], ids=str)
def test_all_forms_in_one_pass_without_weights_in_both_precisions(basis: MonomialBasis) -> None:
    batch = {key: value for key, value in BATCH.items() if key != "weight"}
    double = Measure(basis, basis, FORMS, rows=5)([batch])
    single = Measure(basis, basis, FORMS, rows=5, dtype="float32")([batch])
    for name in FORMS:
        wanted = expected(name, monomials(basis), monomials(basis), batch)
        assert_close(double[name], wanted)
        assert_close(single[name], wanted, 3e-6)


@pytest.mark.parametrize("name", FORMS)
def test_beside_other_bases(name: str) -> None:
    """Every block of a mixed basis is that of its two parts; the other parts are checked on their own."""
    parts = (
        ConstantBasis(2),
        MonomialBasis(2, 2, constant=False),
        LandmarkBasis(Gaussian(1.1), BATCH["x"][:2] + 0.3),
        FourierBasis.draw(Gaussian(1.0), 2, 4, 0),
    )
    functions = [
        lambda x, alpha: np.full((1, len(x)), float(not any(alpha))),
        monomials(parts[1]),  # type: ignore[arg-type]
        lambda x, alpha: parts[2].kernel.partial(x, parts[2].landmarks, alpha),  # type: ignore[attr-defined]
    ]
    whole = Concatenated(parts)
    found = Measure(whole, whole, {"form": FORMS[name]}, rows=5)([BATCH])["form"]
    single = Measure(parts[1], whole, {"form": FORMS[name]}, rows=5)([BATCH])["form"]
    edges = np.cumsum([0, *(p.size for p in parts)])
    scale = np.abs(found).max()
    for i, j in itertools.product(range(3), range(3)):
        block = found[edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
        wanted = expected(name, functions[i], functions[j], BATCH)
        np.testing.assert_allclose(block, wanted, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(single, found[edges[1] : edges[2]], rtol=0, atol=1e-12 * scale)


def test_functionals() -> None:
    basis = MonomialBasis(2, 3, constant=False, scale=0.8)
    f = monomials(basis)
    pairings = {
        "hermite": functional(lambda f, x: inner(f, x.potential) + inner(grad(f), x.drift)),
        "second": functional(lambda f, x: inner(partial(f, 1, 1), x.potential)),
    }
    sums = Measure(basis, basis, {"gram": gram}, pairings, rows=4)([BATCH])
    x, w, v = BATCH["x"], BATCH["weight"], BATCH["potential"]
    assert_close(sums["hermite"], f(x, (0, 0)) @ (w * v) + slope(f, x, BATCH["drift"]) @ w)
    assert_close(sums["second"], f(x, (1, 1)) @ (w * v))


def test_derivatives_above_the_degree_are_exactly_zero() -> None:
    basis = MonomialBasis(2, 2)
    cubic = form(lambda f, g, x: inner(partial(f, 2, 1), g))
    quadratic = form(lambda f, g, x: inner(partial(f, 2, 0), g))
    beside = form(lambda f, g, x: inner(partial(f, 2, 1) - f, g))
    sums = Measure(basis, basis, {"cubic": cubic, "quadratic": quadratic, "beside": beside, "gram": gram})([BATCH])
    assert_close(sums["beside"], -sums["gram"])
    assert not sums["cubic"].any()
    assert sums["quadratic"].any(axis=1).tolist() == [False, False, False, True, False, False]


@settings(max_examples=40, deadline=None)
@given(
    d=st.integers(1, 5),
    degree=st.integers(1, 5),
    constant=st.booleans(),
    scale=st.floats(0.2, 5),
    n=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_values_and_exponents(d: int, degree: int, constant: bool, scale: float, n: int, seed: int) -> None:
    basis = MonomialBasis(d, degree, constant=constant, scale=scale)
    every = {e for e in itertools.product(range(degree + 1), repeat=d) if (0 if constant else 1) <= sum(e) <= degree}
    exponents = basis.exponents
    assert {tuple(e) for e in exponents.tolist()} == every
    assert len(exponents) == len(every) == basis.size
    assert (np.diff(exponents.sum(axis=1)) >= 0).all()
    x = np.random.default_rng(seed).standard_normal((n, d))
    wanted = np.prod((x / scale) ** exponents[:, None, :], axis=2)
    np.testing.assert_allclose(basis.values(x), wanted, rtol=1e-13, atol=0)


@settings(max_examples=25, deadline=None)
@given(d=st.integers(1, 4), degree=st.integers(1, 4), constant=st.booleans(), seed=st.integers(0, 1000))
def test_the_short_cut_is_the_sum_over_coordinates(d: int, degree: int, constant: bool, seed: int) -> None:
    basis = MonomialBasis(d, degree, constant=constant, scale=1.3)
    rng = np.random.default_rng(seed)
    batch = {"x": rng.standard_normal((9, d)), "weight": rng.random(9)}
    units = np.eye(d, dtype=int)
    generic = form(lambda f, g, x: sum(inner(partial(f, *e), partial(g, *e)) for e in units))
    sums = Measure(basis, basis, {"short": dirichlet, "generic": generic}, rows=4)([batch])
    assert_close(sums["short"], sums["generic"])


@pytest.mark.parametrize(("d", "degree", "p"), [(3, 20, 1771), (2, 60, 1891), (13, 4, 2380), (300, 1, 301)])
def test_thousands_of_functions(d: int, degree: int, p: int) -> None:
    basis = MonomialBasis(d, degree, scale=4.0)
    assert basis.size == p
    rng = np.random.default_rng(0)
    x = rng.uniform(-4, 4, (20, d))
    values = basis.values(x)
    sample = rng.choice(p, 40, replace=False)
    wanted = np.prod((x / 4) ** basis.exponents[sample][:, None, :], axis=2)
    np.testing.assert_allclose(values[sample], wanted, rtol=1e-13, atol=0)
    sums = Measure(basis, basis, {"dirichlet": dirichlet})([{"x": x}])
    diagonal = sum(
        basis.exponents[sample, a] ** 2
        * (
            np.prod((x / 4) ** np.maximum(basis.exponents[sample] - np.eye(d, dtype=int)[a], 0)[:, None, :], axis=2)
            ** 2
        ).sum(axis=1)
        for a in range(d)
    )
    np.testing.assert_allclose(sums["dirichlet"][sample, sample], diagonal / 16, rtol=1e-11, atol=0)


@pytest.mark.parametrize(("dtype", "reach", "fits"), [("float32", 300.0, 30.0), ("float64", 1e25, 1e20)])
def test_powers_that_overflow_are_named(dtype: str, reach: float, fits: float) -> None:
    basis = MonomialBasis(2, 6)
    message = (
        rf"the coordinates reach {reach:.6g}, and sums of squares of their power 6 overflow {dtype}; give .* scale"
    )
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        basis.values(np.array([[0.1, -reach]]), dtype)
    assert np.isfinite(basis.values(np.array([[0.1, -fits]]), dtype) ** 2).all()
    assert np.isfinite(MonomialBasis(2, 6, scale=reach).values(np.array([[0.1, -reach]]), dtype)).all()


def test_states() -> None:
    basis = MonomialBasis(3, 4, constant=False, scale=2.0)
    assert copied(basis) == basis
    assert (basis.dimension, basis.order, basis.description) == (3, math.inf, "monomials up to degree 4")
    assert basis.lead == 1
    basis.check_order(30, "a form")
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(basis.values(x), basis.values(x.astype(float)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 0, "degree": 2}, r"d of MonomialBasis is a whole number of 1 or more; it is 0"),
        ({"d": 2, "degree": 1.5}, r"degree of MonomialBasis is a whole number of 1 or more; it is 1.5"),
        ({"d": 2, "degree": True}, r"degree of MonomialBasis is a whole number of 1 or more; it is True"),
        ({"d": 2, "degree": 2, "scale": 0}, r"scale of MonomialBasis is a positive number; it is 0"),
        ({"d": 2, "degree": 2, "scale": "median"}, r"scale of MonomialBasis is a positive number; it is 'median'"),
        ({"d": 2, "degree": 2, "constant": 1}, r"constant of MonomialBasis is True or False; it is 1"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MonomialBasis(**arguments)


def test_a_partial_of_the_wrong_length() -> None:
    wrong = form(lambda f, g, x: inner(f, partial(g, 1, 0, 0)))
    with pytest.raises(ValueError, match=r"a derivative in 2 variables takes 2 orders"):
        Measure(MonomialBasis(2, 3), MonomialBasis(2, 3), {"form": wrong})([BATCH])
