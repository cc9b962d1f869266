"""`report`: a fitted model as one page to look at."""

from __future__ import annotations

import click

from daskspectral.cli import options as opt
from daskspectral.cli import settings
from daskspectral.cli.commands import Command, written
from daskspectral.cli.storage import storage_option


@click.command(
    cls=Command,
    examples=[
        "report model.zarr points.zarr --out report.html",
        "report regressor.zarr --out regressor.html",
    ],
)
@click.argument("model")
@click.argument("points", required=False)
@click.option("--view", "views", multiple=True, metavar="PATH", help="Another view of each row of POINTS: y of cross.")
@click.option("--out", required=True, help=f"{opt.OUT_HELP} an .html file.")
@opt.trust_option
@storage_option
@opt.overwrite_option
def report(
    model: str, points: str | None, views: tuple[str, ...], out: str, trust: tuple[str, ...], overwrite: bool
) -> None:
    """Show a fitted MODEL, or moments, on one self-contained HTML page: no scripts, nothing loaded from anywhere.

    It has the spectrum with error bars and the trusted count, values held out, the functions over the zarr array POINTS
    (without it over the landmarks), landmarks, what was chosen and why, rank, cost and provenance, and in words what
    the fit warned of.
    """
    from daskspectral import report as pages
    from daskspectral.store import load, version_of

    if views and points is None:
        raise click.UsageError("--view goes with POINTS, the first view of each row")
    pages.refuse_report(out, overwrite)
    found = load(model, trusted=trust)
    made = settings.kept(model)
    X = (points, *views) if views else points
    pages.save(found, out, X, overwrite=overwrite, about=model, settings=made, saved=version_of(model))
    written("report", out)
