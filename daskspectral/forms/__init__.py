"""Bilinear forms H(f, g, x) and functionals of f, written as in the papers and stored as expressions.

    @form
    def schroedinger(f, g, x):
        return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)

The function is called once with symbols; `x.potential` is a field of the data, with one entry for each row.

    inner(a, b, weight=None)    the product of an expression of f and one of g, times a field (n,)
    grad(f)                     the gradient
    partial(f, 0, 2)            a partial derivative, with one order for each coordinate
    along(f, x.u)               u · ∇f, for directions u (n, d)
    along_each(f, x.u)          u_m · ∇f for each of m directions (n, m, d)
    second(f, x.a)              Σ_ij a_ij ∂_i ∂_j f, for matrices a (n, d, d); without a field, the Laplacian
    at(f, x.y)                  f at other points y (n, d) of the same row, such as a second view

Expressions of one function can be added, subtracted, and multiplied by numbers and fields (n,).

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> from daskspectral.forms import form, grad, inner
    >>> @form
    ... def oscillator(f, g, x):
    ...     return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)
    >>> oscillator.symmetric, sorted(oscillator.fields), oscillator.orders
    (True, ['potential', 'x'], (1, 1))
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> est = dsp.SpectralDecomposition(
    ...     dsp.operators.SymmetricForm(oscillator), basis=dsp.basis.MonomialBasis(d=1, degree=6), n_components=3
    ... ).fit(dsp.Rows(x, fields={"potential": np.full(20_000, 2.0)}))
    >>> est.eigenvalues_.round()  # k^2 of the interval, and the constant potential 2
    array([2., 3., 6.])
"""

from daskspectral.forms.expressions import (
    Atom,
    AtomProduct,
    Bilinear,
    Field,
    Fields,
    LinearExpression,
    LinearFunctional,
    Pairing,
    Term,
)
from daskspectral.forms.tracing import (
    Form,
    Forms,
    Functional,
    Functionals,
    along,
    along_each,
    at,
    dirichlet,
    first_moment,
    first_moment_at,
    form,
    functional,
    grad,
    gram,
    gram_at,
    inner,
    partial,
    second,
    tangential_dirichlet,
)

__all__ = [
    "Atom",
    "Bilinear",
    "Field",
    "Fields",
    "Form",
    "Forms",
    "Functional",
    "Functionals",
    "LinearExpression",
    "LinearFunctional",
    "Pairing",
    "AtomProduct",
    "Term",
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
