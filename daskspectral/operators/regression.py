"""Normal equations of regression on values and gradients (Hermite regression)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskspectral.forms import (
    Field,
    Form,
    Functional,
    along,
    dirichlet,
    first_moment,
    form,
    functional,
    grad,
    gram,
    inner,
)
from daskspectral.manifolds import Manifold
from daskspectral.operators.base import Array, Operator
from daskspectral.operators.weights import row_weights


@form
def values_and_gradients(f: Any, g: Any, x: Any) -> Any:
    """Return <Df, Dg> for Df = (f, ∇f), section 7.2."""
    return inner(f, g) + inner(grad(f), grad(g))


@functional
def products(f: Any, x: Any) -> Any:
    """Return <f, y>, one column for each target."""
    return inner(f, x.y)


def slopes(target: int) -> Functional:
    """Return the functional <∇f, t> for the gradients of one target."""

    @functional
    def slopes(f: Any, x: Any) -> Any:
        return inner(along(f, Field("gradients", target)), 1.0)

    return slopes


def side_by_side(sums: dict[str, Array]) -> dict[str, Array]:
    """Return the sums, with the slopes of all targets as columns of one matrix (p, m)."""
    found = [sums.pop(name) for name in [*sums] if name.startswith("slopes ")]
    return sums | ({"slopes": np.column_stack(found)} if found else {})


@dataclass(frozen=True)
class Regression(Operator):
    """Normal operator D* D of regression with Df = f, (f, ∇f) with `gradients`, or ∇f without `values`.

    `targets` is their number m, None for one vector. Sums of values and gradients are separate, so that weights can be
    chosen afterwards. Fields: `y` (n, m) and `gradients` (n, m, d), tangential to the `manifold`. The `origin` (m,) is
    subtracted from values, and both are divided by the `unit`, which preserves digits. With an `intercept` means of
    functions are summed too.
    """

    expects: ClassVar = {"manifold": Manifold}

    gradients: bool = False
    targets: int | None = None
    values: bool = True
    manifold: Manifold | None = None
    origin: tuple[float, ...] = ()
    unit: float = 1.0
    intercept: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "regression on gradients" if self.gradients else "regression"

    @property
    def form(self) -> Form:
        if not self.values:
            return dirichlet
        return values_and_gradients if self.gradients else gram

    @property
    def forms(self) -> dict[str, Form]:
        return {"gram": gram} | ({"dirichlet": dirichlet} if self.gradients else {})

    @property
    def functionals(self) -> dict[str, Functional]:
        count = (self.targets or 1) if self.gradients else 0
        first = {"values": products} if self.values else {}
        first |= {"first": first_moment} if self.intercept else {}
        return first | {f"slopes {j}": slopes(j) for j in range(count)}

    has_patterns = annihilates_constants = False  # constants are the intercept

    counts = frozenset({"observed", "weight_squares"})

    def numbers(self, gradient_weight: float) -> tuple[bool, bool]:
        """Return whether values, and gradients with this weight, are used."""
        return self.values, self.gradients and (not self.values or gradient_weight > 0)

    def prepared(self, fields: Mapping[str, Array], scale: Array | None, columns: Any) -> Mapping[str, Array]:
        """Return targets (c, m) and gradients (c, m, d) in the scaled columns, tangential."""
        found = {name: values for name, values in fields.items() if name not in ("y", "gradients")}
        if self.values:
            y = np.asarray(fields["y"], dtype=float).reshape(len(fields["y"]), -1)
            found["y"] = (y - (self.origin or 0.0)) / self.unit
        if "gradients" in fields:
            t = np.asarray(fields["gradients"], dtype=float)
            t = t.reshape(len(t), self.targets or 1, t.shape[-1])
            t = t if columns is None else t[:, :, list(columns)]
            found["gradients"] = self._tangential(fields["x"], t / self.unit * (1.0 if scale is None else scale))
        return found

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        w = row_weights(fields)
        found = super().statistics(fields) | {"observed": np.array([np.count_nonzero(w)], dtype=float)}
        if self.values:
            y = fields["y"]
            with np.errstate(over="ignore"):  # infinity is rejected later
                found |= {"value_sums": w @ y, "value_squares": w @ y**2}
        if "gradients" in fields:
            found["slope_squares"] = np.einsum("k,kjd,kjd->j", w, fields["gradients"], fields["gradients"])
        return found

    def _tangential(self, x: Array, t: Array) -> Array:
        """Return vectors (c, m, d) without normal part, 0 beyond interval ends."""
        if self.manifold is None:
            return t
        lower, upper = self.manifold.ends
        beyond = (x < lower) | (x > upper)
        if beyond.any():
            t = np.where(beyond[:, None], 0.0, t)
        if not self.manifold.codimension:
            return t
        normals = self.manifold.normals(np.asarray(x, dtype=float))
        return np.asarray(t - np.einsum("kcm,kcd->cmd", np.einsum("kcd,cmd->kcm", normals, t), normals))
