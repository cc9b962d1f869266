"""`regress`: values and gradients by a kernel. `invariant`: regression that is invariant under a group."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli import options as opt
from daskspectral.cli.describing import describe
from daskspectral.cli.names import parse_group, parse_manifold
from daskspectral.data.readers import open_zarr, refuse_input
from daskspectral.data.writer import refuse_existing
from daskspectral.estimators import HermiteRegressor, InvariantRegressor
from daskspectral.solve.invariant import InvariantSolver

SOLVERS = {name.replace("_", "-"): solver for name, solver in InvariantSolver.family().items()}


class Alpha(click.ParamType):  # type: ignore[type-arg]
    """A number, or the word gcv."""

    name = "float|gcv"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number as a float, or the word."""
        if value == "gcv":
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor gcv")


PASSED_ON = ("alpha", "basis", "landmark_sample", "columns", "periods", "standardize", "rtol", "dtype")
"""Options that are parameters of the estimator by the same name."""


@click.command()
@click.argument("points")
@click.argument("targets")
@click.option("--gradients", help="A zarr array of the targets' gradients, (rows, columns of POINTS).")
@click.option("--gradient-weight", type=float, help="Weight of a gradient against a value; 1 by default.")
@opt.basis_options
@click.option("--alpha", type=Alpha(), help="The penalty's weight, or gcv; chosen by cross-validation by default.")
@opt.columns_option
@opt.periods_option
@opt.standardize_option
@opt.weights_option
@opt.rtol_option
@opt.dtype_option
@opt.seed_option
@opt.fit_row_options
@opt.checkpoint_options
@opt.model_option
@opt.run_options
def regress(points: str, targets: str, gradients: str | None, **options: Any) -> None:
    """Regress the zarr array TARGETS, and gradients where they are known, on the zarr array POINTS."""
    if options["gradient_weight"] is not None and gradients is None:
        raise click.UsageError("--gradient-weight is for --gradients")
    weight = {} if gradients is None else {"gradients": gradients}
    estimator = HermiteRegressor(
        opt.kernel_of(options),
        n_landmarks=options["landmarks"],
        landmarks=options["landmark_method"],
        gradient_weight=1.0 if options["gradient_weight"] is None else options["gradient_weight"],
        random_state=options["seed"],
        **opt.chosen(options, *PASSED_ON),
    )
    _fit(estimator, points, targets, weight, options)


@click.command()
@click.argument("points")
@click.argument("targets")
@click.option("--manifold", required=True, help="sphere, circle, torus, or a periodic box:LOWER:UPPER.")
@click.option("--group", help="permutations, cyclic, signflips, rotations:K, joined by +; none by default.")
@click.option(
    "--smoothness",
    type=float,
    default=2.0,
    show_default=True,
    help="Order of the Sobolev norm, above half the manifold's dimension.",
)
@click.option("--solver", type=click.Choice(list(SOLVERS)), default="projection", show_default=True)
@click.option("--functions", type=opt.Count(), help="Eigenfunctions of the manifold, at most; chosen by default.")
@click.option("--alpha", type=float, help="least-squares: the penalty's weight; chosen by cross-validation by default.")
@opt.weights_option
@opt.fit_row_options
@opt.checkpoint_options
@opt.model_option
@opt.run_options
def invariant(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS on POINTS of a manifold among the functions that a group leaves as they are."""
    solver, alpha = options["solver"], options["alpha"]
    if alpha is not None and not SOLVERS[solver].penalised:
        penalised = " or ".join(name for name, found in SOLVERS.items() if found.penalised)
        raise click.UsageError(f"--alpha is for --solver {penalised}")
    refuse_existing(options["out"], options["overwrite"])
    opt.refuse_checkpoint(options)
    array = open_zarr(points)
    dimension = opt.width(array)
    estimator = InvariantRegressor(
        parse_manifold(options["manifold"], dimension),
        None if options["group"] is None else parse_group(options["group"], dimension),
        options["smoothness"],
        options["functions"],
        SOLVERS[solver].name,
        alpha=alpha,
    )
    _fit(estimator, points, targets, {}, options, array)


def _fit(
    estimator: HermiteRegressor | InvariantRegressor,
    points: str,
    targets: str,
    fields: dict[str, Any],
    options: dict[str, Any],
    array: Any = None,
) -> None:
    """Check the outputs, fit, save and describe. `array` is the array at `points`, where it is open already."""
    out, overwrite, weights = options["out"], options["overwrite"], options["weights"]
    refuse_existing(out, overwrite)
    opt.refuse_checkpoint(options)
    refuse_input(out, points, targets, weights, *fields.values())
    run = opt.chosen(options, "on_invalid", "allow_missing", "checkpoint", "checkpoint_every")
    with opt.scheduler(options):
        progress = opt.bar(options["progress"])
        estimator.fit(
            points if array is None else array, targets, **fields, sample_weight=weights, progress=progress, **run
        )
        estimator.save(out, overwrite=overwrite)
    click.echo(describe(estimator))
    click.echo(f"model: {out}")
