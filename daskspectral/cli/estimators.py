"""`embed`: coordinates of every row. `regress` and `invariant`: regression by a kernel, or invariant under a group."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli.commands import session
from daskspectral.cli.options import BASIS, LABELLED, RUN, SAVED, VALID, verb
from daskspectral.cli.running import (
    LANDMARKS,
    bar,
    finish,
    functions_of,
    given,
    kernel_of,
    refuse,
    refuse_given,
    rows_of,
    saving,
    say_plan,
    scheduler,
    width_of,
)

if TYPE_CHECKING:
    from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding


MAPS = {  # the options that each map reads, of those that not all of them read
    "sdp": (
        *("components", "method", "landmarks", "landmark_method", "landmark_sample", "accuracy"),
        *("device", "columns", "standardize", "tolerance", "max_passes"),
        *("checkpoint", "checkpoint_every"),
    ),
    "diffusion": ("components", "method", "landmarks", "landmark_method", "time", "density"),
    "kernel": ("kernel", "regularization", "tolerance", "max_passes"),
}


@verb(
    "POINTS",
    f"bandwidth map method landmarks accuracy landmark-method landmark-sample {LABELLED} tolerance max-passes columns "
    f"standardize device components time density kernel regularization seed {VALID} "
    f"{SAVED} out {RUN}",
    examples=[
        "embed points.zarr --landmarks 100 --out embedder.zarr",
        "embed points.zarr --map diffusion --bandwidth 0.5 --landmarks 100 --out diffusion.zarr",
    ],
)
def embed(points: str, **options: Any) -> None:
    """Embed the rows of POINTS.

    The result is the SDP embedding, a diffusion map, or a kernel that is learned.
    """
    refuse(options, points)
    estimator = _estimator(options)
    rows = rows_of(points, options)
    with scheduler(options):
        estimator.fit(rows, **(saving(options) if options["kind"] == "sdp" else {"progress": bar(options)}))
        finish(estimator, options)


def _estimator(options: dict[str, Any]) -> SDPEmbedding | DiffusionMap | KernelEmbedding:
    """The estimator that the options name. Raises click's UsageError for an option of another map."""
    from daskspectral.basis import Landmarks
    from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
    from daskspectral.solvers import Ascent

    kind = options["kind"]
    for name in sorted({*chain(*MAPS.values())} - {*MAPS[kind]}):
        refuse_given([name], f"is for --map {' or '.join(other for other, names in MAPS.items() if name in names)}")
    if kind == "diffusion" and options["landmarks"] == "auto":
        raise click.UsageError("--landmarks auto is for --map sdp")
    if kind == "kernel" and options["on_invalid"] == "skip":
        raise click.UsageError("--on-invalid skip is for --map sdp or diffusion: a kernel is learned from all rows")
    shared: dict[str, Any] = {"bandwidth": options["bandwidth"], "random_state": options["seed"]}
    steps = given(options, "tolerance", "max_passes")
    if kind == "kernel":
        if options["kernel"] is not None:
            shared["kernel"] = kernel_of(options)
        return KernelEmbedding(**shared, **steps, **given(options, "regularization"))
    shared |= given(options, "method", components="n_components")
    landmarks = Landmarks(**given(options, **LANDMARKS))
    if kind == "diffusion":
        return DiffusionMap(**shared, landmarks=landmarks, **given(options, "time", density="alpha"))
    own = given(options, "accuracy", "device")
    return SDPEmbedding(**shared, landmarks=landmarks, **own, solver=Ascent(**steps))


@verb(
    "POINTS TARGETS",
    f"gradients gradient-weight {LABELLED} {BASIS} alpha columns periods standardize weights rtol dtype device seed "
    f"{VALID} {SAVED} out {RUN}",
    examples=[
        "regress points.zarr y.zarr --out regressor.zarr",
        "regress points.zarr y.zarr --gradients b.zarr --landmarks 100 --out hermite.zarr",
    ],
)
def regress(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS, and gradients if known, on POINTS."""
    from daskspectral.regression import HermiteRegressor

    kernel_of(options)  # an unknown one is an error before POINTS are opened
    width = _width(points, targets, options)
    chosen = given(options, "gradient_weight", "alpha", "rtol", "dtype", "device", seed="random_state")
    _fit(HermiteRegressor(functions_of(options, width), **chosen), points, targets, options)


@verb(
    "POINTS TARGETS",
    f"{LABELLED} manifold group smoothness functions gradients gradient-weight solver alpha weights {VALID} {SAVED} "
    f"out {RUN}",
    examples=[
        "invariant points.zarr y.zarr --group signflips --out invariant.zarr",
        "invariant sphere.zarr s.zarr --manifold sphere --group permutations --out ball.zarr",
    ],
)
def invariant(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS among functions invariant under a group.

    POINTS lie on a manifold.
    """
    from daskspectral.groups.names import parse_group
    from daskspectral.invariance import InvariantRegressor
    from daskspectral.invariance.levels import InvariantSolver
    from daskspectral.manifolds.names import parse_manifold

    solvers = InvariantSolver.family()
    solver = options["solver"].replace("-", "_")
    if options["alpha"] is not None and not solvers[solver].penalised:
        penalised = " or ".join(name.replace("_", "-") for name, found in solvers.items() if found.penalised)
        raise click.UsageError(f"--alpha is for --solver {penalised}")
    width = _width(points, targets, options)
    estimator = InvariantRegressor(
        None if options["manifold"] is None else parse_manifold(options["manifold"], width),
        None if options["group"] is None else parse_group(options["group"], width),
        solver=solver,
        **given(options, "smoothness", "alpha", "gradient_weight", functions="n_eigenfunctions"),
    )
    _fit(estimator, points, targets, options)


def _width(points: str, targets: str, options: dict[str, Any]) -> int:
    """The number of columns of the points, after errors for a line that cannot be, and outputs that cannot be made."""
    if options["gradient_weight"] is not None and options["gradients"] is None:
        raise click.UsageError("--gradient-weight is for --gradients")
    refuse(options, points, targets, options["weights"], options["gradients"])
    return width_of(points, options)


def _fit(estimator: Any, points: str, targets: str, options: dict[str, Any]) -> None:
    """Fit a regressor, save and describe it, or tell its plan."""
    rows, read = rows_of(points, options), given(options, "gradients", weights="sample_weight")
    with scheduler(options):
        if session().planning:
            say_plan(estimator.plan(rows, targets, **read))
            return
        estimator.fit(rows, targets, **read, **saving(options))
        finish(estimator, options)
