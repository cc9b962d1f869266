"""The two modes of the semidefinite embedding: the kernel between all points, or at landmarks, pass by pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import LandmarkBasis
from daskspectral.engine import Run
from daskspectral.engine.memory import on_cluster
from daskspectral.estimators.embedding_passes import (
    BlockTask,
    CoverTask,
    Features,
    KernelProduct,
    Passes,
    TotalTask,
    gathered,
    keeps,
    kept_features,
    pass_plan,
    scratch_features,
)
from daskspectral.estimators.extension import COVERED, Extension
from daskspectral.kernels import Gaussian
from daskspectral.solve.sdp import (
    RANK,
    Deflated,
    ExactProblem,
    Frame,
    LowRankProblem,
    Problem,
    Prove,
    Pull,
    SDPSolution,
)

Array = NDArray[np.floating[Any]]
Solve = Callable[[Problem, Array], SDPSolution]
logger = logging.getLogger("daskspectral")
ROUNDING = 1e-7  # of the kernel's exponent, for points far from the middle: 20 000 bandwidths


def embed_exact(run: Run, kernel: Gaussian, solve: Solve, rng: np.random.Generator) -> tuple[Extension, Array]:
    """The extension, and E (n, rank), of all valid rows. Raises ValueError for a kernel that says nothing."""
    x, bound = gathered(run)
    _check_reach(kernel, x)
    product = KernelProduct.of(kernel, x, False)
    m = product(np.ones((len(x), 1)))[:, 0]
    _check_masses(kernel, float(m.min()), float(m.max()), float(m.sum()), len(m))
    matrix = Deflated(product, m)
    if bound is not None and not (bound > 0).all():
        raise ValueError(f"diagonal must be positive at every row; {np.count_nonzero(~(bound > 0))} are not")
    d = matrix.bound if bound is None else bound
    problem = ExactProblem(matrix, d, d * matrix.bound)
    e = problem.embedding(solve(problem, rng.standard_normal((len(x), min(RANK, len(x))))).point)
    e = e * _positive(e)
    pulled = matrix @ e  # the extension at the points themselves, so that both are the same, converged or not
    length = np.linalg.norm(pulled, axis=1, keepdims=True)
    extended = np.divide(np.sqrt(d)[:, None] * pulled, length, out=e.copy(), where=length > 0)
    v = np.sqrt(m / m.sum())[:, None]
    extension = Extension(
        kernel,
        x,
        np.ones(len(x)),
        float(m.sum()),
        (e - v * (v.T @ e)) / np.sqrt(m)[:, None],
        preparation=run.source.preparation,
        unit=bound is not None,
    )
    return extension, extended


def embed_low_rank(
    passes: Passes, basis: LandmarkBasis, solve: Solve, *, seed: int, most: int, cache: str, scratch: str | None
) -> tuple[Extension, float]:
    """The extension, and the least |psi|^2 of a point.

    Points that are not covered become landmarks while there are no more than `most`. Kernel values are kept unless
    `cache` is "never": in a zarr array at the path `scratch` where one is given, else in memory where they fit. Raises
    ValueError where points are not covered, or the kernel says nothing, and MemoryError where `cache` is "always" and
    the values cannot be kept.
    """
    run = passes.run
    source, kernel = run.source, basis.kernel
    assert isinstance(kernel, Gaussian)
    while True:
        _check_reach(kernel, basis.landmarks)
        features = Features(basis)
        total = passes(TotalTask(features))["total"]
        frame = Frame.of(kernel.values(basis.landmarks, basis.landmarks), total)
        cover = passes(CoverTask(features), frame)
        count = int(cover["uncovered"])
        if not count or basis.size + count > most:
            break
        logger.info("%d points that no landmark covers are landmarks too", count)
        basis = LandmarkBasis(kernel, np.concatenate([basis.landmarks, cover["missed"]]))
    _check_cover(cover, source.n)
    _check_masses(kernel, -float(cover["lightest"]), float(cover["heaviest"]), frame.total, source.n)
    if scratch is not None:
        kept = scratch_features(replace(run, progress=False), features, scratch)
        run, features = (
            Run(kept, pass_plan(kept, basis.size)[0], None, "raise", False, "embed"),
            Features(basis, kept=True),
        )
    elif cache != "never" and _fits_in_memory(run, basis.size):
        kept = kept_features(run, features)
        run, features = Run(kept, run.plan, None, "raise", False, "embed"), Features(basis, kept=True)
    elif cache == "always":
        raise MemoryError(
            f"cache='always': the kernel values of {source.n} rows at {basis.size} landmarks, "
            f"{8 * source.n * basis.size / 1e9:.3g} GB, cannot be kept in this process's memory (not on a cluster, "
            "of a dask array, or beyond a quarter of what is free or 1 GB); give cache_path, or take cache='auto'"
        )
    passes.run = replace(run, progress=False)
    pull, prove = (BlockTask(features, kind(frame.masses, frame.total)) for kind in (Pull, Prove))
    problem = LowRankProblem(frame, lambda v: passes(pull, v), lambda v: passes(prove, v))
    q = len(frame.sigma)
    z = solve(problem, np.random.default_rng(seed).standard_normal((q, min(RANK, q)))).point
    extension = Extension(
        kernel,
        basis.landmarks,
        frame.masses,
        frame.total,
        frame.coefficients(z * _positive(z)),
        frame.whitening,
        source.preparation,
        unit="diagonal" in source.readers,
    )
    return extension, 1 - float(cover["farthest"])


def _fits_in_memory(run: Run, p: int) -> bool:
    """Whether the kernel values at p landmarks are kept in this process."""
    aligned = "diagonal" not in run.source.readers or run.on_invalid == "raise"  # kept values are of the valid rows
    return aligned and not run.source.dask_fields and not on_cluster() and keeps(8 * run.source.n * p)


def _positive(columns: Array) -> Array:
    """Signs that make each column's largest entry positive: the first of those that rounding cannot tell apart."""
    size = np.abs(columns)
    first = (size >= (1 - 1e-6) * size.max(axis=0)).argmax(axis=0)
    return np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def _check_reach(kernel: Gaussian, points: Array) -> None:
    """Raise ValueError where a point is so far away that distances between the others lose their digits."""
    bandwidth = float(kernel.scale) * np.sqrt(2)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum((points - np.median(points, axis=0)) ** 2, axis=1)
    farthest = int(np.argmax(squares))
    apart = not squares[farthest] <= 1e4 * np.median(squares)  # otherwise it is the bandwidth that is small
    if apart and not np.finfo(float).eps * squares[farthest] <= ROUNDING * bandwidth**2:
        raise ValueError(
            f"the point {points[farthest, :4].tolist()}{' and so on' if points.shape[1] > 4 else ''} is "
            f"{np.sqrt(squares[farthest]) / bandwidth:.2g} bandwidths away from the middle of the others, whose "
            "distances would lose their digits: leave such points out, or widen the bandwidth"
        )


