"""The covariance operator: principal components, empirical orthogonal functions, and those of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from daskspectral.forms import Form, gram
from daskspectral.operators.base import Operator
from daskspectral.solve import NormConstrained


@dataclass(frozen=True)
class Covariance(Operator):
    """<f, C g> = cov(f(X), g(X)), its values held against the norm of the function space (kernel PCA).

    With the kernel `Linear()`, which is the default, functions are f(x) = w.(x - mean), |f| is the length of w, and the
    eigenvalues are the variances along principal components: principal component analysis, or empirical orthogonal
    functions of a field. Any other kernel gives its kernel principal components (Schoelkopf, Smola and Mueller, 1998).
    `transform` gives the components scaled to variance 1. Variances are means over the rows: n - 1 in place of n makes
    them n / (n - 1) times as large. With constant=False nothing is subtracted, and they are second moments.

    Rows with single missing values count with what they have by `Rows(x, on_invalid="pairwise")`; a field less its
    climatology and trend is `Rows(x, anomaly="month", detrend=1)`.

    Columns with a variance of their own units decide; `Rows(x, standardize=True)` makes them alike. The origin of the
    columns decides nothing for linear functions and stationary kernels; polynomials and dot-product kernels, whose norm
    has an origin, have it at the center of the data if these lie far from zero.

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
        return {"gram": self.gram}  # the form is the Gram matrix, which is summed once
