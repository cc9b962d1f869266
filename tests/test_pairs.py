"""Sums over pairs: against the double loop over points, however they are cut into clouds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral import pairs
from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian, Polynomial
from daskspectral.pairs import Cloud, CloudGram, PairMeasure, dirichlet_form

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
MASS = RNG.uniform(0.5, 2, 40)
BASIS = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.3), X[:6])))
PHI = BASIS.values(X)


def double_loop(w: np.ndarray, phi: np.ndarray = PHI, mass: np.ndarray = MASS) -> np.ndarray:
    """Equation (16), one pair after the other."""
    total = np.zeros((len(phi), len(phi)))
    for i in range(len(w)):
        for j in range(len(w)):
            difference = phi[:, i] - phi[:, j]
            total += mass[i] * mass[j] * w[i, j] * np.outer(difference, difference)
    return total


def measured(weights: object, cuts: list[int], basis: object = BASIS) -> tuple[np.ndarray, np.ndarray]:
    """The form of `PairMeasure` over clouds that are cut there, and the degrees."""
    edges = [0, *sorted(cuts), len(X)]
    clouds = [Cloud(X[a:b], MASS[a:b]) for a, b in pairwise(edges)]
    gram = CloudGram.about(basis, X[:6].mean(axis=0))
    measure = PairMeasure(weights, {"cross": gram})
    cross, degrees = 0, [np.zeros(len(c)) for c in clouds]
    for i, cloud in enumerate(clouds):
        found = measure(i, cloud, [(j, clouds[j]) for j in range(i)])
        cross = cross + found.cross["cross"]
        for j, degree in found.degrees.items():
            degrees[j] = degrees[j] + degree
    diagonal = sum(gram(Cloud(c.x, c.mass * s)) for c, s in zip(clouds, degrees, strict=True))
    return dirichlet_form(diagonal, cross), np.concatenate(degrees)


@pytest.mark.parametrize("weights", [Gaussian(0.7), Exponential(2.0), Polynomial(2)], ids=str)
@given(cuts=st.lists(st.integers(0, 40), max_size=4), block=st.integers(1, 50))
@settings(max_examples=8)
def test_against_the_double_loop(weights: object, cuts: list[int], block: int) -> None:
    w = weights(X, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "BLOCK", block)
        form, degrees = measured(weights, cuts)
    wanted = double_loop(w)
    np.testing.assert_allclose(form, wanted, rtol=1e-11, atol=1e-12 * np.abs(wanted).max())
    np.testing.assert_allclose(degrees, w @ MASS, rtol=1e-12)


def test_the_constant_gives_exact_zeros() -> None:
    form, _ = measured(Gaussian(0.7), [7, 20])
    assert not form[0].any()
    assert not form[:, 0].any()