def _check_masses(kernel: Gaussian, lightest: float, heaviest: float, total: float, n: int) -> None:
    """Raise ValueError where the kernel is the identity, or of rank one, to rounding."""
    bandwidth = float(kernel.scale) * np.sqrt(2)
    if n == 1:
        raise ValueError("X has 1 row; an embedding needs 2 points at least")
    if heaviest - 1 < 1e-8:
        raise ValueError(
            f"at bandwidth {bandwidth:g} the kernel is the identity: no two points are within reach of each other. "
            "Give a larger bandwidth"
        )
    if 1 - lightest**2 / total < 1e-7:
        raise ValueError(
            f"at bandwidth {bandwidth:g} the kernel is of rank one: it cannot tell any two points apart. Give a "
            "smaller bandwidth, or points that differ"
        )


def _check_cover(cover: Mapping[str, Any], n: int) -> None:
    """Raise ValueError with the number of points that the landmarks do not cover, or of bounds that are not."""
    if count := int(cover["uncovered"]):
        raise ValueError(
            f"the landmarks do not cover {count} of {n} points (|psi|^2 below {COVERED}, least "
            f"{1 - float(cover['farthest']):.2g}); give more landmarks (n_landmarks), look for them among more rows "
            "(landmark_sample), or widen the bandwidth"
        )
    if count := int(cover["unbounded"]):
        raise ValueError(f"diagonal must be positive at every row; {count} of {n} are not")
