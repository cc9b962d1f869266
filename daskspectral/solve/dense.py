"""Symmetric matrices: without what rounding adds, and eigenvectors, of large ones on the accelerator of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device

Array = NDArray[np.floating[Any]]
LARGE = 2000  # rows above which an accelerator is quicker by more than the way there takes
_device: ContextVar[Device] = ContextVar("device of solutions", default=HOST)


@contextmanager
def solving_on(device: Device) -> Iterator[None]:
    """Solve on a device what is large, for the time of this block and in this thread."""
    token = _device.set(device)
    try:
        yield
    finally:
        _device.reset(token)


def symmetric_part(matrix: Array) -> NDArray[Any]:
    """(M + Mᵀ)/2 of a matrix (p, p) that is symmetric but for rounding.

    Examples
    --------
    >>> symmetric_part(np.array([[1.0, 2.0], [4.0, 3.0]]))
    array([[1., 3.],
           [3., 3.]])
    """
    return 0.5 * (matrix + matrix.T)


def eigh(matrix: Array) -> tuple[Array, Array]:
    """All eigenvalues (p,) of a symmetric matrix (p, p), ascending, with their eigenvectors (p, p).

    Examples
    --------
    >>> eigh(np.diag([2.0, 1.0]))[0]
    array([1., 2.])
    """
    device = _device.get()
    if not device.accelerated or len(matrix) <= LARGE:
        values, vectors = scipy.linalg.eigh(matrix)
        return values, vectors
    with device.guarded():
        values, vectors = np.linalg.eigh(device.put(matrix))
        return device.get(values), device.get(vectors)
