"""Random Fourier features, and trigonometric functions of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daskspectral.basis.accumulators import GradientSum
from daskspectral.basis.base import Array, Basis, Translation
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.devices import filled
from daskspectral.forms import Atom
from daskspectral.kernels import Gaussian, Kernel
from daskspectral.kernels.base import number
from daskspectral.kernels.radial import HalfIntegerBessel
from daskspectral.modes.frequencies import MOST_WAVES, Frequencies
from daskspectral.validation import POSITIVE, check_integer, check_number, check_type, is_sequence
from daskspectral.workspace import Workspace

PANEL_BYTES = 1 << 17  # size of each of the two buffers of angles
SMOOTHNESS, SCALE = 2.5, 2 * math.pi / 10  # scale of the Matérn kernel of angles in penalties


@dataclass(frozen=True, eq=False)
class RandomFourierFeatures(Basis):
    """Random Fourier features √(variance / m) cos(w_i.x) and √(variance / m) sin(w_i.x), p = 2 m.

    The mean of φ(x).φ(y) over w is the kernel, and |φ(x)|² = variance = k(x, x). Frequencies of Exponential and
    Matern(0.5) have no second moment: a few very fast oscillations dominate the Dirichlet form.

    Parameters
    ----------
    frequencies : array of shape (m, d)
        Frequencies w, in radians per unit of the columns.
    variance : float
        Value k(x, x) of the kernel.

    See Also
    --------
    FourierBasis : A lattice of frequencies, for one to three variables.
    TrigonometricBasis : Integer frequencies, for periodic columns.
    Landmarks : Functions of any kernel at landmarks.

    Examples
    --------
    >>> basis = RandomFourierFeatures.draw(Gaussian(1.0), 3, 1000, random_state=0)
    >>> x, y = basis.values(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).T
    >>> round(float(x @ y), 1), round(float(np.exp(-0.5)), 1)
    (0.6, 0.6)
    """

    order = math.inf
    description = "random Fourier features"
    portable = True

    frequencies: Array
    variance: float = 1.0

    def __post_init__(self) -> None:
        frequencies = np.ascontiguousarray(self.frequencies, dtype=float)
        if frequencies.ndim != 2 or not frequencies.size or not np.isfinite(frequencies).all():
            raise ValueError(f"frequencies must be finite numbers (m, d), got shape {frequencies.shape}.")
        self._set(frequencies=frequencies, variance=check_number("variance", self.variance, POSITIVE))

    def translated(self, delta: Array) -> Translation:
        angles = self.frequencies @ delta
        cosine, sine = np.diag(np.cos(angles)), np.diag(np.sin(angles))
        return Translation(self, np.block([[cosine, -sine], [sine, cosine]]), np.zeros(self.size))

    @classmethod
    def draw(
        cls, kernel: Kernel, dimension: int, p: int, random_state: int | np.random.Generator | None = None
    ) -> RandomFourierFeatures:
        """Return p features with frequencies from the kernel's spectral density.

        Gaussian(scale): normal with standard deviation 1/scale. Matern(nu, scale): multivariate Student t with 2 nu
        degrees of freedom, divided by scale; Exponential has one, a Cauchy distribution. Raises ValueError for other
        kernels and odd p.
        """
        check_type("kernel", kernel, Kernel, "one of daskspectral.kernels, such as Gaussian(1.0)")
        dimension, p = check_integer("dimension", dimension), check_integer("p", p, 2)
        if p % 2:
            raise ValueError(f"p must be even (a cosine and a sine for each frequency), got {p}.")
        rng = np.random.default_rng(random_state)
        return cls(_spectral_samples(kernel, p // 2, dimension, rng))

    @property
    def size(self) -> int:
        return 2 * len(self.frequencies)

    @property
    def dimension(self) -> int:
        return int(self.frequencies.shape[1])

    @property
    def holds_constant(self) -> bool:
        return not self.frequencies.any(axis=1).all()

    def norm(self, gram: Array) -> Array:
        return np.eye(self.size)

    @property
    def slope_norm(self) -> float:
        return self.variance * float(np.mean(self.frequencies**2))

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        amplitude = math.sqrt(self.variance / len(self.frequencies))
        return Waves(self, block, self.frequencies, block.x.astype(float, copy=False), amplitude)

    def gradient_sum(self, out: Array, dtype: Any, workspace: Workspace) -> GradientSum:
        return _FourierGradientSum(self.frequencies, out, constants=0)


@dataclass(frozen=True)
class TrigonometricBasis(Basis):
    """Trigonometric functions 1, √2 cos(k.t) and √2 sin(k.t) of angles t = 2π x / period.

    The frequencies are integer vectors k with Σ |k_a| ≤ degree, one of each pair +-k; functions are orthonormal for
    uniform columns. Penalties weight them as a Matérn 5/2 kernel whose scale is a tenth of each period: equal weights
    would shrink the eigenvalues of slow processes.

    Parameters
    ----------
    periods : tuple of float
        Periods (d,) in the units of the columns.
    degree : int
        Largest total degree.
    m : int or tuple of int, optional
        Bound of |k_a|, for each column or all.

    Raises
    ------
    ValueError
        If a period is not positive, or there are more than 100 000 functions.

    See Also
    --------
    FourierBasis : A lattice of frequencies in a box.
    MonomialBasis : Monomials of columns that are not periodic.

    Examples
    --------
    >>> basis = TrigonometricBasis((360.0, 360.0), 2)
    >>> basis.size, basis.values(np.array([[90.0, 180.0]])).ravel()[:4].round(2).tolist()
    (13, [1.0, -1.41, 1.41, 0.0])
    """

    order = math.inf
    holds_constant = True
    portable = True
    periodic = True

    periods: tuple[float, ...]
    degree: int
    m: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        periods: Any = self.periods
        if not is_sequence(periods) or not periods:
            raise ValueError(f"periods must be the period of each column, such as (360.0, 360.0), got {periods!r}.")
        periods = tuple(check_number("periods", period, POSITIVE) for period in periods)
        self._set(periods=periods, degree=check_integer("degree", self.degree))
        if self.m is not None:
            orders = tuple(self.m) if is_sequence(self.m) else (self.m,) * len(periods)
            if len(orders) != len(periods):
                raise ValueError(f"m and periods must have the same length, got {len(orders)} and {len(periods)}.")
            self._set(m=tuple(check_integer("m", order) for order in orders))
        if self.size > MOST_WAVES:
            raise ValueError(f"{self!r} has more than {MOST_WAVES} functions. Lower its degree.")

    @cached_property
    def frequencies(self) -> Frequencies:
        orders = self.m if isinstance(self.m, tuple) else (self.degree,) * self.dimension
        return Frequencies(orders, np.array(self.periods), self.degree)

    @property
    def size(self) -> int:
        return self.frequencies.size

    @property
    def dimension(self) -> int:
        return len(self.periods)

    @property
    def description(self) -> str:
        return f"cosines and sines up to degree {self.degree}"

    def norm(self, gram: Array) -> Array:
        norms = self._norms
        return np.diag(np.concatenate([[0.0], norms, norms]))

    @property
    def slope_norm(self) -> float:
        return 2 * float(np.sum(self.frequencies.waves**2 / self._norms[:, None])) / self.dimension

    @property
    def _norms(self) -> Array:
        squares = np.sum((SCALE * self.frequencies.half) ** 2, axis=1)
        return np.asarray((1 + squares / (2 * SMOOTHNESS)) ** (SMOOTHNESS + self.dimension / 2))

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        points = block.x.astype(float, copy=False)
        return Waves(self, block, np.asarray(self.frequencies.waves, like=points), points, math.sqrt(2), constants=1)

    def gradient_sum(self, out: Array, dtype: Any, workspace: Workspace) -> GradientSum:
        return _FourierGradientSum(self.frequencies.waves, out, constants=1)


class Waves(Evaluation):
    """Constants, cosines and sines of frequencies (m, d) at points (c, d), with all derivatives.

    Angles are float64 for any dtype, because frequencies may be large. With t = tan(w.x / 2), cos and sin are 2 / (1 +
    t²)
    - 1 and 2 t / (1 + t²): one slow function for both.
    """

    def __init__(
        self, basis: Basis, block: Block, frequencies: Array, points: Array, amplitude: Any, constants: int = 0
    ):
        self.basis, self.block, self.frequencies = basis, block, frequencies
        m, c = len(frequencies), len(points)
        scale: Any = 1.0 if block.scale is None else block.scale
        self.waves = block.buffer("value", (constants + 2 * m, c))
        self.waves[:constants] = scale
        self.cosines = slice(constants, constants + m)
        self.sines = slice(constants + m, None)
        amplitude = amplitude * scale
        half = 0.5 * frequencies
        rows = max(1, PANEL_BYTES // (8 * max(c, 1)))
        tangents = block.workspace.get("half-angle tangents", (min(rows, m), c), float)
        divisors = block.workspace.get("half-angle divisors", (min(rows, m), c), float)
        for start in range(0, m, rows):
            panel = slice(start, min(start + rows, m))
            t, u = tangents[: panel.stop - start], divisors[: panel.stop - start]
            np.matmul(half[panel], points.T, out=t)
            np.tan(t, out=t)
            np.multiply(t, t, out=u)
            u += 1
            np.divide(2 * amplitude, u, out=u)
            np.multiply(t, u, out=self.waves[self.sines][panel])
            np.subtract(u, amplitude, out=self.waves[self.cosines][panel])

    @property
    def value(self) -> Array:
        return self.waves

    def along(self, direction: Array) -> Array:
        dtype = self.block.dtype
        return self._derivative(1, self.frequencies.astype(dtype) @ direction.astype(dtype, copy=False).T)

    def partial(self, alpha: tuple[int, ...]) -> Array:
        factor = filled(len(self.frequencies), 1, self.frequencies)
        for axis, order in enumerate(alpha):
            if order:
                factor *= self.frequencies[:, axis] ** order
        return self._derivative(sum(alpha), factor.astype(self.block.dtype)[:, None])

    def _derivative(self, order: int, factor: Array) -> Array:
        """Return the waves advanced by `order` quarter turns, times a factor."""
        out = np.zeros_like(self.waves)
        near, far = (self.cosines, self.sines) if order % 2 == 0 else (self.sines, self.cosines)
        # cos' = -sin, sin' = cos
        np.multiply(self.waves[near], factor if order % 4 in (0, 3) else -factor, out=out[self.cosines])
        np.multiply(self.waves[far], factor if order % 4 in (0, 1) else -factor, out=out[self.sines])
        return out


class _FourierGradientSum:
    """Dirichlet form L = [[S S^T, -S C^T], [-C S^T, C C^T]] o (W W^T) from the Gram matrix of [C; S]."""

    def __init__(self, frequencies: Array, out: Array, constants: int):
        self.frequencies, self.out, self.constants = frequencies, out, constants

    def add(self, evaluation: Any) -> None: ...

    def finish(self, gram: Array) -> None:
        m, waves = len(self.frequencies), slice(self.constants, None)
        products, exchanged = np.asarray(self.frequencies @ self.frequencies.T, like=gram), self.out[waves, waves]
        self.out[: self.constants] = self.out[:, : self.constants] = 0
        exchanged[:] = np.roll(gram[waves, waves], (m, m), axis=(0, 1))
        exchanged[:m, :m] *= products
        exchanged[m:, m:] *= products
        exchanged[:m, m:] *= -products
        exchanged[m:, :m] *= -products


def _spectral_samples(kernel: Kernel, m: int, d: int, rng: np.random.Generator) -> Array:
    """Return w (m, d) with E cos(w.r) = k(r) / k(0)."""
    if isinstance(kernel, Gaussian):
        return rng.standard_normal((m, d)) / number(kernel.scale)
    if isinstance(kernel, HalfIntegerBessel):
        normal, degrees = rng.standard_normal((m, d)) / number(kernel.scale), 2.0 * kernel.nu
        return normal * np.sqrt(degrees / rng.chisquare(degrees, (m, 1)))
    raise ValueError(
        f"kernel must be Gaussian, Exponential or Matern, got {kernel}. For other kernels of x - y, pass "
        "RandomFourierFeatures(frequencies, variance=k(x, x))."
    )
