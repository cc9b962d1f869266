"""Random walk between neighboring rows, whose slow functions separate clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskspectral.basis.centroids import JUMPS
from daskspectral.forms import Form, form, inner
from daskspectral.operators.base import Operator


@form
def neighbor_jumps(f: Any, g: Any, x: Any) -> Any:
    """Return <f, g> over the rows, weighted by (radius / r)² for the local radius r of each row."""
    return inner(f, g)


assert neighbor_jumps.name == JUMPS


@dataclass(frozen=True)
class NeighborJumps(Operator):
    """Random walk from a row to one of its nearest centroids, and from there to a row.

    With f(x) = Σ a_i(x) v_i, a(x) the weights of the centroids, the form is E w Σ_ij a_i a_j (v_i - v_j)² / 2,
    equation (20), relative to E w f²; w = (median r / r)² for the local radius r, so that sparse and dense regions
    count equally. Reported values are 1 - s, for the eigenvalues s² of the walk from row to row: 0 for each connected
    component, near 0 for clusters, large for a few outliers.

    Values are reliable up to a standard error of about 0.003, a third of the `resolution`. The basis is
    `basis.NearestCentroids`; intervals are conditional on the centroids, which at 20 000 rows vary the values as much
    as the rows do.

    See Also
    --------
    Laplacian : Smooth functions of the points.
    Augmentation : The same form for given versions of each row.

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

    resolution = 0.01  # probability to leave a cluster in a step

    @property
    def gram(self) -> Form:
        return neighbor_jumps

    @property
    def forms(self) -> dict[str, Form]:
        return {"gram": self.gram}  # from which the form is computed

    def reported_values(self, values: Any) -> Any:
        return 1 - 1 / np.sqrt(1 + np.maximum(values, 0.0))
