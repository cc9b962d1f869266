"""Manifold defined by its normals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import ParameterError, PointError
from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.isometry import Isometry
from daskspectral.registry import Function
from daskspectral.validation import check_integer


@final
@dataclass(frozen=True, init=False, repr=False)
class Implicit(Manifold):
    """Manifold defined by its normals, without distances, samples and eigenvalues.

    Shape, finiteness and orthonormality of the normals (to 1e-6, or 64 eps of the type) are checked in each call.
    `check` tests the shape only.

    Parameters
    ----------
    normals : callable
        ``normals(x)`` returns unit normals (c, d) at points x (c, d), or orthonormal normals (codimension, c, d): for
        a level set f = 0, ∇f divided by its norm.
    ambient : int
        Number of coordinates d.
    codimension : int, default=1
        Number of normals.

    See Also
    --------
    Sphere : A manifold with eigenfunctions.

    Examples
    --------
    >>> ellipse = Implicit(lambda x: x * [1, 4] / np.linalg.norm(x * [1, 4], axis=1, keepdims=True), 2)
    >>> ellipse.normals([[2.0, 0.0]])
    array([[[1., 0.]]])
    """

    expects: ClassVar = {"normals": Function}

    _function: Callable[[Array], NDArray[Any]]
    _ambient: int
    _codimension: int

    def __init__(self, normals: Callable[[Array], NDArray[Any]], ambient: int, codimension: int = 1) -> None:
        if not callable(normals):
            raise ParameterError("normals", "a function of points (c, d)", normals)
        ambient = check_integer("ambient", ambient, 2)
        codimension = check_integer("codimension", codimension, 1, ambient - 1)
        self._set(_function=normals, _ambient=ambient, _codimension=codimension)

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", type(self._function).__name__)
        return f"Implicit({name}, ambient={self._ambient}, codimension={self._codimension})"

    @property
    def ambient(self) -> int:
        return self._ambient

    @property
    def dimension(self) -> int:
        return self._ambient - self._codimension

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"normals": self._function, "ambient": self._ambient, "codimension": self._codimension}

    def _normals(self, x: Array) -> Array:
        normals = np.asarray(self._function(x))
        shape = (self._codimension, *x.shape)
        if self._codimension == 1 and normals.shape == x.shape:
            normals = normals[None]
        if normals.shape != shape:
            also = f"{x.shape} or " if self._codimension == 1 else ""
            raise ValueError(f"expected normals of {self!r} of shape {also}{shape}, received {normals.shape}")
        if normals.dtype.kind != "f":
            normals = normals.astype(np.float64)
        products = np.einsum("acd,bcd->cab", normals, normals)
        tolerance = max(1e-6, 64 * float(np.finfo(normals.dtype).eps))
        off = np.abs(products - np.eye(self._codimension))
        if off.size and not off.max() <= tolerance:  # NaN and infinity fail too
            row, a, b = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
            raise PointError(
                f"expected orthonormal normals of {self!r}, received normals {a} and {b} with inner product "
                f"{products[row, a, b]:.6g} in",
                row,
                "; orthonormalize them at each point (numpy.linalg.qr)",
            )
        return normals

    def _fault(self, g: Isometry) -> str:
        return "on a manifold defined by normals, isometries cannot be distinguished from other maps"
