"""Which device a run takes: of this process, or of the workers of its cluster."""

from __future__ import annotations

from daskspectral.devices import DEVICES, device_of
from daskspectral.engine.scheduler import active_client


def chosen_device(name: str) -> str:
    """The device of a run, "cpu" or "cuda", for "auto" a GPU where this process, or every worker, has one.

    Raises ValueError for another name, ImportError or RuntimeError for "cuda" where it cannot be had.
    """
    client = active_client() if name in DEVICES else None
    if client is None or name == "cpu":
        return device_of(name).name
    found = client.run(_attempt, name)
    failures = {worker: answer for worker, answer in found.items() if answer not in DEVICES}
    if failures:
        worker, reason = next(iter(failures.items()))
        raise RuntimeError(f"{len(failures)} of {len(found)} workers cannot take device={name!r}, {worker}: {reason}")
    return "cuda" if found and set(found.values()) == {"cuda"} else "cpu"


def _attempt(name: str) -> str:
    """The device of a worker, or why it has none."""
    try:
        return device_of(name).name
    except (ImportError, RuntimeError) as error:
        return str(error)
