"""Manifolds: normals, tangents, and eigenspaces of the Laplace-Beltrami operator in closed form.

    manifold                     points                                                       name
    Sphere(d)                    the unit sphere Sᵈ⁻¹, in d columns                           sphere
    Circle()                     the unit circle, in 2 columns                                circle
    FlatTorus(m)                 (cos t1, sin t1, ..., cos tm, sin tm)                        torus
    PeriodicBox(lower, upper)    a box with periodic sides, such as m angles                  box:LOWER:UPPER
    Interval(lower, upper)       lower ≤ x ≤ upper, in one column or in m                     interval:LOWER:UPPER
    Product(a, b)                a point of each, concatenated
    Implicit(normals, ambient)   user-defined by normals; without eigenspaces

Rows farther than 1e-5 from the manifold raise an error.

    >>> import numpy as np
    >>> from daskspectral.manifolds import Implicit, Sphere
    >>> Sphere(3).eigenvalues(9)
    array([0., 2., 2., 2., 6., 6., 6., 6., 6.])
    >>> ellipse = Implicit(lambda x: x * [1, 4] / np.linalg.norm(x * [1, 4], axis=1)[:, None], ambient=2)
    >>> ellipse.normals(np.array([[0.0, 0.5]]))
    array([[[0., 1.]]])
"""

from daskspectral.manifolds.base import Manifold
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.flat_torus import FlatTorus, PeriodicBox
from daskspectral.manifolds.implicit import Implicit
from daskspectral.manifolds.interval import Interval
from daskspectral.manifolds.invariants import invariant_coefficients
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.manifolds.product import Product
from daskspectral.manifolds.zonal import Circle, Sphere

__all__ = [
    "Circle",
    "Eigenspace",
    "FlatTorus",
    "Implicit",
    "Interval",
    "Isometry",
    "KillingField",
    "Manifold",
    "PeriodicBox",
    "Product",
    "Sphere",
    "invariant_coefficients",
]
