"""The main job on a batch system: `daskspectral fit` on worker jobs that come and go, with a checkpoint.

`slurm/fit.py` and `pbs/fit.py` define what differs between systems; options that are not listed here are passed to
`daskspectral fit`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import dask

from daskspectral import cli
from daskspectral.errors import Stopped, raise_on_signals

ONE_THREAD = [f"export {name}_NUM_THREADS=1" for name in ("OMP", "OPENBLAS", "MKL")]  # BLAS threads per worker thread
TARGET = "1s"  # work of a thread, about a task, for which another thread is requested
IDLE = 60  # seconds without work before a job ends: the driver works alone between passes
GRACE = 300  # a worker stops taking tasks and hands over its results this many seconds before its walltime ends


@dataclass(frozen=True)
class System:
    """A batch system: its `name`, the class of `dask_jobqueue` for it, and what its users call a queue.

    `prefix` begins the directives of its job scripts, `short` has the short form of options that dask-jobqueue writes,
    by the long one. `gpu` is the directive for one GPU, of systems whose fit has the option --device.
    """

    name: str
    cluster: str
    queue: str
    prefix: str
    short: Mapping[str, str] = field(default_factory=dict)
    gpu: str = ""

    def begins(self, directive: str) -> str:
        """Return how a line of a job script begins that sets the option of a directive; of PBS, the resource."""
        option, _, value = directive.partition(" ")
        option = option.partition("=")[0]
        if option == "-l":
            return f"{self.prefix} -l {value.strip().partition('=')[0]}="
        option = self.short.get(option, option)
        return f"{self.prefix} {option}{'=' if option.startswith('--') else ' '}"


def jobs(system: System, options: dict[str, Any]) -> Any:
    """Return a cluster of dask-jobqueue without jobs, whose scheduler is this process."""
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    except ImportError as error:
        raise click.ClickException("dask-jobqueue is missing: pip install dask-jobqueue") from error
    finally:  # the import has SIGINT end the process with status 0, as if the fit had come to its end
        signal.signal(signal.SIGINT, interrupted)
    from distributed.security import Security

    logs = Path(options["logs"]).resolve()
    logs.mkdir(parents=True, exist_ok=True)
    try:
        security = Security.temporary() if options["tls"] else None
    except ImportError as error:
        raise click.ClickException("TLS needs cryptography: pip install cryptography, or pass --no-tls") from error
    seconds = seconds_of(options["walltime"])
    given = [system.begins(directive) for directive in options["directive"]]
    gpu = [system.gpu] if options.get("device") == "cuda" and system.begins(system.gpu) not in given else []
    own = {"resource_spec": options["resource_spec"]} if options.get("resource_spec") else {}
    scheduler_interface = options["scheduler_interface"]
    return getattr(dask_jobqueue, system.cluster)(
        cores=options["cores"],
        memory=options["memory"],
        processes=options["processes"],
        walltime=clock(seconds),
        queue=options[system.queue],
        account=options["account"],
        interface=options["interface"],
        job_name="daskspectral-worker",
        job_script_prologue=[*options["prologue"], *ONE_THREAD],
        job_extra_directives=[*options["directive"], *gpu],
        job_directives_skip=[*options["skip_directive"], *given],
        local_directory=options["local_directory"],
        worker_extra_args=lifetime(seconds),
        log_directory=str(logs),
        shared_temp_directory=str(logs),  # the workers' TLS keys, readable by their owner only
        security=security,
        scheduler_options={
            "dashboard_address": ":0",
            **({"interface": scheduler_interface} if scheduler_interface else {}),
        },
        python=sys.executable,
        **own,
    )


@contextmanager
def running(system: System, options: dict[str, Any]) -> Iterator[None]:
    """Worker jobs under the active client."""
    from distributed import Client

    with jobs(system, options) as workers, Client(workers):
        # adapt replaces a job that ends, even if the minimum and the maximum are equal
        limits = {"minimum_jobs": options["workers_min"], "maximum_jobs": options["workers_max"]}
        workers.adapt(**limits, target_duration=TARGET, wait_count=IDLE)
        with dask.config.set({"daskspectral.patience": options["patience"]}):
            yield


def seconds_of(walltime: str) -> int:
    """Return the seconds of a walltime, as sbatch reads it: minutes, MM:SS, HH:MM:SS, days-HH, days-HH:MM[:SS]."""
    days, dash, rest = walltime.rpartition("-")
    parts = [int(part) if part.isdecimal() else -1 for part in rest.split(":")]
    whole = int(days) if days.isdecimal() else 0
    if len(parts) > 3 or min(parts) < 0 or (dash and not days.isdecimal()) or not (whole or any(parts)):
        raise click.BadParameter(
            f"--walltime must be minutes, MM:SS or [days-]HH:MM:SS, and more than 0, got {walltime!r}."
        )
    first = 3600 if dash or len(parts) == 3 else 60
    return 86400 * whole + sum(part * unit for part, unit in zip(parts, (first, first // 60, 1), strict=False))


def clock(seconds: int) -> str:
    """Return seconds as HH:MM:SS, which every batch system reads as hours, minutes and seconds."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def lifetime(seconds: int) -> list[str]:
    """Return the arguments by which a worker ends before its job of some seconds does; none for short jobs."""
    if seconds < 4 * GRACE:
        return []
    return ["--lifetime", f"{seconds - GRACE}s", "--lifetime-stagger", "60s"]


