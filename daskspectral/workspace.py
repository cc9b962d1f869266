"""Buffers of one task, on the device that it works on."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device

Array = NDArray[np.floating[Any]]
IN_FLIGHT = 2  # blocks that were sent to an accelerator and are not done


class Workspace:
    """Buffers by name, allocated once at their largest size and handed out as contiguous views.

    Examples
    --------
    >>> workspace = Workspace()
    >>> workspace.get("s", (2, 3), float).base is workspace.get("s", (3, 2), float).base
    True
    """

    def __init__(self, device: Device = HOST) -> None:
        self.device = device
        self._host = Workspace() if device.accelerated else None
        self._buffers: dict[str, Array] = {}
        self._made: dict[str, Any] = {}
        self._marks: deque[Any] = deque()

    @property
    def host(self) -> Workspace:
        """The workspace of the same rows on the host: itself, except for an accelerator."""
        return self if self._host is None else self._host  # no attribute: a cycle would keep the buffers

    def cached(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what `make` returned at the first call with this name, such as a plan."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def get(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an uninitialized array of this shape, valid until the next call with this name."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = self.device.empty(size, dtype)
        return buffer[:size].reshape(shape)

    def launched(self) -> None:
        """Wait until at most two of the blocks sent to the accelerator, which works asynchronously, are not done.

        Blocks that wait there keep their rows in pinned memory of the host.
        """
        if self.device.accelerated:
            self._marks.append(self.device.mark())
            if len(self._marks) > IN_FLIGHT:
                self._marks.popleft().synchronize()


class ProductSum:
    """A sum of products of two matrices, in an array (p, q) of float64 on the device of a workspace.

    The first product is written into the array, without zeros before it, and others are added by way of a buffer.

    Examples
    --------
    >>> products = ProductSum(Workspace(), np.empty((1, 1)), float)
    >>> products.add(np.array([[2.0, 1.0]]), np.array([[3.0, 4.0]]))
    >>> products.add_square(np.array([[5.0]]))
    >>> products.total
    array([[35.]])
    """

    def __init__(self, workspace: Workspace, out: Array, dtype: Any):
        self._workspace, self._total, self._dtype = workspace, out, np.dtype(dtype)
        self._empty = True

    @property
    def total(self) -> Array:
        """The sum so far, (p, q)."""
        if self._empty:
            self._total[...], self._empty = 0, False
        return self._total

    def add(self, left: Array, right: Array) -> None:
        """Add left right^T for matrices (p, c) and (q, c): one GEMM."""
        if self._is_first():
            np.matmul(left, right.T, out=self._total)
            return
        np.matmul(left, right.T, out=self._buffer)
        np.add(self.total, self._buffer, out=self.total)

    def add_square(self, factor: Array) -> None:
        """Add the symmetric product factor factor^T: one SYRK."""
        if self._is_first():
            np.matmul(factor, factor.T, out=self._total)
            return
        self._workspace.device.add_square(self.total, factor, self._buffer)

    def _is_first(self) -> bool:
        """Return whether the next product is to be written into the array, once."""
        first = self._empty and self._dtype == np.float64 and not self._workspace.device.accelerated
        self._empty &= not first
        return first

    @property
    def _buffer(self) -> Array:
        return self._workspace.get("product", self._total.shape, self._dtype)
