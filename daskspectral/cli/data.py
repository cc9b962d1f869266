"""`sample`: zarr arrays to work on."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli.commands import say
from daskspectral.cli.options import SAMPLES, Argument, verb
from daskspectral.cli.running import bar


@verb(
    Argument("name", type=click.Choice(SAMPLES)),
    "n dimension noise dtype chunk-rows seed out overwrite progress storage-option",
    examples=["sample two-moons --n 1e4 --out points.zarr", "sample ou --n 1e4 --seed 1 --out path.zarr"],
)
def sample(name: str, rows: int, out: str, **options: Any) -> None:
    """Write points of a known distribution to a zarr array."""
    from daskspectral.data.stores import open_zarr
    from daskspectral.datasets import write

    write(name, out, rows, **{**options, "progress": bar(options)})
    columns = open_zarr(out).shape[1]
    say(f"{name}: {out}, {rows} rows, {columns} columns", points=out, rows=rows, columns=columns)
