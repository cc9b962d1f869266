"""A user's own functions: forms against triple loops, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskspectral.basis import (
    CallableBasis,
    Concatenated,
    ConstantBasis,
    LandmarkBasis,
    MonomialBasis,
)
from daskspectral.errors import SmoothnessError
from daskspectral.forms import Form, along, dirichlet, form, functional, grad, gram, inner, partial
from daskspectral.kernels import Gaussian
from daskspectral.moments import Measure
from daskspectral.registry import encode
from tests.basis.common import later, triple_loop
from tests.common import assert_close, copied

RNG = np.random.default_rng(0)
BATCH: dict[str, Any] = {
    "x": RNG.standard_normal((11, 3)),
    "future": RNG.standard_normal((11, 3)),
    "drift": RNG.standard_normal((11, 3)),
    "potential": RNG.standard_normal(11),
    "weight": RNG.random(11) + 0.1,
}
for _array in BATCH.values():
    _array.flags.writeable = False
UNIT = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def features(x: Any) -> Any:
    return np.stack([np.sin(x[:, 0]) * x[:, 1], np.exp(x[:, 1] - x[:, 2]), x[:, 0] ** 2, x[:, 2]])


def slopes(x: Any) -> Any:
    zero, one = np.zeros(len(x)), np.ones(len(x))
    swell = np.exp(x[:, 1] - x[:, 2])
    rows = [
        [np.cos(x[:, 0]) * x[:, 1], np.sin(x[:, 0]), zero],
        [zero, swell, -swell],
        [2 * x[:, 0], zero, zero],
        [zero, zero, one],
    ]
    return np.moveaxis(np.array(rows), 1, 2)


BASIS = CallableBasis(features, slopes, d=3)


def one_by_one(points: Any, axis: int | None) -> Any:
    """Values (p, c), or the derivative along one axis by complex steps, a point at a time."""
    if axis is None:
        return np.column_stack([features(point[None])[:, 0] for point in points])
    step = 1e-30j * np.eye(3)[axis]
    return np.column_stack([features((point + step)[None])[:, 0].imag / 1e-30 for point in points])


def with_others(points: Any, axis: int | None) -> Any:
    """The constant, Gaussians at two landmarks, and the callable's functions."""
    y = BATCH["x"][:2] + 0.4
    gaussian = np.array([[np.exp(-((p - a) ** 2).sum() / 2) for p in points] for a in y])
    if axis is None:
        return np.vstack([np.ones((1, len(points))), gaussian, one_by_one(points, None)])
    difference = y[:, None, axis] - points[None, :, axis]
    return np.vstack([np.zeros((1, len(points))), difference * gaussian, one_by_one(points, axis)])


MIXED = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.0), BATCH["x"][:2] + 0.4), BASIS))


@form
def gradients_one_by_one(f: Any, g: Any, x: Any) -> Any:
    return sum(inner(partial(f, *e), partial(g, *e)) for e in UNIT)


@form
def weighted(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(f), grad(g), weight=x.potential) + 2 * inner(partial(f, 0, 0, 0), g, weight=x.potential)


@form
def drifting(f: Any, g: Any, x: Any) -> Any:
    return inner(along(f, x.drift) - f, along(g, x.drift)) + inner(f, partial(g, 0, 1, 0))


FORMS: dict[str, Form] = {f.name: f for f in (gram, dirichlet, gradients_one_by_one, weighted, drifting, later)}


def expected(name: str, f: Any, g: Any, batch: dict[str, Any]) -> Any:
    x, future, drift, v = batch["x"], batch["future"], batch["drift"], batch["potential"]
    w = batch.get("weight", np.ones(len(x)))

    def gradients(points: Any, weight: Any) -> Any:
        return sum(triple_loop(f(points, a), g(points, a), weight) for a in range(3))

    def slope(h: Any) -> Any:
        return sum(h(x, a) * drift[:, a] for a in range(3))

    if name in ("dirichlet", "gradients_one_by_one"):
        return gradients(x, w)
    if name == "weighted":
        return gradients(x, v * w) + 2 * triple_loop(f(x, None), g(x, None), v * w)
    if name == "drifting":
        moved = triple_loop(slope(f) - f(x, None), slope(g), w)
        return moved + triple_loop(f(x, None), g(x, 1), w)
    if name == "later":
        return gradients(future, w) + triple_loop(f(x, None), g(future, None), w)
    return triple_loop(f(x, None), g(x, None), w)


