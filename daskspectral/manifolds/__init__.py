"""Manifolds: normals, tangents, and the eigenspaces of their Laplace-Beltrami operator in closed form."""

from daskspectral.manifolds.base import Manifold
from daskspectral.manifolds.box import Box
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.implicit import Implicit
from daskspectral.manifolds.invariants import invariant_coefficients
from daskspectral.manifolds.isometry import Isometry
from daskspectral.manifolds.product import Product
from daskspectral.manifolds.rotations import SO3
from daskspectral.manifolds.sphere import Circle, Sphere
from daskspectral.manifolds.torus import FlatTorus

__all__ = [
    "Box",
    "Circle",
    "Eigenspace",
    "FlatTorus",
    "Implicit",
    "Isometry",
    "Manifold",
    "Product",
    "SO3",
    "Sphere",
    "invariant_coefficients",
]
