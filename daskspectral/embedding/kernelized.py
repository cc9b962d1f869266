"""Kernelized SDP embedding: a Mercer kernel learned in the space of another one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.data.containers import in_memory
from daskspectral.data.source import open_source
from daskspectral.embedding.bandwidth import SCALED, advise_units, check_bandwidth, chosen_bandwidth
from daskspectral.embedding.certificate import Certificate
from daskspectral.embedding.extension import Coordinates
from daskspectral.embedding.kernel_problem import RANGE_CUT, KernelizedProblem, LearnedKernel, solve_kernelized
from daskspectral.embedding.points import points_in_memory
from daskspectral.embedding.summary import certificate_facts, embedding_summary
from daskspectral.engine.memory import available
from daskspectral.errors import RankWarning, warn_user
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.estimators.transformer import Transformer
from daskspectral.kernels import Kernel, Matern
from daskspectral.landmarks import median_distance
from daskspectral.passes.parameters import checked_kernel
from daskspectral.validation import POSITIVE, check_integer, check_number, check_random_state

Array = NDArray[np.floating[Any]]
Values = float | Array | Callable[[Array], Array] | None
SAME = 1e-9  # relative difference of d at equal points that is rounding error
LARGEST_ERROR = 1e-4  # of |diag(B) - d| / d, above which the solution is rejected


class KernelEmbedding(Transformer):
    """Kernelized SDP embedding: problem reg-kVP-n, equation (1.9), of Fanuel et al. 2022.

    Learns the Mercer kernel b in the space of a kernel k with b(x_i, x_i) = d(x_i) at n points that maximizes

        Tr(K_bar B) / n² - regularization Tr(K^+ B),    K_bar = K - u uᵀ,    B_ij = b(x_i, x_j),

    with a certificate, in O(n³) per step and about 100 n² bytes: n up to a few thousand; seconds for 1000 points,
    several times as long if K is singular. If K is numerically singular, as for smooth kernels (Gaussian), b is sought
    in its range, with a RankWarning: the constraints are then nearly dependent, and `certificate_` reports the
    accuracy.

    Parameters
    ----------
    kernel : Kernel or its name, default Matern(1.5, "auto")
        Kernel in whose space another is learned; Matern spaces are Sobolev spaces. A scale "auto" is bandwidth_ / √2,
        at which a Gaussian kernel is exp(-r² / bandwidth_²).
    regularization : number
        Weight of the penalty, positive.
    bandwidth : {"auto", "median"} or number
        Bandwidth of a kernel with scale "auto", in the units of X, or its choice as in `SDPEmbedding`.
    u : array (n,), callable or number, optional
        Values at the points of the function u subtracted from k; by default Σ_i k(x_i, .) of unit norm.
    d : array (n,), callable or number, optional
        Diagonal, positive; by default the diagonal of K_bar, k(x, x) - u(x)².
    tolerance : number
        Relative gap, and relative error of the constraints, of an optimal solution.
    max_passes : int
        Largest number of steps; about 15 are needed.
    random_state : int, Generator or None
        Seed of the rows for a bandwidth or the median distance.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, r)
        Embedding E, B = E Eᵀ, columns by descending eigenvalue; the largest entry of each is positive.
    spectrum_ : ndarray of shape (r,)
        Eigenvalues of B above a millionth of the first, descending.
    rank_, range_ : int
        Rank r, and number of directions in the range of K.
    objective_ : float
        Value of the objective.
    dual_ : ndarray of shape (n,)
        Dual variable y.
    certificate_ : Certificate
        Certificate of optimality.
    learned_kernel_ : LearnedKernel
        Kernel b of points (a, d) and (b, d), returns the Gram matrix (a, b), as SVC(kernel=est.learned_kernel_) and
        KernelPCA require.
    bandwidth_ : float or None
        Bandwidth, None if the kernel has a numeric scale.
    kernel_ : Kernel
        Kernel k.
    n_passes_, n_features_in_ : int
        Number of steps, and of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are text.

    See Also
    --------
    SDPEmbedding : Embedding of any number of rows.
    daskspectral.kernels : Kernels.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> est = dsp.KernelEmbedding(dsp.kernels.Matern(1.5, 0.3), regularization=1e-3).fit(x)
    >>> est.certificate_.optimal, est.embedding_.shape == (20, est.rank_)
    (True, True)
    >>> b = est.learned_kernel_(x, x)  # a kernel for scikit-learn
    >>> bool(np.allclose(b, est.embedding_ @ est.embedding_.T, atol=1e-4))
    True
    """

    _fitted_attributes = (
        *("embedding_", "spectrum_", "rank_", "range_", "objective_", "dual_", "certificate_", "learned_kernel_"),
        *("bandwidth_", "n_passes_", "n_features_in_"),
    )

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        regularization: float = 1e-4,
        *,
        bandwidth: str | float = "auto",
        u: Values = None,
        d: Values = None,
        tolerance: float = 1e-7,
        max_passes: int = 100,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.regularization = regularization
        self.bandwidth = bandwidth
        self.u = u
        self.d = d
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: bool | None = None) -> Self:
        """Learn the kernel from the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows or path
            Data in any container of `SpectralDecomposition.fit`.
        y : object
            Ignored.
        progress : bool, optional
            Show a progress bar; None shows it on a terminal only.

        Returns
        -------
        KernelEmbedding
            The fitted estimator.

        Raises
        ------
        InvalidRowError
            For a row with NaN or infinity.
        ValueError
            If the input is invalid, d differs at equal points, or no kernel in the range of K has the diagonal d.
        MemoryError
            If n² numbers exceed the memory.
        """
        with open_table(self, X, RunContext(progress), fits=True, y=y) as table:
            self._fit_table(table)
        return self._restored()

    def _fit_table(self, table: Table) -> None:
        kernel = checked_kernel(Matern(1.5, "auto") if self.kernel is None else self.kernel)
        self._check_parameters(kernel)
        self._check_whole(table.rows)
        if table.rows.on_invalid == "skip":
            raise ValueError(
                "KernelEmbedding requires every row to be valid. Omit on_invalid, and drop rows with NaN before."
            )
        with self._fitting(table) as (source, _):
            if 100 * source.n**2 > available():
                raise MemoryError(
                    f"all pairs of {source.n} rows require about {1e-7 * source.n**2:.1f} GB, but "
                    f"{1e-9 * available():.1f} GB are free. Pass a sample of the rows."
                )
            points = points_in_memory(replace(source, options=()))[0]
        rng = np.random.default_rng(self.random_state)
        if kernel.needs_median:
            kernel = kernel.resolve(median_distance(kernel.embedded_about(points), rng))
        self.bandwidth_ = None
        if kernel.has_scale("auto"):
            rows = open_source(kernel.embedded_about(points), progress=table.context.progress)
            self.bandwidth_ = chosen_bandwidth(rows, self.bandwidth, rng)
            advise_units(rows, SCALED)
            kernel = kernel.resolve(self.bandwidth_ / math.sqrt(2), "auto")
        distinct, first, group, counts = _distinct(points)
        gram = kernel.values(distinct, distinct)
        check_gram(kernel, gram)
        masses = gram @ counts
        u = _at(self.u, points, "u", lambda: (masses / np.sqrt(counts @ masses))[group])
        d = _at(self.d, points, "d", lambda: np.diag(gram)[group] - u**2)
        if not d.min() > 0:
            raise ValueError(
                f"d must be positive at every point, got {d.min():.3g} at row {int(d.argmin())}."
                + ("" if self.d is not None else " k(x, x) - u(x)^2 vanishes there: pass d, or a smaller u.")
            )
        other = int(np.argmax(np.abs(d - d[first][group])))
        if not abs(d[other] - d[first[group[other]]]) <= SAME * d[other]:
            raise ValueError(
                f"d must be equal at equal points, got {d[first[group[other]]]:.6g} and {d[other]:.6g} at rows "
                f"{first[group[other]]} and {other} of X."
            )
        mean = np.bincount(group, u) / counts
        problem = KernelizedProblem.of(gram, mean, d[first], float(self.regularization), counts)
        if not problem.regular:
            warn_user(
                f"the kernel matrix is singular: the learned kernel is sought in {problem.rank} of "
                f"{len(distinct)} directions, with eigenvalues above {RANGE_CUT:g} of the largest. Use a "
                "rougher kernel (Matern) or a smaller scale",
                RankWarning,
            )
        found = solve_kernelized(problem, tolerance=0.01 * self.tolerance, max_passes=self.max_passes)
        if found.error > LARGEST_ERROR:
            raise ValueError(
                f"no kernel was found in the range of K, of {problem.rank} directions for {len(distinct)} "
                f"points, with the diagonal d (relative error {found.error:.2g}). Use a smoother d, a rougher "
                "kernel, a smaller scale, or a larger max_passes."
            )
        self.spectrum_, self.learned_kernel_ = LearnedKernel.of(kernel, distinct, problem, found)
        self.embedding_ = self.learned_kernel_.features(points)
        self.objective_, self.dual_, self.n_passes_ = found.objective, found.dual[group], found.passes
        error = float(np.abs(np.sum(self.embedding_**2, axis=1) / d - 1).max())  # of the retained columns
        optimal = found.merit <= self.tolerance
        self.certificate_ = Certificate(found.least_eigenvalue, found.gap, optimal, error=error)
        self.rank_, self.range_ = len(self.spectrum_), problem.rank

    def transform(self, X: Any, **options: Any) -> Any:
        """Return the features e(x) of the learned kernel at the rows of X: b(x, y) = e(x).e(y).

        Parameters
        ----------
        X : array-like of shape (n, d), Rows or path
            Rows with the columns of the fit.
        **options
            `out`, `extrapolate` and others, as in `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n, r)
            Features in float64, in the container of X.
        """
        check_is_fitted(self)
        learned = self.learned_kernel_
        features = Coordinates(learned.features, self._n_features_out, learned.kernel, learned.points)
        return self._framed(features, X, name="embedding", coordinates={"eigenvalue": self.spectrum_}, **options)

    def _restored(self) -> Self:
        self.kernel_ = self.learned_kernel_.kernel
        return self

    def _check_parameters(self, kernel: Kernel) -> None:
        check_bandwidth(self.bandwidth)
        if self.bandwidth != "auto" and not kernel.has_scale("auto"):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} requires a kernel with scale 'auto', such as Matern(1.5, 'auto'), got "
                f"{kernel!r}. Omit one of them."
            )
        for name in ("regularization", "tolerance"):
            check_number(name, getattr(self, name), POSITIVE)
        check_integer("max_passes", self.max_passes)
        check_random_state(self.random_state)

    def _summary_parts(self) -> dict[str, Any]:
        facts = {
            "kernel": self.kernel_,
            "points": f"{len(self.embedding_)} of {self.n_features_in_} variables",
            "penalty": f"{self.regularization:g}",
            "range": f"{self.range_} directions",
            **certificate_facts(self, ""),
            "diagonal": f"within {self.certificate_.error:.1e}",
            "steps": self.n_passes_,
        }
        return embedding_summary(self, facts)


def _distinct(points: Array) -> tuple[Array, NDArray[np.intp], NDArray[np.intp], Array]:
    """Return distinct points (m, d), their first rows, the point of each row (n,), and counts."""
    _, first, group, counts = np.unique(points, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    return points[first[order]], first[order], np.argsort(order)[group.reshape(-1)], counts[order].astype(float)


def check_gram(kernel: Kernel, gram: Array) -> None:
    """Raise ValueError if the kernel matrix of distinct points is not finite, or diagonal."""
    if not np.isfinite(gram).all():
        raise ValueError(f"the kernel {kernel} is not finite at some points. Change its scale, or scale the columns.")
    roots = np.sqrt(np.diag(gram))
    if len(gram) > 1 and (np.abs(gram) - np.diag(np.diag(gram)) < 1e-8 * np.outer(roots, roots)).all():
        raise ValueError(
            f"the kernel {kernel} is 0 between all {len(gram)} distinct points. Use a larger bandwidth, or scale."
        )


def _at(given: Values, points: Array, name: str, default: Callable[[], Array]) -> Array:
    """Return the values (n,) of an array, a number or a callable."""
    if given is None:
        return default()
    values = np.asarray(in_memory(given(points) if callable(given) else given, name))
    n = len(points)
    if values.dtype.kind not in "fiu" or values.shape not in ((), (n,)) or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be a finite number, an array ({n},) of these, or a function of points (n, d) that "
            f"returns one, got {values.dtype} of shape {values.shape}."
        )
    return np.broadcast_to(values.astype(float), (n,)).copy()
