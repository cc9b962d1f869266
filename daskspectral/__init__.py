"""Spectral decompositions of operators, estimated from arrays that need not fit in memory.

    dsp.SpectralDecomposition(dsp.operators.Laplacian()).fit(x)     any operator
    dsp.SpectralClustering(n_clusters=3).fit_predict(x)             clusters of rows, of any shape
    dsp.EOF(n_components=6).fit(field)                              patterns of a field
    dsp.Koopman(lag=(1, 2, 5), reversible=True).fit(x)              slow processes of trajectories
    dsp.Rows(x, standardize=True)                                   how data are read, accepted instead of data
    dsp.plot, dsp.report                                            figures; all of a model on one page
    dsp.load("model.zarr")                                          a saved model

`help("daskspectral.guides")` lists the user guide, `.github/CONTRIBUTING.md` explains how to change the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskspectral import (
        basis,
        datasets,
        forms,
        groups,
        guides,
        kernels,
        landmarks,
        manifolds,
        model_selection,
        operators,
        plot,
        report,
        solvers,
        testing,
    )
    from daskspectral.data.rows import Rows
    from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
    from daskspectral.errors import (
        DensityWarning,
        ExtrapolationWarning,
        FitWarning,
        InvalidRowError,
        ManifoldWarning,
        RankWarning,
        ReliabilityWarning,
        SmoothnessError,
        UntrustedError,
        WeightWarning,
    )
    from daskspectral.invariance import InvariantFeatures, InvariantRegressor
    from daskspectral.moments import Moments
    from daskspectral.regression import HermiteRegressor
    from daskspectral.spectral import (
        CCA,
        EOF,
        MCA,
        FirstPassage,
        Koopman,
        MetastableSets,
        SpectralClustering,
        SpectralDecomposition,
    )
    from daskspectral.store import load, save, untrusted

__version__ = "0.1.0"

_HOMES = {
    "CCA": "spectral",
    "DensityWarning": "errors",
    "DiffusionMap": "embedding",
    "EOF": "spectral",
    "ExtrapolationWarning": "errors",
    "FirstPassage": "spectral",
    "FitWarning": "errors",
    "HermiteRegressor": "regression",
    "InvalidRowError": "errors",
    "InvariantFeatures": "invariance",
    "InvariantRegressor": "invariance",
    "KernelEmbedding": "embedding",
    "Koopman": "spectral",
    "MCA": "spectral",
    "ManifoldWarning": "errors",
    "MetastableSets": "spectral",
    "Moments": "moments",
    "RankWarning": "errors",
    "Rows": "data.rows",
    "SDPEmbedding": "embedding",
    "SmoothnessError": "errors",
    "SpectralClustering": "spectral",
    "SpectralDecomposition": "spectral",
    "ReliabilityWarning": "errors",
    "UntrustedError": "errors",
    "WeightWarning": "errors",
    "load": "store",
    "save": "store",
    "untrusted": "store",
}
__all__ = [  # what a user calls first comes first
    "SpectralDecomposition",
    "SpectralClustering",
    "EOF",
    "CCA",
    "MCA",
    "Koopman",
    "Rows",
    "HermiteRegressor",
    "SDPEmbedding",
    "DiffusionMap",
    "KernelEmbedding",
    "InvariantRegressor",
    "InvariantFeatures",
    "save",
    "load",
    "untrusted",
    "Moments",
    "MetastableSets",
    "FirstPassage",
    "operators",
    "kernels",
    "basis",
    "solvers",
    "plot",
    "report",
    "datasets",
    "model_selection",
    "manifolds",
    "groups",
    "landmarks",
    "forms",
    "testing",
    "guides",
    "FitWarning",
    "ReliabilityWarning",
    "ExtrapolationWarning",
    "RankWarning",
    "DensityWarning",
    "ManifoldWarning",
    "WeightWarning",
    "InvalidRowError",
    "SmoothnessError",
    "UntrustedError",
]


def __getattr__(name: str) -> Any:
    # lazy: a worker that needs the mathematics does not pay for scikit-learn
    if name in _HOMES:
        return getattr(importlib.import_module(f"daskspectral.{_HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"daskspectral.{name}")
    raise AttributeError(f"module 'daskspectral' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
