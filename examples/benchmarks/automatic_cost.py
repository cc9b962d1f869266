"""What the automatic choice costs: the whole automatic fit over a fit with the arguments that it chose.

Measured: seconds of `SpectralDecomposition(n_components=11).fit(path)` on standard normal rows in zarr (float32, zstd),
in turn with the same estimator given `choice_.parameters`, whose eigenvalues must have the same bits; the peak of the
process over both. Targets: at most 2 at n = 1e6, d = 3, and 1.1 at n = 1e8 (1.1 GB on disk, one round):

    python examples/benchmarks/automatic_cost.py --json automatic_cost.json
    python examples/benchmarks/automatic_cost.py --n 1e8 --repeats 1 --folder /data --json automatic_cost_1e8.json
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import threadpoolctl
from common import Rows, alternate, folder_option, memory, normal_zarr, options, ratio, report, reset_peak
from fitting import Settings, fit, settings_option, told

COMPONENTS = 11


def one_size(path: Path, n: int, d: int, repeats: int, settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """One line of the table, and what the first fit said."""
    arguments = {"n_components": COMPONENTS} | settings
    first = fit(path, **arguments)
    if first.model is None:
        raise click.ClickException("; ".join(first.said))
    fixed = first.model.get_params(deep=False) | first.model.choice_.parameters
    models: dict[str, Any] = {}

    def keep(name: str, chosen: Settings) -> None:
        models[name] = fit(path, **chosen)

    reset_peak()
    seconds = alternate(
        {"automatic": lambda: keep("automatic", arguments), "fixed": lambda: keep("fixed", fixed)}, repeats
    )
    line = {
        "n": n,
        "d": d,
        "automatic s": min(seconds["automatic"]),
        "fixed s": min(seconds["fixed"]),
        "automatic / fixed": ratio(seconds["automatic"], seconds["fixed"]),
        "functions": first.model.basis_.size,
        "same bits": np.array_equal(first.values, models["fixed"].values),
        "peak MB": memory("VmHWM") / 1e6,
    }
    return line, list(first.said)


@click.command(help=__doc__)
@options(repeats=3)
@folder_option
@click.option("--n", "sizes", multiple=True, type=float, default=(1e6,), show_default=True, help="rows")
@click.option("--d", default=3, show_default=True, help="columns")
@click.option("--threads", default=2, show_default=True, help="threads of dask, each with one of the BLAS")
@settings_option
def main(
    quick: bool,
    repeats: int,
    json_path: Path | None,
    folder: Path,
    sizes: tuple[float, ...],
    d: int,
    threads: int,
    settings: Settings,
) -> None:
    """Write the rows where they are missing, and fit."""
    if quick:
        sizes, repeats = (20_000.0,), 1
    rows: Rows = []
    said: list[str] = []
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        dask.config.set(scheduler="threads" if threads > 1 else "synchronous", num_workers=threads),
    ):
        for n in map(int, sizes):
            line, words = one_size(normal_zarr(folder, n, d), n, d, repeats, settings)
            rows.append(line)
            said += words
    report("the automatic fit over a fit with the arguments it chose", rows, json_path, ["", *told(said)])


if __name__ == "__main__":
    main()
