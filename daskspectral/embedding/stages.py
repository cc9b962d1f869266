"""Solution with its rank: columns that the optimum does not have are dropped, missing ones are added."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.embedding.ascent import AscentProblem, Iterate, maximize_lbfgs
from daskspectral.embedding.certificate import Certificate

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")

RANK = 6  # initial columns
STAGES = (1e-2, 1e-4, 1e-6, 1e-8)  # residuals at each of which small columns are dropped
RESIDUAL = 3e-12  # the last one
DROPPED = 0.02  # singular values of E below this share of the largest are dropped, at first
WARM_UP = 2  # initial power steps
STEEPER = 20.0  # factor of this share after each failed certificate
ROUNDS = 8
SPENT = 1e-9  # an objective below this share of the first one: the kernel has no more columns
NOTHING = 1e-12  # eigenvalues of B below this share of the largest are rounding errors


@dataclass(frozen=True, eq=False)
class SDPSolution:
    """Coordinates of the `problem`, columns of E by descending eigenvalue, and history of the ascent."""

    problem: Any
    point: Array
    objective: float
    eigenvalues: Array
    certificate: Certificate
    objectives: tuple[float, ...]

    @property
    def passes(self) -> int:
        return len(self.objectives)

    @property
    def rank(self) -> int:
        return len(self.eigenvalues)


def solve_accelerated(problem: AscentProblem, start: Array, *, tolerance: float, max_passes: int) -> SDPSolution:
    """Maximize by quasi-Newton steps from the coordinates `start` (m, r), and determine the rank.

    Ends if the relative duality gap is within `tolerance`, or after `max_passes`. After each stage small columns of E
    are dropped, or a column along the eigenvector of a negative eigenvalue of the certificate is added (Boumal,
    Voroninski and Bandeira 2016).
    """
    point, cut = start, DROPPED
    objectives: list[float] = []
    best: SDPSolution | None = None
    for attempt in range(ROUNDS):
        last = _ascend(problem, point, cut, max_passes, objectives)
        certificate = problem.certify(last.point, tolerance)
        solution = _solution(problem, last, certificate, objectives)
        logger.info("round %d: %s after %d passes", attempt + 1, certificate, len(objectives))
        if best is None or certificate.optimal or solution.objective > best.objective:
            best = solution
        if certificate.optimal or len(objectives) >= max_passes or certificate.direction is None:
            break
        point, cut = problem.with_column(last.point, certificate.direction), cut / STEEPER
    assert best is not None
    return replace(best, objectives=tuple(objectives))


def solve_power(problem: AscentProblem, start: Array, *, tolerance: float, max_passes: int) -> SDPSolution:
    """Maximize by the projected power method with fixed rank, until its certificate holds."""
    objectives: list[float] = []
    point = start
    for stage in (*STAGES, 1e-10, 1e-12):
        left = max(1, max_passes - len(objectives))
        last, passes = maximize_lbfgs(problem, point, residual=stage, max_passes=left, warm_up=left)
        objectives.extend(passes)
        point = last.point
        if stage > tolerance and len(objectives) < max_passes:
            continue
        certificate = problem.certify(point, tolerance)
        if certificate.optimal or len(objectives) >= max_passes:
            break
    return _solution(problem, last, certificate, objectives)


SOLVERS = {"accelerated": solve_accelerated, "power": solve_power}


def _ascend(problem: AscentProblem, point: Array, cut: float, max_passes: int, objectives: list[float]) -> Iterate:
    """Return the iterate at the last residual, without small columns."""
    stages = list(STAGES)

    def reducible(now: Iterate) -> bool:
        passed = False
        while stages and now.residual <= stages[0]:
            passed = bool(stages.pop(0))
        return passed and _reduced(now, cut).shape[1] < now.point.shape[1]

    while True:
        last, passes = maximize_lbfgs(
            problem,
            point,
            residual=RESIDUAL,
            max_passes=max(1, max_passes - len(objectives)),
            warm_up=0 if objectives else WARM_UP,
            stop=reducible,
        )
        objectives.extend(passes)
        point = _reduced(last, cut)
        if len(objectives) >= max_passes or point.shape[1] == last.point.shape[1]:
            return last


def _solution(problem: AscentProblem, last: Iterate, certificate: Certificate, objectives: list[float]) -> SDPSolution:
    values, turn = np.linalg.eigh(last.moment)
    kept = np.flatnonzero(values > NOTHING * values[-1])[::-1]
    return SDPSolution(
        problem, last.point @ turn[:, kept], last.objective, values[kept], certificate, tuple(objectives)
    )


def _reduced(last: Iterate, cut: float) -> Array:
    """Return the coordinates without directions in which E is small."""
    values, turn = np.linalg.eigh(last.moment)
    kept = np.sqrt(np.maximum(values, 0)) > cut * np.sqrt(values[-1])
    return last.point if kept.all() else last.point @ turn[:, kept][:, ::-1]


def solve_stages(
    problem: AscentProblem,
    start: Callable[[int], Array],
    solve: Callable[[AscentProblem, Array], SDPSolution],
    count: int | None,
) -> tuple[SDPSolution, ...]:
    """Return stages with `count` columns together, or fewer if the kernel has no more; one stage for None.

    `start(k)` are the initial coordinates of stage k.
    """
    stages: list[SDPSolution] = []
    while True:
        solution = solve(problem, start(len(stages)))
        if stages and not solution.objective > SPENT * stages[0].objective:
            return tuple(stages)
        stages.append(solution)
        if count is None or sum(stage.rank for stage in stages) >= count:
            return tuple(stages)
        problem = problem.deflated(solution.point)
        if problem.is_zero:
            return tuple(stages)
