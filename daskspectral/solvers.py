"""Solvers of the generalized eigenvalue problem: by regularization or by truncation of the Gram matrix.

>>> import daskspectral as dsp
>>> dsp.SpectralDecomposition(solver=dsp.solvers.Regularized(0.1)).get_params()["solver__penalty"]
0.1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from daskspectral.registry import Parameterized
from daskspectral.validation import NOT_NEGATIVE, check_integer, check_number, check_option, check_type

__all__ = ["BurerMonteiro", "Truncated", "Regularized"]

Given = TypeVar("Given", float, float | str)


@dataclass(frozen=True)
class Regularized(Parameterized):
    """Rayleigh-Ritz solution in the span of the smoothest functions; values do not include the penalty.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        Strength c of the penalty on rough functions, c kappa / n times the squared norm of a function, kappa the
        roughness of the form's functionals and n the number of rows; scale-invariant. "auto": chosen with the kernel,
        0.1 or 1, and from 0.01 to 100 for operators with singular values; 1 if the kernel is fixed. On a FourierBasis
        1, chosen from 1e-4 to 1 if the kernel is fixed. Sample weights multiply c if they count rows more than once.

    See Also
    --------
    Truncated : Solution without a penalty.

    Examples
    --------
    >>> Regularized(0.1)
    Regularized(penalty=0.1)
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
        """Return the penalty c, which is `chosen` if penalty is "auto"."""
        return chosen if self.penalty == "auto" else float(self.penalty)


@dataclass(frozen=True)
class Truncated(Parameterized):
    """Solution in all directions of the Gram matrices above a relative cutoff, at unit norms.

    Parameters
    ----------
    rtol : float, optional
        Relative cutoff of the Gram matrices' eigenvalues; by default 1e-10 in float64, 1e-6 in float32.
    min_support : float, default=10.0
        Least effective number of rows, (sum φ)² / sum φ², of a function of a radial kernel. Functions with fewer are
        dropped with a RankWarning: their eigenvalues are artifacts. Weights w with sum w < (sum w)² / sum w², such as
        probabilities, are scaled to equality first.
    ridge : float, default=0.0
        Added to the diagonal of a symmetric form, relative to its mean; never to the Gram matrix.

    See Also
    --------
    Regularized : Solution with a penalty on rough functions.

    Examples
    --------
    >>> Truncated(1e-8).rtol
    1e-08
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
        """Return None: there is no penalty."""


@dataclass(frozen=True)
class BurerMonteiro(Parameterized):
    """Low-rank optimizer of the semidefinite program of an `SDPEmbedding`.

    Parameters
    ----------
    method : {"accelerated", "power"}, default="accelerated"
        Quasi-Newton ascent with an adaptive rank, or the projected power method of the paper.
    tolerance : float, default=1e-10
        Duality gap, relative to the objective, at which the solution is optimal.
    max_passes : int, default=10000
        Maximum number of products with the kernel matrix.

    See Also
    --------
    Regularized : Default solver of `SpectralDecomposition`.

    Examples
    --------
    >>> BurerMonteiro("power").max_passes
    10000
    """

    method: str = "accelerated"
    tolerance: float = 1e-10
    max_passes: int = 10_000

    def __post_init__(self) -> None:
        check_option("method", self.method, ("accelerated", "power"))
        check_number("tolerance", self.tolerance, "(1e-100, 1e100)")
        check_integer("max_passes", self.max_passes)


Solving = Regularized | Truncated


def solver_of(value: Any) -> Solving:
    """Return the solver of an estimator, `Regularized()` for None; raise TypeError for another type."""
    expected = "Regularized(penalty) or Truncated(rtol) of daskspectral.solvers, or None for the first"
    found: Solving = Regularized() if value is None else value
    check_type("solver", found, (Regularized, Truncated), expected)
    return found
