"""Operators: a form with the Gram forms that give its functions unit norm, and what is known of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.forms import Form, dirichlet, gram, tangential_dirichlet
from daskspectral.kernels.registry import function_path, load_function
from daskspectral.manifolds import Circle, FlatTorus, Implicit, Manifold, Sphere

Array = NDArray[np.floating[Any]]

__all__ = ["Laplacian", "Operator", "SymmetricForm", "operator_from_state", "parse"]


class Operator(ABC):
    """What one pass measures (`forms`), and how the solver reads it."""

    name: str

    @property
    @abstractmethod
    def form(self) -> Form:
        """The bilinear form <f, L g>."""

    @property
    def gram(self) -> Form:
        """The inner product in which the functions are orthonormal."""
        return gram

    @property
    def symmetric(self) -> bool:
        """Whether the form is symmetric."""
        return True

    @property
    def kills_constants(self) -> bool:
        """Whether L 1 = 0, so that the constant function joins the basis by default."""
        return False

    @property
    def forms(self) -> dict[str, Form]:
        """The forms that one pass measures, by the name of their moments."""
        return {"form": self.form, "gram": self.gram}

    @property
    def derivative_order(self) -> int:
        """Highest derivative that the form takes of a function."""
        return max(self.form.orders)

    def check(self, dimension: int) -> None:
        """Raise ValueError where the operator cannot act on functions of that many variables."""
        atoms = [a for f in self.forms.values() for p in f.products for a in (p.left, p.right)]
        for alpha in (a.alpha for a in atoms if a.kind == "partial"):
            if len(alpha) != dimension:
                raise ValueError(
                    f"partial() takes one order a coordinate: the data have {dimension} columns, and a form "
                    f"takes the orders {alpha}"
                )

    def check_points(self, x: Array) -> None:  # noqa: B027
        """Raise ValueError where points (c, d) of the data show that the operator does not fit them."""

    def derived_fields(self, x: Array) -> Mapping[str, Array]:
        """Fields that the operator computes from the points of a block, (c, ...)."""
        return {}

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain data from which `operator_from_state` makes an equal operator."""


@dataclass(frozen=True)
class Laplacian(Operator):
    """grad* grad for the distribution of the data, eigenvalues 0 = l_0 <= l_1 <= ... (equation (3)).

    On a known submanifold (`manifold=`), the tangential form: the ambient gradient is biased there, and its
    part along the normals is taken off.
    """

    manifold: Manifold | None = None
    name: str = field(default="laplacian", init=False, repr=False)

    def __post_init__(self) -> None:
        manifold: Any = self.manifold
        if manifold is not None and not isinstance(manifold, Manifold):
            raise TypeError(
                f"manifold must be one of daskspectral.manifolds ({', '.join(MANIFOLDS)}), such as Sphere(3); "
                f"got {manifold!r}"
            )

    @property
    def form(self) -> Form:
        if self.manifold is None:
            return dirichlet
        if self.tangents:
            return tangential_dirichlet(tangents=self.manifold.dimension)
        return tangential_dirichlet(normals=self.manifold.codimension)

    @property
    def tangents(self) -> bool:
        """Whether the sum over tangents is cheaper than taking the normals off, as for a curve."""
        manifold = self.manifold
        if manifold is None or manifold.dimension > manifold.codimension:
            return False
        try:
            point = manifold.sample(1, np.random.default_rng(0))
        except ValueError:  # of a manifold known by its normals there are no samples
            return False
        return manifold.tangents(point) is not None

    @property
    def kills_constants(self) -> bool:
        return True

    def check(self, dimension: int) -> None:
        if self.manifold is not None and self.manifold.ambient != dimension:
            raise ValueError(
                f"{self.manifold} lives in {self.manifold.ambient} dimensions and the data have {dimension} "
                "columns; choose the columns that hold the manifold's coordinates"
            )

    def check_points(self, x: Array) -> None:
        if self.manifold is not None:
            try:
                self.manifold.check(x, tolerance=1e-5)
            except ValueError as error:
                raise ValueError(f"the data do not lie on the manifold; among the landmarks, {error}") from None

    def derived_fields(self, x: Array) -> Mapping[str, Array]:
        if self.manifold is None:
            return {}
        points = np.asarray(x, dtype=float)
        if self.tangents:
            tangents = self.manifold.tangents(points)
            assert tangents is not None
            return {"tangent": np.moveaxis(tangents, 0, 1)}
        return {"normal": np.moveaxis(self.manifold.normals(points), 0, 1)}

    def state(self) -> dict[str, Any]:
        return {"operator": self.name, "manifold": _manifold_state(self.manifold)}


@dataclass(frozen=True)
class SymmetricForm(Operator):
    """The operator of a user's own symmetric form (one made by `@form`)."""

    bilinear: Form
    constants: bool = False
    name: str = field(default="form", init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.bilinear.symmetric:
            raise ValueError(
                f"the form {self.bilinear.name} is not symmetric: every product of two different expressions "
                "needs the product with f and g exchanged"
            )

    @property
    def form(self) -> Form:
        return self.bilinear

    @property
    def kills_constants(self) -> bool:
        return self.constants

    def state(self) -> dict[str, Any]:
        raise ValueError(
            f"a model of the form {self.bilinear.name} cannot be saved yet; keep its moments and eigenvalues"
        )


MANIFOLDS: dict[str, Callable[..., Manifold]] = {
    "Sphere": Sphere,
    "Circle": Circle,
    "FlatTorus": FlatTorus,
    "Implicit": Implicit,
}


def _manifold_state(manifold: Manifold | None) -> dict[str, Any] | None:
    if manifold is None:
        return None
    params = {k: function_path(v) if callable(v) else v for k, v in manifold.get_params().items()}
    return {"manifold": type(manifold).__name__, **params}


def _manifold_from_state(state: dict[str, Any] | None) -> Manifold | None:
    if state is None:
        return None
    params = {k: load_function(v) if k == "normals" else v for k, v in state.items() if k != "manifold"}
    return MANIFOLDS[state["manifold"]](**params)


def operator_from_state(state: dict[str, Any]) -> Operator:
    """The inverse of `Operator.state`."""
    if state["operator"] == "laplacian":
        return Laplacian(_manifold_from_state(state["manifold"]))
    raise ValueError(
        f"unknown operator {state['operator']!r} in a saved model; a newer daskspectral may have written it"
    )


def parse(name: str, manifold: str | None, dimension: int) -> Operator:
    """An operator by name, on a manifold given as `sphere`, `circle` or `torus` in `dimension` columns."""
    if name != "laplacian":
        raise ValueError(f"there is no operator {name!r}; the operators are laplacian")
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
