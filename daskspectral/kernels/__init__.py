"""Kernels k(x, y): a profile of |x - y|^2 (radial) or of x.y (dot product), with closed-form derivatives."""

from daskspectral.kernels.algebra import FunctionKernel
from daskspectral.kernels.base import Kernel, ParameterKernel
from daskspectral.kernels.dot import Dot, DotKernel, Linear, Polynomial
from daskspectral.kernels.names import parse
from daskspectral.kernels.periodic import Periodic
from daskspectral.kernels.radial import Exponential, Gaussian, Matern, Radial, RadialKernel

__all__ = [
    "Dot",
    "DotKernel",
    "Exponential",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "Linear",
    "Matern",
    "ParameterKernel",
    "Periodic",
    "Polynomial",
    "Radial",
    "RadialKernel",
    "parse",
]
