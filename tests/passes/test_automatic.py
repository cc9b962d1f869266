"""The automatic choice: right on problems with known spectra, repeatable, and made once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.errors import RankWarning, TrustWarning
from daskspectral.operators import Cross, Laplacian, Operator, Transfer
from daskspectral.passes import deciding, network_trial, sides

RNG = np.random.default_rng(0)
LINE = RNG.uniform(0, np.pi, (400, 1))
PLANE = RNG.standard_normal((300, 2)) * [1.0, 8.0]
WALK = np.cumsum(RNG.standard_normal((300, 2)), axis=0) * 0.1


@pytest.fixture(autouse=True)
def doubts() -> Iterator[None]:
    """Few rows are doubted with reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        yield


def test_the_first_values_of_an_interval_are_right_in_any_unit() -> None:
    for unit in (1.0, 1e-3, 1e4):
        est = dsp.SpectralDecomposition(n_components=5, random_state=0).fit(unit * LINE)
        np.testing.assert_allclose(unit**2 * est.eigenvalues_[1:], [1, 4, 9, 16], rtol=0.2)
        best = est.choice_.chosen
        assert best is not None
        assert best.score == max(c.score for c in est.choice_.candidates if c.splits == best.splits)
        assert est.kernel_.scale == pytest.approx(best.factor * est.choice_.median)


CASES: list[tuple[Operator, Any, dict[str, Any]]] = [
    (Laplacian(), PLANE, {"standardize": True}),
    (Transfer(2), WALK, {}),
    (Cross(), (PLANE, PLANE[:, :1] + 0.3 * RNG.standard_normal((300, 1))), {}),
]


@pytest.mark.parametrize(("operator", "x", "changes"), CASES)
def test_the_parameters_give_the_same_bits(operator: Operator, x: Any, changes: Any, tmp_path: Path) -> None:
    est = dsp.SpectralDecomposition(operator, n_components=4, **changes).fit(x)
    est.save(tmp_path / "m.zarr")
    for choice in (est.choice_, dsp.load(tmp_path / "m.zarr").choice_):
        assert set(choice.parameters) == set(est.get_params(deep=False))
        again = dsp.SpectralDecomposition(**choice.parameters).fit(x)
        np.testing.assert_array_equal(again.coefficients_, est.coefficients_)
        assert len(again.choice_) == 0  # nothing was left to choose
        assert str(choice) == str(est.choice_)


def test_a_resumed_run_never_chooses_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit() -> dsp.SpectralDecomposition:
        return dsp.SpectralDecomposition(n_components=4, random_state=0).fit(LINE, checkpoint=tmp_path / "run")

    first = fit()

    monkeypatch.setattr(sides, "decide", lambda *arguments, **options: pytest.fail("it was chosen before"))
    second = fit()
    np.testing.assert_array_equal(second.coefficients_, first.coefficients_)
    assert str(second.choice_) == str(first.choice_)


@pytest.mark.slow
def test_a_lattice_is_compared_with_landmarks_on_the_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """By how rows held out judge each; where they are as good, the lattice is taken."""
    monkeypatch.setattr(network_trial, "available", lambda: False)
    x = RNG.uniform(0, np.pi, (1500, 2)) * [0.5, 1.0]
    est = dsp.SpectralDecomposition(basis="auto", n_components=4, random_state=0).fit(x)
    lattice = next(c for c in est.choice_.candidates if "the lattice, by prior" in c.why)
    others = [c.score for c in est.choice_.candidates if c.splits == lattice.splits and c is not lattice]
    assert isinstance(est.basis_, FourierLattice) is (lattice.score > max(others) - deciding.TIE)
    np.testing.assert_allclose(est.eigenvalues_[1:], [1, 4, 4], rtol=0.2)


@pytest.mark.parametrize("n", [6, 7, 11, 39, 41])
def test_defaults_work_on_few_rows(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        est = dsp.SpectralDecomposition().fit(x)
    assert est.eigenvalues_[0] == 0
    assert (np.diff(est.eigenvalues_) >= 0).all()
    assert np.isnan(est.eigenvalue_errors_).all()
    assert f"no error bars from {n} rows" in est.status_
