"""The box of a Fourier lattice and rows outside it, what cannot work, and life without finufft."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice, MonomialBasis
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.operators import (
    Augmentation,
    Cross,
    PartialDerivative,
    Transfer,
)
from daskspectral.passes import lattice as passes
from tests.common import assert_close
from tests.estimators.lattice import (
    NORMAL,
    SQUARE,
    N,
    X,
    make,
    modes,
)


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)


# the box


@pytest.mark.usefixtures("small_tasks")
def test_rows_outside_a_given_box_are_absent() -> None:
    box = [(-2.9, 2.9), (-5, 5)]
    inside = np.abs(X[:, 0]) <= 2.9
    found = make(basis=FourierLattice(4, box=box)).fit(da.from_array(X, chunks=(200, 2)))
    assert found.moments_.count == inside.sum() < len(X) == found.moments_.rows
    wanted = make(basis=FourierLattice(4, box=box)).fit(X[inside])
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("small_tasks")
def test_tasks_without_a_row_inside() -> None:
    far = np.concatenate([np.full((60, 2), 9.0), X])
    model = make(basis=FourierLattice(4, box=[(-5, 5)] * 2), folds=None).fit(da.from_array(far, chunks=(60, 2)))
    assert model.moments_.count == len(X)
    skipped = np.concatenate([np.full((60, 2), np.nan), X])
    again = make(basis=FourierLattice(4, box=[(-5, 5)] * 2), folds=None)
    again.fit(da.from_array(skipped, chunks=(60, 2)), on_invalid="skip")
    assert_close(modes(model.moments_), modes(again.moments_), 1e-13, dtype=complex)


def test_far_outliers_are_cut_with_a_warning() -> None:
    """A thousandth of the rows in a box 30 times as wide changes no value beyond its error."""
    clean = make(basis=FourierLattice(8), kernel=Gaussian(2.0), n_components=4).fit(NORMAL)
    far = np.random.default_rng(1).uniform(-150, 150, (20, 2))
    x = np.concatenate([NORMAL, far])
    with pytest.warns(dsp.TrustWarning, match=r"column 0 goes from .* box of the lattice is cut at .* count as absent"):
        model = make(basis=FourierLattice(8), kernel=Gaussian(2.0), n_components=4).fit(x)
    assert len(x) - model.moments_.count <= 25
    np.testing.assert_allclose(model.eigenvalues_, clean.eigenvalues_, rtol=0.03, atol=1e-9)


def test_heavy_tails_are_cut_with_a_warning() -> None:
    x = np.random.default_rng(0).standard_t(3, (N, 1))
    with pytest.warns(dsp.TrustWarning, match="Of heavy tails the spectrum depends on where they are cut"):
        model = make(basis=FourierLattice(20)).fit(x)
    assert 0 < N - model.moments_.count < 0.002 * N


def test_light_tails_are_not_cut() -> None:
    model = make().fit(X)
    for side, column in zip(model.basis_.box, X.T, strict=True):
        assert side == (column.min(), column.max())
    assert model.moments_.count == len(X)


def test_too_small_a_margin_warns() -> None:
    with pytest.warns(dsp.TrustWarning, match="the margin 0.01 leaves a gap of .* are neighbours"):
        make(basis=FourierLattice(5, margin=0.01)).fit(SQUARE[:2000])


# what cannot work is said before any task is sent

WIDE = np.random.default_rng(0).standard_normal((500, 5))


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("changes", "x", "error", "message"),
    [
        ({}, WIDE, ValueError, "1 to 4 variables, and 5 are asked for.*take a kernel at landmarks"),
        ({"operator": Cross()}, (X, X), ValueError, "cross takes functions at y besides x.*gains nothing"),
        ({"operator": Transfer(1)}, X, ValueError, "transfer takes functions at .* besides x"),
        ({"operator": Augmentation(2)}, (X, X), ValueError, "augmentation takes functions at .* besides x"),
        ({"kernel": Polynomial(2)}, X, TypeError, r"function of \|x - y\|"),
        ({"kernel": "gauss"}, X, TypeError, "kernel must be one of daskspectral.kernels"),
        ({"kernel": 3}, X, TypeError, "kernel must be one of daskspectral.kernels"),
        ({"kernel": Gaussian("median")}, X, ValueError, "takes no median of distances"),
        ({"landmarks": X[:20]}, X, ValueError, "without landmarks; leave landmarks out"),
        ({"basis": FourierLattice(5, box=[(0, 1)])}, X, ValueError, "functions of 1 variables, and X has 2 columns"),
        ({"basis": FourierLattice((5, 5, 5))}, X, ValueError, "functions of 3 variables, and X has 2 columns"),
        ({"basis": FourierLattice(30), "solver": "cut"}, X, ValueError, "takes all 3721 functions"),
        ({"right_basis": FourierLattice(5)}, X, ValueError, "right_basis is for operators with singular values"),
        (
            {"operator": PartialDerivative(0), "right_basis": MonomialBasis(2, 2)},
            X,
            ValueError,
            "leave right_basis out",
        ),
        ({"operator": PartialDerivative(0), "right_kernel": Gaussian()}, X, ValueError, "leave right_kernel out"),
        ({"operator": PartialDerivative(0), "right_landmarks": X[:5]}, X, ValueError, "leave right_landmarks out"),
        ({"periods": {7: 1.0}}, X, ValueError, "periods names the column 7"),
        ({"periods": {0: 1.0}, "standardize": True}, X, ValueError, "periods is in them"),
        ({"basis": FourierLattice(5, periods=[1.0, None]), "standardize": True}, X, ValueError, "periods is in them"),
        ({"basis": FourierLattice(5, periods=[1.0, None]), "periods": {0: 2.0}}, X, ValueError, "give them once"),
    ],
    ids=lambda v: str(v)[:40] if isinstance(v, dict) else "",
)
def test_refused_before_the_pass(changes: Any, x: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make(**changes).fit(x)


@pytest.mark.parametrize(
    ("changes", "x", "message"),
    [
        ({}, np.column_stack([X[:, 0], np.ones(len(X))]), "column 1 is 1 in every row, .*choose other columns"),
        ({"columns": [2]}, np.column_stack([X, np.ones(len(X))]), "column 2 is 1 in every row"),
        ({}, np.ones((50, 2)), "column 0 is 1 in every row"),
        ({}, X * [1e-9, 1.0], "column 1 is 1e.09 times as wide as column 0.*choose some"),
        ({}, X[:1], r"X has 1 row \(n_samples = 1\), and SpectralDecomposition needs 2 or more"),
        (
            {},
            np.column_stack([X[:, 0], np.arange(len(X)) == 7]),
            "1 is 0 in nearly every row, and goes from 0 to 1",
        ),
        (
            {"basis": FourierLattice(5, box=[(0, 5), (-5, 5)])},
            X,
            r"of 4000 rows lie outside the box \[\(0, 5\), \(-5, 5\)\] of the lattice, and 0.02 of them is the most",
        ),
        (
            {"basis": FourierLattice(5, box=[(90, 91), (-5, 5)])},
            X,
            r"0 of 4000 are invalid, and the others are outside the box \[\(90, 91\), \(-5, 5\)\].*give a wider one",
        ),
    ],
)
def test_data_that_cannot_work(changes: Any, x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes).fit(x)


def test_a_share_outside_may_be_meant() -> None:
    model = make(basis=FourierLattice(5, box=[(0, 5), (-5, 5)], outside=0.6)).fit(X)
    assert model.moments_.count == np.sum(X[:, 0] >= 0)


@pytest.mark.parametrize("options", [{"folds": None}, {"folds": "blocks"}, {"folds": 2}, {"ridge": 1e-6}], ids=str)
def test_options_that_change_little(fitted: dsp.SpectralDecomposition, options: Any) -> None:
    model = make(**options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, fitted.eigenvalues_, rtol=1e-4, atol=1e-3)
    chosen = make(kernel=None, penalty="auto", **options).fit(X)
    few = options.get("folds", 10) in (None, 2)
    assert bool(chosen.choice_.candidates) != few
    assert ("fewer than 4 folds" in chosen.choice_.reason) == few


# without finufft


def test_without_finufft_modes_are_summed_by_products(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "finufft", None)
    monkeypatch.setattr(passes, "_version", lambda: None)
    model = make(basis=FourierLattice(8), kernel=None, penalty="auto").fit(X)
    assert (model.basis_.method, model.basis_.version) == ("matmul", None)
    assert model.transform(X).shape == (len(X), 5)
    assert model.score(X) == pytest.approx(-model.eigenvalues_.sum(), rel=1e-9)
    model.update(np.concatenate([X, X[:10]])).save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").transform(X), model.transform(X))
    with pytest.raises(ImportError, match=r"pip install 'daskspectral\[lattice\]', or take method='matmul'"):
        make(basis=FourierLattice(5, method="nufft")).fit(X)


def test_a_model_that_finufft_measured_serves_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("finufft", reason="finufft is not installed")
    model = make(basis=FourierLattice(8, method="nufft")).fit(X)
    wanted = model.transform(X)
    monkeypatch.setitem(sys.modules, "finufft", None)
    np.testing.assert_allclose(model.transform(X), wanted, atol=1e-6)
    assert make(kernel=Gaussian(1.0), basis=None).fit_moments(model.moments_).eigenvalues_[0] == 0
    with pytest.raises(ImportError, match="finufft"):
        model.score(X)
