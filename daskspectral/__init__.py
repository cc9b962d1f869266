"""Spectral decompositions of operators, learned from data that does not fit in memory.

How to work on it
-----------------
Imports run downward: cli > report > plot, testing > estimators, model_selection > passes > engine > store, datasets >
data > neural > moments > operators > modes > basis > forms > landmarks > solve, solvers > groups > manifolds >
kernels > registry > errors.
Everything from `neural` down is mathematics, and knows numpy and scipy only (and, where it is installed, jax).

The journey of one chunk, from `daskspectral fit points.zarr --out model.zarr` to eigenvalues:

1. `cli.entry.main`, `cli.spectral.fit`: outputs are refused that cannot be written; the options become `Rows`, a basis
and
   a solver.
2. `SpectralDecomposition.fit`: `estimators.reading.reads` opens the rows and lays out their labels;
`passes.sides.Choice`
   has the functions that are asked for, `data.source.open_data` makes a `Source` of named fields, and the two are
   compared; nothing but metadata is read.
3. `passes.session.Session`, the steps of every fit that is solved from moments:
   a. `passes.sums.plan_sums`: the ranges of rows of each task, how rows come to folds (`passes.folds`), the memory.
   b. `data.integrity.Snapshot`: a listing of the stores, compared after the pass.
   c. `Choice.discretise`: `passes.scale` scales the columns, `passes.density` estimates a density to divide out,
      `passes.deciding` compares kernels, scales and penalties on a pilot (`passes.automatic`) with functions of other
      kinds (`passes.rivals`), `passes.landmarks` draws landmarks, `passes.edges` looks at functions that are to vanish:
      a `Discretisation`. A checkpoint keeps it (`engine.checkpoint.Checkpoint.take_up`).
   d. `passes.sums.measure` hands a `moments.summing.SumTask` to `engine.run.Run.reduce`.
4. In a task, `data.batches.Batches` reads the chunk and drops invalid rows; `moments.folds.Groups` splits it by fold
   and `moments.measure.Measure` cuts it into blocks; `Basis.at` evaluates the functions of a block, and
   `Basis.contraction` adds their products to p × p sums.
   On a `basis.FourierLattice` the task is a `moments.modes.ModeMeasure`: `modes.sums` adds modes, from which
   `modes.matrices` makes the matrices of any form afterwards, and `passes.lattice` found the box before.
   A `basis.NeuralBasis` was trained before by `neural.training`, on rows that `passes.networks` drew; in a task it is a
   basis like others.
5. `Run.reduce` adds the sums of all tasks in a fixed tree, epoch by epoch: `moments.Moments`, with its `Folds`.
6. `SpectralDecomposition.fit_moments`: `moments.solution.solve_moments` poses the problem of the means
   (`moments.problem`) to the operator's `Solver`; its `Spectrum` becomes `eigenvalues_`, `coefficients_` and what else
   the solver names. `moments.intervals` solves again without each fold, for error bars and held-out values, and
   `moments.trust` warns where they leave a doubt. Modes take `passes.prior`: `moments.prior_choice` compares kernels
   by the folds, `moments.lattice` reduces the matrices to their leading functions, or does without matrices.
7. `store.save` takes the estimator apart (`registry.encode`) and writes a zarr group.

How to add to it. Each is one class in one file; it registers itself, is saved and loaded, and nothing else changes
(`tests/test_adding.py` adds one of each):

- an operator: inherit from `operators.Operator`, a dataclass with a `form`;
- a kernel: `kernels.RadialKernel` (`profile`, `smoothness`), `kernels.DotKernel`, or `kernels.ParameterKernel`;
- a basis: `basis.Basis` (`size`, `dimension`, `order`, `description`, `at`);
- functions that take part in basis="auto": `passes.rivals.Kind` (`name`, `rival`);
- a solver: `solve.Solver` (`name`, `solve`, and the attributes that it gives); operators name it, by its name too;
- an estimator: `estimators.base.Estimator` (`fit`, `fitted_attributes`), or `MeasuredEstimator` (`fit_moments`).

How to test it. `pytest` runs the fast tests, `pytest -m slow` the others: clusters, batch systems, a browser, a server
of objects, killed processes, statistics over many seeds, examples at size. What asks for the fixtures `cluster`,
`browser` or `server` is slow by itself (`tests/conftest.py`). Each room has its tests in the folder of its name, which
run alone in less than a minute (`estimators` in two): `pytest tests/moments` for `moments`, with
`tests/passes/test_folds.py` for the folds. Those of `kernels`, `forms`, `moments`, `solve`, `modes` and `groups`, where
numbers are decided, are held against mutants: `python examples/benchmarks/mutants.py --seed 1 --count 40 --rooms solve`
changes a sign, a factor, a comparison, an index, drops a term or a transpose, and names what no test of the room
noticed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskspectral import (
        basis,
        datasets,
        groups,
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
    from daskspectral.errors import (
        DensityWarning,
        FitWarning,
        InvalidRowError,
        ManifoldWarning,
        RankWarning,
        SmoothnessError,
        TrustWarning,
        UntrustedError,
        WeightWarning,
    )
    from daskspectral.estimators import (
        DiffusionMap,
        HermiteRegressor,
        InvariantFeatures,
        InvariantRegressor,
        KernelEmbedding,
        SDPEmbedding,
        SpectralDecomposition,
    )
    from daskspectral.forms import along, along_each, at, form, functional, grad, inner, partial, second
    from daskspectral.moments import Moments
    from daskspectral.store import load, save, untrusted

__version__ = "0.1.0"

_HOMES = {
    "DensityWarning": "errors",
    "DiffusionMap": "estimators",
    "FitWarning": "errors",
    "HermiteRegressor": "estimators",
    "InvalidRowError": "errors",
    "InvariantFeatures": "estimators",
    "InvariantRegressor": "estimators",
    "KernelEmbedding": "estimators",
    "ManifoldWarning": "errors",
    "Moments": "moments",
    "RankWarning": "errors",
    "Rows": "data.rows",
    "SDPEmbedding": "estimators",
    "SmoothnessError": "errors",
    "SpectralDecomposition": "estimators",
    "TrustWarning": "errors",
    "UntrustedError": "errors",
    "WeightWarning": "errors",
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
_MODULES = (
    "basis",
    "datasets",
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
)

__all__ = [
    "DensityWarning",
    "DiffusionMap",
    "FitWarning",
    "HermiteRegressor",
    "InvalidRowError",
    "InvariantFeatures",
    "InvariantRegressor",
    "KernelEmbedding",
    "ManifoldWarning",
    "Moments",
    "RankWarning",
    "Rows",
    "SDPEmbedding",
    "SmoothnessError",
    "SpectralDecomposition",
    "TrustWarning",
    "UntrustedError",
    "WeightWarning",
    "along",
    "along_each",
    "at",
    "basis",
    "datasets",
    "form",
    "functional",
    "grad",
    "groups",
    "inner",
    "kernels",
    "landmarks",
    "load",
    "manifolds",
    "model_selection",
    "operators",
    "partial",
    "plot",
    "report",
    "save",
    "second",
    "solvers",
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
