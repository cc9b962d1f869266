"""The semidefinite embedding: maximise Tr(Abar B) over B psd with a bounded diagonal, and prove it."""

from daskspectral.solve.sdp.ascent import Ascent, Iterate, Problem, accelerated, power_method
from daskspectral.solve.sdp.certificate import Certificate
from daskspectral.solve.sdp.exact import Deflated, ExactProblem
from daskspectral.solve.sdp.lowrank import Frame, Largest, LowRankProblem, Prove, Pull, alpha
from daskspectral.solve.sdp.staircase import RANK, SDPSolution, solve_sdp

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
    "SDPSolution",
    "accelerated",
    "alpha",
    "power_method",
    "solve_sdp",
]
