"""The semidefinite embedding: maximise Tr(Abar B) over B psd with a bounded diagonal, and prove the optimum."""

from daskspectral.solve.sdp.ascent import Ascent, Iterate, Problem, accelerated, power_method
from daskspectral.solve.sdp.certificate import Certificate
from daskspectral.solve.sdp.exact import Deflated, ExactProblem
from daskspectral.solve.sdp.lowrank import Frame, Largest, LowRankProblem, Prove, Pull, alpha
from daskspectral.solve.sdp.staircase import (
    RANK,
    SOLVERS,
    SDPSolution,
    Stage,
    solve_accelerated,
    solve_power,
    solve_stages,
)

__all__ = [
    "Ascent",
    "Certificate",
    "Deflated",
    "ExactProblem",
    "Frame",
    "Iterate",
    "Largest",
    "LowRankProblem",
    "Problem",
    "Prove",
    "Pull",
    "RANK",
    "SOLVERS",
    "SDPSolution",
    "Stage",
    "accelerated",
    "alpha",
    "power_method",
    "solve_accelerated",
    "solve_power",
    "solve_stages",
]
