"""Manifolds embedded in R^d: normals, tangents, and the spectrum of their Laplace-Beltrami operator."""

from daskspectral.manifolds.base import Manifold
from daskspectral.manifolds.implicit import Implicit
from daskspectral.manifolds.sphere import Circle, Sphere
from daskspectral.manifolds.torus import FlatTorus

__all__ = ["Circle", "FlatTorus", "Implicit", "Manifold", "Sphere"]
