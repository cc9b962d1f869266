"""Sums over all pairs of points, sum_ij w(x_i, x_j) phi(x_i) phi(x_j)^T, block by block: the graph Laplacian's form."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.kernels import Kernel

Array = NDArray[np.floating[Any]]

__all__ = ["Cloud", "CloudGram", "PairMeasure", "PairSums", "SparsePairs", "dirichlet_form"]

BLOCK = 512  # points on each side of a block of pairs: the weights of one stay in the cache


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points (c, d) and their masses (c,): sample weights, times the factors that normalise the kernel's weights."""

    x: Array
    mass: Array

    def __len__(self) -> int:
        return len(self.x)

    def blocks(self) -> Iterator[Cloud]:
        """The cloud cut into blocks."""
        for start in range(0, len(self), BLOCK):
            yield Cloud(self.x[start : start + BLOCK], self.mass[start : start + BLOCK])


@dataclass(frozen=True, eq=False)
class CloudGram:
    """Σ_i m_i φ(x_i) φ(x_i)ᵀ over clouds, where φ are a basis's functions, each less a constant.

    The form of a graph Laplacian depends only on differences of values, so that the constants (`offset`, (p,)) change
    nothing but the rounding: nearly constant functions keep their digits, and constant ones give exactly 0.
    """

    basis: Basis
    offset: Array

    @classmethod
    def about(cls, basis: Basis, point: Array) -> CloudGram:
        """The sum with the functions' values at a point (d,) as offset."""
        return cls(basis, np.array(basis.values(point[None])[:, 0], dtype=float))

    def features(self, x: Array) -> Array:
        """phi(x_k) less the offset, (p, c)."""
        return np.asarray(self.basis.values(x) - self.offset[:, None], dtype=float)

    def __call__(self, cloud: Cloud) -> Array:
        """The sum over one cloud, (p, p)."""
        total = np.zeros((self.basis.size, self.basis.size))
        for block in cloud.blocks():
            features = self.features(block.x)
            total += (features * block.mass) @ features.T
        return total


@dataclass(frozen=True, eq=False)
class PairSums:
    """The sums of one cloud with itself and others.

    `cross`, by name, (p, p): Σ_ij m_i m_j w_ij φ(x_i) φ(x_j)ᵀ over all ordered pairs, i in the cloud and j in
    the cloud or the others, or the reverse (symmetric). `degrees`, by the key of the cloud, (c,): Σ_j m_j w_ij.
    """

    cross: Mapping[str, Array]
    degrees: Mapping[Hashable, Array]


@dataclass(frozen=True, eq=False)
class PairMeasure:
    """The sums over pairs that every task measures; the weights of a block are computed once and serve every basis.

    Each pair of different clouds is visited once and counts in both orders. A block costs one evaluation of the
    weights, and a GEMM (p, c) (c, c) for each basis. Without bases only the degrees are summed.
    """

    weights: Kernel
    bases: Mapping[str, CloudGram] = field(default_factory=dict)

    def __call__(self, key: Hashable, own: Cloud, others: Iterable[tuple[Hashable, Cloud]]) -> PairSums:
        """The sums of one cloud with itself and each of the others."""
        blocks = list(own.blocks())
        weighted = {name: [gram.features(b.x) * b.mass for b in blocks] for name, gram in self.bases.items()}
        images: dict[str, list[Array]] = {
            name: [np.zeros_like(f) for f in features] for name, features in weighted.items()
        }
        degree = np.zeros(len(own))
        for i, block in enumerate(blocks):  # within the cloud every ordered pair
            at = {name: features[i] for name, features in weighted.items()}
            self._add(blocks, block, at, images, degree)
        degrees = {key: degree}
        for other_key, other in others:
            parts = []
            for block in other.blocks():
                twice = 2 * block.mass  # in both orders
                at = {name: gram.features(block.x) * twice for name, gram in self.bases.items()}
                parts.append(self._add(blocks, block, at, images, degree))
            degrees[other_key] = np.concatenate(parts) if parts else np.zeros(0)
        cross = {}
        for name, features in weighted.items():
            size = self.bases[name].basis.size
            total = np.zeros((size, size))
            for image, feature in zip(images[name], features, strict=True):
                total += image @ feature.T
            cross[name] = 0.5 * (total + total.T)
        return PairSums(cross, degrees)

    def _add(
        self,
        blocks: list[Cloud],
        other: Cloud,
        at: Mapping[str, Array],
        images: Mapping[str, list[Array]],
        degree: Array,
    ) -> Array:
        """Add the pairs of the cloud's blocks with another block to images and degree; returns the other's degrees."""
        across = np.zeros(len(other))
        for j, block in enumerate(blocks):
            w = self.weights.values(block.x, other.x)  # (other, block)
            degree[j * BLOCK : (j + 1) * BLOCK] += other.mass @ w
            across += w @ block.mass
            for name, features in at.items():
                images[name][j] += features @ w
        return across


@dataclass(frozen=True, eq=False)
class SparsePairs:
    """The same `cross` for weights that are a sparse symmetric matrix (n, n) between the rows of points (n, d)."""

    points: Array
    weights: scipy.sparse.csr_array
    gram: CloudGram

    def __call__(self, start: int, stop: int) -> Array:
        """The share of the pairs (i, j) with i from start to stop, (p, p)."""
        size = self.gram.basis.size
        total = np.zeros((size, size))
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            rows = self.weights[first:last]
            near = np.unique(rows.indices)
            image = rows[:, near] @ self.gram.features(self.points[near]).T
            total += self.gram.features(self.points[first:last]) @ image
        return total


def dirichlet_form(diagonal: Array, cross: Array) -> Array:
    """Σ_ij w_ij (φ(x_i) - φ(x_j)) (φ(x_i) - φ(x_j))ᵀ, equation (16), from its two parts.

    It is 2 (Φ diag(W 1) Φᵀ - Φ W Φᵀ): `diagonal` is the sum of `CloudGram` with masses times degrees, `cross`
    the sum of `PairMeasure`.
    """
    form = 2.0 * (diagonal - cross)
    return np.asarray(0.5 * (form + form.T))
