"""Models on a Fourier lattice that are kept, added, solved again, and their functions at new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.operators import Schroedinger
from daskspectral.passes import lattice as passes
from tests.common import assert_close, assert_same_bits
from tests.estimators.common import CONTAINERS
from tests.estimators.lattice import NORMAL, X, make, modes


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)


def test_a_saved_model_is_the_model(tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    fitted.save(tmp_path / "model.zarr")
    found = dsp.load(tmp_path / "model.zarr")
    assert (found.basis_, found.kernel_) == (fitted.basis_, fitted.kernel_)
    np.testing.assert_array_equal(found.transform(X), fitted.transform(X))
    assert_same_bits(found.moments_, fitted.moments_)
    again = found.fit_moments(found.moments_)
    np.testing.assert_array_equal(again.eigenvalues_, fitted.eigenvalues_)
    np.testing.assert_array_equal(again.held_out_, fitted.held_out_)


def test_chosen_parameters_give_the_fit_again() -> None:
    model = dsp.SpectralDecomposition(basis=FourierLattice((4, 5), margin=0.5), n_components=4).fit(X)
    again = dsp.SpectralDecomposition(**model.choice_.parameters).fit(X)
    same = again.basis_.orders == model.basis_.orders  # fewer frequencies are other transforms
    np.testing.assert_allclose(again.held_out_, model.held_out_, rtol=0 if same else 1e-7, atol=0 if same else 1e-9)
    assert again.kernel_ == model.kernel_


def test_rows_are_appended_and_moments_added_in_one_box() -> None:
    first = make(basis=FourierLattice(4)).fit(X[:3000])
    basis = first.basis_
    grown = first.update(X)
    assert grown.basis_.box == basis.box
    parts = [make(basis=basis).fit(x).moments_ for x in (X[:1700], X[1700:])]
    both = make(basis=basis).fit_moments(parts[0] + parts[1])
    assert_close(modes(both.moments_), modes(grown.moments_), 1e-13, dtype=complex)
    assert grown.moments_.rows == len(X) > grown.moments_.count == both.moments_.count
    with pytest.raises(ValueError, match=r"different Fourier lattices, m=\(5, 5\) and m=\(4, 4\); box="):
        _ = make().fit(X[:1700]).moments_ + parts[1]


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


@pytest.mark.parametrize(
    "changes", [{"kernel": Gaussian("auto")}, {"kernel": None, "penalty": "auto"}, {"solver": "cut"}, {"basis": None}]
)
def test_other_solutions_of_the_same_moments(changes: dict[str, Any], fitted: dsp.SpectralDecomposition) -> None:
    found, wanted = make(**changes).fit_moments(fitted.moments_), make(**changes | {"basis": FourierLattice(5)}).fit(X)
    np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)
    np.testing.assert_array_equal(found.held_out_, wanted.held_out_)


def test_fewer_frequencies_of_the_same_moments(fitted: dsp.SpectralDecomposition) -> None:
    lower = make(basis=FourierLattice((3, 4))).fit_moments(fitted.moments_)
    assert np.count_nonzero(np.any(lower.coefficients_ != 0, axis=1)) == 7 * 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"basis": FourierLattice(8)}, r"frequencies up to \(5, 5\), .* asks for \(8, 8\)"),
        ({"basis": FourierLattice((2, 2, 2))}, r"are of 2 variables, .* m=\(2, 2, 2\), for 3"),
        ({"basis": FourierLattice(5, margin=0.9)}, "these modes were measured with margin="),
        ({"kernel": Polynomial(2)}, "prior of its coefficients"),
        ({"kernel": Gaussian("median")}, "takes no median"),
        ({"operator": Schroedinger()}, "the operator of this estimator is"),
    ],
)
def test_moments_that_cannot_be_solved_so(fitted: dsp.SpectralDecomposition, changes: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(**changes).fit_moments(fitted.moments_)


@pytest.mark.parametrize("container", ["dask", "path", "xarray, chunked"])
def test_functions_are_sums_of_waves_in_every_container(
    tmp_path: Path, fitted: dsp.SpectralDecomposition, container: str
) -> None:
    wrap, kind = CONTAINERS[container]
    found = make(columns=[0, 1]).fit(np.column_stack([X, X[:, 0]])).transform(wrap(tmp_path, "x", X[:300, [0, 1, 0]]))
    assert isinstance(found, kind)
    wanted = fitted.basis_.values(X[:300]).T @ fitted.coefficients_
    np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-7)


def test_nothing_is_wrapped_around_the_box(fitted: dsp.SpectralDecomposition) -> None:
    """Rows far outside have the values of the nearest point of the box, not those of the other end."""
    (lower, upper), (below, _) = fitted.basis_.box
    far = np.array([[50.0, 0.0], [-1e9, -1e9], [upper + fitted.basis_.period[0], 0.0]])
    edge = np.array([[upper, 0.0], [lower, below], [upper, 0.0]])
    np.testing.assert_allclose(fitted.transform(far), fitted.transform(edge), atol=1e-9)


def test_score_and_plan(fitted: dsp.SpectralDecomposition) -> None:
    assert fitted.score(X) == pytest.approx(-fitted.eigenvalues_.sum(), rel=1e-6)
    assert fitted.score(NORMAL[4000:9000]) == pytest.approx(-fitted.held_out_.sum(), rel=0.3)
    assert fitted.variance_bound(X).count == len(X)
    plan = make(basis=FourierLattice(15)).plan(da.zeros((10**9, 2), chunks=(10**6, 2), dtype="f4"))
    assert plan.memory.peak - plan.memory.now < 500e6