OPTIONS = (
    click.option("--workers-min", type=click.IntRange(0), default=1, show_default=True, help="Worker jobs, at least."),
    click.option("--workers-max", type=click.IntRange(1), default=10, show_default=True, help="Worker jobs, at most."),
    click.option("--cores", type=click.IntRange(1), required=True, help="Cores of a worker job."),
    click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="Processes sharing them."),
    click.option("--memory", required=True, help="Memory of a worker job: 64GB."),
    click.option(
        "--walltime", default="01:00:00", show_default=True, help="Limit of a worker job: minutes or [days-]HH:MM:SS."
    ),
    click.option("--account", help="The account that worker jobs are charged to."),
    click.option("--interface", help="The network that driver and workers talk over: ib0."),
    click.option("--scheduler-interface", help="The driver's network, if another than that of the workers: eth0."),
    click.option("--local-directory", help="A folder of each node for what workers spill: /tmp or $TMPDIR."),
    click.option("--skip-directive", multiple=True, help="Leave out lines of the job script that contain this: --mem."),
    click.option("--prologue", multiple=True, help="A line of shell before a worker: --prologue='module load x'."),
    click.option("--tls/--no-tls", default=True, show_default=True, help="Encrypt the traffic and require a key."),
    click.option("--patience", type=float, default=3600.0, show_default=True, help="Seconds to wait without workers."),
    click.option("--logs", default="worker-logs", show_default=True, help="A shared folder for the workers' logs."),
    click.option("--checkpoint", required=True, help="A folder or URL for the partial sums; the same command resumes."),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED, required=True),
)


def command(system: System, *own: Callable[[Any], Any]) -> click.Command:
    """Return the command for a batch system, with its additional options."""

    def main(arguments: tuple[str, ...], checkpoint: str, **options: Any) -> None:
        if options["workers_min"] > options["workers_max"]:
            raise click.UsageError("--workers-min is more than --workers-max")
        device = options.get("device")
        if device == "cuda" and options["processes"] > 1:
            raise click.UsageError(
                "--device cuda is one GPU for each worker job, whose threads share it: --processes 1"
            )
        with running(system, options):
            where = checkpoint if "://" in checkpoint else os.path.abspath(checkpoint)
            chosen = [] if device is None else ["--device", device]
            cli.main(["--verbose", "fit", *arguments, *chosen, "--checkpoint", where])

    main.__doc__ = f"""Run `daskspectral fit ARGUMENTS` on jobs of {system.name}, submitted, replaced and ended here.

    SIGUSR1, SIGTERM and SIGHUP write the checkpoint and exit with 128 + the signal's number.
    """
    for option in reversed((*OPTIONS[:6], *own, *OPTIONS[6:])):
        main = option(main)
    settings = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
    return click.command(context_settings=settings)(main)


def run(main: click.Command) -> None:
    """Run a command; a signal ends it with 128 + its number, after the checkpoint is written."""
    try:
        with raise_on_signals(signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            main()
    except Stopped as stopped:
        sys.exit(128 + stopped.number)
