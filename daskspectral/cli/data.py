"""`sample` and `convert`: zarr arrays to work on."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli.choices import SAMPLES
from daskspectral.cli.commands import Command, say
from daskspectral.cli.kinds import Count
from daskspectral.cli.options import (
    COLUMNS_HELP,
    DTYPE_HELP,
    bar,
    out_option,
    overwrite_option,
    progress_option,
    seed_option,
)
from daskspectral.cli.storage import storage_option


@click.command(
    cls=Command,
    examples=[
        "sample two-moons --n 1e4 --out points.zarr",
        "sample ou --n 1e4 --seed 1 --out path.zarr",
    ],
)
@click.argument("name", type=click.Choice(SAMPLES))
@click.option("--n", "rows", type=Count(), default=10_000, show_default=True, help="Rows, such as 1e7.")
@click.option("--dimension", type=Count(), help="Columns, where the distribution leaves a choice.")
@click.option("--noise", type=float, help="Standard deviation of added noise.")
@click.option(
    "--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True, help=f"{DTYPE_HELP}."
)
@click.option("--chunk-rows", type=Count(), help="Rows of a chunk; 16 to 32 MB by default.")
@seed_option
@out_option
@overwrite_option
@progress_option
@storage_option
def sample(name: str, rows: int, out: str, progress: bool, **options: Any) -> None:
    """Write points of a known distribution, chunk by chunk, to a new zarr array."""
    from daskspectral.data.samples import write_sample
    from daskspectral.data.stores import open_zarr

    write_sample(name, out, rows, progress=bar(progress), **options)
    columns = open_zarr(out).shape[1]
    say(f"{name}: {out}, {rows} rows, {columns} columns", points=out, rows=rows, columns=columns)


@click.command(
    name="convert",
    cls=Command,
    examples=[
        "convert table.csv --out points.zarr",
        "convert image.npy --dtype float32 --out points.zarr",
    ],
)
@click.argument("source")
@out_option
@click.option("--dataset", help="The array inside a .npz, HDF5 or NetCDF file.")
@click.option("--columns", help=f"{COLUMNS_HELP}; of a table their names, separated by commas.")
@click.option("--dtype", help=f"{DTYPE_HELP}; by default float32 where the data are, else float64.")
@click.option("--chunk-rows", type=Count(), help="Rows of a chunk; 16 to 32 MB by default.")
@click.option("--flatten", is_flag=True, help="Make one row of each entry of the first axis.")
@click.option(
    "--on-invalid",
    type=click.Choice(["raise", "skip", "keep"]),
    default="raise",
    show_default=True,
    help="Rows with NaN or infinity: an error, (skip) left out, or (keep) kept.",
)
@overwrite_option
@progress_option
@storage_option
def convert_command(source: str, out: str, columns: str | None, progress: bool, **options: Any) -> None:
    """Bring a .npy, .npz, Parquet, HDF5, NetCDF or CSV file, or its URL, into a checked zarr array."""
    from daskspectral.data.convert import convert

    chosen = None if columns is None else [name for part in columns.split(",") for name in _range_of(part)]
    report = convert(source, out, columns=chosen, progress=bar(progress), **options)
    skipped = f", {report.skipped} invalid rows left out" if report.skipped else ""
    found = {"points": report.path, "rows": report.rows, "columns": report.columns, "skipped": report.skipped}
    say(f"{report.path}: {report.rows} rows, {report.columns} columns{skipped}", **found)


def _range_of(part: str) -> list[str]:
    """The column numbers of 0:8; any other text is a name, or one number."""
    first, colon, last = part.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        return [part]
    return [str(column) for column in range(int(first), int(last))]
