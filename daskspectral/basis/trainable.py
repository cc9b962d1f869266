"""Bases whose functions are trained before they are measured: what their training is told, and what it asks of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from daskspectral.basis.base import Array, Basis
from daskspectral.kernels.base import positive, whole

ROUNDING = 1e-12  # of its mean: a column of less spread is constant


@dataclass(frozen=True, eq=False, kw_only=True)
class Trainable(Basis):
    """Functions with parameters, which an estimator trains by the loss of its operator where they are not `frozen`.

    Parameters
    ----------
    outputs : int, optional
        Outputs that are trained; by default as many as there are components.
    mu : float or sequence of float, optional
        mu_j of equation (18), above the eigenvalues that are wanted: one for all outputs, or one for each, by which
        these become single eigenfunctions. By default twice the last value that is wanted, as rows held out tell it in
        the course of the training.
    steps, batch, rate : int, int, float
        Steps of Adam, rows of each, and the first learning rate, which falls to 0 along a cosine.
    rows : int
        Rows in memory, from which batches are drawn; of larger data they are drawn anew in the course of the training.
    checks : int
        How often rows held out tell whether the functions are better than before; the best are kept.

    Examples
    --------
    >>> from daskspectral.basis import NeuralBasis
    >>> basis = NeuralBasis((32, 32), steps=500).asking(4)
    >>> isinstance(basis, Trainable), basis.frozen, basis.outputs
    (True, False, 4)
    """

    outputs: int | None = None
    mu: Any = None
    steps: int = 4000
    batch: int = 256
    rate: float = 2e-3
    rows: int = 100_000
    checks: int = 16

    def __post_init__(self) -> None:
        least_of = {"steps": 1, "batch": 4, "rows": 1, "checks": 1, **({} if self.outputs is None else {"outputs": 1})}
        for name, least in least_of.items():
            whole(f"{name} of a {type(self).__name__}", getattr(self, name), least)
        positive("rate, the learning rate,", self.rate)
        if self.mu is not None:
            object.__setattr__(self, "mu", _checked_mu(self.mu))

    @property
    @abstractmethod
    def frozen(self) -> bool:
        """Whether its functions are trained, and stay as they are."""

    @property
    @abstractmethod
    def variables(self) -> Any:
        """What is trained: arrays, in lists and mappings."""

    @abstractmethod
    def with_variables(self, variables: Any) -> Self:
        """The same functions at other parameters, frozen."""

    @property
    def origin(self) -> Array:
        """Where points are counted from by `apply`, (d,): in single precision those far from 0 would be alike."""
        return np.zeros(self.dimension)

    @abstractmethod
    def apply(self, variables: Any, x: Any) -> Any:
        """The outputs (c, k) at points (c, d), counted from the origin, in JAX."""

    @abstractmethod
    def started(self, points: Array, outputs: int, seed: int, metric: bool = True) -> Self:
        """The functions before the first step, for points (m, d) like these. Raises ValueError where they do not fit.

        `metric` says that the forms take derivatives by the points, so that columns keep their units.
        """

    def asking(self, outputs: int) -> Self:
        """The same with a number of outputs, where none is given."""
        return self if self.outputs is not None or self.frozen else replace(self, outputs=outputs)


def place_of(points: Array, metric: bool) -> tuple[Array, Array]:
    """The means of columns, and scales by which these have about the variance 1.

    Of forms with derivatives (`metric`) all columns have the scale of the widest one: on thin ones slopes would begin
    steep, and stay so.
    """
    middle, spread = points.mean(axis=0), points.std(axis=0)
    scale = np.full(len(spread), spread.max(initial=0.0)) if metric else spread.copy()
    scale[scale <= ROUNDING * np.abs(middle)] = 1.0  # a column that is constant
    scale[scale == 0] = 1.0
    return middle, scale


def _checked_mu(mu: Any) -> Any:
    """mu as one float or a tuple of them. Raises ValueError for others, and where one is not positive."""
    try:
        found = np.asarray(mu, dtype=float)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.ndim > 1 or not found.size or not (np.isfinite(found).all() and (found > 0).all()):
        raise ValueError(f"mu is a positive number, or one for each output; it is {mu!r}")
    return float(found) if found.ndim == 0 else tuple(found.tolist())
