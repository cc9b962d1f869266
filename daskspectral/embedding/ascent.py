"""Maximization with one pass over the data per evaluation: power method and L-BFGS."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.embedding.certificate import Certificate

Array = NDArray[np.floating[Any]]

MEMORY = 20  # number of differences of the quasi-Newton method
ROUNDING = 1e-13  # relative rounding error of an objective
HALVINGS = 2  # shorter steps before the power step


@dataclass(frozen=True, eq=False)
class Iterate:
    """Result of one pass at a point: objective, gradient, and next point of the power method.

    `residual` is the relative norm of the gradient if the power step is half of it; `moment` (r, r) is Eᵀ E.
    """

    point: Array
    objective: float
    gradient: Array
    power: Array
    residual: float
    moment: Array


class AscentProblem(ABC):
    """Problem max Tr(Abar B) over B = E Eᵀ with diag(B) = d, in coordinates (m, r) that rotate as E (n, r) does."""

    @abstractmethod
    def evaluate(self, point: Array) -> Iterate: ...

    @abstractmethod
    def certify(self, point: Array, tolerance: float) -> Certificate: ...

    @abstractmethod
    def with_column(self, point: Array, direction: Array) -> Array:
        """Return the coordinates with a small column along the certificate's direction."""

    @property
    @abstractmethod
    def is_zero(self) -> bool:
        """True if Abar is zero up to rounding."""

    @abstractmethod
    def deflated(self, point: Array) -> AscentProblem:
        """Return the problem of the next columns, for Abar - Abar E (E^T Abar E)^+ E^T Abar."""


def maximize_lbfgs(
    problem: AscentProblem,
    start: Array,
    *,
    residual: float,
    max_passes: int,
    warm_up: int = 2,
    stop: Callable[[Iterate], bool] | None = None,
) -> tuple[Iterate, list[float]]:
    """Return the last iterate of limited-memory BFGS with power steps, and the objective after each pass.

    The objective never decreases, by approximate Wolfe conditions (Hager and Zhang 2005). Power steps (Algorithm 1,
    Fanuel et al. 2022) are the first `warm_up` ones, and after three rejections. The iteration ends at `residual`,
    after `max_passes`, if `stop` returns True, or if no step improves.
    """
    objectives: list[float] = []

    def evaluate(point: Array) -> Iterate:
        found = problem.evaluate(point)
        objectives.append(found.objective)
        return found

    now = evaluate(start)
    for _ in range(warm_up):
        if now.residual <= residual or len(objectives) >= max_passes:
            break
        now = evaluate(now.power)
    pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)
    best, stalled = now, 0
    while now.residual > residual and len(objectives) < max_passes and stalled < 2 * MEMORY:
        following = _quasi_newton(evaluate, now, pairs, max_passes - len(objectives)) if pairs else None
        if following is None:
            if len(objectives) >= max_passes:
                break
            pairs.clear()
            following = evaluate(now.power)
        change, bend = following.point - now.point, now.gradient - following.gradient
        if np.vdot(change, bend) > 1e-12 * np.linalg.norm(change) * np.linalg.norm(bend):
            pairs.append((change, bend))
        now = following
        stalled = 0 if now.residual < 0.9 * best.residual else stalled + 1
        if now.residual < best.residual or now.objective > best.objective * (1 + ROUNDING):
            best = now
        if stop is not None and stop(now):
            best = now
            break
    return best, objectives


def _quasi_newton(
    evaluate: Callable[[Array], Iterate], now: Iterate, pairs: deque[tuple[Array, Array]], left: int
) -> Iterate | None:
    """Return the iterate after one step, or None if it does not improve."""
    direction = _two_loop(now.gradient, pairs)
    slope = float(np.vdot(now.gradient, direction))
    if not slope > 0:
        return None
    step = 1.0
    for _ in range(min(1 + HALVINGS, left)):
        found = evaluate(now.point + step * direction)
        after = float(np.vdot(found.gradient, direction))
        rise = found.objective - now.objective
        if rise >= 1e-4 * step * slope and rise > ROUNDING * abs(now.objective):
            return found
        if abs(rise) <= ROUNDING * abs(now.objective) and abs(after) <= 0.9 * slope:
            return found
        secant = slope / (slope - after) if after < slope else 0.1
        step *= min(max(secant, 0.1), 0.5)
    return None


def _two_loop(gradient: Array, pairs: deque[tuple[Array, Array]]) -> Array:
    """Return the inverse Hessian times the gradient (Nocedal 1980)."""
    q = gradient.copy()
    weights = []
    for change, bend in reversed(pairs):
        weight = np.vdot(change, q) / np.vdot(change, bend)
        q -= weight * bend
        weights.append(weight)
    change, bend = pairs[-1]
    q *= np.vdot(change, bend) / np.vdot(bend, bend)
    for (change, bend), weight in zip(pairs, reversed(weights), strict=True):
        q += change * (weight - np.vdot(bend, q) / np.vdot(change, bend))
    return q