@pytest.mark.parametrize("name", FORMS)
def test_every_form(name: str) -> None:
    without = {key: value for key, value in BATCH.items() if key != "weight"}
    for batch, rows in ((BATCH, 4), (without, None)):
        found = Measure(BASIS, BASIS, {"form": FORMS[name]}, rows=rows)([batch])["form"]
        assert_close(found, expected(name, one_by_one, one_by_one, batch))
        both = Measure(MIXED, MIXED, {"form": FORMS[name]}, rows=rows)([batch])["form"]
        assert_close(both, expected(name, with_others, with_others, batch))
        pair = Measure(BASIS, MIXED, {"form": FORMS[name]}, rows=rows)([batch])["form"]
        assert_close(pair, expected(name, one_by_one, with_others, batch))


def test_all_forms_in_one_pass_in_both_precisions() -> None:
    double = Measure(MIXED, MIXED, FORMS, rows=5)([BATCH])
    single = Measure(MIXED, MIXED, FORMS, rows=5, dtype="float32")([BATCH])
    for name in FORMS:
        wanted = expected(name, with_others, with_others, BATCH)
        assert_close(double[name], wanted)
        assert_close(single[name], wanted, 3e-6)


def test_functionals() -> None:
    pairing = functional(lambda f, x: inner(f, x.potential) + inner(grad(f), x.drift))
    found = Measure(BASIS, BASIS, {"gram": gram}, {"b": pairing}, rows=4)([BATCH])["b"]
    x, w = BATCH["x"], BATCH["weight"]
    wanted = one_by_one(x, None) @ (w * BATCH["potential"])
    wanted += sum(one_by_one(x, a) @ (w * BATCH["drift"][:, a]) for a in range(3))
    assert_close(found, wanted)


def test_each_function_is_called_once_a_block_with_float64_points() -> None:
    calls: list[tuple[str, tuple[int, ...], Any]] = []

    def counted(x: Any) -> Any:
        calls.append(("value", x.shape, x.dtype))
        return features(x)

    def counted_slopes(x: Any) -> Any:
        calls.append(("gradient", x.shape, x.dtype))
        return slopes(x)

    basis = CallableBasis(counted, counted_slopes, d=3)
    calls.clear()
    forms = {name: FORMS[name] for name in ("gram", "dirichlet", "drifting")}
    Measure(basis, basis, forms, dtype="float32", rows=8)([{**BATCH, "x": BATCH["x"].astype(np.float32)}])
    assert sorted(calls) == sorted((k, (c, 3), np.dtype(float)) for k in ("value", "gradient") for c in (8, 3))


def test_what_the_functions_return_is_not_written_to() -> None:
    table = np.arange(8.0).reshape(2, 4)
    basis = CallableBasis(lambda x: table[:, : len(x)], d=1)
    Measure(basis, basis, {"gram": gram})([{"x": np.ones((4, 1)), "weight": np.full(4, 9.0)}])
    assert np.array_equal(table, np.arange(8.0).reshape(2, 4))


def test_integers_and_lists_are_functions_too() -> None:
    basis = CallableBasis(lambda x: [x[:, 0] > 0, x[:, 0] > 0.5], d=2)
    x = np.array([[-1, 0], [0.3, 0], [2, 0]])
    assert basis.size == 2
    assert np.array_equal(basis.values(x), [[0, 1, 1], [0, 0, 1]])
    assert basis.values(x).dtype == np.float64


# what a wrong one is told


