"""What all pictures ask of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Preparation
from daskspectral.estimators import (
    DiffusionMap,
    KernelEmbedding,
    SDPEmbedding,
    SpectralDecomposition,
)

_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
LONGEST = 32  # characters of a column's name that are drawn
Embedding = SDPEmbedding | DiffusionMap | KernelEmbedding


def require_matplotlib() -> None:
    """Raise ImportError, which names the extra to install, without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install daskspectral[plot]") from error


def check_fitted(estimator: Any, kinds: Any = SpectralDecomposition) -> None:
    """Raise TypeError for estimators of other kinds, sklearn's NotFittedError before `fit`, ImportError as above."""
    require_matplotlib()
    if not isinstance(estimator, kinds):
        names = [kind.__name__ for kind in getattr(kinds, "__args__", (kinds,))]
        named = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        raise TypeError(f"pictures are drawn of a fitted {named}; got {type(estimator).__name__}")
    check_is_fitted(estimator)


def preparation_of(estimator: Any, *, right: bool = False) -> Preparation:
    """What the estimator does to the columns of its data, or of the second view."""
    found: Preparation = getattr(estimator, "right_preparation_" if right else "preparation_", Preparation())
    return found


def has_right_view(estimator: Any) -> bool:
    """Whether the right functions are of other variables than the left ones, as of Cross."""
    return is_singular(estimator) and estimator.moments_.operator.own_right_basis


def width_of(estimator: Any, *, right: bool = False) -> int:
    """The columns of the data of the fit, or of the second view."""
    return int(estimator.n_right_features_in_ if right else estimator.n_features_in_)


def is_singular(estimator: Any) -> bool:
    """Whether the estimator has singular values."""
    return isinstance(estimator, SpectralDecomposition) and estimator.solver_.two_sided


def values_of(estimator: Any) -> NDArray[np.inexact[Any]]:
    """The eigenvalues, or the singular values."""
    embedded = isinstance(estimator, Embedding)
    return np.asarray(estimator.spectrum_ if embedded else getattr(estimator, estimator.solver_.values))


def vanishing(values: NDArray[np.inexact[Any]]) -> NDArray[np.bool_]:
    """Which values are 0 beside the largest."""
    return np.asarray(np.abs(values) <= 1e-9 * np.abs(values).max(initial=0.0))


def still(values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Which functions, by values (m, k), are constant, or what a basis without the constant makes of it."""
    return np.asarray(values.std(axis=0) <= 0.1 * np.sqrt(np.mean(values**2, axis=0)))


def value_label(estimator: Any, i: int) -> str:
    """A function by its value, such as "λ₁ = 0.21"."""
    values = values_of(estimator)
    value = complex(0.0 if vanishing(values)[i] else values[i])
    text = f"{value.real:.3g}" + (f" {'+' if value.imag > 0 else '-'} {abs(value.imag):.3g}i" if value.imag else "")
    letter = "σ" if is_singular(estimator) else "λ"
    return f"{letter}{str(i).translate(_LOWERED)} = {text}".replace("-", "\N{MINUS SIGN}")


def landmarks_of(estimator: Any, *, right: bool = False) -> NDArray[np.floating[Any]] | None:
    """The landmarks (p, d) in the units of X, in the columns that are used; None for a basis without landmarks."""
    basis = getattr(estimator, "right_basis_" if right else "basis_", None)
    for part in () if basis is None else basis.parts:
        if isinstance(part.core, LandmarkBasis):
            return in_units(preparation_of(estimator, right=right), part.core.landmarks)
    return None


def in_units(preparation: Preparation, points: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Prepared points (p, d) in the units of X, in the columns that are used."""
    return replace(preparation, columns=None).inverse(points, points.shape[1])


def column_names(estimator: Any, *, right: bool = False) -> list[str]:
    """A name for each column that is used, with its unit where the data have one; of the second view numbers."""
    layout = vars(estimator).get("layout_")
    width = width_of(estimator, right=right)
    if right:
        names = [f"column {i}" for i in range(width)]
    elif layout is not None:
        attrs = [v.attrs for v in layout.variables for _ in range(v.width)]
        attrs = attrs if layout.kept is None else [a for a, kept in zip(attrs, layout.kept, strict=True) if kept]
        names = [with_unit(name, of) for name, of in zip(layout.names, attrs, strict=True)]
    else:
        names = [str(name) for name in vars(estimator).get("feature_names_in_", [f"column {i}" for i in range(width)])]
    chosen = preparation_of(estimator, right=right).columns
    return [shown(name) for name in (names if chosen is None else [names[i] for i in chosen])]


def with_unit(name: Any, attrs: Mapping[Any, Any]) -> str:
    """A name from the data with its unit, where the attributes have one."""
    return f"{name} ({attrs['units']})" if attrs.get("units") else str(name)


def shown(name: str, longest: int = LONGEST) -> str:
    """A name from the data as it is drawn: printable, and no longer than an axis."""
    text = "".join(character if character.isprintable() else " " for character in name)
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def like_fit(estimator: Any, points: NDArray[np.floating[Any]], *, right: bool = False) -> Any:
    """Rows (m, columns of the fit) with these points (..., d) in the columns that are used, 0 in the others.

    They are a data frame where the fit had one, so that scikit-learn does not miss the names.
    """
    columns = preparation_of(estimator, right=right).columns
    rows = np.zeros((int(np.prod(points.shape[:-1])), width_of(estimator, right=right)))
    rows[:, slice(None) if columns is None else list(columns)] = points.reshape(len(rows), -1)
    names = vars(estimator).get("feature_names_in_")
    if names is None or right:
        return rows
    import pandas as pd  # type: ignore[import-untyped]  # xarray brings it

    return pd.DataFrame(rows, columns=names)
