"""Operators by name, as they are written in the shell: `laplacian`, `transfer:10`."""

from __future__ import annotations

from daskspectral.manifolds import Circle, FlatTorus, Sphere
from daskspectral.operators.base import Operator
from daskspectral.operators.laplacian import Laplacian
from daskspectral.operators.paired import Transfer


def parse(name: str, manifold: str | None, dimension: int, density: float = 0.0) -> Operator:
    """An operator of one array by name: `laplacian` or `transfer[:lag[:solver]]`, as in transfer:10:eigen.

    The Laplacian may be on a manifold, `sphere`, `circle` or `torus`, in data of `dimension` columns, and without the
    power `density` of the sampling density. Raises ValueError with the valid names.
    """
    head, *values = name.split(":")
    if head not in ("laplacian", "transfer") or len(values) > (2 if head == "transfer" else 0):
        raise ValueError(f"there is no operator {name!r}; the operators are laplacian, transfer[:lag[:solver]]")
    if head == "transfer":
        if manifold is not None:
            raise ValueError(f"the manifold {manifold!r} is for the laplacian; a transfer operator takes none")
        if density:
            raise ValueError(f"density={density:g} is for the laplacian; a transfer operator takes none")
        lag, solver = [*values, *("1", "singular")[len(values) :]]
        if not lag.isdecimal():
            raise ValueError(
                f"the lag of a transfer operator is a whole number of rows, as in transfer:10; got {name!r}"
            )
        return Transfer(int(lag), solver)
    if manifold is None:
        return Laplacian(density=density)
    if manifold == "sphere":
        return Laplacian(Sphere(dimension), density)
    if manifold == "circle":
        return Laplacian(Circle(), density)
    if manifold == "torus":
        if dimension % 2:
            raise ValueError(f"a flat torus has cos and sin of each angle, an even number of columns; got {dimension}")
        return Laplacian(FlatTorus(dimension // 2), density)
    raise ValueError(f"there is no manifold {manifold!r}; the manifolds are sphere, circle, torus")
