"""Numbers of transfer operators keep to their definitions, whatever the system: shares, chances, times, intervals."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import MonomialBasis, SoftCells
from daskspectral.operators import Transfer

Array = NDArray[Any]
OPERATORS = [
    Transfer(1),
    Transfer(2, center=True),
    Transfer(1, "eigen"),
    Transfer(1, "eigen", further=(2, 3)),
    Transfer(1, reversible=True),
]


def system(kind: str) -> Array:
    rng, n = np.random.default_rng(0), 500
    if kind == "vector":
        a, x = np.array([[0.8, 0.5], [-0.3, 0.7]]), np.zeros((n, 2))
        for t in range(1, n):
            x[t] = a @ x[t - 1] + rng.standard_normal(2)
        return x
    if kind == "random walk":
        return np.asarray(np.cumsum(rng.standard_normal((n, 1)), axis=0))
    if kind == "of period two":  # the value -1
        return np.asarray(np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] + 0.1 * rng.standard_normal((n, 1)))
    if kind == "white":
        return np.asarray(rng.integers(0, 3, (n, 1)) + 0.05 * rng.standard_normal((n, 1)))
    return np.column_stack([np.cos(0.3 * np.arange(n)), np.sin(0.3 * np.arange(n))])


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning", "ignore::daskspectral.errors.RankWarning")
@pytest.mark.parametrize("cells", [False, True], ids=["monomials", "cells"])
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
@pytest.mark.parametrize("kind", ["vector", "random walk", "of period two", "white", "turning"])
def test_numbers_keep_to_their_definitions(kind: str, operator: Any, cells: bool) -> None:
    x = system(kind)
    basis = SoftCells.draw(x, 6, random_state=0) if cells else MonomialBasis(x.shape[1], 2)
    model = dsp.SpectralDecomposition(operator, basis, n_components=4).fit(x)
    ends, times, around = getattr(model, model.solver_.errors), model.timescales_, model.timescale_errors_
    assert (times >= 0).all()
    assert (around >= 0).all()
    assert (around[..., 0] <= around[..., 1]).all()
    assert (ends[:, 0] <= ends[:, 1]).all()
    if operator.reversible:
        assert (np.abs(model.eigenvalues_) <= 1 + 1e-9).all()
    if hasattr(model, "dynamic_residuals_"):
        assert (model.dynamic_residuals_ >= 0).all()
    assert model.forecast_score(x) <= 1
    if not operator.center and not operator.reversible:
        weights = model.equilibrium_weights(x)
        assert (weights >= 0).all()
        assert weights.sum() > 0
    try:
        sets = model.metastable_sets(2, x)
    except ValueError:  # of complex or negative values there are none
        return
    assert (sets.passage_times >= 0).all()
    for rows in (sets.probabilities[None], sets.transitions, np.asarray(model.memberships(3 * x))):
        assert rows.min() >= 0
        np.testing.assert_allclose(rows.sum(axis=1), 1)
