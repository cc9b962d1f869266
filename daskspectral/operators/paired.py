"""Operators between views of one sample: two modalities, the state a lag later, augmentations of one image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from daskspectral.forms import Field, Form, Functional, at, form, functional, gram_at, inner
from daskspectral.kernels.base import whole
from daskspectral.operators.base import RESERVED, Operator, chosen_solver
from daskspectral.solve import Singular


def conditional(view: str) -> Form:
    """E[f(x) g(y)], the form of the conditional expectation of g(y) given x."""

    @form
    def conditional(f: Any, g: Any, x: Any) -> Any:
        return inner(f, at(g, Field(view)))

    return conditional


@dataclass(frozen=True)
class Cross(Operator):
    """(L g)(x) = E[g(y) | x] for two views of a sample: CLIP, canonical correlations, VAMP.

    Left functions are of x, right ones of y. Without centring, constant functions, where both bases hold them, form a
    pair with singular value 1; `center=True` subtracts the means.

    Examples
    --------
    >>> operator = Cross(center=True)
    >>> operator.views, operator.solver
    (('x', 'y'), 'singular')
    """

    center: bool = False
    name = "cross"

    form = conditional("y")

    right_gram = gram_at("y")

    views = ("x", "y")

    right_view = "y"

    own_right_basis = True

    takes_gaps = True

    solver = Singular()

    @property
    def comparable(self) -> Operator:
        return replace(self, center=True)


@dataclass(frozen=True)
class Transfer(Operator):
    """(K g)(x_t) = E[g(x_{t + lag}) | x_t], the Koopman operator of trajectories at a lag in rows.

    solver="singular": singular values, with left functions in L2 of the starts and right functions in L2 of the ends of
    the pairs of rows. solver="eigen": complex eigenvalues of K, by descending modulus. Constant functions have the
    value 1; `center=True` subtracts the means.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> import numpy as np
    >>> turn = np.linspace(0, 200 * np.pi, 2001)[:, None]  # a twentieth of a turn between rows
    >>> model = dsp.SpectralDecomposition(Transfer(1, "eigen"), basis=dsp.basis.MonomialBasis(2, 1), n_components=3)
    >>> model.fit(np.hstack([np.cos(turn), np.sin(turn)])).eigenvalues_[1:].real.round(3)
    array([0.951, 0.951])
    """

    lag: int = 1
    solver: Any = "singular"
    center: bool = False
    name = "transfer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", whole("lag", self.lag, 1))
        object.__setattr__(self, "solver", chosen_solver(self.solver, self.form))

    form = conditional("future")

    @property
    def right_gram(self) -> Form | None:
        return gram_at("future") if self.solver.two_sided else None

    views = ("x", "future")

    right_view = "future"

    ranking = "modulus"

    @property
    def scoring(self) -> Operator:
        return Transfer(self.lag, center=self.center)  # which measures the inner product of the future, too

    @property
    def comparable(self) -> Operator:
        return Transfer(self.lag, center=True)  # the constant is known, and few rows disturb its norm


@dataclass(frozen=True, init=False)
class Augmentation(Operator):
    """E |f(xi) - f(xi')|² over pairs of views of a sample, relative to the Gram matrix of all views (equation (20)).

    `views` is the number of augmented versions of each row (x, x1, x2, ...), or their names. `fit((x, x1, ...))` takes
    an array (n, d) for each.

    Examples
    --------
    >>> Augmentation(3).views
    ('x', 'x1', 'x2')
    """

    views: tuple[str, ...] = ("x", "x1")
    name = "augmentation"

    def __init__(self, views: int | Sequence[str] = 2):
        if isinstance(views, (str, int, float)):
            names: tuple[str, ...] = ("x", *(f"x{k}" for k in range(1, whole("views", views, 2))))
        else:
            names = tuple(views)
        if len(names) < 2 or names[0] != "x" or len({*names} - RESERVED) < len(names):
            raise ValueError(
                f"views are two or more different names, the first 'x' and none of them "
                f"{' or '.join(sorted(RESERVED))}; they are {names}"
            )
        object.__setattr__(self, "views", names)

    @property
    def form(self) -> Form:
        m = len(self.views)

        @form
        def augmentation(f: Any, g: Any, x: Any) -> Any:
            # orthonormal contrasts: a mean over pairs from m - 1 symmetric products, exactly 0 for constants
            def contrast(function: Any, k: int) -> Any:
                seen = [at(function, Field(v)) for v in self.views]
                return sum(seen[:k], start=-k * seen[k])

            return sum(2 / ((m - 1) * k * (k + 1)) * inner(contrast(f, k), contrast(g, k)) for k in range(1, m))

        return augmentation

    @property
    def gram(self) -> Form:
        @form
        def gram(f: Any, g: Any, x: Any) -> Any:
            parts = sum(inner(at(f, Field(v)), at(g, Field(v))) for v in self.views)
            return 1 / len(self.views) * parts

        return gram

    has_patterns = False  # a row is several points

    @property
    def functionals(self) -> dict[str, Functional]:
        @functional
        def first_moment(f: Any, x: Any) -> Any:
            return 1 / len(self.views) * sum(inner(at(f, Field(v)), 1.0) for v in self.views)

        return {"first": first_moment}

    kills_constants = True
