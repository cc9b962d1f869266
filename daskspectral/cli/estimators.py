"""`cluster` and `embed`: labels and coordinates of rows. `regress` and `invariant`: regression, also under a group."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.basis import Landmarks
from daskspectral.cli import parameters as par
from daskspectral.cli import running as run
from daskspectral.cli.commands import session, written
from daskspectral.cli.signatures import given
from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
from daskspectral.groups.names import parse_group
from daskspectral.invariance import InvariantRegressor
from daskspectral.invariance.levels import InvariantSolver
from daskspectral.manifolds.names import parse_manifold
from daskspectral.regression import HermiteRegressor
from daskspectral.solvers import BurerMonteiro
from daskspectral.spectral import SpectralClustering
from daskspectral.store import save


def cluster(points: str, **options: Any) -> None:
    """Divide the rows of POINTS into clusters.

    The result is the cluster number of each row, the largest cluster first, -1 for skipped rows.

    Examples
    --------
    cluster points.zarr --clusters 3 --out labels.zarr
    cluster table.csv --clusters auto --standardize --out labels.zarr
    cluster points.zarr --clusters 3 --save-model clusters.zarr --out labels.zarr
    """
    run.refuse(options, points, options["weights"])
    if (model := options["save_model"]) is not None:
        run.refuse(options | {"out": model}, points, options["weights"], options["out"])
    estimator, rows = SpectralClustering(**given(options, par.CLUSTERS)), run.rows_of(points, options)
    with run.scheduler(options):
        estimator.fit(rows, **given(options, par.WEIGHTS), **run.saving(options))
        if model is not None:
            save(estimator, model, overwrite=options["overwrite"])
            written("model", model)
        run.print_summary(estimator)
        estimator.predict(rows, out=options["out"], overwrite=options["overwrite"], progress=run.bar(options))
    written("labels", options["out"], clusters=estimator.n_clusters_)


def embed(points: str, **options: Any) -> None:
    """Embed the rows of POINTS.

    The result is the SDP embedding, a diffusion map, or a kernel that is learned.

    Examples
    --------
    embed points.zarr --landmarks 100 --out embedder.zarr
    embed points.zarr --map diffusion --bandwidth 0.5 --landmarks 100 --out diffusion.zarr
    """
    run.refuse(options, points)
    estimator = _estimator(options)
    rows = run.rows_of(points, options)
    with run.scheduler(options):
        estimator.fit(rows, **(run.saving(options) if options["kind"] == "sdp" else {"progress": run.bar(options)}))
        run.finish(estimator, options)


def _estimator(options: dict[str, Any]) -> SDPEmbedding | DiffusionMap | KernelEmbedding:
    """Return the estimator of the options; raise click's UsageError for an option of another map."""
    kind = options["kind"]
    read = {name: {key for part in parts for key in part.keys} for name, parts in par.MAPS.items()}
    for name in sorted(set().union(*read.values()) - read[kind]):
        run.refuse_given([name], f"is for --map {' or '.join(other for other, names in read.items() if name in names)}")
    if kind == "diffusion" and options["landmarks"] == "auto":
        raise click.UsageError("--landmarks auto is for --map sdp")
    if kind == "kernel" and options["on_invalid"] == "skip":
        raise click.UsageError(
            "--on-invalid skip requires --map sdp or diffusion, because a kernel is learned from all rows"
        )
    shared = given(options, par.EMBEDDING)
    if kind == "kernel":
        named = {} if options["kernel"] is None else {"kernel": run.kernel_of(options)}
        return KernelEmbedding(**shared, **given(options, par.LEARNED) | named)
    landmarks = Landmarks(**given(options, par.COVERING, par.CANDIDATES))
    if kind == "diffusion":
        return DiffusionMap(**shared, **given(options, par.DIFFUSION), landmarks=landmarks)
    solver = BurerMonteiro(**given(options, par.ASCENT))
    return SDPEmbedding(**shared, **given(options, par.SDP), landmarks=landmarks, solver=solver)


def regress(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS, and gradients if known, on POINTS.

    Examples
    --------
    regress points.zarr y.zarr --out regressor.zarr
    regress points.zarr y.zarr --gradients b.zarr --landmarks 100 --out hermite.zarr
    """
    run.kernel_of(options)  # an unknown one is an error before POINTS are opened
    width = _width(points, targets, options)
    regressor = HermiteRegressor(run.functions_of(options, width), **given(options, par.GRADIENT_WEIGHT, par.RIDGE))
    _fit(regressor, points, targets, options)


def invariant(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS among functions invariant under a group.

    POINTS lie on a manifold.

    Examples
    --------
    invariant points.zarr y.zarr --group signflips --out invariant.zarr
    invariant sphere.zarr s.zarr --manifold sphere --group permutations --out ball.zarr
    """
    solvers = InvariantSolver.family()
    solver = options["solver"].replace("-", "_")
    if options["alpha"] is not None and not solvers[solver].has_penalty:
        penalized = " or ".join(name.replace("_", "-") for name, found in solvers.items() if found.has_penalty)
        raise click.UsageError(f"--alpha is for --solver {penalized}")
    width = _width(points, targets, options)
    estimator = InvariantRegressor(
        None if options["manifold"] is None else parse_manifold(options["manifold"], width),
        None if options["group"] is None else parse_group(options["group"], width),
        solver=solver,
        **given(options, par.INVARIANCE, par.LEAST_SQUARES, par.GRADIENT_WEIGHT),
    )
    _fit(estimator, points, targets, options)


def _width(points: str, targets: str, options: dict[str, Any]) -> int:
    """Return the number of columns of the points, after checks of options and outputs."""
    if options["gradient_weight"] is not None and options["gradients"] is None:
        raise click.UsageError("--gradient-weight is for --gradients")
    run.refuse(options, points, targets, options["weights"], options["gradients"])
    return run.width_of(points, options)


def _fit(estimator: Any, points: str, targets: str, options: dict[str, Any]) -> None:
    """Fit, save and describe a regressor, or print its plan."""
    rows, read = run.rows_of(points, options), given(options, par.GRADIENTS, par.WEIGHTS)
    with run.scheduler(options):
        if session().planning:
            run.say_plan(estimator.plan(rows, targets, **read))
            return
        estimator.fit(rows, targets, **read, **run.saving(options))
        run.finish(estimator, options)
