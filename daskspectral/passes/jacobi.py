"""Jacobi coordinates of molecules as functions of rows, and the range of their hyperradius."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.engine import Run
from daskspectral.engine.plan import plan_rows
from daskspectral.passes.rows import RowFunction
from daskspectral.registry import Registered
from daskspectral.solve.extremes import Largest, Smallest

Array = NDArray[np.floating[Any]]


@final
@dataclass(frozen=True, eq=False)
class JacobiFunction(Registered, RowFunction):
    """Positions (c, 3 N) to (c, 1 + 3 (N - 1)): the hyperradius over `scale`, and the direction of the Jacobi vectors.

    `matrix` is A (N - 1, N). Undefined where all atoms coincide.
    """

    matrix: Array
    scale: float = 1.0

    @property
    def columns(self) -> int:
        return 1 + 3 * len(self.matrix)

    @property
    def rows(self) -> int:
        return 4096

    def vectors(self, x: Array) -> Array:
        """The Jacobi vectors (c, 3 (N - 1)), one after another."""
        at = x.reshape(len(x), -1, 3)
        return np.asarray(np.einsum("kn,cnd->ckd", self.matrix, at).reshape(len(x), -1))

    def block(self, x: Array, out: Array) -> None:
        vectors = self.vectors(x)
        radius = np.linalg.norm(vectors, axis=1, keepdims=True)
        out[:, :1] = radius / self.scale
        out[:, 1:] = np.divide(vectors, radius, out=np.full_like(vectors, np.nan), where=radius > 0)

    def undefined(self, x: Array, count: int) -> str:
        return f"all atoms coincide in {len(x)} of {count} rows, the first of them {x[0, :3].tolist()} and so on"


@dataclass(frozen=True, eq=False)
class _RadiusTask:
    """The least and the largest hyperradius over one range, and their sum."""

    function: JacobiFunction

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        least, most, total = np.inf, 0.0, 0.0
        for batch in batches:
            radius = np.linalg.norm(self.function.vectors(np.asarray(batch["x"], dtype=float)), axis=1)
            least, most, total = min(least, float(radius.min())), max(most, float(radius.max())), total + radius.sum()
        return {"least": Smallest(least), "most": Largest(most), "total": np.array(total)}


def radii(
    source: Any, function: JacobiFunction, *, on_invalid: str, progress: bool | None
) -> tuple[float, float, float]:
    """The least, the largest and the mean hyperradius of all rows, in one pass."""
    run = Run(source, plan_rows(source, 20.0 * source.n_features_in), None, on_invalid, progress, "radii")
    found = run.reduce(_RadiusTask(function))
    return (
        float(found.sums["least"].value),
        float(found.sums["most"].value),
        float(found.sums["total"]) / found.count,
    )
