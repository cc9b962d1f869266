"""SDPEmbedding: coordinates from a semidefinite program with a bounded diagonal, with a proof that they are optimal."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis
from daskspectral.data.integrity import Snapshot
from daskspectral.data.source import Source, as_reader, open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint, leased
from daskspectral.engine.run import checkpoint_signals
from daskspectral.errors import RankWarning
from daskspectral.estimators.base import Estimator, identity_of
from daskspectral.kernels import Gaussian
from daskspectral.passes.embed_exact import embed_exact
from daskspectral.passes.embed_lowrank import embed_low_rank
from daskspectral.passes.embedding import Passes, check_scratch, plan_embedding
from daskspectral.passes.landmarks import choose_landmarks
from daskspectral.passes.parameters import (
    check_landmark_choice,
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    given_landmarks,
)
from daskspectral.passes.scale import standardized
from daskspectral.passes.sums import Discretisation, flops_of
from daskspectral.solve.sdp import Problem, SDPSolution, SDPSolver

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
EXACT_ROWS = 20_000  # rows up to which "auto" takes all points: some minutes on two cores
FURTHER = 1.5  # landmarks over n_landmarks, at most, once points that were not covered are landmarks too
FREE = ("max_passes", "tolerance", "cache", "cache_path")  # parameters that may change from one start to the next


class SDPEmbedding(TransformerMixin, Estimator):  # type: ignore[misc]
    """Positive semidefinite embedding (SDP and (1.5), Fanuel, Aspeel, Delvenne and Suykens 2022).

    B = E E^T maximises Tr(Abar B) over positive semidefinite matrices with diag(B) <= d, where Abar is the kernel
    exp(-r^2 / bandwidth^2), normalised by its sums and without its first eigenvector (1.2). The lengths of the rows of
    E are bounded, so that no coordinate localises on a few outliers; the rank of B, a few, is the dimension.

    Parameters
    ----------
    bandwidth : float
        In the units of X, or of its standardised columns.
    method : {"auto", "exact", "lowrank"}
        "exact" takes the kernel between all n points, O(n^2) a pass; "lowrank" takes its Nystrom approximation at p
        landmarks, O(n p) a pass over any number of chunks. "auto" is exact up to 20 000 rows; `method_` tells.
    solver : {"accelerated", "power"}
        Quasi-Newton ascent that finds the rank on the way, or the paper's projected power method.
    tolerance : float
        Duality gap, relative to the objective, at which the solution counts as optimal.
    max_passes : int
        Products with the kernel after which the ascent ends, optimal or not.
    n_landmarks, landmarks, landmark_sample
        p and how the landmarks are chosen, or an array (p, n_features), as in `SpectralDecomposition`. Points that the
        chosen landmarks do not cover become landmarks too, as long as there are no more than 1.5 p in all.
    columns, standardize
        The columns used, and whether each is brought to mean 0 and standard deviation 1 first (ddof 0).
    cache : {"auto", "always", "never"}
        Whether "lowrank" keeps the kernel values at the landmarks between its passes, 8 p bytes a row: in this
        process's memory where they fit (1 GB at most, and twice that while they are made; never of a dask array, or on
        a cluster), or in a scratch array at `cache_path` where that is given. "always" raises where neither works.
    cache_path : path, optional
        Where the scratch array goes, a zarr array that all workers see (or a URL). It is left there, and replaced by
        the next fit; whatever else lies at the path is refused. It pays where X has hundreds of columns.
    random_state : int, Generator or None
        Decides the landmarks and the first point of the ascent.

    Attributes
    ----------
    embedding_ : (n, rank) E, columns by descending eigenvalue of B; with "lowrank" lazy where X is lazy: a dask or
        zarr array, or a path. In each column the entry of largest magnitude is positive ("exact"), or the largest
        coordinate in the whitened landmark functions ("lowrank").
    spectrum_ : (rank,) eigenvalues of B, descending
    rank_ : int
    objective_ : Tr(Abar B); with "lowrank", before it is optimal, a lower bound of it
    certificate_ : `least_eigenvalue` of diag(y) - Abar, `gap`, `optimal`; with "lowrank", of the low-rank problem
    coverage_ : with "lowrank", least |psi(x)|^2 of a point, 1 where the landmarks span its kernel function
    n_passes_ : int, products with the kernel in the ascent
    objectives_ : the objective at each of them, also at steps that were not taken
    method_, extension_, n_features_in_

    Examples
    --------
    Two clusters of points on a line: the first coordinate has one sign on each.

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.concatenate([np.linspace(0, 1, 30), np.linspace(4, 5, 30)])[:, None]
    >>> sdp = dsp.SDPEmbedding(bandwidth=1.0, random_state=0).fit(x)
    >>> sdp.certificate_.optimal, sdp.rank_
    (True, 1)
    >>> sides = np.sign(sdp.embedding_[:, 0])
    >>> bool(np.all(sides[:30] == -sides[30:]))
    True
    >>> bool(np.allclose(sdp.transform(x), sdp.embedding_))
    True
    """

    @property
    def fitted_attributes(self) -> tuple[str, ...]:
        kept = ("embedding_",) if isinstance(getattr(self, "embedding_", None), np.ndarray) else ()  # a lazy one is not
        described = ("spectrum_", "rank_", "objective_", "certificate_", "n_passes_", "objectives_", "method_")
        return (*described, "extension_", "coverage_", "n_features_in_", *kept)

    def __init__(
        self,
        bandwidth: float,
        *,
        method: str = "auto",
        solver: str = "accelerated",
        tolerance: float = 1e-10,
        max_passes: int = 10_000,
        n_landmarks: int = 500,
        landmarks: str | Any = "cholesky",
        landmark_sample: int | None = None,
        columns: Sequence[int] | None = None,
        standardize: bool = False,
        cache: str = "auto",
        cache_path: str | os.PathLike[str] | None = None,
        random_state: Any = None,
    ):
        self.bandwidth = bandwidth
        self.method = method
        self.solver = solver
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.landmark_sample = landmark_sample
        self.columns = columns
        self.standardize = standardize
        self.cache = cache
        self.cache_path = cache_path
        self.random_state = random_state

    @leased
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        diagonal: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Embed the rows of X (n, d) on the active dask scheduler, and certify.

        `diagonal` (n,) are bounds d on the diagonal of B in place of alpha(x) = 1/m(x) - m(x) / sum m, where m(x)
        sums the kernel over the points. With `checkpoint`, the passes of "lowrank" that were made are not made again. X
        and the other options are as in `SpectralDecomposition.fit`.

        Raises ValueError or TypeError for input that cannot work, for a bandwidth at which the kernel joins no two
        points or cannot tell any apart, and for points that the landmarks do not cover; MemoryError where a run would
        not fit, OSError for data that are damaged or change meanwhile.
        """
        self._check_parameters(on_invalid)
        source = open_source(X, columns=self.columns, diagonal=diagonal).allowing_missing(allow_missing)
        method = self._checked_method(source, checkpoint, on_invalid)
        snapshot = Snapshot(source, allow_missing=allow_missing)
        logger.info("method %s for %d rows", method, source.n)
        self.method_, self.n_features_in_ = method, source.n_features_in
        rng = np.random.default_rng(self.random_state)
        embedding = None
        if method == "exact":
            source = standardized(source, on_invalid=on_invalid, progress=progress) if self.standardize else source
            run = Run(source, plan_rows(source, flops_of(source, 1)), None, on_invalid, progress, "read")
            self.extension_, embedding = embed_exact(run, self._kernel, self._solve, rng)
        else:

            def constants() -> dict[str, Any]:
                laid = self._discretised(source, rng, on_invalid=on_invalid, progress=progress)
                return {"discretisation": laid, "seed": int(rng.integers(2**31))}

            if checkpoint is None:
                self._fit_low_rank(source, constants(), None, on_invalid, progress)
            else:
                params = {k: v for k, v in self.plain_params().items() if k not in FREE}
                identity = identity_of(snapshot, params, on_invalid)
                saved = Checkpoint.take_up(checkpoint, identity, constants, checkpoint_every)
                self._fit_low_rank(source, saved.constants, saved, on_invalid, progress)
        snapshot.check_unchanged()
        if embedding is None or on_invalid == "skip":
            embedding = self.transform(X, diagonal=diagonal, on_invalid=on_invalid, allow_missing=allow_missing)
        self.embedding_ = embedding
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`embedding_`, after `fit`."""
        return self.fit(X, y, **options).embedding_

    def transform(self, X: Any, *, diagonal: Any = None, **options: Any) -> Any:
        """The embedding of the rows of X by the extension (1.5), (n, rank) float64; at the points of the fit, E itself.

        `diagonal` (n,) are the bounds at these points, where the fit was given bounds. Containers and options are as in
        `SpectralDecomposition.transform`. Rows where the extension is undefined, far from every point of the fit,
        raise ValueError, or become NaN with on_invalid="skip".
        """
        check_is_fitted(self)
        if (diagonal is None) == self.extension_.unit:
            needs = "needs diagonal, the bounds at these points" if self.extension_.unit else "takes no diagonal"
            raise ValueError(f"transform {needs}: the fit was given {'one' if self.extension_.unit else 'none'}")
        if diagonal is not None and options.get("out") is not None:
            raise ValueError("out takes no diagonal: write transform(X, diagonal=...) yourself, such as by to_zarr")
        found = self._rows(self.extension_, X, coordinates={"eigenvalue": self.spectrum_}, **options)
        if diagonal is None:
            return found
        return found * np.sqrt(_bounds(diagonal, found.shape[0], options.get("on_invalid", "raise")))[:, None]

    @property
    def _kernel(self) -> Gaussian:
        return Gaussian(float(self.bandwidth) / np.sqrt(2))

    def _discretised(
        self, source: Source, rng: np.random.Generator, *, on_invalid: str, progress: bool | None
    ) -> Discretisation:
        """The landmarks, and the scaling of columns."""
        if self.standardize:
            source = standardized(source, on_invalid=on_invalid, progress=progress)
        with warnings.catch_warnings():
            if isinstance(self.landmarks, str) and self.landmarks == "cholesky":
                warnings.simplefilter(
                    "ignore", RankWarning
                )  # the landmarks span the kernel to rounding: no more are needed
            points = choose_landmarks(
                source,
                self._kernel,
                self.landmarks,
                min(self.n_landmarks, source.n),
                rng,
                sample_size=self.landmark_sample,
                on_invalid=on_invalid,
                progress=progress,
            ).points
        return Discretisation(LandmarkBasis(self._kernel, points), source.preparation)

    def _fit_low_rank(
        self,
        source: Source,
        constants: Any,
        checkpoint: Checkpoint | None,
        on_invalid: str,
        progress: bool | None,
    ) -> None:
        laid: Discretisation = constants["discretisation"]
        source = source.with_preparation(mean=laid.preparation.mean, scale=laid.preparation.scale)
        plan = plan_embedding(source, laid.basis.size)
        run = Run(source, plan.ranges, None, on_invalid, progress, "embed")
        if checkpoint is not None:
            checkpoint.agree(plan.ranges)
        with checkpoint_signals(checkpoint):
            assert isinstance(laid.basis, LandmarkBasis)
            self.extension_, self.coverage_ = embed_low_rank(
                Passes(run, checkpoint),
                laid.basis,
                self._solve,
                seed=constants["seed"],
                most=int(FURTHER * self.n_landmarks) if isinstance(self.landmarks, str) else 0,
                cache=self.cache,
                scratch=None if self.cache_path is None else os.fspath(self.cache_path),
            )
        if checkpoint is not None:
            checkpoint.write()

    def _solve(self, problem: Problem, start: Array) -> SDPSolution:
        solver = SDPSolver.named(self.solver)
        solution = solver.solve(problem, start, tolerance=self.tolerance, max_passes=self.max_passes)
        if not solution.certificate.optimal:
            warnings.warn(
                f"the embedding is not proved optimal: the relative duality gap is up to "
                f"{solution.certificate.gap / solution.objective:.1e}, above tolerance={self.tolerance:g}, after "
                f"{solution.passes} passes; raise max_passes, or widen the bandwidth if few points reach one another",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.spectrum_, self.rank_ = solution.eigenvalues, len(solution.eigenvalues)
        self.objective_, self.certificate_ = solution.objective, replace(solution.certificate, direction=None)
        self.n_passes_, self.objectives_ = solution.passes, np.array(solution.objectives)
        return solution

    def _checked_method(self, source: Source, checkpoint: Any, on_invalid: str) -> str:
        if "diagonal" in source.readers and len(source.readers["diagonal"].shape) != 1:
            raise ValueError(f"diagonal must have shape ({source.n},); it has {source.readers['diagonal'].shape}")
        if not isinstance(self.landmarks, str):
            given_landmarks(self.landmarks, source.n_features_in, columns=source.preparation.columns)
        method = self.method
        if method == "auto":
            method = "exact" if source.n <= EXACT_ROWS else "lowrank"
        if self.cache_path is not None:
            check_scratch(self.cache_path, source)
            if on_invalid == "skip":
                raise ValueError("cache_path keeps every row: mend the data and take on_invalid='raise'")
        if method == "exact" and checkpoint is not None:
            raise ValueError("a checkpoint is of the passes over chunks: give method='lowrank', or no checkpoint")
        return method

    def _check_parameters(self, on_invalid: str) -> None:
        for name in ("bandwidth", "tolerance"):
            check_number(name, getattr(self, name))
            if not 1e-100 < getattr(self, name) < 1e100:
                raise ValueError(f"{name} must be positive, 1e-100 to 1e100; it is {getattr(self, name)!r}")
        for name in ("n_landmarks", "max_passes"):
            check_whole(name, getattr(self, name))
        check_one_of("method", self.method, ("auto", "exact", "lowrank"))
        SDPSolver.named(self.solver)
        check_one_of("cache", self.cache, ("auto", "always", "never"))
        if self.cache_path is not None and (
            not isinstance(self.cache_path, (str, os.PathLike)) or not os.fspath(self.cache_path)
        ):
            raise ValueError(f"cache_path must be a path or None; it is {self.cache_path!r}")
        if self.cache_path is not None and self.cache == "never":
            raise ValueError("cache='never' keeps nothing at cache_path: leave one of them out")
        check_one_of("standardize", self.standardize, (True, False))
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        check_landmark_choice(self.landmarks, self.landmark_sample, self.n_landmarks)
        check_random_state(self.random_state)


def _bounds(diagonal: Any, n: int, on_invalid: str) -> Array:
    reader = as_reader(diagonal, "diagonal")
    bounds = np.asarray(reader.read(0, n), dtype=float) if reader.shape == (n,) else np.empty(0)
    if bounds.shape != (n,) or not ((bounds > 0) | (np.isnan(bounds) & (on_invalid == "skip"))).all():
        raise ValueError(f"diagonal must be {n} positive numbers, a bound for each row; it has shape {reader.shape}")
    return bounds
