"""Groups of isometries, by generators alone."""

from daskspectral.groups.base import Generated, Group, group_from_state
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
    "group_from_state",
]
