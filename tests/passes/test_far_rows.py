"""Rows far from those of a fit are counted, NaN or refused, by one rule for values, gradients and cells."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice, Landmarks, SoftCells
from daskspectral.errors import ExtrapolationWarning
from daskspectral.kernels import Gaussian
from daskspectral.operators import Transfer
from tests.common import doubtful

pytestmark = doubtful
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 2))
FAR = np.concatenate([X[:3], X[:2] + 1e3])
CELLS = SoftCells(np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.5]]), width=0.5)


def gradient(basis: Any) -> Callable[..., Any]:
    return dsp.HermiteRegressor(basis, alpha=1e-6, random_state=0).fit(X, X[:, 0] ** 2).predict_gradient


CALLS: dict[str, Callable[[], Callable[..., Any]]] = {
    "cells": lambda: dsp.SpectralDecomposition(Transfer(1), CELLS, n_components=2, folds=None).fit(X).transform,
    "gradients of landmarks": lambda: gradient(Landmarks(Gaussian(0.5), 30)),
    "gradients of a lattice": lambda: gradient(FourierLattice(6)),
}


@pytest.mark.parametrize("name", CALLS)
def test_far_rows_are_counted_or_nan_or_refused(name: str) -> None:
    call = CALLS[name]()
    near = call(X[:3])  # without a warning
    if name == "gradients of a lattice":
        found = call(FAR)  # those of the values at the box
    else:
        with pytest.warns(ExtrapolationWarning) as told:
            found = call(FAR)
        assert (told[0].message.count, told[0].message.rows) == (2, 5)
    np.testing.assert_allclose(found[:3], near, atol=1e-9)
    assert np.isfinite(found).all()
    with pytest.warns(ExtrapolationWarning):
        missing = call(FAR, extrapolate="nan")
    np.testing.assert_allclose(missing[:3], near, atol=1e-9)
    assert np.isnan(missing[3:]).all()
    with pytest.raises(ValueError, match="2 of 5 rows"):
        call(FAR, extrapolate="raise")
