"""The jump operator of a random walk between rows that are neighbors, whose slow functions tell clusters apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskspectral.basis.centroids import JUMPS
from daskspectral.forms import Form, form, inner
from daskspectral.operators.base import Operator


@form
def neighbor_jumps(f: Any, g: Any, x: Any) -> Any:
    """<f, g> in L2 of the rows, each weighted by (radius / r)² for its local radius r."""
    return inner(f, g)


assert neighbor_jumps.name == JUMPS


@dataclass(frozen=True)
class NeighborJumps(Operator):
    """Random walk from a row to one of its nearest centroids, and from there to a row.

    With the weights a(x) of the centroids, of sum 1, and v_i the value at centroid i, f(x) = Σ a_i(x) v_i, the form is
    E w Σ_ij a_i a_j (v_i - v_j)² / 2, equation (20) of the Galerkin paper with the centroids as the versions of a row,
    and the Gram matrix E w f². Rows have the weights w = (median r / r)² of their local radius r, so that a sparse gap
    counts as much as a dense one. The eigenvalues are 1 - s, for the eigenvalue s² of a walk from row to row; they
    are 0 for each component that no walk leaves, and near 0 for clusters. A gap with few rows separates clusters of
    many rows only: the indicator of a few outliers has a large value.

    Values are reliable that are known to about .003, a third of the `resolution`, however near to 0 they are.

    Its basis is `basis.NearestCentroids`. Intervals are for the given centroids; from about 20 000 rows on the random
    places of the centroids matter more.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).normal(size=(600, 2)) + np.tile([[0, 0], [9, 0], [0, 9]], (200, 1))
    >>> model = dsp.SpectralDecomposition(NeighborJumps(), n_components=4, folds=None, random_state=0).fit(x)
    >>> model.eigenvalues_.round(3)[:3] + 0.0  # three clusters
    array([0., 0., 0.])
    """

    name = "neighbor jumps"

    form = neighbor_jumps

    has_patterns = False

    annihilates_constants = True

    validation_operator = None

    resolution = 0.01  # of the probability to leave a cluster in a step

    @property
    def gram(self) -> Form:
        return neighbor_jumps

    @property
    def forms(self) -> dict[str, Form]:
        return {"gram": self.gram}  # the form follows from it

    def reported_values(self, values: Any) -> Any:
        return 1 - 1 / np.sqrt(1 + np.maximum(values, 0.0))
