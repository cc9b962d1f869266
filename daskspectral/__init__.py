"""Spectral decompositions of operators, learned from data that does not fit in memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskspectral import basis, groups, kernels, landmarks, manifolds, operators, testing
    from daskspectral.errors import InvalidRowError, RankWarning, SmoothnessError, UntrustedError
    from daskspectral.estimators import (
        DiffusionMap,
        GraphLaplacian,
        HermiteRegressor,
        InvariantRegressor,
        KernelEmbedding,
        SDPEmbedding,
        SobolevRidge,
        SpectralDecomposition,
    )
    from daskspectral.forms import along, along_each, at, form, functional, grad, inner, partial, second
    from daskspectral.moments import Moments
    from daskspectral.store import load, save, untrusted

__version__ = "0.1.0"

_HOMES = {
    "DiffusionMap": "estimators",
    "GraphLaplacian": "estimators",
    "HermiteRegressor": "estimators",
    "InvalidRowError": "errors",
    "InvariantRegressor": "estimators",
    "KernelEmbedding": "estimators",
    "Moments": "moments",
    "RankWarning": "errors",
    "SDPEmbedding": "estimators",
    "SmoothnessError": "errors",
    "SobolevRidge": "estimators",
    "SpectralDecomposition": "estimators",
    "UntrustedError": "errors",
    "along": "forms",
    "along_each": "forms",
    "at": "forms",
    "form": "forms",
    "functional": "forms",
    "grad": "forms",
    "inner": "forms",
    "load": "store",
    "partial": "forms",
    "save": "store",
    "second": "forms",
    "untrusted": "store",
}
_MODULES = ("basis", "groups", "kernels", "landmarks", "manifolds", "operators", "testing")

__all__ = [
    "DiffusionMap",
    "GraphLaplacian",
    "HermiteRegressor",
    "InvalidRowError",
    "InvariantRegressor",
    "KernelEmbedding",
    "Moments",
    "RankWarning",
    "SDPEmbedding",
    "SmoothnessError",
    "SobolevRidge",
    "SpectralDecomposition",
    "UntrustedError",
    "along",
    "along_each",
    "at",
    "basis",
    "form",
    "functional",
    "grad",
    "groups",
    "inner",
    "kernels",
    "landmarks",
    "load",
    "manifolds",
    "operators",
    "partial",
    "save",
    "second",
    "testing",
    "untrusted",
]


def __getattr__(name: str) -> Any:
    # lazy: a worker that needs the mathematics does not pay for scikit-learn
    if name in _MODULES:
        return importlib.import_module(f"daskspectral.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"daskspectral.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'daskspectral' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
