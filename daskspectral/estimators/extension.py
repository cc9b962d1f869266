"""The embedding of any point: the normalised Nystrom extension (1.5) of Fanuel et al. 2022."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Preparation
from daskspectral.kernels import Kernel
from daskspectral.registry import Registered
from daskspectral.solve.sdp import alpha

Array = NDArray[np.floating[Any]]
COVERED = 0.5  # least |psi(x)|^2 of a point that the landmarks cover; 1 where they span k(x, .)
BLOCK = 1 << 22  # kernel values at once


@dataclass(frozen=True, eq=False)
class Extension(Registered):
    """Xi(x) = sqrt(d(x)) u(x) / |u(x)| with u(x) = coefficients^T k(Y, x) (r,), d(x) = 1 / m(x) - m(x) / total.

    m(x) = masses.k(Y, x). The kernel functions are at all n points (masses 1, coefficients (I - v v^T) E / sqrt(m)) or
    at p landmarks. Raw rows (c, n_features) to (c, r). Rows are undefined where m(x) or u(x) is 0, and, with
    landmarks, where these do not cover x: |psi(x)|^2 = |whitening^T k(Y, x)|^2 below 0.5. With `unit`, d(x) = 1.
    """

    expects: ClassVar = {"kernel": Kernel, "preparation": Preparation}

    kernel: Kernel
    points: Array
    masses: Array
    total: float
    coefficients: Array
    whitening: Array | None = None
    preparation: Preparation = Preparation()  # noqa: RUF009 - frozen
    nan_rows: bool = False
    unit: bool = False

    def __post_init__(self) -> None:
        for name in ("points", "masses", "coefficients", "whitening"):  # in the order in which a store gives them back
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @property
    def width(self) -> int:
        """r."""
        return int(self.coefficients.shape[1])

    def __call__(self, rows: Any) -> Array:
        """The embedding of these rows, in blocks; invalid and undefined rows become NaN where that was asked for."""
        return self._blocks(np.asarray(rows), self.preparation)

    def of_prepared(self, x: Array) -> Array:
        """The same of rows that are prepared already, (c, d)."""
        return self._blocks(x, Preparation())

    def _blocks(self, rows: Array, preparation: Preparation) -> Array:
        result = np.empty((len(rows), self.width))
        step = max(16, BLOCK // len(self.points))
        for start in range(0, len(rows), step):
            x = np.asarray(preparation(rows[start : start + step]), dtype=float)
            valid = np.isfinite(x).all(axis=1)
            found = self._defined(self.kernel.values(np.where(valid[:, None], x, 0.0), self.points))
            undefined = valid & ~np.isfinite(found[:, 0])
            if undefined.any() and not self.nan_rows:
                first = x[undefined][0]
                raise ValueError(
                    f"the extension is undefined at {np.count_nonzero(undefined)} of {len(x)} rows, the first of them "
                    f"{first[:4].tolist()}{' and so on' if len(first) > 4 else ''}: no point of the fit is within "
                    "reach of the kernel. Fit on points like these, with more landmarks or a larger bandwidth, or take "
                    "NaN for them with on_invalid='skip'"
                )
            found[~valid] = np.nan
            result[start : start + step] = found
        return result

    def _defined(self, k: Array) -> Array:
        """The embedding from kernel values (p, c); NaN where it is undefined."""
        m, u = k.T @ self.masses, k.T @ self.coefficients
        length = np.linalg.norm(u, axis=1)
        defined = (m > 0) & (length > 0)
        if self.whitening is not None:
            defined &= np.square(self.whitening.T @ k).sum(axis=0) >= COVERED
        bound = np.ones_like(m) if self.unit else alpha(np.where(defined, m, 1.0), self.total)
        size = np.sqrt(np.maximum(bound, 0)) / np.where(defined, length, 1.0)
        return np.asarray(np.where(defined[:, None], u * size[:, None], np.nan))

    def state(self) -> dict[str, Any]:
        return super().state() | {"nan_rows": False}
