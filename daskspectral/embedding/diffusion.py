"""Diffusion maps: leading eigenvectors of the normalized Gaussian kernel."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import Landmarks
from daskspectral.choosing.landmarks import FitSample, of_kernel
from daskspectral.data.frames import is_frame
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source
from daskspectral.embedding.bandwidth import (
    SCALED,
    advise_units,
    check_bandwidth,
    chosen_bandwidth,
    neighbor_bandwidth,
)
from daskspectral.embedding.diffusion_functions import (
    FEW,
    LEAST_EIGENVALUE,
    DiffusionFunctions,
    exact_map,
    landmark_features,
    landmark_map,
    landmark_sums,
    rest_on_few,
    rows_of_coordinates,
    with_sums,
)
from daskspectral.embedding.extension import Coordinates
from daskspectral.embedding.fitting import UncoveredError, column_signs
from daskspectral.embedding.points import check_masses, points_in_memory
from daskspectral.embedding.summary import method_facts
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.memory import check_memory, local_threads, predict_memory
from daskspectral.errors import Rank, RankWarning, ReliabilityWarning, warn_user
from daskspectral.estimators.summary import values_columns
from daskspectral.estimators.table import RunContext, open_table
from daskspectral.estimators.transformer import Transformer
from daskspectral.kernels import Gaussian
from daskspectral.passes.apply import mapped_rows
from daskspectral.validation import NOT_NEGATIVE, check_integer, check_number, check_option, check_random_state

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
LANDMARKS = 500
EXACT_ROWS = 2000  # most rows for all pairs


class DiffusionMap(Transformer):
    """Diffusion map (Coifman and Lafon 2006), by symmetric eigenvectors as in Fanuel et al. (2022).

    K_ij = exp(-|x_i - x_j|² / bandwidth²) is divided by powers of its degrees q = K 1,

        K_alpha = K / (q_i q_j)^alpha,   A = K_alpha / √(m_i m_j) with m = K_alpha 1.

    The coordinates are λ^time ψ(x), with ψ the leading eigenvectors, of unit norm, of A_bar = A - v0 v0ᵀ, v0 = √(m /
    sum m): for alpha = 0 the kernel (1.2) of the SDP embedding.

    Parameters
    ----------
    bandwidth : {"auto", "median"} or number
        Bandwidth, in the units of X. "auto": the median distance of a row to its 10th neighbor among up to 2000 rows,
        increased while a coordinate rests on fewer than 1 % of them, or landmarks do not cover the rows. "median":
        the median distance of two rows.
    n_components : int
        Number of coordinates.
    method : {"auto", "exact", "lowrank"}
        All pairs of points, O(n^3), for at most 2000 rows; or p landmarks, O(n p^2) in two passes (three with alpha),
        for any n. "auto" is exact up to 2000 rows.
    landmarks : Landmarks, optional
        Landmarks of the low-rank method, with the kernel of the bandwidth; by default at most 500 by "cholesky",
        fewer if these span the kernel.
    time : number
        Power of the eigenvalues; 0 for the eigenvectors themselves.
    alpha : number
        Power of the degrees by which the kernel is divided; 0 in the paper, 1 for a limit independent of the density.
    symmetric : bool
        False for eigenvectors of the Markov matrix K_alpha / m_i: ψ_i / √(m_i / sum m), of unit norm for its
        stationary distribution m / sum m.
    random_state : int, Generator or None
        Seed of the landmarks, and of the rows for the bandwidth.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, k)
        Coordinates of the rows; the entry of largest magnitude of each column is positive.
    spectrum_ : ndarray of shape (k,)
        Eigenvalues of A_bar, descending, all below 1.
    row_shares_ : ndarray of shape (k,)
        Share of the rows that each coordinate rests on, (sum ψ²)² / (n sum ψ⁴); a warning below 1 %.
    bandwidth_ : float
        Bandwidth.
    method_ : {"exact", "lowrank"}
        Method.
    functions_ : DiffusionFunctions
        Coordinates as functions of points.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are text.

    See Also
    --------
    SDPEmbedding : Coordinates that do not localize on outliers.
    SpectralClustering : Clusters of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.concatenate([np.linspace(0, 1, 30), np.linspace(4, 5, 30)])[:, None]
    >>> maps = dsp.DiffusionMap(bandwidth=1.0, n_components=2, random_state=0).fit(x)
    >>> bool(maps.spectrum_[0] > 0.999)  # two clusters: the first eigenvalue is nearly 1
    True
    >>> sides = np.sign(maps.embedding_[:, 0])
    >>> bool(np.all(sides[:30] == -sides[30:]))
    True
    """

    _fitted_attributes = (
        "embedding_",
        "spectrum_",
        "row_shares_",
        "bandwidth_",
        "method_",
        "functions_",
        "n_features_in_",
    )
    _parts: ClassVar = {"landmarks": partial(Landmarks, method="cholesky")}

    def __init__(
        self,
        bandwidth: str | float = "auto",
        *,
        n_components: int = 2,
        method: str = "auto",
        landmarks: Landmarks | None = None,
        time: float = 1.0,
        alpha: float = 0.0,
        symmetric: bool = True,
        random_state: Any = None,
    ):
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.method = method
        self.landmarks = landmarks
        self.time = time
        self.alpha = alpha
        self.symmetric = symmetric
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: bool | None = None) -> Self:
        """Compute the coordinates of the rows of X on the active Dask scheduler.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows or path
            Data, or `Rows` with all columns; skipped rows are NaN in `embedding_`.
        y : object
            Ignored.
        progress : bool, optional
            Show a progress bar; None shows it on a terminal only.

        Returns
        -------
        DiffusionMap
            The fitted estimator; with fewer components and a RankWarning if other eigenvalues are below 1e-10.

        Raises
        ------
        ValueError, TypeError
            If the input is invalid, landmarks do not cover the points, or the kernel has rank one.
        MemoryError
            If a task would exceed the memory.
        OSError
            If the data are damaged or change during the fit.
        """
        with open_table(self, X, RunContext(progress), fits=True, y=y) as table:
            self._check_parameters()
            self._check_whole(table.rows)
            with self._fitting(table) as (source, _):
                self._fit_source(source)
        return self

    def _fit_source(self, source: Source) -> None:
        if source.n <= self.n_components:
            raise ValueError(f"n_components must be less than the number of rows, {source.n}, got {self.n_components}.")
        method = self.method
        if method == "auto":
            method = "exact" if source.n <= EXACT_ROWS else "lowrank"
        if method == "exact" and source.n > EXACT_ROWS:
            raise ValueError(
                f"method='exact' requires at most {EXACT_ROWS} rows, got {source.n}. Use method='lowrank'."
            )
        if method == "lowrank":
            self._check_landmarks(source)
        values, functions, embedding = self._exact(source) if method == "exact" else self._lowrank(source)
        advise_units(source, SCALED)
        self._check_components(values)
        if embedding is None or len(embedding) < source.n:
            skips = source.on_invalid == "skip"
            run = _run(replace(source, on_invalid="keep") if skips else source, functions, "embedding")
            far = "nan" if skips else "raise"
            found = Coordinates(functions, functions.width, functions.kernel, functions.points, extrapolate=far)
            embedding = run.map(partial(mapped_rows, found))
        assert embedding is not None
        signs = column_signs(embedding)
        self.embedding_, self.functions_ = embedding * signs, replace(functions, weights=functions.weights * signs)
        self.spectrum_, self.method_, self.row_shares_ = values, method, rows_of_coordinates(embedding)
        self._advise_few(len(embedding))

    def _advise_few(self, n: int) -> None:
        if len(few := np.flatnonzero(rest_on_few(self.row_shares_, n))):
            rows = max(1, round(n * self.row_shares_[few[0]]))
            warn_user(
                f"coordinate {few[0]} rests on {rows} of {n} rows, outliers or a small group: exclude them, "
                "increase the bandwidth, or use SpectralClustering",
                ReliabilityWarning,
                Rank.DATA,
            )

    def _of_fit(self, X: Any, **options: Any) -> Any:
        """Return `embedding_` for numpy arrays; transform other containers."""
        data = Rows.of(X).data
        if isinstance(data, (np.ndarray, list, tuple)) or is_frame(data):
            return self.embedding_
        return self.transform(X, **options)

    def transform(self, X: Any, **options: Any) -> Any:
        """Return the coordinates at the rows of X by Nystrom's formula; `embedding_` at rows of the fit.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows or path
            Rows with the columns of the fit.
        **options
            `out`, `extrapolate` and others, as in `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n, k)
            Coordinates in float64, in the container of X.
        """
        check_is_fitted(self)
        own = self.functions_
        function = Coordinates(own, self._n_features_out, own.kernel, own.points)
        return self._framed(function, X, name="embedding", coordinates={"eigenvalue": self.spectrum_}, **options)

    def _chosen(self, source: Source, coordinates: Callable[[float], Array] | None = None) -> float:
        """Return the bandwidth, "auto" by the `coordinates` of all rows at a bandwidth or those of sampled rows."""
        if self.bandwidth == "auto":
            return neighbor_bandwidth(source, self.n_components, self.random_state, coordinates)
        return chosen_bandwidth(source, self.bandwidth, self.random_state)

    def _exact(self, source: Source) -> tuple[Array, DiffusionFunctions, Array]:
        """Return the eigenvalues, the functions at all points, and the coordinates of the valid rows."""
        points = points_in_memory(source)[0]
        if len(points) <= self.n_components:
            raise ValueError(
                f"n_components must be less than the number of valid rows, {len(points)}, got {self.n_components}."
            )

        @cache
        def solved(bandwidth: float) -> tuple[Array, DiffusionFunctions, Array]:
            kernel = Gaussian(bandwidth / math.sqrt(2))
            gram = kernel.values(points, points)
            check_masses(bandwidth, gram.sum(axis=1))
            options: Any = {"alpha": self.alpha, "time": self.time, "symmetric": self.symmetric}
            return exact_map(kernel, points, gram, self.n_components, **options)

        self.bandwidth_ = self._chosen(source, lambda bandwidth: solved(bandwidth)[2])
        return solved(self.bandwidth_)

    def _lowrank(self, source: Source) -> tuple[Array, DiffusionFunctions, None]:
        """Return the eigenvalues and the functions at landmarks, at a bandwidth at which these cover the rows."""
        self.bandwidth_ = self._chosen(source)
        while True:
            try:
                return *self._solved(source, Gaussian(self.bandwidth_ / math.sqrt(2))), None
            except UncoveredError:
                if self.bandwidth != "auto":
                    raise
                self.bandwidth_ *= math.sqrt(2)
                logger.info("the landmarks do not cover the points; bandwidth increased to %.6g", self.bandwidth_)

    def _solved(self, source: Source, kernel: Gaussian) -> tuple[Array, DiffusionFunctions]:
        """Return the eigenvalues and functions at landmarks."""
        wanted = self._wanted_landmarks(kernel)
        at_most = wanted.method == "cholesky"  # fewer may span the kernel
        rng = np.random.default_rng(self.random_state)
        points = wanted.build(FitSample(source, at_most=at_most), rng).landmarks
        functions = landmark_features(kernel, points, self.alpha)
        steps = ("first", "second", "gram") if self.alpha else ("first", "gram")
        for step in steps:
            total = _run(source, functions, f"{step} sum").reduce(partial(landmark_sums, functions, step))
            if uncovered := int(total.sums["uncovered"][0]):
                raise UncoveredError(
                    f"{uncovered} of {total.count} points are not covered by the {len(points)} landmarks, which "
                    "reproduce less than a tenth of their kernel. Add landmarks, choose them by 'cholesky', or "
                    f"increase the bandwidth {self.bandwidth_:g}."
                )
            if step != "gram":
                functions = with_sums(functions, total.sums)
        return landmark_map(functions, total.sums["gram"], self.n_components, time=self.time, symmetric=self.symmetric)

    def _check_components(self, values: Array) -> None:
        if not len(values):
            raise ValueError(
                f"every nontrivial eigenvalue is below {LEAST_EIGENVALUE:g}: at bandwidth {self.bandwidth_:g} "
                "the kernel does not distinguish points. Decrease the bandwidth."
            )
        if len(values) < self.n_components:
            warn_user(
                f"only {len(values)} of {self.n_components} eigenvalues exceed rounding errors, "
                f"{LEAST_EIGENVALUE:g}. Lower n_components, decrease the bandwidth or add landmarks.",
                RankWarning,
            )

    def _check_parameters(self) -> None:
        check_bandwidth(self.bandwidth)
        check_integer("n_components", self.n_components)
        for name in ("time", "alpha"):
            check_number(name, getattr(self, name), NOT_NEGATIVE)
        check_option("method", self.method, ("auto", "exact", "lowrank"))
        check_option("symmetric", self.symmetric, (True, False))
        self._wanted_landmarks(Gaussian(1.0))
        check_random_state(self.random_state)

    def _wanted_landmarks(self, kernel: Gaussian) -> Landmarks:
        return of_kernel(self.landmarks, kernel, count=LANDMARKS)

    def _check_landmarks(self, source: Source) -> None:
        wanted = self._wanted_landmarks(Gaussian(1.0))
        p = int(wanted.n_landmarks) if wanted.points is None else len(FitSample(source).given(wanted.points))
        check_memory(predict_memory(p, source.dimension, 2048, threads=local_threads(), live=8))

    def _summary_parts(self) -> dict[str, Any]:
        facts = {
            **method_facts(self, len(self.functions_.points)),
            "variables": self.n_features_in_,
            "time": f"{self.time:g}",
            "alpha": f"{self.alpha:g}",
            "functions": "of the symmetric matrix" if self.symmetric else "of the Markov matrix",
            "rank": len(self.spectrum_),
        }
        verdict = f"{len(self.spectrum_)} diffusion coordinates, without error bars"
        if len(few := np.flatnonzero(self.row_shares_ < FEW)):
            verdict += f"; {len(few)} rest on fewer than {100 * FEW:g} % of the rows"
        columns = values_columns("eigenvalue", self.spectrum_)
        columns.append(["share of rows", *(f"{share:.2g}" for share in self.row_shares_)])
        return {"verdict": verdict, "facts": facts, "columns": columns}


def _run(source: Source, functions: DiffusionFunctions, description: str) -> Run:
    """Return a run that evaluates the features, in tasks of equal work."""
    p, q = len(functions.points), len(functions.first)
    flops = 2.0 * p * (source.dimension + 25) + 2.0 * q * (p + q)
    return Run(source, plan_rows(source, flops), None, description)
