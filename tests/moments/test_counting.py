"""How many rows weights count as, and what is said where this may not have been meant."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.errors import WeightWarning
from daskspectral.kernels import Gaussian
from daskspectral.moments import Moments
from daskspectral.moments.counting import advise_weights, counted_rows

N = 400
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2))
MODEL = dsp.SpectralDecomposition(kernel=Gaussian(1.0), landmarks=X[:20] + 0.01, n_components=3)


def measured(weights: Any) -> Moments:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeightWarning)
        return MODEL.fit(X, sample_weight=weights).moments_


def said(moments: Moments) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        advise_weights(moments)
    return [str(w.message) for w in caught]


def kish(w: NDArray[Any]) -> float:
    return float(w.sum() ** 2 / np.sum(w**2))


FREQUENCIES = RNG.integers(0, 5, N).astype(float)
UNEVEN = RNG.lognormal(0, 2, N)
CASES: dict[str, tuple[NDArray[Any] | None, float, str]] = {
    "none": (None, N, ""),
    "ones": (np.ones(N), N, ""),
    "frequencies": (FREQUENCIES, FREQUENCIES.sum(), ""),
    "resampled": (np.bincount(RNG.integers(0, N, N), minlength=N).astype(float), N, ""),
    "between 0 and 1": ((U := RNG.uniform(0, 1, N)), kish(U), ""),
    "probabilities": (np.full(N, 1 / N), N, r"sum to 1 over 400 rows.*count as 400 rows.*by 400"),
    "uneven probabilities": (UNEVEN / UNEVEN.sum(), kish(UNEVEN), "are frequencies.*sum to 1 over 400"),
    "small": (np.full(N, 1e-3), N, "sum to 0.4 over 400 rows.*Multiply the weights by 1000"),
    "tiny": (np.full(N, 1e-200), N, "count as 400 rows"),
    "uneven, of mean 1": (UNEVEN / UNEVEN.mean(), N, "have mean 1, and the data count as 400 rows"),
    "uneven, said to be relative": (UNEVEN / UNEVEN.sum() * kish(UNEVEN), kish(UNEVEN), ""),
    "large": (np.full(N, 1e4), 1e4 * N, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_weights_count_as(case: str) -> None:
    weights, rows, message = CASES[case]
    moments = measured(weights)
    assert counted_rows(moments) == pytest.approx(rows, rel=1e-9)
    found = said(moments)
    assert len(found) == bool(message)
    assert all(re.search(message, text) for text in found)


def test_a_fit_says_it_once_and_a_weight_that_follows_the_advice_is_silent() -> None:
    w = UNEVEN / UNEVEN.sum()
    with pytest.warns(WeightWarning, match="2 is the row twice") as caught:
        low = MODEL.fit(X, sample_weight=w).eigenvalues_
    assert [w.category for w in caught].count(WeightWarning) == 1
    factor = kish(w) / w.sum()
    np.testing.assert_allclose(MODEL.fit(X, sample_weight=factor * w).eigenvalues_, low, rtol=1e-7, atol=1e-9)


def test_regression_counts_rows_and_says_nothing() -> None:
    """Its penalty is relative to the mean over the weights, and chosen on folds: their unit changes nothing."""
    one, other = (
        dsp.HermiteRegressor(Gaussian(1.0), 20, random_state=0).fit(X, X[:, 0], sample_weight=s * UNEVEN)
        for s in (1.0, 1e-9)
    )
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-6)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-8)


@pytest.mark.parametrize(
    ("basis", "weights"), [(FourierLattice(8), np.ones(200)), (None, UNEVEN[:200])], ids=["lattice", "landmarks"]
)
def test_the_unit_of_weights_does_not_decide_what_is_chosen(basis: Any, weights: NDArray[Any]) -> None:
    x = np.random.default_rng(1).standard_normal((200, 1))
    model = dsp.SpectralDecomposition(basis=basis, n_landmarks=20, n_components=3, random_state=0)
    one, other = (clone(model).fit(x, sample_weight=unit * weights) for unit in (10.0, 1e3))
    chosen = [fitted.choice_.candidates[0] for fitted in (one, other)]
    assert chosen[0].kernel == chosen[1].kernel
    assert chosen[1].penalty == pytest.approx(100 * chosen[0].penalty)
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-6, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(-12, -1))
def test_the_unit_of_small_weights_does_not_matter(seed: int, exponent: float) -> None:
    w = np.random.default_rng(seed).uniform(0.1, 1, N)
    assert counted_rows(measured(w * 10**exponent)) == pytest.approx(kish(w), rel=1e-9)
