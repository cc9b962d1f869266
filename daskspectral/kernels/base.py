"""Base classes of kernels, their sums, products and multiples, and kernels defined by functions."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import ParameterError, SmoothnessError
from daskspectral.kernels.geometry import DISTANCE, DOT, Geometry
from daskspectral.registry import Function, Parameterized
from daskspectral.validation import POSITIVE, check_number, check_type, is_number, is_word

Array = NDArray[np.floating[Any]]
MultiIndex = tuple[int, ...]
Profile = Callable[[Array], Array]
LEAST_SCALE = 1e-75  # Dirichlet forms take fourth powers of scales, which must not overflow
SCALE_WORDS = ("median", "auto")  # scales estimated from the data
OVERFLOW = f"powers of scales below {LEAST_SCALE:g} or above {1 / LEAST_SCALE:g} overflow"


@dataclass
class Kernel(Parameterized, ABC):
    """Kernel k(x, y) of points x (c, d) and landmarks y (p, d); matrices have the shape (p, c).

    The parameters are the arguments of the constructor. `order` is 1 for the exponential kernel, whose gradient jumps
    at x = y and is set to 0 there.

    See Also
    --------
    ProfileKernel : Base class of radial and dot-product kernels.
    FunctionKernel : A kernel defined by any function.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian, Linear
    >>> kernel = Gaussian(1.0) + 0.5 * Linear()
    >>> kernel(np.zeros((1, 2)), np.ones((3, 2))).round(3)
    array([[0.368, 0.368, 0.368]])
    >>> kernel.set_params(left__scale=0.5).get_params(deep=False)
    {'left': Gaussian(scale=0.5), 'right': Scaled(kernel=Linear(), factor=0.5)}
    """

    @property
    def geometry(self) -> Geometry | None:
        """DISTANCE for a function of |x - y|, DOT for a function of x.y, None otherwise."""
        return None

    @property
    @abstractmethod
    def order(self) -> float:
        """Highest order of a bounded derivative in x."""

    @property
    def portable(self) -> bool:
        """True if arrays of any device are accepted; functions and classes of users run on the host."""
        builtin = type(self).__module__.partition(".")[0] == __package__.partition(".")[0]
        return builtin and all(part.portable for part in self.kernels.values())

    @property
    def kernels(self) -> dict[str, Kernel]:
        """Return the kernels of which this one is composed, by parameter."""
        return {name: value for name, value in self.get_params(deep=False).items() if isinstance(value, Kernel)}

    @property
    def flat(self) -> Kernel:
        return self

    @abstractmethod
    def values(self, x: Array, y: Array) -> Array:
        """Return k(x_k, y_i), shape (p, c)."""

    @abstractmethod
    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        """Return the partial derivative of k(., y_i) at x_k, (p, c), for a multi-index alpha (d,)."""

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        """Return direction_k . grad k(., y_i)(x_k), (p, c), for directions (c, d)."""
        d = x.shape[1]
        return reduce(operator.add, (self.partial(x, y, unit_index(a, d)) * direction[:, a] for a in range(d)))

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        """Return sum_ab matrix_kab d_a d_b k(., y_i)(x_k), (p, c), for matrices (c, d, d) or the Laplacian."""
        units = np.eye(x.shape[1], dtype=int)  # multi-indices

        def derivative(a: int, b: int) -> Array:
            return self.partial(x, y, tuple(int(k) for k in units[a] + units[b]))

        pairs = [(a, a) for a in range(len(units))]
        if matrix is None:
            return reduce(operator.add, (derivative(*pair) for pair in pairs))
        pairs += [(a, b) for a in range(len(units)) for b in range(a)]
        both = 0.5 * (matrix + matrix.swapaxes(1, 2))
        return reduce(operator.add, (derivative(a, b) * ((1 + (a != b)) * both[:, a, b]) for a, b in pairs))

    def check_derivative(self, alpha: MultiIndex, x: Array) -> int:
        """Return the order of a derivative at points (c, d); raise SmoothnessError if unbounded."""
        check_index(alpha, x.shape[1])
        return self.check_order(sum(alpha))

    def check_order(self, order: int) -> int:
        """Return `order` of a derivative in x; raise SmoothnessError if the kernel has fewer derivatives."""
        if order > self.order:
            raise SmoothnessError(f"{self} has derivatives up to order {self.order:g}, not {order}")
        return order

    def diagonal(self, x: Array) -> Array:
        """Return k(x_k, x_k), shape (c,)."""
        return np.array([self.values(row[None], row[None])[0, 0] for row in x])

    def embedded(self, x: Array) -> Array:
        """Return the points (c, e) between which distances are measured; periodic columns become circles."""
        return x

    def moved(self, x: Array, step: Array) -> Array:
        """Return points x (c, d) moved by steps (c, d) of lengths in the metric, not the scale, of the kernel."""
        return np.asarray(x + step)

    @property
    def stationary(self) -> bool:
        """True if k(x + t, y + t) = k(x, y), so that points can be centered."""
        return self.geometry is DISTANCE

    def embedded_about(self, x: Array) -> Array:
        """Return the embedded points (c, e), centered first if the kernel is stationary."""
        return self.embedded(x - x.mean(axis=0)) if self.stationary and len(x) else self.embedded(x)

    @property
    def geometries(self) -> set[Geometry | None]:
        return {self.inner.geometry}

    @property
    def mixes_origin(self) -> bool:
        """True for compositions of radial and dot-product kernels, which depend on the origin."""
        return self.geometries == {DISTANCE, DOT}

    @property
    def proportional(self) -> float | None:
        """Ratio 2 q' / q if it is constant, so that q = exp(proportional s / 2) (Gaussian); None otherwise."""
        return None

    @property
    def inner(self) -> Kernel:
        """Kernel of the embedded points; the kernel itself if points are not mapped."""
        return self

    @property
    def needs_median(self) -> bool:
        """True if a scale is "median"."""
        return self.has_scale("median")

    @property
    def automatic(self) -> bool:
        """True if a scale is "auto"."""
        return self.has_scale("auto")

    def __call__(self, a: Array, b: Array) -> Array:
        return self.values(np.asarray(b, dtype=float), np.asarray(a, dtype=float))

    def __add__(self, other: Kernel) -> Sum:
        if not isinstance(other, Kernel):
            raise TypeError(f"a kernel can be added to another kernel only, got {other!r}")
        return Sum(self, other)

    def __mul__(self, other: Kernel | float) -> Product | Scaled:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __post_init__(self) -> None:
        self.check()

    def __eq__(self, other: object) -> bool:  # of classes without the decorator
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.get_params(deep=False) == other.get_params(deep=False))

    def check(self) -> None:
        """Raise ValueError for invalid parameters, TypeError for parts that are not kernels."""
        for name in (name for name, kind in self.expects.items() if kind is Kernel):
            check_type(name, getattr(self, name), Kernel, "one of daskspectral.kernels, such as Gaussian(1.0)")

    def resolve(self, distance: float, word: str = "median") -> Self:
        """Return the kernel with each scale that equals `word` replaced by `distance`."""
        if self.has_scale(word) and not LEAST_SCALE < distance < 1 / LEAST_SCALE:
            raise ValueError(
                f"the median distance of the points is {distance:.3g}, but a kernel needs a positive scale, and "
                f"{OVERFLOW}; multiply the data by a constant"
            )

        given = self.get_params(deep=False)
        scales = {name: distance for name, value in given.items() if is_word(value, word)}
        return type(self)(
            **given | scales | {name: part.resolve(distance, word) for name, part in self.kernels.items()}
        )

    def has_scale(self, word: str) -> bool:
        """Return whether a scale is this word, "median" or "auto"."""
        found = any(is_word(value, word) for value in self.get_params(deep=False).values())
        return found or any(part.has_scale(word) for part in self.kernels.values())


