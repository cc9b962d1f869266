"""Bases: the p functions whose span the operator is restricted to."""

from daskspectral.basis.base import Arena, Basis, Block, Contraction, Evaluation
from daskspectral.basis.callable import CallableBasis
from daskspectral.basis.concatenated import Concatenated, ConstantBasis
from daskspectral.basis.fourier import FourierBasis
from daskspectral.basis.harmonic import HarmonicBasis
from daskspectral.basis.invariant import InvariantBasis
from daskspectral.basis.landmark import LandmarkBasis
from daskspectral.basis.monomial import MonomialBasis

__all__ = [
    "Arena",
    "Basis",
    "Block",
    "CallableBasis",
    "Concatenated",
    "ConstantBasis",
    "Contraction",
    "Evaluation",
    "FourierBasis",
    "HarmonicBasis",
    "InvariantBasis",
    "LandmarkBasis",
    "MonomialBasis",
]
