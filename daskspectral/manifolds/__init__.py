"""Manifolds: normals, tangents, and the eigenspaces of their Laplace-Beltrami operator in closed form.

On a submanifold the gradient of the surrounding space is biased, because basis functions vary across the
manifold. `Laplacian(manifold)` uses the tangential part only, and its eigenvalues converge to those of the manifold. A
row farther than 1e-5 from the manifold raises an error. `InvariantRegressor` and `HarmonicBasis` use the eigenspaces,
which `Implicit` does not have; those of an `Interval` are not the Laplacian's. On the command line, `box` and
`interval` are for `daskspectral invariant`.

    manifold                     points                                                       name
    Sphere(d)                    the unit sphere Sᵈ⁻¹, in d columns                           sphere
    Circle()                     the unit circle, in 2 columns                                circle
    FlatTorus(m)                 (cos t1, sin t1, ..., cos tm, sin tm)                        torus
    PeriodicBox(lower, upper)    a box with periodic sides; m angles                          box:LOWER:UPPER
                                 are PeriodicBox([0] * m, [2 * pi] * m)
    Interval(lower, upper)       lower ≤ x ≤ upper, in one column or in m: radii, times       interval:LOWER:UPPER
    Product(a, b)                a point of each, concatenated; equal factors may be exchanged
    Implicit(normals, ambient)   user-defined: normals(x (c, d)) -> (c, d), or (m, c, d) for m orthonormal normals

For example, the sphere has the eigenvalues l (l + 1), each 2 l + 1 times:

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
