"""Which device a run takes: of this process, or of the workers of its cluster."""

from __future__ import annotations

from daskspectral.devices import DEVICES, HOST, Device, device_of
from daskspectral.engine.scheduler import active_client


def chosen_device(name: str) -> str:
    """The device of a run, "cpu" or "cuda", for "auto" a GPU where this process, or every worker, has one.

    Of a cluster without workers, which come and go, "cuda" is taken at its word. Raises ValueError for another name,
    ImportError or RuntimeError for "cuda" where it cannot be had, and RuntimeError for "auto" where no worker can tell.
    """
    client = active_client() if name in DEVICES else None
    if client is None or name == "cpu":
        return device_of(name).name
    found = client.run(_attempt, name)
    if not found and name == "auto":
        raise RuntimeError("device='auto' asks the workers, and the cluster has none yet: give 'cpu' or 'cuda'")
    failures = {worker: answer for worker, answer in found.items() if answer not in DEVICES}
    if failures:
        worker, reason = next(iter(failures.items()))
        raise RuntimeError(f"{len(failures)} of {len(found)} workers cannot take device={name!r}, {worker}: {reason}")
    return "cuda" if {*found.values()} <= {"cuda"} else "cpu"


def device_here(name: str) -> Device:
    """The device of what the driving process does by itself: the host where only the workers have another."""
    try:
        return device_of(name)
    except (ImportError, RuntimeError):
        return HOST


def free_there(name: str) -> int | None:
    """The bytes that are free on the device of this process, the least of the workers of its cluster; None on a CPU."""
    client = active_client()
    if client is None or name == "cpu":
        return device_of(name).free()
    found = client.run(lambda: device_of(name).free())
    return min(found.values(), default=None)


def _attempt(name: str) -> str:
    """The device of a worker, or why it has none."""
    try:
        return device_of(name).name
    except (ImportError, RuntimeError) as error:
        return str(error)
