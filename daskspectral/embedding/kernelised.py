"""KernelEmbedding: the kernelised SDP embedding, a Mercer kernel learned in the space of another one."""

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
from daskspectral.embedding.kernel_problem import RANGE_CUT, KernelisedProblem, LearnedKernel, solve_kernelised
from daskspectral.embedding.points import points_in_memory
from daskspectral.embedding.summary import embedding, proved
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
SAME = 1e-9  # relative difference of d at equal points that is rounding
LARGEST_ERROR = 1e-4  # of |diag(B) - d| / d, beyond which there is no answer


class KernelEmbedding(Transformer):
    """The kernelised SDP embedding: problem reg-kVP-n, equation (1.9), of Fanuel et al. 2022.

    It learns, among the Mercer kernels b in the space of a kernel k that have b(x_i, x_i) = d(x_i) at n points, the
    kernel that maximises

        Tr(K_bar B) / n² - regularization Tr(K^+ B),    K_bar = K - u uᵀ,    B_ij = b(x_i, x_j).

    It is solved with a proof, in O(n³) a step and about 100 n² bytes: n up to a few thousand. A Newton method on a
    factor of B takes seconds for 1000 points; equal points are one, counted. Where K is singular at distinct points, an
    interior-point method takes its place, at some times the cost. Where K is numerically singular, as it is for smooth
    kernels (Gaussian), b is sought in its range, with a RankWarning: the constraints are then nearly dependent, and
    `certificate_` tells what was reached.

    Parameters
    ----------
    kernel : Kernel or its name, default Matern(1.5, "auto")
        Kernel in whose space another is learned; matern:1.5:auto by default. The spaces of Matern kernels are Sobolev
        spaces. A scale "auto" is bandwidth_ / √2, at which a Gaussian kernel is exp(-r² / bandwidth_²).
    regularization : number
        Weight of the penalty, positive. It is λ.
    bandwidth : {"auto", "median"} or number
        In the units of X, or how it is chosen, as in `SDPEmbedding`; of a kernel whose scale is "auto".
    u : array (n,), callable or number, optional
        The values at the points of the function u that is taken off k; by default Σ_i k(x_i, .) of unit norm.
    d : array (n,), callable or number, optional
        The diagonal, positive; by default the diagonal of K_bar, k(x, x) - u(x)².
    tolerance : number
        Relative gap, and relative error of the constraints, below which a solution counts as optimal.
    max_passes : int
        Largest number of steps; about 15 are needed.
    random_state : int, Generator or None
        Decides the rows from which a bandwidth, or the median distance, is taken.

    Attributes
    ----------
    embedding_ : (n, r), B = E Eᵀ, columns by descending eigenvalue, the largest entry of each positive
    spectrum_ : (r,) eigenvalues of B, descending, without eigenvalues below a millionth of the first
    rank_, range_ : int, r and the number of directions in the range of K
    objective_, dual_, certificate_ : the value, y (n,), and a `Certificate`
    learned_kernel_ : b, a kernel: called with points (a, d) and (b, d), it gives the Gram matrix (a, b), so that
        SVC(kernel=est.learned_kernel_) and KernelPCA(kernel=est.learned_kernel_) take it
    bandwidth_ : float, None where the kernel has a scale of its own
    kernel_, n_passes_, n_features_in_, feature_names_in_ (if named)

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> est = dsp.KernelEmbedding(dsp.kernels.Matern(1.5, 0.3), regularization=1e-3).fit(x)
    >>> est.certificate_.optimal, est.embedding_.shape == (20, est.rank_)
    (True, True)
    >>> b = est.learned_kernel_(x, x)  # a kernel, as scikit-learn takes it
    >>> bool(np.allclose(b, est.embedding_ @ est.embedding_.T, atol=1e-4))
    True
    """

    fitted_attributes = (
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
        """Learn the kernel from the rows of X (n, d), in any container that `SpectralDecomposition.fit` takes.

        Raises InvalidRowError for a row with NaN or infinity, ValueError for input that cannot work, where d differs at
        equal points or no kernel in the range of K has the diagonal d, MemoryError where n² numbers do not fit.
        """
        with open_table(self, X, RunContext(progress), fits=True, y=y) as table:
            self._fit_table(table)
        return self._restored()

    def _fit_table(self, table: Table) -> None:
        kernel = checked_kernel(Matern(1.5, "auto") if self.kernel is None else self.kernel)
        self._check_parameters(kernel)
        self._check_whole(table.rows)
        if table.rows.on_invalid == "skip":
            raise ValueError("KernelEmbedding takes every row: leave on_invalid out, and drop rows with NaN before")
        with self._fitting(table) as (source, _):
            if 100 * source.n**2 > available():
                raise MemoryError(
                    f"{source.n} rows need about {1e-7 * source.n**2:.1f} GB, and {1e-9 * available():.1f} GB are "
                    "free: the kernelised problem takes all pairs; give a sample of the rows"
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
                f"d must be positive at every point; at row {int(d.argmin())} it is {d.min():.3g}"
                + ("" if self.d is not None else ": k(x, x) - u(x)^2 vanishes there; give d, or a smaller u")
            )
        other = int(np.argmax(np.abs(d - d[first][group])))
        if not abs(d[other] - d[first[group[other]]]) <= SAME * d[other]:
            raise ValueError(
                f"d must be the same at equal points: rows {first[group[other]]} and {other} of X are equal, and d is "
                f"{d[first[group[other]]]:.6g} and {d[other]:.6g} there"
            )
        mean = np.bincount(group, u) / counts
        problem = KernelisedProblem.of(gram, mean, d[first], float(self.regularization), counts)
        if not problem.regular:
            warn_user(
                f"the kernel's matrix is singular: of {len(distinct)} directions {problem.rank} are above "
                f"{RANGE_CUT:g} of its largest eigenvalue, and the learned kernel is sought among these; a rougher "
                "kernel (Matern) or a smaller scale has more",
                RankWarning,
            )
        found = solve_kernelised(problem, tolerance=0.01 * self.tolerance, max_passes=self.max_passes)
        if found.error > LARGEST_ERROR:
            raise ValueError(
                f"no kernel was found in the range of K, of {problem.rank} directions for {len(distinct)} points, with "
                f"the diagonal d: the relative error is {found.error:.2g} at best. Give a smoother d, a rougher kernel "
                "or a smaller scale, or raise max_passes"
            )
        self.spectrum_, self.learned_kernel_ = LearnedKernel.of(kernel, distinct, problem, found)
        self.embedding_ = self.learned_kernel_.features(points)
        self.objective_, self.dual_, self.n_passes_ = found.objective, found.dual[group], found.passes
        error = float(np.abs(np.sum(self.embedding_**2, axis=1) / d - 1).max())  # of the columns that are kept
        optimal = found.merit <= self.tolerance
        self.certificate_ = Certificate(found.least_eigenvalue, found.gap, optimal, error=error)
        self.rank_, self.range_ = len(self.spectrum_), problem.rank

    def transform(self, X: Any, **options: Any) -> Any:
        """The features e(x) of the learned kernel at the rows of X, (n, r): b(x, y) = e(x).e(y).

        Containers, `out` and the other options are as in `SpectralDecomposition.transform`.
        """
        check_is_fitted(self)
        own = self.learned_kernel_
        features = Coordinates(own.features, self._n_features_out, own.kernel, own.points)
        return self._framed(features, X, name="embedding", coordinates={"eigenvalue": self.spectrum_}, **options)

    def _restored(self) -> Self:
        self.kernel_ = self.learned_kernel_.kernel
        return self

    def _check_parameters(self, kernel: Kernel) -> None:
        check_bandwidth(self.bandwidth)
        if self.bandwidth != "auto" and not kernel.has_scale("auto"):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} is for a kernel whose scale is 'auto', such as Matern(1.5, 'auto'); "
                f"{kernel!r} has its own: leave one of them out"
            )
        for name in ("regularization", "tolerance"):
            check_number(name, getattr(self, name), POSITIVE)
        check_integer("max_passes", self.max_passes)
        check_random_state(self.random_state)

    def _summary_parts(self) -> dict[str, Any]:
        """The parts of a `Summary`."""
        facts = {
            "kernel": self.kernel_,
            "points": f"{len(self.embedding_)} of {self.n_features_in_} variables",
            "penalty": f"{self.regularization:g}",
            "range": f"{self.range_} directions",
            **proved(self, ""),
            "diagonal": f"within {self.certificate_.error:.1e}",
            "steps": self.n_passes_,
        }
        return embedding(self, facts)


