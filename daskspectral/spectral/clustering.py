"""SpectralClustering: spectral clustering of the rows by a random walk over nearest centroids."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from daskspectral.basis import CentroidBasis, NearestCentroids
from daskspectral.basis.centroids import PILOT, NearestSearch
from daskspectral.data.containers import is_lazy
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import Rank, RankWarning, ReliabilityWarning, warn_user, warnings_of_rank
from daskspectral.estimators.bases import ClusterMixin
from daskspectral.estimators.table import RunContext, open_table
from daskspectral.moments.jumps import gap_ratios
from daskspectral.operators import NeighborJumps
from daskspectral.operators.base import Operator
from daskspectral.passes.apply import Extrapolated, Result, RowFunction
from daskspectral.passes.folds import FoldRequest
from daskspectral.passes.sums import Discretization
from daskspectral.registry import Registered
from daskspectral.solve.jumps import CLEAR
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.validation import check_integer, check_option, is_word

Array = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]
MOST_CLUSTERS = 15  # maximum for n_clusters="auto"
LEAST_CENTROIDS = 4  # of a cluster, per set of centroids
STARTS, STARTING_ROWS = 10, 5000  # of k-means; most rows for k-means of columns
UNKNOWN = -1
METHODS = ("kmeans", "raw", "cluster_qr", "columns")


@dataclass(frozen=True, eq=False)
class Partition(Registered):
    """Partition of the rows as a function of the leading eigenfunctions of the walk, or of the columns.

    Parameters
    ----------
    method : {"kmeans", "raw", "cluster_qr", "columns"}
        "kmeans": the nearest of the `centers` to functions scaled to length 1; "raw": the same without scaling;
        "cluster_qr": the largest entry of the functions times a rotation, whose columns are the `centers`; "columns":
        the nearest of the `centers` to the row.
    coefficients : ndarray of shape (p, k)
        Eigenfunctions in the basis.
    centers : ndarray of shape (n_clusters, k)
        Centers, or columns of the rotation; of shape (n_clusters, d) for "columns".
    """

    method: str
    coefficients: Array
    centers: Array

    @classmethod
    def fitted(cls, method: str, points: Array, weights: Any, coefficients: Array, count: int, seed: int) -> Partition:
        """Return the partition into `count` clusters of rows (m, d) with weights (m, p) of centroids."""
        functions = weights @ coefficients
        if method == "cluster_qr":  # Damle, Minden and Ying 2019
            pivots = scipy.linalg.qr(functions.T, pivoting=True, mode="r")[1][:count]
            u, _, vt = np.linalg.svd(functions[pivots].T, full_matrices=False)
            return cls(method, coefficients, (u @ vt).T)
        features = scaled(functions, method)
        if method == "columns":
            features = points[:: -(-len(points) // STARTING_ROWS)] - points[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct function values than clusters
            found = KMeans(count, n_init=STARTS, random_state=seed).fit(features)
        centers = found.cluster_centers_ + (points[0] if method == "columns" else 0.0)
        return cls(method, coefficients, centers)

    def labels(self, x: Array, weights: Any) -> Labels:
        """Return the cluster (c,) of each row x (c, d) with weights (c, p) of centroids."""
        if self.method == "columns":
            return np.asarray(NearestSearch(self.centers)(x, 1)[1][:, 0], dtype=np.int64)
        functions = weights @ self.coefficients
        if self.method == "cluster_qr":
            return np.asarray(np.abs(functions @ self.centers.T).argmax(axis=1))
        table = np.square(self.centers).sum(axis=1) - 2 * scaled(functions, self.method) @ self.centers.T
        return np.asarray(table.argmin(axis=1))

    def ordered(self, order: NDArray[np.integer[Any]]) -> Partition:
        return replace(self, centers=self.centers[order])


def scaled(functions: Array, method: str) -> Array:
    """Return function values (c, k), scaled to rows of length 1 except for method "raw"."""
    if method == "raw":
        return functions
    return np.asarray(functions / np.maximum(np.linalg.norm(functions, axis=1, keepdims=True), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class ClusterLabels(RowFunction):
    """Cluster labels of rows, -1 for invalid rows and, if extrapolate="nan", far from all centroids."""

    basis: CentroidBasis
    partition: Partition

    columns = 1
    dtype = np.dtype(np.int64)
    rows = PILOT
    missing: ClassVar[Any] = UNKNOWN
    nearest: ClassVar[str] = "have the label of the nearest cluster"

    def block(self, x: Array, out: Array) -> Extrapolated:
        weights, radii = self.basis.neighbors(x)
        out[:, 0] = self.partition.labels(x, weights)
        return self.basis.is_far(radii), None

    def warning_text(self, found: Any, count: int) -> str:
        there = f"are {UNKNOWN}" if self.extrapolate == "nan" else self.there
        return f"{found.count} of {count} rows are far from all centroids, and {there}"


class SpectralClustering(ClusterMixin, SpectralEstimator):
    """Spectral clustering of any number of rows in one pass.

    A step of a random walk leads from a row to one of its nearest centroids, and from there to a row
    (`operators.NeighborJumps`); clusters are sets of any shape that the walk rarely leaves. There is no kernel or scale
    to choose, and new rows have labels. Distances depend on the units of the columns: scale them first, for example by
    `Rows(X, standardize=True)`.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. "auto" selects the largest number, up to 15, with a clear gap after its eigenvalues.
    n_centroids : int, default=500
        Number of centroids per set. A cluster requires four: the default resolves clusters of 1 % of the rows, and
        isolated ones of .4 %.
    assign_labels : {"best", "kmeans", "raw", "cluster_qr", "columns"}, default="best"
        k-means of functions scaled to length 1, or unscaled, a pivoted QR factorization, or k-means of the columns;
        "best" is the one of smallest normalized cut.
    random_state : int, Generator or None, default=None
        Seed of the centroids and of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, the largest cluster first; only if the data are in memory, otherwise call `predict`.
    n_clusters_ : int
        Number of clusters.
    cluster_shares_ : ndarray of shape (n_clusters_,)
        Fractions of the rows, from up to 20 000 of them.
    cut_ : float
        Normalized cut, between 0 and n_clusters_: the sum of the probabilities to leave each cluster in one step of
        a walk over other random centroids.
    eigenvalues_, eigenvalue_errors_ : ndarray of shape (n_clusters_ + 1,) and (n_clusters_ + 1, 2)
        Eigenvalues of the walk, near 0 for clusters, and the ends of their 95 % intervals for fixed centroids. At
        20 000 rows the random centroids vary them as much as the rows do. 16 values if n_clusters is "auto".
    partition_ : Partition
        Clusters as a function of the eigenfunctions.

    See Also
    --------
    SpectralDecomposition : Spectral decomposition of any operator.
    daskspectral.operators.NeighborJumps : The operator of the walk.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 600)
    >>> rings = np.column_stack([np.cos(angle), np.sin(angle)]) * np.repeat([1.0, 2.0], 300)[:, None]
    >>> model = dsp.SpectralClustering(2, random_state=0).fit(rings)
    >>> [len(np.unique(model.labels_[half])) for half in (slice(300), slice(300, None))]  # a cluster for each ring
    [1, 1]
    >>> model.predict([[0.0, 1.1], [0.0, 0.9]]) == model.labels_[0]
    array([ True,  True])
    """

    expects: ClassVar = {**SpectralEstimator.expects, "partition_": Partition}
    operator = NeighborJumps()
    _options_of_rows = ()
    folds = 10
    labels_: Labels
    n_clusters_: int
    partition_: Partition

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_centroids: int = 500,
        assign_labels: str = "best",
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.n_centroids = n_centroids
        self.assign_labels = assign_labels
        self.random_state = random_state

    @property
    def _most(self) -> int:
        return MOST_CLUSTERS if self._automatic else int(self.n_clusters)

    @property
    def _automatic(self) -> bool:
        return is_word(self.n_clusters, "auto")

    @property
    def basis(self) -> NearestCentroids:  # type: ignore[override]
        return NearestCentroids(self.n_centroids, max_components=self._most)

    @property
    def _components(self) -> int:
        return self._most + 1

    @property
    def _fitted_attributes(self) -> tuple[str, ...]:
        return (*super()._fitted_attributes, "partition_", "n_clusters_", "cluster_shares_", "cut_", "labels_")

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Cluster the rows of X in one pass on the active Dask scheduler.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Rows in any container of `SpectralDecomposition.fit`.
        y : None
            Not used.
        sample_weight : array of shape (n,), optional
            Frequency weights.
        checkpoint, checkpoint_every, progress : optional
            As in `SpectralDecomposition.fit`.

        Returns
        -------
        SpectralClustering
            The fitted estimator.

        Raises
        ------
        ValueError
            If `n_clusters` exceeds the number of rows, or of distinct rows among 20 000. Other errors are those of
            `SpectralDecomposition.fit`.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        with open_table(self, X, context, fits=True, sample_weight=sample_weight) as table:
            session = self._session(table)
            self._check_several(session.source)
            if session.source.n < self._most and not self._automatic:
                raise ValueError(
                    f"n_clusters={self.n_clusters} must be at most the number of rows, {session.source.n}."
                )
            with warnings.catch_warnings(), warnings_of_rank(Rank.DATA):
                warnings.simplefilter("ignore", RankWarning)  # the data support fewer functions
                self._fit_session(session, context)
            self._divide(session.source)
        if not is_lazy(Rows.of(X).data):
            self.labels_ = np.asarray(self.predict(X, progress=progress)).reshape(-1)
        return self

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit the model and return the cluster of each row of X.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Rows in any container of `SpectralDecomposition.fit`.
        y : None
            Not used.
        **options : dict
            Options of `fit`.

        Returns
        -------
        array of int, shape (n,)
            `labels_` if X is in memory, otherwise the result of `predict`.
        """
        self.fit(X, y, **options)
        return self.labels_ if "labels_" in vars(self) else self.predict(X)

    def predict(self, X: Any, *, out: Any = None, **options: Any) -> Any:
        """Return the cluster of each row of X.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Rows with the columns of the fit.
        out : str or path, optional
            New zarr group for the labels, as in `SpectralDecomposition.transform`.
        **options : dict
            `extrapolate` and the other options of `SpectralDecomposition.transform`.

        Returns
        -------
        array of int, shape (n,)
            Clusters, in the container of X; -1 for invalid rows that are skipped and, if extrapolate="nan", for
            rows far from all centroids.
        """
        self._fitted()
        function = ClusterLabels(self.basis_, self.partition_, preparation=self.preparation_)
        return self._rows(function, X, output=Result("cluster", (), ()), out=out, **options)

    def transform(self, X: Any, *, side: str | None = None, **options: Any) -> Any:
        """Return the leading eigenfunctions of the walk at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Rows with the columns of the fit.
        side : None
            There is one kind of functions.
        **options : dict
            Options of `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n, n_clusters_)
            Functions, the constant first.
        """
        self._check_frame(X, options.get("out"))
        self._fitted()
        check_option("side", side, (None,))
        found = self._functions(self.coefficients_[:, : self._n_features_out], X, **options)
        return self._unlabeled(found, X)

    @property
    def _n_features_out(self) -> int:
        return min(self.n_clusters_, int(self.coefficients_.shape[1]))

    def _labels(self) -> dict[str, NDArray[np.inexact[Any]]]:
        return {name: values[: self._n_features_out] for name, values in super()._labels().items()}

    def _check_parameters(self, operator: Operator) -> None:
        if self.n_clusters != "auto":
            check_integer("n_clusters", self.n_clusters)
        check_option("assign_labels", self.assign_labels, ("best", *METHODS))
        super()._check_parameters(operator)

    def _update_source(self, source: Source, folds: FoldRequest | None) -> Self:
        with warnings_of_rank(Rank.DATA):
            super()._update_source(source, folds)
        self._divide(source)
        return self

    def _divide(self, source: Source) -> None:
        source = Discretization.of(self.moments_).prepared(source, self.moments_.operator)
        rng, basis = np.random.default_rng(self.random_state), self.basis_
        points = draw_rows(source, PILOT, rng)[1]
        count = self._number() if self._automatic else int(self.n_clusters)
        distinct = len(np.unique(points, axis=0))
        if distinct < count and not self._automatic:
            raise ValueError(f"n_clusters={count} must be at most the number of distinct rows, {distinct}.")
        seed, weights = int(rng.integers(2**31)), basis.neighbors(points)[0]
        methods = METHODS if self.assign_labels == "best" else (self.assign_labels,)
        others = basis.redrawn(points, np.random.default_rng(seed))  # functions are fitted to the first ones
        their_weights, radii = others.neighbors(points)
        coefficients, rows, found = self.coefficients_[:, :count], others.row_weights(radii), []
        for method in methods:
            partition = Partition.fitted(method, points, weights, coefficients, count, seed)
            labels = partition.labels(points, weights)
            found.append((normalized_cut(their_weights, rows, labels, count), partition, labels))
        self.cut_, partition, labels = min(found, key=lambda each: each[0])
        sizes = np.bincount(labels, minlength=count)
        order = np.argsort(-sizes, kind="stable")
        self.partition_, self.n_clusters_ = partition.ordered(order), count
        self.cluster_shares_ = sizes[order] / len(points)
        self._advise_small()

    def _number(self) -> int:
        """Return the largest number of clusters with a clear eigengap, else with the widest gap."""
        ratios, errors = gap_ratios(self.moments_, self.coefficients_)
        clear = np.flatnonzero(ratios + 1.96 * errors < CLEAR)
        if len(clear):
            return int(clear[-1]) + 2
        found = int(ratios.argmin()) + 2 if len(ratios) else 1
        warn_user(
            f"no number of clusters has a clear gap in the eigenvalues; {found} has the widest. Pass n_clusters",
            ReliabilityWarning,
        )
        return found

    def _advise_small(self) -> None:
        basis = self.basis_
        sets, m, d = basis.centroids.shape
        places, _ = basis.neighbors(basis.centroids.reshape(-1, d))
        owners = self.partition_.labels(basis.centroids.reshape(-1, d), places)
        few = np.bincount(owners, minlength=self.n_clusters_) < LEAST_CENTROIDS * sets
        small = np.flatnonzero(few & (self.cluster_shares_ < LEAST_CENTROIDS / m))
        if len(small) and m == self.n_centroids:
            share = 100 * self.cluster_shares_[small[0]]
            warn_user(
                f"cluster {small[0]} has {share:.2g} % of the rows and fewer than {LEAST_CENTROIDS} centroids. Pass "
                f"n_centroids={2 * m} or more",
                ReliabilityWarning,
            )

    def _summary_parts(self) -> dict[str, Any]:
        shares = [f"{100 * share:.2g}" for share in self.cluster_shares_]
        which = f", of {' and '.join([', '.join(shares[:-1]), shares[-1]])} % of the rows" if len(shares) > 1 else ""
        verdict = f"{self.n_clusters_} cluster{'s' * (self.n_clusters_ > 1)}{which}; normalized cut {self.cut_:.3g}"
        return super()._summary_parts() | {"verdict": verdict}


def normalized_cut(weights: Any, rows: Array, labels: Labels, count: int) -> float:
    """Return the normalized cut k - Σ_c (Σ_r S_cr² / D_r) / vol_c, infinite if a cluster is empty.

    S = Σ w a over the rows of cluster c, for `weights` w (n, p) of the centroids.
    """
    sums = np.stack([weights.T @ np.where(labels == c, rows, 0.0) for c in range(count)])
    volumes, degrees = np.bincount(labels, rows, count), sums.sum(axis=0)
    if not (volumes > 0).all():
        return np.inf
    kept = np.divide(sums**2, degrees, out=np.zeros_like(sums), where=degrees > 0).sum(axis=1)
    return float(max(count - np.sum(kept / volumes), 0.0))
