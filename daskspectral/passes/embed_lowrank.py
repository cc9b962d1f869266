"""The semidefinite embedding with the kernel's Nystrom approximation at landmarks, pass by pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Source
from daskspectral.engine import Run
from daskspectral.engine.memory import on_cluster
from daskspectral.kernels import Gaussian
from daskspectral.passes.embed_exact import Embedded
from daskspectral.passes.embedding import (
    Array,
    BlockTask,
    CoverTask,
    Features,
    Passes,
    Solve,
    TotalTask,
    keeps,
    kept_features,
    plan_embedding,
    positive,
    scratch_features,
)
from daskspectral.passes.extension import COVERED, Extension
from daskspectral.passes.probe import Probe
from daskspectral.passes.reach import check_joined, check_masses, check_reach
from daskspectral.solve.sdp import RANK, Frame, LowRankProblem, Prove, Pull, alpha, solve_stages

logger = logging.getLogger("daskspectral")


@dataclass(frozen=True, eq=False)
class RowCover:
    """Rows drawn from the fit's data, prepared: points (s, d), and their bounds on the diagonal (s,) where given."""

    points: Array
    bound: Array | None


@dataclass(frozen=True, eq=False)
class Covered:
    """Landmarks with what a pass over the rows says of them: the frame, and the sums of `CoverTask`."""

    basis: LandmarkBasis
    frame: Frame
    cover: Mapping[str, Any]

    @property
    def missed(self) -> int:
        """The number of rows that the landmarks do not cover."""
        return int(self.cover["uncovered"])

    @property
    def coverage(self) -> float:
        """The least |psi|^2 of a row."""
        return 1 - float(self.cover["farthest"])

    def check(self, n: int) -> None:
        """Raise ValueError where rows are not covered, bounds not positive, or the bandwidth is of no use."""
        if self.missed:
            raise ValueError(
                f"the landmarks do not cover {self.missed} of {n} points (|psi|^2 below {COVERED}, least "
                f"{self.coverage:.2g}); give more landmarks (count), look for them among more rows "
                "(sample), or widen the bandwidth"
            )
        if count := int(self.cover["unbounded"]):
            raise ValueError(f"diagonal must be positive at every row; {count} of {n} are not")
        kernel = self.basis.kernel
        assert isinstance(kernel, Gaussian)
        check_masses(kernel, float(self.cover["lightest"]), float(self.cover["heaviest"]), self.frame.total, n)
        if self.coverage > 1 - 1e-8:  # every row is a landmark, or equal to one
            check_joined(
                kernel, self.basis.landmarks, kernel.values(self.basis.landmarks, self.basis.landmarks).sum(axis=1)
            )


def cover_rows(passes: Passes, basis: LandmarkBasis, most: int = 0) -> Covered:
    """The landmarks with their frame; rows that they do not cover are landmarks too, up to `most` landmarks in all."""
    kernel = basis.kernel
    assert isinstance(kernel, Gaussian)
    while True:
        check_reach(kernel, basis.landmarks)
        features = Features(basis, device=passes.run.device)
        total = passes(TotalTask(features))["total"]
        found = Covered(basis, frame := Frame.of(kernel.values(basis.landmarks, basis.landmarks), total), {})
        found = replace(found, cover=passes(CoverTask(features), frame))
        if not found.missed or basis.size + found.missed > most:
            return found
        logger.info("%d points that no landmark covers are landmarks too", found.missed)
        basis = LandmarkBasis(kernel, np.concatenate([basis.landmarks, found.cover["missed"]]))


