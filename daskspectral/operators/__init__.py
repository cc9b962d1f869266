"""Operators: a form with the Gram forms that give its functions unit norm, and what is known of it."""

from daskspectral.operators.base import SOLVERS, Operator
from daskspectral.operators.custom import BilinearForm, SymmetricForm
from daskspectral.operators.differential import DifferentialOperator, PartialDerivative, TangentPropagation
from daskspectral.operators.diffusion import AnisotropicDiffusion, Generator, Schroedinger
from daskspectral.operators.laplacian import Laplacian
from daskspectral.operators.names import parse
from daskspectral.operators.paired import Augmentation, Cross, Transfer

__all__ = [
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
    "parse",
]
