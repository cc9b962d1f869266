"""The checks of the installed scikit-learn, for every estimator with its defaults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, estimator_checks_generator

import daskspectral as dsp
from daskspectral import estimators
from daskspectral.kernels import Gaussian

# the checks fit 6 to 200 rows, of which these tell
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::daskspectral.errors.{name}")
    for name in ("FitWarning", "RankWarning", "WeightWarning")
] + [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),
    pytest.mark.filterwarnings("ignore:X .* feature names:UserWarning"),
]

EVERY = [getattr(estimators, name)() for name in estimators.__all__]
TABLES = [each for each in EVERY if get_tags(each).input_tags.two_d_array]  # not of three columns an atom
CHOSEN = {
    "check_sample_weight_equivalence_on_dense_data": "kernel, landmarks or penalty are chosen from rows or folds of "
    "rows, as by scikit-learn's GridSearchCV; test_weights_are_repeated_rows has what is fixed"
}
AUTOMATIC = (dsp.SpectralDecomposition, dsp.HermiteRegressor, dsp.InvariantClassifier, dsp.GraphLaplacian)
AS_FRAMES = (
    "check_dataframe_column_names_consistency",
    "check_inplace_ensure_writeable",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_set_output_transform_polars",
)
ARRAY_API = "check_array_api_input"  # needs an environment variable: test_array_api_dispatch


def checks() -> Iterator[Any]:
    for each in TABLES:
        name, number = type(each).__name__, 0
        failed = CHOSEN if isinstance(each, AUTOMATIC) else None
        for found in estimator_checks_generator(each, expected_failed_checks=failed, mark="xfail"):
            estimator, check = found.values if hasattr(found, "values") else found
            if check.func.__name__ != ARRAY_API:
                number += 1
                marks = getattr(found, "marks", ())
                yield pytest.param(estimator, check, marks=marks, id=f"{name}-{number}-{check.func.__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def frames() -> Iterator[Any]:
    for each in TABLES:
        for check in AS_FRAMES:
            if hasattr(each, "transform") or "transform" not in check:
                yield pytest.param(each, check, id=f"{type(each).__name__}-{check}")


@pytest.mark.parametrize(("estimator", "check"), list(frames()))
def test_checks_of_data_frames(estimator: Any, check: str) -> None:
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


def test_array_api_dispatch() -> None:
    """Numpy arrays under scikit-learn's dispatch, which is on only where scipy's variable was set before it loads."""
    code = f"""
import warnings
warnings.simplefilter("ignore")
from inspect import signature
from sklearn.utils.estimator_checks import {ARRAY_API} as check
from daskspectral import estimators
known = "expect_only_array_outputs"  # of newer versions
options = {{known: False}} if known in signature(check).parameters else {{}}
for name in estimators.__all__:
    if name != "JacobiCoordinates":  # atoms have three columns each
        check(name, getattr(estimators, name)(), "numpy", **options)
        print(name)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.split()) == len(EVERY) - 1


LANDMARKS = np.random.default_rng(0).random((6, 30))
WIDE = Gaussian(2.0)
UNIT = dsp.manifolds.Interval([0.0] * 30, [1.0] * 30)
SYMMETRIC = dsp.groups.Permutations(30)  # of the 30 linear functions one is left, for 15 rows
FIXED = {
    "spectral": dsp.SpectralDecomposition(kernel=WIDE, landmarks=LANDMARKS),
    "spectral, cut": dsp.SpectralDecomposition(kernel=WIDE, landmarks=LANDMARKS, solver="cut"),
    "kernel regression": dsp.HermiteRegressor(WIDE, landmarks=LANDMARKS, alpha=1e-3),
    "invariant regression": dsp.InvariantRegressor(UNIT, SYMMETRIC, n_eigenfunctions=31, alpha=1e-3),
    "invariant classes": dsp.InvariantClassifier(UNIT, SYMMETRIC, n_eigenfunctions=31, alpha=1e-3, folds=None),
    "graph": dsp.GraphLaplacian(WIDE, WIDE, landmarks=LANDMARKS),
}


@pytest.mark.parametrize("estimator", FIXED.values(), ids=FIXED.keys())
def test_weights_are_repeated_rows(estimator: Any) -> None:
    check_sample_weight_equivalence_on_dense_data(type(estimator).__name__, estimator)


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("rows", [6, 7, 10])
@pytest.mark.parametrize("estimator", TABLES, ids=lambda each: type(each).__name__)
def test_defaults_work_from_six_rows_on(estimator: Any, rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, columns))
    estimator.fit(x, np.arange(rows) % 2 if is_classifier(estimator) else x[:, 0] ** 2)
    found = (estimator.transform if hasattr(estimator, "transform") else estimator.predict)(x)
    assert np.isfinite(found).all()
    assert len(found) == rows


def test_tags_say_what_the_estimators_take() -> None:
    for each in EVERY:
        tags = get_tags(each)
        inputs, targets = tags.input_tags, tags.target_tags
        assert not any((inputs.sparse, inputs.allow_nan, inputs.pairwise, inputs.string, inputs.categorical))
        assert targets.required == (is_regressor(each) or is_classifier(each))
        assert targets.multi_output == is_regressor(each)
        assert (tags.transformer_tags is not None) == hasattr(each, "transform")
    assert get_tags(dsp.InvariantClassifier()).classifier_tags.multi_class
    assert [type(each) for each in EVERY if each not in TABLES] == [dsp.JacobiCoordinates]
