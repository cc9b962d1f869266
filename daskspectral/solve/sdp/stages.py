"""More columns than the optimum has: each stage is the optimum of what the stages before it left of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.solve.sdp.ascent import Problem
from daskspectral.solve.sdp.staircase import SDPSolution

Array = NDArray[np.floating[Any]]
SPENT = 1e-9  # an objective below this share of the first one: the kernel holds no more columns


@dataclass(frozen=True, eq=False)
class Stage:
    """The columns of one stage: the problem whose optimum they are, and its solution with certificate."""

    problem: Any
    solution: SDPSolution

    @property
    def rank(self) -> int:
        """The number of columns."""
        return len(self.solution.eigenvalues)


def solve_stages(
    problem: Problem, start: Callable[[int], Array], solve: Callable[[Problem, Array], SDPSolution], count: int | None
) -> tuple[Stage, ...]:
    """As many stages as have `count` columns together, the first one alone for None; fewer where the kernel is spent.

    `start(k)` are the first coordinates of stage k.
    """
    stages: list[Stage] = []
    while True:
        solution = solve(problem, start(len(stages)))
        if stages and not solution.objective > SPENT * stages[0].solution.objective:
            return tuple(stages)
        stages.append(Stage(problem, solution))
        if count is None or sum(stage.rank for stage in stages) >= count:
            return tuple(stages)
        problem = problem.deflated(solution.point)
        if problem.spent:
            return tuple(stages)
