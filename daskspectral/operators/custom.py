"""Operators of user-defined forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from daskspectral.forms import Form, gram, gram_at
from daskspectral.operators.base import Operator, check_form, check_names, chosen_solver, fields_read
from daskspectral.solve import Problem


@dataclass(frozen=True)
class BilinearForm(Operator):
    """Operator of a user-defined form H(f, g, x), with a solver of choice.

    The constant function joins a basis at landmarks if all terms are derivatives or differences of g
    (`Landmarks(constant=)` overrides this). "principal" and "covariance" depend on the norm of the function space;
    their default kernel is linear.

    Parameters
    ----------
    bilinear : Form
        Form H(f, g, x) made by `@form`.
    solver : str or Problem, default="singular"
        Spectral problem: "symmetric", "singular", "eigen", "principal" or "covariance".
    descending : bool, default=False
        Whether eigenvalues of a symmetric form descend.
    center : bool, default=False
        Whether the means of the functions are subtracted.
    left_gram : Form, default=gram
        Inner product of the left functions.
    right_gram : Form, optional
        Inner product of the right functions. By default `left_gram`, or, for singular values of a form that evaluates
        g at one other view, the inner product there.
    own_right_basis : bool, default=False
        Whether right functions have different variables, and a separate basis.

    Raises
    ------
    TypeError
        If `bilinear` is not a form.
    ValueError
        If the solver is unknown or does not fit the form, or if a field has a reserved name.

    See Also
    --------
    SymmetricForm : Short form for symmetric forms.
    daskspectral.forms : Expressions of which forms consist.

    Examples
    --------
    >>> from daskspectral.forms import along, form, inner
    >>> drift = form(lambda f, g, x: inner(f, along(g, x.velocity)))
    >>> BilinearForm(drift, solver="eigen").data_fields
    frozenset({'velocity'})
    """

    expects: ClassVar = {"bilinear": Form, "left_gram": Form, "right_gram": Form, "solver": Problem}

    bilinear: Form
    solver: Any = "singular"
    descending: bool = False
    center: bool = False
    left_gram: Form = gram
    right_gram: Form | None = None
    own_right_basis: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "solver", chosen_solver(self.solver, self.bilinear, self.descending, by_norm=True))
        for inner_product in (self.left_gram, self.right_gram):
            if inner_product is not None:
                check_form(inner_product, symmetric=True)
        view = self.right_view
        if self.right_gram is None and self.solver.two_sided and view != "x":
            object.__setattr__(self, "right_gram", gram_at(view))
        if self.own_right_basis and self.right_gram is None:
            raise ValueError(
                f"own_right_basis requires g at another view, at(g, x.y), in the form {self.bilinear.name}"
            )
        check_names(self.views, *(read.name for read, _ in fields_read(self, 0)))

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"form {self.bilinear.name}"

    @property
    def form(self) -> Form:
        return self.bilinear

    @property
    def views(self) -> tuple[str, ...]:
        products = [p for bilinear in self.forms.values() for p in bilinear.products]
        return tuple(dict.fromkeys(["x", *(v for p in products for a in (p.left, p.right) for v in a.views)]))

    @property
    def gram(self) -> Form:
        return self.left_gram

    @property
    def right_view(self) -> str:
        views = {v for p in self.bilinear.products for v in p.right.views}
        return views.pop() if len(views) == 1 and not self.solver.needs_symmetry else "x"


def SymmetricForm(bilinear: Form, descending: bool = False) -> BilinearForm:
    """Return the operator of a user-defined symmetric form.

    Parameters
    ----------
    bilinear : Form
        Symmetric form H(f, g, x) made by `@form`.
    descending : bool, default=False
        Whether eigenvalues descend.

    Returns
    -------
    BilinearForm
        The operator with the symmetric solver.

    Raises
    ------
    ValueError
        If the form is not symmetric in f and g.

    See Also
    --------
    BilinearForm : Operator of any form, with any solver.

    Examples
    --------
    >>> from daskspectral.forms import form, grad, inner
    >>> stiff = form(lambda f, g, x: inner(grad(f), grad(g), weight=x.stiffness))
    >>> SymmetricForm(stiff).data_fields
    frozenset({'stiffness'})
    """
    return BilinearForm(bilinear, "symmetric", descending)
