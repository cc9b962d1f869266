"""Without options, a command fits what the estimator behind it fits without arguments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from tests.cli.common import done, store

SPHERE = dsp.manifolds.Sphere(3)
CASES: dict[str, Any] = {
    "fit x.zarr": dsp.SpectralDecomposition(),
    "embed x.zarr --bandwidth 1": dsp.SDPEmbedding(1.0),
    "embed x.zarr --bandwidth 1 --map diffusion": dsp.DiffusionMap(1.0),
    "embed x.zarr --bandwidth 1 --map kernel": dsp.KernelEmbedding(bandwidth=1.0),
    "regress x.zarr y.zarr": dsp.HermiteRegressor(),
    "invariant x.zarr y.zarr --manifold sphere --group permutations": dsp.InvariantRegressor(
        SPHERE, dsp.groups.Permutations(3)
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows
@pytest.mark.parametrize("line", CASES)
def test_defaults_are_those_of_the_estimators(line: str, folder: Path) -> None:
    x = SPHERE.sample(60, np.random.default_rng(0))
    store(x=x, y=x[:, 0])
    done(f"{line} --out m.zarr")
    found, wanted = (model.get_params(deep=False) for model in (dsp.load("m.zarr"), CASES[line]))
    assert found.pop("random_state", 0) == 0
    decided = {name: value for name, value in wanted.items() if value is not None}  # others are filled in
    assert {name: str(found[name]) for name in decided} == {name: str(value) for name, value in decided.items()}
