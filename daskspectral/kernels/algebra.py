"""Sums, products, multiples and plain callables. A sum or product of two kernels of one family stays in the family."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from daskspectral.kernels.base import Array, Kernel, MultiIndex, ProfileKernel
from daskspectral.kernels.dot import DotKernel
from daskspectral.kernels.radial import RadialKernel
from daskspectral.registry import Function
from daskspectral.validation import POSITIVE, check_number, is_number


class ComposedKernel(Kernel):
    """A kernel made of others, which are of its own family."""

    @property
    def parts(self) -> list[Any]:
        """The kernels that it is made of."""
        return [value for value in self.get_params(deep=False).values() if not is_number(value)]

    def check(self) -> None:
        family = family_of(self)[0]
        for part in self.parts:
            if not isinstance(part, family):
                raise ValueError(
                    f"{type(self).__name__} takes kernels of the family {family.__name__}; it got {part!r}. "
                    "Write the expression again with + and *"
                )

    @property
    def order(self) -> float:
        return min(float(part.order) for part in self.parts)

    @property
    def leaves(self) -> list[Kernel]:
        """The kernels of one argument that it is made of."""
        return [leaf for k in self.parts for leaf in (k.leaves if isinstance(k, ComposedKernel) else [k.inner])]

    @property
    def mixes_origin(self) -> bool:
        kinds = (DotKernel, RadialKernel)
        return {next((kind for kind in kinds if isinstance(leaf, kind)), Kernel) for leaf in self.leaves} == {*kinds}

    @property
    def smoothness(self) -> float:
        """Of a combination of radial kernels."""
        return min(float(part.smoothness) for part in self.parts)


@dataclass
class Pair(ComposedKernel):
    """A kernel made of two."""

    expects: ClassVar = {"left": Kernel, "right": Kernel}

    left: Any
    right: Any


@dataclass
class Multiplied(ComposedKernel):
    """A positive number times a kernel."""

    expects: ClassVar = {"kernel": Kernel}

    kernel: Any
    factor: float

    def check(self) -> None:
        check_number("factor", self.factor, POSITIVE)
        super().check()


class SumOfProfiles(Pair, ProfileKernel):
    """q1 + q2."""

    def profile(self, s: Array, order: int, out: Array) -> Array:
        self.left.profile(s, order, out)
        out += self.right.profile(s, order, np.empty_like(s))
        return out


class ProductOfProfiles(Pair, ProfileKernel):
    """q1 q2, with derivatives by Leibniz's rule."""

    def profile(self, s: Array, order: int, out: Array) -> Array:
        out[...] = 0
        for k in range(order + 1):
            term = self.left.profile(s, k, np.empty_like(s))
            term *= self.right.profile(s, order - k, np.empty_like(s))
            out += math.comb(order, k) * term
        return out


class MultipleOfProfile(Multiplied, ProfileKernel):
    """factor q."""

    def profile(self, s: Array, order: int, out: Array) -> Array:
        self.kernel.profile(s, order, out)
        out *= self.factor
        return out


class RadialSum(SumOfProfiles, RadialKernel):
    """The sum of two radial kernels."""


class RadialProduct(ProductOfProfiles, RadialKernel):
    """The product of two radial kernels."""


class RadialMultiple(MultipleOfProfile, RadialKernel):
    """A positive number times a radial kernel."""


class DotSum(SumOfProfiles, DotKernel):
    """The sum of two dot-product kernels."""


class DotProduct(ProductOfProfiles, DotKernel):
    """The product of two dot-product kernels."""


class DotMultiple(MultipleOfProfile, DotKernel):
    """A positive number times a dot-product kernel."""


class SumOfKernels(Pair):
    """The sum of kernels of two families."""

    def values(self, x: Array, y: Array) -> Array:
        return np.asarray(self.left.values(x, y) + self.right.values(x, y), like=x)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        return np.asarray(self.left.partial(x, y, alpha) + self.right.partial(x, y, alpha), like=x)

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return np.asarray(self.left.along(x, y, direction) + self.right.along(x, y, direction), like=x)


class ProductOfKernels(Pair):
    """The product of kernels of two families."""

    def values(self, x: Array, y: Array) -> Array:
        return np.asarray(self.left.values(x, y) * self.right.values(x, y), like=x)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        total = np.zeros((len(y), len(x)), like=x)
        for beta in product(*(range(a + 1) for a in alpha)):  # by Leibniz's rule
            rest = tuple(a - b for a, b in zip(alpha, beta, strict=True))
            coefficient = math.prod(math.comb(a, b) for a, b in zip(alpha, beta, strict=True))
            total += coefficient * self.left.partial(x, y, beta) * self.right.partial(x, y, rest)
        return total

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        result: Array = self.left.along(x, y, direction) * self.right.values(x, y)
        result += self.left.values(x, y) * self.right.along(x, y, direction)
        return result


class MultipleOfKernel(Multiplied):
    """A positive number times a kernel that is neither radial nor dot-product."""

    def values(self, x: Array, y: Array) -> Array:
        return np.asarray(self.factor * self.kernel.values(x, y), like=x)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        return np.asarray(self.factor * self.kernel.partial(x, y, alpha), like=x)

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return np.asarray(self.factor * self.kernel.along(x, y, direction), like=x)


FAMILIES: tuple[tuple[Any, Any, Any, Any], ...] = (
    (RadialKernel, RadialSum, RadialProduct, RadialMultiple),
    (DotKernel, DotSum, DotProduct, DotMultiple),
    (Kernel, SumOfKernels, ProductOfKernels, MultipleOfKernel),
)
"""Each family of kernels, with its sums, products and multiples."""


def family_of(*kernels: Any) -> tuple[Any, Any, Any, Any]:
    """The family that all of the kernels are of."""
    return next(family for family in FAMILIES if all(isinstance(kernel, family[0]) for kernel in kernels))


def add(left: Kernel, right: Kernel | float) -> Kernel:
    """left + right, in their family where both are of the same one."""
    if not isinstance(right, Kernel):
        raise TypeError(f"a kernel can be added to a kernel, not to {right!r}")
    found: Kernel = family_of(left, right)[1](left, right)
    return found


def multiply(left: Kernel, right: Kernel | float) -> Kernel:
    """left * right, for two kernels or a kernel and a positive number."""
    if isinstance(right, Kernel):
        found: Kernel = family_of(left, right)[2](left, right)
    else:
        found = family_of(left)[3](left, float(right) if is_number(right) else right)
    return found


@dataclass
class FunctionKernel(Kernel):
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
                f"the kernel function returned shape {np.shape(result)} for {len(x)} points and {len(y)} "
                f"landmarks; it must return (landmarks, points) = {(len(y), len(x))}"
            )
        return np.asarray(result, dtype=float)
