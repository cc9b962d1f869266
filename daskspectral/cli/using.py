"""`transform`, `predict`, `score` and `info`: what a saved model is used for."""

from __future__ import annotations

from typing import Any

import click
from sklearn.base import RegressorMixin, TransformerMixin

from daskspectral.cli import options as opt
from daskspectral.cli.describing import describe, describe_score
from daskspectral.data.readers import open_zarr, refuse_input
from daskspectral.data.writer import refuse_existing
from daskspectral.estimators import HermiteRegressor, SpectralDecomposition
from daskspectral.estimators.regressor import Regressor
from daskspectral.moments import Moments
from daskspectral.passes.score import measure_score
from daskspectral.store import load


@click.command()
@click.argument("model")
@click.argument("points")
@click.option("--out", required=True, help="Where the embedding goes: a new zarr array (rows, components).")
@click.option("--right", is_flag=True, help="The right singular functions, of a model that has them.")
@opt.trust_option
@opt.apply_row_options
@opt.run_options
def transform(model: str, points: str, out: str, right: bool, trust: tuple[str, ...], **options: Any) -> None:
    """Evaluate the functions, or the coordinates, of MODEL at every row of the zarr array POINTS."""
    refuse_existing(out, options["overwrite"])
    refuse_input(out, model, points)
    estimator = _loaded(model, trust)
    if not isinstance(estimator, TransformerMixin):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which predicts: `daskspectral predict {model} {points} "
            f"--out {out}`"
        )
    functions = _right(estimator, model) if right else estimator.transform
    _write(functions, points, out, options)
    shape = open_zarr(out).shape
    click.echo(f"embedding: {out}, {shape[0]} rows, {shape[1]} components")


@click.command()
@click.argument("model")
@click.argument("points")
@click.option("--out", required=True, help="Where the predictions go: a new zarr array (rows, targets).")
@click.option("--gradient", is_flag=True, help="The gradient in place of the values, (rows, targets x columns).")
@opt.trust_option
@opt.apply_row_options
@opt.run_options
def predict(model: str, points: str, out: str, gradient: bool, trust: tuple[str, ...], **options: Any) -> None:
    """Evaluate the regressor MODEL at every row of the zarr array POINTS."""
    refuse_existing(out, options["overwrite"])
    refuse_input(out, model, points)
    estimator = _loaded(model, trust)
    if not isinstance(estimator, RegressorMixin):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which is no regressor: `daskspectral transform {model} "
            f"{points} --out {out}`"
        )
    if gradient and not isinstance(estimator, HermiteRegressor):
        raise click.UsageError(f"--gradient is for models of `daskspectral regress`, and {model} is none")
    _write(estimator.predict_gradient if gradient else estimator.predict, points, out, options)
    shape = open_zarr(out).shape
    what = "gradient" if gradient else "prediction"
    click.echo(f"{what}: {out}, {shape[0]} rows, {shape[1]} column{'' if shape[1] == 1 else 's'}")


@click.command()
@click.argument("model")
@click.argument("points")
@click.option("--targets", help="For a regressor: the zarr array of targets.")
@opt.trust_option
@opt.weights_option
@opt.fit_row_options
@opt.measure_options
def score(model: str, points: str, targets: str | None, trust: tuple[str, ...], **options: Any) -> None:
    """How good MODEL is on rows of the zarr array POINTS that it was not fitted to; a larger score is better.

    Of a regressor it is R^2. Of eigenvalues it is minus the sum of the functions' Ritz values on the new rows, which
    are printed; of singular values the sum of their squares there.
    """
    estimator = _loaded(model, trust)
    weights, run = options["weights"], opt.chosen(options, "on_invalid", "allow_missing")
    run["progress"] = opt.bar(options["progress"])
    if isinstance(estimator, SpectralDecomposition):
        if targets is not None:
            raise click.UsageError(f"--targets is for regressors, and {model} is none")
        with opt.scheduler(options):
            found = measure_score(estimator, points, sample_weight=weights, **run)
        click.echo(describe_score(estimator, found))
        return
    if not isinstance(estimator, Regressor):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which has no score: spectral decompositions and regressors have"
        )
    if targets is None:
        raise click.UsageError(f"{model} is a regressor: --targets is missing")
    with opt.scheduler(options):
        determination = estimator.score(points, targets, weights, **run)
    click.echo(f"score       {determination:.6g}")


@click.command()
@click.argument("model")
@click.option(
    "--details", is_flag=True, help="Ranks, residuals and effective points too, and the candidates of the choice."
)
@opt.trust_option
def info(model: str, details: bool, trust: tuple[str, ...]) -> None:
    """Say what a saved model or saved moments hold."""
    loaded = load(model, trusted=trust)
    try:
        text = describe(loaded, details=details)
    except (AttributeError, LookupError, TypeError) as error:  # parts of other kinds: save would not have written them
        raise ValueError(f"{model} cannot be described, as it was altered after saving: {error}") from error
    click.echo(text)


def _loaded(path: str, trust: tuple[str, ...]) -> Any:
    model = load(path, trusted=trust)
    if isinstance(model, Moments):
        raise ValueError(f"{path} holds moments, not a model: solve them by fit_moments in Python")
    return model


def _right(estimator: Any, path: str) -> Any:
    if not isinstance(estimator, SpectralDecomposition):
        raise click.UsageError(
            f"--right is for models with singular values, and {path} holds {type(estimator).__name__}"
        )
    if not estimator.solver_.two_sided:
        raise click.UsageError(f"--right is for models with singular values, and {path} has eigenvalues")
    return estimator.transform_right


def _write(function: Any, points: str, out: str, options: dict[str, Any]) -> None:
    run = opt.chosen(options, "overwrite", "on_invalid", "allow_missing")
    with opt.scheduler(options):
        function(points, out=out, progress=opt.bar(options["progress"]), **run)
