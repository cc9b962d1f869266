"""In which functions a solution is sought: those that are smooth for what the data see of them, or all above a cut.

`Regularized`, the default, reports Rayleigh-Ritz values in the span of the leading functions of the penalised problem.
`Truncated` takes all directions of the Gram matrix that are above rounding, for comparisons to rounding.
`BurerMonteiro` is that of an `SDPEmbedding`.

    >>> import daskspectral as dsp
    >>> dsp.SpectralDecomposition(solver=dsp.solvers.Regularized(0.1)).get_params()["solver__penalty"]
    0.1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from daskspectral.registry import Parameterised
from daskspectral.validation import NOT_NEGATIVE, check_integer, check_number, check_option, check_type

__all__ = ["BurerMonteiro", "Truncated", "Regularized"]

Given = TypeVar("Given", float, float | str)


@dataclass(frozen=True)
class Regularized(Parameterised):
    """The solution among the functions that are smoothest for what the data see of them; values carry no penalty.

    Parameters
    ----------
    penalty : float or "auto"
        Strength of the penalty on rough functions, usually 1. It is c in c κ / n times the squared norm of a function,
        κ the roughness of the form's functionals and n the number of rows; scale-invariant. "auto": chosen with the
        kernel, .1 or 1, and from .01 to 100 of operators with singular values; 1 with a kernel that is given. On a
        Fourier lattice 1, chosen from 1e-4 to 1 with a kernel that is given. What is chosen does not depend on the unit
        of sample weights: these multiply c where they count rows more than once.
    """

    cut: ClassVar = False
    rtol: ClassVar = None
    min_support: ClassVar = 0.0
    ridge: ClassVar = 0.0

    penalty: float | str = "auto"

    def __post_init__(self) -> None:
        if self.penalty != "auto":
            object.__setattr__(self, "penalty", check_number("penalty", self.penalty, NOT_NEGATIVE))

    def resolved(self, chosen: Given) -> float | Given:
        """c: the given one, or the one that was `chosen` for "auto"."""
        return chosen if self.penalty == "auto" else float(self.penalty)


@dataclass(frozen=True)
class Truncated(Parameterised):
    """The solution in all directions of the Gram matrices above a relative cut, of functions scaled to unit norm.

    Parameters
    ----------
    rtol : float, optional
        Relative cut of the Gram matrices' eigenvalues; by default 1e-10 in float64, 1e-6 in float32.
    min_support : float
        Functions of a radial kernel that rest on fewer effective points than this, (sum φ)² / sum φ², are left out,
        with a RankWarning: their eigenvalues are an accident of the few points. A row of weight 2 counts as two;
        weights w with sum w < (sum w)² / sum w², such as probabilities, are scaled to equality first.
    ridge : float
        Added to a symmetric form's diagonal, times its mean; never to the Gram matrix.
    """

    cut: ClassVar = True
    penalty: ClassVar = None

    rtol: float | None = None
    min_support: float = 10.0
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if self.rtol is not None:
            check_number("rtol", self.rtol, "(0, 1)")
        for name in ("min_support", "ridge"):
            object.__setattr__(self, name, check_number(name, getattr(self, name), NOT_NEGATIVE))

    def resolved(self, chosen: Any) -> None:
        """No penalty."""


@dataclass(frozen=True)
class BurerMonteiro(Parameterised):
    """How an `SDPEmbedding` ascends to its optimum.

    Parameters
    ----------
    method : {"accelerated", "power"}
        Quasi-Newton ascent that finds the rank on the way, or the paper's projected power method.
    tolerance : float
        Duality gap, relative to the objective, at which the solution counts as optimal.
    max_passes : int
        Products with the kernel after which the ascent ends, optimal or not.
    """

    method: str = "accelerated"
    tolerance: float = 1e-10
    max_passes: int = 10_000

    def __post_init__(self) -> None:
        check_option("method", self.method, ("accelerated", "power"))
        check_number("tolerance", self.tolerance, "(1e-100, 1e100)")
        check_integer("max_passes", self.max_passes)


Solving = Regularized | Truncated


def solving(value: Any) -> Solving:
    """The solver of an estimator, `Regularized()` by default. Raises TypeError for anything else."""
    expected = "Regularized(penalty) or Truncated(rtol) of daskspectral.solvers, or None for the first"
    found: Solving = Regularized() if value is None else value
    check_type("solver", found, (Regularized, Truncated), expected)
    return found
