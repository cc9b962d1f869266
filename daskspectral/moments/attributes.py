"""Names of the attributes under which an estimator keeps a solution, by the kind of its problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from daskspectral.solve import Problem

COMMON = (
    "standard_errors_",
    "held_out_",
    "groups_",
    "function_errors_",
    "approximation_",
    "trusted_",
    "constants_",
    "rank_",
    "residuals_",
    "status_",
)
"""Attributes of every kind besides values, their intervals, coefficients and supports."""


@dataclass(frozen=True)
class Attributes:
    """The attributes of a solution, such as `eigenvalues_`, `eigenvalue_errors_` and `coefficients_`."""

    kind: Problem

    @property
    def value(self) -> str:
        """The name of one value, such as "singular_value"."""
        return self.kind.value.replace(" ", "_")

    @property
    def values(self) -> str:
        """The attribute for the values."""
        return f"{self.value}s_"

    @property
    def errors(self) -> str:
        """The attribute for the ends of the values' intervals."""
        return f"{self.value}_errors_"

    @property
    def functions(self) -> Mapping[str, str]:
        """The attributes for coefficients, each with the side, "left" or "right", whose functions it has."""
        first, *others = self.kind.sides
        return {"coefficients_": first, **{f"{side}_coefficients_": side for side in others}}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all attributes."""
        support = ("support_", "right_support_") if self.kind.two_sided else ("support_",)
        return (self.values, self.errors, *self.functions, *COMMON, *support)
