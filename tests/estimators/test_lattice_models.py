"""Models on a Fourier lattice that are kept, added, solved again, and their functions at new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.operators import (
    Schroedinger,
)
from daskspectral.passes import lattice as passes
from tests.common import assert_close, assert_same_bits
from tests.estimators.common import CONTAINERS
from tests.estimators.lattice import (
    NORMAL,
    SQUARE,
    X,
    make,
    modes,
)


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)


# models and moments that are kept


def test_a_saved_model_is_the_model(tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    fitted.save(tmp_path / "model.zarr")
    found = dsp.load(tmp_path / "model.zarr")
    assert found.basis_ == fitted.basis_
    assert found.kernel_ == fitted.kernel_
    for name in fitted.fitted_attributes:
        if name not in ("moments_", "choice_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(fitted, name), err_msg=name)
    np.testing.assert_array_equal(found.transform(X), fitted.transform(X))
    assert_same_bits(found.moments_, fitted.moments_)
    again = found.fit_moments(found.moments_)
    np.testing.assert_array_equal(again.eigenvalues_, fitted.eigenvalues_)
    np.testing.assert_array_equal(again.held_out_, fitted.held_out_)
    dsp.save(fitted.moments_, tmp_path / "moments.zarr")
    assert_same_bits(dsp.load(tmp_path / "moments.zarr"), fitted.moments_)


def test_a_clone_fits_the_same(fitted: dsp.SpectralDecomposition) -> None:
    copy = clone(fitted)
    assert copy.get_params()["basis"] == FourierLattice(5)
    np.testing.assert_array_equal(copy.fit(X).eigenvalues_, fitted.eigenvalues_)
    assert isinstance(fitted.basis, FourierLattice)
    assert fitted.basis.box is None  # parameters stay as they were given


@pytest.mark.parametrize("m", [3, (4, 5)])
def test_chosen_parameters_give_the_fit_again(m: Any) -> None:
    model = dsp.SpectralDecomposition(basis=FourierLattice(m, margin=0.5), n_components=4).fit(X)
    again = dsp.SpectralDecomposition(**model.choice_.parameters).fit(X)
    same = again.basis_.orders == model.basis_.orders  # fewer frequencies are other transforms
    rounding = {"rtol": 0 if same else 1e-7, "atol": 0 if same else 1e-9}
    np.testing.assert_allclose(again.eigenvalues_, model.eigenvalues_, **rounding)
    np.testing.assert_allclose(again.held_out_, model.held_out_, **rounding)
    assert again.kernel_ == model.kernel_


def test_update_reads_new_rows_in_the_same_box() -> None:
    model = make(basis=FourierLattice(4)).fit(X[:3000])
    box = model.basis_.box
    found = model.update(X)
    assert found.basis_.box == box
    whole = make(basis=found.basis_).fit(X)
    assert_close(modes(found.moments_), modes(whole.moments_), 1e-13, dtype=complex)
    outside = np.sum(~(([s[0] for s in box] <= X) & ([s[1] for s in box] >= X)).all(axis=1))
    assert (found.moments_.rows, found.moments_.count) == (len(X), len(X) - outside)


def test_halves_with_one_box_add_up() -> None:
    basis = FourierLattice(4, box=[(-5, 5)] * 2)
    one, two = make(basis=basis).fit(X[:1700]), make(basis=basis).fit(X[1700:])
    whole = make(basis=basis).fit(X)
    both = make(basis=basis).fit_moments(one.moments_ + two.moments_)
    assert_close(modes(both.moments_), modes(whole.moments_), 1e-13, dtype=complex)
    np.testing.assert_allclose(both.eigenvalues_, whole.eigenvalues_, rtol=1e-10, atol=1e-13)
    with pytest.raises(ValueError, match=r"different Fourier lattices, m=\(5, 5\) and m=\(4, 4\); box="):
        _ = make().fit(X[:1700]).moments_ + two.moments_


class Halt(Exception):
    pass


def test_a_halted_fit_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST_FLOPS", 1e5)
    monkeypatch.setattr(planning, "EPOCH", 2)
    blocks, run, add = da.from_array(X, chunks=(200, 2)), tmp_path / "run.zarr", Checkpoint.add

    def add_and_halt(self: Checkpoint, epochs: int, total: Any) -> None:
        self._cost = 0.0
        add(self, epochs, total)
        if epochs == 3:
            raise Halt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", add_and_halt)
        with pytest.raises(Halt):
            make().fit(blocks, checkpoint=run, checkpoint_every=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(passes, "extent_of", lambda *a, **k: pytest.fail("the box is in the checkpoint"))
        resumed = make().fit(blocks, checkpoint=run)
    assert_same_bits(resumed.moments_, make().fit(blocks).moments_)


def test_other_solutions_of_the_same_moments(fitted: dsp.SpectralDecomposition) -> None:
    moments = fitted.moments_
    assert moments.penalty is None  # it is the estimator's
    for changes in (
        {"kernel": Gaussian(1.0)},
        {"kernel": Gaussian("auto")},
        {"kernel": None, "penalty": "auto"},
        {"penalty": 10.0},
        {"solver": "cut"},
        {"basis": None},
        {"n_components": 2},
    ):
        found, wanted = make(**changes).fit_moments(moments), make(**changes | {"basis": FourierLattice(5)}).fit(X)
        np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_, err_msg=str(changes))
        np.testing.assert_array_equal(found.held_out_, wanted.held_out_, err_msg=str(changes))
    lower = make(basis=FourierLattice((3, 4))).fit_moments(moments)
    assert np.count_nonzero(np.any(lower.coefficients_ != 0, axis=1)) == 7 * 9
    assert lower.eigenvalues_[1] != fitted.eigenvalues_[1]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"basis": FourierLattice(8)}, ValueError, r"frequencies up to \(5, 5\), .* asks for \(8, 8\)"),
        ({"basis": FourierLattice((2, 2, 2))}, ValueError, r"are of 2 variables, .* m=\(2, 2, 2\), for 3"),
        ({"kernel": Polynomial(2)}, TypeError, "prior of its coefficients"),
        ({"kernel": Gaussian("median")}, ValueError, "takes no median"),
        ({"operator": Schroedinger()}, ValueError, "the operator of this estimator is"),
    ],
)
def test_moments_that_cannot_be_solved_so(
    fitted: dsp.SpectralDecomposition, changes: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**changes).fit_moments(fitted.moments_)


# functions of new rows


@pytest.mark.parametrize("container", CONTAINERS)
def test_functions_in_every_container(tmp_path: Path, fitted: dsp.SpectralDecomposition, container: str) -> None:
    x3 = np.column_stack([X[:300], np.zeros(300)])
    model = make(columns=[0, 1]).fit(np.column_stack([X, np.zeros(len(X))]))
    wrap, kind = CONTAINERS[container]
    found = model.transform(wrap(tmp_path, "x", x3))
    assert isinstance(found, kind)
    assert found.dtype == float
    np.testing.assert_allclose(np.asarray(found), fitted.transform(X[:300]), atol=1e-9)


def test_functions_are_sums_of_waves(fitted: dsp.SpectralDecomposition) -> None:
    wanted = fitted.basis_.values(X[:50]).T @ fitted.coefficients_
    np.testing.assert_allclose(fitted.transform(X[:50]), wanted, atol=1e-7)


def test_nothing_is_wrapped_around_the_box(fitted: dsp.SpectralDecomposition) -> None:
    """Rows far outside have the values of the nearest point of the box, not those of the other end."""
    (lower, upper), (below, _) = fitted.basis_.box
    far = np.array([[50.0, 0.0], [upper + 0.3, 0.0], [-1e9, -1e9], [upper + fitted.basis_.period[0], 0.0]])
    edge = np.array([[upper, 0.0], [upper, 0.0], [lower, below], [upper, 0.0]])
    np.testing.assert_allclose(fitted.transform(far), fitted.transform(edge), atol=1e-9)


def test_score_and_bounds(fitted: dsp.SpectralDecomposition) -> None:
    assert fitted.score(X) == pytest.approx(-fitted.eigenvalues_.sum(), rel=1e-6)
    fresh = fitted.score(NORMAL[4000:9000])
    assert fresh < fitted.score(X)
    assert fresh == pytest.approx(-fitted.held_out_.sum(), rel=0.3)
    bound = fitted.variance_bound(X)
    assert bound.count == len(X)
    np.testing.assert_array_equal(bound.eigenvalues, fitted.eigenvalues_)
    assert (bound.standard_errors[1:] > 0).all()
    with pytest.raises(ValueError, match=r"2000 of 2000 rows lie outside the box|and the others are outside the box"):
        fitted.score(X[:2000] + 100)


def test_the_plan_is_small() -> None:
    plan = make(basis=FourierLattice(15)).plan(da.zeros((10**9, 2), chunks=(10**6, 2), dtype="f4"))
    assert plan.memory.peak - plan.memory.now < 500e6
    assert len(plan.ranges.ranges) >= 500


def test_a_grid_search_over_kernels() -> None:
    search = GridSearchCV(make(), {"kernel__scale": [0.3, 3.0], "penalty": [1.0]}, cv=2).fit(X)
    assert search.best_params_["kernel__scale"] == 3.0
    bases = GridSearchCV(make(), {"basis": [FourierLattice(1), FourierLattice(4)]}, cv=2).fit(SQUARE)
    assert bases.best_params_["basis"] == FourierLattice(4)