def embed_low_rank(
    passes: Passes,
    covered: Covered,
    solve: Solve,
    *,
    seed: int,
    count: int | None,
    rows: RowCover,
    probes: RowCover,
    cache: str,
    scratch: str | None,
    before: Extension | None = None,
) -> tuple[Embedded, Probe]:
    """Embed rows with landmarks that cover them, with `count` columns, or the rank of the optimum for None.

    E E^T maximises Tr(Abar B) over positive semidefinite matrices B with bounded diagonal, where Abar is the normalised
    kernel exp(-r^2 / bandwidth^2) in its Nystrom approximation at the landmarks; `solve` does so from a starting
    point drawn with `seed`, or from the embedding `before` at other landmarks. New points are told from `rows` of the
    fit, and the embedding is compared with that of the full problem at `probes`. Kernel values are kept between passes
    unless `cache` is "never": in a zarr array at the path `scratch` where it is given, else in memory where they fit
    (on an accelerator, which makes them faster than they come from there, with "always" alone).

    Raises MemoryError where `cache` is "always" and the values cannot be kept.
    """
    run, basis, frame = passes.run, covered.basis, covered.frame
    source, kernel = run.source, basis.kernel
    features, kept = _features(run, basis, cache, scratch)
    passes.run = silent(kept)
    pull, prove = (BlockTask(features, kind(frame.masses, frame.total)) for kind in (Pull, Prove))
    problem = LowRankProblem(frame, lambda v: passes(pull, v), lambda v: passes(prove, v))

    def start(stage: int) -> Array:
        if before is not None and stage < len(before.stages):
            columns = slice(sum(before.stages[:stage]), sum(before.stages[: stage + 1]))
            values = before.kernel.values(before.points, basis.landmarks) @ before.coefficients[:, columns]
            return np.asarray(frame.whitening.T @ values)
        q = len(frame.sigma)
        return np.random.default_rng([seed, stage]).standard_normal((q, min(RANK, q)))

    stages = solve_stages(problem, start, solve, count)
    states = [stage.solution.point * positive(stage.solution.point) for stage in stages]
    frames = [stage.problem.frame for stage in stages]
    coefficients = np.hstack([f.coefficients(z) for f, z in zip(frames, states, strict=True)])
    sums = np.hstack([passes(pull, f.coefficients(z))["state"] for f, z in zip(frames, states, strict=True)])
    passes.run = run
    ranks = tuple(stage.rank for stage in stages)
    unit = "diagonal" in source.readers
    extension = Extension(
        kernel,
        basis.landmarks,
        frame.masses,
        frame.total,
        coefficients,
        np.zeros((len(rows.points), coefficients.shape[1])),
        float(alpha(np.array(float(covered.cover["lightest"])), frame.total)),
        ranks,
        sum(ranks),
        whitening=frame.whitening,
        fit_rows=rows.points,
        row_weights=np.zeros((len(rows.points), coefficients.shape[1])),
        share=int(covered.cover["rows"]) / len(rows.points),
        preparation=source.preparation,
        unit=unit,
        device=run.device,
    )
    overlap = frame.masses @ sums
    probe = Probe.of(passes, extension, overlap[: ranks[0]], probes.points, probes.bound)
    e = extension.of_prepared(rows.points)[0]
    e = e if rows.bound is None else e * np.sqrt(rows.bound)[:, None]
    m = frame.masses @ kernel.values(rows.points, basis.landmarks)
    lift = _lift(frames, [frame.whitening.T @ part for part in np.split(sums, np.cumsum(ranks)[:-1], axis=1)])
    weights = (e @ lift - np.outer(np.sqrt(m), overlap @ lift / frame.total)) / np.sqrt(m)[:, None]
    extension = replace(
        extension,
        row_embedding=e,
        row_weights=weights,
        kept=extension.kept if count is None else min(count, extension.kept),
    )
    return Embedded(extension, stages, "lowrank", None, covered.coverage, None, probe.least_eigenvalue), probe


def _lift(frames: Sequence[Frame], sums: Sequence[Array]) -> Array:
    """T (r, r) such that the columns of stage j, E_j, pull as Abar (E T)_j does: E T = E_j less the stages before it.

    `sums` (q, r_j) are W^T sum_i sqrt(d_i / m_i) k_i h_i^T, of which P makes F^T E_j.
    """
    ranks = [part.shape[1] for part in sums]
    edges = np.cumsum([0, *ranks])
    lift = np.eye(edges[-1])
    plain = np.hstack([frames[0].projected(part) for part in sums])
    for j in range(1, len(sums)):
        own = slice(edges[j], edges[j + 1])
        for i in reversed(range(j)):
            one = slice(edges[i], edges[i + 1])
            pulled = frames[i].projected(sums[i])
            inner = np.linalg.pinv(pulled.T @ pulled, rcond=1e-10, hermitian=True)
            lift[one, own] -= inner @ (pulled.T @ (plain @ lift[:, own]))
    return lift


def silent(run: Run) -> Run:
    """The same run without a bar."""
    return replace(run, source=replace(run.source, progress=False))


def _features(run: Run, basis: LandmarkBasis, cache: str, scratch: str | None) -> tuple[Features, Run]:
    """The kernel values and the run that reads them, kept where that is asked for or pays."""
    source, device = run.source, run.device
    features = Features(basis, device=device)
    if scratch is not None:
        kept = scratch_features(silent(run), features, scratch)
        plan = plan_embedding(kept, basis.size, device).ranges
        return Features(basis, True, device), Run(kept, plan, None, "embed", device)
    if cache != "never" and (device == "cpu" or cache == "always") and _fits_in_memory(run, basis.size):
        kept = kept_features(run, features)
        return Features(basis, True, device), Run(kept, run.plan, None, "embed", device)
    if cache == "always":
        raise MemoryError(
            f"cache='always': the kernel values of {source.n} rows at {basis.size} landmarks, "
            f"{8 * source.n * basis.size / 1e9:.3g} GB, cannot be kept in this process's memory (not on a cluster, "
            "of a dask array, or beyond a quarter of what is free or 1 GB); give a path as cache, or cache='auto'"
        )
    return features, run


def _fits_in_memory(run: Run, p: int) -> bool:
    """Whether the kernel values at p landmarks are kept in this process."""
    aligned = (
        "diagonal" not in run.source.readers or run.source.on_invalid == "raise"
    )  # only valid rows have kept values
    source: Source = run.source
    return aligned and not source.dask_fields and not on_cluster() and keeps(8 * source.n * p)
