"""The semidefinite embedding: maximise Tr(Abar B) over B psd with a bounded diagonal, and prove the optimum."""

from daskspectral.solve.sdp.ascent import Ascended, Iterate, Problem, accelerated, power_method
from daskspectral.solve.sdp.certificate import Certificate
from daskspectral.solve.sdp.exact import Deflated, ExactProblem
from daskspectral.solve.sdp.lowrank import Frame, Largest, LowRankProblem, Prove, Pull, alpha
from daskspectral.solve.sdp.staircase import (
    RANK,
    SOLVERS,
    SDPSolution,
    SDPStage,
    solve_accelerated,
    solve_power,
    solve_stages,
)

__all__ = [
    "Ascended",
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
    "SDPStage",
    "accelerated",
    "alpha",
    "power_method",
    "solve_accelerated",
    "solve_power",
    "solve_stages",
]
