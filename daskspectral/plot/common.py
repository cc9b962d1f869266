"""What all pictures ask of an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Preparation
from daskspectral.estimators import (
    DiffusionMap,
    GraphLaplacian,
    KernelEmbedding,
    SDPEmbedding,
    SpectralDecomposition,
)

Estimator = SpectralDecomposition | GraphLaplacian
Embedding = SDPEmbedding | DiffusionMap | KernelEmbedding


def check_fitted(estimator: Any, kinds: Any = Estimator) -> None:
    """Raise TypeError for estimators of other kinds, and sklearn's NotFittedError before `fit`."""
    if not isinstance(estimator, kinds):
        names = [kind.__name__ for kind in getattr(kinds, "__args__", (kinds,))]
        named = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        raise TypeError(f"pictures are drawn of a fitted {named}; got {type(estimator).__name__}")
    check_is_fitted(estimator)


def preparation_of(estimator: Estimator) -> Preparation:
    """What the estimator does to the columns of its data."""
    return Preparation() if isinstance(estimator, GraphLaplacian) else estimator.preparation_


def is_singular(estimator: Any) -> bool:
    """Whether the estimator has singular values."""
    return isinstance(estimator, SpectralDecomposition) and estimator.solver_.two_sided


def values_of(estimator: Any) -> NDArray[np.inexact[Any]]:
    """The eigenvalues, or the singular values."""
    values: NDArray[np.inexact[Any]]
    if isinstance(estimator, Embedding):
        values = estimator.spectrum_
    else:
        values = estimator.singular_values_ if is_singular(estimator) else estimator.eigenvalues_
    return values


def vanishing(values: NDArray[np.inexact[Any]]) -> NDArray[np.bool_]:
    """Which values are 0 beside the largest."""
    return np.asarray(np.abs(values) <= 1e-9 * np.abs(values).max(initial=0.0))


def landmarks_of(estimator: Any) -> NDArray[np.floating[Any]] | None:
    """The landmarks (p, d) in the units of X, in the columns that are used; None for a basis without landmarks."""
    basis = getattr(estimator, "basis_", None)
    for part in () if basis is None else basis.parts:
        if isinstance(part.core, LandmarkBasis):
            return in_units(getattr(estimator, "preparation_", Preparation()), part.core.landmarks)
    return None


def in_units(preparation: Preparation, points: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Prepared points (p, d) in the units of X, in the columns that are used."""
    return replace(preparation, columns=None).inverse(points, points.shape[1])


def column_names(estimator: Any) -> list[str]:
    """A name for each column that is used, with its unit where the data have one."""
    layout = vars(estimator).get("layout_")
    width = int(estimator.n_features_in_)
    if layout is not None:
        units = [str(v.attrs.get("units", "")) for v in layout.variables for _ in range(v.width)]
        units = units if layout.kept is None else [u for u, kept in zip(units, layout.kept, strict=True) if kept]
        named = zip(layout.names, units, strict=True)
        names = [f"{name} ({unit})" if unit else name for name, unit in named]
    else:
        names = [str(name) for name in vars(estimator).get("feature_names_in_", [f"column {i}" for i in range(width)])]
    own = getattr(estimator, "preparation_", None)
    chosen = None if own is None else own.columns
    return names if chosen is None else [names[i] for i in chosen]


def like_fit(estimator: Any, points: NDArray[np.floating[Any]]) -> Any:
    """Rows (m, n_features_in) with these points (..., d) in the columns that are used, 0 in the others.

    They are a data frame where the fit had one, so that scikit-learn does not miss the names.
    """
    own = getattr(estimator, "preparation_", None)
    rows = np.zeros((int(np.prod(points.shape[:-1])), int(estimator.n_features_in_)))
    used = slice(None) if own is None or own.columns is None else list(own.columns)
    rows[:, used] = points.reshape(len(rows), -1)
    names = vars(estimator).get("feature_names_in_")
    if names is None:
        return rows
    import pandas as pd  # type: ignore[import-untyped]  # xarray brings it

    return pd.DataFrame(rows, columns=names)


def require_matplotlib() -> None:
    """Raise ImportError, which names the extra to install, without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install daskspectral[plot]") from error
