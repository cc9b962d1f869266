"""Where on a manifold the rows of a fit lie: whether they are uniform, and which new rows are far from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from daskspectral.basis import EquivariantBasis, InvariantBasis
from daskspectral.moments.moments import Moments
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]
FUNCTIONS = 100  # by which rows are judged
ROWS_OF_A_FUNCTION = 10  # at least, where new rows are judged
FLOOR = 1e-12  # of the eigenvalues of the Gram matrix, relative to the largest
CHANCE = 1e-6  # of means as large from uniform rows


@dataclass(frozen=True, eq=False)
class Coverage(Registered):
    """The leverage of new rows among the rows of a fit, u(x)ᵀ G⁻¹ u(x) / n, by its first invariant functions u.

    G is the mean of u uᵀ over the rows (their inverse Christoffel function, times n). Each row of the fit has at most
    1, all together r. Of a new row it says how many times it would outweigh all rows of the fit near it; above 1 there
    are none at the resolution of these functions. Of equivariant functions u (r, k) with k components it is the largest
    eigenvalue of the matrix (k, k). `whitening` (r, r) times u has the Gram matrix 1; `rows` is n.
    """

    whitening: Array
    rows: float

    @classmethod
    def of(cls, basis: InvariantBasis | EquivariantBasis, gram: Array, rows: float) -> Coverage:
        """By whole levels of at most 100 functions, each with 10 rows; `gram` (p, p) is the mean of u u^T over rows."""
        size = leading(basis, max(1, min(FUNCTIONS, int(rows / ROWS_OF_A_FUNCTION))))
        values, vectors = scipy.linalg.eigh(gram[:size, :size])
        return cls(vectors.T / np.sqrt(np.maximum(values, FLOOR * values[-1]))[:, None], float(rows))

    def leverage(self, feature: Array, components: int = 1) -> Array:
        """The leverage (c,) of rows with the features u (p, c), or (p, k c) component by component."""
        whitened = self.whitening @ feature[: len(self.whitening)]
        if components == 1:
            return np.asarray(np.sum(whitened**2, axis=0) / self.rows)
        each = whitened.reshape(len(whitened), components, -1)
        products = np.einsum("rac,rbc->cab", each, each, optimize=True)
        return np.asarray(np.linalg.eigvalsh(products)[:, -1] / self.rows)


@dataclass(frozen=True)
class Uniformity:
    """How far rows are from uniform: the root `deviation` of the summed squares of the means of invariant functions.

    The means of the `functions` after the constant are 0 for the uniform probability, and uniform rows leave the
    `chance` deviation √(functions / n). `likelihood` is the probability of as much or more by chance.
    """

    deviation: float
    chance: float
    functions: int
    likelihood: float

    @property
    def uniform(self) -> bool:
        """Whether chance alone explains the deviation."""
        return self.likelihood >= CHANCE

    @classmethod
    def of(cls, moments: Moments, rows: float) -> Uniformity:
        """Of rows that count as so many, by whole levels of at most 100 functions."""
        basis = moments.basis
        assert isinstance(basis, InvariantBasis)
        means = moments.mean("gram")[0, 1 : leading(basis, FUNCTIONS)]  # the first function is the constant 1
        squares, count = float(means @ means), len(means)
        likelihood = float(scipy.special.gammaincc(count / 2, squares * rows / 2)) if count else 1.0
        return cls(float(np.sqrt(squares)), float(np.sqrt(count / rows)), count, likelihood)


def leading(basis: InvariantBasis | EquivariantBasis, most: int) -> int:
    """How many functions the first whole levels have that have at most so many; those of the first level at least."""
    ends = [part.stop for part in basis.slices if part.stop]
    return int(max(end for end in ends if end <= max(most, ends[0])))
