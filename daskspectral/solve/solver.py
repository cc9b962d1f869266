"""What a spectral solver is given, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.registry import Named
from daskspectral.solve.pencil import Penalty
from daskspectral.solve.whitening import Whitening

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Problem:
    """A form <f, L g> between p left and q right functions, as means over the rows.

    `form` (p, q); `gram` (p, p) and `right_gram` (q, q), None where the right functions are the left ones. `count`
    values are wanted, on the directions of the Gram matrices above the relative `cut`. With `means`, (p,) and (q,), the
    means of the functions are subtracted. `ridge` times the mean of a symmetric form's diagonal is added to the
    diagonal. With a `penalty` the solution is sought among the leading functions of the penalised problem, else among
    all directions above the cut. `descending` takes the largest eigenvalues first; `ranking` orders complex ones, by
    "real" part or by "modulus". A symmetric problem is solved in a `span` of orthonormal functions where one is given.
    `norm` (p, p) is the squared norm of the function space, for solvers that hold values against it.
    """

    form: Array
    gram: Array
    count: int
    cut: float
    right_gram: Array | None = None
    means: tuple[Array, Array] | None = None
    ridge: float = 0.0
    descending: bool = False
    ranking: str = "real"
    penalty: Penalty | None = None
    span: Whitening | None = None
    norm: Array | None = None


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Values (k,), coefficients of the left and right functions (p, k) and (q, k), ranks, residuals (k,).

    Values and coefficients are complex from the non-symmetric solver, real from the others. `status` describes the
    outcome in words.
    """

    values: NDArray[np.inexact[Any]]
    left: NDArray[np.inexact[Any]]
    right: NDArray[np.inexact[Any]]
    rank: int | tuple[int, int]
    residuals: Array
    status: str = ""


class Solver(Named, ABC):
    """Problem -> Spectrum, and the attributes by which an estimator shows it.

    `values` names the estimator's attribute for the values; `functions` maps its
    attributes for coefficients to the side of the spectrum, "left" or "right", that each one holds.
    """

    values: ClassVar[str] = "eigenvalues_"
    functions: ClassVar[Mapping[str, str]] = {"coefficients_": "right"}
    two_sided: ClassVar[bool] = False
    """Whether left and right functions have a Gram matrix each; the estimator then shows both sides."""
    needs_symmetry: ClassVar[bool] = False
    """Whether the form must be symmetric."""
    by_norm: ClassVar[bool] = False
    """Whether values are held against the squared norm of the function space, in place of the Gram matrix."""
    largest_first: ClassVar[bool] = False
    """Whether values descend, whatever the operator says."""

    @abstractmethod
    def solve(self, problem: Problem) -> Spectrum:
        """The values and functions of a problem."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that an estimator has from this solver."""
        support = ("support_", "right_support_") if self.two_sided else ("support_",)
        errors = (self.errors, "standard_errors_", "held_out_", "groups_", "function_errors_", "approximation_")
        known = (*errors, "trusted_", "constants_")
        return (self.values, *self.functions, "rank_", "residuals_", "status_", *support, *known)

    @property
    def errors(self) -> str:
        """The estimator's attribute for the ends of the values' intervals."""
        return f"{self.values.removesuffix('s_')}_errors_"


def described(
    problem: Problem,
    values: NDArray[np.inexact[Any]],
    left: NDArray[np.inexact[Any]],
    right: NDArray[np.inexact[Any]],
    rank: int | tuple[int, int],
    residuals: Array,
) -> Spectrum:
    """A spectrum whose status says how many values of how many wanted there are, the ranks and the largest residual."""
    sizes = problem.form.shape
    ranks = f"rank {rank} of {sizes[0]}"
    if isinstance(rank, tuple):
        ranks = f"ranks {rank[0]} of {sizes[0]} and {rank[1]} of {sizes[1]}"
    known = f"{len(residuals)} of the {problem.count} values wanted"
    status = f"{known}; {ranks}; residuals up to {residuals.max(initial=0.0):.1g}"
    return Spectrum(values, left, right, rank, residuals, status)
