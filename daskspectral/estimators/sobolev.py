"""SobolevRidge: kernel ridge regression on a manifold, the baseline of regression with exact invariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from daskspectral.data.containers import in_memory, is_frame, with_names
from daskspectral.data.integrity import check_chunks, list_chunks
from daskspectral.data.labelled import stack_rows
from daskspectral.data.readers import Reader
from daskspectral.data.source import open_source
from daskspectral.engine.memory import available
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.estimators.labelled import labelled
from daskspectral.estimators.regressor import target_result
from daskspectral.groups import Group, Isometry
from daskspectral.groups.elements import elements
from daskspectral.manifolds import Manifold
from daskspectral.manifolds.base import MOST_FUNCTIONS
from daskspectral.passes.apply import labelled_rows
from daskspectral.passes.parameters import check_amount, check_one_of, check_whole, sobolev_order
from daskspectral.passes.ranges import ranges_of
from daskspectral.passes.support import FAR
from daskspectral.solve.ridge import GRID, ROBUST
from daskspectral.solve.sections import sections

Array = NDArray[np.floating[Any]]
TOLERANCE = 1e-5  # how far points may lie off the manifold
CUT = 1e-15  # of eigenvalues of the kernel matrix, times its size, relative to the largest: rounding


class SobolevRidge(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression with the Sobolev kernel of a manifold, in memory; averaged over a group by its elements.

    f minimises 1/n Σ_i (f(x_i) - y_i)² + alpha ||f||², equation (8) of Soleymani and others 2025, in the space of

        K(x, y) = Σ_λ D_λ^-(2 s / dimension) Σ_l φ_(λ, l)(x) φ_(λ, l)(y),

    or of its average over the group, K_G(x, y) = 1/|G| Σ_g K(g x, y), equation (9). It is a baseline for
    `InvariantRegressor`: its time and memory grow as n³ and n², and with the number of group elements.

    Parameters
    ----------
    manifold : Manifold, optional
        Where the points lie, such as Sphere(3). None: on the product of intervals over the ranges of the columns in the
        fit, as in `InvariantRegressor`.
    group : Group, optional
        Enumerated from its generators; None: no invariance.
    smoothness : float, optional
        s, above half the manifold's dimension; by default 2, and dimension / 2 + 1 where that is not above.
    symmetrize : {"average", "augment", "none"}
        The kernel averaged over the group; or the data repeated for every element, which gives the same f in |G|³
        times the time; or no use of the group.
    n_eigenfunctions : int
        The kernel is cut to as many whole levels as have at most so many functions, a million or fewer. On spheres and
        rotations it costs no more with many.
    alpha : float, optional
        Weight of the penalty; by default the weight with the least robust generalised cross-validation, as in
        `InvariantRegressor` (copies of a row by "augment" are left out together).
    max_rows : int
        Most rows of the kernel matrix, n or |G| n.
    max_elements : int
        Most elements of the group.
    sample_dims, latitude : optional
        Rows, and weights of columns by latitude, of data with labels, as in `SpectralDecomposition`.

    Attributes
    ----------
    alpha_, gcv_ : the penalty's weight and its cross-validation score
    manifold_ : the manifold, `Interval` with the ranges where none was given
    n_elements_ : int, elements visited
    dual_coef_ : (n,) or (n, k) for k targets, coefficients of the kernel at the rows, copies among them
    layout_ : Layout of data with labels
    n_features_in_, feature_names_in_ (of a data frame)

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> sphere, group = dsp.manifolds.Sphere(3), dsp.groups.Permutations(3)
    >>> x = sphere.sample(200, np.random.default_rng(0))
    >>> ridge = dsp.SobolevRidge(sphere, smoothness=3.0, group=group, alpha=1e-8).fit(x, x.prod(axis=1))
    >>> ridge.n_elements_
    6
    >>> bool(np.allclose(ridge.predict(x[:, ::-1]), ridge.predict(x), atol=1e-9))
    True
    """

    def __init__(
        self,
        manifold: Manifold | None = None,
        group: Group | None = None,
        smoothness: float | None = None,
        symmetrize: str = "average",
        *,
        n_eigenfunctions: int = 2000,
        alpha: float | None = None,
        max_rows: int = 5000,
        max_elements: int = 10_000,
        sample_dims: str | Sequence[str] | None = None,
        latitude: str | None = None,
    ):
        self.manifold = manifold
        self.group = group
        self.smoothness = smoothness
        self.symmetrize = symmetrize
        self.n_eigenfunctions = n_eigenfunctions
        self.alpha = alpha
        self.max_rows = max_rows
        self.max_elements = max_elements
        self.sample_dims = sample_dims
        self.latitude = latitude

    @labelled
    def fit(self, X: Any, y: Any) -> Self:
        """Fit rows X (n, d) and targets y, (n,) or (n, k), in memory; those of data with labels are read into it.

        Raises ValueError or TypeError for a smoothness of half the dimension or less, points off the manifold, y of
        another length, a generator that is not an isometry, a group of more than `max_elements` elements, and more
        than `max_rows` rows.
        """
        self._check_parameters()
        x, targets = self._read(X, "X"), self._read(y, "y")
        x, targets = check_X_y(x, targets, dtype=np.float64, multi_output=True, y_numeric=True, estimator=self)
        validate_data(self, with_names(X) if is_frame(X) else x, skip_check_array=True)
        if self.manifold is not None and x.shape[1] != self.manifold.ambient:
            raise ValueError(
                f"X has {x.shape[1]} columns, and points of {self.manifold!r} have {self.manifold.ambient} coordinates"
            )
        self._check_rows(len(x))
        self.manifold_ = self._ranges(x) if self.manifold is None else self.manifold
        x = self._on_manifold(x)
        visited = self._elements()
        values = np.asarray(targets, dtype=float).reshape(len(x), -1)
        copies = len(visited) if self.symmetrize == "augment" else 1
        if copies > 1:
            self._check_rows(copies * len(x), f", {len(x)} for each of {copies} elements of {self.group!r}")
            x, values = np.concatenate([g(x) for g in visited]), np.tile(values, (copies, 1))
            visited = visited[:1]
        exponent = 2 * sobolev_order(self.smoothness, self.manifold_) / self.manifold_.dimension
        self._sections = sections(self.manifold_, self.n_eigenfunctions, exponent, x, visited, room=available())
        problem = _KernelRidge.of(self._sections.gram(), values, copies)
        self.alpha_ = problem.best() if self.alpha is None else float(self.alpha)
        self.gcv_ = problem.score(self.alpha_)
        self.n_elements_ = max(copies, len(visited))
        coefficients = problem.coefficients(self.alpha_)
        self.dual_coef_ = coefficients if np.ndim(targets) == 2 else coefficients[:, 0]
        return self

    def predict(self, X: Any) -> Any:
        """f at the rows of X, (n,), or (n, k) for k targets; a DataArray of the rows where X has labels.

        Raises ValueError for points off the manifold.
        """
        check_is_fitted(self)
        layout = vars(self).get("layout_")
        laid = stack_rows(X, sample_dims=self.sample_dims, layout=layout)
        x = self._read(X if laid is None else laid.reader, "X")
        if not is_frame(X):
            x = check_array(x, dtype=np.float64, estimator=self)
        validate_data(self, with_names(X) if is_frame(X) else x, reset=False, skip_check_array=True)
        x = self._on_manifold(check_array(x, dtype=np.float64, estimator=self))
        found = self._sections.combined(x, self.dual_coef_.reshape(len(self.dual_coef_), -1))
        values = found if self.dual_coef_.ndim == 2 else found[:, 0]
        if laid is None:
            return values
        output = target_result(layout, found.shape[1] if self.dual_coef_.ndim == 2 else None)
        return labelled_rows(output(values), output, laid.rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read(self, value: Any, what: str) -> Any:
        """Rows in memory; laid out ones are read, where they are not too many."""
        if not isinstance(value, Reader):
            return in_memory(value, what)
        self._check_rows(value.shape[0])
        for part in value.stored:
            check_chunks(part, list_chunks(part))
        return value.read(0, value.shape[0])

    def _ranges(self, x: Array) -> Manifold:
        """The product of the intervals over the ranges of the columns."""
        if len(x) < 2:
            raise ValueError("X has 1 row (n_samples = 1), and its columns no ranges; give 2 or more, or a manifold")
        group = None if self.symmetrize == "none" else self.group
        return ranges_of(open_source(x), group, on_invalid="raise", progress=False)

    def _on_manifold(self, x: Array) -> Array:
        """The rows, those beyond intervals that were not given at their ends."""
        if self.manifold is not None:
            self.manifold.check(x, tolerance=TOLERANCE)
            return x
        ends = self.manifold_.ends
        points: Array = np.clip(x, *ends)
        far = int(np.any(np.abs(points - x) > FAR * np.ptp(ends, axis=0), axis=1).sum())
        if far:
            warn_user(
                f"{far} of {len(x)} rows lie beyond the end of an interval by more than {FAR:.0%} of its width, and "
                "have the value at the end: `manifold_` has the ends",
                TrustWarning,
            )
        return points

    def _elements(self) -> list[Isometry]:
        if self.group is None or self.symmetrize == "none":
            return [Isometry(np.eye(self.manifold_.ambient))]
        found = elements(self.group, self.manifold_, self.max_elements)
        if found is None and self.group.algebra:
            raise ValueError(
                f"{self.group!r} is continuous, and averaging visits every element; use InvariantRegressor, which "
                "needs the generators and the algebra alone"
            )
        if found is None:
            size = "" if self.group.order is None else f" ({self.group.order:.3g})"
            raise ValueError(
                f"{self.group!r} has more than max_elements={self.max_elements} elements{size}, and averaging visits "
                "every one; use InvariantRegressor, which needs the generators alone, or raise max_elements"
            )
        return found

    def _check_rows(self, rows: int, of: str = "") -> None:
        if rows > self.max_rows:
            raise ValueError(
                f"the kernel matrix would have {rows} rows{of}, and max_rows is {self.max_rows}; use "
                "InvariantRegressor, which streams the rows, or raise max_rows"
            )

    def _check_parameters(self) -> None:
        if self.manifold is not None and not isinstance(self.manifold, Manifold):
            raise TypeError(f"manifold must be one of daskspectral.manifolds, such as Sphere(3); got {self.manifold!r}")
        if self.group is not None and not isinstance(self.group, Group):
            raise TypeError(f"group must be one of daskspectral.groups, such as Permutations(3); got {self.group!r}")
        if self.manifold is not None:
            sobolev_order(self.smoothness, self.manifold)
        check_one_of("symmetrize", self.symmetrize, ("average", "augment", "none"))
        check_whole("n_eigenfunctions", self.n_eigenfunctions, most=MOST_FUNCTIONS)
        check_whole("max_rows", self.max_rows)
        check_whole("max_elements", self.max_elements)
        if self.alpha is not None:
            check_amount("alpha", self.alpha)


@dataclass(frozen=True, eq=False)
class _KernelRidge:
    """(K + n alpha I) c = y, in the eigenvectors of K that are above rounding."""

    vectors: Array  # (n, r)
    spectrum: Array  # (r,)
    target: Array  # (r, m)
    missed: float  # squared norm of the part of y outside these eigenvectors
    shares: Array  # (r,), squared norm of each eigenvector's part that is the same on all copies of a row
    rows: int  # without copies
    copies: int

    @classmethod
    def of(cls, gram: Array, y: Array, copies: int) -> _KernelRidge:
        """Of K (n, n) and y (n, m), whose rows are `copies` times the same, one after the other."""
        n = len(gram)
        spectrum, vectors = scipy.linalg.eigh(gram, driver="evd")
        kept = spectrum > CUT * n * spectrum[-1]
        vectors, spectrum = vectors[:, kept], spectrum[kept]
        target = vectors.T @ y
        missed = 0.0 if kept.all() else float(np.sum((y - vectors @ target) ** 2))
        summed = vectors.reshape(copies, n // copies, -1).sum(axis=0)
        shares = np.sum(summed**2, axis=0) / copies
        return cls(vectors, spectrum, target, missed, shares, n // copies, copies)

    def coefficients(self, alpha: float) -> Array:
        """c (n, m)."""
        return np.asarray(self.vectors @ (self.target / (self.spectrum + self._ridge(alpha))[:, None]))

    def score(self, alpha: float) -> float:
        """Robust generalised cross-validation (see `solve_ridge`), free of the 0 / 0 of an interpolating fit."""
        ridge = self._ridge(alpha)
        free = ridge / (self.spectrum + ridge)
        residual = (np.sum(free[:, None] ** 2 * self.target**2) + self.missed) / self.copies / self.rows
        outside = 0.0 if len(free) == len(self.vectors) else max(self.rows - float(self.shares.sum()), 0.0)
        left = (float(self.shares @ free) + outside) / self.rows
        variance = float(self.shares @ (1 - free) ** 2) / self.rows
        return float(residual / left**2 * (1 + ROBUST * variance**2)) if left > 0 else float("inf")

    def best(self) -> float:
        """The alpha of least score, by a grid and a refinement."""
        n = self.rows * self.copies
        low, high = np.log10(1e-3 * self.spectrum[0] / n), np.log10(100 * self.spectrum[-1] / n)
        logs = np.linspace(low, high, round(GRID * (high - low)) + 1)
        heights = [self._height(log) for log in logs]
        log = float(logs[::-1][np.argmin(heights[::-1])])  # the largest of several that are equally good
        bounds = log - 1 / GRID, log + 1 / GRID
        found = scipy.optimize.minimize_scalar(self._height, bounds=bounds, method="bounded", options={"xatol": 1e-5})
        return float(10 ** (found.x if found.fun < min(heights) else log))

    def _height(self, log: float) -> float:
        return float(np.log(np.clip(self.score(10**log), 1e-300, 1e300)))

    def _ridge(self, alpha: float) -> float:
        return alpha * self.rows * self.copies
