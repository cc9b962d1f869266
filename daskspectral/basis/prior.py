"""Stationary kernels as priors of a Fourier lattice's coefficients, by their spectral densities."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.evaluation import Block, Evaluation, Mapped
from daskspectral.basis.lattice import FourierLattice
from daskspectral.forms import Atom
from daskspectral.kernels import Gaussian, Kernel, Periodic, RadialKernel
from daskspectral.kernels.algebra import RadialMultiple, RadialSum
from daskspectral.kernels.base import number
from daskspectral.kernels.radial import HalfIntegerBessel

LEAST = 1e-14  # of the largest weight: narrower kernels have it everywhere, of wider ones it is rounding


def prior_weights(kernel: Kernel, lattice: FourierLattice) -> Array:
    """S² (p,), the spectral density of a stationary kernel at the frequencies of a lattice, of sum 1.

    f = Σ_k a_k φ_k with the squared norm Σ_k a_k² / S_k² then has the reproducing kernel k, made periodic, over
    its value at 0. Raises TypeError for a kernel that is no function of x - y.
    """
    found = _density(_plain(kernel), lattice)
    found = np.maximum(found, LEAST * found.max())
    return np.asarray(found / found.sum())


def check_stationary(kernel: Any) -> None:
    """Raise TypeError for a kernel that is no function of x - y, ValueError for a scale that is a median distance."""
    if not isinstance(kernel, Kernel) or not isinstance(_plain(kernel), RadialKernel):
        raise TypeError(
            "the kernel of a Fourier lattice is the prior of its coefficients, and a function of |x - y|, such as "
            f"Matern(1.5, scale) or Gaussian(scale); got {kernel!r}"
        )
    if kernel.has_scale("median"):
        raise ValueError(
            f"a Fourier lattice takes no median of distances between rows: give the scale of {kernel!r} as a number, "
            "or 'auto', which is chosen after the pass"
        )


def _plain(kernel: Kernel) -> Kernel:
    """The kernel before it was made periodic, which the lattice does by itself."""
    return kernel.kernel if isinstance(kernel, Periodic) else kernel


def _density(kernel: Kernel, lattice: FourierLattice) -> Array:
    """The spectral density, up to a factor that depends on d alone."""
    check_stationary(kernel)
    squares, d = np.sum(lattice.frequencies**2, axis=1), lattice.dimension
    if isinstance(kernel, Gaussian):
        scale = number(kernel.scale)
        return np.asarray((2 * math.pi) ** (d / 2) * scale**d * np.exp(-0.5 * scale**2 * squares))
    if isinstance(kernel, HalfIntegerBessel):
        nu, scale = kernel.nu, number(kernel.scale)
        factor = math.exp(math.lgamma(nu + d / 2) - math.lgamma(nu)) * 2**d * math.pi ** (d / 2)
        # (2 nu)^nu / scale^(2 nu) (2 nu / scale^2 + w^2)^-(nu + d/2), without powers that overflow
        square = scale**2 / (2 * nu)
        return np.asarray(factor * square ** (d / 2) * (1 + square * squares) ** -(nu + d / 2))
    if isinstance(kernel, RadialMultiple):
        return kernel.factor * _density(kernel.kernel, lattice)
    if isinstance(kernel, RadialSum):
        return _density(kernel.left, lattice) + _density(kernel.right, lattice)
    return _sampled(kernel, lattice)


def _sampled(kernel: Kernel, lattice: FourierLattice) -> Array:
    """The density of any other radial kernel, from its values on a grid of a period, finer than the lattice's waves."""
    sizes = [4 * order + 1 for order in lattice.orders]
    axes = [period / size * np.fft.fftfreq(size, 1 / size) for period, size in zip(lattice.period, sizes, strict=True)]
    grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = kernel.values(grid, np.zeros((1, lattice.dimension)))[0].reshape(sizes)
    spectrum = np.fft.fftn(values).real * float(np.prod(lattice.period / np.array(sizes)))
    half = np.maximum(spectrum[tuple(lattice.half.T)], 0)
    return np.concatenate([[max(spectrum.flat[0], 0)], half, half])


class Recombined(Basis):
    """Combinations of the functions of another basis."""

    @property
    @abstractmethod
    def of(self) -> Basis:
        """The basis."""

    @abstractmethod
    def combined(self, features: Array) -> Array:
        """The combinations (r, c) of features (p, c)."""

    @property
    def dimension(self) -> int:
        return self.of.dimension

    @property
    def order(self) -> float:
        return self.of.order

    @property
    def description(self) -> str:
        return self.of.description

    @property
    def holds_constant(self) -> bool:
        return self.of.holds_constant

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return Mapped(self.of.at(block, atoms), self.combined)


@dataclass(frozen=True, eq=False)
class WeighedLattice(Recombined):
    """S_k φ_k for the functions of a lattice, with the squared norm |a|² of the function space of a kernel.

    A constant is free: its norm counts as 0.
    """

    lattice: FourierLattice
    kernel: Kernel

    @property
    def of(self) -> FourierLattice:
        return self.lattice

    @property
    def weights(self) -> Array:
        """S^2 (p,)."""
        return prior_weights(self.kernel, self.lattice)

    @property
    def size(self) -> int:
        return self.lattice.size

    @property
    def description(self) -> str:
        return f"{self.lattice.description} weighed by {self.kernel}"

    def norm(self, gram: Array) -> Array:
        return self.lattice.norm(gram)

    @property
    def slope_norm(self) -> float:
        return float(self.weights @ np.sum(self.lattice.frequencies**2, axis=1)) / self.dimension

    def combined(self, features: Array) -> Array:
        return np.asarray(np.sqrt(self.weights)[:, None] * features)


@dataclass(frozen=True, eq=False)
class SpanBasis(Recombined):
    """Combinations of the functions of a basis, by the columns of a matrix (p, r): the span of its leading functions.

    The first function is the basis's first one alone.
    """

    inner: Basis
    matrix: NDArray[np.floating[Any]]

    @property
    def of(self) -> Basis:
        return self.inner

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    def norm(self, gram: Array) -> Array:
        return np.asarray(self.matrix.T @ self.inner.norm(gram) @ self.matrix)

    @property
    def slope_norm(self) -> float | None:
        return self.inner.slope_norm

    def combined(self, features: Array) -> Array:
        return np.asarray(self.matrix.T @ features)
