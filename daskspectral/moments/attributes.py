"""Names of the attributes under which an estimator keeps a solution, by the kind of its problem."""

from __future__ import annotations

from daskspectral.solve import Problem

# of every kind, besides values, their intervals, coefficients and supports
COMMON = (
    "standard_errors_",
    "validation_values_",
    "multiplets_",
    "function_errors_",
    "discretization_errors_",
    "reliable_",
    "n_constants_",
    "rank_",
    "residuals_",
    "message_",
)


class Attributes:
    """The attributes of a solution, such as `eigenvalues_`, `eigenvalue_errors_` and `coefficients_`.

    Attributes
    ----------
    value : str
        Name of one value, such as "singular_value".
    values, errors : str
        Attributes for the values, and for the ends of their intervals.
    functions : dict
        Attributes for coefficients, each with the side, "left" or "right", whose functions it has.
    supports : dict
        Attributes for the points on which functions rest, each with the side.
    names : tuple of str
        Names of all attributes.
    """

    def __init__(self, kind: Problem):
        first, *others = kind.sides
        self.kind, self.value = kind, kind.value.replace(" ", "_")
        self.values, self.errors = f"{self.value}s_", f"{self.value}_errors_"
        self.functions = {"coefficients_": first, **{f"{side}_coefficients_": side for side in others}}
        self.supports = {"support_": "left"} | ({"right_support_": "right"} if kind.two_sided else {})
        self.names = (self.values, self.errors, *self.functions, *COMMON, *self.supports)
