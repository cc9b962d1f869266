"""Products by transforms, against matrices summed directly over a few rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.basis import FourierLattice
from daskspectral.forms import Field
from daskspectral.modes import ModeTerm, ModeWeight, terms_of
from daskspectral.modes.products import FormProducts, Quadratic
from daskspectral.operators import AnisotropicDiffusion, Laplacian, Schroedinger
from tests.modes.common import direct, waves

LATTICES = {
    1: FourierLattice(m=(6,), box=((-1.0, 2.5),)),
    2: FourierLattice(m=(2, 4), box=((0.0, 1.0), None), periods=(None, 2 * np.pi)),
    3: FourierLattice(m=(2, 1, 3), box=((0.0, 1.0), (0.0, 3.0), (-0.2, 0.1))),
}
V = ModeWeight((Field("v"),))


def problem(d: int, seed: int = 0, n: int = 60) -> tuple[FourierLattice, Any, dict[str, Any]]:
    """A lattice, rows, and fields of them."""
    lattice, rng = LATTICES[d].on_box(d, None, None), np.random.default_rng(seed)
    x = lattice.centre + rng.uniform(-0.45, 0.45, (n, d)) * lattice.period
    return lattice, x, {"v": rng.standard_normal(n), "columns of diffusion": rng.standard_normal((n, d, d))}


def dense(lattice: FourierLattice, terms: Any, x: Any, fields: dict[str, Any]) -> Any:
    """The matrix of a form, from values of the functions and their derivatives at the rows."""
    total = np.zeros((lattice.size, lattice.size))
    for term in terms:
        weight = np.ones(len(x)) if term.weight.of(fields) is None else term.weight.of(fields)
        total += term.factor * (waves(lattice, x, term.left) * weight) @ waves(lattice, x, term.right).T / len(x)
    return total


def all_modes(lattice: FourierLattice, terms: Any, x: Any, fields: dict[str, Any]) -> dict[ModeWeight, Any]:
    """The mean modes of the terms' weights."""
    found = {}
    for weight in {term.weight for term in terms}:
        values = np.ones(len(x)) if weight.of(fields) is None else np.asarray(weight.of(fields))
        orders = tuple(2 * m for m in lattice.orders)
        found[weight] = direct(orders, lattice.angles(x), values[None])[0] / len(x)
    return found


def agree(found: Any, expected: Any, scale: Any = None) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected if scale is None else scale).max())


@given(data=st.data(), d=st.sampled_from([1, 2, 3]), seed=st.integers(0, 10**6))
def test_a_product_is_that_of_the_matrix_of_any_form(data: Any, d: int, seed: int) -> None:
    """Derivatives of all parities on both sides, with and without a weight, unequal orders and periods."""
    lattice, x, fields = problem(d, seed)
    index = st.tuples(*[st.integers(0, 3)] * d)
    term = st.builds(ModeTerm, st.sampled_from([1.0, -0.5]), st.sampled_from([ModeWeight(), V]), index, index)
    terms = data.draw(st.lists(term, min_size=1, max_size=4))
    products = FormProducts(lattice, [terms], all_modes(lattice, terms, x, fields))
    matrix, vectors = dense(lattice, terms, x, fields), np.random.default_rng(seed).standard_normal((lattice.size, 3))
    agree(products(vectors)[0], matrix @ vectors)
    agree(products(vectors[:, 0])[0], matrix @ vectors[:, 0])
    agree(products.diagonals()[0], np.diag(matrix), matrix)


@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients_by_quadratic_forms(symmetric: bool) -> None:
    """Terms of first derivatives that are symmetric take two transforms back; a term given twice counts twice."""
    lattice, x, fields = problem(3)
    a, b, c = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    entries: Any = [(2.0, a, a), (0.7, a, b), (0.7 if symmetric else 0.2, b, a), (-0.4, c, c)]
    terms = [ModeTerm(factor, V, left, right) for factor, left, right in [*entries, *entries]]
    assert Quadratic.half(terms[:4]).is_symmetric is symmetric
    vectors = np.random.default_rng(0).standard_normal((lattice.size, 3))
    (product,) = FormProducts(lattice, [terms], all_modes(lattice, terms, x, fields))(vectors)
    agree(product, dense(lattice, terms, x, fields) @ vectors)
    assert product[0].tolist() == [0, 0, 0]  # of derivatives alone


@pytest.mark.parametrize(
    ("operator", "d", "transforms"),
    [
        (Laplacian(), 1, (2, 2)),
        (Laplacian(), 3, (2, 2)),
        (Schroedinger("v"), 2, (2, 2)),
        (AnisotropicDiffusion("diffusion"), 2, (3, 3)),
    ],
)
def test_products_of_an_operators_forms_share_transforms(operator: Any, d: int, transforms: Any) -> None:
    lattice, x, fields = problem(d)
    forms = [terms_of(form.expression, d) for form in (operator.gram, operator.form)]
    modes = all_modes(lattice, [term for form in forms for term in form], x, fields)
    vectors = np.random.default_rng(1).standard_normal((lattice.size, 4))
    products = FormProducts(lattice, forms, modes)
    assert (len(products._steps.rights), len(products._steps.lefts)) == transforms
    threaded = FormProducts(lattice, forms, modes, workers=2)(vectors)
    for form, product, same in zip(forms, products(vectors), threaded, strict=True):
        agree(product, dense(lattice, form, x, fields) @ vectors)
        np.testing.assert_array_equal(product, same)


@pytest.mark.parametrize(
    ("weight", "shape", "vectors", "match"),
    [
        (ModeWeight(), (9, 17), (45,), r"the modes of the weight v; there are those of 1"),
        (V, (9, 9), (45,), r"have shape \(9, 9\); a lattice of these orders needs \(9, 17\)"),
        (V, (9, 17), (44,), r"vectors have shape \(45,\) or \(45, k\); got"),
        (V, (9, 17), (45, 2, 2), r"vectors have shape \(45,\) or \(45, k\); got"),
    ],
)
def test_what_does_not_fit_is_refused(weight: Any, shape: Any, vectors: Any, match: str) -> None:
    terms = [ModeTerm(1.0, V, (0, 0), (0, 0))]
    with pytest.raises(ValueError, match=match):
        FormProducts(problem(2)[0], [terms], {weight: np.zeros(shape, dtype=complex)})(np.zeros(vectors))
