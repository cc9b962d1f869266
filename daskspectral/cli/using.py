"""`transform`, `predict`, `score` and `info`: what a saved model is used for."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli import options as opt
from daskspectral.cli import settings
from daskspectral.cli.choices import UNCOVERED
from daskspectral.cli.commands import Command, say, tell, written
from daskspectral.cli.operator import data_options, fields_of, points_of, trajectory_option
from daskspectral.cli.storage import storage_option

if TYPE_CHECKING:
    from daskspectral.estimators import SpectralDecomposition
    from daskspectral.moments.score import SpanScore


@click.command(
    cls=Command,
    examples=[
        "transform model.zarr points.zarr --out functions.zarr",
    ],
)
@click.argument("model")
@click.argument("points")
@click.option("--out", required=True, help=f"{opt.OUT_HELP} a new zarr array (rows, components).")
@click.option("--right", is_flag=True, help="The right singular functions, of a model that has them.")
@click.option("--on-uncovered", type=click.Choice(UNCOVERED), help=opt.UNCOVERED_HELP)
@opt.trust_option
@opt.apply_row_options
@opt.run_options
def transform(
    model: str, points: str, out: str, right: bool, on_uncovered: str | None, trust: tuple[str, ...], **options: Any
) -> None:
    """Evaluate the functions, or the coordinates, of MODEL at every row of POINTS."""
    from sklearn.base import TransformerMixin

    from daskspectral.data.stores import open_zarr
    from daskspectral.data.writing import refuse_existing, refuse_input
    from daskspectral.estimators import SDPEmbedding

    refuse_existing(out, options["overwrite"])
    refuse_input(out, model, points)
    estimator = loaded(model, trust)
    if not isinstance(estimator, TransformerMixin):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which predicts: `daskspectral predict {model} {points} "
            f"--out {out}`"
        )
    if on_uncovered is not None and not isinstance(estimator, SDPEmbedding):
        raise click.UsageError(f"--on-uncovered is for models of `daskspectral embed --map sdp`, and {model} is none")
    functions = _right(estimator, model) if right else estimator.transform
    _write(functions, points, out, options, **({} if on_uncovered is None else {"on_uncovered": on_uncovered}))
    *rows, columns = open_zarr(out).shape
    written("embedding", out, f", {prod(rows)} rows, {columns} components", rows=prod(rows), components=columns)


@click.command(
    cls=Command,
    examples=[
        "predict regressor.zarr points.zarr --out predicted.zarr",
    ],
)
@click.argument("model")
@click.argument("points")
@click.option("--out", required=True, help=f"{opt.OUT_HELP} a new zarr array (rows, targets).")
@click.option("--gradient", is_flag=True, help="The gradient in place of the values, (rows, targets x columns).")
@opt.trust_option
@opt.apply_row_options
@opt.run_options
def predict(model: str, points: str, out: str, gradient: bool, trust: tuple[str, ...], **options: Any) -> None:
    """Evaluate the regressor MODEL at every row of POINTS."""
    from daskspectral.data.stores import open_zarr
    from daskspectral.data.writing import refuse_existing, refuse_input
    from daskspectral.estimators.regressor import Regressor

    refuse_existing(out, options["overwrite"])
    refuse_input(out, model, points)
    estimator = loaded(model, trust)
    if not isinstance(estimator, Regressor):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which is no regressor: `daskspectral transform {model} "
            f"{points} --out {out}`"
        )
    _write(estimator.predict_gradient if gradient else estimator.predict, points, out, options)
    shape = open_zarr(out).shape
    what = "gradient" if gradient else "prediction"
    columns = prod(shape[1:])
    many = "" if columns == 1 else "s"
    written(what, out, f", {shape[0]} rows, {columns} column{many}", rows=shape[0], columns=columns)


@click.command(
    cls=Command,
    examples=[
        "score model.zarr points.zarr",
        "score regressor.zarr points.zarr --targets y.zarr --json",
    ],
)
@click.argument("model")
@click.argument("points")
@click.option("--targets", help=f"{opt.TARGETS_HELP}.")
@data_options
@trajectory_option
@opt.trust_option
@opt.weights_option
@opt.fit_row_options
@opt.measure_options
def score(model: str, points: str, targets: str | None, trust: tuple[str, ...], **options: Any) -> None:
    """How good MODEL is on rows of POINTS that it was not fitted to; a larger score is better.

    Of a regressor it is R^2. Of eigenvalues it is minus the sum of the functions' Ritz values on the new rows, which
    are printed; of singular values the sum of their squares there.
    """
    from daskspectral.estimators import SpectralDecomposition
    from daskspectral.estimators.regressor import Regressor
    from daskspectral.estimators.summary import plain

    estimator = loaded(model, trust)
    weights, progress = options["weights"], opt.bar(options["progress"])
    if isinstance(estimator, SpectralDecomposition):
        if targets is not None:
            raise click.UsageError(f"--targets is for regressors, and {model} is none")
        rows = opt.rows_of(points_of(points, options), options, fields=fields_of(options))
        with opt.scheduler(options):
            found = estimator.scored(rows, sample_weight=weights, progress=progress)
        say(_scored(estimator, found), score=found.score, rows=found.rows, values=plain(found.values))
        return
    if not isinstance(estimator, Regressor):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which has no score: spectral decompositions and regressors have"
        )
    if options["fields"] or options["views"] or options["trajectories"]:
        raise click.UsageError(f"--field, --view and --trajectory are for spectral decompositions, and {model} is none")
    if targets is None:
        raise click.UsageError(f"{model} is a regressor: --targets is missing")
    with opt.scheduler(options):
        share = estimator.score(opt.rows_of(points, options), targets, weights, progress=progress)
    say(f"score       {share:.6g}", score=float(share))


@click.command(
    cls=Command,
    examples=[
        "info model.zarr --details",
        "info model.zarr --settings",
        "info model.zarr --json",
    ],
)
@click.argument("model")
@click.option(
    "--details", is_flag=True, help="Ranks, residuals and effective points too, and the candidates of the choice."
)
@click.option("--settings", "only_settings", is_flag=True, help="The options with which it was made, for --config.")
@opt.trust_option
@storage_option
def info(model: str, details: bool, only_settings: bool, trust: tuple[str, ...]) -> None:
    """Say what a saved model or saved moments hold."""
    from daskspectral.estimators.summary import plain
    from daskspectral.store import load

    if only_settings:
        text = settings.kept(model)
        if text is None:
            raise ValueError(f"{model} does not say with which options it was made: it was not made by a command")
        say(text.rstrip(), **plain(settings.parsed(text, model)))
        return
    found = load(model, trusted=trust)
    try:
        tell(found, details=details)
    except (AttributeError, LookupError, TypeError) as error:  # parts of other kinds: save would not have written them
        raise ValueError(f"{model} cannot be described, as it was altered after saving: {error}") from error


def _scored(model: SpectralDecomposition, found: SpanScore) -> str:
    """The score of a model on new rows, and the values of its functions there beside those of the fit."""
    from daskspectral.estimators.summary import aligned, named_lines, rounded, values_columns

    name = model.solver_.values
    columns = values_columns(name.removesuffix("s_").replace("_", " "), getattr(model, name)[: len(found.values)])
    columns.append([f"{found.kind} here", *(f"{rounded(value, found.values):.6g}" for value in found.values)])
    rows = aligned(list(zip(*columns, strict=True)))
    return "\n".join([*named_lines({"score": f"{found.score:.6g}", "rows": found.rows}), "", *rows])


def loaded(path: str, trust: tuple[str, ...]) -> Any:
    """The model at a path. Raises ValueError for moments."""
    from daskspectral.moments import Moments
    from daskspectral.store import load

    model = load(path, trusted=trust)
    if isinstance(model, Moments):
        raise ValueError(f"{path} holds moments, not a model: solve them by fit_moments in Python")
    return model


def _right(estimator: Any, path: str) -> Any:
    from daskspectral.estimators import SpectralDecomposition

    if not isinstance(estimator, SpectralDecomposition):
        raise click.UsageError(
            f"--right is for models with singular values, and {path} holds {type(estimator).__name__}"
        )
    if not estimator.solver_.two_sided:
        raise click.UsageError(f"--right is for models with singular values, and {path} has eigenvalues")
    return estimator.transform_right


def _write(function: Any, points: str, out: str, options: dict[str, Any], **given: Any) -> None:
    rows, progress = opt.rows_of(points, options), opt.bar(options["progress"])
    with opt.scheduler(options):
        function(rows, out=out, overwrite=options["overwrite"], progress=progress, **given)
