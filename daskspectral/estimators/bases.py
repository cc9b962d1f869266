"""Typed base classes of scikit-learn, so that mypy reports mistyped attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters, printing and metadata routing."""

        set_fit_request: Any
        set_predict_request: Any
        set_score_request: Any
        set_transform_request: Any

        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
        def __sklearn_clone__(self) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_inner(self) -> str: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_metadata_routing(self) -> Any: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...

    class TransformerMixin(BaseEstimator):
        """Container of `transform`."""

        fit: Any
        transform: Any

        def set_output(self, *, transform: str | None = None) -> Any: ...

    class ClassNamePrefixFeaturesOutMixin(BaseEstimator):
        """Names of columns of `transform`."""

        def get_feature_names_out(self, input_features: Any = None) -> Any: ...

    class ClusterMixin(BaseEstimator):
        """Clustering."""

    class RegressorMixin(BaseEstimator):
        """Regressor."""

else:
    from sklearn.base import (  # noqa: F401
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        RegressorMixin,
        TransformerMixin,
    )
