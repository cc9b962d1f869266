"""In which functions a solution is sought: those that are smooth for what the data see of them, or all above a cut.

`Penalised`, the default, reports Rayleigh-Ritz values in the span of the leading functions of the penalised problem.
`Cut` takes all directions of the Gram matrix that are above rounding, for comparisons to rounding. `Ascent` is that of
an `SDPEmbedding`.

    >>> import daskspectral as dsp
    >>> dsp.SpectralDecomposition(solver=dsp.solvers.Penalised(0.1)).get_params()["solver__penalty"]
    0.1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from daskspectral.kernels.base import check_flag, is_number, positive, whole
from daskspectral.registry import Parameterised

__all__ = ["Ascent", "Cut", "Penalised"]

Given = TypeVar("Given", float, float | str)


@dataclass(frozen=True)
class Penalised(Parameterised):
    """The solution among the functions that are smoothest for what the data see of them; values carry no penalty.

    Parameters
    ----------
    penalty : float or "auto"
        c of the penalty c κ / n times the squared norm of a function, κ the roughness of the form's functionals and n
        the number of rows; scale-invariant. "auto": chosen with the kernel, .1 or 1, and from .01 to 100 of operators
        with singular values; 1 with a kernel that is given. On a Fourier lattice 1, chosen from 1e-4 to 1 with a kernel
        that is given. What is chosen does not depend on the unit of sample weights: these multiply c where they count
        rows more than once.
    """

    cut: ClassVar = False
    rtol: ClassVar = None
    min_support: ClassVar = 0.0
    ridge: ClassVar = 0.0

    penalty: float | str = "auto"

    def __post_init__(self) -> None:
        if self.penalty != "auto":
            object.__setattr__(self, "penalty", _amount("penalty", self.penalty))

    def resolved(self, chosen: Given) -> float | Given:
        """c: the given one, or the one that was `chosen` for "auto"."""
        return chosen if isinstance(self.penalty, str) else float(self.penalty)


@dataclass(frozen=True)
class Cut(Parameterised):
    """The solution in all directions of the Gram matrices above a relative cut, of functions scaled to unit norm.

    Parameters
    ----------
    rtol : float, optional
        Relative cut of the Gram matrices' eigenvalues; default 1e-10 in float64, 1e-6 in float32.
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
        if self.rtol is not None and not 0 < positive("rtol", self.rtol) < 1:
            raise ValueError(f"rtol must lie in (0, 1); it is {self.rtol!r}")
        for name in ("min_support", "ridge"):
            object.__setattr__(self, name, _amount(name, getattr(self, name)))

    def resolved(self, chosen: Any) -> None:
        """No penalty."""


@dataclass(frozen=True)
class Ascent(Parameterised):
    """How an `SDPEmbedding` ascends to its optimum.

    Parameters
    ----------
    method : {"accelerated", "power"}
        Quasi-Newton ascent that finds the rank on the way, or the paper's projected power method.
    tolerance : float
        Duality gap, relative to the objective, at which the solution counts as optimal.
    max_passes : int
        Products with the kernel after which the ascent ends, optimal or not.
    warm_start : bool
        Whether a further `fit` starts its ascent from the embedding of the last one, as in a sweep over bandwidths.
    """

    method: str = "accelerated"
    tolerance: float = 1e-10
    max_passes: int = 10_000
    warm_start: bool = False

    def __post_init__(self) -> None:
        check_flag("warm_start", self.warm_start)
        if self.method not in ("accelerated", "power"):
            raise ValueError(f"method must be 'accelerated' or 'power'; it is {self.method!r}")
        if not is_number(self.tolerance) or not 1e-100 < self.tolerance < 1e100:
            raise ValueError(f"tolerance must be positive, 1e-100 to 1e100; it is {self.tolerance!r}")
        whole("max_passes", self.max_passes)


Solving = Penalised | Cut


def solving(value: Any) -> Solving:
    """The solver of an estimator, `Penalised()` by default. Raises TypeError for anything else."""
    found = Penalised() if value is None else value
    if not isinstance(found, (Penalised, Cut)):
        raise TypeError(
            f"solver must be daskspectral.solvers.Penalised(penalty) or Cut(rtol), and None is the first; got {value!r}"
        )
    return found


def _amount(name: str, value: Any) -> float:
    if not is_number(value) or value < 0:
        raise ValueError(f"{name} must be a number of 0 or more; it is {value!r}")
    return float(value)
