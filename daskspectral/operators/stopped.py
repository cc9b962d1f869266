"""Operator of stopped processes, for committors and mean first passage times."""

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
    """Return E[f(x) (g(x) - g(y))], restricted to x, and for g(y) also y, in neither set."""
    return inner(x.outcome[0] * f, g) - inner(x.outcome[1] * f, at(g, x.stopped))


@form
def outside(f: Any, g: Any, x: Any) -> Any:
    """Return E[f(x) g(x)] over rows in neither set."""
    return inner(x.outcome[0] * f, g)


@functional
def arrivals(f: Any, x: Any) -> Any:
    """Return E[f(x)] over rows that stop in b."""
    return inner(x.outcome[2] * f, 1.0)


@functional
def elapsed(f: Any, x: Any) -> Any:
    """Return E[f(x) t] for the number t of rows until x stops or the lag has passed."""
    return inner(x.outcome[3] * f, 1.0)


@dataclass(frozen=True)
class Stopped(Operator):
    """Operator 1 - S of a process stopped in the sets a and b, (S g)(x) = E[g(y) 1(y not in a or b) | x].

    y is the state after the lag, or the first one in a or b before that. The field `outcome` (n, 6) contains for each
    row: in neither set, not stopped, stops in b, number of rows until it stops or the lag has passed, in a, in b;
    `stopped` (n, d) are the rows y.
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
