"""Killing fields: the isometries infinitely near the identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from daskspectral.manifolds.isometry import Isometry
from daskspectral.registry import Registered

_WHOLE = 1e-6  # eigenvalues as near to integers are integers
_SAME = 1e-11  # entries as near to antisymmetric are


@final
@dataclass(frozen=True, eq=False)
class KillingField(Registered):
    """The velocity X x + b of isometries in coordinates, an element of the Lie algebra of a group of isometries.

    `matrix` is X (d, d), `shift` b (d,), by default 0. Its flow is the one-parameter group exp(s X), with b also
    translations. `Manifold.check_killing` tells whether its flow acts on a manifold and closes at s = 2π.
    Raises ValueError where X is not a finite square matrix or b does not fit it.

    Examples
    --------
    >>> turning = KillingField([[0, -1], [1, 0]])
    >>> turning.flow(np.pi / 2)([[1.0, 0.0]]).round(9)
    array([[0., 1.]])
    """

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]

    def __init__(self, matrix: ArrayLike, shift: ArrayLike | None = None):
        affine = Isometry(matrix, shift)
        object.__setattr__(self, "matrix", affine.matrix)
        object.__setattr__(self, "shift", affine.shift)

    @property
    def size(self) -> int:
        """The number of coordinates d."""
        return len(self.matrix)

    @property
    def trivial(self) -> bool:
        """Whether it is 0."""
        return not (self.shift.any() or self.matrix.any())

    def flow(self, s: float) -> Isometry:
        """The isometry that it generates in the time s."""
        if not self.matrix.any():
            return Isometry(np.eye(self.size), s * self.shift)
        d = self.size
        affine = np.zeros((d + 1, d + 1))
        affine[:d, :d], affine[:d, d] = self.matrix, self.shift
        moved = scipy.linalg.expm(s * affine)
        return Isometry(moved[:d, :d], moved[:d, d])

    def block(self, part: NDArray[np.int64]) -> KillingField:
        """The field of some of the coordinates, by their numbers, where it does not mix them with the others."""
        return KillingField(self.matrix[np.ix_(part, part)], self.shift[part])

    @property
    def fault(self) -> str | None:
        """Why exp(s X) are not rotations that close at s = 2π, or None.

        X must be antisymmetric to 1e-11, and its eigenvalues i times integers to 1e-6.
        """
        x = self.matrix
        off = float(np.abs(x + x.T).max())
        if not off <= _SAME:
            return (
                f"its matrix X is not antisymmetric: X + X^T has an entry {off:.3g}, and exp(s X) are no rotations; "
                "the antisymmetric part is (X - X.T) / 2"
            )
        turns = np.linalg.eigvalsh(1j * x)
        if np.abs(turns - np.rint(turns)).max() <= _WHOLE:
            return None
        turns = turns[turns > _WHOLE]
        scales = [k / turns[0] for k in range(1, 13)]
        whole = (s for s in scales if np.abs(s * turns - np.rint(s * turns)).max() <= _WHOLE * max(s, 1))
        scale = next(whole, None)
        remedy = (
            "exp(s X) winds densely round a larger torus: give the rotations of each plane as elements of their own"
            if scale is None
            else f"multiply X by {scale:.12g}"
        )
        return (
            "its matrix X must have i times integers as eigenvalues, so that exp(2 pi X) is the identity; it has i "
            f"times {np.array2string(turns, precision=6, separator=', ', threshold=8)} and their negatives; {remedy}"
        )
