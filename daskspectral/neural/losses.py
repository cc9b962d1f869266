"""Losses whose minimisers span the leading functions of an operator, by its traced forms (Cabannes and Bach 2024).

Equation (17), with the Gram matrix of the operator's own inner product: R(f) = |G - 1|^2, G = E[f f^T]. Equation (18):

    2 sum_j E(f_j, f_j) / mu_j + R(f),

whose minimum, with the eigenfunctions e_i and eigenvalues l_i of the form, is f_i = sqrt(1 - l_i / mu_i)+ e_i; for
equal mu up to a rotation. For operators between two spaces the loss is the squared Hilbert-Schmidt distance, but for a
constant, of the operator from sum_i f_i (x) g_i:

    -2 tr E[f L g^T] + tr E[f f^T] E[g g^T].

Products of two Gram matrices of the same rows are biased by what a matrix has in common with itself; those of two
halves of the rows are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from daskspectral.forms import Form, Functional
from daskspectral.forms.differentiable import (
    Fields,
    Function,
    Values,
    Weights,
    form_diagonal,
    form_matrices,
    functional_vectors,
    jax,
)
from daskspectral.operators import Operator


def orthogonality(first: Values, second: Values) -> Values:
    """R of equation (17) from two Gram matrices (k, k): the inner product of what both differ from 1 by."""
    eye = jax().numpy.eye(len(first), dtype=first.dtype)
    return ((first - eye) * (second - eye)).sum()


@dataclass(frozen=True, eq=False)
class Loss:
    """What functions of an operator's form are trained by: (18), or the low-rank loss where there are two sides.

    `sign` is -1 for a form whose eigenvalues go down. With `first` and `right_first` the means of the functions of each
    side are subtracted. Calls take the functions, k left ones and as many right ones, and the `fields` of a batch of an
    even number of rows; `weights` (c,) have the mean 1.
    """

    form: Form
    gram: Form
    right_gram: Form
    two_sided: bool = False
    sign: float = 1.0
    first: Functional | None = None
    right_first: Functional | None = None

    @classmethod
    def of(cls, operator: Operator) -> Loss:
        """The loss of an operator, or of the one by which its solutions are compared.

        Raises ValueError where it has neither: it is not symmetric, and no operator between two spaces.
        """
        judge = operator.comparable
        if judge is None:
            raise ValueError(
                f"no loss is known for {operator.title}, which is neither symmetric nor an operator between two "
                "spaces: train a NeuralBasis on one that is, and give its basis_ as basis"
            )
        forms, means = judge.forms, judge.functionals
        return cls(
            judge.form,
            judge.gram,
            forms.get("right_gram", judge.gram),
            judge.solver.two_sided,
            -1.0 if judge.descending else 1.0,
            means["first"] if operator.center else None,
            means.get("right_first", means["first"]) if operator.center else None,
        )

    def __call__(
        self, left: Function, right: Function, fields: Fields, mu: Values = 1.0, weights: Weights = None
    ) -> Values:
        """The loss on a batch; `mu` is one number, or k of them."""
        if self.two_sided:
            form, grams, right_grams = self._two_sided(left, right, fields, weights)
            return (grams * right_grams[::-1]).sum() / 2 - form.trace(axis1=1, axis2=2).sum()
        grams = form_matrices(self.gram.expression, left, left, fields, weights, parts=2)
        energy = self.sign * form_diagonal(self.form.expression, left, fields, weights)
        return 2 * (energy / mu).sum() + orthogonality(*grams)

    def _two_sided(self, left: Function, right: Function, fields: Fields, weights: Weights) -> tuple[Values, ...]:
        """The form and both Gram matrices of functions without their means, where these are subtracted, (2, k, k)."""
        form = form_matrices(self.form.expression, left, right, fields, weights, parts=2)
        gram = form_matrices(self.gram.expression, left, left, fields, weights, parts=2)
        right_gram = form_matrices(self.right_gram.expression, right, right, fields, weights, parts=2)
        if self.first is None or self.right_first is None:
            return form, gram, right_gram
        mean = functional_vectors(self.first.expression, left, fields, weights, parts=2)
        other = functional_vectors(self.right_first.expression, right, fields, weights, parts=2)

        def outer(a: Values, b: Values) -> Values:
            return a[:, :, None] * b[:, None, :]

        return form - outer(mean, other), gram - outer(mean, mean), right_gram - outer(other, other)
