"""KernelEmbedding: the kernelised SDP embedding, a Mercer kernel learned in the space of another one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from daskspectral import landmarks as choosing
from daskspectral.data.integrity import Snapshot
from daskspectral.data.source import in_memory, open_source
from daskspectral.engine.memory import available
from daskspectral.errors import RankWarning
from daskspectral.estimators.base import Estimator
from daskspectral.kernels import Kernel, Matern
from daskspectral.passes.coordinates import Coordinates, read_points
from daskspectral.passes.parameters import (
    check_number,
    check_random_state,
    check_whole,
    checked_kernel,
)
from daskspectral.registry import Registered
from daskspectral.solve.kernelised import RANGE_CUT, KernelisedProblem, LearnedKernel, solve_kernelised

Array = NDArray[np.floating[Any]]
Values = float | Array | Callable[[Array], Array] | None
LARGEST_ERROR = 1e-4  # of |diag(B) - d| / d, beyond which there is no answer


@dataclass(frozen=True)
class KernelCertificate(Registered):
    """The proof of an answer, in the units of the objective.

    `least_eigenvalue` is the least eigenvalue of diag(y) - (K_bar / n^2 - lambda K^+) in the range of K; `gap` bounds
    how far the objective may be below the optimum; `error` is the largest |diag(B) - d| / d; `optimal` tells whether
    the gap relative to the objective and the error are below the tolerance asked for.
    """

    least_eigenvalue: float
    gap: float
    error: float
    optimal: bool


class KernelEmbedding(TransformerMixin, Estimator):  # type: ignore[misc]
    """The kernelised SDP embedding: problem reg-kVP-n, equation (1.9), of Fanuel et al. 2022.

    It learns, among the Mercer kernels b in the space of a kernel k that have b(x_i, x_i) = d(x_i) at n points, the
    kernel that maximises

        Tr(K_bar B) / n^2 - regularization Tr(K^+ B),   K_bar = K - u u^T,   B_ij = b(x_i, x_j).

    It is solved with a proof, by an interior-point method, in O(n^3) a step and about 100 n^2 bytes: n up to a few
    thousand. Where K is numerically singular, as it is for smooth kernels (Gaussian), b is sought in its range, with a
    RankWarning: the constraints are then nearly dependent, and `certificate_` tells what was reached.

    Parameters
    ----------
    kernel : Kernel, default Matern(1.5, "median")
        k. The spaces of Matern kernels are Sobolev spaces.
    regularization : number
        lambda, positive.
    u : array (n,), callable or number, optional
        The values at the points of the function u that is taken off k; by default sum_i k(x_i, .) of unit norm.
    d : array (n,), callable or number, optional
        The diagonal, positive; by default the diagonal of K_bar, k(x, x) - u(x)^2.
    tolerance : number
        Relative gap, and relative error of the constraints, below which an answer is called optimal.
    max_passes : int
        Steps at most; about 15 are needed.
    random_state : int, Generator or None
        Decides the sample of a median distance.

    Attributes
    ----------
    embedding_ : (n, r), B = E E^T, columns by descending eigenvalue, the largest entry of each positive
    spectrum_ : (r,) eigenvalues of B, descending, without eigenvalues below a millionth of the first
    rank_, range_ : int, r and the number of directions in the range of K
    objective_, dual_, certificate_ : the value, y (n,), and a KernelCertificate
    learned_kernel_ : b, a kernel: called with points (a, d) and (b, d), it gives the Gram matrix (a, b), so that
        SVC(kernel=est.learned_kernel_) and KernelPCA(kernel=est.learned_kernel_) take it
    kernel_, n_passes_, n_features_in_

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
        "embedding_",
        "spectrum_",
        "rank_",
        "range_",
        "objective_",
        "dual_",
        "certificate_",
        "learned_kernel_",
        "n_passes_",
        "n_features_in_",
    )

    def __init__(
        self,
        kernel: Kernel | None = None,
        regularization: float = 1e-4,
        *,
        u: Values = None,
        d: Values = None,
        tolerance: float = 1e-7,
        max_passes: int = 100,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.regularization = regularization
        self.u = u
        self.d = d
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, allow_missing: bool = False, progress: bool | None = None) -> Self:
        """Learn the kernel from the rows of X (n, d), in any container that `SpectralDecomposition.fit` takes.

        Raises InvalidRowError for a row with NaN or infinity, ValueError for input that cannot work or where no kernel
        in the range of K has the diagonal d, MemoryError where n^2 numbers do not fit.
        """
        kernel = checked_kernel(Matern(1.5, "median") if self.kernel is None else self.kernel)
        self._check_parameters()
        source = open_source(X)
        if 100 * source.n**2 > available():
            raise MemoryError(
                f"{source.n} rows need about {1e-7 * source.n**2:.1f} GB, and {1e-9 * available():.1f} GB are free: "
                "the kernelised problem takes all pairs; give a sample of the rows"
            )
        snapshot = Snapshot(source.allowing_missing(allow_missing), allow_missing=allow_missing)
        points = read_points(source, "raise", progress)
        snapshot.check_unchanged()
        if kernel.needs_median:
            rng = np.random.default_rng(self.random_state)
            kernel = kernel.resolve(choosing.median_distance(kernel.embedded(points), rng))
        gram = kernel.values(points, points)
        u = _at(self.u, points, "u", lambda: gram.sum(axis=0) / np.sqrt(gram.sum()))
        d = _at(self.d, points, "d", lambda: np.diag(gram) - u**2)
        if not d.min() > 0:
            raise ValueError(
                f"d must be positive at every point; at row {int(d.argmin())} it is {d.min():.3g}"
                + ("" if self.d is not None else ": k(x, x) - u(x)^2 vanishes there; give d, or a smaller u")
            )
        problem = KernelisedProblem.of(gram, u, d, float(self.regularization))
        if problem.rank < len(points):
            warnings.warn(
                f"the kernel's matrix is singular: of {len(points)} directions {problem.rank} are above {RANGE_CUT:g} "
                "of its largest eigenvalue, and the learned kernel is sought among these; a rougher kernel (Matern) or "
                "a smaller scale has more",
                RankWarning,
                stacklevel=2,
            )
        found = solve_kernelised(problem, tolerance=0.01 * self.tolerance, max_passes=self.max_passes)
        if found.error > LARGEST_ERROR:
            raise ValueError(
                f"no kernel was found in the range of K, of {problem.rank} directions for {len(points)} points, with "
                f"the diagonal d: the relative error is {found.error:.2g} at best. Give a smoother d, a rougher kernel "
                "or a smaller scale, or raise max_passes"
            )
        self.spectrum_, self.learned_kernel_ = LearnedKernel.of(kernel, points, problem, found)
        self.embedding_ = self.learned_kernel_.features(points)
        self.objective_, self.dual_, self.n_passes_ = found.objective, found.dual, found.passes
        error = float(np.abs(np.sum(self.embedding_**2, axis=1) / d - 1).max())  # of the columns that are kept
        self.certificate_ = KernelCertificate(found.least_eigenvalue, found.gap, error, found.merit <= self.tolerance)
        self.rank_, self.range_ = len(self.spectrum_), problem.rank
        self.kernel_, self.n_features_in_ = kernel, source.n_features_in
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` of the same array."""
        return self.fit(X, y, **options).transform(X)

    def transform(self, X: Any, **options: Any) -> Any:
        """The features e(x) of the learned kernel at the rows of X, (n, r): b(x, y) = e(x).e(y).

        Containers, `out` and the other options are as in `SpectralDecomposition.transform`.
        """
        check_is_fitted(self)
        features = Coordinates(_Features(self.learned_kernel_))
        return self._rows(features, X, coordinates={"eigenvalue": self.spectrum_}, **options)

    def restored(self) -> Self:
        self.kernel_ = self.learned_kernel_.kernel
        return self

    def _check_parameters(self) -> None:
        for name in ("regularization", "tolerance"):
            check_number(name, getattr(self, name))
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive; it is {getattr(self, name)!r}")
        check_whole("max_passes", self.max_passes)
        check_random_state(self.random_state)


@dataclass(frozen=True, eq=False)
class _Features:
    """The features of a learned kernel as functions of points."""

    kernel: LearnedKernel

    @property
    def width(self) -> int:
        return self.kernel.width

    def __call__(self, x: Array) -> Array:
        return self.kernel.features(x)


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
