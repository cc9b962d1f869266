"""Every estimator but SpectralDecomposition: other origins and units of x, y and weights change nothing but units.

Data are multiples of 2^-12, so that x + t and s x are exact for the t and s that are taken here.
"""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from tests.common import unreliable
from tests.estimators.test_sklearn import ESTIMATORS

QUIET = ("FitWarning", "WeightWarning")
pytestmark = [unreliable, *(pytest.mark.filterwarnings(f"ignore::daskspectral.errors.{name}") for name in QUIET)]
Array = NDArray[Any]
ROWS, NEW = 120, 15
RNG = np.random.default_rng(3)


def rounded(a: Array) -> Array:
    return np.round(np.asarray(a) * 2**12) / 2**12


SIDES = np.where(np.arange(ROWS + NEW) % 2, 2.0, -2.0)[:, None] * [1.0, 0.0]
X = rounded(RNG.standard_normal((ROWS + NEW, 2)) + SIDES)
Y = rounded(np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(ROWS + NEW))
WEIGHT = RNG.integers(1, 4, ROWS).astype(float)

# x -> s x + t, with s for each column or one for both, y -> a y + b, w -> c w
SHIFTS = {f"x + 2^{k}": {"t": 2.0**k} for k in (10, 20, 27)}
UNITS = {f"2^{k} x": {"s": 2.0**k} for k in (-40, -10, 10, 40)}
COLUMNS = {f"2^{k} x, 2^{m} x": {"s": [2.0**k, 2.0**m], "standardize": True} for k, m in ((-40, 20), (40, 0))}
VALUES = {"y + 2^27": {"b": 2.0**27}, "2^-600 y": {"a": 2.0**-600}, "2^10 y - 2^20": {"a": 2.0**10, "b": -(2.0**20)}}
WEIGHTS = {f"2^{k} w": {"c": 2.0**k} for k in (-990, -3, 60, 990)}
BOTH = {"all": {"s": 2.0**-20, "t": 2.0**6, "a": -8.0, "b": 2.0**20}}
CHANGES: dict[str, dict[str, Any]] = SHIFTS | UNITS | COLUMNS | VALUES | WEIGHTS | BOTH
FAST = {"x + 2^27", "2^-40 x", "y + 2^27", "2^990 w"}
OTHERS = [each for each in ESTIMATORS if each is not dsp.SpectralDecomposition]
INTERVALS = (dsp.InvariantRegressor, dsp.InvariantFeatures)  # columns of any units are brought to one range


def dtypes(estimator: Any) -> list[dict[str, str]]:
    known = "dtype" in signature(estimator).parameters
    return [{"dtype": name} for name in ("float64", "float32")] if known else [{}]


def applicable(estimator: Any, change: dict[str, Any]) -> bool:
    regressor, fit = hasattr(estimator, "predict_gradient"), signature(estimator.fit).parameters
    if "standardize" in change and estimator in INTERVALS:
        return False  # standardized or not, they bring columns to ranges: the next line has the units
    return (regressor or "b" not in change) and ("sample_weight" in fit or "c" not in change)


def combinations() -> Iterator[Any]:
    for estimator in OTHERS:
        for options in dtypes(estimator):
            for name, change in CHANGES.items():
                if applicable(estimator, change):
                    slow = [] if name in FAST and options.get("dtype") != "float32" else [pytest.mark.slow]
                    label = " ".join([estimator.__name__, *options.values(), name])
                    if label == "Koopman float32 2^990 w":
                        slow = [pytest.mark.slow, pytest.mark.xfail(strict=False, reason="another penalty is chosen")]
                    yield pytest.param(estimator, options, change, id=label, marks=slow)


FITTED: dict[Any, Any] = {}


