"""Operators by name: state dictionaries in a saved model, `laplacian` in the shell."""

from __future__ import annotations

from typing import Any

from daskspectral.manifolds import Circle, FlatTorus, Sphere
from daskspectral.operators.base import Operator
from daskspectral.operators.custom import BilinearForm, SymmetricForm
from daskspectral.operators.differential import DifferentialOperator, PartialDerivative, TangentPropagation
from daskspectral.operators.diffusion import AnisotropicDiffusion, Generator, Schroedinger
from daskspectral.operators.laplacian import Laplacian
from daskspectral.operators.paired import Augmentation, Cross, Transfer
from daskspectral.operators.regression import Regression

NAMES: dict[str, type[Operator]] = {
    "laplacian": Laplacian,
    "symmetric form": SymmetricForm,
    "bilinear form": BilinearForm,
    "partial derivative": PartialDerivative,
    "differential operator": DifferentialOperator,
    "tangent propagation": TangentPropagation,
    "schroedinger": Schroedinger,
    "anisotropic diffusion": AnisotropicDiffusion,
    "generator": Generator,
    "cross": Cross,
    "transfer": Transfer,
    "augmentation": Augmentation,
    "regression": Regression,
}


def operator_from_state(state: dict[str, Any]) -> Operator:
    """The inverse of `Operator.state`."""
    name = state["operator"]
    if name not in NAMES:
        raise ValueError(f"unknown operator {name!r} in a saved model; a newer daskspectral may have written it")
    return NAMES[name].from_state(state)


def parse(name: str, manifold: str | None, dimension: int) -> Operator:
    """An operator of one array by name: `laplacian` or `transfer[:lag[:solver]]`, as in transfer:10:eigen.

    The Laplacian may be on a manifold, given as `sphere`, `circle` or `torus` in `dimension` columns. Raises
    ValueError with the valid names.
    """
    head, *values = name.split(":")
    if head not in ("laplacian", "transfer") or len(values) > (2 if head == "transfer" else 0):
        raise ValueError(f"there is no operator {name!r}; the operators are laplacian, transfer[:lag[:solver]]")
    if head == "transfer":
        if manifold is not None:
            raise ValueError(f"the manifold {manifold!r} is for the laplacian; a transfer operator takes none")
        lag, solver = [*values, *("1", "singular")[len(values) :]]
        if not lag.isdecimal():
            raise ValueError(
                f"the lag of a transfer operator is a whole number of rows, as in transfer:10; got {name!r}"
            )
        return Transfer(int(lag), solver)
    if manifold is None:
        return Laplacian()
    if manifold == "sphere":
        return Laplacian(Sphere(dimension))
    if manifold == "circle":
        return Laplacian(Circle())
    if manifold == "torus":
        if dimension % 2:
            raise ValueError(f"a flat torus has cos and sin of each angle, an even number of columns; got {dimension}")
        return Laplacian(FlatTorus(dimension // 2))
    raise ValueError(f"there is no manifold {manifold!r}; the manifolds are sphere, circle, torus")
