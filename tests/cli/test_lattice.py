"""Fourier lattices in a shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from tests.cli.common import call, done
from tests.common import written

RNG = np.random.default_rng(0)
X = RNG.uniform(0, np.pi, (3000, 2))


@pytest.fixture(autouse=True)
def arrays(folder: Path) -> None:
    zarr.create_array("x.zarr", data=X, chunks=(1000, 2))
    zarr.create_array("y.zarr", data=np.sin(X[:, 0]) + 5, chunks=(1000,))


def test_a_fit_and_what_follows() -> None:
    told = done("fit x.zarr --lattice 4 --kernel matern:1.5:1 --penalty 1 --components 4 --no-progress --out m.zarr")
    assert "a lattice of Fourier functions: 81 functions of 2 variables" in told
    model = dsp.load("m.zarr")
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 2], atol=0.2)
    done("transform m.zarr x.zarr --out f.zarr --no-progress")
    np.testing.assert_allclose(written("f.zarr"), model.transform(X), atol=1e-7)
    done("score m.zarr x.zarr --no-progress")


def test_an_order_for_each_column_and_periods() -> None:
    done("fit x.zarr --lattice 4,3 --periods 0:6.283185307 --components 3 --no-progress --out m.zarr")
    basis = dsp.load("m.zarr").basis_
    assert (basis.orders, basis.periods[1]) == ((4, 3), None)


def test_a_regression() -> None:
    done("regress x.zarr y.zarr --lattice 4 --no-progress --out m.zarr")
    assert dsp.load("m.zarr").cv_score_ > 0.99


@pytest.mark.parametrize(
    ("value", "message"), [("0", "m is a whole number of 1 or more"), ("many", "no highest frequency such as 15")]
)
def test_what_is_no_lattice_is_refused(value: str, message: str) -> None:
    result = call(f"fit x.zarr --lattice {value} --out m.zarr")
    assert result.exit_code == 2
    assert message in result.output
