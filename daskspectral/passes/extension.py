"""The embedding of any point: the normalised Nystrom extension (1.5) of Fanuel et al. 2022."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Preparation
from daskspectral.kernels import Kernel
from daskspectral.passes.rows import RowFunction
from daskspectral.registry import Registered
from daskspectral.solve.sdp import alpha

Array = NDArray[np.floating[Any]]
COVERED = 0.5  # least |psi(x)|^2 of a point that the landmarks cover; 1 where they span k(x, .)
BLOCK = 1 << 22  # kernel values that are computed at once


@final
@dataclass(frozen=True, eq=False)
class Extension(Registered, RowFunction):
    """An embedding as a function of any point x, Xi(x) = sqrt(d(x)) u(x) / |u(x)|, u(x) = coefficients^T k(Y, x) (r,).

    d(x) = 1 / m(x) - m(x) / total with the mass m(x) = masses.k(Y, x); with `unit`, d(x) = 1. `points` Y are all n
    points of the fit (masses 1, coefficients (I - v v^T) E / sqrt(m)), or p landmarks. It takes raw rows
    (c, n_features) to (c, r). It is undefined where m(x) or u(x) is 0, and where landmarks do not cover x:
    |psi(x)|^2 = |whitening^T k(Y, x)|^2 below 0.5.
    """

    expects: ClassVar = {"kernel": Kernel, "preparation": Preparation}

    kernel: Kernel
    points: Array
    masses: Array
    total: float
    coefficients: Array
    whitening: Array | None = None
    unit: bool = False

    def __post_init__(self) -> None:
        for name in ("points", "masses", "coefficients", "whitening"):  # as a store gives them back, row by row
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @property
    def columns(self) -> int:
        return int(self.coefficients.shape[1])

    @property
    def rows(self) -> int:
        return max(16, BLOCK // len(self.points))

    def block(self, x: Array, out: Array) -> None:
        k = self.kernel.values(x, self.points)
        m, u = k.T @ self.masses, k.T @ self.coefficients
        length = np.linalg.norm(u, axis=1)
        defined = (m > 0) & (length > 0)
        if self.whitening is not None:
            defined &= np.square(self.whitening.T @ k).sum(axis=0) >= COVERED
        bound = np.ones_like(m) if self.unit else alpha(np.where(defined, m, 1.0), self.total)
        size = np.sqrt(np.maximum(bound, 0)) / np.where(defined, length, 1.0)
        out[:] = np.where(defined[:, None], u * size[:, None], np.nan)

    def undefined(self, x: Array, count: int) -> str:
        return (
            f"the extension is undefined at {len(x)} of {count} rows, the first of them "
            f"{x[0, :4].tolist()}{' and so on' if x.shape[1] > 4 else ''}: no point of the fit is within "
            "reach of the kernel. Fit on points like these, with more landmarks or a larger bandwidth, or take "
            "NaN for them with on_invalid='skip'"
        )

    def state(self) -> dict[str, Any]:
        return super().state() | {"nan_rows": False}
