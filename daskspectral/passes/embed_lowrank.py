"""The semidefinite embedding with the kernel's Nystrom approximation at landmarks, pass by pass."""

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
from daskspectral.kernels import Gaussian
from daskspectral.passes.embedding import (
    BlockTask,
    CoverTask,
    Features,
    Passes,
    TotalTask,
    check_masses,
    check_reach,
    keeps,
    kept_features,
    plan_embedding,
    positive,
    scratch_features,
)
from daskspectral.passes.extension import COVERED, Extension
from daskspectral.solve.sdp import RANK, Frame, LowRankProblem, Problem, Prove, Pull, SDPSolution

Array = NDArray[np.floating[Any]]
Solve = Callable[[Problem, Array], SDPSolution]
logger = logging.getLogger("daskspectral")


def embed_low_rank(
    passes: Passes, basis: LandmarkBasis, solve: Solve, *, seed: int, most: int, cache: str, scratch: str | None
) -> tuple[Extension, float]:
    """Embed rows with landmarks: the embedding as a function of any point, and the least coverage of a row.

    E E^T maximises Tr(Abar B) over positive semidefinite matrices B with bounded diagonal, where Abar is the normalised
    kernel exp(-r^2 / bandwidth^2) in its Nystrom approximation at the landmarks of `basis`; `solve` does so from a
    starting point drawn with `seed`. The coverage |psi(x)|^2 is 1 where the landmarks span k(x, .); rows below 0.5
    become landmarks too, as long as there are no more than `most` landmarks then. Kernel values are kept between passes
    unless `cache` is "never": in a zarr array at the path `scratch` where it is given, else in memory where they fit.

    Raises ValueError where rows are not covered, for a bandwidth at which the kernel joins no two points or cannot tell
    any apart, and for bounds on the diagonal that are not positive; MemoryError where `cache` is "always" and the
    values cannot be kept.
    """
    run = passes.run
    source, kernel = run.source, basis.kernel
    assert isinstance(kernel, Gaussian)
    while True:
        check_reach(kernel, basis.landmarks)
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
    check_masses(kernel, float(cover["lightest"]), float(cover["heaviest"]), frame.total, source.n)
    if scratch is not None:
        kept = scratch_features(replace(run, progress=False), features, scratch)
        plan = plan_embedding(kept, basis.size).ranges
        run, features = Run(kept, plan, None, "raise", False, "embed"), Features(basis, kept=True)
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
        frame.coefficients(z * positive(z)),
        frame.whitening,
        preparation=source.preparation,
        unit="diagonal" in source.readers,
    )
    return extension, 1 - float(cover["farthest"])


def _fits_in_memory(run: Run, p: int) -> bool:
    """Whether the kernel values at p landmarks are kept in this process."""
    aligned = "diagonal" not in run.source.readers or run.on_invalid == "raise"  # only valid rows have kept values
    return aligned and not run.source.dask_fields and not on_cluster() and keeps(8 * run.source.n * p)


def _check_cover(cover: Mapping[str, Any], n: int) -> None:
    """Raise ValueError where landmarks do not cover some points, or bounds are not positive, with their number."""
    if count := int(cover["uncovered"]):
        raise ValueError(
            f"the landmarks do not cover {count} of {n} points (|psi|^2 below {COVERED}, least "
            f"{1 - float(cover['farthest']):.2g}); give more landmarks (n_landmarks), look for them among more rows "
            "(landmark_sample), or widen the bandwidth"
        )
    if count := int(cover["unbounded"]):
        raise ValueError(f"diagonal must be positive at every row; {count} of {n} are not")
