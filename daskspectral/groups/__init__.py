"""Groups of isometries, by generators alone."""

from daskspectral.groups.base import Generated, Group
from daskspectral.groups.standard import (
    Automorphisms,
    Cyclic,
    Orthogonal,
    Permutations,
    Product,
    Rotations,
    SignFlips,
    Translations,
)
from daskspectral.manifolds.isometry import Isometry

__all__ = [
    "Automorphisms",
    "Cyclic",
    "Generated",
    "Group",
    "Isometry",
    "Orthogonal",
    "Permutations",
    "Product",
    "Rotations",
    "SignFlips",
    "Translations",
]
