"""A potential far below zero moves every value by itself, whatever solves for them: it was a search without an end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.moments import lattice, lattice_large

X = np.random.default_rng(0).random((600, 2))


@pytest.mark.parametrize("basis", [None, dsp.basis.FourierLattice(5), "by products"])
def test_a_deep_potential_moves_every_value(basis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if basis == "by products":
        monkeypatch.setattr(lattice, "DENSE", 60)
        monkeypatch.setattr(lattice_large, "COARSE", 60)
        basis = dsp.basis.FourierLattice(5)
    kernel = None if basis is not None else dsp.kernels.Gaussian(0.4)
    given: dict[str, Any] = {"kernel": kernel, "basis": basis, "n_landmarks": 30, "n_components": 4, "folds": None}
    values = [
        dsp.SpectralDecomposition(dsp.operators.Schroedinger("V"), **given, random_state=0)
        .fit(X, fields={"V": np.full(len(X), level)})
        .eigenvalues_
        for level in (0.0, -500.0)
    ]
    np.testing.assert_allclose(values[1] + 500, values[0], rtol=0.05, atol=0.05)
