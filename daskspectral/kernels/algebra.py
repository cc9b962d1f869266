"""Sums, products, multiples and plain callables. A sum or product of two kernels of one family stays in the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskspectral.errors import SmoothnessError
from daskspectral.kernels.base import (
    Array,
    Kernel,
    MultiIndex,
    ParameterKernel,
    check_index,
    is_number,
    sub_indices,
)
from daskspectral.kernels.dot import DotKernel
from daskspectral.kernels.radial import RadialKernel
from daskspectral.registry import Function


def _leibniz(left: RadialKernel | DotKernel, right: RadialKernel | DotKernel, s: Array, order: int) -> Iterator[Array]:
    for k in range(order + 1):
        a = left.profile(s, k, np.empty_like(s))
        a *= right.profile(s, order - k, np.empty_like(s))
        yield math.comb(order, k) * a


def _accumulate(parts: Iterator[Array], out: Array) -> Array:
    out[...] = 0
    for part in parts:
        out += part
    return out


def _check_family(owner: ParameterKernel, family: type, *kernels: object) -> None:
    for kernel in kernels:
        if not isinstance(kernel, family):
            raise ValueError(
                f"{type(owner).__name__} takes kernels of the family {family.__name__}; it got {kernel!r}. "
                "Write the expression again with + and *"
            )


def _check_factor(factor: object) -> None:
    if not is_number(factor) or factor <= 0:  # type: ignore[operator]
        raise ValueError(f"a kernel can be multiplied by a positive number, not by {factor!r}")


@dataclass
class _RadialPair(RadialKernel):
    expects: ClassVar = {"left": RadialKernel, "right": RadialKernel}
    left: RadialKernel
    right: RadialKernel

    def check(self) -> None:
        _check_family(self, RadialKernel, self.left, self.right)

    @property
    def smoothness(self) -> float:
        return min(self.left.smoothness, self.right.smoothness)

    @property
    def order(self) -> float:
        return min(self.left.order, self.right.order)


@dataclass
class RadialSum(_RadialPair):
    """q1 + q2 of two radial kernels."""

    def profile(self, s: Array, order: int, out: Array) -> Array:
        return _accumulate((k.profile(s, order, np.empty_like(s)) for k in (self.left, self.right)), out)


@dataclass
class RadialProduct(_RadialPair):
    """q1 q2 of two radial kernels."""

    def profile(self, s: Array, order: int, out: Array) -> Array:
        return _accumulate(_leibniz(self.left, self.right, s, order), out)


@dataclass
class _DotPair(DotKernel):
    expects: ClassVar = {"left": DotKernel, "right": DotKernel}
    left: DotKernel
    right: DotKernel

    def check(self) -> None:
        _check_family(self, DotKernel, self.left, self.right)

    @property
    def order(self) -> float:
        return min(self.left.order, self.right.order)


@dataclass
class DotSum(_DotPair):
    """q1 + q2 of two dot-product kernels."""

    def profile(self, t: Array, order: int, out: Array) -> Array:
        return _accumulate((k.profile(t, order, np.empty_like(t)) for k in (self.left, self.right)), out)


@dataclass
class DotProduct(_DotPair):
    """q1 q2 of two dot-product kernels."""

    def profile(self, t: Array, order: int, out: Array) -> Array:
        return _accumulate(_leibniz(self.left, self.right, t, order), out)


@dataclass
class RadialMultiple(RadialKernel):
    """factor q(s)."""

    expects: ClassVar = {"kernel": RadialKernel}

    kernel: RadialKernel
    factor: float

    def check(self) -> None:
        _check_family(self, RadialKernel, self.kernel)
        _check_factor(self.factor)

    @property
    def smoothness(self) -> float:
        return self.kernel.smoothness

    @property
    def order(self) -> float:
        return self.kernel.order

    def profile(self, s: Array, order: int, out: Array) -> Array:
        self.kernel.profile(s, order, out)
        out *= self.factor
        return out


@dataclass
class DotMultiple(DotKernel):
    """factor q(t)."""

    expects: ClassVar = {"kernel": DotKernel}

    kernel: DotKernel
    factor: float

    def check(self) -> None:
        _check_family(self, DotKernel, self.kernel)
        _check_factor(self.factor)

    @property
    def order(self) -> float:
        return self.kernel.order

    def profile(self, t: Array, order: int, out: Array) -> Array:
        self.kernel.profile(t, order, out)
        out *= self.factor
        return out


@dataclass
class Sum(ParameterKernel):
    """The sum of kernels of two families."""

    expects: ClassVar = {"left": Kernel, "right": Kernel}

    left: Kernel
    right: Kernel

    @property
    def order(self) -> float:
        return min(self.left.order, self.right.order)

    def values(self, x: Array, y: Array) -> Array:
        return self.left.values(x, y) + self.right.values(x, y)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        return self.left.partial(x, y, alpha) + self.right.partial(x, y, alpha)

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return self.left.along(x, y, direction) + self.right.along(x, y, direction)


@dataclass
class Product(ParameterKernel):
    """The product of kernels of two families."""

    expects: ClassVar = {"left": Kernel, "right": Kernel}

    left: Kernel
    right: Kernel

    @property
    def order(self) -> float:
        return min(self.left.order, self.right.order)

    def values(self, x: Array, y: Array) -> Array:
        return self.left.values(x, y) * self.right.values(x, y)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        total = np.zeros((len(y), len(x)), like=x)
        for beta, rest, coefficient in sub_indices(alpha):
            total += coefficient * self.left.partial(x, y, beta) * self.right.partial(x, y, rest)
        return total

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        result = self.left.along(x, y, direction) * self.right.values(x, y)
        result += self.left.values(x, y) * self.right.along(x, y, direction)
        return result


@dataclass
class Multiple(ParameterKernel):
    """factor times a kernel that is neither radial nor dot-product."""

    expects: ClassVar = {"kernel": Kernel}

    kernel: Kernel
    factor: float

    def check(self) -> None:
        _check_factor(self.factor)

    @property
    def order(self) -> float:
        return self.kernel.order

    def values(self, x: Array, y: Array) -> Array:
        return self.factor * self.kernel.values(x, y)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        return self.factor * self.kernel.partial(x, y, alpha)

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return self.factor * self.kernel.along(x, y, direction)


@dataclass
class FunctionKernel(ParameterKernel):
    """Any callable k(x (c, d), y (p, d)) -> (p, c), with its gradient where the operator needs one.

    `gradient(x, y, axis)` returns the derivative along one coordinate of x, shape (p, c).

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

    @property
    def portable(self) -> bool:
        return False

    @property
    def order(self) -> float:
        return 0 if self.gradient is None else 1

    def values(self, x: Array, y: Array) -> Array:
        return self._checked(self.function(x, y), x, y)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        check_index(alpha, x.shape[1])
        if sum(alpha) == 0:
            return self.values(x, y)
        if self.gradient is None or sum(alpha) > 1:
            raise SmoothnessError(
                f"derivatives of order {sum(alpha)} of a FunctionKernel are unknown: "
                "give gradient=, or use a kernel with a profile (Gaussian, Matern, Radial, Dot)"
            )
        return self._checked(self.gradient(x, y, alpha.index(1)), x, y)

    def _checked(self, result: Array, x: Array, y: Array) -> Array:
        if np.shape(result) != (len(y), len(x)):
            raise ValueError(
                f"the kernel function returned shape {np.shape(result)} for {len(x)} points and {len(y)} "
                f"landmarks; it must return (landmarks, points) = {(len(y), len(x))}"
            )
        return np.asarray(result, dtype=float)


def add(left: Kernel, right: Kernel | float) -> Kernel:
    """left + right, in their family where both are of the same one."""
    if not isinstance(right, Kernel):
        raise TypeError(f"a kernel can be added to a kernel, not to {right!r}")
    if isinstance(left, RadialKernel) and isinstance(right, RadialKernel):
        return RadialSum(left, right)
    if isinstance(left, DotKernel) and isinstance(right, DotKernel):
        return DotSum(left, right)
    return Sum(left, right)


def multiply(left: Kernel, right: Kernel | float) -> Kernel:
    """left * right, for two kernels or a kernel and a positive number."""
    if isinstance(right, Kernel):
        if isinstance(left, RadialKernel) and isinstance(right, RadialKernel):
            return RadialProduct(left, right)
        if isinstance(left, DotKernel) and isinstance(right, DotKernel):
            return DotProduct(left, right)
        return Product(left, right)
    _check_factor(right)
    factor = float(right)
    if isinstance(left, RadialKernel):
        return RadialMultiple(left, factor)
    if isinstance(left, DotKernel):
        return DotMultiple(left, factor)
    return Multiple(left, factor)
