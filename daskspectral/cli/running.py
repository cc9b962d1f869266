"""How a command runs: what is refused before any work, its plan, its bar and its scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli.commands import Formatter, say, session, tell, written
from daskspectral.cli.making import given

if TYPE_CHECKING:
    from daskspectral.passes.sums import PassPlan


def refuse(options: Mapping[str, Any], *inputs: str | None) -> None:
    """Raise an error, before any work, for an output or a checkpoint that cannot be written, or replaces an input."""
    from daskspectral.data.writing import refuse_existing, refuse_input

    if not session().planning:
        refuse_existing(options["out"], options["overwrite"])
        refuse_input(options["out"], *inputs)
    if options.get("checkpoint") is not None:
        from daskspectral.engine.checkpoint import checkpoint_directory

        checkpoint_directory(options["checkpoint"])


def refuse_same(out: str, option: str, other: str) -> None:
    """Raise click's UsageError where one of two outputs would be in the other."""
    from daskspectral.data.writing import refuse_input

    try:
        refuse_input(out, other)
        refuse_input(other, out)
    except ValueError:
        raise click.UsageError(f"--out {out} and {option} {other} need places of their own") from None


def finish(model: Any, options: Mapping[str, Any], what: str = "model") -> None:
    """Save what was fitted, describe it, and say where it is."""
    from daskspectral.store import save

    save(model, options["out"], overwrite=options["overwrite"])
    tell(model)
    written(what, options["out"])


def saving(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a fit is told of its bar and of its checkpoint."""
    return {**given(options, "checkpoint", "checkpoint_every"), "progress": bar(options)}


def bar(options: Mapping[str, Any]) -> bool | None:
    """A bar on a terminal, none elsewhere or with --no-progress or --quiet."""
    return None if options["progress"] and not session().quiet else False


@contextmanager
def planned() -> Iterator[None]:
    """Print the plan of a fit on the error stream when it is made."""
    planning, shown = logging.getLogger("daskspectral.plan"), logging.StreamHandler()
    before = planning.level, planning.propagate
    shown.setFormatter(Formatter())
    shown.setLevel(logging.ERROR if session().quiet else logging.INFO)
    planning.addHandler(shown)
    planning.setLevel(logging.INFO)
    planning.propagate = False
    try:
        yield
    finally:
        planning.removeHandler(shown)
        planning.level, planning.propagate = before


def say_plan(plan: PassPlan) -> None:
    """Print the tasks and the peak memory of a pass."""
    memory = {name: int(value) for name, value in vars(plan.memory).items() if isinstance(value, int)}
    tasks, epochs = len(plan.ranges.ranges), len(plan.ranges.epochs)
    rows = plan.ranges.ranges[-1][1] if tasks else 0
    say(f"plan: {plan}", tasks=tasks, epochs=epochs, rows=rows, memory=memory)


@contextmanager
def scheduler(options: Mapping[str, Any]) -> Iterator[None]:
    """Use the cluster, or the number of threads, that the run options name.

    Raises OSError where no scheduler answers, or where it has no workers, ValueError for a credential in its address.
    """
    address, threads = options["scheduler"], options["threads"]
    if address is None:
        import dask

        with dask.config.set({} if threads is None else {"num_workers": threads}):
            yield
        return
    import asyncio

    from distributed import Client

    from daskspectral.data.remote import refuse_secrets

    refuse_secrets(address if "://" in address else f"tcp://{address}")
    timeout = options["connect_timeout"]
    try:
        asyncio.run(_greet(address, timeout))
        client = Client(address, timeout=timeout)  # type: ignore[no-untyped-call]
    except Exception as error:  # of any kind: what answers there may speak another protocol
        reason = str(error) or f"nothing came back within --connect-timeout {timeout:g} s"
        raise OSError(f"no dask scheduler answers at {address} (tcp://host:port is wanted): {reason}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise OSError(f"the dask cluster at {address} has no workers yet; start some, then run this again")
        yield


async def _greet(address: str, seconds: float) -> None:
    """Raise TimeoutError or OSError where no scheduler answers in time; a Client would wait forever."""
    import asyncio

    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(seconds):
        comm = await connect(address, timeout=seconds, **security)  # type: ignore[no-untyped-call]
    await comm.close()
