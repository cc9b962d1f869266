"""Covariance operator: principal components, empirical orthogonal functions, kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass

from daskspectral.forms import Form, gram
from daskspectral.operators.base import Operator
from daskspectral.solve import NormConstrained


@dataclass(frozen=True)
class Covariance(Operator):
    """Covariance operator <f, C g> = cov(f(X), g(X)), relative to the norm of the function space (PCA).

    With the default kernel `Linear()` eigenvalues are variances along principal components, means over the rows (times
    n / (n - 1): unbiased); other kernels yield kernel principal components (Schoelkopf, Smola and Mueller, 1998).
    `transform` returns components of variance 1. With constant=False values are second moments. Columns of different
    units require `Rows(x, standardize=True)`; gaps are allowed with `Rows(x, on_invalid="pairwise")`.

    See Also
    --------
    CrossCovariance : Covariances between two views (MCA).
    Cross : Correlations between two views (CCA).

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> axes = np.array([[2, 2, 1], [-2, 1, 2], [1, -2, 2]]) / 3
    >>> x = np.random.default_rng(0).standard_normal((50_000, 3)) * [3.0, 2.0, 1.0] @ axes + 10
    >>> model = dsp.SpectralDecomposition(Covariance(), n_components=2).fit(x)
    >>> model.eigenvalues_.round(1), model.transform(x).std(axis=0).round(6)
    (array([9., 4.]), array([1., 1.]))
    """

    name = "covariance"

    form = gram

    solver = NormConstrained()

    annihilates_constants = True

    takes_gaps = True

    @property
    def forms(self) -> dict[str, Form]:
        return {"gram": self.gram}  # the form is the Gram matrix: summed once
