"""The normal equations of regression on values and gradients: what Hermite regression measures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from daskspectral.forms import Field, Form, Functional, along, dirichlet, form, functional, grad, gram, inner
from daskspectral.operators.base import Operator


@form
def values_and_gradients(f: Any, g: Any, x: Any) -> Any:
    """<Df, Dg> for Df = (f, grad f), section 7.2."""
    return inner(f, g) + inner(grad(f), grad(g))


@functional
def values(f: Any, x: Any) -> Any:
    """<f, y>, a column for each target."""
    return inner(f, x.y)


def slopes(target: int) -> Functional:
    """<grad f, t> for the gradients of one target."""

    @functional
    def slopes(f: Any, x: Any) -> Any:
        return inner(along(f, Field("gradients", target)), 1.0)

    return slopes


@dataclass(frozen=True)
class Regression(Operator):
    """D* D of regression on `targets` (None: one, given as a vector), with Df = f, or (f, grad f) with `gradients`.

    Values and gradients are measured apart, so that their weights can be chosen afterwards. Fields: `y` (c, m) and
    `gradients` (c, m, d).
    """

    gradients: bool = False
    targets: int | None = None
    name: str = field(default="regression", init=False, repr=False)

    @property
    def form(self) -> Form:
        return values_and_gradients if self.gradients else gram

    @property
    def forms(self) -> dict[str, Form]:
        return {"gram": gram} | ({"dirichlet": dirichlet} if self.gradients else {})

    @property
    def functionals(self) -> dict[str, Functional]:
        count = (self.targets or 1) if self.gradients else 0
        return {"values": values} | {f"slopes {j}": slopes(j) for j in range(count)}
