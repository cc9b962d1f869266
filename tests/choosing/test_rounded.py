"""Rows of rounded values: candidates are judged at points that they did not see, and values are those before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.errors import RankWarning, TrustWarning
from daskspectral.kernels import Gaussian

RNG = np.random.default_rng(0)
SQUARE = np.pi**2 * np.array([1, 1, 2, 4, 4])
LINE = (np.pi / 3) ** 2 * np.array([1, 4, 9, 16, 25])


@pytest.mark.parametrize(
    ("x", "wanted", "least"),
    [
        (RNG.random((3000, 2)).round(1), SQUARE, 4),
        ((3 * RNG.random((3000, 1))).round(1), LINE, 3),
        pytest.param(np.repeat(RNG.random((500, 2)), 6, axis=0), SQUARE, 3, marks=pytest.mark.slow),
    ],
    ids=["square", "line", "copies"],
)
def test_values_are_those_before_rounding(x: Any, wanted: Any, least: int) -> None:
    """They were 0, in intervals of width 0, and the more rows the nearer."""
    model = dsp.SpectralDecomposition(n_components=6, random_state=0)
    with pytest.warns(TrustWarning, match=r"of 3000 rows only \d+ differ"):
        model.fit(np.random.default_rng(1).permutation(x))
    assert model.eigenvalues_[1] == pytest.approx(wanted[0], rel=0.25)
    lower, upper = model.eigenvalue_errors_[1:].T
    assert np.count_nonzero((lower <= wanted) & (wanted <= upper)) >= least


def test_landmarks_at_all_points_leave_rows_to_judge_by() -> None:
    x = (3 * RNG.random((3000, 1))).round(1)
    model = dsp.SpectralDecomposition(basis=Landmarks(Gaussian(0.9), 100), n_components=6, random_state=0)
    with pytest.warns(RankWarning, match="only 31 of 100 landmarks"):
        model.fit(x)
    assert model.trusted_.all()
    np.testing.assert_allclose(model.eigenvalues_[1:], LINE, rtol=0.08)
