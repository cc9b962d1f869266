"""Spectral decompositions of operators, learned from data that does not fit in memory.

    dsp.SpectralDecomposition(dsp.operators.Laplacian()).fit(x)     of any operator: coordinates
    dsp.SpectralClustering(n_clusters=3).fit_predict(x)             clusters of rows, of any shape
    dsp.EOF(n_components=6).fit(field)                              patterns of a field
    dsp.Koopman(lag=(1, 2, 5), reversible=True).fit(x)              slow processes of trajectories
    dsp.Rows(x, standardize=True)                                   how data are read; goes wherever data do
    dsp.plot, dsp.report                                            pictures; all of a model on one page
    help("daskspectral.guides")                                     results, options, shell, clusters, guarantees

How to work on it
-----------------
A room has the name of its task, and imports run downward from one to the next (import-linter holds them to it):

- `cli`; `report`; `plot` and `testing`: a shell, a page, pictures, and checks of a user's own pieces;
- `spectral`, `regression`, `embedding`, `invariance`: one method each, its estimators with their algebra and passes; no
  one of the four knows another;
- `estimators`, `model_selection`: what all estimators share, and scikit-learn's cross-validation of them;
- `choosing`: landmarks, lattices, networks and other functions, as they are made from the data or compared;
- `passes`, `engine`, `store`, `data`: what is read and summed, on which scheduler, and kept;
- `neural`, `moments`, `operators`, `basis`, `modes`, `forms`, `landmarks`, `solve`, `groups`, `manifolds`, `kernels`:
  the mathematics, which knows numpy and scipy only (and, where it is installed, jax);
- `registry`, `validation`, `errors`, `devices`, `workspace`: what everything else may use; `solvers`: what users say of
  a solution; `datasets`: samples to try things on; `guides`: pages to read; `templates`: those of reports.

The journey of one chunk, from `daskspectral fit points.zarr --out model.zarr` to eigenvalues:

1. `cli.spectral.fit` makes `Rows`, a basis and a solver of the options; outputs that cannot be written are refused.
2. `SpectralEstimator.fit` opens them (`estimators.table`, then `data.source.open_data`): a `Source` of fields.
3. `passes.session.Session` plans tasks, folds and memory (`passes.sums.plan_sums`), and lists the stores (`Snapshot`).
4. `spectral.choice.Choice` scales columns and builds bases from recipes (`basis.recipe`): `choosing.search` compares
   kernels and scales on a pilot and fills in the best one, and the recipe draws the rows of its landmarks.
5. `passes.sums.measure` hands a `moments.summing.SumTask` to `engine.run.Run.reduce`, by a checkpoint's epochs.
6. In a task `data.batches` reads and checks rows, `moments.folds` parts them by fold, `moments.measure` into blocks.
7. `Basis.accumulator` sums blocks: `Basis.at` evaluates one, a contraction adds p × p products; that of a
   `FourierLattice` adds modes (`modes.sums`).
8. `Run.reduce` adds the sums of all tasks in a fixed tree: `moments.Moments`, with its `Folds`.
9. `moments.solution.System` solves the problem of the means, `moments.intervals` without each fold
   (modes: `choosing.prior` takes a kernel by the folds, `moments.lattice` the matrices of its leading functions).
10. `store.save` takes the estimator apart (`registry.encode`) and writes a zarr group.

Where what a user sees comes from: `eigenvalues_`, `status_`: `solve.problems`; the intervals and `held_out_`:
`moments.intervals`; `trusted_` and the warnings: `moments.trust`; `choice_`: `choosing.search`; `alpha_`:
`solve.ridge`; how many rows the data count as: `moments.counting`; labels of results: `data.layout`, `passes.apply`;
the table of `info`: `spectral.summary`; the certificate: `embedding.certificate`.

How to add to it
----------------
Each of these is one class in a module of your own, where it registers itself, is saved and loaded, and nothing else
changes (`tests/test_adding.py` adds one of each). In the package itself its room's `__init__.py` imports it too, so
that a file that names it finds it, with a line in the table of its docstring; a `names.py` has its name in a shell; and
`tests/test_contracts.py`, which holds all of a kind to one contract (`testing`), fails without a case of it:

- an operator: inherit from `operators.Operator`, a dataclass with a `form`; with a name also the docstring of
  `operators.names.parse` and `CASES` of its test;
- a kernel: `kernels.ProfileKernel` (`geometry`, `smoothness`, `profile`), or `kernels.Kernel`;
- a manifold: `manifolds.Manifold` (`ambient`, `dimension`, `_normals`; with `_level` and `_eigenspace` its functions);
- a basis: `basis.Basis` (`size`, `dimension`, `order`, `description`, `at`);
- functions that take part in basis="auto": `choosing.search.CandidateFamily` (`name`, `best`);
- a kind of problem: `solve.Problem` (`name`, `solve` and its flags); operators name it, by its name too;
- an estimator: `estimators.base.Estimator` (`fit`, `fitted_attributes`), or `MeasuredEstimator` (`_session`, `_solve`);
- an estimator of one operator, for another field: `spectral.estimator.SpectralEstimator` (`operator`, `basis` and a
  constructor), as in `spectral.pairs`;

and these are a function or a few lines, in one or two places:

- an option of a command: the name of a documented parameter in `cli.parameters`, whose type, default and first sentence
  it has, or a line in `cli.options` if no class has it (`RARE` lists those that few need), its name at its command in
  `cli.verbs`, and what it makes in `cli.running`;
- a command: a function in a module of `cli`, with examples in its docstring, and its line in `cli.verbs`;
  `guides.shell` names it;
- an argument of `Rows`: a field of `data.rows.Rows`, and what reads it: `data.source`, of labels `data.labelled`;
- a picture: a function in `plot`, in its `__all__` and the table of its docstring; `report.page` calls it;
- a distribution to try things on: an entry of `datasets.SAMPLES`, with its name in the docstring of `datasets.draw`;
- an example: a script in `examples/` that asserts a number, its entry in `examples/pages/gallery.yaml`, and
  `python examples/pages/record.py NAME` for its numbers;
- a page to read: a module in `guides`, and its line in `examples/pages/build.py`;
- an extra: a line of `pyproject.toml`, and of `guides.installing`.

A public name has a docstring with shapes, units, errors and source, and an example; bad input is an error on the driver
before any task, which says what was expected, what came and what to do.

How to test it
--------------
`pytest` runs the fast tests, `pytest -m slow` clusters, batch systems, a browser, a server of objects, killed processes
and examples at size, `pytest -m nightly` statistics over many seeds and all combinations. What asks for the fixtures
`cluster`, `browser` or `server` is slow by itself (`tests/conftest.py`). A warning is an error: a test whose model is
too small to be trusted, and that asks for something else, is marked `doubtful` (`tests/common.py`). `ruff check . &&
ruff format --check . && mypy && lint-imports` come before each commit, 50 s, and `.ci/run` is all that a change must
pass. Each room has its tests in the folder of its name; seconds are those of one process beside other work on two
cores:

    changed                                       run `pytest`                                       seconds
    kernels; manifolds; groups; forms             tests/kernels, and so on; tests/test_contracts.py  18; 27; 8; 13
    operators; basis; modes; solve                tests/operators, and so on                         45; 17; 9; 24
    moments                                       tests/moments tests/operators                      140
    neural; choosing                              tests/neural tests/choosing                        44; 17
    data; store                                   tests/data tests/stores                            40; 20
    engine; passes                                tests/engine tests/passes                          60; 20
    estimators                                    tests/estimators tests/test_adding.py              34; 30
    spectral; regression                          tests/spectral; tests/regression                   43; 23
    embedding; invariance                         tests/embedding; tests/invariance                  36; 19
    plot; report                                  tests/report                                       90
    cli                                           tests/cli                                          60
    a docstring                                   daskspectral                                       80
    a public name                                 tests/test_package.py tests/pages                  30
    README, guides                                tests/test_readme.py -m "slow or not slow"         140
    pages                                         tests/pages -m "slow or not slow"                  60
    an example                                    tests/examples                                     the script's own
    deploy                                        tests/deploy                                       with SLURM, slow

Those of `kernels`, `forms`, `moments`, `solve`, `modes` and `groups`, where numbers are decided, are held against
mutants: `python examples/benchmarks/mutants.py --seed 1 --count 40 --rooms solve` changes a sign, a factor, a
comparison, an index, drops a term or a transpose, and names what no test of the room noticed.
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
        SmoothnessError,
        TrustWarning,
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
    "TrustWarning": "errors",
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
    "TrustWarning",
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
