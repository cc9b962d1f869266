"""What all pictures ask of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.data.source import Preparation
from daskspectral.estimators import GraphLaplacian, SpectralDecomposition

Estimator = SpectralDecomposition | GraphLaplacian


def check_fitted(estimator: Any) -> None:
    """Raise TypeError for other estimators, and sklearn's NotFittedError before `fit`."""
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"pictures are drawn of a fitted SpectralDecomposition or GraphLaplacian; got {type(estimator).__name__}"
        )
    check_is_fitted(estimator)


def preparation_of(estimator: Estimator) -> Preparation:
    """What the estimator does to the columns of its data."""
    return Preparation() if isinstance(estimator, GraphLaplacian) else estimator.preparation_


def is_singular(estimator: Estimator) -> bool:
    """Whether the estimator has singular values."""
    return isinstance(estimator, SpectralDecomposition) and estimator.solver_.two_sided


def values_of(estimator: Estimator) -> NDArray[np.inexact[Any]]:
    """The eigenvalues, or the singular values."""
    singular = isinstance(estimator, SpectralDecomposition) and is_singular(estimator)
    values: NDArray[np.inexact[Any]] = estimator.singular_values_ if singular else estimator.eigenvalues_
    return values


def vanishing(values: NDArray[np.inexact[Any]]) -> NDArray[np.bool_]:
    """Which values are 0 beside the largest."""
    return np.asarray(np.abs(values) <= 1e-9 * np.abs(values).max())


def require_matplotlib() -> None:
    """Raise ImportError, which names the extra to install, without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install daskspectral[plot]") from error
