"""Landmarks: functions that have not seen the data yet, k(., y_i) at rows that a fit chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from daskspectral.kernels import Gaussian, Kernel
from daskspectral.kernels.base import LEAST_SCALE, is_number, whole
from daskspectral.kernels.names import NAMES
from daskspectral.landmarks import METHODS
from daskspectral.registry import Parameterised


class OpenKernel(Parameterised):
    """Functions of a kernel that may be left to the data: where a search sets its scale, it is a Gaussian."""

    kernel: Kernel | str

    def set_params(self, **params: Any) -> Self:
        if not isinstance(params.get("kernel", self.kernel), Kernel) and any(p.startswith("kernel__") for p in params):
            params = {"kernel": Gaussian("auto"), **params}
        return super().set_params(**params)


@dataclass(frozen=True, eq=False)
class Landmarks(OpenKernel):
    """k(., y_i) at landmarks y_i, with what is left to the data: the `basis` of an estimator, by default.

    A fit makes a `LandmarkBasis` of it. In a search `basis__kernel__scale` sets the scale, of a Gaussian where the
    kernel is "auto".

    Parameters
    ----------
    kernel : Kernel or "auto"
        k. "auto" compares a rough and a smooth kernel at the scales that are better than their neighbours, and in a
        metric in which slow functions change evenly (`kernels.Mahalanobis`), where functions have gradients; of a
        kernel with the scale "auto", as Gaussian("auto"), the scale is chosen.
    count : int or "auto"
        Their number p. "auto" is a quarter of the rows, and at most 500 (of fewer than 200 rows half, and at most 50);
        for a regression 500.
    method : {"uniform", "kmeans++", "cholesky", "farthest", "leverage"}
        How rows of the data are chosen (`help(daskspectral.landmarks)`).
    points : array (p, n_features), optional
        The y_i themselves, in the units of X; then neither `count` nor `method` counts.
    sample : int, optional
        Rows, drawn uniformly, among which the methods other than "uniform" choose; default max(10 p, 10 000).
    spread : float or "auto"
        J: landmarks are moved off the data by J scales of the kernel, in random directions; it helps where the data lie
        on a submanifold. "auto": .3 with a kernel that is chosen, for operators with derivatives; else 0.
    periods : mapping of int to float, optional
        The periods of columns of X by their numbers, as in {0: 2 * numpy.pi} for angles; the kernel is made periodic in
        them (`kernels.Periodic`).
    constant : bool, optional
        Add the constant function; by default where the operator kills it. To functions of your own it is added by
        Concatenated((ConstantBasis(d), basis)).
    exclude : bool, optional
        Whether rows that coincide with landmarks are left out of the sums where the form has derivatives, as long as
        nine tenths of the rows remain: a radial kernel has a zero gradient at its own landmark, which can make spurious
        small eigenvalues. By default only for kernels with a kink, such as Exponential; for other radial kernels such
        rows are in the sums, and in no fold while there are fewer than 100 rows to a landmark.

    Examples
    --------
    >>> from daskspectral.basis import Landmarks
    >>> basis = Landmarks(Gaussian(1.0), 50)
    >>> basis.set_params(kernel__scale=0.5).kernel
    Gaussian(scale=0.5)
    """

    kernel: Kernel | str = "auto"
    count: int | str = "auto"
    _: KW_ONLY
    method: str = "kmeans++"
    points: Any = None
    sample: int | None = None
    spread: float | str = "auto"
    periods: Mapping[int, float] | None = None
    constant: bool | None = None
    exclude: bool | None = None

    expects: ClassVar = {"kernel": Kernel}

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel) and self.kernel != "auto":
            names = ", ".join(c.__name__ for c in NAMES.values())
            raise TypeError(
                f"kernel must be one of daskspectral.kernels ({names}, or a function in Radial, Dot or "
                f'FunctionKernel), such as Gaussian(1.0), or "auto"; got {self.kernel!r}'
            )
        if np.ndim(self.count):
            raise ValueError(
                f"count is how many landmarks there are, or 'auto'; it is an array of shape {np.shape(self.count)}: "
                "give landmarks of your own as points="
            )
        if self.count != "auto":
            whole("count, the number of landmarks,", self.count)
        if self.method not in METHODS:
            raise ValueError(f"method must be {' or '.join(map(repr, METHODS))}; it is {self.method!r}")
        if self.sample is not None:
            whole("sample, the rows among which landmarks are chosen,", self.sample, self.least)
        if self.spread != "auto" and not (is_number(self.spread) and float(self.spread) >= 0):
            raise ValueError(f"spread must be a number of 0 or more, or 'auto'; it is {self.spread!r}")
        for name in ("constant", "exclude"):
            if not isinstance(getattr(self, name), (bool, type(None))):
                raise ValueError(f"{name} must be None or True or False; it is {getattr(self, name)!r}")
        check_periods(self.periods)

    @property
    def least(self) -> int:
        """The number of landmarks, 1 where it is left to the data."""
        return 1 if isinstance(self.count, str) else self.count

    @property
    def automatic(self) -> bool:
        """Whether the data decide the kernel or its scale."""
        return not isinstance(self.kernel, Kernel) or self.kernel.automatic

    @property
    def drawn(self) -> bool:
        """Whether rows of the data become landmarks."""
        return self.points is None

    def __repr__(self) -> str:
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        shown = {
            name: repr(value) for name, (value, own) in values.items() if type(value) is not type(own) or value != own
        }
        if self.points is not None:
            shown["points"] = f"<array {np.shape(self.points)}>"
        return f"Landmarks({', '.join(f'{name}={value}' for name, value in shown.items())})"

    def state(self) -> dict[str, Any]:
        periods = None if self.periods is None else {str(column): float(p) for column, p in self.periods.items()}
        points = None if self.points is None else np.asarray(self.points)
        return {**super().state(), "periods": periods, "points": points}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        periods = state["periods"]  # files have strings for keys
        return cls(**{**state, "periods": None if periods is None else {int(c): p for c, p in periods.items()}})


def check_periods(periods: Any) -> None:
    """Raise ValueError or TypeError unless periods are None or map numbers of columns to positive lengths."""
    if periods is None:
        return
    if not isinstance(periods, Mapping):
        raise TypeError(
            "periods maps the numbers of columns of X to their periods, such as {0: 2 * numpy.pi}; got "
            f"{type(periods).__name__}"
        )
    if not periods:
        raise ValueError("periods names no column; leave it out, or give {column: period}")
    for column, period in periods.items():
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (int, np.integer)):
            raise ValueError(
                f"periods maps the numbers of columns of X to lengths; {column!r} is no number of a column"
            )
        if not is_number(period) or not LEAST_SCALE < period < 1 / LEAST_SCALE:
            raise ValueError(
                f"a period is a positive number in the units of its column; of column {column} it is {period!r}"
            )
