"""What the folds choose on a lattice, and lattices of more functions than matrices hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.errors import TrustWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.moments import lattice, lattice_large
from daskspectral.moments.lattice_large import shrunk_orders
from daskspectral.moments.prior_choice import comparable_cutoff, tried_orders
from daskspectral.passes import score

RNG = np.random.default_rng(3)
NORMAL = RNG.standard_normal((20_000, 2))
PRIOR: dict[str, Any] = {"kernel": Matern(1.5, 1.0), "penalty": 10.0, "n_components": 6, "random_state": 0}


@pytest.fixture
def no_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of up to 300 functions alone."""
    monkeypatch.setattr(lattice, "DENSE", 300)
    monkeypatch.setattr(score, "DENSE", 300)
    monkeypatch.setattr(lattice_large, "COARSE", 200)


def test_products_give_what_matrices_give(no_matrices: None, monkeypatch: pytest.MonkeyPatch) -> None:
    large = dsp.SpectralDecomposition(basis=FourierLattice(12), **PRIOR).fit(NORMAL)
    fresh = np.random.default_rng(8).standard_normal((5000, 2))
    by_products = large.score(fresh)
    monkeypatch.undo()
    small = dsp.SpectralDecomposition(basis=FourierLattice(12), **PRIOR).fit_moments(large.moments_)
    assert "iterations" in large.status_
    assert "iterations" not in small.status_
    np.testing.assert_allclose(large.eigenvalues_, small.eigenvalues_, rtol=1e-5, atol=1e-9)
    overlap = large.transform(fresh).T @ small.transform(fresh) / len(fresh)
    np.testing.assert_allclose(np.abs(np.diag(overlap)), 1, atol=0.1)
    np.testing.assert_allclose(large.support_, small.support_, rtol=1e-6, atol=1e-3)
    assert by_products == pytest.approx(small.score(fresh), rel=1e-4)
    assert large.rank_ == 625
    assert np.isfinite(large.eigenvalue_errors_).all()


def test_a_generator_is_descending_by_products_too(no_matrices: None) -> None:
    operator = dsp.operators.Generator(diffusion=np.sqrt(2.0), reversible=True)
    large = dsp.SpectralDecomposition(operator, basis=FourierLattice(10), **PRIOR).fit(NORMAL)
    np.testing.assert_allclose(large.eigenvalues_[:3], [0, -1, -1], atol=0.03)
    held = large.eigenvalue_errors_[1:3]
    assert ((held[:, 0] <= large.eigenvalues_[1:3]) & (large.eigenvalues_[1:3] <= held[:, 1])).all()


def test_what_needs_matrices_says_so(no_matrices: None) -> None:
    drift = {"drift": -NORMAL}
    model = dsp.SpectralDecomposition(dsp.operators.Generator(diffusion=1.0), basis=FourierLattice(10), **PRIOR)
    with pytest.raises(ValueError, match="441 functions are too large: lower m"):
        model.fit(NORMAL, fields=drift)


def test_rows_beyond_a_gap_in_the_tail_decide_no_prior() -> None:
    x = np.random.default_rng(0).standard_normal((40_000, 1))
    found = dsp.SpectralDecomposition(basis=FourierLattice(), n_components=4, random_state=0).fit(x)
    np.testing.assert_allclose(found.eigenvalues_, [0, 1, 2, 3], atol=0.4)


def test_a_penalty_that_only_seemed_good_beside_others_is_not_taken() -> None:
    """Of two circles the second value is 0; wide kernels at c = 100 lose it, but not beside smaller penalties."""
    rng = np.random.default_rng(0)
    t, r = rng.uniform(0, 2 * np.pi, 100_000), rng.choice([0.5, 1.0], 100_000, p=[1 / 3, 2 / 3])
    x = np.column_stack([np.cos(t), np.sin(t)]) * r[:, None]
    model = dsp.SpectralDecomposition(basis=FourierLattice(), n_components=4, random_state=0).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, [0, 0, 1, 1], atol=0.03)


def test_half_of_the_frequencies_tell_whether_more_would_change_the_values() -> None:
    angle = RNG.uniform(0, 2 * np.pi, 20_000)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * RNG.uniform(0.95, 1.0, (20_000, 1))
    with pytest.warns(TrustWarning, match="higher half of the frequencies .* larger m"):
        coarse = dsp.SpectralDecomposition(basis=FourierLattice(2), n_components=7, random_state=0).fit(ring)
    fine = dsp.SpectralDecomposition(basis=FourierLattice(12), n_components=7, random_state=0).fit(ring)
    assert np.nanmedian(fine.approximation_[1:] / fine.eigenvalues_[1:]) < 0.05
    assert np.nanmedian(coarse.approximation_[1:] / coarse.eigenvalues_[1:]) > 0.1


def test_lower_frequencies_are_tried_in_proportion() -> None:
    assert shrunk_orders((30, 20), 750) == tried_orders((30, 20), 1.0)
    few = tried_orders((30, 20), 1.0)
    assert (2 * few[0] + 1) * (2 * few[1] + 1) <= 750
    assert few[0] / few[1] == pytest.approx(1.5, rel=0.1)
    assert tried_orders((10, 8), 1.0) == (10, 8)
    assert comparable_cutoff((10, 8), 0.5)
    assert not comparable_cutoff((60, 40), 0.5)  # fewer than half of these are tried at all


def test_a_lattice_and_landmarks_are_compared_on_the_pilot() -> None:
    x = np.random.default_rng(2).uniform(0, np.pi, (3000, 2))
    auto = dsp.SpectralDecomposition(basis="auto", n_components=4, random_state=0).fit(x)
    names = [candidate.kernel for candidate in auto.choice_.candidates]
    assert any(name.startswith("lattice, ") for name in names)
    assert any(not name.startswith("lattice, ") for name in names)
    np.testing.assert_allclose(auto.eigenvalues_, [0, 1, 1, 2], rtol=0.2, atol=1e-9)
    again = dsp.SpectralDecomposition(**auto.choice_.parameters).fit(x)
    np.testing.assert_allclose(again.eigenvalues_, auto.eigenvalues_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("given", [{"kernel": Gaussian(1.0), "penalty": 1.0}, {"columns": [0, 1, 2, 3]}])
def test_landmarks_stay_where_a_kernel_is_given_or_the_columns_are_many(given: dict[str, Any]) -> None:
    x = np.random.default_rng(1).standard_normal((2000, 4))
    x = x if "columns" in given else x[:, :2]
    found = dsp.SpectralDecomposition(basis="auto", n_components=3, random_state=0, **given).fit(x)
    assert not isinstance(found.basis_, FourierLattice)