def outcome(
    estimator: Any, options: dict[str, str], *, s: Any = 1.0, t: Any = 0.0, a: float = 1.0, b: float = 0.0,
    c: float | None = None, standardize: bool = False, weighted: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """What a fit to changed data gives, brought back to the units of these."""
    parameters = signature(estimator).parameters
    model = estimator(**options, **({"random_state": 0} if "random_state" in parameters else {}))
    x, y = X * s + t * np.asarray(s), a * Y + b
    fit = signature(model.fit).parameters
    more: dict[str, Any] = {"sample_weight": WEIGHT * (c or 1.0)} if weighted else {}
    rows = dsp.Rows(x[:ROWS], standardize=True) if standardize else x[:ROWS]
    model.fit(rows, *([y[:ROWS]] if "y" in fit else []), **more)
    kinds = {text.partition(":")[0] for text in model.warnings_}
    found: dict[str, Any] = {"verdict": sorted(kinds - {"WeightWarning"})}  # of weights that are no frequencies
    if isinstance(model, dsp.SpectralClustering):
        found["values"] = model.predict(x[ROWS:])
    elif hasattr(model, "predict"):
        found["values"] = (model.predict(x[ROWS:]) - b) / a
        found["slopes"] = model.predict_gradient(x[ROWS:]) * s / a
        found["held out"], found["score"] = model.cv_score_, model.score(x[ROWS:], y[ROWS:])
    else:
        values = model.transform(x[ROWS:])
        unit = s if estimator is dsp.MCA and not standardize else 1.0  # projections on unit vectors
        found["values"] = values @ values.T / unit**2  # turned columns are the same embedding
    found |= {name: getattr(model, name) for name in ("rank_", "invariant_dimensions_") if hasattr(model, name)}
    if isinstance(getattr(model, "bandwidth_", None), float) and np.ndim(s) == 0 and not standardize:
        found["bandwidth"] = model.bandwidth_ / s
    return found


@pytest.mark.one_in(4, 2)
@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize(("estimator", "options", "change"), list(combinations()))
def test_only_units_change(estimator: Any, options: dict[str, str], change: dict[str, Any]) -> None:
    same = {"standardize": "standardize" in change, "weighted": "c" in change}
    key = estimator, *options.values(), *same.values()
    if key not in FITTED:
        try:
            FITTED[key] = outcome(estimator, options, **same)
        except ValueError as error:  # what cannot be in any units is refused
            if "standardize=" in str(error):
                return
            raise
    refusing = (dsp.CCA, dsp.MCA) if options.get("dtype") == "float32" else (dsp.MCA,)
    if estimator in refusing and change.get("a") == 2.0**-600:  # whose squares are 0
        with pytest.raises(ValueError, match=r"(?i)scale|multiply"):
            outcome(estimator, options, **change | same)
        return
    wanted, found = FITTED[key], outcome(estimator, options, **change | same)
    single = 30.0 if options.get("dtype") == "float32" else 1.0
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if name in ("verdict", "invariant_dimensions_", "rank_"):
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        else:
            rounding = (1e-3 if name == "slopes" else 5e-4) * single  # over the penalty, which is small
            size = max(float(np.abs(value).max()), 1e-3)
            np.testing.assert_allclose(found[name], value, rtol=0, atol=rounding * size, err_msg=name)


TYPES: dict[str, Any] = {
    "uint64": WEIGHT.astype(np.uint64) << np.uint64(62),
    "int64": WEIGHT.astype(np.int64) << 61,
    "float16": (WEIGHT * 16384).astype(np.float16),
    "float32": (WEIGHT * 2.0**126).astype(np.float32),
    "uint8": (WEIGHT * 64).astype(np.uint8),
    "bool": WEIGHT > 1,
}


@pytest.mark.parametrize("name", TYPES)
def test_weights_of_any_type_are_added_as_numbers(name: str) -> None:
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), points=X[:20])
    model = dsp.HermiteRegressor(basis, 1e-3, folds="random")
    found, wanted = (
        model.fit(X[:ROWS], Y[:ROWS], sample_weight=w).predict(X) for w in (TYPES[name], TYPES[name] * 1.0)
    )
    total = model.moments_.weight
    assert total == pytest.approx(np.asarray(TYPES[name], dtype=float).sum())
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    score = model.score(X[:ROWS], Y[:ROWS] ** 2, TYPES[name])
    assert score == pytest.approx(model.score(X[:ROWS], Y[:ROWS] ** 2, np.asarray(TYPES[name], dtype=float)))
