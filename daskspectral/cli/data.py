"""`sample` and `convert`: zarr arrays to work on."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli.options import Count, bar
from daskspectral.data.convert import convert
from daskspectral.data.readers import open_zarr
from daskspectral.data.samples import SAMPLES, write_sample


@click.command()
@click.argument("name", type=click.Choice(list(SAMPLES)))
@click.option("--n", "rows", type=Count(), default=10_000, show_default=True, help="Rows, such as 1e7.")
@click.option("--dimension", type=Count(), help="Columns, where the distribution leaves a choice.")
@click.option("--noise", type=float, help="Standard deviation of added noise.")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True)
@click.option("--chunk-rows", type=Count(), help="Rows of a chunk; 16 to 32 MB by default.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--out", required=True)
@click.option("--overwrite", is_flag=True)
@click.option("--progress/--no-progress", default=True)
def sample(name: str, rows: int, out: str, progress: bool, **options: Any) -> None:
    """Write points of a known distribution, chunk by chunk, to a new zarr array."""
    write_sample(name, out, rows, progress=bar(progress), **options)
    click.echo(f"{name}: {out}, {rows} rows, {open_zarr(out).shape[1]} columns")


@click.command(name="convert")
@click.argument("source")
@click.option("--out", required=True)
@click.option("--dataset", help="The array inside a .npz, HDF5 or NetCDF file.")
@click.option("--columns", help="Columns to keep: names of a table, numbers of an array, separated by commas.")
@click.option("--dtype", help="float32 or float64; by default float32 where the data are, else float64.")
@click.option("--chunk-rows", type=Count(), help="Rows of a chunk; 16 to 32 MB by default.")
@click.option("--flatten", is_flag=True, help="Make one row of each entry of the first axis.")
@click.option("--on-invalid", type=click.Choice(["raise", "skip", "keep"]), default="raise", show_default=True)
@click.option("--overwrite", is_flag=True)
@click.option("--progress/--no-progress", default=True)
def convert_command(source: str, out: str, columns: str | None, progress: bool, **options: Any) -> None:
    """Bring a .npy, .npz, Parquet, HDF5, NetCDF or CSV file into a checked zarr array."""
    chosen = None if columns is None else columns.split(",")
    report = convert(source, out, columns=chosen, progress=bar(progress), **options)
    skipped = f", {report.skipped} invalid rows left out" if report.skipped else ""
    click.echo(f"{report.path}: {report.rows} rows, {report.columns} columns{skipped}")
