"""What every kernel offers: values, derivatives in x, parameters, sums and products."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import ParameterError, SmoothnessError
from daskspectral.registry import Function, Parameterised
from daskspectral.validation import is_number

Array = NDArray[np.floating[Any]]
MultiIndex = tuple[int, ...]
Profile = Callable[[Array], Array]
LEAST_SCALE = 1e-75  # Dirichlet forms take fourth powers of scales, which must not overflow
SCALE_WORDS = ("median", "auto")  # scales that the data decide
OVERFLOW = f"powers of scales below {LEAST_SCALE:g} or above {1 / LEAST_SCALE:g} overflow"


@dataclass
class Kernel(Parameterised, ABC):
    """k(x, y) for points x (c, d) and landmarks y (p, d); matrices come as (p, c), landmarks first.

    Its parameters are its constructor's arguments; `check` validates those of a dataclass.

    `order` is the highest total order of a derivative in x that is bounded (infinite when smooth): the
    exponential kernel has 1, since its gradient jumps at x = y, where it is taken as 0.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian, Linear
    >>> kernel = Gaussian(1.0) + 0.5 * Linear()
    >>> kernel(np.zeros((1, 2)), np.ones((3, 2))).round(3)
    array([[0.368, 0.368, 0.368]])
    >>> kernel.set_params(left__scale=0.5).get_params(deep=False)
    {'left': Gaussian(scale=0.5), 'right': DotMultiple(kernel=Linear(), factor=0.5)}
    """

    @property
    @abstractmethod
    def order(self) -> float:
        """Highest order of a bounded derivative in x."""

    @property
    def portable(self) -> bool:
        """Whether it takes arrays of any device; if not, it is evaluated on the host. Functions of a user are."""
        own = type(self).__module__.partition(".")[0] == __package__.partition(".")[0]
        return own and all(v.portable for v in self.get_params(deep=False).values() if isinstance(v, Kernel))

    @abstractmethod
    def values(self, x: Array, y: Array) -> Array:
        """k(x_k, y_i), shape (p, c)."""

    @abstractmethod
    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        """The partial derivative of k(., y_i) at x_k for a multi-index alpha of length d, shape (p, c)."""

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        """direction_k . grad k(., y_i)(x_k) for a direction field (c, d), shape (p, c)."""
        d = x.shape[1]
        return reduce(operator.add, (self.partial(x, y, unit_index(a, d)) * direction[:, a] for a in range(d)))

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        """sum_ab matrix_kab d_a d_b k(., y_i)(x_k) for matrices (c, d, d), shape (p, c); the Laplacian without them."""
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
        """The order of a derivative at points (c, d). Raises SmoothnessError for one that is not bounded."""
        check_index(alpha, x.shape[1])
        if sum(alpha) > self.order:
            raise SmoothnessError(f"{self} has derivatives up to order {self.order:g}, not {sum(alpha)}")
        return sum(alpha)

    def diagonal(self, x: Array) -> Array:
        """k(x_k, x_k), shape (c,)."""
        return np.array([self.values(row[None], row[None])[0, 0] for row in x])

    def embedded(self, x: Array) -> Array:
        """The points (c, e) between which the kernel takes distances: x (c, d), periodic columns bent into circles."""
        return x

    def moved(self, x: Array, step: Array) -> Array:
        """Points x (c, d) moved by steps (c, d) that are measured as the kernel measures distances."""
        return np.asarray(x + step)

    @property
    def stationary(self) -> bool:
        """Whether k(x + t, y + t) = k(x, y), so that points may be taken about any center, to lose no digits."""
        return False

    def embedded_about(self, x: Array) -> Array:
        """Return the points (c, e) of x (c, d) less their mean, if the kernel is stationary, else of x."""
        return self.embedded(x - x.mean(axis=0)) if self.stationary and len(x) else self.embedded(x)

    @property
    def mixes_origin(self) -> bool:
        """Whether it is made of kernels of differences and of dot products, which hold to the origin."""
        return False

    @property
    def inner(self) -> Kernel:
        """The kernel of the embedded points: this one where points are not mapped."""
        return self

    @property
    def needs_median(self) -> bool:
        """True while a scale is still the word "median"."""
        return self.has_scale("median")

    @property
    def automatic(self) -> bool:
        """True while a scale is still the word "auto": it is then chosen from the data."""
        return self.has_scale("auto")

    def state(self) -> dict[str, Any]:
        return self.get_params(deep=False)

    def __call__(self, a: Array, b: Array) -> Array:
        """The matrix k(a_i, b_j), shape (len(a), len(b))."""
        return self.values(np.asarray(b, dtype=float), np.asarray(a, dtype=float))

    def __add__(self, other: Kernel | float) -> Kernel:
        from daskspectral.kernels.algebra import add

        return add(self, other)

    def __mul__(self, other: Kernel | float) -> Kernel:
        from daskspectral.kernels.algebra import multiply

        return multiply(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __post_init__(self) -> None:
        self.check()

    def __eq__(self, other: object) -> bool:  # of a class that is no dataclass of its own
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.get_params(deep=False) == other.get_params(deep=False))

    def check(self) -> None:
        """Raise ValueError for parameters that make no kernel."""

    def resolve(self, distance: float, word: str = "median") -> Self:
        """This kernel with every scale that is the word "median", or "auto", replaced by `distance`."""
        if self.has_scale(word) and not LEAST_SCALE < distance < 1 / LEAST_SCALE:
            raise ValueError(
                f"the median distance of the points is {distance:.3g}, and a kernel needs a positive scale; "
                f"{OVERFLOW}: bring the data to other units, multiplying them by a constant"
            )

        def resolved(value: Any) -> Any:
            if isinstance(value, Kernel):
                return value.resolve(distance, word)
            return distance if isinstance(value, str) and value == word else value

        return type(self)(**{name: resolved(value) for name, value in self.get_params(deep=False).items()})

    def has_scale(self, word: str) -> bool:
        """Whether a scale is still this word, "median" or "auto"."""
        values = self.get_params(deep=False).values()
        return any(v.has_scale(word) if isinstance(v, Kernel) else isinstance(v, str) and v == word for v in values)


class ProfileKernel(Kernel):
    """k(x, y) = q(s), s a number for each pair of points: |x - y|² of radial kernels, x.y of dot-product ones."""

    @abstractmethod
    def argument(self, x: Array, y: Array) -> Array:
        """s of points x (c, d) and landmarks y (p, d), shape (p, c)."""

    @abstractmethod
    def profile(self, s: Array, order: int, out: Array) -> Array:
        """q^(order)(s) elementwise into `out` (never s itself)."""

    def profiled(self, s: Array, order: int) -> Array:
        """q^(order)(s) as a new array."""
        return self.profile(s, order, np.empty_like(s))

    def values(self, x: Array, y: Array) -> Array:
        return self.profiled(self.argument(x, y), 0)


@dataclass
class OwnProfile(ProfileKernel):
    """A user's own profile: q and its derivatives, each a function of an array."""

    expects: ClassVar = {"q": Function, "derivatives": Function}
    portable = False

    q: Profile
    derivatives: Sequence[Profile] = ()

    @property
    def order(self) -> float:
        return len(self.derivatives)

    def profile(self, s: Array, order: int, out: Array) -> Array:
        out[...] = (self.q, *self.derivatives)[order](s)
        return out


def check_scale(scale: float | str) -> None:
    """Raise ParameterError unless a scale is a positive finite number, "median" or "auto"."""
    if isinstance(scale, str) and scale in SCALE_WORDS:
        return
    if not is_number(scale) or not LEAST_SCALE < number(scale) < 1 / LEAST_SCALE:
        expected = f"'median', 'auto' or a number in ({LEAST_SCALE:g}, {1 / LEAST_SCALE:g}), in the units of the data,"
        raise ParameterError("scale", expected, scale)


def number(scale: float | str) -> float:
    """The scale as a number. Raises ValueError for "median" and "auto", which `Kernel.resolve` replaces."""
    if isinstance(scale, str):
        raise ValueError(f"the scale is still {scale!r}; `kernel.resolve(distance, {scale!r})` sets it")
    return float(scale)


def unit_index(axis: int, d: int) -> MultiIndex:
    """The multi-index of the first derivative along one axis."""
    return tuple(int(a == axis) for a in range(d))


def check_index(alpha: MultiIndex, d: int) -> None:
    """Raise ValueError unless a multi-index has one order per coordinate."""
    if len(alpha) != d:
        raise ValueError(f"a derivative in {d} variables takes {d} orders, one per coordinate; it got {tuple(alpha)}")