def _distinct(points: Array) -> tuple[Array, NDArray[np.intp], NDArray[np.intp], Array]:
    """The distinct points (m, d) in their order, the first row of each (m,), which one a row is (n,), their counts."""
    _, first, group, counts = np.unique(points, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    return points[first[order]], first[order], np.argsort(order)[group.reshape(-1)], counts[order].astype(float)


def check_gram(kernel: Kernel, gram: Array) -> None:
    """Raise ValueError where the kernel's matrix of different points (n, n) is not finite, or diagonal to rounding."""
    if not np.isfinite(gram).all():
        raise ValueError(
            f"the kernel {kernel} is not finite at some of the points: change its scale, or scale the columns"
        )
    roots = np.sqrt(np.diag(gram))
    if len(gram) > 1 and (np.abs(gram) - np.diag(np.diag(gram)) < 1e-8 * np.outer(roots, roots)).all():
        raise ValueError(
            f"the kernel {kernel} joins no two of the {len(gram)} different points: its values between them are 0. "
            "Give a larger bandwidth, or scale"
        )


def _at(given: Values, points: Array, name: str, default: Callable[[], Array]) -> Array:
    """A function at the points, (n,): from an array, a number, or a callable that takes points (n, d)."""
    if given is None:
        return default()
    values = np.asarray(in_memory(given(points) if callable(given) else given, name))
    n = len(points)
    if values.dtype.kind not in "fiu" or values.shape not in ((), (n,)) or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be a finite number at each of the {n} points: a number, an array ({n},), or a function of "
            f"points (n, d) that returns one; got {values.dtype} of shape {values.shape}"
        )
    return np.broadcast_to(values.astype(float), (n,)).copy()
