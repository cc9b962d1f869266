"""A point off the manifold is named by the number of its row in the data, wherever it is met."""

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.errors import PointError
from daskspectral.groups import Permutations
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Sphere
from tests.engine.common import blocks, model

ROW = 4321
X = np.random.default_rng(11).standard_normal((6000, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
pytestmark = pytest.mark.usefixtures("short_epochs")


@pytest.mark.parametrize("kind", [np.asarray, blocks])
def test_an_off_manifold_row_is_named_by_its_number_in_the_data(kind: Any) -> None:
    x = X.copy()
    x[[ROW, ROW + 700]] *= 1.5
    tangential = model(Landmarks(Gaussian(1.0), points=X[:30]), operator=dsp.operators.Laplacian(Sphere(3)))
    with pytest.raises(PointError, match=f"row {ROW} "):
        tangential.fit(X[:2000]).update(kind(x))
    assert tangential.moments_.count == 2000  # the model is as before
    x[:40] = x[100:ROW:17] = np.nan
    regressor = dsp.InvariantRegressor(Sphere(3), Permutations(3), smoothness=2.0, n_eigenfunctions=30)
    with pytest.raises(PointError, match=f"row {ROW} "):  # after rows that are left out
        regressor.fit(dsp.Rows(kind(x), on_invalid="skip"), X[:, 0])
