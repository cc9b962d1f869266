"""Warnings of answers that are less than they seem: each where its cause is, and none where the answer is good."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis, Landmarks, MonomialBasis
from daskspectral.datasets import SAMPLES
from daskspectral.errors import ReliabilityWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.moments.intervals import Errors
from daskspectral.moments.reliability import Reliability
from daskspectral.operators import Covariance, Cross
from daskspectral.solve import Solution
from tests.common import autoregression, unreliable
from tests.moments.common import moments_of, problem_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 2))
FOLD = np.arange(400) % 5
SOME = [1, 1, 0, 1]  # reliable: where all are, none is called uncertain


@contextmanager
def quiet() -> Iterator[None]:
    """No warning at all is raised inside, trust included."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def spectrum(values: Any, rank: Any = 50) -> Solution:
    functions = np.eye(6)[:, : len(values)]
    return Solution(np.array(values), functions, functions, rank, np.zeros(len(values)), "")


def told(match: str) -> Any:
    """A warning of so many words, or none at all."""
    return pytest.warns(ReliabilityWarning, match=match) if match else quiet()


def solved(values: Any = (0.0, 1.0, 2.0, 4.0), **changes: Any) -> Reliability:
    """A solution whose parts are given: values known to a tenth, without warnings."""
    moments = changes.pop("moments", None) or moments_of(MonomialBasis(2, 2), {"x": X}, FOLD)
    size = np.abs(values)
    half = changes.pop("half", 0.05 * size)
    ends = np.column_stack([values - half, values + half])
    held_out = np.asarray(changes.pop("held_out", values))
    reliable = np.array(changes.pop("reliable", np.ones(len(values))), dtype=bool)
    none = np.zeros(len(values))
    errors = Errors(ends, none, held_out, np.arange(len(values)), none, reliable, changes.pop("reason", ""))
    approximation = np.asarray(changes.pop("approximation", none), dtype=float)
    problem = changes.pop("problem", None) or problem_of(moments, len(values))
    return Reliability(problem, moments, spectrum(values, **changes), errors, approximation, reliable, problem.nulls)


def test_doubts_of_values_and_of_landmarks() -> None:
    sizes = np.array([0.0, 1.0, 2.0, 4.0])
    for half, doubted in ((9.0, True), (0.3, True), (0.1, False)):
        assert bool(solved(half=half * sizes, reliable=SOME).uncertain()) is doubted
    assert solved(half=9.0 * sizes).uncertain() == ""  # all are reliable
    for change, doubted in ((0.05, False), (0.2, True)):
        alone = solved(approximation=np.array([0, 0, 0, change * 4]), reliable=[1, 0, 0, 1])
        for own in (solved(approximation=np.array([5.0, *(change * sizes[1:])])), alone):
            assert bool(own.few_landmarks()) is doubted
    assert solved(approximation=[0, 0, 0, 0.8], reliable=[1, 1, 1, 0]).few_landmarks() == ""


@unreliable
@pytest.mark.parametrize("varying", [12, 24])
def test_linear_functions_are_complete_if_they_explain_all_columns(varying: int) -> None:
    x = RNG.standard_normal((300, varying)) @ RNG.standard_normal((varying, 30)) + 5
    model = dsp.SpectralDecomposition(Covariance(), Landmarks("linear", 20), n_components=3, random_state=0).fit(x)
    assert np.isnan(model.discretization_errors_).all() == (varying < 20)


def test_columns_of_different_units_are_the_cause_of_a_warning() -> None:
    """Named by their numbers in X, with the remedy, and not the rows; never where scaling is refused, or was done."""
    x = np.random.default_rng(1).standard_normal((150, 4)) * [0, 1, 30, 1e5] + [7e4, 1e3, 1e3, 1e3]

    def warnings_of(rows: Any, basis: Any, operator: Any = None) -> str:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dsp.SpectralDecomposition(operator, basis, n_components=5, random_state=0).fit(rows)
        return "; ".join(str(w.message) for w in caught)

    auto = Landmarks("gaussian:auto", 40)
    assert "column 1 to" in warnings_of(dsp.Rows(x, columns=[3, 1]), auto)
    for rows, basis, operator in (
        (dsp.Rows(x[:, 1:], standardize=True), auto, None),
        (x[:, [0, 1, 2]], auto, None),  # a constant is no column of small spread
        (x, replace(auto, periods={3: 1e6}), None),
        ((x, np.roll(x, 7, axis=0)), Landmarks("linear"), Cross()),
    ):
        text = warnings_of(rows, basis, operator)
        assert text
        assert "standardize=True" not in text


