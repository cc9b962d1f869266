"""Trigonometric functions on a lattice of frequencies, whose moments are a few Fourier modes of the data.

With e_k(x) = exp(i k.t), t = 2π (x - center) / period, the mean of a product of two functions or derivatives is a mode
c(j) = mean exp(-i j.t), perhaps weighted by a field, at a sum or difference j of frequencies: (2m + 1)^d functions
need (4m + 1)^d modes. The spectral density of a stationary kernel weights the coefficients.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.accumulators import Accumulator, ModeSums
from daskspectral.basis.base import Array, Basis
from daskspectral.basis.boundary import Box, Interval
from daskspectral.basis.evaluation import Block, Evaluation, MappedEvaluation
from daskspectral.basis.fourier import Waves
from daskspectral.basis.recipe import BasisRecipe, OpenKernel, Periods, Sample
from daskspectral.devices import HOST, Device
from daskspectral.forms import Atom, Forms, Functionals
from daskspectral.kernels import Gaussian, Kernel, Scaled, Sum, of_distances
from daskspectral.kernels.base import number
from daskspectral.kernels.radial import HalfIntegerBessel
from daskspectral.modes.frequencies import Frequencies
from daskspectral.modes.functions import LatticeValues
from daskspectral.modes.matrices import matrices_of_modes, weights_of
from daskspectral.modes.sums import SumCost, mode_cost, rows_at_once
from daskspectral.registry import CallRepr
from daskspectral.validation import POSITIVE, check_integer, check_number, check_option
from daskspectral.workspace import Workspace

ORDERS = {1: 200, 2: 15, 3: 5}  # default m by the number of variables
FEWEST_ROWS = 4  # per function, by default
MOST_FUNCTIONS = 5041  # matrices of a gigabyte, solved in some seconds
MARGIN, WIDEST_MARGIN = 0.2, 0.5
WAVES_ACROSS = 1.15  # default gap between opposite edges of the data, in shortest wavelengths
METHODS = ("matmul", "nufft")


@dataclass(frozen=True)
class FourierBasis(OpenKernel, BasisRecipe):
    """Trigonometric functions on a lattice of frequencies in a box, for one to three variables.

    The functions are 1, √2 cos(k.t) and √2 sin(k.t) for integer k, |k_a| ≤ m_a, one of each pair +-k, p = prod (2 m_a
    + 1); t = 2π (x - center) / period, where the period is the width of the box times 1 + `margin`. Operators with
    functions at two points, such as Transfer and Cross, require a `TrigonometricBasis` on periodic columns instead.

    Parameters
    ----------
    n_frequencies : int or tuple of int, optional
        Highest frequency m, for each variable or all. By default 200, 15, 5 in one to three dimensions; for a
        spectrum, fewer if the functions would be more than a quarter of the rows. At most 5041 functions.
    box : sequence of (lower, upper), optional
        Bounds of the data by prepared column, None for a periodic one; by default found in a pass over the data.
        Moments of several machines can be added only with the same box and frequencies.
    margin : float, optional
        Relative excess of the period over the width, a gap in which functions that differ at opposite edges change;
        by default .2, for a regression .3, or more for few frequencies.
    outside : float
        Largest share of rows outside the box, which are excluded from sums; more are an error. Fitted functions there
        have the values of the nearest point of the box.
    method : {"matmul", "nufft"}, optional
        Summation of modes: matrix products, exact to rounding, or the nonuniform FFT of `finufft` (extra `lattice`).
        By default the faster one according to a fixed table.
    eps : float
        Relative precision of the nonuniform FFT; 1e-8 needs two thirds of the time of 1e-9. It is relative to the
        largest eigenvalues: very small ones, as of nearly separate clusters, have a larger relative error.
    periods : sequence, optional
        Period of each column in its units, None for columns that are not periodic.
    kernel : Kernel, its name or "auto"
        Stationary kernel, whose spectral density weights the coefficients; "auto" is chosen after the pass.
        `fit_moments` solves the same moments with another kernel.

    See Also
    --------
    TrigonometricBasis : Integer frequencies of any number of periodic columns.
    RandomFourierFeatures : Random frequencies, in any dimension.
    Landmarks : Functions of any kernel at landmarks.

    Examples
    --------
    >>> recipe = FourierBasis(2, periods=(1.0, None))
    >>> recipe.cost(None, 2, 1000), recipe.lattice(2, box=[None, (0, 2)]).period.round(2).tolist()
    (25, [1.0, 3.0])
    """

    n_frequencies: int | tuple[int, ...] | None = None
    box: tuple[Interval | None, ...] | None = None
    margin: float | None = None
    outside: float = 0.02
    method: str | None = None
    eps: float = 1e-8
    periods: Periods | None = None
    kernel: Kernel | str = "auto"

    after_pass = True
    holds_constant = True

    def __post_init__(self) -> None:
        if self.n_frequencies is not None:
            given = self.n_frequencies if isinstance(self.n_frequencies, Sequence) else (self.n_frequencies,)
            counts = tuple(check_integer("n_frequencies", order) for order in given)
            self._set(n_frequencies=counts if isinstance(self.n_frequencies, Sequence) else counts[0])
        if self.box is not None:
            if not isinstance(self.box, (Sequence, np.ndarray)):
                raise ValueError(f"box must be (lower, upper) for each column, got {self.box!r}.")
            self._set(box=tuple(None if side is None else _interval(side) for side in self.box))
        if self.periods is not None:
            self._set(periods=tuple(None if p is None else check_number("periods", p, POSITIVE) for p in self.periods))
        if self.margin is not None:
            check_number("margin", self.margin, POSITIVE)
        check_number("outside", self.outside, "[0, 1)")
        check_option("method", self.method, (None, *METHODS))
        check_number("eps", self.eps, "[1e-14, 1e-3]")
        self._name_kernel()
        if self.kernel != "auto":
            check_stationary(self.kernel)
        lengths = {len(part) for part in (self.box, self.periods, self.n_frequencies) if isinstance(part, tuple)}
        if len(lengths) > 1:
            raise ValueError(
                f"n_frequencies, box and periods must have an entry for each variable, got lengths {sorted(lengths)}."
            )
        for dimension in lengths:
            self._check_dimension(dimension)
            if isinstance(self.n_frequencies, int):
                self._set(n_frequencies=(self.n_frequencies,) * dimension)
        orders = self.n_frequencies
        if isinstance(orders, tuple) and number_of_functions(orders) > MOST_FUNCTIONS:
            raise ValueError(
                f"n_frequencies={orders} requires {number_of_functions(orders)} functions, but the limit is "
                f"{MOST_FUNCTIONS}. Lower n_frequencies to {shrunk_orders(orders, MOST_FUNCTIONS)}."
            )

    @staticmethod
    def _check_dimension(dimension: int) -> None:
        if dimension not in ORDERS:
            raise ValueError(
                f"FourierBasis requires 1 to 3 variables, got {dimension}. Select columns, or pass basis=None "
                "or, for angles, TrigonometricBasis(periods, degree)."
            )

    def sized(self, dimension: int, periods: Periods | None = None, rows: int | None = None) -> FourierBasis:
        """Return the recipe with frequencies and periods for this number of variables.

        With `rows`, the default frequencies are those of at most a quarter as many functions.
        """
        self._check_dimension(dimension)
        for part in (self.n_frequencies, self.box, self.periods):
            if isinstance(part, tuple) and len(part) != dimension:
                raise ValueError(
                    f"n_frequencies, box and periods must have an entry for each of the {dimension} columns of X, got "
                    f"{len(part)}."
                )
        orders = self.n_frequencies
        if orders is None:
            supported = math.inf if rows is None else int((rows / FEWEST_ROWS) ** (1 / dimension) - 1) // 2
            orders = max(1, int(min(ORDERS[dimension], supported)))
        periods = self.periods if periods is None else tuple(periods)
        if self.periods is not None and periods != self.periods:
            raise ValueError(f"periods must be those of the lattice, {self.periods}, got {periods}.")
        return replace(
            self,
            n_frequencies=orders if isinstance(orders, tuple) else (orders,) * dimension,
            periods=None if periods is None or not any(periods) else tuple(periods),
        )

    def lattice(self, dimension: int, box: Sequence[Interval | None] | None = None) -> FourierLattice:
        """Return the functions, without a kernel, on this box or that of the recipe."""
        sized = self.sized(dimension)
        sides: Any = sized.box if box is None else tuple(box)
        orders: Any = sized.n_frequencies
        return FourierLattice(orders, sides, sized.margin or 0.0, sized.outside, sized.method, sized.eps, sized.periods)

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return self.sized(dimension, rows=n_rows).lattice(dimension, ((0.0, 1.0),) * dimension).size

    def probe(self, sample: Sample) -> FourierLattice:
        sized = self.sized(sample.dimension, sample.periods, sample.n_rows)
        return sized.lattice(sample.dimension, sized.box or ((0.0, 1.0),) * sample.dimension)

    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        return sample.boxed(self.sized(sample.dimension, sample.periods, sample.n_rows), rng)


@dataclass(frozen=True)
class FourierLattice(CallRepr, Basis):
    """Trigonometric functions on a lattice of frequencies in a box, built from a `FourierBasis`.

    Parameters
    ----------
    orders : int or tuple of int
        Highest frequency m for each variable.
    box, margin, outside, method, eps, periods : as in `FourierBasis`
        Box, gap, share of rows outside, summation and periods.
    version : str, optional
        Version of the library that sums the modes.

    See Also
    --------
    FourierBasis : Construction from the data.

    Examples
    --------
    >>> lattice = FourierLattice(2, box=[(0, 1), (0, 2)])
    >>> lattice.size, lattice.period.round(2).tolist()
    (25, [1.5, 3.0])
    >>> lattice.values(np.array([[0.5, 1.0]]))[:3].round(2).ravel().tolist()
    [1.0, 1.41, 1.41]
    """

    order = math.inf
    description = "a lattice of Fourier functions"
    holds_constant = True
    leads_with_constant = True
    cheap_sums = True
    after_pass = True

    orders: tuple[int, ...]
    box: tuple[Interval | None, ...] | None = None
    margin: float = 0.0
    outside: float = 0.02
    method: str | None = None
    eps: float = 1e-8
    periods: Periods | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        recipe = self.recipe
        self._set(orders=recipe.n_frequencies, box=recipe.box, periods=recipe.periods)
        if not isinstance(recipe.n_frequencies, tuple) or any(not p and side is None for p, side in self.ends):
            raise ValueError(f"FourierLattice requires a box or a period for each variable, got {recipe!r}.")
        if not self.margin:
            least = min(
                (o for o, (p, _) in zip(self.orders, self.ends, strict=True) if not p), default=max(self.orders)
            )
            margin = WAVES_ACROSS / max(least - WAVES_ACROSS, 0.1)
            self._set(margin=float(np.clip(margin, MARGIN, WIDEST_MARGIN)))

    @property
    def recipe(self) -> FourierBasis:
        options = {name: getattr(self, name) for name in ("outside", "method", "eps", "periods")}
        return FourierBasis(self.orders, self.box, self.margin or None, **options)

    @property
    def periodic(self) -> bool:
        return self.periods is not None

    @property
    def size(self) -> int:
        return number_of_functions(self.orders)

    @property
    def dimension(self) -> int:
        return len(self.orders)

    @cached_property
    def period(self) -> Array:
        """Period along each axis, (d,), in the units of the prepared columns."""
        return np.array([p or (side[1] - side[0]) * (1 + self.margin) for p, side in self.ends])

    @property
    def ends(self) -> list[tuple[float | None, Any]]:
        """Period or None, and side of the box or None, for each axis."""
        d = self.dimension
        return list(zip(self.periods or (None,) * d, self.box or (None,) * d, strict=True))

    def difference(self, other: Basis) -> str:
        if not isinstance(other, FourierLattice):
            return ""
        pairs = ((field.name, getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return "; ".join(f"{name}={one!r} and {name}={two!r}" for name, one, two in pairs if one != two)

    @cached_property
    def domain(self) -> Box:
        return Box(tuple(None if p else side for p, side in self.ends), self.period, self.outside)

    @cached_property
    def frequencies(self) -> Frequencies:
        return Frequencies(self.orders, self.period)

    def angles(self, x: Array) -> NDArray[np.float64]:
        """Return the angles t (c, d) of points x (c, d)."""
        t = np.array(x.T, dtype=float, order="C")  # contiguous along each axis, for sums
        t -= self.domain.center[:, None]
        t *= (2 * np.pi / self.period)[:, None]
        return t.T

    def truncated(self, orders: Sequence[int]) -> FourierLattice:
        """Return the lattice of the lower frequencies of this one."""
        return replace(self, orders=tuple(min(a, b) for a, b in zip(orders, self.orders, strict=True)))

    def accumulator(
        self, right: Basis, forms: Forms, functionals: Functionals, *, workspace: Workspace, **options: Any
    ) -> Accumulator:
        if right is not self:
            return super().accumulator(right, forms, functionals, workspace=workspace, **options)
        return ModeSums(self, weights_of(forms, functionals, self.dimension), workspace)

    def matrices(self, forms: Forms, functionals: Functionals, sums: Mapping[str, Any]) -> dict[str, Array]:
        return matrices_of_modes(self.frequencies, forms, functionals, sums)

    def evaluator(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array]:
        rest = np.concatenate([np.zeros_like(coefficients[:1]), coefficients[1:]])  # a constant would cost digits
        values = LatticeValues(self.orders, rest, device=device)
        return lambda x: values(self.angles(self.domain.nearest(x)[0])) + coefficients[0]

    def span_gradient(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array]:
        values = LatticeValues(self.orders, coefficients, device=device)

        def gradient(x: Array) -> Array:
            points, outside = self.domain.nearest(x)
            found = np.asarray(values.gradient(self.angles(points)) * (2 * np.pi / self.period))
            if outside is not None:
                found[np.broadcast_to(outside[:, None], found.shape)] = 0.0
            return found

        return gradient

    def sum_cost(self, forms: Forms, functionals: Functionals, device: str) -> SumCost:
        weights = weights_of(forms, functionals, self.dimension)
        return mode_cost(self.orders, self.method or "nufft", len(weights), device)

    @property
    def block_rows(self) -> int:
        return rows_at_once(self.method or "matmul", self.orders)

    def norm(self, gram: Array) -> Array:
        """Return the identity, with 0 for the constant."""
        return np.diag(np.append(0.0, np.ones(self.size - 1)))

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        points = block.x.astype(float, copy=False) - self.domain.center
        return Waves(self, block, self.frequencies.waves, points, math.sqrt(2), constants=1)


def number_of_functions(orders: Sequence[int]) -> int:
    """Return the number of functions with these highest frequencies."""
    return math.prod(2 * order + 1 for order in orders)


def shrunk_orders(orders: Sequence[int], most: int) -> tuple[int, ...]:
    """Return frequencies lowered in proportion, to at most `most` functions."""
    found, share = tuple(orders), 1.0
    while number_of_functions(found) > most:
        share *= 0.98
        found = tuple(max(1, round(share * order)) for order in orders)
    return found


def _interval(side: Any) -> Interval:
    """Return both ends, or raise ValueError unless they are finite and ascending."""
    try:
        lower, upper = (float(end) for end in side)
    except (TypeError, ValueError):
        lower = upper = math.nan
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ValueError(f"box must be (lower, upper) with lower < upper for each column, got {side!r}.")
    return lower, upper


LEAST = 1e-14  # of the largest weight: below it, weights are rounding errors


def spectral_weights(kernel: Kernel, lattice: FourierLattice) -> Array:
    """Return the spectral density S² (p,) of a stationary kernel at a lattice's frequencies, with sum 1.

    f = Σ_k a_k φ_k with the squared norm Σ_k a_k² / S_k² has the reproducing kernel k, made periodic, divided by its
    value at 0. Raises TypeError for a kernel that is not a function of x - y.
    """
    found = _density(kernel.flat, lattice)
    found = np.maximum(found, LEAST * found.max())
    return np.asarray(found / found.sum())


def check_stationary(kernel: Any) -> None:
    """Raise TypeError unless the kernel is a function of x - y, ValueError for a median scale."""
    if not of_distances(kernel.flat):
        raise TypeError(
            "kernel of a Fourier basis must be a function of |x - y|, such as Matern(1.5, scale) or Gaussian(scale), "
            f"got {kernel!r}."
        )
    if kernel.has_scale("median"):
        raise ValueError(
            f"scale of {kernel!r} must be a number or 'auto', because a Fourier basis computes no median distances."
        )


def _density(kernel: Kernel, lattice: FourierLattice) -> Array:
    """Return the spectral density, up to a factor of d alone."""
    check_stationary(kernel)
    squares, d = lattice.frequencies.squares, lattice.dimension
    if isinstance(kernel, Gaussian):
        scale = number(kernel.scale)
        return np.asarray((2 * math.pi) ** (d / 2) * scale**d * np.exp(-0.5 * scale**2 * squares))
    if isinstance(kernel, HalfIntegerBessel):
        nu, scale = kernel.nu, number(kernel.scale)
        factor = math.exp(math.lgamma(nu + d / 2) - math.lgamma(nu)) * 2**d * math.pi ** (d / 2)
        # (2 nu)^nu / scale^(2 nu) (2 nu / scale^2 + w^2)^-(nu + d/2), without powers that overflow
        square = scale**2 / (2 * nu)
        return np.asarray(factor * square ** (d / 2) * (1 + square * squares) ** -(nu + d / 2))
    if isinstance(kernel, Scaled):
        return kernel.factor * _density(kernel.kernel, lattice)
    if isinstance(kernel, Sum):
        return _density(kernel.left, lattice) + _density(kernel.right, lattice)
    return _sampled(kernel, lattice)


def _sampled(kernel: Kernel, lattice: FourierLattice) -> Array:
    """Return a radial kernel's density from its values on a finer grid."""
    sizes = [4 * order + 1 for order in lattice.orders]
    axes = [period / size * np.fft.fftfreq(size, 1 / size) for period, size in zip(lattice.period, sizes, strict=True)]
    grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = kernel.values(grid, np.zeros((1, lattice.dimension)))[0].reshape(sizes)
    spectrum = np.fft.fftn(values).real * float(np.prod(lattice.period / np.array(sizes)))
    half = np.maximum(spectrum[tuple(lattice.frequencies.half.T)], 0)
    return np.concatenate([[max(spectrum.flat[0], 0)], half, half])


