"""Means of zonal kernels over a group: invariant functions of eigenspaces that are never built.

FiniteAverage(elements)              a sum over the elements
PermutationAverage(blocks)           all permutations of blocks of coordinates, with or without changes of sign
RotationAverage(vectors, elements)   rotations of space acting on several vectors at once, and a finite group
CircleAverage(fields, elements)      circles of rotations that commute, and a finite group
AveragedSpace                        the invariant functions of one degree
"""

from daskspectral.manifolds.averages.base import Average, AveragedSpace, ZonalAverage
from daskspectral.manifolds.averages.finite import CircleAverage, FiniteAverage
from daskspectral.manifolds.averages.permutations import Block, PermutationAverage, SymmetricHarmonics
from daskspectral.manifolds.averages.rotations import RotationAverage

__all__ = [
    "Average",
    "AveragedSpace",
    "Block",
    "CircleAverage",
    "FiniteAverage",
    "PermutationAverage",
    "RotationAverage",
    "SymmetricHarmonics",
    "ZonalAverage",
]
