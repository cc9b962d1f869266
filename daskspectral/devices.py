"""Devices: the host, or an accelerator.

Both use the same code: numpy functions, which other array libraries implement (NEP 13 and 18), and arrays created
`like=` others (NEP 35). Expensive parts run on an accelerator: basis functions at points, and their products. A block
of rows is copied there, and a task's sums return once.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

DEVICES = ("cpu", "cuda", "auto")
ACCELERATOR_ROWS = 65_536  # least rows of a block on an accelerator: smaller blocks leave it idle
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Device:
    """Device of arrays, with the module that creates them there (numpy's interface).

    Parameters
    ----------
    name : str
        Name.
    module : module
        The module, numpy or CuPy.
    accelerated : bool
        False for the host.
    exhausted : type of Exception
        Error of its module when memory is exhausted.

    Examples
    --------
    >>> HOST.empty((2, 3), "float32").shape
    (2, 3)
    >>> HOST.put([1.0, 2.0]), HOST.accelerated
    (array([1., 2.]), False)
    """

    name: str
    module: Any
    accelerated: bool = True
    exhausted: type[Exception] = MemoryError
    """Error of its module when memory is exhausted."""

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        return self.module.empty(shape, dtype)

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        return self.module.zeros(shape, dtype)

    def put(self, array: Any) -> Any:
        """Return a host array copied to the device; on the host, the array itself.

        CuPy copies it to pinned memory first, and continues asynchronously: the array may be overwritten.
        """
        return self.module.asarray(array)

    def get(self, array: Any) -> Any:
        return self.module.asnumpy(array) if self.accelerated else array

    def add_square(self, total: Any, factor: Any, buffer: Any) -> None:
        """Add factor factorᵀ to a symmetric total, using a buffer of its shape: one SYRK.

        `numpy.matmul` recognizes that the product is symmetric; CuPy's computes both triangles.
        """
        if not self.accelerated:
            np.matmul(factor, factor.T, out=buffer)
            total += buffer
            return
        self.module.cublas.syrk("N", factor, out=buffer, lower=True)
        total += np.tril(buffer)
        total += np.tril(buffer, -1).T

    def mark(self) -> Any:
        """Return an event after the work queued so far; `synchronize()` waits for it without spinning."""
        event = self.module.cuda.Event(block=True, disable_timing=True)
        event.record()
        return event

    def free(self) -> int | None:
        """Return the free bytes of its memory; None on the host."""
        return int(self.module.cuda.runtime.memGetInfo()[0]) if self.accelerated else None

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Raise MemoryError with advice if the memory of the device is exhausted inside."""
        try:
            yield
        except self.exhausted as error:
            if not self.accelerated:
                raise
            raise MemoryError(
                f"the memory of the device {self.name!r} is exhausted ({error}). Use fewer landmarks or threads, or "
                "dtype='float32'; a checkpoint contains the sums so far."
            ) from error

    def moved(self, thing: Thing) -> Thing:
        """Return an immutable object with all its arrays on the device.

        Arrays, tuples, lists, mappings and dataclasses of these are moved. Results computed from host arrays are
        dropped, and computed again on the device. Parts that are not `portable` remain on the host.
        """
        return thing if not self.accelerated else _moved(thing, self)


HOST = Device("cpu", np, accelerated=False)


def filled(shape: Any, value: float, like: Any, dtype: Any = float) -> Any:
    """Return an array of one value on the device of another array.

    `numpy.ones`, `full` and `eye` pass `like=` with an argument that CuPy does not accept.
    """
    found = np.empty(shape, dtype, like=like)
    found[...] = value
    return found


def largest(array: Any) -> float:
    """Return the largest entry of an array on any device, at least 0."""
    return max(0.0, float(array.max())) if array.size else 0.0


def smallest(array: Any) -> float:
    """Return the smallest entry of an array on any device, infinity if it is empty."""
    return float(array.min()) if array.size else np.inf


def _moved(thing: Any, device: Device) -> Any:
    if isinstance(thing, np.ndarray):
        return device.put(thing)
    if isinstance(thing, (tuple, list)):
        return type(thing)(_moved(part, device) for part in thing)
    if isinstance(thing, Mapping):
        return {key: _moved(part, device) for key, part in thing.items()}
    if is_dataclass(thing) and not isinstance(thing, type) and getattr(thing, "portable", True):
        parts = {f.name: getattr(thing, f.name) for f in fields(thing)}
        found = {name: _moved(part, device) for name, part in parts.items()}
        if all(found[name] is part for name, part in parts.items()):
            return thing
        copy = object.__new__(type(thing))  # without the constructor, which creates arrays on the host
        for name, part in found.items():
            object.__setattr__(copy, name, part)
        return copy
    return thing


@lru_cache(maxsize=1)
def _cuda() -> Device:
    cupy = importlib.import_module("cupy")
    importlib.import_module("cupy.cublas")
    return Device("cuda", cupy, exhausted=cupy.cuda.memory.OutOfMemoryError)


def least_rows(device: str) -> int:
    """Return the least rows of a block on a device; 0 on the host."""
    return ACCELERATOR_ROWS if device != "cpu" else 0


def device_of(name: str) -> Device:
    """Return the device of a name: "cpu", "cuda" or "auto", a GPU if available with CuPy.

    Raises ValueError for another name, ImportError for "cuda" without CuPy, and RuntimeError without a GPU.
    """
    if name not in DEVICES:
        raise ValueError(f"device must be {', '.join(map(repr, DEVICES[:-1]))} or {DEVICES[-1]!r}, got {name!r}.")
    if name == "cpu":
        return HOST
    reason = _without_gpu()
    if not reason:
        return _cuda()
    if name == "auto":
        return HOST
    kind = RuntimeError if importlib.util.find_spec("cupy") else ImportError
    raise kind(f'device="cuda" is not available: {reason}. Use device="cpu".')


@lru_cache(maxsize=1)
def _without_gpu() -> str:
    """Return the reason why no GPU can be used, or ""."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed, pip install cupy-cuda12x"
    cupy = importlib.import_module("cupy")
    try:
        return "" if cupy.cuda.runtime.getDeviceCount() else "CuPy finds no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU ({error})"
