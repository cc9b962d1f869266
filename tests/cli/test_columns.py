"""Columns of files by name, in a shell."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from tests.cli.common import done, failure
from tests.common import doubtful, written

X = np.random.default_rng(0).standard_normal((200, 3)) * [1.0, 2.0, 4.0]
FRAME = pd.DataFrame(X, columns=["malt", "ash", "iron"])
FIT = "--kernel gaussian:2 --landmarks 20 --folds none --components 3 --seed 0"


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    turned = FRAME[["iron", "ash", "malt"]]
    for name, frame in {"first": FRAME[:150], "whole": turned, "other": FRAME.rename(columns={"ash": "asche"})}.items():
        frame.to_csv(f"{name}.csv", index=False)
        frame.assign(city="Ulm").to_parquet(f"{name}.parquet")


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@doubtful
def test_columns_are_those_of_their_names() -> None:
    basis = Landmarks(Gaussian(2.0), 20)
    model = dsp.SpectralDecomposition(basis=basis, n_components=3, folds=None, random_state=0)
    for source in ("whole.csv", "whole.parquet"):
        done(f"fit {source} {FIT} --columns malt,ash --out chosen.zarr --overwrite")
        assert dsp.load("chosen.zarr").feature_names_in_.tolist() == ["malt", "ash"]
        close(dsp.load("chosen.zarr").eigenvalues_, model.fit(X[:, :2]).eigenvalues_)
    done(f"fit first.csv {FIT} --out model.zarr")
    model.fit(X[:150])
    for source in ("whole.csv", "whole.parquet"):  # whose columns are in another order
        done(f"transform model.zarr {source} --out functions.zarr --overwrite")
        close(written("functions.zarr"), model.transform(X))
    done("update model.zarr whole.csv --out newer.zarr")
    close(dsp.load("newer.zarr").eigenvalues_, model.update(X).eigenvalues_)
    for line, name in (
        (f"fit whole.csv {FIT} --columns malt,zinc", "zinc"),
        ("transform model.zarr other.csv", "asche"),
        ("update model.zarr other.csv", "asche"),
    ):
        code, said = failure(f"{line} --out none.zarr")
        assert (code != 0, name in said) == (True, True)
