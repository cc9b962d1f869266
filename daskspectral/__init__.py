"""Spectral decompositions of operators, estimated from arrays larger than memory.

    dsp.SpectralDecomposition(dsp.operators.Laplacian()).fit(x)     any operator
    dsp.SpectralClustering(n_clusters=3).fit_predict(x)             clusters of rows, of any shape
    dsp.EOF(n_components=6).fit(field)                              patterns of a field
    dsp.Koopman(lag=(1, 2, 5), reversible=True).fit(x)              slow processes of trajectories
    dsp.Rows(x, standardize=True)                                   options of reading, accepted instead of data
    dsp.plot; dsp.report.save(model, "page.html", x)                figures; one page about a model
    dsp.load("model.zarr")                                          a saved model

The user guide is in `examples/pages/guide`; `.github/CONTRIBUTING.md` explains how to change the package.

Estimators
    SpectralDecomposition, SpectralClustering, EOF, CCA, MCA, Koopman, HermiteRegressor, InvariantRegressor,
    InvariantFeatures, SDPEmbedding, DiffusionMap, KernelEmbedding
Data and results
    Rows, Moments, MetastableSets, FirstPassage, save, load, untrusted
Modules
    operators, kernels, basis, solvers, plot, report, datasets, model_selection, manifolds, groups, landmarks, forms,
    testing
Warnings and errors
    FitWarning, ReliabilityWarning, ExtrapolationWarning, RankWarning, DensityWarning, ManifoldWarning, WeightWarning,
    InvalidRowError, SmoothnessError, UntrustedError
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskspectral import (
        basis as basis,
    )
    from daskspectral import (
        datasets as datasets,
    )
    from daskspectral import (
        forms as forms,
    )
    from daskspectral import (
        groups as groups,
    )
    from daskspectral import (
        kernels as kernels,
    )
    from daskspectral import (
        landmarks as landmarks,
    )
    from daskspectral import (
        manifolds as manifolds,
    )
    from daskspectral import (
        model_selection as model_selection,
    )
    from daskspectral import (
        operators as operators,
    )
    from daskspectral import (
        plot as plot,
    )
    from daskspectral import (
        report as report,
    )
    from daskspectral import (
        solvers as solvers,
    )
    from daskspectral import (
        testing as testing,
    )
    from daskspectral.data.rows import Rows as Rows
    from daskspectral.embedding import (
        DiffusionMap as DiffusionMap,
    )
    from daskspectral.embedding import (
        KernelEmbedding as KernelEmbedding,
    )
    from daskspectral.embedding import (
        SDPEmbedding as SDPEmbedding,
    )
    from daskspectral.errors import (
        DensityWarning as DensityWarning,
    )
    from daskspectral.errors import (
        ExtrapolationWarning as ExtrapolationWarning,
    )
    from daskspectral.errors import (
        FitWarning as FitWarning,
    )
    from daskspectral.errors import (
        InvalidRowError as InvalidRowError,
    )
    from daskspectral.errors import (
        ManifoldWarning as ManifoldWarning,
    )
    from daskspectral.errors import (
        RankWarning as RankWarning,
    )
    from daskspectral.errors import (
        ReliabilityWarning as ReliabilityWarning,
    )
    from daskspectral.errors import (
        SmoothnessError as SmoothnessError,
    )
    from daskspectral.errors import (
        UntrustedError as UntrustedError,
    )
    from daskspectral.errors import (
        WeightWarning as WeightWarning,
    )
    from daskspectral.invariance import InvariantFeatures as InvariantFeatures
    from daskspectral.invariance import InvariantRegressor as InvariantRegressor
    from daskspectral.moments import Moments as Moments
    from daskspectral.regression import HermiteRegressor as HermiteRegressor
    from daskspectral.spectral import (
        CCA as CCA,
    )
    from daskspectral.spectral import (
        EOF as EOF,
    )
    from daskspectral.spectral import (
        MCA as MCA,
    )
    from daskspectral.spectral import (
        FirstPassage as FirstPassage,
    )
    from daskspectral.spectral import (
        Koopman as Koopman,
    )
    from daskspectral.spectral import (
        MetastableSets as MetastableSets,
    )
    from daskspectral.spectral import (
        SpectralClustering as SpectralClustering,
    )
    from daskspectral.spectral import (
        SpectralDecomposition as SpectralDecomposition,
    )
    from daskspectral.store import load as load
    from daskspectral.store import save as save
    from daskspectral.store import untrusted as untrusted

__version__ = "0.1.0"

# without __all__, `help(daskspectral)` is this docstring and not that of every class
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
    "ReliabilityWarning": "errors",
    "Rows": "data.rows",
    "SDPEmbedding": "embedding",
    "SmoothnessError": "errors",
    "SpectralClustering": "spectral",
    "SpectralDecomposition": "spectral",
    "UntrustedError": "errors",
    "WeightWarning": "errors",
    "load": "store",
    "save": "store",
    "untrusted": "store",
}
_MODULES = {
    "basis",
    "datasets",
    "forms",
    "groups",
    "kernels",
    "landmarks",
    "manifolds",
    "model_selection",
    "operators",
    "plot",
    "report",
    "solvers",
    "testing",
}


def __getattr__(name: str) -> Any:
    # lazy: a worker that needs the mathematics does not pay for scikit-learn
    if name in _HOMES:
        return getattr(importlib.import_module(f"daskspectral.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"daskspectral.{name}")
    raise AttributeError(f"module 'daskspectral' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_MODULES, "__version__"])