def test_derivatives_that_are_not_known() -> None:
    plain = CallableBasis(features, d=3)
    assert (plain.order, BASIS.order) == (0, 1)
    whole = Concatenated((ConstantBasis(3), plain))
    with pytest.raises(
        SmoothnessError,
        match=r"laplacian takes derivatives of order 1, and the constant with the functions of features has them up "
        r"to order 0; give CallableBasis their gradient, a function x \(c, d\) -> \(p, c, d\)",
    ):
        whole.check_order(1, "laplacian")
    nested = Concatenated((MonomialBasis(3, 2), Concatenated((ConstantBasis(3), BASIS))))
    with pytest.raises(
        SmoothnessError,
        match=r"order 1; CallableBasis has first derivatives at most; use functions that have them, such",
    ):
        nested.check_order(2, "a form")
    beside = Concatenated((BASIS, LandmarkBasis(Gaussian(), np.ones((2, 3)))))
    with pytest.raises(SmoothnessError, match=r"CallableBasis has first derivatives at most"):
        beside.check_order(2, "a form")
    with pytest.raises(SmoothnessError, match=r"the gradient of the functions of features is not known; give"):
        Measure(plain, plain, {"form": dirichlet})([BATCH])
    second = form(lambda f, g, x: inner(f, partial(g, 1, 1, 0)))
    with pytest.raises(SmoothnessError, match=r"a form takes derivatives of order 2 of the functions of features"):
        Measure(BASIS, BASIS, {"form": second})([BATCH])


@pytest.mark.parametrize(
    ("function", "gradient", "message"),
    [
        (
            lambda x: features(x).T,
            None,
            r"points \(3, 3\) and returned shape \(3, 4\); it must return \(p, c\), here \(p, 3\)",
        ),
        (lambda x: features(x)[:3].T, None, r"points \(2, 3\) and returned shape \(2, 3\); .* here \(3, 2\)"),
        (lambda x: x[:, 0], None, r"returned shape \(3,\); it must return \(p, c\), here \(p, 3\)"),
        (lambda x: x[:1, :0].T, None, r"returned shape \(0, 1\)"),
        (
            lambda x: x.T @ x,
            None,
            r"the function <lambda> .* points \(2, 3\) and returned shape \(3, 3\); .* here \(3, 2\)",
        ),
        (
            features,
            lambda x: slopes(x).transpose(1, 0, 2),
            r"the gradient .* shape \(2, 4, 3\); .* here \(4, 2, 3\): functions first",
        ),
        (features, lambda x: slopes(x)[:3], r"the gradient .* returned shape \(3, 2, 3\); it must return \(p, c, d\)"),
        (
            features,
            features,
            r"the gradient features of a CallableBasis was given points \(2, 3\) and returned shape \(4, 2\)",
        ),
    ],
)
def test_wrong_shapes(function: Any, gradient: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CallableBasis(function, gradient, d=3)


def test_a_shape_that_goes_wrong_later() -> None:
    basis = CallableBasis(lambda x: features(x)[: 4 if len(x) < 5 else 3], slopes, d=3)
    with pytest.raises(ValueError, match=r"given points \(11, 3\) and returned shape \(3, 11\); .* here \(4, 11\)"):
        Measure(basis, basis, {"gram": gram})([BATCH])


def test_no_functions() -> None:
    with pytest.raises(TypeError, match=r"CallableBasis takes a function x \(c, d\) -> \(p, c\) and .*; it got 'sin'"):
        CallableBasis("sin", d=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"it got 3"):
        CallableBasis(features, 3, d=3)  # type: ignore[arg-type]
    for d in (0, 2.5, True):
        with pytest.raises(ValueError, match=rf"d, the number of variables, is a whole number of 1 or more; it is {d}"):
            CallableBasis(features, d=d)  # type: ignore[arg-type]


def test_functions_of_part_of_the_space_are_called_inside_the_unit_cube() -> None:
    basis = CallableBasis(lambda x: np.log(x).T / (1 - x.T), d=2)
    assert basis.size == 2


# saved by import path


def test_states() -> None:
    for basis in (BASIS, CallableBasis(features, d=3)):
        copy = copied(Concatenated((ConstantBasis(3), basis)))
        again = copy.parts[1]
        assert isinstance(again, CallableBasis)
        assert again.function is features
        assert again.gradient is basis.gradient
        assert (again.size, again.dimension, again.order) == (4, 3, basis.order)
        assert np.array_equal(again.values(BATCH["x"]), basis.values(BATCH["x"]))
    with pytest.raises(ValueError, match=r"cannot be saved: only functions and classes at the top level"):
        encode(CallableBasis(lambda x: x.T, d=2))
    with pytest.raises(ValueError, match=r"cannot be saved"):
        encode(CallableBasis(features, lambda x: slopes(x), d=3))
