"""Options of landmarks that are given are kept by an automatic choice, which compares no other functions then."""

from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

import daskspectral as dsp
from daskspectral.basis import Landmarks, SoftCells
from daskspectral.operators import Cross, Laplacian, Transfer
from tests.common import doubtful

RNG = np.random.default_rng(0)
X = lfilter([1.0], [1.0, -0.9], RNG.standard_normal((301, 2)), axis=0)
OPTIONS: dict[str, dict[str, Any]] = {
    "count": {"count": 30},
    "method": {"method": "uniform"},
    "points": {"points": X[:20]},
    "sample": {"sample": 200},
    "spread": {"spread": 0.2},
    "constant": {"constant": True},
    "exclude": {"exclude": False},
}


def fitted(operator: Any, basis: Any) -> dsp.SpectralDecomposition:
    data = (X, X + 0.5 * RNG.standard_normal(X.shape)) if isinstance(operator, Cross) else X
    return dsp.SpectralDecomposition(operator, basis=basis, n_components=2, random_state=0).fit(data)


def test_cells_are_compared_if_nothing_is_given() -> None:
    assert isinstance(fitted(Transfer(1), Landmarks()).basis_, SoftCells)


@doubtful
@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
@pytest.mark.parametrize("option", OPTIONS)
def test_landmarks_with_an_option_are_landmarks(option: str) -> None:
    given = OPTIONS[option]
    model = fitted(Transfer(1), Landmarks(**given))
    found = model.choice_.parameters["basis"]
    assert isinstance(found, Landmarks)
    size = len(model.basis_.parts[-1].landmarks)
    assert size == {"count": 30, "points": 20}.get(option, 75)
    for name in {"method", "sample", "spread", "constant", "exclude"} & given.keys():
        assert getattr(found, name) == given[name]
    if "points" in given:
        np.testing.assert_array_equal(found.points, given["points"])


@doubtful
@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
@pytest.mark.parametrize("operator", [Laplacian(), Cross(center=True), Transfer(1, "eigen")], ids=lambda o: o.name)
def test_the_number_of_landmarks_is_kept_by_every_operator(operator: Any) -> None:
    model = fitted(operator, Landmarks(count=30))
    assert len(model.basis_.parts[-1].landmarks) == 30
