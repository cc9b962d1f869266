"""Forms as data: what a traced expression holds, what it equals, what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from daskspectral.forms import (
    Atom,
    AtomProduct,
    Field,
    Pairing,
    Term,
    along,
    along_each,
    at,
    form,
    functional,
    grad,
    inner,
    partial,
    second,
)

VALUE, GRADIENT = Atom("value"), Atom("gradient")


def terms(function: Callable[..., Any]) -> tuple[tuple[float, AtomProduct], ...]:
    return form(function).expression.terms


# tracing


def test_arithmetic_of_expressions() -> None:
    d1, d2 = Atom("partial", alpha=(1, 0)), Atom("partial", alpha=(0, 1))
    expected = ((2.0, AtomProduct(VALUE, Atom("sum", terms=(Term(1.0, None, d1), Term(-3.0, None, d2))))),)
    assert terms(lambda f, g, x: inner(2 * f, partial(g, 1, 0) - 3 * partial(g, 0, 1))) == expected
    assert terms(lambda f, g, x: -inner(-2 * f, partial(g, 1, 0) - partial(g, 0, 1) * 3)) == expected
    assert terms(lambda f, g, x: inner(partial(f, 1, 0), 3 * g - g * 5)) == ((-2.0, AtomProduct(d1, VALUE)),)
    assert terms(lambda f, g, x: inner(f, sum([g, g]))) == ((2.0, AtomProduct(VALUE, VALUE)),)
    weighted = ((1.0, AtomProduct(VALUE, VALUE, Field("w"))),)
    assert terms(lambda f, g, x: inner(f * x.w, g)) == weighted
    assert terms(lambda f, g, x: inner(f, x.w * g)) == weighted
    assert terms(lambda f, g, x: inner(f, g, weight=x.w)) == weighted
    assert terms(lambda f, g, x: inner(g, f, weight=x.w)) == weighted  # f is on the left, whatever the order
    assert terms(lambda f, g, x: inner(f / 4, g) / np.float64(2)) == ((0.125, AtomProduct(VALUE, VALUE)),)
    assert terms(lambda f, g, x: inner(f, g * x.w) / 2) == ((0.5, AtomProduct(VALUE, VALUE, Field("w"))),)
    assert functional(lambda f, x: inner(f, x.y) / 2).expression.terms == ((0.5, Pairing(VALUE, Field("y"))),)
    assert terms(lambda f, g, x: 2 * inner(f, g) - inner(f, g) * 3) == (
        (2.0, AtomProduct(VALUE, VALUE)),
        (-3.0, AtomProduct(VALUE, VALUE)),
    )


def test_a_sum_is_one_product() -> None:
    v, w = Field("v"), Field("w")
    lg = form(lambda f, g, x: inner(f, along(g, x.v) + x.w * at(g, x.y) - 2 * second(g, x.a)))
    drift, later, curved = Atom("along", direction=v), Atom("value", view="y"), Atom("second", direction=Field("a"))
    total = Atom("sum", terms=(Term(1.0, None, drift), Term(1.0, w, later), Term(-2.0, None, curved)))
    assert lg.expression.terms == ((1.0, AtomProduct(VALUE, total)),)
    assert lg.orders == (0, 2)
    assert lg.fields == {"x", "y", "v", "w", "a"}
    pairs = list(AtomProduct(total, total, v).expanded)
    assert len(pairs) == 9
    assert pairs[4] == (1.0, AtomProduct(later, later), (v, w, w))
    assert pairs[8] == (4.0, AtomProduct(curved, curved), (v,))


def test_vectors_are_paired_coordinate_by_coordinate() -> None:
    each = Atom("each", direction=Field("t"))
    assert each.vector
    assert each.leaves == (Atom("along", direction=Field("t")),)
    assert terms(lambda f, g, x: inner(along_each(f, x.t), 2 * along_each(g, x.t))) == ((2.0, AtomProduct(each, each)),)
    later = Atom("gradient", view="y")
    assert terms(lambda f, g, x: inner(grad(f), grad(g) - at(grad(g), x.y))) == (
        (1.0, AtomProduct(GRADIENT, GRADIENT)),
        (-1.0, AtomProduct(GRADIENT, later)),
    )
    assert Atom("second").order == 2
    assert not Atom("second").vector


def test_functionals() -> None:
    b = functional(lambda f, x: inner(f, x.y) - 2 * inner(along(f, x.t), 1, weight=x.w) + sum([inner(f, 3)]))
    assert b.expression.terms == (
        (1.0, Pairing(VALUE, Field("y"))),
        (-2.0, Pairing(Atom("along", direction=Field("t")), None, Field("w"))),
        (3.0, Pairing(VALUE, None)),
    )
    assert b.fields == {"x", "y", "t", "w"}
    assert functional(lambda f, x: -inner(f * x.w, x.y[2])).expression.terms == (
        (-1.0, Pairing(VALUE, Field("y", 2), Field("w"))),
    )


@pytest.mark.parametrize(
    ("function", "symmetric"),
    [
        (lambda f, g, x: inner(partial(f, 1), g) + inner(f, partial(g, 1)), True),
        (lambda f, g, x: inner(partial(f, 1), g) - inner(f, partial(g, 1)), False),
        (lambda f, g, x: inner(f, at(g, x.y)) + inner(at(f, x.y), g), True),
        (lambda f, g, x: inner(f - partial(f, 1), g + partial(g, 1)), False),
        (lambda f, g, x: inner(f, g * x.a + partial(g, 1) * x.b) + inner(partial(f, 1), g, weight=x.b), True),
        (lambda f, g, x: inner(f, g * x.a + partial(g, 1) * x.b) + inner(partial(f, 1), g, weight=x.a), False),
        (
            lambda f, g, x: (
                inner(partial(f, 1) * x.b + f, g * x.a + partial(g, 1))
                + inner(f * x.a + partial(f, 1), partial(g, 1) * x.b + g)
            ),
            True,
        ),
        (lambda f, g, x: inner(along_each(f, x.t), along_each(g, x.t)), True),
        (lambda f, g, x: inner(along_each(f, x.s), along_each(g, x.t)), False),
        (lambda f, g, x: inner(f, second(g)), False),
    ],
)
def test_symmetry(function: Callable[..., Any], symmetric: bool) -> None:
    assert form(function).symmetric is symmetric


@pytest.mark.parametrize(
    ("function", "null"),
    [
        (lambda f, g, x: inner(grad(f), grad(g)), True),
        (lambda f, g, x: inner(grad(f), grad(g)) + inner(f, g, weight=x.a), False),
        (lambda f, g, x: inner(f, along(g, x.t) + second(g)), True),
        (lambda f, g, x: inner(partial(f, 1), g), False),
        (lambda f, g, x: 0.5 * inner(f - at(f, x.y), g - at(g, x.y)), True),
        (lambda f, g, x: inner(f, 2 * at(g, x.y) - at(g, x.z) - g), True),
        (lambda f, g, x: inner(f, g * x.a - at(g, x.y) * x.b), False),
    ],
)
def test_forms_know_whether_they_annihilate_constants(function: Callable[..., Any], null: bool) -> None:
    assert form(function).annihilates_constants is null


# what is refused


def test_what_is_no_form_is_refused() -> None:
    for function in (
        lambda f, g, x: inner(f, f),
        lambda f, g, x: inner(grad(f), g),
        lambda f, g, x: f * g,
        lambda f, g, x: inner(grad(f * x.w), grad(g)),
        lambda f, g, x: inner(f * x.w, g * x.w),
        lambda f, g, x: inner(f, g, weight=x.a * x.b),
    ):
        with pytest.raises((ValueError, TypeError)):
            form(function)
