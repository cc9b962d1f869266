"""Laplacian of the distribution of the data, ambient or on a known submanifold."""

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
FARTHEST = 0.25  # from the manifold, in its units, above which a row is an error


@dataclass(frozen=True)
class Laplacian(Operator):
    """Laplacian ∇* ∇ of the distribution of the data, with eigenvalues 0 = l_0 ≤ l_1 ≤ ... (equation (3)).

    With `manifold` the form is tangential: the normal component of gradients is subtracted. Rows must be on the
    manifold: a distance above 0.25 is an error, a mean distance above rounding causes a ManifoldWarning, because
    eigenvalues repeat with functions of this distance. On a periodic box kernels at landmarks are made periodic; a
    custom basis must be periodic.

    `density` = a divides ρ^a out of all sums, ρ the sampling density; for a = 1 the eigenvalues are those of
    Laplace-Beltrami with natural boundary conditions, independent of the sampling. It is estimated from up to 50 000
    rows before the pass and stored as `density_`, which fits whose moments are to be added must share.

    Parameters
    ----------
    manifold : Manifold, optional
        Submanifold that contains the points.
    density : float or Density, default=0.0
        Exponent in [0, 1] of the sampling density that is divided out, or a fitted density.
    clip : float, default=0.01
        Quantile in [0, 0.5) of the density below which it is clipped, so that a few remote rows do not dominate.

    See Also
    --------
    NeighborJumps : Random walk between neighboring rows, for clusters.
    Schroedinger : Laplacian with a potential.
    daskspectral.manifolds : Manifolds.

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
        """Whether a sum over tangents is cheaper than subtracting the normal component, as for a curve."""
        manifold = self.manifold
        if manifold is None or manifold.dimension > manifold.codimension:
            return False
        try:
            point = manifold.sample(1, np.random.default_rng(0))
        except ValueError:  # a manifold defined by its normals cannot be sampled
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
            raise ValueError(f"{self.manifold} requires {self.manifold.ambient} columns, got X with {dimension}")
        estimate = estimate_of(self.density)
        known = dimension if estimate is None else estimate.dimension
        if known != dimension:
            raise ValueError(f"{self.density!r} requires {known} columns, got X with {dimension}: pass an exponent")

    def check_points(self, x: Array) -> None:
        if self.manifold is not None:
            self.manifold.check(np.asarray(x, dtype=float), tolerance=FARTHEST)

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        """Return the squared weights and, for manifolds with a distance, its square summed over rows (1,)."""
        found = super().statistics(fields)
        if self.manifold is None or not self.manifold.codimension:
            return found
        distance = self.manifold.known_distance(np.asarray(fields["x"], dtype=float))
        if distance is None:
            return found
        return found | {OFF: np.array([row_weights(fields) @ distance**2])}


def has_graph(operator: Operator) -> bool:
    """Return whether the operator is the limit of graph Laplacians of neighboring rows."""
    return isinstance(operator, Laplacian) and operator.manifold is None and not exponent_of(operator.density)


def periods_of_space(operator: Operator) -> tuple[float | None, ...] | None:
    """Return the periods of the columns of a periodic manifold, or None."""
    periods = operator.manifold.periods if isinstance(operator, Laplacian) and operator.manifold is not None else ()
    return periods if any(periods) else None
