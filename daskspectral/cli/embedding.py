"""`embed`: coordinates of every row, by the semidefinite program or by diffusion maps."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli import options as opt
from daskspectral.cli.describing import describe
from daskspectral.data.readers import open_zarr, refuse_input
from daskspectral.data.writer import refuse_existing
from daskspectral.estimators import DiffusionMap, SDPEmbedding
from daskspectral.landmarks import METHODS

SDP = {  # options of --map sdp alone, and the parameters of the estimator that they set
    "tolerance": "tolerance",
    "max_passes": "max_passes",
    "landmark_sample": "landmark_sample",
    "columns": "columns",
    "standardize": "standardize",
    "cache": "cache",
    "cache_path": "cache_path",
}
DIFFUSION = {"components": "n_components", "time": "time", "alpha": "alpha"}
CHECKPOINT = ("checkpoint", "checkpoint_every")


@click.command()
@click.argument("points")
@click.option(
    "--bandwidth",
    type=float,
    required=True,
    help="Bandwidth of the kernel exp(-r^2 / bandwidth^2), in the units of POINTS.",
)
@click.option("--map", "kind", type=click.Choice(["sdp", "diffusion"]), default="sdp", show_default=True)
@click.option("--method", type=click.Choice(["auto", "exact", "lowrank"]), default="auto", show_default=True)
@click.option("--landmarks", type=opt.Count(), default=500, show_default=True, help="lowrank: how many.")
@click.option(
    "--landmark-method",
    type=click.Choice(METHODS),
    default="cholesky",
    show_default=True,
    help="How they are chosen.",
)
@click.option("--landmark-sample", type=opt.Count(), help="sdp: rows among which landmarks are chosen.")
@click.option(
    "--tolerance",
    type=float,
    help=f"sdp: relative duality gap that counts as optimal; {opt.default(SDPEmbedding, 'tolerance')} by default.",
)
@click.option(
    "--max-passes",
    type=opt.Count(),
    help=f"sdp: products with the kernel at most; {opt.default(SDPEmbedding, 'max_passes')} by default.",
)
@click.option("--columns", type=opt.Columns(), help="sdp: columns to use, 0,2,5 or 0:8.")
@click.option("--standardize", is_flag=True, default=None, help="sdp: columns to mean 0 and standard deviation 1.")
@click.option(
    "--cache",
    type=click.Choice(["auto", "always", "never"]),
    help="sdp, lowrank: whether kernel values are kept between passes; auto by default: where they fit in memory.",
)
@click.option("--cache-path", help="sdp, lowrank: keep them in a scratch zarr array at this path; it stays there.")
@click.option(
    "--components",
    type=opt.Count(),
    help=f"diffusion: how many; {opt.default(DiffusionMap, 'n_components')} by default.",
)
@click.option(
    "--time", type=float, help=f"diffusion: power of the eigenvalues; {opt.default(DiffusionMap, 'time')} by default."
)
@click.option(
    "--alpha",
    type=float,
    help=f"diffusion: power of the density divided out; {opt.default(DiffusionMap, 'alpha')} by default.",
)
@opt.seed_option
@opt.fit_row_options
@click.option("--checkpoint", help="sdp, lowrank: a directory for the passes so far.")
@click.option(
    "--checkpoint-every",
    type=float,
    help=f"Seconds between writes; {opt.default(SDPEmbedding.fit, 'checkpoint_every')} by default.",
)
@opt.model_option
@click.option("--embedding", help="A new zarr array for the coordinates of every row.")
@opt.run_options
def embed(points: str, out: str, embedding: str | None, **options: Any) -> None:
    """Embed the rows of the zarr array POINTS: the SDP embedding, with a proof, or a diffusion map."""
    overwrite = options["overwrite"]
    refuse_existing(out, overwrite)
    refuse_input(out, points)
    if options["cache_path"] is not None:
        _refuse_same(out, "--cache-path", options["cache_path"])
    if embedding is not None:
        _refuse_same(out, "--embedding", embedding)
        refuse_existing(embedding, overwrite)
        refuse_input(embedding, points)
    opt.refuse_checkpoint(options)
    estimator = _estimator(options)
    run = opt.chosen(options, "on_invalid", "allow_missing")
    progress = opt.bar(options["progress"])
    with opt.scheduler(options):
        estimator.fit(points, **run, **_given(options, {name: name for name in CHECKPOINT}), progress=progress)
        estimator.save(out, overwrite=overwrite)
        click.echo(describe(estimator))
        click.echo(f"model: {out}")
        if embedding is not None:
            estimator.transform(points, out=embedding, overwrite=overwrite, progress=progress, **run)
            shape = open_zarr(embedding).shape
            click.echo(f"embedding: {embedding}, {shape[0]} rows, {shape[1]} components")


def _estimator(options: dict[str, Any]) -> SDPEmbedding | DiffusionMap:
    """The estimator that the options name. Raises click's UsageError for an option of the other map."""
    kind = options["kind"]
    others = DIFFUSION if kind == "sdp" else (*SDP, *CHECKPOINT)
    for name in others:
        if options[name] is not None:
            other = "diffusion" if kind == "sdp" else "sdp"
            raise click.UsageError(f"--{name.replace('_', '-')} is for --map {other}")
    shared = {
        "method": options["method"],
        "n_landmarks": options["landmarks"],
        "landmarks": options["landmark_method"],
        "random_state": options["seed"],
    }
    if kind == "sdp":
        return SDPEmbedding(options["bandwidth"], **shared, **_given(options, SDP))
    return DiffusionMap(options["bandwidth"], **shared, **_given(options, DIFFUSION))


def _refuse_same(out: str, option: str, other: str) -> None:
    """Raise click's UsageError where one of two outputs would be in the other."""
    try:
        refuse_input(out, other)
        refuse_input(other, out)
    except ValueError:
        raise click.UsageError(f"--out {out} and {option} {other} need places of their own") from None


def _given(options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {parameter: options[name] for name, parameter in names.items() if options[name] is not None}
