"""Error bars of a spectrum: how often they hold where the truth is known, and how they shrink."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
import zarr
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import MonomialBasis
from daskspectral.engine import plan as plan_module
from daskspectral.kernels import Gaussian
from daskspectral.operators import Laplacian, Schroedinger, SymmetricForm, Transfer
from daskspectral.passes.variance import VarianceBound

Array = NDArray[Any]
DEGREE, REPEATS, DELTA = 2, 50, 0.05


def model(degree: int = DEGREE, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"basis": MonomialBasis(1, degree), "n_components": degree + 1}
    return dsp.SpectralDecomposition(**(defaults | changes))


def normal_moment(k: int) -> float:
    return 0.0 if k % 2 else float(math.prod(range(k - 1, 0, -2)))


def uniform_moment(k: int) -> float:
    return 0.0 if k % 2 else 1 / (k + 1)


def truth(moment: Any) -> tuple[Array, Array]:
    """E <grad x^i, grad x^j> and the covariance of x^i, x^j, for i from 1 to DEGREE."""
    e = range(1, DEGREE + 1)
    form = np.array([[i * j * moment(i + j - 2) for j in e] for i in e])
    return form, np.array([[moment(i + j) - moment(i) * moment(j) for j in e] for i in e])


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Over REPEATS samples: the error of the inverse, both bounds of it, eigenvalues and their standard errors."""

    error: Array
    theorem: Array
    bernstein: Array
    eigenvalues: Array
    standard: Array


def experiment(draw: Any, moment: Any, n: int) -> Experiment:
    form, covariance = truth(moment)
    root = scipy.linalg.sqrtm(covariance).real
    rows = []
    for seed in range(REPEATS):
        x = draw(np.random.default_rng([n, seed]), n)[:, None]
        fitted = model().fit(x)
        bound = fitted.variance_bound(x, delta=DELTA)
        estimate = fitted.moments_.mean("form")[1:, 1:]
        error = np.linalg.norm(root @ (np.linalg.inv(form) - np.linalg.inv(estimate)) @ root, 2)
        rows.append((error, bound.theorem, bound.bernstein, bound.eigenvalues, bound.standard_errors))
    return Experiment(*(np.array(column) for column in zip(*rows, strict=True)))


