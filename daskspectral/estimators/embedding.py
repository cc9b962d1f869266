"""SDPEmbedding: coordinates from a semidefinite program with a bounded diagonal, with a proof that they are optimal."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Source, as_reader, open_source
from daskspectral.engine import Run
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import check_memory
from daskspectral.engine.run import checkpoint_signals
from daskspectral.errors import RankWarning
from daskspectral.estimators.common import choose_landmarks, standardized
from daskspectral.estimators.embedding_modes import embed_exact, embed_low_rank
from daskspectral.estimators.embedding_passes import Passes, check_scratch, pass_plan
from daskspectral.estimators.extension import Extension
from daskspectral.estimators.measuring import Store, open_checkpoint, run_identity
from daskspectral.estimators.parameters import (
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    given_landmarks,
    params_from_state,
    params_state,
)
from daskspectral.estimators.rows import apply_rows
from daskspectral.estimators.saved import Saved
from daskspectral.kernels import Gaussian
from daskspectral.landmarks import METHODS
from daskspectral.solve.sdp import (
    Certificate,
    Problem,
    SDPSolution,
    solve_sdp,
)

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
EXACT_ROWS = 20_000  # rows up to which "auto" takes all points: some minutes on two cores
FURTHER = 1.5  # landmarks, over n_landmarks, when points that were not covered have become landmarks too
SOLUTION = ("spectrum_", "rank_", "objective_", "n_passes_", "objectives_", "method_", "n_features_in_")


class SDPEmbedding(Saved, TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
        landmarks, O(n p) a pass over chunks of any number. "auto" is exact up to 20 000 rows; `method_` tells.
    solver : {"accelerated", "power"}
        Quasi-Newton ascent with the rank found on the way, or the paper's projected power method.
    tolerance : float
        Duality gap, relative to the objective, at which the solution counts as optimal.
    max_passes : int
        Products with the kernel after which the ascent ends, optimal or not.
    n_landmarks, landmarks, landmark_sample
        p and how the landmarks are chosen, or an array (p, n_features), as in `SpectralDecomposition`. Points that
        those chosen do not cover become landmarks too, while these are no more than 1.5 p.
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
    embedding_ : (n, rank) E, columns by descending eigenvalue of B; of "lowrank" lazy where X is: a dask or zarr
        array, or a path.
        In each column the entry of largest magnitude is positive ("exact"), or its largest coordinate in the
        whitened landmark functions ("lowrank").
    spectrum_ : (rank,) eigenvalues of B, descending
    rank_ : int
    objective_ : Tr(Abar B); of "lowrank", until it is optimal, a lower bound of it
    certificate_ : `least_eigenvalue` of diag(y) - Abar, `gap`, `optimal`; with "lowrank", of the low-rank problem
    coverage_ : least |psi(x)|^2 of a point, 1 where the landmarks span its kernel function; of "lowrank"
    n_passes_ : int, products with the kernel in the ascent; objectives_ : the objective at each, steps that were not
        taken included
    method_, extension_, n_features_in_
    """

    kind = "sdp"

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

        `diagonal` (n,) are bounds d on the diagonal of B in place of alpha(x) = 1/m(x) - m(x) / sum m. With
        `checkpoint`, the passes of "lowrank" that were made are not made again. X and the other options are those of
        `SpectralDecomposition.fit`.

        Raises ValueError or TypeError for input that cannot work, for a bandwidth at which the kernel joins no two
        points or cannot tell any apart, and for points that the landmarks do not cover; MemoryError where a run would
        not fit, OSError for data that are damaged or change meanwhile.
        """
        self._check_parameters(on_invalid)
        source = open_source(X, columns=self.columns, diagonal=diagonal).allowing_missing(allow_missing)
        method = self._checked_method(source, checkpoint, on_invalid)
        store = Store(source, allow_missing=allow_missing)
        logger.info("method %s for %d rows", method, source.n)
        self.method_, self.n_features_in_ = method, source.n_features_in
        if method == "exact":
            self._fit_exact(self._prepared(source, on_invalid, progress), on_invalid, progress)
        else:
            identity = {}
            if checkpoint is not None:
                params = params_state(self.get_params(deep=False))
                freely = ("max_passes", "tolerance", "cache", "cache_path")  # may change from one start to the next
                identity = run_identity(store, {k: v for k, v in params.items() if k not in freely}, on_invalid)
            saved = open_checkpoint(checkpoint, identity, checkpoint_every)
            self._fit_low_rank(source, on_invalid, progress, checkpoint, saved, identity, checkpoint_every)
        store.check_unchanged()
        if method == "lowrank" or on_invalid == "skip":
            self.embedding_ = self.transform(X, diagonal=diagonal, on_invalid=on_invalid, allow_missing=allow_missing)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`embedding_`, after `fit`."""
        return self.fit(X, y, **options).embedding_

    def transform(
        self,
        X: Any,
        *,
        diagonal: Any = None,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Any:
        """The embedding of the rows of X by the extension (1.5), (n, rank) float64; of the points of the fit, E itself.

        `diagonal` (n,) are the bounds at these points, where the fit was given some. Containers and options are those
        of `SpectralDecomposition.transform`. Rows where the extension is undefined, far from every point of the fit,
        raise ValueError, or become NaN with on_invalid="skip".
        """
        check_is_fitted(self)
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if (diagonal is None) == self.extension_.unit:
            needs = "needs diagonal, the bounds at these points" if self.extension_.unit else "takes no diagonal"
            raise ValueError(f"transform {needs}: the fit was given {'some' if self.extension_.unit else 'none'}")
        if diagonal is not None and out is not None:
            raise ValueError("out takes no diagonal: write transform(X, diagonal=...) yourself, such as by to_zarr")
        found = apply_rows(
            replace(self.extension_, nan_rows=on_invalid == "skip"),
            X,
            n_features=self.n_features_in_,
            coordinates={"eigenvalue": self.spectrum_},
            allow_missing=allow_missing,
            out=out,
            overwrite=overwrite,
            progress=progress,
        )
        if diagonal is None:
            return found
        return found * np.sqrt(_bounds(diagonal, found.shape[0], on_invalid))[:, None]

    def state(self) -> dict[str, Any]:
        check_is_fitted(self)
        solution = {name: getattr(self, name) for name in SOLUTION}
        certificate = self.certificate_
        solution["certificate"] = {
            "least_eigenvalue": certificate.least_eigenvalue,
            "gap": certificate.gap,
            "optimal": certificate.optimal,
            "products": certificate.products,
        }
        return {
            "params": params_state(self.get_params(deep=False)),
            "solution": solution,
            "unit": self.extension_.unit,
            "coverage": getattr(self, "coverage_", None),
            "embedding": self.embedding_ if isinstance(self.embedding_, np.ndarray) else None,
            "extension": self.extension_.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        estimator = cls(**params_from_state(state["params"]))
        for name in SOLUTION:
            setattr(estimator, name, state["solution"][name])
        estimator.certificate_ = Certificate(**state["solution"]["certificate"])
        estimator.extension_ = replace(Extension.from_state(state["extension"]), unit=state["unit"])
        for name in ("coverage", "embedding"):  # a lazy embedding is transform(X)
            if state[name] is not None:
                setattr(estimator, f"{name}_", state[name])
        return estimator

    @property
    def _kernel(self) -> Gaussian:
        return Gaussian(float(self.bandwidth) / np.sqrt(2))

    def _prepared(self, source: Source, on_invalid: str, progress: bool | None) -> Source:
        return standardized(source, on_invalid=on_invalid, progress=progress) if self.standardize else source

    def _fit_exact(self, source: Source, on_invalid: str, progress: bool | None) -> None:
        plan, _ = pass_plan(source, 1)
        run = Run(source, plan, None, on_invalid, progress, "read")
        rng = np.random.default_rng(self.random_state)
        self.extension_, self.embedding_ = embed_exact(run, self._kernel, self._solve, rng)

    def _fit_low_rank(
        self,
        source: Source,
        on_invalid: str,
        progress: bool | None,
        path: Any,
        checkpoint: Checkpoint | None,
        identity: Mapping[str, Any],
        every: float,
    ) -> None:
        rng = np.random.default_rng(self.random_state)
        if checkpoint is not None:
            basis = LandmarkBasis.from_state(checkpoint.constants["basis"])
            preparation = type(source.preparation).from_state(checkpoint.constants["preparation"])
            source = source.with_preparation(mean=preparation.mean, scale=preparation.scale)
            start_seed = checkpoint.constants["seed"]
        else:
            source = self._prepared(source, on_invalid, progress)
            with warnings.catch_warnings():
                if isinstance(self.landmarks, str) and self.landmarks == "cholesky":
                    warnings.simplefilter("ignore", RankWarning)  # they span the kernel to rounding: no more are needed
                _, points, _ = choose_landmarks(
                    source,
                    self._kernel,
                    self.landmarks,
                    min(self.n_landmarks, source.n),
                    rng,
                    sample_size=self.landmark_sample,
                    on_invalid=on_invalid,
                    progress=progress,
                )
            basis, start_seed = LandmarkBasis(self._kernel, points), int(rng.integers(2**31))
            if path is not None:
                constants = {"basis": basis.state(), "preparation": source.preparation.state(), "seed": start_seed}
                checkpoint = Checkpoint.start(path, identity, constants, every)
        plan, memory = pass_plan(source, basis.size)
        check_memory(memory)
        run = Run(source, plan, None, on_invalid, progress, "embed")
        most = int(FURTHER * self.n_landmarks) if isinstance(self.landmarks, str) else 0
        if checkpoint is not None:
            checkpoint.agree(plan)
        with checkpoint_signals(checkpoint):
            passes = Passes(run, checkpoint)
            scratch = None if self.cache_path is None else os.fspath(self.cache_path)
            found = embed_low_rank(
                passes, basis, self._solve, seed=start_seed, most=most, cache=self.cache, scratch=scratch
            )
        self.extension_, self.coverage_ = found
        if checkpoint is not None:
            checkpoint.write()

    def _solve(self, problem: Problem, start: Array) -> SDPSolution:
        solution = solve_sdp(problem, start, solver=self.solver, tolerance=self.tolerance, max_passes=self.max_passes)
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
            given_landmarks(self.landmarks, source.n_features_in)
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
        check_one_of("solver", self.solver, ("accelerated", "power"))
        check_one_of("cache", self.cache, ("auto", "always", "never"))
        if self.cache_path is not None and (
            not isinstance(self.cache_path, (str, os.PathLike)) or not os.fspath(self.cache_path)
        ):
            raise ValueError(f"cache_path must be a path or None; it is {self.cache_path!r}")
        if self.cache_path is not None and self.cache == "never":
            raise ValueError("cache='never' keeps nothing at cache_path: leave one of them out")
        check_one_of("standardize", self.standardize, (True, False))
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if isinstance(self.landmarks, str):
            check_one_of("landmarks", self.landmarks, METHODS)
            if self.landmarks != "uniform" and self.landmark_sample is not None:
                check_whole("landmark_sample", self.landmark_sample, self.n_landmarks)
        check_random_state(self.random_state)


def _bounds(diagonal: Any, n: int, on_invalid: str) -> Array:
    reader = as_reader(diagonal, "diagonal")
    bounds = np.asarray(reader.read(0, n), dtype=float) if reader.shape == (n,) else np.empty(0)
    if bounds.shape != (n,) or not ((bounds > 0) | (np.isnan(bounds) & (on_invalid == "skip"))).all():
        raise ValueError(f"diagonal must be {n} positive numbers, a bound for each row; it has shape {reader.shape}")
    return bounds
