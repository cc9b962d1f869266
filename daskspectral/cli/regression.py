"""`regress`: by a kernel. `invariant`: by functions that a group leaves as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli import options as opt
from daskspectral.cli.choices import INVARIANT_SOLVERS
from daskspectral.cli.commands import Command, session, tell, written
from daskspectral.cli.planning import say_plan

if TYPE_CHECKING:
    from daskspectral.estimators import HermiteRegressor, InvariantRegressor


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


@click.command(
    cls=Command,
    examples=[
        "regress points.zarr y.zarr --out regressor.zarr",
        "regress points.zarr y.zarr --gradients b.zarr --landmarks 100 --out hermite.zarr",
    ],
)
@click.argument("points")
@click.argument("targets")
@click.option("--gradients", help=f"{opt.GRADIENTS_HELP}, (rows, columns of POINTS).")
@click.option("--gradient-weight", type=float, help="Weight of a gradient against a value; 1 by default.")
@opt.label_options
@opt.basis_options
@click.option("--alpha", type=Alpha(), help=f"{opt.ALPHA_HELP}, or gcv; chosen by cross-validation by default.")
@opt.columns_option
@opt.periods_option
@opt.standardize_option
@opt.weights_option
@opt.rtol_option
@opt.dtype_option
@opt.device_option
@opt.seed_option
@opt.fit_row_options
@opt.checkpoint_options
@opt.model_option
@opt.run_options
def regress(points: str, targets: str, gradients: str | None, **options: Any) -> None:
    """Regress TARGETS, and gradients where they are known, on POINTS."""
    from daskspectral.estimators import HermiteRegressor

    if options["gradient_weight"] is not None and gradients is None:
        raise click.UsageError("--gradient-weight is for --gradients")
    weight = {} if gradients is None else {"gradients": gradients}
    opt.kernel_of(options)  # an unknown one is an error before POINTS are opened
    refuse(points, targets, weight, options)
    array, width = opt.opened(points, options)
    estimator = HermiteRegressor(
        opt.functions_of(options, width),
        gradient_weight=1.0 if options["gradient_weight"] is None else options["gradient_weight"],
        random_state=options["seed"],
        **opt.chosen(options, "alpha", "rtol", "dtype", "device"),
    )
    _fit(estimator, array, targets, weight, options)


@click.command(
    cls=Command,
    examples=[
        "invariant points.zarr y.zarr --group signflips --out invariant.zarr",
        "invariant sphere.zarr s.zarr --manifold sphere --group permutations --out ball.zarr",
    ],
)
@click.argument("points")
@click.argument("targets")
@opt.label_options
@opt.space_options
@click.option("--gradients", help=f"{opt.GRADIENTS_HELP}, (rows, columns of POINTS).")
@click.option("--gradient-weight", type=float, help="Weight of a gradient against a value; 1 by default.")
@click.option(
    "--solver",
    type=click.Choice(INVARIANT_SOLVERS),
    default="least-squares",
    show_default=True,
    help=f"{opt.SOLVER_HELP}.",
)
@click.option("--alpha", type=float, help=f"{opt.ALPHA_HELP}, of least-squares; chosen by cross-validation by default.")
@opt.weights_option
@opt.fit_row_options
@opt.checkpoint_options
@opt.model_option
@opt.run_options
def invariant(points: str, targets: str, gradients: str | None, **options: Any) -> None:
    """Regress TARGETS on POINTS of a manifold among the functions that a group leaves as they are."""
    from daskspectral.estimators import InvariantRegressor
    from daskspectral.solve.invariant import InvariantSolver

    solvers = {name.replace("_", "-"): solver for name, solver in InvariantSolver.family().items()}
    solver, alpha = options["solver"], options["alpha"]
    if alpha is not None and not solvers[solver].penalised:
        penalised = " or ".join(name for name, found in solvers.items() if found.penalised)
        raise click.UsageError(f"--alpha is for --solver {penalised}")
    if options["gradient_weight"] is not None and gradients is None:
        raise click.UsageError("--gradient-weight is for --gradients")
    fields = {} if gradients is None else {"gradients": gradients}
    refuse(points, targets, fields, options)
    array, space = _space(points, options)
    estimator = InvariantRegressor(
        *space,
        solver=solvers[solver].name,
        alpha=alpha,
        gradient_weight=1.0 if options["gradient_weight"] is None else options["gradient_weight"],
    )
    _fit(estimator, array, targets, fields, options)


def _space(points: str, options: dict[str, Any]) -> tuple[Any, tuple[Any, Any, float | None, int | None]]:
    """The array of points, and the manifold, group, smoothness and number of functions for it."""
    from daskspectral.cli.names import parse_group, parse_manifold

    array, dimension = opt.opened(points, options)
    manifold = None if options["manifold"] is None else parse_manifold(options["manifold"], dimension)
    group = None if options["group"] is None else parse_group(options["group"], dimension)
    return array, (manifold, group, options["smoothness"], options["functions"])


def refuse(points: str, targets: str, fields: dict[str, Any], options: dict[str, Any]) -> None:
    """Raise an error for outputs that cannot be written, before any work."""
    from daskspectral.data.writing import refuse_existing, refuse_input

    refuse_existing(options["out"], options["overwrite"])
    opt.refuse_checkpoint(options)
    refuse_input(options["out"], points, targets, options["weights"], *fields.values())


def _fit(
    estimator: HermiteRegressor | InvariantRegressor,
    array: Any,
    targets: str,
    fields: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Fit, save and describe."""
    out, rows, weights = options["out"], opt.rows_of(array, options), options["weights"]
    with opt.scheduler(options):
        if session().only_plan:
            say_plan(estimator.plan(rows, targets, **fields, sample_weight=weights, **session().probing))
            return
        saved = opt.chosen(options, *opt.CHECKPOINT)
        progress = opt.bar(options["progress"])
        estimator.fit(rows, targets, **fields, sample_weight=weights, **saved, progress=progress)
        estimator.save(out, overwrite=options["overwrite"])
    tell(estimator)
    written("model", out)