def normal(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_normal(n)


def uniform(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(-1, 1, n)


def test_the_truth_is_hermites() -> None:
    values = scipy.linalg.eigh(*truth(normal_moment), eigvals_only=True)
    np.testing.assert_allclose(values, [1, 2], rtol=1e-12)


def test_bounds_hold_for_normal_data_as_often_as_they_say() -> None:
    found = experiment(normal, normal_moment, 1000)
    for bound in (found.theorem, found.bernstein):
        assert np.mean(found.error <= bound) >= 1 - DELTA
    assert np.isfinite(found.bernstein).all()
    # useful: within a factor of 20 of the error's typical size, where Theorem 1 is off by more than 100
    assert np.median(found.bernstein) < 20 * np.median(found.error)
    assert np.median(found.theorem) > 100 * np.median(found.error)


def test_standard_errors_are_the_spread_of_the_eigenvalues() -> None:
    found = experiment(normal, normal_moment, 4000)
    np.testing.assert_array_equal(found.standard[:, 0], 0)
    ratio = found.eigenvalues[:, 1:].std(axis=0) / np.median(found.standard[:, 1:], axis=0)
    assert (ratio > 0.75).all()
    assert (ratio < 1.3).all()
    misses = np.abs(found.eigenvalues[:, 1:] - [1, 2]) > 2 * found.standard[:, 1:]
    assert (misses.mean(axis=0) <= 0.15).all()


def test_error_and_bounds_shrink_by_the_root_of_n() -> None:
    """Of a bounded distribution; 16 times the rows make a quarter of each."""
    few, many = (experiment(uniform, uniform_moment, n) for n in (500, 8000))
    assert np.median(few.error) / np.median(many.error) == pytest.approx(4, rel=0.35)
    assert np.median(few.theorem) / np.median(many.theorem) == pytest.approx(4, rel=0.05)
    # the bound's own second order in 1/sqrt(n) is not gone at 500 rows
    assert 4 < np.median(few.bernstein) / np.median(many.bernstein) < 8
    for found in (few, many):
        assert np.mean(found.error <= found.bernstein) >= 1 - DELTA


def test_the_numbers_from_their_formulas() -> None:
    """Degree 2 on the line by hand: everything from arrays of all rows."""
    n = 300
    x = np.random.default_rng(2).uniform(-1, 2, n)
    fitted = model().fit(x[:, None])
    found = fitted.variance_bound(x[:, None], delta=0.1)
    values = np.column_stack([x - x.mean(), x**2 - np.mean(x**2)])
    slopes = np.column_stack([np.ones(n), 2 * x])
    lam, v = scipy.linalg.eigh(slopes.T @ slopes / n, values.T @ values / n)
    du = slopes @ v / np.sqrt(lam)
    a = du[:, :, None] * du[:, None]
    log, rank = math.log(2 * 2 / 0.1), 2
    theorem = 3 / lam[0] * rank * np.abs(a).max() * math.sqrt(8 * log / (3 * n))
    second = np.linalg.norm((a @ a).mean(axis=0), 2)
    third = 2 * np.linalg.norm(a, axis=(1, 2)).max() * log / (3 * n)
    deviation = third + math.sqrt(third**2 + 2 * second * log / n)
    change = (slopes @ v) ** 2 - lam * (values @ v) ** 2
    assert (found.rank, found.deflated, found.count, found.delta) == (2, 1, n, 0.1)
    assert found.inverse == pytest.approx(1 / lam[0], rel=1e-10)
    assert found.theorem == pytest.approx(theorem, rel=1e-10)
    assert found.theorem_rows == math.ceil(32 / 3 * (rank * np.abs(a).max()) ** 2 * log)
    assert found.deviation == pytest.approx(deviation, rel=1e-10)
    assert deviation < 1
    assert found.bernstein == pytest.approx(deviation / (1 - deviation) / lam[0], rel=1e-10)
    np.testing.assert_allclose(found.eigenvalues, fitted.eigenvalues_)
    np.testing.assert_allclose(found.standard_errors[1:], change.std(axis=0) / math.sqrt(n), rtol=1e-9)


def test_the_constant_is_deflated_wherever_the_data_lie() -> None:
    """Shifted data have the same spectrum, and the same bounds; with or without the constant in the basis."""
    x = np.random.default_rng(3).standard_normal((2000, 1))
    bounds = [model().fit(x + shift).variance_bound(x + shift) for shift in (0.0, 5.0)]
    assert bounds[0].deflated == bounds[1].deflated == 1
    for name in ("inverse", "theorem", "bernstein"):
        assert getattr(bounds[1], name) == pytest.approx(getattr(bounds[0], name), rel=1e-6), name
    np.testing.assert_allclose(bounds[1].standard_errors[1:], bounds[0].standard_errors[1:], rtol=1e-6)
    # x and x^2 without a constant, at 5: the Gram is not centred, and 1 / lambda is of functions that are all but 1
    bare = model(basis=MonomialBasis(1, DEGREE, constant=False), constant=False, n_components=2)
    found = bare.fit(x + 5).variance_bound(x + 5)
    assert found.deflated == 0
    assert found.inverse > 5 * bounds[1].inverse


def test_too_few_rows_have_no_bernstein_bound_and_say_so() -> None:
    x = np.random.default_rng(4).standard_normal((60, 2))
    fitted = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20, n_components=4, random_state=0).fit(x)
    found = fitted.variance_bound(x)
    assert found.deviation >= 1
    assert found.bernstein == math.inf
    text = str(found)
    assert "inf by matrix Bernstein, vacuous" in text
    assert found.vacuous(found.bernstein)
    assert not found.vacuous(0.99 * found.inverse)
    assert re.search(r"by Theorem 1, vacuous as it is no less than the inverse, and proven from \d+ rows on only", text)
    assert len(re.findall(r"\+- ", text)) == 4


def test_a_negative_operator_has_the_bounds_of_the_positive_one() -> None:
    x = np.random.default_rng(5).standard_normal((3000, 2))
    functions = MonomialBasis(2, 2)
    found = [
        model(operator=operator, basis=functions, n_components=6).fit(x).variance_bound(x)
        for operator in (Laplacian(), dsp.operators.Generator(diffusion=2**0.5, reversible=True))
    ]
    np.testing.assert_allclose(found[1].eigenvalues, -found[0].eigenvalues, atol=1e-12)
    np.testing.assert_allclose(found[1].standard_errors, found[0].standard_errors, rtol=1e-6, atol=1e-12)
    for name in ("inverse", "theorem", "bernstein", "theorem_rows"):
        assert getattr(found[1], name) == pytest.approx(getattr(found[0], name), rel=1e-9), name


def test_fields_weights_and_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "LEAST_FLOPS", 1e4)
    rng = np.random.default_rng(6)
    x, v, w = rng.standard_normal((900, 2)), rng.standard_normal(900), rng.random(900)
    estimator = dsp.SpectralDecomposition(Schroedinger(), Gaussian(2.0), n_landmarks=8, n_components=3, random_state=0)
    fitted = estimator.fit(x, fields={"potential": v}, sample_weight=w)
    whole = fitted.variance_bound(x, fields={"potential": v}, sample_weight=w)
    stored = zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(200, 2))
    others = [
        fitted.variance_bound(stored, fields={"potential": v}, sample_weight=w),
        fitted.variance_bound(da.from_array(x, chunks=(300, 1)), fields={"potential": v}, sample_weight=w),
        fitted.variance_bound(x, fields={"potential": v}, sample_weight=7 * w),  # the unit of weights does not count
    ]
    for other in others:
        for name in ("theorem", "deviation", "standard_errors"):
            np.testing.assert_allclose(getattr(other, name), getattr(whole, name), rtol=1e-9, err_msg=name)
    bad = x.copy()
    bad[5] = np.nan
    with pytest.raises(dsp.InvalidRowError, match=r"row 5"):
        fitted.variance_bound(bad, fields={"potential": v})
    skipped = fitted.variance_bound(bad, fields={"potential": v}, sample_weight=w, on_invalid="skip")
    assert skipped.theorem == pytest.approx(whole.theorem, rel=0.1)