@dataclass(frozen=True, eq=False)
class LinearCombination(Basis):
    """Linear combinations of the functions of another basis, `inner`."""

    inner: Any

    @abstractmethod
    def combined(self, features: Array) -> Array: ...

    @property
    def dimension(self) -> int:
        return int(self.inner.dimension)

    @property
    def order(self) -> float:
        return float(self.inner.order)

    @property
    def description(self) -> str:
        return str(self.inner.description)

    @property
    def holds_constant(self) -> bool:
        return bool(self.inner.holds_constant)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return MappedEvaluation(self.inner.at(block, atoms), self.combined)


@dataclass(frozen=True, eq=False)
class SpectralDensityBasis(LinearCombination):
    """Functions S_k φ_k of a lattice, with the squared norm |a|² of a kernel's function space."""

    inner: FourierLattice
    kernel: Kernel

    @property
    def weights(self) -> Array:
        return spectral_weights(self.kernel, self.inner)

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def description(self) -> str:
        return f"{self.inner.description} weighted by {self.kernel}"

    def norm(self, gram: Array) -> Array:
        return self.inner.norm(gram)

    @property
    def slope_norm(self) -> float:
        return float(self.weights @ self.inner.frequencies.squares) / self.dimension

    def combined(self, features: Array) -> Array:
        return np.asarray(np.sqrt(self.weights)[:, None] * features)


@dataclass(frozen=True, eq=False)
class SpanBasis(LinearCombination):
    """Combinations of the functions of a basis by a matrix (p, r)."""

    inner: Basis
    matrix: NDArray[np.floating[Any]]

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
