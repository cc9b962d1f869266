"""`plot`, `report`, `verify`, `plan` and `sample`: pictures of a model, checks of a store, a plan, sample data."""

from __future__ import annotations

from typing import Any

import click

from daskspectral import plot as pictures
from daskspectral import report as pages
from daskspectral.cli import parameters as par
from daskspectral.cli import verifying
from daskspectral.cli.commands import say, session, written
from daskspectral.cli.running import bar, kept
from daskspectral.cli.signatures import given
from daskspectral.cli.using import loaded
from daskspectral.data.stores import open_zarr
from daskspectral.datasets import write
from daskspectral.store import load


def plot(model: str, points: str | None, kind: str | None, trust: tuple[str, ...], **options: Any) -> None:
    """Draw a fitted MODEL.

    Draw its functions over POINTS, its spectrum, the scores of its automatic choice, or its dependence on the lag.

    Examples
    --------
    plot model.zarr points.zarr --out functions.png
    plot model.zarr --out spectrum.svg
    plot model.zarr --kind choice --out choice.png
    """
    kind = kind or ("spectrum" if points is None else "functions")
    if kind == "functions" and points is None:
        raise click.UsageError("--kind functions requires POINTS, the rows over which functions are drawn")
    if kind != "functions" and (points is not None or given(options, par.PANELS)):
        raise click.UsageError(f"POINTS and --components are for --kind functions; --kind {kind} reads neither")
    out, overwrite = options["out"], options["overwrite"]
    pictures.refuse_picture(out, overwrite)
    estimator = loaded(model, trust)
    if kind == "functions":
        figure = pictures.eigenfunctions(estimator, points, **given(options, par.PANELS))
    else:
        figure = pictures.figure_of(getattr(pictures, kind.replace("-", "_"))(estimator))
    pictures.save_figure(figure, out, overwrite=overwrite)
    written("picture", out)


def report(model: str, points: str | None, trust: tuple[str, ...], **options: Any) -> None:
    """Show a fitted MODEL, or moments, on one HTML page.

    The page is self-contained, without scripts or external files. It shows the spectrum with error bars and validation
    values, the number of reliable values, the functions over the zarr array POINTS (by default over the landmarks), the
    automatic choices, provenance, and the warnings of the fit.

    Examples
    --------
    report model.zarr points.zarr --out report.html
    report regressor.zarr --out regressor.html
    """
    views, out, overwrite = options["views"], options["out"], options["overwrite"]
    if views and points is None:
        raise click.UsageError("--view requires POINTS, the first view of each row")
    pages.refuse_report(out, overwrite)
    found = load(model, trusted=trust)
    made = kept(model)
    X = (points, *views) if views else points
    pages.save(found, out, X, overwrite=overwrite, about=model, settings=made)
    written("report", out)


@click.pass_context
def verify(context: click.Context, store: str, allow_missing: bool) -> None:
    """Check the arrays, or the model, in a zarr store.

    Metadata, listing, checksums, NaN and infinity are checked.
    Every chunk is decoded. The exit code is 1 if anything is damaged.

    Examples
    --------
    verify points.zarr
    verify model.zarr --json
    """
    found = verifying.verify(store, allow_missing=allow_missing)
    say(verifying.text_of(found), **found)
    if not found["whole"]:
        context.exit(1)


@click.pass_context
def plan(context: click.Context, command: str, arguments: tuple[str, ...]) -> None:
    """Print the tasks and peak memory of COMMAND.

    Neither a fit nor an output is made with its ARGUMENTS.

    COMMAND is fit, regress or invariant; its --out may be left out. If the number of functions depends on the data,
    they are read.

    Examples
    --------
    plan fit points.zarr --landmarks 100
    plan regress points.zarr y.zarr --json
    """
    assert context.parent is not None
    found = context.parent.command.get_command(context.parent, command)  # type: ignore[attr-defined]
    now = session()
    now.planning = True
    words = list(arguments)
    if not any(word == "--out" or word.startswith("--out=") for word in words):
        words += ["--out", "nothing-is-written.zarr"]
    inner = found.make_context(command, words, parent=context)
    with inner:
        click.Command.invoke(found, inner)


def sample(name: str, rows: int, out: str, **options: Any) -> None:
    """Write points of a known distribution to a zarr array.

    Examples
    --------
    sample two-moons --n 1e4 --out points.zarr
    sample ou --n 1e4 --seed 1 --out path.zarr
    """
    write(name, out, rows, **{**options, "progress": bar(options)})
    columns = open_zarr(out).shape[1]
    say(f"{name}: {out}, {rows} rows, {columns} columns", points=out, rows=rows, columns=columns)
