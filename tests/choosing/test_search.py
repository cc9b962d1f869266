"""Automatic choices: right on known spectra, repeatable, made once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import FourierBasis, Landmarks, NormalizedRBF
from daskspectral.choosing import pilot as pilots
from daskspectral.choosing.search import _half_blocks as half_blocks
from daskspectral.data.writing import progress_bar
from daskspectral.errors import RankWarning, ReliabilityWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.modes import matrices
from daskspectral.moments.trial import Trial
from daskspectral.operators import Cross, Laplacian, Operator, Transfer
from daskspectral.solvers import Regularized
from daskspectral.spectral import choice as sides
from tests.common import unreliable

pytestmark = unreliable

RNG = np.random.default_rng(0)
LINE = RNG.uniform(0, np.pi, (400, 1))
PLANE = RNG.standard_normal((300, 2)) * [1.0, 8.0]
UNIFORM = np.random.default_rng(0).random((1000, 2))
WALK = np.cumsum(RNG.standard_normal((300, 2)), axis=0) * 0.1


def test_the_first_values_of_an_interval_are_right_in_any_unit() -> None:
    est = dsp.SpectralDecomposition(n_components=5, random_state=0).fit(1e-3 * LINE)
    np.testing.assert_allclose(1e-6 * est.eigenvalues_[1:], [1, 4, 9, 16], rtol=0.2)
    best = est.search_results_.chosen
    assert best is not None
    assert best.score == max(c.score for c in est.search_results_.candidates if c.splits == best.splits)
    assert est.kernel_.scale == pytest.approx(best.factor * est.search_results_.median)


CASES: list[tuple[Operator, Any, dict[str, Any]]] = [
    (Laplacian(), PLANE, {"standardize": True}),
    (Transfer(2), WALK, {}),
    (Cross(), (PLANE, PLANE[:, :1] + 0.3 * RNG.standard_normal((300, 1))), {}),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("operator", "x", "changes"), CASES)
def test_the_best_parameters_reproduce_the_same_bits(operator: Operator, x: Any, changes: Any, tmp_path: Path) -> None:
    rows = dsp.Rows(x, **changes)
    est = dsp.SpectralDecomposition(operator, n_components=4).fit(rows)
    est.save(tmp_path / "m.zarr")
    choice = dsp.load(tmp_path / "m.zarr").search_results_
    assert set(choice.best_params) == set(est.get_params(deep=False))
    again = dsp.SpectralDecomposition(**choice.best_params).fit(rows)
    np.testing.assert_array_equal(again.coefficients_, est.coefficients_)
    assert len(again.search_results_) == 0  # nothing was left to choose
    assert str(choice) == str(est.search_results_)


def test_candidates_that_do_not_converge_lose_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    judged, failing = Trial.judged, [Matern]

    def failed(self: Trial, *arguments: Any) -> Any:
        if isinstance(self.moments.basis.landmark_parts[-1].kernel.inner, tuple(failing)):
            raise np.linalg.LinAlgError("rows are too alike")
        return judged(self, *arguments)

    monkeypatch.setattr(Trial, "judged", failed)
    best, *others = dsp.SpectralDecomposition(n_components=4, random_state=0).fit(LINE).search_results_.candidates
    assert best.kernel.startswith("Gaussian")
    assert {c.why for c in others if c.kernel.startswith("Matern")} == {"rows are too alike"}
    failing.append(Gaussian)
    with pytest.raises(np.linalg.LinAlgError, match="Matern"):
        dsp.SpectralDecomposition(n_components=4, random_state=0).fit(LINE)


def test_a_resumed_run_never_chooses_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit() -> dsp.SpectralDecomposition:
        return dsp.SpectralDecomposition(n_components=4, random_state=0).fit(LINE, checkpoint=tmp_path / "run")

    first = fit()

    monkeypatch.setattr(sides, "decide", lambda *arguments, **options: pytest.fail("it was chosen before"))
    second = fit()
    np.testing.assert_array_equal(second.coefficients_, first.coefficients_)
    assert str(second.search_results_) == str(first.search_results_)


@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
@pytest.mark.parametrize("n", [6, 39])
def test_defaults_work_on_few_rows(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, 2))
    est = dsp.SpectralDecomposition().fit(x)
    assert est.eigenvalues_[0] == 0
    assert (np.diff(est.eigenvalues_) >= 0).all()
    assert np.isnan(est.eigenvalue_errors_).all()
    assert f"no error bars from {n} rows" in est.message_


@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
@pytest.mark.one_in(2)
@pytest.mark.parametrize("given", [{}, {"n_landmarks": 30}, {"points": WALK[:20]}, {"method": "uniform"}], ids=str)
def test_landmarks_with_an_option_are_kept(given: dict[str, Any]) -> None:
    """Of trajectories cells are compared, too, if nothing is given."""
    model = dsp.SpectralDecomposition(Transfer(1), Landmarks(**given), n_components=2, random_state=0).fit(WALK)
    found = model.search_results_.best_params["basis"]
    assert isinstance(model.basis_, NormalizedRBF) or given
    assert isinstance(found, Landmarks) == bool(given)
    for name, value in given.items():
        np.testing.assert_array_equal(getattr(found, name), value)


@pytest.mark.parametrize("unit", [1.0, *(pytest.param(2.0**k, marks=pytest.mark.slow) for k in (-30, 30))])
def test_the_choice_is_the_same_from_any_origin_and_in_any_unit(unit: float) -> None:
    """Times in seconds since 1970 within a minute, with another column, against times from their middle."""
    rng = np.random.default_rng(0)
    t, y = rng.uniform(0, 60, 400), 15 * rng.standard_normal(400)
    x = np.round(np.column_stack([t, y + t / 3]) * 2**12) / 2**12
    model = dsp.SpectralDecomposition(n_components=4, random_state=0)
    near, far = (clone(model).fit(points) for points in (x, (x + np.array([1.7e9, -3.0])) * unit))
    np.testing.assert_allclose(far.eigenvalues_ * unit**2, near.eigenvalues_, rtol=1e-6, atol=1e-9)
    assert [c.kernel.partition("(")[0] for c in far.search_results_.candidates] == [
        c.kernel.partition("(")[0] for c in near.search_results_.candidates
    ]


def test_values_of_a_torus_in_many_columns() -> None:
    """Metrics of the leading directions find a surface in a wide table."""
    rng = np.random.default_rng(0)
    angles, turn = rng.uniform(0, 2 * np.pi, (300, 2)), np.linalg.qr(rng.standard_normal((400, 4)))[0]
    model = dsp.SpectralDecomposition(n_components=9, random_state=0)
    model.fit(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) @ turn.T)
    np.testing.assert_allclose(model.eigenvalues_[1:], [1, 1, 1, 1, 2, 2, 2, 2], rtol=0.25)


# rows of rounded values: candidates are judged at points that they did not see


SQUARE = np.pi**2 * np.array([1, 1, 2, 4, 4])
LEVELS = (np.pi / 3) ** 2 * np.array([1, 4, 9, 16, 25])


@pytest.mark.parametrize(
    ("x", "wanted", "least"),
    [
        (np.random.default_rng(0).random((3000, 2)).round(1), SQUARE, 4),
        ((3 * np.random.default_rng(0).random((3000, 1))).round(1), LEVELS, 3),
        pytest.param(
            np.repeat(np.random.default_rng(0).random((500, 2)), 6, axis=0), SQUARE, 3, marks=pytest.mark.slow
        ),
    ],
    ids=["square", "line", "copies"],
)
def test_values_are_those_before_rounding(x: Any, wanted: Any, least: int) -> None:
    """They were 0, in intervals of width 0, and the more rows the nearer."""
    model = dsp.SpectralDecomposition(n_components=6, random_state=0)
    with pytest.warns(ReliabilityWarning, match=r"of 3000 rows only \d+ differ"):
        model.fit(np.random.default_rng(1).permutation(x))
    assert model.eigenvalues_[1] == pytest.approx(wanted[0], rel=0.25)
    lower, upper = model.eigenvalue_errors_[1:].T
    assert np.count_nonzero((lower <= wanted) & (wanted <= upper)) >= least


def test_landmarks_at_all_points_leave_rows_to_judge_by() -> None:
    x = (3 * np.random.default_rng(0).random((3000, 1))).round(1)
    model = dsp.SpectralDecomposition(basis=Landmarks(Gaussian(0.9), 100), n_components=6, random_state=0)
    with pytest.warns(RankWarning, match="only 31 of 100 landmarks"):
        model.fit(x)
    assert model.reliable_.all()
    np.testing.assert_allclose(model.eigenvalues_[1:], LEVELS, rtol=0.08)


# boxes and frequencies of a lattice


def lattice(x: Any, **options: Any) -> dsp.SpectralDecomposition:
    basis = FourierBasis(kernel=Matern(1.5, 1.5), **options)
    return dsp.SpectralDecomposition(basis=basis, solver=Regularized(1.0), n_components=3).fit(x)


def test_a_lattice_has_fewer_functions_than_a_quarter_of_the_rows() -> None:
    model = lattice(RNG.uniform(0, np.pi, (300, 2)))
    assert model.basis_.size == 49
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1], atol=0.3)


def test_rows_far_out_are_named_if_the_box_contains_them() -> None:
    x = np.random.default_rng(0).laplace(size=(2000, 2))
    assert not any("outliers" in text for text in lattice(x, n_frequencies=6).warnings_)
    x[::400] = 100.0
    text = " ".join(lattice(x, n_frequencies=6).warnings_)
    assert all(f"outliers of column {axis}" in text for axis in (0, 1))


@unreliable
def test_a_slow_column_among_many_fast_ones_is_found() -> None:
    """Of 60 columns that forget in two rows and one in 20: rows next to landmarks in time must not judge functions."""
    rng, d, kept = np.random.default_rng(0), 60, np.exp(-1 / np.append(20.0, np.full(59, 1.5)))
    x = rng.standard_normal((1200, d))
    for i in range(1, len(x)):
        x[i] = kept * x[i - 1] + np.sqrt(1 - kept**2) * x[i]
    model = dsp.Koopman(1, reversible=True, n_components=4, random_state=0).fit(x)
    low, high = model.timescale_errors_[0, 0]
    assert low < 20 < high
    assert low > 5
    weights = model.patterns_.single[1] / x.std(axis=0)
    assert abs(weights[0]) > 3 * np.abs(weights[1:]).max()
    assert "linear" in model.search_results_.chosen.kernel


@unreliable
@pytest.mark.slow
def test_a_slow_state_among_hundreds_of_columns_is_not_hidden() -> None:
    """Normalized radial basis functions of 301 columns, of better scores, do not see it: 2.7 [2, 3.3] rows for 20."""
    rng, kept = np.random.default_rng(1), np.exp(-1 / 20)
    first, changes = rng.choice([-1, 1]), rng.random(2000) < (1 - kept) / 2
    state = first * np.where(np.cumsum(changes) % 2, -1, 1) + 0.3 * rng.standard_normal(2000)
    x = rng.standard_normal((2000, 301))
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + np.sqrt(0.75) * x[i]
    x[:, 0] = state
    model = dsp.Koopman((1, 2, 5, 10), reversible=True, n_components=4, random_state=0).fit(x)
    assert model.timescale_errors_[0, 0, 1] > 15
    assert not model.reliable_[1]
    assert "linear" in model.search_results_.chosen.kernel


@pytest.mark.parametrize("model", [dsp.SpectralDecomposition(n_components=2), dsp.HermiteRegressor()], ids=str)
def test_the_choice_has_a_bar_that_counts_trials(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[Any] = []

    def recorded(*args: Any, **options: Any) -> Any:
        bars.append(progress_bar(*args, **options))
        return bars[-1]

    monkeypatch.setattr(pilots, "progress_bar", recorded)
    x = np.random.default_rng(0).standard_normal((120, 2))
    model.fit(x, x[:, 0], progress=True) if isinstance(model, dsp.HermiteRegressor) else model.fit(x, progress=True)
    (bar,) = bars
    assert (bar.desc, bar.total) == ("choice", None)
    assert bar.n >= 6  # scales of two kernels at least


def test_a_metric_of_equal_roots_is_not_tried() -> None:
    for x, tried in ((UNIFORM, False), (UNIFORM * [1.0, 0.5], True)):
        found = dsp.SpectralDecomposition(n_components=4, random_state=0).fit(x).search_results_.candidates
        assert any("metric" in candidate.kernel for candidate in found) == tried


def test_a_kernel_far_behind_with_few_functions_is_not_a_finalist(monkeypatch: pytest.MonkeyPatch) -> None:
    def finalists() -> set[str]:
        found = dsp.SpectralDecomposition(n_components=4, random_state=0).fit(UNIFORM).search_results_.candidates
        return {candidate.kernel.partition("(")[0] for candidate in found if candidate.splits == 4}

    assert finalists() == {"Gaussian"}
    monkeypatch.setattr("daskspectral.choosing.search.BEHIND", np.inf)
    assert finalists() == {"Gaussian", "Matern"}


def test_a_plan_for_many_columns_does_not_list_pairs_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names a Fourier basis if it would be faster, for up to three columns."""
    units, sizes = matrices._units, []
    monkeypatch.setattr(matrices, "_units", lambda d: sizes.append(d) or units(d))
    assert dsp.SpectralDecomposition().plan(np.zeros((100, 50))).ranges
    assert set(sizes) == {1}


@pytest.mark.parametrize("rows", [2, 5, 11, 100])
def test_half_of_the_rows_of_a_short_trajectory_is_never_none_or_all(rows: int) -> None:
    for seed in range(60):
        half = half_blocks(rows, 10, np.random.default_rng(seed))
        assert 0 < len(half) < rows