def test_rows_in_time_are_trusted_by_folds_that_know_of_it() -> None:
    x = autoregression(4000, 0.98)
    model = dsp.SpectralDecomposition(Covariance(), n_components=1, random_state=0)
    with told("order of the rows"):
        assert not model.fit(x).reliable_.any()
    with quiet():
        assert model.set_params(folds="random").fit(x).reliable_.all()


def test_the_first_warning_points_at_the_line_of_the_user() -> None:
    landmarks = moments_of(LandmarkBasis(Matern(1.5, 1.0), X[:9]), {"x": X}, FOLD)
    for found in (
        solved(half=np.ones(4), approximation=np.ones(4)),
        solved(half=np.ones(4), approximation=np.ones(4), moments=landmarks),
        solved(reason="no error bars from 90 rows"),
    ):
        with pytest.warns(ReliabilityWarning) as caught:
            found.advise()
        assert len(caught) == 1
    x = RNG.random((200, 1))
    estimator = dsp.SpectralDecomposition(basis=Landmarks(Matern(1.5, 1.0), 60), n_components=9, random_state=0)
    for call in (lambda: estimator.fit(x), lambda: estimator.fit_moments(estimator.moments_)):
        with pytest.warns(ReliabilityWarning) as caught:
            call()
        assert (caught[0].filename, caught[0].lineno) == (__file__, inspect.getsourcelines(call)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "sphere"])
def test_defaults_on_clean_data_are_right_and_quiet(name: str) -> None:
    x = np.random.default_rng(1).random((2000, 2))
    wanted = np.pi**2 * np.array([0, 1, 1, 2, 4, 4])
    if name == "sphere":
        x, wanted = SAMPLES["sphere"].draw(2000, 3, 0.0, np.random.default_rng(1))[0], np.array([0, 2, 2, 2, 6, 6])
    with quiet():
        model = dsp.SpectralDecomposition(n_components=6, random_state=0).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, wanted, rtol=0.15, atol=1e-8)


def roll(n: int, tightness: float = 6.0, width: float = 12.0, seed: int = 0) -> Any:
    """A rolled sheet whose turns come close to each other."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n)
    radius = (angle + 0.1 * rng.standard_normal(n)) / tightness
    return np.column_stack([radius * np.sin(angle), radius * np.cos(angle), rng.uniform(0, width, n)])


@pytest.mark.slow
def test_values_that_a_tight_roll_hides_are_not_trusted() -> None:
    """True are .053, .069, .121, .236; .065 is the first that functions of one scale find."""
    model = dsp.SpectralDecomposition(n_components=4, random_state=0)
    with pytest.warns(ReliabilityWarning, match="neighboring rows"):
        model.fit(roll(2000))
    assert not model.reliable_[1:].any()
    assert model.eigenvalues_[1] > 0.06


@pytest.mark.parametrize(
    ("ratios", "wanted"),
    [
        ([1.4, 1.6, 2.2], [0, 0, 1, 1]),
        ([2.2, 1.4, 1.6], [0, 1, 0, 1]),
        ([1.4, 2.2, 2.2], [0, 1, 1, 1]),
    ],
)
def test_which_values_slower_functions_call_in_question(ratios: list[float], wanted: list[int]) -> None:
    found = replace(solved(), ratios=np.array(ratios))
    np.testing.assert_array_equal(found.slower, np.array(wanted, bool))
    np.testing.assert_array_equal(found.reliable, ~found.slower)


def test_functions_that_see_single_points_of_rounded_rows_are_not_trusted() -> None:
    """Their values fall to 0 as the kernel narrows, and folds by number hold the same points."""
    x = np.random.default_rng(0).random((3000, 2)).round(1)
    model = dsp.SpectralDecomposition(basis=Landmarks(Gaussian(0.03), 100), n_components=6, random_state=0)
    with pytest.warns(ReliabilityWarning):
        model.fit(x)
    assert not model.reliable_[1:].any()
    assert model.eigenvalues_[1] < 1


def test_columns_of_different_units_precede_the_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    z = np.repeat(rng.standard_normal((40, 1)), 20, axis=0)
    x, y = (z + rng.standard_normal((800, 2)) for _ in range(2))
    basis = Landmarks("gaussian:auto", 30)
    model = dsp.SpectralDecomposition(Cross(center=True), basis, n_components=2, random_state=0)
    for factors, side in (((1e3, 1), "column 1 to"), ((1, 1e3), "column 1 of y")):
        with pytest.warns(ReliabilityWarning):
            model.fit((x * [factors[0], 1], y * [1, factors[1]]))
        assert side in model.warnings_[0]
        assert "order of the rows" in model.warnings_[1]
