"""Stopped processes: the operator whose equation committors and mean first passage times solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.forms import Functional, at, form, functional, inner
from daskspectral.operators.base import Operator
from daskspectral.solve import NonNormal

Array = NDArray[np.floating[Any]]


@form
def leaving(f: Any, g: Any, x: Any) -> Any:
    """E[f(x) (g(x) - g(y))], where x, and for g(y) also y, is in neither set."""
    return inner(x.outcome[0] * f, g) - inner(x.outcome[1] * f, at(g, x.stopped))


@form
def outside(f: Any, g: Any, x: Any) -> Any:
    """E[f(x) g(x)] over rows in neither set."""
    return inner(x.outcome[0] * f, g)


@functional
def arrivals(f: Any, x: Any) -> Any:
    """E[f(x)] over rows that stop in b."""
    return inner(x.outcome[2] * f, 1.0)


@functional
def elapsed(f: Any, x: Any) -> Any:
    """E[f(x) t] for the rows t until x stops, or the lag has passed."""
    return inner(x.outcome[3] * f, 1.0)


@dataclass(frozen=True)
class Stopped(Operator):
    """1 - S for (S g)(x) = E[g(y); y in neither set | x], y being where x is a lag later, or in a or b before that.

    Both functions are restricted to rows outside of the sets. The field `outcome` (n, 6) says of each row whether it is
    outside, whether it is not stopped, whether it stops in b, after how many rows that is or the lag has passed, and
    whether it is in a, and in b; `stopped` (n, d) are the rows y.
    """

    name = "stopped"
    has_patterns = False
    form = leaving
    gram = outside
    views = ("x", "stopped")
    solver = NonNormal()

    @property
    def functionals(self) -> dict[str, Functional]:
        return super().functionals | {"arrivals": arrivals, "elapsed": elapsed}

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        outside, _, _, _, a, b = fields["outcome"].T
        return super().statistics(fields) | {"members": np.array([outside.sum(), a.sum(), b.sum(), (a * b).sum()])}

    counts = Operator.counts | {"members"}
