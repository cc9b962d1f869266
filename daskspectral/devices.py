"""Where arrays are worked on: in the memory of the host, or of an accelerator.

The mathematics has one code for both. It calls numpy's functions, which arrays of other libraries answer themselves
(NEP 13 and 18), and makes arrays `like=` others (NEP 35). What runs on an accelerator is what costs: functions at
points, and their products; a block of rows is put there, and a task's sums come back once.
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
ACCELERATOR_ROWS = 65_536  # least rows of a block there: smaller ones leave it idle between products
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Device:
    """A place for arrays, and the module, with numpy's interface, that makes them there.

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
    """The error of its module where its memory does not do."""

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        """An uninitialised array there."""
        return self.module.empty(shape, dtype)

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        """An array of zeros there."""
        return self.module.zeros(shape, dtype)

    def put(self, array: Any) -> Any:
        """An array of the host, there; the array itself where there is the host.

        CuPy copies it to pinned memory first, and from there while the host goes on: the array may be overwritten.
        """
        return self.module.asarray(array)

    def get(self, array: Any) -> Any:
        """An array from there, on the host."""
        return self.module.asnumpy(array) if self.accelerated else array

    def add_square(self, total: Any, factor: Any, buffer: Any) -> None:
        """Add factor factorᵀ to a symmetric total, by way of a buffer of its shape: one SYRK.

        `numpy.matmul` finds that the product is symmetric; CuPy's multiplies both triangles.
        """
        if not self.accelerated:
            np.matmul(factor, factor.T, out=buffer)
            total += buffer
            return
        self.module.cublas.syrk("N", factor, out=buffer, lower=True)
        total += np.tril(buffer)
        total += np.tril(buffer, -1).T

    def mark(self) -> Any:
        """A place in what it was told to do: `synchronize()` waits, asleep, until it has come so far."""
        event = self.module.cuda.Event(block=True, disable_timing=True)
        event.record()
        return event

    def free(self) -> int | None:
        """Free bytes of its memory; None where it is the host's."""
        return int(self.module.cuda.runtime.memGetInfo()[0]) if self.accelerated else None

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Say what to lower where its memory does not do. Raises MemoryError."""
        try:
            yield
        except self.exhausted as error:
            if not self.accelerated:
                raise
            raise MemoryError(
                f"the memory of the device {self.name!r} does not do ({error}): use fewer landmarks or threads, "
                "or dtype='float32'; a checkpoint keeps the sums so far"
            ) from error

    def moved(self, thing: Thing) -> Thing:
        """An immutable object with all its arrays there: arrays, tuples, lists and mappings, and dataclasses of these.

        What was computed from the arrays of the host is left behind, and is computed there again. Parts that say that
        they are not `portable` stay on the host.
        """
        return thing if not self.accelerated else _moved(thing, self)


HOST = Device("cpu", np, accelerated=False)


def filled(shape: Any, value: float, like: Any, dtype: Any = float) -> Any:
    """Return an array of one value on the device of another array.

    `numpy.ones`, `full` and `eye` pass `like=` on together with an argument that CuPy does not have.
    """
    found = np.empty(shape, dtype, like=like)
    found[...] = value
    return found


def largest(array: Any) -> float:
    """Return the largest entry of an array of any device, 0 if it is empty or has none above."""
    return max(0.0, float(array.max())) if array.size else 0.0


def smallest(array: Any) -> float:
    """Return the smallest entry of an array of any device, infinity if it is empty."""
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
        copy = object.__new__(type(thing))  # not by the constructor, which makes arrays of the host
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
    """The least rows of a block on the device of this name; 0 on the host, whose blocks go by its cache."""
    return ACCELERATOR_ROWS if device != "cpu" else 0


def device_of(name: str) -> Device:
    """The device of a name: "cpu", "cuda", or "auto", which is a GPU where there is one and CuPy is installed.

    Raises ValueError for another name, ImportError for "cuda" without CuPy, and RuntimeError without a GPU.
    """
    if name not in DEVICES:
        raise ValueError(f"device must be {', '.join(map(repr, DEVICES[:-1]))} or {DEVICES[-1]!r}; it is {name!r}")
    if name == "cpu":
        return HOST
    reason = _without_gpu()
    if not reason:
        return _cuda()
    if name == "auto":
        return HOST
    kind = RuntimeError if importlib.util.find_spec("cupy") else ImportError
    raise kind(f'device="cuda" cannot be had: {reason}; device="cpu" does without')


@lru_cache(maxsize=1)
def _without_gpu() -> str:
    """Why no GPU can be used; "" where one can."""
    if importlib.util.find_spec("cupy") is None:
        return 'CuPy is not installed, pip install "daskspectral[gpu]"'
    cupy = importlib.import_module("cupy")
    try:
        return "" if cupy.cuda.runtime.getDeviceCount() else "CuPy finds no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU ({error})"
