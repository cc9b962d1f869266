"""The checks of the installed scikit-learn, for every estimator."""

from typing import Any

import numpy as np
import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from daskspectral import embedding, invariance, regression, spectral
from daskspectral.basis import Landmarks
from daskspectral.estimators.base import Estimator
from daskspectral.kernels import Gaussian
from daskspectral.solvers import BurerMonteiro, Regularized
from tests.common import unreliable

# the checks fit 6 to 200 rows, of which these tell
QUIET = [f"daskspectral.errors.{name}" for name in ("FitWarning", "RankWarning", "WeightWarning")]
QUIET += ["sklearn.exceptions.ConvergenceWarning", "sklearn.exceptions.DataConversionWarning"]
pytestmark = [unreliable, *(pytest.mark.filterwarnings(f"ignore::{name}") for name in QUIET)]
pytestmark += [pytest.mark.filterwarnings("ignore:X .* feature names:UserWarning")]

WIDE = Landmarks(Gaussian(2.0))
SMALL: dict[str, dict[str, Any]] = {
    "SpectralDecomposition": {"basis": WIDE, "solver": Regularized(1.0), "folds": None, "n_components": 2},
    "SpectralClustering": {"n_clusters": 2},
    "HermiteRegressor": {"basis": WIDE, "alpha": 1e-3},
    "SDPEmbedding": {"solver": BurerMonteiro(max_passes=50)},
}
FEW = {"SpectralClustering": {"n_clusters": 3}}
ROOMS = (spectral, regression, embedding, invariance)
ESTIMATORS = [thing for room in ROOMS for name in room.__all__ if issubclass(thing := getattr(room, name), Estimator)]
TABLES = [thing(**SMALL.get(thing.__name__, {})) for thing in ESTIMATORS]
OF_PAIRS = ("CCA", "Koopman", "MCA")  # of rows, which the checks mix
CHOSEN = ("SpectralDecomposition", "SpectralClustering", "EOF", "HermiteRegressor")
CHOSEN_FROM_ROWS = (
    "kernel, landmarks or penalty are chosen from rows or folds of rows, as by scikit-learn's GridSearchCV; "
    "the contracts have what is fixed"
)
FAILED = {f"check_sample_weight_equivalence_on_{kind}_data": CHOSEN_FROM_ROWS for kind in ("dense", "sparse")}
AS_FRAMES = (
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform_pandas",
    "check_global_set_output_transform_polars",
)


def slow_but_for_one(each: Any) -> Any:
    name = type(each).__name__
    return pytest.param(each, id=name, marks=[] if name == "SpectralDecomposition" else pytest.mark.slow)


@pytest.mark.parametrize(
    "estimator", [slow_but_for_one(each) for each in TABLES if type(each).__name__ not in OF_PAIRS]
)
def test_checks(estimator: Any) -> None:
    name = type(estimator).__name__
    check_estimator(estimator, expected_failed_checks=FAILED if name in CHOSEN else None, on_skip=None)
    for check in AS_FRAMES if hasattr(estimator, "transform") else ():
        getattr(estimator_checks, check)(name, estimator)


@pytest.mark.parametrize(("rows", "columns"), [(6, 5), (10, 1)])
def test_defaults_work_from_six_rows_on(rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, columns))
    for estimator in (type(each)(**FEW.get(type(each).__name__, {})) for each in TABLES):
        estimator.fit(x, x[:, 0] ** 2)
        found = (estimator.transform if hasattr(estimator, "transform") else estimator.predict)(x)
        assert np.isfinite(found).all(), estimator
        assert len(found) == rows
