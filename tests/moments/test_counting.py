"""How many rows weights count as, and what is said where this may not have been meant."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import MonomialBasis
from daskspectral.kernels import Gaussian
from daskspectral.moments.counting import advise_weights, counted_rows, counted_weight, repeats, repeats_of
from tests.moments.common import moments_of

N = 400
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2))
UNEVEN = RNG.lognormal(0, 2, N)
HALF = np.ones(N) * np.where(np.arange(N) < 200, 1.0, 0.0)


def kish(w: Any) -> float:
    return float(w.sum() ** 2 / np.sum(w**2))


CASES: dict[str, tuple[Any, float, str]] = {
    "none": (None, N, ""),
    "frequencies": (FREQUENCIES := RNG.integers(0, 5, N).astype(float), FREQUENCIES.sum(), ""),
    "between 0 and 1": (U := RNG.uniform(0, 1, N), kish(U), ""),
    "probabilities": (np.full(N, 1 / N), N, r"sum to 1 over 400 rows.*count as 400 rows.*by 400"),
    "just not relative": (np.full(N, 0.51), N, ""),
    "just relative": (np.full(N, 0.49), N, "Multiply the weights by 2.041 to say"),
    "tiny": (np.full(N, 1e-200), N, "count as 400 rows"),
    "uneven, of mean 1": (UNEVEN / UNEVEN.mean(), N, r"have mean 1.* multiply them by 0\.0"),
    "uneven, of mean 1.00001": (1.00001 * UNEVEN / UNEVEN.mean(), 1.00001 * N, ""),
    "uneven, said to be relative": (UNEVEN / UNEVEN.sum() * kish(UNEVEN), kish(UNEVEN), ""),
    "four times as many": (4.01 * HALF[::-1] / 2, 401, ""),
    "large": (np.full(N, 1e4), 1e4 * N, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_weights_count_as(case: str) -> None:
    weights, rows, message = CASES[case]
    given = {} if weights is None else {"weight": weights}
    moments = moments_of(MonomialBasis(2, 1), {"x": X, **given}, np.zeros(N, dtype=int))
    assert counted_rows(moments) == pytest.approx(rows, rel=1e-9)
    w = np.ones(N) if weights is None else weights
    assert counted_weight(w) == pytest.approx(rows, rel=1e-9)
    ratio = max(1.0, w.sum() / kish(w / w.max()))
    assert (repeats(moments), repeats_of(w)) == (pytest.approx(ratio), pytest.approx(ratio))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        advise_weights(moments)
    assert len(caught) == bool(message)
    assert all(re.search(message, str(w.message)) for w in caught)


def test_no_weight_at_all() -> None:
    assert counted_weight(np.zeros(3)) == 0
    assert repeats_of(np.array([1 + 1e-8, 1])) == 1


def test_the_unit_of_weights_does_not_decide_what_is_chosen() -> None:
    model = dsp.SpectralDecomposition(kernel=Gaussian("auto"), n_landmarks=20, n_components=3, random_state=0)
    one, other = (clone(model).fit(X, sample_weight=unit * UNEVEN.clip(0.5, 2)) for unit in (10.0, 1e3))
    chosen = [fitted.choice_.candidates[0] for fitted in (one, other)]
    assert chosen[0].kernel == chosen[1].kernel
    assert chosen[1].penalty == pytest.approx(100 * chosen[0].penalty)
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-6, atol=1e-9)
