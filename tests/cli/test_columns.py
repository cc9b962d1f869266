"""Columns of files by name, in a shell."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from tests.cli.common import done, failure
from tests.common import doubtful

X = np.random.default_rng(0).standard_normal((200, 3)) * [1.0, 2.0, 4.0]
FRAME = pd.DataFrame(X, columns=["malt", "ash", "iron"])
FIT = "--kernel gaussian:2 --landmarks 20 --folds none --components 3 --seed 0"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    turned = FRAME[["iron", "ash", "malt"]]
    for name, frame in {"first": FRAME[:150], "whole": turned, "other": FRAME.rename(columns={"ash": "asche"})}.items():
        frame.to_csv(f"{name}.csv", index=False)
        frame.assign(city="Ulm").to_parquet(f"{name}.parquet")


def model() -> dsp.SpectralDecomposition:
    basis = Landmarks(Gaussian(2.0), 20)
    return dsp.SpectralDecomposition(basis=basis, n_components=3, folds=None, random_state=0)


@doubtful
def test_files_are_matched_to_the_model_by_name() -> None:
    done(f"fit first.csv {FIT} --out model.zarr")
    done("transform model.zarr whole.csv --out functions.zarr")
    done("transform model.zarr whole.parquet --out of-parquet.zarr")
    wanted = model().fit(X[:150])
    for found in ("functions.zarr/eigenfunction", "of-parquet.zarr/eigenfunction"):
        np.testing.assert_allclose(zarr.open_array(found)[:], wanted.transform(X), rtol=1e-9, atol=1e-12)
    done("update model.zarr whole.csv --out newer.zarr")
    np.testing.assert_allclose(
        dsp.load("newer.zarr").eigenvalues_, wanted.update(X).eigenvalues_, rtol=1e-9, atol=1e-12
    )
    for line in ("transform model.zarr other.csv --out none.zarr", "update model.zarr other.csv --out none.zarr"):
        code, said = failure(line)
        assert code != 0
        assert "asche" in said


@doubtful
def test_columns_are_chosen_by_name() -> None:
    for source in ("whole.csv", "whole.parquet"):
        done(f"fit {source} {FIT} --columns malt,ash --out {source}-model.zarr")
        found = dsp.load(f"{source}-model.zarr")
        assert found.feature_names_in_.tolist() == ["malt", "ash"]
        np.testing.assert_allclose(found.eigenvalues_, model().fit(X[:, :2]).eigenvalues_, rtol=1e-9, atol=1e-12)
    code, said = failure(f"fit whole.csv {FIT} --columns malt,zinc --out none.zarr")
    assert code != 0
    assert "zinc" in said


@doubtful
def test_the_functions_of_a_model_bring_the_order_of_its_columns() -> None:
    done(f"fit first.csv {FIT} --out model.zarr")
    done("fit whole.csv --functions-of model.zarr --folds none --components 3 --out again.zarr")
    wanted = dsp.load("model.zarr").feature_names_in_
    assert dsp.load("again.zarr").feature_names_in_.tolist() == wanted.tolist()
