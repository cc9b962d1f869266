"""Monomials: exponents, thousands of functions, overflow. Their sums are in test_contraction."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import MonomialBasis
from daskspectral.forms import form, gram, inner, partial
from daskspectral.moments import Measure
from tests.common import assert_close, copied

BATCH = {"x": np.random.default_rng(0).standard_normal((12, 2))}


def test_derivatives_above_the_degree_are_exactly_zero() -> None:
    basis = MonomialBasis(2, 2)
    cubic = form(lambda f, g, x: inner(partial(f, 2, 1), g))
    quadratic = form(lambda f, g, x: inner(partial(f, 2, 0), g))
    beside = form(lambda f, g, x: inner(partial(f, 2, 1) - f, g))
    sums = Measure(basis, basis, {"cubic": cubic, "quadratic": quadratic, "beside": beside, "gram": gram})([BATCH])
    assert_close(sums["beside"], -sums["gram"])
    assert not sums["cubic"].any()
    assert sums["quadratic"].any(axis=1).tolist() == [False, False, False, True, False, False]


@settings(max_examples=30)
@given(
    d=st.integers(1, 5),
    degree=st.integers(1, 5),
    constant=st.booleans(),
    scale=st.floats(0.2, 5),
    n=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_values_and_exponents(d: int, degree: int, constant: bool, scale: float, n: int, seed: int) -> None:
    """Every exponent once, by degree."""
    basis = MonomialBasis(d, degree, constant=constant, scale=scale)
    every = {e for e in itertools.product(range(degree + 1), repeat=d) if (not constant) <= sum(e) <= degree}
    exponents = basis.exponents
    assert {tuple(e) for e in exponents.tolist()} == every
    assert len(exponents) == len(every) == basis.size
    assert (np.diff(exponents.sum(axis=1)) >= 0).all()
    x = np.random.default_rng(seed).standard_normal((n, d))
    powers = (x / scale) ** exponents[:, None, :]
    np.testing.assert_allclose(basis.values(x), np.prod(powers, axis=2), rtol=1e-13, atol=0)


@pytest.mark.parametrize(("dtype", "reach", "fits"), [("float32", 300.0, 30.0), ("float64", 1e25, 1e20)])
def test_powers_that_overflow_are_named(dtype: str, reach: float, fits: float) -> None:
    basis = MonomialBasis(2, 6)
    reached = f"{reach:.6g}".replace("+", r"\+")
    with pytest.raises(ValueError, match=f"reach {reached}, and sums of squares of their power 6 overflow {dtype}; "):
        basis.values(np.array([[0.1, -reach]]), dtype)
    assert np.isfinite(basis.values(np.array([[0.1, -fits]]), dtype) ** 2).all()
    assert np.isfinite(MonomialBasis(2, 6, scale=reach).values(np.array([[0.1, -reach]]), dtype)).all()


def test_states_and_refusals() -> None:
    basis = MonomialBasis(3, 4, constant=False, scale=2.0)
    assert copied(basis) == basis
    assert (basis.order, basis.lead, basis.description) == (math.inf, 1, "monomials up to degree 4")
    with pytest.raises(ValueError, match="degree of MonomialBasis is a whole number of 1 or more; it is True"):
        MonomialBasis(2, degree=True)
    with pytest.raises(ValueError, match="scale of MonomialBasis is a positive number; it is 'median'"):
        MonomialBasis(2, 2, scale="median")  # type: ignore[arg-type]