def test_standardized_columns_and_functions_with_little_support() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2000, 3)) * [1.0, 100.0, 1.0] + [0, 50.0, 0]
    far = np.vstack([[[30.0, 30.0]], rng.standard_normal((10, 2))])  # a landmark without points near it
    changes: dict[str, Any] = {"kernel": Gaussian(1.5), "n_components": 3, "columns": [0, 1], "standardize": True}
    changes["min_support"] = 10.0
    alone = dsp.SpectralDecomposition(landmarks=np.pad(far[1:] * [1, 100] + [0, 50], ((0, 0), (0, 1))), **changes)
    both = dsp.SpectralDecomposition(landmarks=np.pad(far * [1, 100] + [0, 50], ((0, 0), (0, 1))), **changes)
    expected = alone.fit(x).variance_bound(x)
    with pytest.warns(dsp.RankWarning):
        both.fit(x)
    found = both.variance_bound(x)
    assert found.rank == expected.rank
    assert found.deviation == pytest.approx(expected.deviation, rel=1e-6)
    with pytest.raises(ValueError, match=r"X has 2 columns, and the model was fitted on 3"):
        both.variance_bound(x[:, :2])


def test_what_cannot_be_bounded_is_refused() -> None:
    x = np.random.default_rng(8).standard_normal((400, 2))
    functions = MonomialBasis(2, 2)
    with pytest.raises(ValueError, match=r"not fitted"):
        model().variance_bound(x)
    two_sided = model(operator=Transfer(), basis=functions, n_components=3).fit(x)
    with pytest.raises(ValueError, match=r"for symmetric operators, and transfer is solved by 'singular'"):
        two_sided.variance_bound(x)
    fitted = model(basis=functions, n_components=3).fit(x)
    wrong: tuple[Any, ...] = (0, 1, 0.0, 1.0, -0.1, math.nan, "0.1")
    for delta in wrong:
        with pytest.raises(ValueError, match=r"delta is the probability of being wrong, between 0 and 1; it is"):
            fitted.variance_bound(x, delta=delta)
    with pytest.raises(ValueError, match=r"ridge=0"):
        model(basis=functions, ridge=0.1).fit(x).variance_bound(x)
    with pytest.raises(ValueError, match=r"sample weight is 0"):
        fitted.variance_bound(x, sample_weight=np.zeros(400))
    with pytest.raises(TypeError, match=r"unexpected keyword argument"):
        fitted.variance_bound(x, checkpoint="here")


def along_an_axis(f: Any, g: Any, x: Any) -> Any:
    return dsp.inner(dsp.partial(f, 1, 0), dsp.partial(g, 1, 0))


def along_a_line(f: Any, g: Any, x: Any) -> Any:
    """Zero for functions of x_0 - x_1, none of which is a monomial."""

    def total(h: Any) -> Any:
        return dsp.partial(h, 1, 0) + dsp.partial(h, 0, 1)

    return dsp.inner(total(f), total(g))


def test_functions_that_the_form_kills() -> None:
    x = np.random.default_rng(9).standard_normal((500, 2))
    functions = MonomialBasis(2, 2)
    one_axis = model(operator=SymmetricForm(dsp.form(along_an_axis)), basis=functions, n_components=3).fit(x)
    assert one_axis.variance_bound(x).deflated == 3  # 1, x_1, x_1^2
    oblique = model(operator=SymmetricForm(dsp.form(along_a_line)), basis=functions, n_components=3).fit(x)
    with pytest.raises(ValueError, match=r"not invertible once the constant is removed"):
        oblique.variance_bound(x)


def test_it_is_plain_data() -> None:
    x = np.random.default_rng(10).standard_normal((500, 1))
    found = model().fit(x).variance_bound(x)
    assert isinstance(found, VarianceBound)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.delta = 0.5  # type: ignore[misc]
    assert str(found).startswith("500 rows, 2 functions (1 deflated); with probability 0.95 the inverse, of norm ")
