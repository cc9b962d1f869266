"""Products by transforms, against matrices summed directly over a few rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.basis.evaluation import Arena, Block
from daskspectral.forms import Atom, Field
from daskspectral.modes import ModeTerm, ModeWeight, terms_of
from daskspectral.modes.products import FormProduct, FormProducts
from daskspectral.operators import AnisotropicDiffusion, Laplacian, Schroedinger

Array = NDArray[Any]
LATTICES = {
    1: FourierLattice(m=(6,), box=((-1.0, 2.5),)),
    2: FourierLattice(m=(2, 4), box=((0.0, 1.0), None), periods=(None, 2 * np.pi)),
    3: FourierLattice(m=(2, 1, 3), box=((0.0, 1.0), (0.0, 3.0), (-0.2, 0.1))),
}
V = ModeWeight((Field("v"),))


def laid(d: int) -> FourierLattice:
    return LATTICES[d].laid(d, None, None)


def rows(lattice: FourierLattice, n: int = 300, seed: int = 0) -> Array:
    return lattice.centre + np.random.default_rng(seed).uniform(-0.45, 0.45, (n, lattice.dimension)) * lattice.period


def summed(lattice: FourierLattice, x: Array, weight: Array) -> Array:
    """Mean modes of a weight (n,), from their definition."""
    axes = np.meshgrid(*(np.arange(-2 * m, 2 * m + 1) for m in lattice.orders), indexing="ij")
    frequencies = np.stack([axis.ravel() for axis in axes])
    waves = np.exp(-1j * (lattice.angles(x) @ frequencies))
    return np.asarray((weight @ waves / len(x)).reshape(axes[0].shape))


def feature(lattice: FourierLattice, x: Array, alpha: tuple[int, ...]) -> Array:
    if not any(alpha):
        return lattice.values(x)
    atom = Atom("partial", alpha=alpha)
    return lattice.at(Block({"x": x}, np.dtype(float), Arena()), (atom,)).feature(atom)


def dense(lattice: FourierLattice, terms: Any, x: Array, fields: dict[str, Array]) -> Array:
    """The matrix of a form, from values of the functions and their derivatives at the rows."""
    total = np.zeros((lattice.size, lattice.size))
    for term in terms:
        weight = term.weight.of(fields)
        left, right = feature(lattice, x, term.left), feature(lattice, x, term.right)
        total += term.factor * (left * (1 if weight is None else weight)) @ right.T / len(x)
    return total


def all_modes(lattice: FourierLattice, terms: Any, x: Array, fields: dict[str, Array]) -> dict[ModeWeight, Array]:
    weights = {term.weight: term.weight.of(fields) for term in terms}
    return {w: summed(lattice, x, np.ones(len(x)) if values is None else values) for w, values in weights.items()}


def agree(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


@settings(max_examples=60, deadline=None)
@given(data=st.data(), d=st.sampled_from([1, 2, 3]), seed=st.integers(0, 10**6))
def test_a_product_is_that_of_the_matrix_of_any_form(data: Any, d: int, seed: int) -> None:
    """Derivatives of all parities on both sides, with and without a weight, unequal orders and periods."""
    lattice, rng = laid(d), np.random.default_rng(seed)
    index = st.tuples(*[st.integers(0, 3)] * d)
    term = st.builds(ModeTerm, st.sampled_from([1.0, -0.5]), st.sampled_from([ModeWeight(), V]), index, index)
    terms = data.draw(st.lists(term, min_size=1, max_size=4))
    x = rows(lattice, seed=seed)
    fields = {"v": rng.standard_normal(len(x))}
    product = FormProduct(lattice, terms, all_modes(lattice, terms, x, fields))
    matrix = dense(lattice, terms, x, fields)
    vectors = rng.standard_normal((lattice.size, 3))
    agree(product @ vectors, matrix @ vectors)
    agree(product @ vectors[:, 0], matrix @ vectors[:, 0])
    agree(vectors.T @ product, vectors.T @ matrix)
    np.testing.assert_allclose(product.diagonal(), np.diag(matrix), atol=1e-12 * np.abs(matrix).max())


def test_a_term_given_twice_counts_twice_in_the_matrix_and_in_its_transpose() -> None:
    lattice = laid(2)
    x = rows(lattice)
    value = ModeTerm(-0.5, ModeWeight(), (0, 0), (1, 1))
    slope = ModeTerm(-0.5, ModeWeight(), (1, 0), (0, 1))
    vectors = np.random.default_rng(0).standard_normal((lattice.size, 3))
    for term in value, slope:
        terms = [term, term, replace(term, left=term.right, right=term.left)]
        product = FormProduct(lattice, terms, all_modes(lattice, terms, x, {}))
        matrix = dense(lattice, terms, x, {})
        agree(product @ vectors, matrix @ vectors)
        agree(vectors.T @ product, vectors.T @ matrix)
        once = FormProduct(lattice, [term], all_modes(lattice, terms, x, {}))
        agree(product @ vectors, 2 * (once @ vectors) + (vectors.T @ once).T)
        assert not np.allclose(product @ vectors, (vectors.T @ product).T)  # not symmetric: the transpose is one


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", ["Laplacian", "Schroedinger", "AnisotropicDiffusion"])
def test_products_of_an_operators_forms_share_transforms_and_are_those_of_each(d: int, name: str) -> None:
    lattice = laid(d)
    x, rng = rows(lattice), np.random.default_rng(1)
    roots = rng.standard_normal((len(x), d, d))
    fields = {"potential": rng.standard_normal(len(x)), "columns of diffusion": roots}
    operator = {
        "Laplacian": Laplacian(),
        "Schroedinger": Schroedinger("potential"),
        "AnisotropicDiffusion": AnisotropicDiffusion("diffusion"),
    }[name]
    forms = [terms_of(form.expression, d) for form in (operator.gram, operator.form)]
    modes = all_modes(lattice, [term for form in forms for term in form], x, fields)
    vectors = rng.standard_normal((lattice.size, 4))
    found = FormProducts(lattice, forms, modes)(vectors)
    threaded = FormProducts(lattice, forms, modes, workers=2)(vectors)
    for form, product, same in zip(forms, found, threaded, strict=True):
        agree(product, dense(lattice, form, x, fields) @ vectors)
        np.testing.assert_array_equal(product, same)


def test_the_constant_is_killed_by_a_form_of_derivatives_alone() -> None:
    lattice = laid(2)
    x = rows(lattice)
    terms = terms_of(Laplacian().form.expression, 2)
    product = FormProduct(lattice, terms, all_modes(lattice, terms, x, {}))
    assert (product @ np.random.default_rng(0).standard_normal(lattice.size))[0] == 0
    constant = np.eye(lattice.size)[0]
    np.testing.assert_allclose(product @ constant, 0, atol=1e-12 * np.abs(product.diagonal()).max())


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_truncated_lattice_has_a_block_of_the_matrices(d: int) -> None:
    lattice = laid(d)
    x = rows(lattice)
    forms = [terms_of(form.expression, d) for form in (Laplacian().gram, Laplacian().form)]
    products = FormProducts(lattice, forms, all_modes(lattice, forms[0], x, {}))
    lower = products.truncated((1,) * d)
    places = lattice.places(lower.lattice)
    assert lower.lattice.orders == (1,) * d
    assert len(set(places)) == 3**d
    for small, large in zip(lower(np.eye(3**d)), products(np.eye(lattice.size)), strict=True):
        agree(small, large[np.ix_(places, places)])


def test_modes_of_another_lattice_or_weight_are_refused() -> None:
    lattice = laid(2)
    term = ModeTerm(1.0, V, (0, 0), (0, 0))
    with pytest.raises(ValueError, match=r"the modes of the weight v; there are those of 1"):
        FormProduct(lattice, [term], {ModeWeight(): np.zeros((9, 17), dtype=complex)})
    with pytest.raises(ValueError, match=r"have shape \(9, 9\); a lattice of these orders needs \(9, 17\)"):
        FormProduct(lattice, [term], {V: np.zeros((9, 9), dtype=complex)})
    product = FormProduct(lattice, [term], {V: np.zeros((9, 17), dtype=complex)})
    with pytest.raises(ValueError, match=r"vectors have shape \(45,\) or \(45, k\); got \(44,\)"):
        product @ np.zeros(44)
