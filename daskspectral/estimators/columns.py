"""The columns of X as scikit-learn keeps and checks them: their number, and the names that a data frame gives them."""

from __future__ import annotations

from abc import ABC
from typing import Any, final

from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from daskspectral.data.containers import array_like, is_frame, with_names
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source

NAMES = "feature_names_in_"


class NamedColumns(ABC):
    """An estimator that knows the columns it was fitted on."""

    feature_names_in_: NDArray[Any]
    n_features_in_: int

    @final
    def _keep_names(self, X: Any, *, alike: bool = False) -> None:
        """Keep the names of the columns of a data frame as `feature_names_in_`; of several, of the first.

        Raises ValueError where several are to be `alike`, and have other names.
        """
        if NAMES in vars(self):
            del self.feature_names_in_
        frames = [part for part in (X if isinstance(X, (list, tuple)) else (X,)) if is_frame(part)]
        for number, frame in enumerate(frames if alike else frames[:1]):
            validate_data(self, with_names(frame), reset=number == 0, skip_check_array=True)

    @final
    def _check_several(self, source: Source) -> None:
        """Raise ValueError for a single row."""
        if source.n < 2:
            raise ValueError(f"X has 1 row (n_samples = 1), and {type(self).__name__} needs 2 or more")

    @final
    def _check_whole(self, rows: Rows) -> None:
        """Raise ValueError for rows of some columns, or of scaled ones, where the model keeps neither."""
        name = "columns" if rows.columns is not None else "standardize" if rows.standardize else ""
        if name:
            raise ValueError(
                f"{type(self).__name__} takes all columns as they are: leave {name}={getattr(rows, name)!r} out, and "
                "choose or scale the columns of X before"
            )

    @final
    def _like_fit(self, X: Any, n_features: int | None = None) -> Any:
        """X, as an array where it is a data frame or a list; of other points than `fit` had, `n_features` columns.

        Raises ValueError for another number of columns than in `fit`, or other names.
        """
        found, array = array_like(X)
        if n_features is None and array is not None:
            validate_data(self, with_names(X) if is_frame(X) else array, reset=False, skip_check_array=True)
        wanted = self.n_features_in_ if n_features is None else n_features
        if found != wanted:
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {wanted} features as input"
            )
        return X if array is None else array
