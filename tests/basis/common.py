"""References for sums of any basis: derivatives of plain formulas by Cauchy's formula, and forms of every kind."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from daskspectral.forms import (
    Form,
    along,
    along_each,
    at,
    dirichlet,
    form,
    functional,
    grad,
    gram,
    inner,
    partial,
    second,
)

Plain = Callable[[Any], Any]
"""Points (c, 3), complex ones too -> values (p, c)."""
Derivative = Callable[[Any, tuple[int, ...]], Any]
"""Points (c, 3), multi-index -> (p, c)."""
ZERO: tuple[int, ...] = (0, 0, 0)
UNIT: list[tuple[int, ...]] = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def cauchy(plain: Plain, x: Any, alpha: tuple[int, ...], radius: float, nodes: int = 24) -> Any:
    """A derivative at real points, by the trapezoidal rule on a circle for each axis of alpha: exact to rounding."""
    axes = [a for a, order in enumerate(alpha) if order]
    circle = radius * np.exp(2j * np.pi * np.arange(nodes) / nodes)
    shifts = np.zeros((nodes ** len(axes), len(alpha)), complex)
    shifts[:, axes] = list(itertools.product(circle, repeat=len(axes)))
    powers = np.prod(shifts ** np.array(alpha), axis=1)
    values = plain((x + shifts[:, None]).reshape(-1, len(alpha)))
    factors = math.prod(map(math.factorial, alpha)) / powers / len(shifts)
    return np.einsum("pmc,m->pc", values.reshape(-1, len(shifts), len(x)), factors).real


def derivatives(plain: Plain, radius: float = 0.5) -> Derivative:
    """Values and derivatives of a formula that is analytic within the radius of real points."""
    known: dict[Any, Any] = {}

    def derivative(x: Any, alpha: tuple[int, ...]) -> Any:
        key = x.tobytes(), alpha
        if key not in known:
            known[key] = cauchy(plain, x, alpha, radius)
        return known[key]

    return derivative


def stacked(*parts: Derivative) -> Derivative:
    return lambda x, alpha: np.vstack([part(x, alpha) for part in parts])


def make_batch(n: int = 13, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    batch = {
        "x": rng.standard_normal((n, 3)),
        "future": rng.standard_normal((n, 3)),
        "drift": rng.standard_normal((n, 3)),
        "frame": rng.standard_normal((n, 2, 3)),
        "matrix": rng.standard_normal((n, 3, 3)),
        "potential": rng.standard_normal(n),
        "targets": rng.standard_normal((n, 2)),
        "weight": rng.random(n) + 0.1,
    }
    for array in batch.values():
        array.flags.writeable = False
    return batch


@form
def drifting(f: Any, g: Any, x: Any) -> Any:
    moved = inner(along(f, x.drift) - 2 * f, along(g, x.frame[1]) + along(g, x.drift))
    return moved + inner(partial(f, 0, 0, 1), g) + inner(f, partial(g, 0, 1, 0)) + inner(partial(f, 0, 0, 0), g)


@form
def later(f: Any, g: Any, x: Any) -> Any:
    both = inner(f, at(g, x.future)) - inner(grad(at(f, x.future)), grad(at(g, x.future)))
    return both + inner(grad(f), at(grad(g), x.future)) + inner(along(at(f, x.future), x.x), along(g, x.drift))


@form
def generators(f: Any, g: Any, x: Any) -> Any:
    frames = inner(along_each(f, x.frame), along_each(g, x.frame))
    return inner(second(f, x.matrix) + along(f, x.drift) - f, second(g)) + frames


@form
def second_order(f: Any, g: Any, x: Any) -> Any:
    bent = inner(partial(f, 2, 0, 0), partial(g, 2, 0, 0), weight=x.potential)
    return inner(partial(f, 1, 0, 1), partial(g, 0, 2, 0)) + bent + inner(f, g)


@form
def third_order(f: Any, g: Any, x: Any) -> Any:
    cubic = inner(partial(f, 1, 1, 1), partial(g, 0, 0, 3)) + inner(partial(f, 2, 1, 0), partial(g, 0, 1, 0))
    return cubic + inner(f, g)


FORMS: dict[str, tuple[Form, int]] = {
    "gram": (gram, 0),
    "dirichlet": (dirichlet, 1),
    "drifting": (drifting, 1),
    "later": (later, 1),
    "generators": (generators, 2),
    "second order": (second_order, 2),
    "third order": (third_order, 3),
}
"""Forms, and the orders of the derivatives that they take."""


def forms(order: float) -> dict[str, Form]:
    return {name: what for name, (what, needed) in FORMS.items() if needed <= order}


PAIRINGS = {
    "values": functional(lambda f, x: inner(f, 2.0) + inner(x.potential * f, x.targets[1])),
    "columns": functional(lambda f, x: inner(f, x.targets, weight=x.potential) - inner(at(f, x.future), x.targets)),
    "gradients": functional(lambda f, x: inner(f, x.potential) + inner(along(f, x.frame[0]), 1, weight=x.potential)),
    "slopes": functional(lambda f, x: inner(along(f, x.drift), x.potential) + inner(partial(f, 1, 0, 0), 1)),
}


def paired(f: Derivative, batch: dict[str, Any]) -> dict[str, Any]:
    """The sums of `PAIRINGS`: a vector over functions, or a matrix over functions and columns."""
    x, w, v, targets = batch["x"], batch["weight"], batch["potential"], batch["targets"]

    def slope(direction: Any) -> Any:
        return sum(f(x, e) * direction[:, a] for a, e in enumerate(UNIT))

    return {
        "values": f(x, ZERO) @ (w * (2 + v * targets[:, 1])),
        "columns": (f(x, ZERO) * v - f(batch["future"], ZERO)) @ (w[:, None] * targets),
        "gradients": f(x, ZERO) @ (w * v) + slope(batch["frame"][:, 0]) @ (w * v),
        "slopes": slope(batch["drift"]) @ (w * v) + f(x, UNIT[0]) @ w,
    }
