"""The Laplacian of the data's distribution, ambient or on a known submanifold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from daskspectral.forms import Form, dirichlet, tangential_dirichlet
from daskspectral.manifolds import Manifold
from daskspectral.operators.base import Array, DerivedField, Operator
from daskspectral.operators.density import CLIP, Density, estimate_of, exponent_of
from daskspectral.operators.weights import row_weights
from daskspectral.validation import check_number, check_type

OFF = "squared distance from the manifold"
FARTHEST = 0.25  # farther off the manifold, in its own units, a row is no noise but an error


@dataclass(frozen=True)
class Laplacian(Operator):
    """∇* ∇ for the distribution of the data, eigenvalues 0 = l_0 ≤ l_1 ≤ ... (equation (3)).

    On a known submanifold (`manifold=`) it is the tangential form: the ambient gradient is biased there, and its part
    along the normals is subtracted. On a periodic box, or a product with one, kernels at landmarks are made periodic
    (`kernels.Periodic`); a basis of your own has to be periodic itself. Rows belong on the manifold: one farther than
    .25 off it is an error, and a mean distance above rounding gives a ManifoldWarning, since the tangential form does
    not see functions of this distance and repeats its eigenvalues with them.

    `density` = a, from 0 to 1, divides the a-th power of the sampling density ρ out of all sums: both forms are
    integrals for ρ^(1 - a), and with 1 the eigenvalues are those of Laplace-Beltrami, with free ends, however the
    rows were sampled. ρ is clipped below at its quantile `clip`, so that a few remote rows do not decide. It is
    estimated from up to 50 000 rows before the pass (`Density`), is part of the fitted model,
    `density_`, and may be given in place of a: two fits whose moments are to be added need the same one. Functions have
    unit norm for the weighted rows, whose weights ρ^-a have the mean 1 over this sample.

    Parameters
    ----------
    manifold : Manifold, optional
        Where the points lie.
    density : float or Density
        Power of the sampling density that is divided out.
    clip : float
        Quantile of the density below which it is clipped.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> box = dsp.manifolds.PeriodicBox([0], [2 * np.pi])
    >>> x = box.sample(5000, np.random.default_rng(0))
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 20)
    >>> model = dsp.SpectralDecomposition(Laplacian(box), basis, n_components=5, random_state=0)
    >>> model.fit(x).eigenvalues_.round()
    array([0., 1., 1., 4., 4.])

    Rows twenty times as dense at one end of an interval of length π as at the other; the eigenvalues are k²:

    >>> x = np.pi * np.log1p(19 * np.random.default_rng(0).random((20_000, 1))) / np.log(20)
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> model = dsp.SpectralDecomposition(Laplacian(density=1.0), basis, n_components=4, random_state=0)
    >>> model.fit(x).eigenvalues_.round(1) + 0.0
    array([0., 1., 4., 9.])
    """

    expects: ClassVar = {"manifold": Manifold}

    manifold: Manifold | None = None
    density: float | Density = 0.0
    clip: float = CLIP
    name = "laplacian"

    def __post_init__(self) -> None:
        if self.manifold is not None:
            check_type("manifold", self.manifold, Manifold, "one of daskspectral.manifolds, such as Sphere(3)")
        if not isinstance(self.density, Density):
            check_number("density", self.density, "[0, 1]")
        check_number("clip", self.clip, "[0, 0.5)")

    @property
    def form(self) -> Form:
        if self.manifold is None:
            return dirichlet
        if self.tangents:
            return tangential_dirichlet(tangents=self.manifold.dimension)
        return tangential_dirichlet(normals=self.manifold.codimension)

    @property
    def tangents(self) -> bool:
        """Whether a sum over tangents is cheaper than subtracting the part along the normals, as for a curve."""
        manifold = self.manifold
        if manifold is None or manifold.dimension > manifold.codimension:
            return False
        try:
            point = manifold.sample(1, np.random.default_rng(0))
        except ValueError:  # a manifold known by its normals cannot be sampled
            return False
        return manifold.tangents(point) is not None

    def slopes_squared(self, dimension: int) -> float:
        return float(dimension if self.manifold is None else self.manifold.dimension)

    def is_compatible_with(self, measured: Operator) -> bool:
        if estimate_of(self.density) is None and isinstance(measured, Laplacian):
            return self == replace(measured, density=exponent_of(measured.density))
        return self == measured

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        if self.manifold is None:
            return {}
        name, directions = ("tangent", self.manifold.tangents) if self.tangents else ("normal", self.manifold.normals)

        def values(fields: Mapping[str, Array]) -> Array:
            return np.moveaxis(np.asarray(directions(np.asarray(fields["x"], dtype=float))), 0, 1)

        return {name: DerivedField(("x",), values, placed=True)}

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        if self.manifold is not None and self.manifold.ambient != dimension:
            raise ValueError(f"{self.manifold} takes {self.manifold.ambient} columns, and X has {dimension}")
        estimate = estimate_of(self.density)
        known = dimension if estimate is None else estimate.dimension
        if known != dimension:
            raise ValueError(f"{self.density!r} is of {known} columns, and X has {dimension}: give an exponent")

    def check_points(self, x: Array) -> None:
        if self.manifold is not None:
            self.manifold.check(np.asarray(x, dtype=float), tolerance=FARTHEST)

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        """Besides the squared weights, where the manifold tells it, the squared distance of the rows from it (1,)."""
        found = super().statistics(fields)
        if self.manifold is None or not self.manifold.codimension:
            return found
        distance = self.manifold.known_distance(np.asarray(fields["x"], dtype=float))
        if distance is None:
            return found
        return found | {OFF: np.array([row_weights(fields) @ distance**2])}


def has_graph(operator: Operator) -> bool:
    """Return whether an operator is the limit of Laplacians of graphs of neighboring rows."""
    return isinstance(operator, Laplacian) and operator.manifold is None and not exponent_of(operator.density)


def periods_of_space(operator: Operator) -> tuple[float | None, ...] | None:
    """Return the period of each column of a periodic manifold, of which None is a column without; None for others."""
    periods = operator.manifold.periods if isinstance(operator, Laplacian) and operator.manifold is not None else ()
    return periods if any(periods) else None
