"""Warnings of answers that are less than they seem: each where its cause is, and none where the answer is good."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import kurtosis

import daskspectral as dsp
from daskspectral.basis import MonomialBasis
from daskspectral.data.distributions import SAMPLES
from daskspectral.engine import plan as planning
from daskspectral.errors import RankWarning, TrustWarning
from daskspectral.kernels import Gaussian, Matern, Polynomial
from daskspectral.moments.intervals import _intervals
from daskspectral.moments.order import kurtosis_of, share_between_tasks
from daskspectral.moments.trust import uncertainty
from daskspectral.passes.selection import Candidate, Selection

Array = NDArray[Any]


def fitted(x: Any, **changes: Any) -> dsp.SpectralDecomposition:
    defaults = {"kernel": Gaussian("median"), "n_landmarks": 60, "n_components": 5, "random_state": 0}
    return dsp.SpectralDecomposition(**(defaults | changes)).fit(x)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning at all is raised inside, trust included."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


CLEAN = {
    "interval": (lambda n: rng().random((n, 1)), {"kernel": Gaussian(0.2)}),
    "square": (lambda n: rng().random((n, 2)), {"kernel": Gaussian(0.3)}),
    "normal": (lambda n: rng().standard_normal((n, 2)), {"kernel": Gaussian(2.0), "n_components": 3}),
    "sphere": (lambda n: SAMPLES["sphere"].draw(n, 3, 0.0, rng()), {"kernel": Gaussian(1.0), "spread": 1.0}),
}


@pytest.mark.parametrize("n", [2000, 20_000])
@pytest.mark.parametrize("name", CLEAN)
def test_a_good_answer_gets_no_warning(name: str, n: int) -> None:
    draw, settings = CLEAN[name]
    with quiet():
        assert fitted(draw(n), **settings).trusted_ > 0


@pytest.mark.parametrize(
    ("x", "spectrum"),
    [
        (rng(1).random((2000, 2)), np.pi**2 * np.array([0, 1, 1, 2, 4, 4])),
        (SAMPLES["sphere"].draw(2000, 3, 0.0, rng(1)), np.array([0, 2, 2, 2, 6, 6])),
    ],
)
def test_defaults_on_clean_data_are_right_and_quiet(x: Array, spectrum: Array) -> None:
    with quiet():
        model = dsp.SpectralDecomposition(n_components=6, random_state=0).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, spectrum, rtol=0.15, atol=1e-8)


def test_few_rows_for_many_values() -> None:
    x = rng().random((200, 1))
    with pytest.warns(
        TrustWarning, match=r"of 9 eigenvalues .* trusted, and half of them are known no better than to \d+ %"
    ):
        model = fitted(x, kernel=Matern(1.5, 1.0), n_components=9)
    ends, values = model.eigenvalue_errors_[1:], model.eigenvalues_[1:]
    half = np.maximum(ends[:, 1] - values, values - ends[:, 0]) / (values + 1e-3 * values[-1])
    assert np.median(half) > 0.2
    found = uncertainty(model.eigenvalues_, model.eigenvalue_errors_, two_sided=False)
    assert found == pytest.approx(np.median(half))


def test_below_a_hundred_rows() -> None:
    with pytest.warns(TrustWarning, match="no error bars from 90 rows: 100 at least are needed"):
        model = fitted(rng().random((90, 1)), n_components=3)
    assert model.status_.endswith("no error bars from 90 rows: 100 at least are needed")
    assert np.isnan(uncertainty(model.eigenvalues_, model.eigenvalue_errors_, two_sided=False))


def test_a_kernel_too_wide_for_the_data() -> None:
    x = SAMPLES["two-moons"].draw(4000, 2, 0.03, rng())
    wide = {"n_landmarks": 200, "n_components": 11}
    with pytest.warns(RankWarning, match=r"the rank is \d+ of 201 functions, and it decides the values") as caught:
        model = fitted(x, **wide)
    assert model.eigenvalues_[1] > 0.1  # 0 in truth: and the error bars do not tell
    assert model.eigenvalue_errors_[1, 0] > 0.05
    assert len(caught) == 1
    with quiet():
        fitted(x, kernel=Gaussian(0.25), **wide)  # narrow enough: the second value is 0 to .05
    with quiet():
        fitted(rng().standard_normal((4000, 2)), kernel=Polynomial(2), n_components=5)  # the rank is its dimension, 6


def test_landmarks_too_few_for_the_kernel() -> None:
    x = SAMPLES["swiss-roll"].draw(4000, 3, 0.0, rng())
    with pytest.warns(TrustWarning, match=r"change.* when the second half of the landmarks is left out"):
        model = fitted(x, kernel=Gaussian(1.0), n_landmarks=100)
    relative = model.approximation_[1:] / model.eigenvalues_[1:]
    assert np.nanmedian(relative) > 0.1 or relative[: model.trusted_ - 1].max() > 0.1


def test_rows_far_out() -> None:
    for name, x in {
        "Student t": rng().standard_t(3, (2000, 2)),
        "lognormal": rng().lognormal(sigma=1.5, size=(2000, 2)),
    }.items():
        with pytest.warns(TrustWarning, match=r"column [01] has a few rows far out \(kurtosis"):
            fitted(x, basis=MonomialBasis(2, 2), kernel="auto"), name
    settings: dict[str, Any] = {"basis": MonomialBasis(2, 2), "kernel": "auto", "n_components": 4}
    for x in (rng().standard_normal((2000, 2)), rng().random((2000, 2)), rng().laplace(size=(2000, 2))):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="column")
            fitted(x, **settings)


def test_the_column_far_out_is_one_of_x() -> None:
    x = rng().standard_normal((2000, 3))
    x[:, 2] = rng(1).standard_t(2, 2000)
    with pytest.warns(TrustWarning, match="column 2 has a few rows far out"):
        fitted(x, columns=[0, 2], basis=MonomialBasis(2, 2), kernel="auto")


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_kurtosis_from_the_sums(power: float) -> None:
    z = rng().standard_normal((5000, 2)) ** power
    model = fitted(z - z.mean(axis=0), basis=MonomialBasis(2, 1), kernel="auto", n_components=3)
    np.testing.assert_allclose(list(kurtosis_of(model.moments_).values()), kurtosis(z, fisher=False), rtol=1e-9)


def test_singular_values_that_do_not_hold_up() -> None:
    x = rng().standard_normal((300, 3))
    y = 0.5 * x + rng(1).standard_normal((300, 3))
    cross = dsp.operators.Cross()
    with pytest.warns(TrustWarning, match=r"squared singular values sum to .* on rows that they were not fitted to"):
        model = fitted((x, y), operator=cross, kernel=Gaussian(0.5), n_landmarks=100, penalty=1e-6)
    assert np.sum(model.singular_values_**2) > 1.1 * np.nansum(model.held_out_**2)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the squared singular")
        linear = MonomialBasis(3, 1)
        fitted((x, y), operator=cross, basis=linear, right_basis=linear, kernel="auto", n_components=4)


def autoregression(n: int, correlation: float) -> Array:
    kicks = rng().standard_normal((n, 1)) * np.sqrt(1 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], kicks, axis=0))


def test_rows_of_a_trajectory() -> None:
    x = autoregression(20_000, 0.95)  # rows that count as one: (1 + .95) / (1 - .95) = 39
    with pytest.warns(TrustWarning, match="the order of the rows matters: about .* rows that follow one another") as w:
        fitted(x, n_components=3)
    alike = float(re.search(r"about ([0-9.e+]+) rows", str(w[0].message))[1])  # type: ignore[index]
    assert 10 < alike < 80  # the mean of x and of x^2, whose rows are alike for half as long
    with quiet():
        fitted(x, n_components=3, folds="blocks")
        fitted(x, n_components=3, folds=np.arange(len(x)) % 10)
        fitted(autoregression(20_000, 0.3), n_components=3)


def test_rows_sorted_by_a_coordinate_in_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST_FLOPS", 1.0)
    monkeypatch.setattr(planning, "LEAST_TASKS", 150)
    x = rng().standard_normal((30_000, 2))
    settings: dict[str, Any] = {"kernel": Gaussian(2.0), "n_landmarks": 20, "n_components": 3}
    with quiet():
        model = fitted(x, **settings)
    assert model.moments_.folds is not None
    assert model.moments_.folds.rule == "tasks"
    assert share_between_tasks(model.moments_) < 0.02
    with pytest.warns(TrustWarning, match=r"\d+ % of the variance of the rows lies between runs of (1[5-9]\d|200) "):
        fitted(x[np.argsort(x[:, 0])], **settings)


def test_the_best_candidate_at_the_edge() -> None:
    candidate = Candidate("Gaussian(scale=4.00000001)", 4.0, 0.0, 1.0, 1.0, np.ones(3), 2)
    selection = Selection((candidate,), {}, 2000, 1.0, "scale")
    with pytest.warns(TrustWarning, match=r"the largest that was tried, 4 of the median distance \(Gaussian\(scale=4"):
        selection.advise(certain=False)
    with quiet():
        selection.advise(certain=True)
        Selection((candidate,), {}, 2000, 1.0, "").advise(certain=False)


def test_warnings_point_at_the_line_of_the_user() -> None:
    x = rng().random((200, 1))
    estimator = dsp.SpectralDecomposition(kernel=Matern(1.5, 1.0), n_landmarks=60, n_components=9, random_state=0)
    calls = [lambda: estimator.fit(x), lambda: estimator.fit_moments(estimator.moments_)]
    for call in calls:
        with pytest.warns(TrustWarning) as caught:
            call()
        assert caught[0].filename == __file__
        assert caught[0].lineno == inspect.getsourcelines(call)[1]


def test_intervals_of_values_near_zero_are_no_wider_than_their_errors() -> None:
    fitted_values, held_out = np.array([1e-5, 2.0]), np.array([1e-4, 2.1])
    standard = np.array([1e-3, 0.05])
    ends = _intervals(fitted_values, held_out, standard, 10)
    t = 2.2621571628540993  # Student's t of 9 degrees of freedom, both tails 5 %
    np.testing.assert_allclose(ends[0], [0.0, 1e-4 + t * 1e-3])
    factor = np.exp(t * 0.05 / 2 + np.log(2.1 / 2) / 2)
    np.testing.assert_allclose(ends[1], [np.sqrt(4.2) / factor, np.sqrt(4.2) * factor])
    negative = _intervals(-fitted_values, -held_out, standard, 10)
    np.testing.assert_allclose(negative, -ends[:, ::-1])


def test_without_error_bars_the_reason_is_told() -> None:
    x = rng().random((99, 1))
    with pytest.warns(TrustWarning, match="no error bars: all weight is in one fold"):
        fitted(rng().random((120, 1)), kernel=Gaussian(0.3), n_landmarks=120, n_components=2)
    with quiet():
        fitted(x, kernel=Gaussian(0.3), n_landmarks=20, n_components=2, folds=None)  # none were asked for


def test_a_fold_without_rows_that_count() -> None:
    x, labels = rng().random((1000, 1)), np.arange(1000) % 5
    weight = np.where(labels == 2, 0.0, 1.25)
    model = dsp.SpectralDecomposition(kernel=Gaussian(0.3), n_landmarks=30, n_components=2, folds=labels)
    with pytest.warns(TrustWarning, match="the fold 2 has no row of positive weight"):
        model.fit(x, sample_weight=weight)


def test_how_well_a_share_of_the_values_is_known() -> None:
    values = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    half = np.array([0.0, 0.05, 0.16, 0.17, 0.4]) * (values + 1e-3 * 8)
    ends = np.column_stack([values - half, values + half])
    assert uncertainty(values, ends, two_sided=False) == pytest.approx(0.165)
    assert uncertainty(values, ends, two_sided=False, share=1 / 3) == pytest.approx(0.16)


def test_the_constant_is_in_no_group_with_other_values() -> None:
    """Its value is 0 whatever the rows, however little is known of the next one."""
    x = np.random.default_rng(0).standard_normal((100, 3))
    model = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=50, n_components=4, random_state=0).fit(x)
    assert (model.groups_[1:] > 0).all()
    np.testing.assert_allclose(model.eigenvalue_errors_[0], 0, atol=1e-9)


def test_no_more_rows_are_alike_than_there_are() -> None:
    x = np.sort(rng().random((400, 1)), axis=0)
    with pytest.warns(TrustWarning, match="the order of the rows matters") as caught:
        fitted(x, kernel=Gaussian(0.3), n_landmarks=20, n_components=2)
    told = next(str(w.message) for w in caught if "the order of the rows" in str(w.message))
    assert float(re.search(r"about ([0-9.e+]+) rows", told)[1]) <= 400  # type: ignore[index]