class ProfileKernel(Kernel):
    """Kernel k(x, y) = q(s), with s = |x - y|² if `geometry` is DISTANCE and s = x.y if it is DOT.

    A subclass sets `geometry`, a class attribute without annotation, and `smoothness`, and defines `profile`, which is
    called with orders up to 2 smoothness + 1 (orders above the smoothness have factors that vanish at s = 0). A
    subclass with fewer derivatives also sets `order`, as `Radial` does.

    See Also
    --------
    Radial, Dot : Kernels of given profiles, without a class.

    Examples
    --------
    >>> from daskspectral.kernels import Exponential, Polynomial
    >>> s, out = np.array([0.0, 4.0]), np.empty(2)
    >>> Exponential(2.0).profile(s, 0, out).round(3)
    array([1.   , 0.368])
    >>> Polynomial(2).profile(s, 1, out)
    array([ 2., 10.])
    """

    @property
    @abstractmethod
    def geometry(self) -> Geometry: ...

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Number of bounded derivatives of q in s, also at s = 0 (infinite for smooth kernels)."""

    @abstractmethod
    def profile(self, s: Array, order: int, out: Array) -> Array:
        """Write q^(order)(s) elementwise into `out`, never `s`, and return it; 0 at s = 0 if unbounded there."""

    def profiled(self, s: Array, order: int) -> Array:
        """Return q^(order)(s) as a new array."""
        return self.profile(s, order, np.empty_like(s))

    def pair(self, s: Array, q: Array, t: Array, *, touching: bool = True) -> None:
        """Write q and T / slope into two buffers, with T = 2 q' for distances and q' for dot products.

        For dot products s is a x.y + b (`affine`). With `touching=False` no distance is 0.
        """
        self.profile(s, 0, q)
        self.profile(s, 1, t)
        if self.geometry.factor != 1:
            t *= self.geometry.factor

    @property
    def slope(self) -> float:
        """Constant factor of T (2 q' for distances, q' for dot products) that `pair` omits."""
        return 1.0

    @property
    def affine(self) -> tuple[float, float]:
        """Coefficients (a, b) of a x.y + b, the argument that `pair` expects for dot products."""
        return 1.0, 0.0

    @property
    def order(self) -> float:
        return self.geometry.order(self.smoothness)

    def argument(self, x: Array, y: Array) -> Array:
        """Return s of points x (c, d) and landmarks y (p, d), shape (p, c)."""
        return self.geometry.argument(x, y, exact=self.smoothness < math.inf)

    def values(self, x: Array, y: Array) -> Array:
        return self.profiled(self.argument(x, y), 0)

    def diagonal(self, x: Array) -> Array:
        return self.profiled(self.geometry.diagonal(x), 0)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        self.check_derivative(alpha, x)
        return self.geometry.partial(self.profiled, self.argument(x, y), x, y, alpha)

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        self.check_order(1)
        return self.geometry.along(self.profiled, self.argument(x, y), x, y, direction)

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        self.check_order(2)
        return self.geometry.second(self.profiled, self.argument(x, y), x, y, matrix)


def of_distances(kernel: Any) -> TypeGuard[ProfileKernel]:
    """Return whether an object is a kernel that depends on |x - y| only.

    Parameters
    ----------
    kernel : object
        Any object.

    Returns
    -------
    bool
        True for a `ProfileKernel` with the geometry `DISTANCE`.

    See Also
    --------
    of_products : The same for x.y.

    Examples
    --------
    >>> of_distances(FunctionKernel(np.minimum))
    False
    """
    return isinstance(kernel, ProfileKernel) and kernel.geometry is DISTANCE


def of_products(kernel: Any) -> TypeGuard[ProfileKernel]:
    """Return whether an object is a kernel that depends on x.y only.

    Parameters
    ----------
    kernel : object
        Any object.

    Returns
    -------
    bool
        True for a `ProfileKernel` with the geometry `DOT`.

    See Also
    --------
    of_distances : The same for |x - y|.

    Examples
    --------
    >>> of_products(FunctionKernel(np.minimum))
    False
    """
    return isinstance(kernel, ProfileKernel) and kernel.geometry is DOT


class ComposedKernel(ProfileKernel):
    """Kernel composed of others by `combine`; `profile` requires a common geometry."""

    @property
    def parts(self) -> list[Any]:
        return [getattr(self, name) for name in self.expects]

    @property
    def geometry(self) -> Any:
        first, *others = (part.geometry for part in self.parts)
        return first if all(other is first for other in others) else None

    @property
    def geometries(self) -> set[Geometry | None]:
        return {geometry for part in self.parts for geometry in part.geometries}

    @property
    def order(self) -> float:
        return float(min(part.order for part in self.parts))

    @property
    def smoothness(self) -> float:
        return float(min(part.smoothness for part in self.parts))

    @abstractmethod
    def combine(self, evaluate: Callable[[Kernel], Array]) -> Array: ...

    def values(self, x: Array, y: Array) -> Array:
        return self.combine(lambda part: part.values(x, y))

    def diagonal(self, x: Array) -> Array:
        return self.combine(lambda part: part.diagonal(x))

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        return self.combine(lambda part: part.partial(x, y, alpha))

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return self.combine(lambda part: part.along(x, y, direction))

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        family = ProfileKernel if self.geometry else Kernel  # one profile is faster than d² partial derivatives
        return family.second(self, x, y, matrix)


@dataclass
class BinaryKernel(ComposedKernel):
    """Kernel composed of two kernels."""

    expects: ClassVar = {"left": Kernel, "right": Kernel}

    left: Any
    right: Any


class Sum(BinaryKernel):
    """Sum of two kernels, left + right.

    Parameters
    ----------
    left, right : Kernel
        The terms.

    See Also
    --------
    Product : Product of two kernels.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian, Linear
    >>> Gaussian(1.0) + Linear()
    Sum(left=Gaussian(scale=1.0), right=Linear())
    """

    def combine(self, evaluate: Callable[[Kernel], Array]) -> Array:
        return evaluate(self.left) + evaluate(self.right)

    def profile(self, s: Array, order: int, out: Array) -> Array:
        self.left.profile(s, order, out)
        out += self.right.profile(s, order, np.empty_like(s))
        return out


class Product(BinaryKernel):
    """Product of two kernels, left * right, with derivatives by the Leibniz rule.

    Parameters
    ----------
    left, right : Kernel
        The factors.

    See Also
    --------
    Sum : Sum of two kernels.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian, Linear
    >>> Gaussian(1.0) * Linear()
    Product(left=Gaussian(scale=1.0), right=Linear())
    """

    def combine(self, evaluate: Callable[[Kernel], Array]) -> Array:
        return evaluate(self.left) * evaluate(self.right)

    def profile(self, s: Array, order: int, out: Array) -> Array:
        out[...] = 0
        for k in range(order + 1):
            term = self.left.profile(s, k, np.empty_like(s))
            term *= self.right.profile(s, order - k, np.empty_like(s))
            out += math.comb(order, k) * term
        return out

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        total = np.zeros((len(y), len(x)), like=x)
        for beta in product(*(range(a + 1) for a in alpha)):
            rest = tuple(a - b for a, b in zip(alpha, beta, strict=True))
            coefficient = math.prod(math.comb(a, b) for a, b in zip(alpha, beta, strict=True))
            total += coefficient * self.left.partial(x, y, beta) * self.right.partial(x, y, rest)
        return total

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        result: Array = self.left.along(x, y, direction) * self.right.values(x, y)
        result += self.left.values(x, y) * self.right.along(x, y, direction)
        return result


@dataclass
class Scaled(ComposedKernel):
    """Positive multiple of a kernel.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    factor : float
        Positive factor.

    See Also
    --------
    Sum : Sum of two kernels.

    Examples
    --------
    >>> from daskspectral.kernels import Linear
    >>> 0.5 * Linear()
    Scaled(kernel=Linear(), factor=0.5)
    """

    expects: ClassVar = {"kernel": Kernel}

    kernel: Any
    factor: float

    def check(self) -> None:
        super().check()
        self.factor = check_number("factor", self.factor, POSITIVE)

    def combine(self, evaluate: Callable[[Kernel], Array]) -> Array:
        return self.factor * evaluate(self.kernel)

    def moved(self, x: Array, step: Array) -> Array:
        return np.asarray(self.kernel.moved(x, step))

    def profile(self, s: Array, order: int, out: Array) -> Array:
        self.kernel.profile(s, order, out)
        out *= self.factor
        return out


@dataclass
class GivenProfile(ProfileKernel):
    """Kernel of a given profile: q and its derivatives in s as functions of arrays."""

    expects: ClassVar = {"q": Function, "derivatives": Function}
    portable = False

    q: Profile
    derivatives: Sequence[Profile] = ()

    @property
    def smoothness(self) -> float:
        return len(self.derivatives)

    @property
    def order(self) -> float:
        return len(self.derivatives)

    def profile(self, s: Array, order: int, out: Array) -> Array:
        out[...] = (self.q, *self.derivatives)[order](s)
        return out


@dataclass
class FunctionKernel(Kernel):
    """Kernel defined by any function, with its gradient if the operator needs one.

    Parameters
    ----------
    function : callable
        ``function(x, y)`` returns k(x_k, y_i), shape (p, c), for points x (c, d) and landmarks y (p, d).
    gradient : callable, optional
        ``gradient(x, y, axis)`` returns the derivative along one coordinate of x, shape (p, c).

    See Also
    --------
    Radial, Dot : Faster kernels of |x - y| and x.y.

    Examples
    --------
    >>> kernel = FunctionKernel(lambda x, y: np.minimum(y, x.T))
    >>> kernel(np.array([[1.0], [2.0]]), np.array([[3.0], [0.5]]))
    array([[1. , 0.5],
           [2. , 0.5]])
    """

    expects: ClassVar = {"function": Function, "gradient": Function}

    function: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array, int], Array] | None = None

    portable = False

    @property
    def order(self) -> float:
        return 0 if self.gradient is None else 1

    def values(self, x: Array, y: Array) -> Array:
        return self._checked(self.function(x, y), x, y)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        if self.check_derivative(alpha, x) == 0 or self.gradient is None:
            return self.values(x, y)
        return self._checked(self.gradient(x, y, alpha.index(1)), x, y)

    def _checked(self, result: Array, x: Array, y: Array) -> Array:
        if np.shape(result) != (len(y), len(x)):
            raise ValueError(
                f"the kernel function must return an array of shape (landmarks, points) = {(len(y), len(x))}, "
                f"got {np.shape(result)}"
            )
        return np.asarray(result, dtype=float)


def check_scale(scale: float | str) -> None:
    """Raise ParameterError unless a scale is a positive finite number, "median" or "auto"."""
    if is_word(scale, *SCALE_WORDS):
        return
    if not is_number(scale) or not LEAST_SCALE < number(scale) < 1 / LEAST_SCALE:
        expected = f"'median', 'auto' or a number in ({LEAST_SCALE:g}, {1 / LEAST_SCALE:g}), in the units of the data,"
        raise ParameterError("scale", expected, scale)


def number(scale: float | str) -> float:
    """Return the scale as a number; raise ValueError for "median" and "auto"."""
    if isinstance(scale, str):
        raise ValueError(f"the scale must be a number here, got {scale!r}. Call kernel.resolve(distance, {scale!r}).")
    return float(scale)


def unit_index(axis: int, d: int) -> MultiIndex:
    """Return the multi-index of the first derivative along one axis."""
    return tuple(int(a == axis) for a in range(d))


def check_index(alpha: MultiIndex, d: int) -> None:
    """Raise ValueError unless a multi-index has one order per coordinate."""
    if len(alpha) != d:
        raise ValueError(f"a derivative in {d} variables needs {d} orders, one per coordinate, got {tuple(alpha)}")
