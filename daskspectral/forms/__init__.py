"""Bilinear forms H(f, g, x) and functionals of f, written as the papers write them and kept as data.

    @form
    def schroedinger(f, g, x):
        return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)

The function is called once with symbols; what it returns is a small expression (a sum of products of atoms)
that can be compared, hashed, saved, and contracted by a basis.
"""

from daskspectral.forms.expressions import (
    Atom,
    Bilinear,
    Field,
    Fields,
    Linear,
    LinearFunctional,
    Pairing,
    Product,
    Term,
)
from daskspectral.forms.standard import (
    dirichlet,
    first_moment,
    first_moment_at,
    gram,
    gram_at,
    tangential_dirichlet,
)
from daskspectral.forms.tracing import (
    Form,
    Functional,
    all_products,
    along,
    along_each,
    at,
    form,
    functional,
    grad,
    inner,
    partial,
    second,
)

__all__ = [
    "Atom",
    "Bilinear",
    "Field",
    "Fields",
    "Form",
    "Functional",
    "Linear",
    "LinearFunctional",
    "Pairing",
    "Product",
    "Term",
    "all_products",
    "along",
    "along_each",
    "at",
    "dirichlet",
    "first_moment",
    "first_moment_at",
    "form",
    "functional",
    "grad",
    "gram",
    "gram_at",
    "inner",
    "partial",
    "second",
    "tangential_dirichlet",
]
