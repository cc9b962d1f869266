"""`fit`: spectral decompositions. `update` and `merge`: models that are kept as moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli import kinds
from daskspectral.cli import options as opt
from daskspectral.cli.commands import Command, say, session, tell, written
from daskspectral.cli.operator import data_options, fields_of, operator_of, operator_options, points_of
from daskspectral.cli.planning import planned, say_plan
from daskspectral.cli.storage import storage_option

if TYPE_CHECKING:
    from daskspectral.moments import Moments


@click.command(
    cls=Command,
    examples=[
        "fit points.zarr --out model.zarr",
        "fit points.zarr --kernel gaussian:0.5 --landmarks 100 --components 4 --out g.zarr",
        "fit points.zarr --operator schroedinger --potential v.zarr --out s.zarr",
        "fit points.zarr --operator generator --drift b.zarr --diffusion 1.0 --out l.zarr",
        "fit path.zarr --operator transfer:5 --out koopman.zarr",
        "fit path.zarr --trajectory second-path.zarr --operator transfer:5 --out both.zarr",
        "fit sst.nc --operator covariance --sample-dims time --latitude lat --on-invalid skip --out eofs.zarr",
        "fit points.zarr --config model.zarr --out again.zarr",
    ],
)
@click.argument("points")
@operator_options
@opt.label_options
@opt.basis_options
@click.option(
    "--network",
    type=kinds.Network(),
    help="Neurons of the hidden layers of a network, in place of landmarks: 96,96,96 (extra neural).",
)
@opt.solution_options
@click.option("--components", type=kinds.Count(), default=16, show_default=True, help=f"{opt.COMPONENTS_HELP}.")
@opt.columns_option
@opt.periods_option
@opt.standardize_option
@click.option(
    "--constant/--no-constant",
    default=None,
    help="Add the constant function to the basis; the operator decides by default.",
)
@opt.weights_option
@click.option(
    "--ridge", type=float, default=0.0, show_default=True, help="cut: added to the form's diagonal, times its mean."
)
@opt.rtol_option
@opt.dtype_option
@opt.device_option
@opt.seed_option
@opt.fit_row_options
@opt.checkpoint_options
@click.option("--out", required=True, help=f"{opt.OUT_HELP} a new zarr group.")
@click.option("--plot", "picture", help="Draw the eigenfunctions into this .png, .pdf or .svg.")
@opt.run_options
def fit(points: str, **options: Any) -> None:
    """Fit a spectral decomposition to POINTS: a zarr array or group, NetCDF or Parquet files (a path or URL)."""
    from daskspectral.data.writing import refuse_existing, refuse_input
    from daskspectral.estimators import SpectralDecomposition

    out, picture, overwrite = options["out"], options["picture"], options["overwrite"]
    if not session().only_plan:
        refuse_existing(out, overwrite)
        others = [*options["views"], *options["trajectories"], *fields_of(options).values()]
        refuse_input(out, points, options["weights"], *others)
    if picture:
        from daskspectral.plot import refuse_picture

        refuse_picture(picture, overwrite)
    opt.refuse_checkpoint(options)
    opt.kernel_of(options)  # an unknown one is an error before POINTS are opened
    array, width = opt.opened(points, options)
    dimension = len(options["columns"] or range(width))
    estimator = SpectralDecomposition(
        operator_of(options, dimension),
        opt.functions_of(options, width),
        n_components=options["components"],
        solver=opt.solver_of(options),
        random_state=options["seed"],
        **opt.chosen(options, "folds", "dtype", "device"),
    )
    rows, weights = opt.rows_of(points_of(array, options), options, fields=fields_of(options)), options["weights"]
    if session().only_plan:
        with opt.scheduler(options):
            say_plan(estimator.plan(rows, sample_weight=weights, **session().probing))
        return
    with opt.scheduler(options), planned():
        saved = opt.chosen(options, *opt.CHECKPOINT)
        estimator.fit(rows, sample_weight=weights, **saved, progress=opt.bar(options["progress"]))
        estimator.save(out, overwrite=overwrite)
        tell(estimator)
        if picture:
            from daskspectral.plot import save_eigenfunctions

            save_eigenfunctions(estimator, array, picture, overwrite=overwrite)
            say(f"picture: {picture}", picture=picture)
    written("model", out)


@click.command(
    cls=Command,
    examples=[
        "update model.zarr points.zarr --out newer.zarr",
    ],
)
@click.argument("model")
@click.argument("points")
@click.option("--targets", help=f"{opt.TARGETS_HELP}; all of them, old and new.")
@click.option("--gradients", help=f"{opt.GRADIENTS_HELP}; all of them, old and new.")
@click.option("--out", required=True, help=f"{opt.OUT_HELP} a new zarr group, or MODEL itself with --overwrite.")
@data_options
@opt.trust_option
@opt.weights_option
@opt.fit_row_options
@opt.run_options
def update(model: str, points: str, out: str, weights: str | None, trust: tuple[str, ...], **options: Any) -> None:
    """Fold the rows appended to POINTS since MODEL was fitted into a new model.

    Only these are read, and chunks that were written since: rows that are not as they were are an error.
    """
    from daskspectral.data.writing import refuse_existing, refuse_input
    from daskspectral.estimators import HermiteRegressor, InvariantRegressor, SpectralDecomposition
    from daskspectral.store import load

    targets, gradients = options["targets"], options["gradients"]
    refuse_existing(out, options["overwrite"])
    fields = fields_of(options)
    refuse_input(out, points, weights, targets, gradients, *options["views"], *fields.values())
    estimator = load(model, trusted=trust)
    if not isinstance(estimator, (SpectralDecomposition, HermiteRegressor, InvariantRegressor)):
        raise ValueError(f"{model} holds {type(estimator).__name__}, which cannot be updated: fit it again")
    given: dict[str, Any] = {}
    rows = opt.rows_of(points_of(points, options), options)
    if isinstance(estimator, SpectralDecomposition):
        if targets is not None or gradients is not None:
            raise click.UsageError(f"--targets and --gradients are for regressors, and {model} is none")
        rows = opt.rows_of(rows.data, options, fields=fields)
    else:
        if fields or options["views"]:
            raise click.UsageError(f"--field and --view are for spectral decompositions, and {model} is none")
        if targets is None:
            raise click.UsageError(f"{model} is a regressor: --targets is missing, all of them, old and new")
        given |= {"y": targets, "gradients": gradients}
    with opt.scheduler(options):
        estimator.update(rows, **given, sample_weight=weights, progress=opt.bar(options["progress"]))
        estimator.save(out, overwrite=options["overwrite"])
    tell(estimator)
    written("model", out)


@click.command(
    cls=Command,
    examples=[
        "merge first.zarr second.zarr --out both.zarr",
    ],
)
@click.argument("parts", nargs=-1, required=True)
@click.option("--out", required=True, help=f"{opt.OUT_HELP} a new zarr group.")
@opt.overwrite_option
@opt.trust_option
@storage_option
def merge(parts: tuple[str, ...], out: str, overwrite: bool, trust: tuple[str, ...]) -> None:
    """Add the moments of PARTS (models or moments, measured with one basis) and solve again; no data are read."""
    from daskspectral.data.writing import refuse_existing, refuse_input
    from daskspectral.moments import Moments
    from daskspectral.store import load, save

    refuse_existing(out, overwrite)
    refuse_input(out, *parts)
    repeated = [part for part in parts if parts.count(part) > 1]
    if repeated:
        raise click.UsageError(f"{repeated[0]} is given twice: its rows would count twice")
    first = load(parts[0], trusted=trust)
    total = _moments(first, parts[0])
    for part in parts[1:]:
        total = total + _moments(load(part, trusted=trust), part)
    merged = total if isinstance(first, Moments) else first.fit_moments(total)
    save(merged, out, overwrite=overwrite)
    tell(merged)
    written("moments" if isinstance(merged, Moments) else "model", out)


def _moments(what: Any, path: str) -> Moments:
    from daskspectral.estimators import HermiteRegressor, InvariantRegressor, SpectralDecomposition
    from daskspectral.moments import Moments

    if isinstance(what, Moments):
        return what
    if not isinstance(what, (SpectralDecomposition, HermiteRegressor, InvariantRegressor)):
        raise ValueError(f"{path} holds {type(what).__name__}, which has no moments to add: fit all rows at once")
    moments: Moments = what.moments_
    return moments
