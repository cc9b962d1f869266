"""The main job on SLURM: `daskspectral fit` on worker jobs that come and go, with a checkpoint.

Every option that is not listed here goes to `daskspectral fit`:

    python deploy/slurm/fit.py --workers-max 20 --cores 16 --memory 64GB --walltime 04:00:00 --partition cpu \\
        points.zarr --kernel gaussian:1.0 --landmarks 1000 --out model.zarr --checkpoint run.checkpoint
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import dask

from daskspectral import cli
from daskspectral.errors import Stopped, raise_on_signals

ONE_THREAD = [f"export {name}_NUM_THREADS=1" for name in ("OMP", "OPENBLAS", "MKL")]  # BLAS threads per worker thread
GRACE = 300  # a worker stops taking tasks and hands over its results this many seconds before its walltime ends


@contextmanager
def cluster(options: dict[str, Any]) -> Iterator[None]:
    """Worker jobs under the active client: the dask scheduler is this process."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise click.ClickException("dask-jobqueue is missing: pip install daskspectral[hpc]") from error
    from distributed import Client
    from distributed.security import Security

    logs = Path(options["logs"]).resolve()
    logs.mkdir(parents=True, exist_ok=True)
    try:
        security = Security.temporary() if options["tls"] else None
    except ImportError as error:
        raise click.ClickException("TLS needs cryptography: pip install cryptography, or give --no-tls") from error
    seconds = lifetime(options["walltime"])
    with (
        SLURMCluster(
            cores=options["cores"],
            memory=options["memory"],
            processes=options["processes"],
            walltime=options["walltime"],
            queue=options["partition"],
            account=options["account"],
            interface=options["interface"],
            job_name="daskspectral-worker",
            job_script_prologue=[*options["prologue"], *ONE_THREAD],
            job_extra_directives=list(options["directive"]),
            worker_extra_args=[] if seconds is None else ["--lifetime", f"{seconds}s", "--lifetime-stagger", "60s"],
            log_directory=str(logs),
            shared_temp_directory=str(logs),  # the workers' TLS keys, readable by their owner only
            security=security,
            scheduler_options={"dashboard_address": ":0"},
            python=sys.executable,
        ) as workers,
        Client(workers),
    ):
        # adapt replaces a job that ends, even where the minimum and the maximum are the same
        workers.adapt(minimum_jobs=options["workers_min"], maximum_jobs=options["workers_max"])
        with dask.config.set({"daskspectral.patience": options["patience"]}):
            yield


def lifetime(walltime: str) -> int | None:
    """Seconds that a worker lives, fewer than its job of `walltime` [days-]HH:MM:SS; None for short jobs."""
    days, _, clock = walltime.rpartition("-")
    try:
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        length = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds
    except ValueError as error:
        raise click.BadParameter(f"--walltime is [days-]HH:MM:SS, not {walltime!r}") from error
    return length - GRACE if length > 4 * GRACE else None


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.option("--workers-min", type=click.IntRange(0), default=1, show_default=True, help="Worker jobs, at least.")
@click.option("--workers-max", type=click.IntRange(1), default=10, show_default=True, help="Worker jobs, at most.")
@click.option("--cores", type=click.IntRange(1), required=True, help="Cores of a worker job.")
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="Processes that share them.")
@click.option("--memory", required=True, help="Memory of a worker job: 64GB.")
@click.option("--walltime", default="01:00:00", show_default=True, help="Time limit of a worker job: [days-]HH:MM:SS.")
@click.option("--partition", help="Partition of the worker jobs; SLURM's default partition unless given.")
@click.option("--account", help="The account that worker jobs are charged to.")
@click.option("--interface", help="The network that driver and workers talk over: ib0.")
@click.option("--directive", multiple=True, help="A further #SBATCH line: --directive=--qos=low.")
@click.option("--prologue", multiple=True, help="A line of shell before a worker starts: --prologue='module load x'.")
@click.option("--tls/--no-tls", default=True, show_default=True, help="Encrypt the traffic, and let nobody else in.")
@click.option("--patience", type=float, default=3600.0, show_default=True, help="Seconds to wait without any worker.")
@click.option("--logs", default="slurm-logs", show_default=True, help="A shared folder for what the workers print.")
@click.option("--checkpoint", required=True, help="A folder or URL for the sums so far; the same command goes on.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, required=True)
def main(arguments: tuple[str, ...], checkpoint: str, **options: Any) -> None:
    """Run `daskspectral fit ARGUMENTS` on SLURM jobs that this process submits, replaces and ends.

    SIGUSR1, SIGTERM and SIGHUP write the checkpoint and exit with 128 + the signal's number.
    """
    if options["workers_min"] > options["workers_max"]:
        raise click.UsageError("--workers-min is more than --workers-max")
    with cluster(options):
        where = checkpoint if "://" in checkpoint else os.path.abspath(checkpoint)
        cli.main(["--verbose", "fit", *arguments, "--checkpoint", where])


if __name__ == "__main__":
    try:
        with raise_on_signals(signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            main()
    except Stopped as stopped:
        sys.exit(128 + stopped.number)
