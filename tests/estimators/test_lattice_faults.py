"""What a stranger met on a lattice: gaps too narrow, rows far out, weights of 0, arguments that were not heard."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice, LandmarkBasis
from daskspectral.errors import TrustWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.moments.lattice import UnresolvedError

RNG = np.random.default_rng(0)
SQUARE = RNG.uniform(0, np.pi, (20_000, 2))


def fitted(x: Any, basis: Any = None, weight: Any = None, **options: Any) -> Any:
    options = {"n_components": 4, "random_state": 0, **options}
    return dsp.SpectralDecomposition(basis=basis or FourierLattice(), **options).fit(x, sample_weight=weight)


def test_the_usual_gap_holds_the_first_values_of_a_square() -> None:
    """With a margin of .1 these were 2 % too large at any n, and no interval held them."""
    model = fitted(RNG.uniform(0, np.pi, (100_000, 2)))
    held = model.eigenvalue_errors_
    assert ((held[1:3, 0] <= 1) & (held[1:3, 1] >= 1)).all()
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 2], atol=0.03)


def test_a_kernel_too_smooth_for_the_gap_is_told() -> None:
    with pytest.warns(TrustWarning, match=r"reaches far across the gap of 0\.31.*FourierLattice\(margin=0\.2\)"):
        model = fitted(SQUARE, FourierLattice(margin=0.1), kernel=Gaussian(1.5))
    assert model.eigenvalues_[1] > 1.3
    x = RNG.uniform(-1, 1, (5000, 2))
    with pytest.warns(TrustWarning, match="reaches far across the gap"):
        model = dsp.HermiteRegressor(Gaussian(3.0), basis=FourierLattice()).fit(x, x[:, 0])
    assert model.score(x, x[:, 0]) < 0.9
    wide = dsp.HermiteRegressor(Gaussian(0.5), basis=FourierLattice(margin=1.0)).fit(x, x[:, 0])  # nothing is told
    assert wide.score(x, x[:, 0]) > 0.999
    fitted(SQUARE, FourierLattice(), kernel=Matern(1.5, 2.0))
    angles = RNG.uniform(0, 2 * np.pi, (5000, 2))
    fitted(angles, FourierLattice(4), kernel=Gaussian(1.0), periods={0: 2 * np.pi, 1: 2 * np.pi})


def test_a_regression_has_a_wider_gap() -> None:
    x = RNG.uniform(-1, 1, (3000, 2))
    model = dsp.HermiteRegressor(basis=FourierLattice()).fit(x, x[:, 0])
    assert model.basis_.margin == 0.3
    assert dsp.HermiteRegressor(basis=FourierLattice(3)).fit(x, x[:, 0]).basis_.margin == 0.5
    assert dsp.HermiteRegressor(basis=FourierLattice(margin=0.15)).fit(x, x[:, 0]).basis_.margin == 0.15


def test_rows_that_leave_nothing_of_the_box_are_an_error_and_no_lattice_is_chosen() -> None:
    x = RNG.normal(size=(20_000, 2))
    x[:80] = -9999.0
    with pytest.raises(UnresolvedError, match=r"do not tell the rows apart in the box \[\(-9999, .*give a box"):
        fitted(x)
    with pytest.warns(TrustWarning):
        model = fitted(x, "auto")
    assert isinstance(model.basis_.parts[-1], LandmarkBasis)


def test_rows_far_out_are_named_where_the_box_holds_them() -> None:
    given: dict[str, Any] = {"kernel": Matern(1.5, 1.0), "penalty": 1.0}
    x = np.random.default_rng(0).laplace(size=(2000, 2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TrustWarning)
        fitted(x, FourierLattice(6), **given)
    assert not [w for w in told if "outliers" in str(w.message)]
    x[::400] = 100.0
    with pytest.warns(TrustWarning, match=r"0\.25 % of the rows are outliers of column 1: .* to 100, and"):
        fitted(x, FourierLattice(6), **given)


def test_a_few_rows_have_few_functions() -> None:
    model = fitted(SQUARE[:300], kernel=Matern(1.5, 2.0), penalty=1.0)
    assert model.basis_.size == 49
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 2], atol=0.3)


def test_rows_of_weight_0_set_no_box() -> None:
    x, weight = RNG.uniform(size=(5000, 2)), np.ones(5000)
    x[:50], weight[:50] = 1e3, 0
    model = fitted(x, FourierLattice(8), weight)
    assert max(upper for _, upper in model.basis_.box) <= 1
    np.testing.assert_allclose(model.eigenvalues_[1:3], np.pi**2, rtol=0.1)


def test_without_folds_nothing_is_compared_and_it_is_told() -> None:
    x = np.random.default_rng(1).normal(size=(20_000, 2))
    with pytest.warns(TrustWarning, match="were not compared, since fewer than 4 folds have rows"):
        model = fitted(x, FourierLattice(8), folds=None, n_components=6)
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 2, 2, 2], atol=0.15)


@pytest.mark.parametrize(
    "other", [{"box": [(0, 1), (-5, 5)]}, {"margin": 0.9}, {"periods": (1.0, None)}], ids=lambda o: next(iter(o))
)
def test_modes_of_another_box_are_refused(other: dict[str, Any]) -> None:
    known = FourierLattice(6, box=[(-5, 5)] * 2)
    moments = fitted(RNG.normal(size=(5000, 2)), known, kernel=Matern(1.5, 2.0), penalty=10.0).moments_
    (name,) = other
    with pytest.raises(ValueError, match=f"these modes were measured with {name}="):
        dsp.SpectralDecomposition(basis=FourierLattice(6, **other)).fit_moments(moments)
    some = FourierLattice(4, box=[(-5, 5), None])
    dsp.SpectralDecomposition(basis=some, kernel=Matern(1.5, 2.0), penalty=10.0).fit_moments(moments)
