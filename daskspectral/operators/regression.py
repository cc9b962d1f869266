"""The normal equations of regression on values and gradients, which Hermite regression measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskspectral.forms import Field, Form, Functional, along, dirichlet, form, functional, grad, gram, inner
from daskspectral.operators.base import Array, Operator


@form
def values_and_gradients(f: Any, g: Any, x: Any) -> Any:
    """<Df, Dg> for Df = (f, grad f), section 7.2."""
    return inner(f, g) + inner(grad(f), grad(g))


@functional
def values(f: Any, x: Any) -> Any:
    """<f, y>, one column for each target."""
    return inner(f, x.y)


def slopes(target: int) -> Functional:
    """<grad f, t> for the gradients of one target."""

    @functional
    def slopes(f: Any, x: Any) -> Any:
        return inner(along(f, Field("gradients", target)), 1.0)

    return slopes


@dataclass(frozen=True)
class Regression(Operator):
    """D* D of regression with Df = f, or (f, grad f) with `gradients`.

    `targets` is the number m of targets, None for one that is given as a vector. Values and gradients are measured
    apart, so that their weights can be chosen afterwards. Fields: `y` (n, m) and `gradients` (n, m, d).
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

    @property
    def counts(self) -> frozenset[str]:
        return frozenset({"observed"})

    def prepared(self, fields: Mapping[str, Array], scale: Array | None, columns: Any) -> Mapping[str, Array]:
        """Targets (c, m), and gradients (c, m, d) brought from the raw columns of X to its scaled ones (chain rule)."""
        found = {name: values for name, values in fields.items() if name not in ("y", "gradients")}
        found["y"] = np.asarray(fields["y"], dtype=float).reshape(len(fields["y"]), -1)
        if "gradients" in fields:
            t = np.asarray(fields["gradients"], dtype=float)
            t = t.reshape(*found["y"].shape, t.shape[-1])
            t = t if columns is None else t[:, :, list(columns)]
            found["gradients"] = t if scale is None else t * scale
        return found

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        """Sums and squares (m,) of values, squares of gradients, and `observed`, the rows of positive weight."""
        y = fields["y"]
        w = np.asarray(fields["weight"], dtype=float) if "weight" in fields else np.ones(len(y))
        observed = np.array([np.count_nonzero(w)], dtype=float)
        with np.errstate(over="ignore"):  # infinity is refused later
            squares = {"value_sums": w @ y, "value_squares": w @ y**2, "observed": observed}
        if "gradients" in fields:
            squares["slope_squares"] = np.einsum("k,kjd,kjd->j", w, fields["gradients"], fields["gradients"])
        return squares

    def together(self, sums: dict[str, Array]) -> dict[str, Array]:
        """The sums with the right-hand sides of all targets side by side, (p, m)."""
        slopes = [sums.pop(name) for name in self.functionals if name != "values" and name in sums]
        return sums | ({"slopes": np.column_stack(slopes)} if slopes else {})
