"""Names of the attributes of an estimator for each kind of problem."""

from __future__ import annotations

from daskspectral.solve import Problem

# for every kind, in addition to values, intervals, coefficients and supports
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
    """Names of the attributes of a solution, such as `eigenvalues_` and `coefficients_`.

    Attributes
    ----------
    value : str
        Name of one value, such as "singular_value".
    values, errors : str
        Attributes with the values, and with the ends of their intervals.
    functions : dict
        Attributes with coefficients, and the side of their functions, "left" or "right".
    supports : dict
        Attributes with the effective numbers of rows of functions, and the side.
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
