"""The forms that every spectral problem measures, and the Dirichlet forms."""

from __future__ import annotations

from typing import Any

from daskspectral.forms.expressions import Bilinear, Field
from daskspectral.forms.tracing import Form, Functional, along, at, form, functional, grad, inner


def gram_at(view: str) -> Form:
    """<f, g> of functions at another view.

    Examples
    --------
    >>> gram_at("y").products[0].left.view
    'y'
    """

    @form
    def gram(f: Any, g: Any, x: Any) -> Any:
        return inner(at(f, Field(view)), at(g, Field(view)))

    return gram


gram = gram_at("x")
"""<f, g> in L2(rho)."""


@form
def dirichlet(f: Any, g: Any, x: Any) -> Any:
    """<grad f, grad g> in L2(rho), equation (3) of the Galerkin paper."""
    return inner(grad(f), grad(g))


def tangential_dirichlet(normals: int | None = None, tangents: int | None = None) -> Form:
    """The Dirichlet form of a submanifold: less the part along the normals, or summed over the tangents.

    Examples
    --------
    >>> sorted(tangential_dirichlet(normals=1).fields), sorted(tangential_dirichlet(tangents=2).fields)
    (['normal', 'x'], ['tangent', 'x'])
    """

    def parts(f: Any, g: Any, field: Field, count: int) -> Any:
        return sum((inner(along(f, field[a]), along(g, field[a])) for a in range(count)), start=Bilinear(()))

    @form
    def tangential_dirichlet(f: Any, g: Any, x: Any) -> Any:
        if tangents is not None:
            return parts(f, g, x.tangent, tangents)
        return inner(grad(f), grad(g)) - parts(f, g, x.normal, normals or 0)

    return tangential_dirichlet


def first_moment_at(view: str) -> Functional:
    """E[f] of functions at another view.

    Examples
    --------
    >>> first_moment_at("y").pairings[0].atom.view
    'y'
    """

    @functional
    def first_moment(f: Any, x: Any) -> Any:
        return inner(at(f, Field(view)), 1.0)

    return first_moment


first_moment = first_moment_at("x")
"""E[f]: the support of each basis function, and what centring needs."""
