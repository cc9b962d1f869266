"""Kernels that are a function q of one number for each pair of points, with its derivatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskspectral.errors import SmoothnessError
from daskspectral.kernels.base import Array, Kernel
from daskspectral.registry import Function

Profile = Callable[[Array], Array]


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
        if order > len(self.derivatives):
            raise SmoothnessError(
                f"this {type(self).__name__} kernel was given {len(self.derivatives)} derivatives of q, {order} are "
                "needed"
            )
        out[...] = (self.q, *self.derivatives)[order](s)
        return out

    def probe(self) -> Array:
        points = np.linspace(0.1, 3, 5)
        return np.stack([np.asarray(function(points), dtype=float) for function in (self.q, *self.derivatives)])
