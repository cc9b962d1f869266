"""An array library that stands in for one of an accelerator: numpy's functions, none of its arrays.

A `There` answers numpy's functions as arrays of CuPy do, by the protocols of NEP 13, 18 and 35, and refuses what these
refuse: to be made an array of numpy's, to be mixed with one (numbers may), to be indexed by one, and arguments that
CuPy lacks (`initial`, `where`, and `device`, which `numpy.ones`, `full` and `eye` add to `like`).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from daskspectral import devices
from daskspectral.devices import Device

METHODS = ("astype", "reshape", "copy", "sum", "mean", "prod", "any", "all", "ravel", "transpose", "swapaxes", "dot")
EXTREMES = ("max", "min", "argmax", "argmin")
ATTRIBUTES = ("shape", "dtype", "ndim", "size")
VIEWS = ("T", "real", "imag")


class There(NDArrayOperatorsMixin):
    """An array that lives elsewhere."""

    __array_priority__ = 100

    def __init__(self, values: Any):
        self._values = np.asarray(values)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("implicit conversion of an array of the device to one of the host")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        if {*options} & {"where", "initial"}:
            raise TypeError(f"{ufunc.__name__} has no {sorted(options)} there")
        if method not in ("__call__", "reduce", "accumulate", "outer", "at"):
            return NotImplemented
        if out:
            options["out"] = tuple(_bare(o, "out") for o in out)
            getattr(ufunc, method)(*(_bare(i, ufunc.__name__) for i in inputs), **options)
            return out[0]
        return _there(getattr(ufunc, method)(*(_bare(i, ufunc.__name__) for i in inputs), **options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if {*options} & {"where", "initial", "device"}:
            raise TypeError(f"{function.__name__} has no {sorted(options)} there")
        if function.__name__ in ("block", "delete"):
            raise TypeError(f"{function.__name__} is not there")
        if function.__name__ in ("asarray", "array", "ascontiguousarray"):  # the copy to the device that is asked for
            return There(np.ascontiguousarray(args[0]._values if isinstance(args[0], There) else args[0], *args[1:]))
        out = options.get("out")
        bare = _bare_all(options, function.__name__)
        found = function(*_bare_all(args, function.__name__), **bare)
        return out if out is not None else _there(found)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            method = getattr(self._values, name)
            return lambda *args, **options: _there(
                method(*(_bare(a, name) for a in args), **{k: _bare(v, name) for k, v in options.items()})
            )
        if name in EXTREMES:  # no `initial`
            return lambda axis=None: _there(getattr(self._values, name)(axis=axis))
        if name in ATTRIBUTES:
            return getattr(self._values, name)
        if name in VIEWS:
            return There(getattr(self._values, name))
        raise AttributeError(name)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Any:
        return (There(part) for part in self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __getitem__(self, key: Any) -> There:
        return There(self._values[_key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_key(key)] = _bare(value, "assignment")


def _bare(value: Any, where: str) -> Any:
    """The values of an array of the device, or a number. Raises TypeError for an array of the host."""
    if isinstance(value, There):
        return value._values
    if isinstance(value, np.ndarray) or (isinstance(value, (list, tuple)) and value and _holds_arrays(value)):
        raise TypeError(f"{where} mixes an array of the host with one of the device")
    return value


def _holds_arrays(value: Any) -> bool:
    return any(isinstance(part, np.ndarray) for part in value)


def _bare_all(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _bare_all(part, where) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_bare_all(part, where) for part in value)
    return _bare(value, where)


def _key(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_key(part) for part in key)
    return _bare(key, "an index")


def _there(found: Any) -> Any:
    if isinstance(found, np.ndarray) or np.isscalar(found):
        return There(found)
    if isinstance(found, (tuple, list)):
        parts = [_there(part) for part in found]
        return tuple(parts) if isinstance(found, tuple) else parts  # those with names of fields, too
    return found


class Event:
    """A place in a stream. As work is done at once there, it has always been passed."""

    waited: ClassVar[list[Event]] = []
    """Events that were waited for, in turn."""

    def __init__(self, block: bool, disable_timing: bool):
        self.recorded = False

    def record(self) -> None:
        self.recorded = True

    def synchronize(self) -> None:
        assert self.recorded
        self.waited.append(self)


def syrk(trans: str, a: There, out: There, lower: bool) -> None:
    """out = a aᵀ in the lower triangle alone, as BLAS does it."""
    assert (trans, lower) == ("N", True)
    rows = np.tril_indices(len(a))
    out._values[rows] = (a._values @ a._values.T)[rows]


MODULE = SimpleNamespace(
    empty=lambda shape, dtype=float: There(np.full(shape, np.nan, dtype)),
    zeros=lambda shape, dtype=float: There(np.zeros(shape, dtype)),
    asarray=lambda values: values if isinstance(values, There) else There(np.array(values)),
    asnumpy=lambda values: values._values.copy(),
    cublas=SimpleNamespace(syrk=syrk),
    cuda=SimpleNamespace(Event=Event, runtime=SimpleNamespace(memGetInfo=lambda: (16 << 30, 24 << 30))),
)


class Exhausted(Exception):
    """The memory of the device does not do."""


STAND_IN = Device("cuda", MODULE, exhausted=Exhausted)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Device:
    """The stand-in under the name "cuda"."""
    monkeypatch.setattr(devices, "_without_gpu", lambda: "")
    monkeypatch.setattr(devices, "_cuda", lambda: STAND_IN)
    return STAND_IN


@pytest.fixture
def gotten(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of what has come from the stand-in."""
    shapes: list[tuple[int, ...]] = []
    plain = stand_in.module.asnumpy

    def counted(values: There) -> Any:
        shapes.append(values.shape)
        return plain(values)

    monkeypatch.setattr(stand_in.module, "asnumpy", counted)
    return shapes
