"""Operators: a form with the Gram forms that give its functions unit norm, and what is known of it."""

from daskspectral.operators.base import SOLVERS, Operator
from daskspectral.operators.custom import BilinearForm, SymmetricForm
from daskspectral.operators.differential import DifferentialOperator, PartialDerivative, TangentPropagation
from daskspectral.operators.diffusion import AnisotropicDiffusion, Generator, Schroedinger
from daskspectral.operators.laplacian import MANIFOLDS, Laplacian
from daskspectral.operators.paired import Augmentation, Cross, Transfer
from daskspectral.operators.registry import NAMES, operator_from_state, parse

__all__ = [
    "MANIFOLDS",
    "NAMES",
    "SOLVERS",
    "AnisotropicDiffusion",
    "Augmentation",
    "BilinearForm",
    "Cross",
    "DifferentialOperator",
    "Generator",
    "Laplacian",
    "Operator",
    "PartialDerivative",
    "Schroedinger",
    "SymmetricForm",
    "TangentPropagation",
    "Transfer",
    "operator_from_state",
    "parse",
]
