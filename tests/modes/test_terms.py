"""Terms of forms as modes, and the values of their weights."""

from typing import Any

import numpy as np
import pytest

from daskspectral.forms import Field, along, along_each, at, form, grad, inner, partial, second
from daskspectral.modes.matrices import ModeWeight, terms_of
from daskspectral.moments.modes import weights_of
from daskspectral.operators import Cross

Weights = dict[Any, float]


def by_key(terms: Any) -> Weights:
    found = {(t.weight.name, t.left, *([t.right] if hasattr(t, "right") else [])): t.factor for t in terms}
    assert len(found) == len(terms)  # each once
    return found


CASES: list[tuple[Any, Weights]] = [
    (
        lambda f, g, x: inner(grad(f), grad(g)) + inner(f, g, weight=x.v) * 3,
        {("1", (1, 0), (1, 0)): 1.0, ("1", (0, 1), (0, 1)): 1.0, ("v", (0, 0), (0, 0)): 3.0},
    ),
    (  # terms that cancel are none, equal ones are one
        lambda f, g, x: inner(f, g) + inner(f, g) + inner(grad(f), grad(g)) - inner(grad(f), grad(g)),
        {("1", (0, 0), (0, 0)): 2.0},
    ),
    (lambda f, g, x: inner(along(f, x.u), g * 2), {("u[0]", (1, 0), (0, 0)): 2.0, ("u[1]", (0, 1), (0, 0)): 2.0}),
    (
        lambda f, g, x: inner(second(f), partial(g, 0, 1)) + inner(second(f, x.a), g),
        {
            **{("1", (2, 0), (0, 1)): 1.0, ("1", (0, 2), (0, 1)): 1.0},
            **{(f"a[{i}, {j}]", (2 - i - j, i + j), (0, 0)): 1.0 for i in (0, 1) for j in (0, 1)},
        },
    ),
]


@pytest.mark.parametrize(("expression", "wanted"), CASES)
def test_the_terms_of_a_form(expression: Any, wanted: Weights) -> None:
    assert by_key(terms_of(form(expression).expression, 2)) == wanted


def test_weights_are_one_in_any_order() -> None:
    """The product of v and w has one set of modes, whichever is written first."""
    one = form(lambda f, g, x: inner(x.v * f + partial(f, 1), x.w * g + partial(g, 1)))
    other = form(lambda f, g, x: inner(x.w * f + partial(f, 1), x.v * g + partial(g, 1)))
    for own in (one, other):
        assert {t.weight.name for t in terms_of(own.expression, 1)} == {"v * w", "v", "w", "1"}
    each = form(lambda f, g, x: inner(along_each(f, x.u), along_each(g, x.u)))
    assert len({t.weight for t in terms_of(each.expression, 3)}) == 6  # of a symmetric matrix
    several = form(lambda f, g, x: inner(along_each(f, x.u), along_each(g, x.v)))
    assert len({t.weight for t in terms_of(several.expression, 3)}) == 9


def test_the_values_of_weights() -> None:
    rng = np.random.default_rng(0)
    fields = {"v": rng.random(5), "y": rng.random((5, 2)), "u": rng.random((5, 3, 2)), "w": rng.random((5, 3, 2))}
    assert ModeWeight().of(fields) is None
    product = ModeWeight((Field("v"), Field("y"))).of(fields)
    np.testing.assert_array_equal(product, fields["v"][:, None] * fields["y"])  # type: ignore[arg-type]
    each = ModeWeight((Field("v"),), (Field("u"), 0, Field("w"), 1))
    wanted = fields["v"] * np.sum(fields["u"][:, :, 0] * fields["w"][:, :, 1], axis=1)
    np.testing.assert_allclose(each.of(fields), wanted)  # type: ignore[arg-type]
    assert each.name == "v * sum(u[:, 0] * w[:, 1])"


def test_functions_at_two_points_have_no_modes() -> None:
    with pytest.raises(ValueError, match=r"future|two points"):
        weights_of(Cross(), 2)
    pair = form(lambda f, g, x: inner(f, at(g, x.future)))
    with pytest.raises(ValueError, match="future"):
        terms_of(pair.expression, 2)
