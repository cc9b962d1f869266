"""Embeddings: certified semidefinite embeddings and diffusion maps."""

from daskspectral.embedding.certificate import Certificate
from daskspectral.embedding.diffusion import DiffusionMap
from daskspectral.embedding.diffusion_functions import DiffusionFunctions
from daskspectral.embedding.extension import Extension
from daskspectral.embedding.kernel_problem import LearnedKernel
from daskspectral.embedding.kernelized import KernelEmbedding
from daskspectral.embedding.sdp import SDPEmbedding

__all__ = [
    "Certificate",
    "DiffusionFunctions",
    "DiffusionMap",
    "Extension",
    "KernelEmbedding",
    "LearnedKernel",
    "SDPEmbedding",
]
