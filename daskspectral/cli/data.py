"""`sample` and `convert`: zarr arrays to work on."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli.commands import say
from daskspectral.cli.options import SAMPLES, Argument, verb
from daskspectral.cli.running import bar


@verb(
    Argument("name", "value", type=click.Choice(SAMPLES)),
    "n dimension noise dtype chunk-rows seed out overwrite progress storage-option",
    examples=["sample two-moons --n 1e4 --out points.zarr", "sample ou --n 1e4 --seed 1 --out path.zarr"],
)
def sample(name: str, rows: int, out: str, **options: Any) -> None:
    """Write points of a known distribution, chunk by chunk, to a new zarr array."""
    from daskspectral.data.stores import open_zarr
    from daskspectral.datasets import write

    write(name, out, rows, **{**options, "progress": bar(options)})
    columns = open_zarr(out).shape[1]
    say(f"{name}: {out}, {rows} rows, {columns} columns", points=out, rows=rows, columns=columns)


@verb(
    "SOURCE",
    "out dataset columns dtype chunk-rows flatten on-invalid overwrite progress storage-option",
    examples=["convert table.csv --out points.zarr", "convert image.npy --dtype float32 --out points.zarr"],
)
def convert(source: str, out: str, columns: str | None, **options: Any) -> None:
    """Bring a .npy, .npz, Parquet, HDF5, NetCDF or CSV file, or its URL, into a checked zarr array."""
    from daskspectral.data import convert as converting

    chosen = None if columns is None else [name for part in columns.split(",") for name in _range_of(part)]
    report = converting.convert(source, out, columns=chosen, **{**options, "progress": bar(options)})
    skipped = f", {report.skipped} invalid rows left out" if report.skipped else ""
    found = {"points": report.path, "rows": report.rows, "columns": report.columns, "skipped": report.skipped}
    say(f"{report.path}: {report.rows} rows, {report.columns} columns{skipped}", **found)


def _range_of(part: str) -> list[str]:
    """The column numbers of 0:8; any other text is a name, or one number."""
    first, colon, last = part.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        return [part]
    return [str(column) for column in range(int(first), int(last))]
