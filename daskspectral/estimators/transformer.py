"""What transformers share: the names of their columns, and data frames where `set_output` asks for them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import sklearn
import xarray as xr
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from daskspectral.data.containers import is_lazy
from daskspectral.estimators.base import Estimator


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """An estimator whose `transform` gives columns of numbers, named after its class by `get_feature_names_out`."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """The number of columns that `transform` gives."""

    def _framed(self, X: Any, out: Any = None) -> Any:
        """The rows to transform: where a data frame is asked for, an xarray object in memory as an array.

        Raises ValueError where a data frame is asked for and the result of `transform` is not in memory.
        """
        own = vars(self).get("_sklearn_output_config", {})
        wanted = own.get("transform", sklearn.get_config()["transform_output"])
        if wanted == "default":
            return X
        if out is None and not is_lazy(X):
            return X.to_numpy() if isinstance(X, xr.DataArray) else X
        where = "out writes to a file" if out is not None else f"X ({type(X).__name__}) is read lazily"
        raise ValueError(
            f"set_output(transform={wanted!r}) makes a data frame in memory, and {where}: take "
            "set_output(transform='default'), or give X in memory"
        )
