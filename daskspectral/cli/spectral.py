"""`fit`: spectral decompositions. `update` and `merge`: models that are kept as moments."""

from __future__ import annotations

from typing import Any

import click

from daskspectral import operators
from daskspectral.cli import options as opt
from daskspectral.cli.describing import describe
from daskspectral.data.readers import open_zarr, refuse_input
from daskspectral.data.writer import refuse_existing
from daskspectral.estimators import HermiteRegressor, InvariantRegressor, SpectralDecomposition
from daskspectral.moments import Moments
from daskspectral.store import load, save

Measured = SpectralDecomposition | HermiteRegressor | InvariantRegressor
PASSED_ON = (
    "basis",
    *("landmark_sample", "columns", "periods", "standardize", "constant", "exclude_landmarks", "folds"),
    *("solver", "penalty", "spread", "ridge", "rtol", "dtype"),
)
"""Options that are parameters of the estimator by the same name."""


@click.command()
@click.argument("points")
@click.option("--operator", default="laplacian", show_default=True, help="laplacian, or transfer with --lag.")
@click.option("--lag", type=opt.Count(), help="Rows from a state to its future: POINTS are one trajectory.")
@click.option("--manifold", help="sphere, circle or torus: the tangential form there.")
@click.option(
    "--density",
    type=float,
    default=0.0,
    show_default=True,
    help="laplacian: the power of the sampling density that is divided out; 1 for Laplace-Beltrami.",
)
@opt.basis_options
@click.option(
    "--network",
    type=opt.Network(),
    help="Neurons of the hidden layers of a network, in place of landmarks: 96,96,96 (extra neural).",
)
@opt.solution_options
@click.option("--components", type=opt.Count(), default=16, show_default=True, help="Functions wanted.")
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
    "--ridge", type=float, default=0.0, show_default=True, help="Added to the form's diagonal, times its mean."
)
@opt.rtol_option
@opt.dtype_option
@opt.seed_option
@opt.fit_row_options
@opt.checkpoint_options
@click.option("--plan", "only_plan", is_flag=True, help="Print the tasks and the peak memory, and stop.")
@click.option("--out", help="Where the model goes: a new zarr group.")
@click.option("--plot", "picture", help="Draw the eigenfunctions into this .png, .pdf or .svg.")
@opt.run_options
def fit(points: str, **options: Any) -> None:
    """Fit a spectral decomposition to the zarr array POINTS (a path or URL)."""
    out, picture, overwrite = options["out"], options["picture"], options["overwrite"]
    if not options["only_plan"]:
        if out is None:
            raise click.UsageError("fit needs --out, where the model goes")
        refuse_existing(out, overwrite)
        refuse_input(out, points, options["weights"])
    if picture:
        from daskspectral.plot import refuse_picture

        refuse_picture(picture, overwrite)
    opt.refuse_checkpoint(options)
    if options["network"] is not None:
        if options["basis"] is not None:
            raise click.UsageError("--network and --lattice are two bases; give one of them")
        options["basis"] = options["network"]
    kernel, array = opt.kernel_of(options), open_zarr(points)
    dimension = len(options["columns"] or range(opt.width(array)))
    estimator = SpectralDecomposition(
        _operator(options["operator"], options["lag"], options["manifold"], dimension, options["density"]),
        kernel,
        n_components=options["components"],
        n_landmarks=options["landmarks"],
        landmarks=options["landmark_method"],
        random_state=options["seed"],
        **opt.chosen(options, *PASSED_ON),
    )
    with opt.scheduler(options), opt.plan_shown():
        if options["only_plan"]:
            click.echo(f"plan: {estimator.plan(array, sample_weight=options['weights'])}", err=True)
            return
        run = opt.chosen(options, "on_invalid", "allow_missing", "checkpoint", "checkpoint_every")
        estimator.fit(array, sample_weight=options["weights"], progress=opt.bar(options["progress"]), **run)
        estimator.save(out, overwrite=overwrite)
        click.echo(describe(estimator))
        if picture:
            from daskspectral.plot import save_eigenfunctions

            save_eigenfunctions(estimator, array, picture, overwrite=overwrite)
            click.echo(f"picture: {picture}")
    click.echo(f"model: {out}")


def _operator(name: str, lag: int | None, manifold: str | None, dimension: int, density: float) -> operators.Operator:
    """The operator that the options name. Raises click's UsageError where they do not go together."""
    if name != "transfer":
        if lag is not None:
            raise click.UsageError("--lag is for --operator transfer")
        return operators.parse(name, manifold, dimension, density)
    if density:
        raise click.UsageError("--density is for --operator laplacian")
    if lag is None or manifold is not None:
        raise click.UsageError(
            "--operator transfer needs --lag, the rows from a state to its future, and no --manifold"
        )
    return operators.Transfer(lag)


@click.command()
@click.argument("model")
@click.argument("points")
@click.option("--targets", help="For a regressor: the zarr array of all targets, old and new.")
@click.option("--gradients", help="For a regressor fitted on gradients: the zarr array of all gradients.")
@click.option("--out", required=True, help="Where the new model goes; MODEL itself with --overwrite.")
@opt.trust_option
@opt.weights_option
@opt.fit_row_options
@opt.run_options
def update(model: str, points: str, out: str, weights: str | None, trust: tuple[str, ...], **options: Any) -> None:
    """Fold the rows appended to POINTS since MODEL was fitted into a new model; only these are read."""
    targets, gradients = options["targets"], options["gradients"]
    refuse_existing(out, options["overwrite"])
    refuse_input(out, points, weights, targets, gradients)
    estimator = load(model, trusted=trust)
    if not isinstance(estimator, Measured):
        raise ValueError(f"{model} holds {type(estimator).__name__}, which cannot be updated: fit it again")
    given = {}
    if isinstance(estimator, SpectralDecomposition):
        if targets is not None or gradients is not None:
            raise click.UsageError(f"--targets and --gradients are for regressors, and {model} is none")
    else:
        if targets is None:
            raise click.UsageError(f"{model} is a regressor: --targets is missing, all of them, old and new")
        given["y"] = targets
    if isinstance(estimator, HermiteRegressor):
        given["gradients"] = gradients
    elif gradients is not None:
        raise click.UsageError(f"--gradients is for models of `daskspectral regress`, and {model} is none")
    with opt.scheduler(options):
        run = opt.chosen(options, "on_invalid", "allow_missing")
        estimator.update(points, **given, sample_weight=weights, progress=opt.bar(options["progress"]), **run)
        estimator.save(out, overwrite=options["overwrite"])
    click.echo(describe(estimator))
    click.echo(f"model: {out}")


@click.command()
@click.argument("parts", nargs=-1, required=True)
@click.option("--out", required=True, help="Where the sum goes: a new zarr group.")
@click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")
@opt.trust_option
def merge(parts: tuple[str, ...], out: str, overwrite: bool, trust: tuple[str, ...]) -> None:
    """Add the moments of PARTS (models or moments, measured with one basis) and solve again; no data are read."""
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
    click.echo(describe(merged))
    click.echo(f"{'moments' if isinstance(merged, Moments) else 'model'}: {out}")


def _moments(what: Any, path: str) -> Moments:
    if isinstance(what, Moments):
        return what
    if not isinstance(what, Measured):
        raise ValueError(f"{path} holds {type(what).__name__}, which has no moments to add: fit all rows at once")
    moments: Moments = what.moments_
    return moments
