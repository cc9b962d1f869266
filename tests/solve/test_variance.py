"""Theorem 1's variance term against its formula written out, and the spread over rows against a loop over rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.forms import form, inner, partial
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Sphere
from daskspectral.moments import Measure
from daskspectral.moments.spread import FormSpread
from daskspectral.operators import Augmentation, Generator, Laplacian, Operator, Schroedinger, SymmetricForm
from daskspectral.solve.extremes import Largest
from daskspectral.solve.variance import (
    bernstein_deviation,
    energy_basis,
    theorem_term,
)
from tests.solve.common import spd

CUT = 1e-12


def symmetric(p: int, rng: np.random.Generator) -> Any:
    """Eigenvalues of both signs, away from 0."""
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return q * (rng.choice([-1, 1], p) * rng.uniform(0.2, 2, p)) @ q.T


@settings(max_examples=40, deadline=None)
@given(p=st.integers(1, 8), killed=st.integers(0, 3), seed=st.integers(0, 1000))
def test_the_form_is_diagonal_in_the_energy_basis_and_what_it_kills_is_off(p: int, killed: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gram, form = spd(p + killed, rng, 0.2, 2), np.zeros((p + killed, p + killed))
    form[killed:, killed:] = symmetric(p, rng)
    order = rng.permutation(p + killed)
    gram, form = gram[np.ix_(order, order)], form[np.ix_(order, order)]
    zero = order < killed
    energy = energy_basis(form, gram, CUT)
    assert energy.deflated == killed
    assert energy.matrix.shape == (p + killed, p)
    # the quotient by the killed functions has the Schur complement for its Gram matrix
    inside, across = gram[np.ix_(zero, zero)], gram[np.ix_(zero, ~zero)]
    quotient = gram[np.ix_(~zero, ~zero)] - across.T @ np.linalg.solve(inside, across)
    expected = scipy.linalg.eigh(form[np.ix_(~zero, ~zero)], quotient, eigvals_only=True)
    np.testing.assert_allclose(energy.values, expected, rtol=1e-9)
    u = energy.matrix
    np.testing.assert_allclose(u.T @ form @ u, np.diag(np.sign(expected)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(u.T @ gram @ u, np.diag(1 / np.abs(expected)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(gram[zero] @ u, 0, atol=1e-10)


def test_a_form_that_is_not_invertible_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kills every function"):
        energy_basis(np.zeros((2, 2)), np.eye(2), CUT)
    v = np.array([1.0, 1.0])  # no function of the basis is killed, but their difference is
    with pytest.raises(ValueError, match=r"not invertible .* 2 eigenvalues .* leave out functions"):
        energy_basis(np.outer(v, v), np.eye(2), CUT)


@settings(max_examples=30, deadline=None)
@given(
    p=st.integers(1, 6),
    largest=st.floats(0.1, 10),
    count=st.integers(10, 10**9),
    delta=st.floats(1e-6, 0.9),
    seed=st.integers(0, 1000),
)
def test_theorem_1_as_printed(p: int, largest: float, count: int, delta: float, seed: int) -> None:
    """The first term of (8) with square roots and inverses of matrices, for the energy basis as F and G."""
    rng = np.random.default_rng(seed)
    gram, form = spd(p, rng, 0.2, 2), symmetric(p, rng)
    energy = energy_basis(form, gram, CUT)
    u = energy.matrix
    matrix, root = u.T @ form @ u, scipy.linalg.sqrtm(u.T @ gram @ u).real
    inverse = np.linalg.inv(matrix)
    t = math.sqrt(8 * p**2 * largest**2 / (3 * count) * math.log(2 * p / delta))
    expected = 3 * np.linalg.norm(root @ inverse, 2) * np.linalg.norm(inverse @ root, 2) * t
    found, rows = theorem_term(energy.inverse, p, largest, count, delta)
    assert found == pytest.approx(expected, rel=1e-8)
    # from so many rows on, |L^-1 (Lhat - L)| <= |L^-1| t <= 1/2, as Lemma 2 wants
    deviations = [math.sqrt(8 * p**2 * largest**2 / (3 * n) * math.log(2 * p / delta)) for n in (rows, rows - 1)]
    assert np.linalg.norm(inverse, 2) == pytest.approx(1, rel=1e-9)
    assert deviations[0] <= 0.5 * (1 + 1e-12)
    assert rows >= 3 * math.log(2 * p / delta)
    assert deviations[1] > 0.5 or rows - 1 < 3 * math.log(2 * p / delta)


@settings(max_examples=50, deadline=None)
@given(
    second=st.floats(1e-3, 1e3),
    peak=st.floats(1e-3, 1e3),
    rank=st.integers(1, 500),
    count=st.integers(1, 10**9),
    delta=st.floats(1e-9, 0.9),
)
def test_bernstein_is_turned_round(second: float, peak: float, rank: int, count: int, delta: float) -> None:
    t = bernstein_deviation(second, peak, rank, count, delta)
    exponent = -count * t**2 / 2 / (second + 2 * peak * t / 3)
    assert math.log(2 * rank) + exponent == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)


def test_bernstein_covers_random_matrices() -> None:
    """Diagonal matrices of independent +-1, the worst case: the chance to be wrong stays below delta, not by much."""
    rng = np.random.default_rng(0)
    rank, count, delta, trials = 5, 200, 0.1, 2000
    means = rng.choice([-1.0, 1.0], (trials, count, rank)).mean(axis=1)
    t = bernstein_deviation(1.0, 1.0, rank, count, delta)
    wrong = np.mean(np.abs(means).max(axis=1) > t)
    assert 0.002 < wrong <= delta


N, D = 11, 3
RNG = np.random.default_rng(3)
SIDES = RNG.standard_normal((N, D))
FIELDS = {
    "x": SIDES / np.linalg.norm(SIDES, axis=1, keepdims=True),
    "x1": RNG.standard_normal((N, D)),
    "weight": RNG.random(N) + 0.5,
    "potential": RNG.standard_normal(N),
    "drift": RNG.standard_normal((N, D)),
    "diffusion": RNG.standard_normal((N, D, 2)),
}
BASES: dict[str, Callable[[], Basis]] = {
    "monomials": lambda: MonomialBasis(D, 2),
    "landmarks": lambda: Concatenated(
        (ConstantBasis(D), LandmarkBasis(Gaussian(1.2), np.random.default_rng(1).standard_normal((6, D))))
    ),
}


def wave(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 1, 0, 0), partial(g, 1, 0, 0)) - inner(partial(f, 0, 1, 0), partial(g, 0, 1, 0))


OPERATORS: dict[str, Operator] = {
    "laplacian": Laplacian(),
    "on the sphere": Laplacian(Sphere(D)),
    "signed potential": Schroedinger(),
    "reversible generator": Generator(reversible=True),
    "augmentation": Augmentation(2),
    "squares of both signs": SymmetricForm(form(wave)),
}


def batch_of(operator: Operator, rows: Any = slice(None), weighted: bool = True) -> dict[str, Any]:
    names = {"x", *operator.data_fields, *operator.views} | ({"weight"} if weighted else set())
    return {name: FIELDS.get(name, FIELDS["x1"])[rows] for name in names}


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_spread_is_that_of_single_rows(name: str, basis: str, weighted: bool) -> None:
    operator, functions = OPERATORS[name], BASES[basis]()
    rng = np.random.default_rng(5)
    span, some, values = (rng.standard_normal((functions.size, k)) for k in (4, 2, 1))
    values = values[:2, 0]
    measure = Measure(functions, functions, operator.forms, {}, operator, rows=4)
    found = FormSpread(measure, span, some, values)([batch_of(operator, weighted=weighted)])
    second, squares, peak, largest = np.zeros((4, 4)), np.zeros(2), 0.0, 0.0
    for k in range(N):
        sums = measure([batch_of(operator, slice(k, k + 1), weighted)])
        a = span.T @ sums["form"] @ span
        second += a @ a.T
        peak, largest = max(peak, float(np.linalg.norm(a))), max(largest, float(np.abs(a).max()))
        for i in range(2):
            f = some[:, i]
            squares[i] += (f @ sums["form"] @ f - values[i] * (f @ sums["gram"] @ f)) ** 2
    np.testing.assert_allclose(found["second"], second, rtol=0, atol=1e-10 * np.abs(second).max())
    np.testing.assert_allclose(found["squares"], squares, rtol=1e-9)
    assert found["peak"].value == pytest.approx(peak, rel=1e-9)
    assert found["largest"].value == pytest.approx(largest, rel=1e-9)


def test_the_largest_entry_may_be_off_the_diagonal() -> None:
    """x_0 + x_1 and x_0 - x_1 have H = 0 with themselves and 2 with each other."""
    operator, functions = OPERATORS["squares of both signs"], MonomialBasis(D, 1)
    span = np.array([[0, 0], [1, 1], [1, -1], [0, 0]], dtype=float)
    span = span[[0, *(1 + functions.exponents[1:] @ np.arange(D))]]
    measure = Measure(functions, functions, operator.forms, {}, operator)
    found = FormSpread(measure, span, span, np.zeros(2))([batch_of(operator, weighted=False)])
    assert (found["largest"].value, found["peak"].value) == (pytest.approx(2), pytest.approx(8**0.5))


@settings(max_examples=20, deadline=None)
@given(cut=st.integers(1, N - 1))
def test_two_parts_add_to_the_whole(cut: int) -> None:
    operator, functions = OPERATORS["laplacian"], BASES["monomials"]()
    rng = np.random.default_rng(6)
    measure = Measure(functions, functions, operator.forms, {}, operator)
    task = FormSpread(measure, rng.standard_normal((10, 4)), rng.standard_normal((10, 2)), np.ones(2))
    whole = task([batch_of(operator)])
    parts = [task([batch_of(operator, rows)]) for rows in (slice(cut), slice(cut, None))]
    for key, value in whole.items():
        total = parts[0][key] + parts[1][key]
        if isinstance(value, Largest):
            assert total.value == pytest.approx(value.value, rel=1e-12)
        else:
            np.testing.assert_allclose(total, value, rtol=0, atol=1e-11 * np.abs(value).max())
