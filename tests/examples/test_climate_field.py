"""The climate example, on the field that the package eofs brings, against that package's own decomposition."""

from pathlib import Path

import numpy as np
import pytest
from eofs.xarray import Eof

from tests.examples.test_examples import load


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")
def test_the_field_of_the_pacific(tmp_path: Path) -> None:
    example = load("climate_field")
    field = example.open_field()
    _, found = example.empirical(field)
    weights = np.sqrt(np.cos(np.radians(field.latitude)).clip(0, 1))
    wanted = Eof(field.compute(), weights=weights.values[:, None], center=True, ddof=0)
    np.testing.assert_allclose(found.eigenvalue, wanted.eigenvalues(example.COMPONENTS), rtol=1e-8)
    scores = wanted.pcs(npcs=example.COMPONENTS, pcscaling=1).values
    scores = scores / scores.std(axis=0)
    functions = found.eigenfunction.values
    np.testing.assert_allclose(functions * np.sign((functions * scores).sum(axis=0)), scores, atol=1e-8)
    np.testing.assert_allclose(found.explained_variance_ratio, wanted.varianceFraction(example.COMPONENTS), rtol=1e-8)
    land = np.isnan(field.values).all(axis=0)
    assert np.array_equal(np.isnan(found.sst_pattern[0]), land)
    numbers = example.main(out=tmp_path)
    assert numbers["share of the first"] == pytest.approx(0.49, abs=0.01)  # El Nino
    assert [path.name for path in tmp_path.iterdir()] == [example.PICTURE]
