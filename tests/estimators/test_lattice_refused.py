"""The box of a Fourier lattice, rows outside it, what cannot work, and life without finufft."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice, MonomialBasis
from daskspectral.errors import TrustWarning
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.operators import Cross, PartialDerivative
from daskspectral.passes import lattice as passes
from tests.common import assert_close
from tests.estimators.lattice import NORMAL, X, make, modes

# the box


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
def test_rows_outside_a_given_box_are_absent() -> None:
    lattice = FourierLattice(4, box=[(-2.9, 2.9), (-5, 5)])
    x = np.concatenate([np.full((200, 2), 4.9), X[:3600]])  # the first task has no row inside
    inside = np.abs(x[:, 0]) <= 2.9
    found = make(basis=FourierLattice(4, box=lattice.box, outside=0.1)).fit(da.from_array(x, chunks=(200, 2)))
    assert found.moments_.count == inside.sum() < len(x) == found.moments_.rows
    assert_close(modes(found.moments_), modes(make(basis=lattice).fit(x[inside]).moments_), 1e-12, dtype=complex)


def test_far_outliers_are_cut_with_a_warning() -> None:
    """A thousandth of the rows in a box 30 times as wide changes no value beyond its error."""
    x = np.concatenate([NORMAL, np.random.default_rng(1).uniform(-150, 150, (20, 2))])
    options = {"basis": FourierLattice(8), "kernel": Gaussian(2.0), "n_components": 4}
    with pytest.warns(TrustWarning, match=r"column 0 goes from .* box of the lattice is"):
        model = make(**options).fit(x)
    assert len(x) - model.moments_.count <= 25
    np.testing.assert_allclose(model.eigenvalues_, make(**options).fit(NORMAL).eigenvalues_, rtol=0.03, atol=1e-9)


# what cannot work

WIDE = np.random.default_rng(0).standard_normal((500, 5))


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("changes", "x", "message"),
    [
        ({}, WIDE, "1 to 4 variables, and 5 are asked for.*take a kernel at landmarks"),
        ({"operator": Cross()}, (X, X), "cross takes functions at y besides x.*gains nothing"),
        ({"kernel": Polynomial(2)}, X, r"function of \|x - y\|"),
        ({"basis": FourierLattice((5, 5, 5))}, X, "functions of 3 variables, and X has 2 columns"),
        ({"operator": PartialDerivative(0), "right_basis": MonomialBasis(2, 2)}, X, "leave right_basis out"),
        ({"basis": FourierLattice(5, periods=[1.0, None]), "periods": {0: 2.0}}, X, "give them once"),
    ],
)
def test_refused_before_the_pass(changes: Any, x: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(**changes).fit(x)


@pytest.mark.parametrize(
    ("box", "x", "message"),
    [
        (None, np.column_stack([X[:, 0], np.ones(len(X))]), "column 1 is 1 in every row, .*choose other columns"),
        ([(0, 5), (-5, 5)], X, r"lie outside the box .* of the lattice, and 0.02 of them is the most"),
        ([(90, 91), (-5, 5)], X, r"the others are outside the box \[\(90, 91\), \(-5, 5\)\].*give a wider one"),
    ],
)
def test_data_that_cannot_work(box: Any, x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(basis=FourierLattice(5, box=box)).fit(x)


# without finufft


def test_without_finufft_modes_are_summed_by_products(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "finufft", None)
    monkeypatch.setattr(passes, "_version", lambda: None)
    model = make().fit(X)
    assert (model.basis_.method, model.basis_.version) == ("matmul", None)
    assert model.score(X) == pytest.approx(-model.eigenvalues_.sum(), rel=1e-9)
    model.update(np.concatenate([X, X[:10]])).save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").transform(X), model.transform(X))
    with pytest.raises(ImportError, match=r"pip install 'daskspectral\[lattice\]', or"):
        make(basis=FourierLattice(5, method="nufft")).fit(X)
