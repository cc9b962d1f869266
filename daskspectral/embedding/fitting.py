"""Semidefinite embedding of one source: by all pairs or at landmarks, and the choice between them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Source
from daskspectral.embedding.ascent import AscentProblem
from daskspectral.embedding.extension import COVERED, Extension
from daskspectral.embedding.landmark_passes import (
    PROBES,
    LandmarkKernel,
    Passes,
    ProbeComparison,
    block_sums,
    cover_sums,
    gram_distance,
    kernel_total,
    plan_embedding,
)
from daskspectral.embedding.points import check_joined, check_masses, check_reach, points_in_memory
from daskspectral.embedding.problems import (
    CertificateTask,
    DeflatedKernel,
    Degrees,
    ExactProblem,
    GradientTask,
    LandmarkWhitening,
    LowRankProblem,
)
from daskspectral.embedding.stages import RANK, SDPSolution, solve_stages
from daskspectral.engine import Run
from daskspectral.engine.sampling import draw_fields
from daskspectral.kernels import Gaussian

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
FEW = 1000  # rows up to which "auto" uses all pairs: seconds
EXACT_ROWS = 3000  # limit of "exact", and of "auto" if landmarks fail: O(n^3) for a certificate
FIRST = 100  # landmarks of the first attempt
MOST = 4000  # largest number of landmarks
ONE_IN = 5  # least rows per landmark: all pairs are faster below
ROWS = 5000  # rows of the fit that new points are compared with
FURTHER = 1.5  # largest number of landmarks with uncovered points, relative to the requested number
MARGIN = 4.0  # error relative to a first residual: 1 to 10 in tests
REACHABLE = 2.0  # more landmarks cover up to twice as many rows each as the first ones
SHRUNK = 3.0  # the same for the ratio of two, which extrapolates an error to another size


class UncoveredError(ValueError):
    """Landmarks do not cover some points."""


@dataclass(frozen=True, eq=False)
class EmbeddingSolution:
    """Embedding as a function of points, with its stages and certificates.

    `embedding` (n, columns) is E at the rows of the fit, or None. With landmarks, `coverage` is the least |psi|^2 of a
    row, `approximation` an estimate of the relative error of E E^T at the rows of the `probe`.
    """

    extension: Extension
    stages: tuple[SDPSolution, ...]
    method: str
    embedding: Array | None = None
    coverage: float | None = None
    approximation: float | None = None
    probe: ProbeComparison | None = None


@dataclass(frozen=True, eq=False)
class LandmarkCover:
    """Landmarks with their whitening, and the `cover_sums` of a pass over the rows."""

    basis: LandmarkBasis
    whitened: LandmarkWhitening
    cover: Mapping[str, Any]

    @property
    def missed(self) -> int:
        return int(self.cover["uncovered"])

    @property
    def coverage(self) -> float:
        return 1 - float(self.cover["farthest"])


@dataclass(eq=False, kw_only=True)
class EmbeddingProblem:
    """Semidefinite embedding of one source with `count` columns, or with the rank of the optimum for None.

    `landmarks` returns a given number of landmarks, as many as make the Gram matrix exact to `accuracy`; `sizes` are
    their first and largest number.
    """

    passes: Passes
    bandwidth: float
    solve: Callable[[AscentProblem, Array], SDPSolution]
    landmarks: Callable[[int], LandmarkBasis]
    accuracy: float
    sizes: tuple[int, int] | None
    seed: int
    count: int | None

    def __post_init__(self) -> None:
        self.source: Source = self.passes.run.source
        self.kernel = Gaussian(self.bandwidth / 2**0.5)

    def chosen(self) -> EmbeddingSolution:
        n = self.source.n
        if n <= FEW:
            return self.exact()
        best: EmbeddingSolution | None = None
        with suppress(UncoveredError):
            best = self._doubled(min(n // ONE_IN, MOST)) if self.sizes is None else self._at(*self.sizes)
        if best is not None and best.approximation is not None and best.approximation <= self.accuracy:
            return best
        return self.exact() if n <= EXACT_ROWS else best or self.low_rank()

    def exact(self) -> EmbeddingSolution:
        """Return the embedding by the kernel between all pairs, a matrix in memory.

        Raises ValueError for a kernel that is the identity or of rank one, for a point too far from the others, and
        for bounds on the diagonal that are not positive.
        """
        kernel, (x, bound) = self.kernel, points_in_memory(self.source)
        check_reach(self.bandwidth, x)
        gram = kernel.values(x, x)
        m = gram.sum(axis=1)
        check_masses(self.bandwidth, m)
        check_joined(self.bandwidth, x, m)
        if bound is not None and not (bound > 0).all():
            raise ValueError(
                f"diagonal must be positive at every row, got {np.count_nonzero(~(bound > 0))} that are not."
            )
        matrix = DeflatedKernel(gram, m)
        d = matrix.bound if bound is None else bound

        def start(stage: int) -> Array:
            return np.random.default_rng([self.seed, stage]).standard_normal((len(x), min(RANK, len(x))))

        stages = solve_stages(ExactProblem(matrix, d), start, self.solve, self.count)
        columns, embedded = [], []
        for stage in stages:
            problem: ExactProblem = stage.problem
            e = problem.embedding(stage.point)
            e = e * column_signs(e)
            columns.append(problem.matrix.weights(e))
            pulled = problem.matrix @ e  # the extension at the points: both agree, converged or not
            length = np.linalg.norm(pulled, axis=1, keepdims=True)
            embedded.append(np.divide(np.sqrt(d)[:, None] * pulled, length, out=e.copy(), where=length > 0))
        whole, longest = np.hstack(embedded), float(matrix.bound.max()) if bound is None else None
        extension = Extension(
            kernel,
            x,
            Degrees(np.ones(len(x)), float(m.sum()), longest),
            np.ascontiguousarray(np.hstack(columns)),
            tuple(stage.rank for stage in stages),
            whole.shape[1] if self.count is None else min(self.count, whole.shape[1]),
            preparation=self.source.preparation,
        )
        return EmbeddingSolution(extension, stages, "exact", whole[:, : extension.kept])

    def low_rank(self) -> EmbeddingSolution:
        """Return the Nystrom embedding; raise UncoveredError for uncovered rows."""
        most = min(self.source.n, MOST)
        found = None if self.sizes is not None else self._doubled(most)
        return found or self._at(*(self.sizes or (most, int(FURTHER * most))))

    def _at(self, first: int, most: int) -> EmbeddingSolution:
        """Return the embedding, with an error estimate from half the landmarks."""
        covered = self._covered(self.landmarks(first), most)
        self._check(covered)
        given = covered.basis
        half = LandmarkBasis(self.kernel, given.landmarks[: max(2, -(-given.size // 2))])  # one has no columns
        less = self._covered(half, 0)
        return self._solved(covered, None if less.missed else self._solved(less, None))

    def _doubled(self, most: int) -> EmbeddingSolution | None:
        """Return the embedding with `accuracy`, or the largest that covers the rows."""
        p, n = min(FIRST, most), self.source.n
        last: EmbeddingSolution | None = None
        while True:
            covered = self._covered(self.landmarks(p), int(FURTHER * p))
            if covered.missed:
                size = covered.basis.size
                logger.info("%d landmarks do not cover %d of %d rows", size, covered.missed, n)
                if size * n > REACHABLE * most * (n - covered.missed):
                    return last  # with so few rows per landmark, no number up to `most` covers all
            else:
                self._check(covered)
                before, last = last, self._solved(covered, last)
                error = last.approximation
                if before is not None and error is not None and error <= self.accuracy:
                    return last
            if p >= most:
                return last
            p = min(2 * p, most)

    def _covered(self, basis: LandmarkBasis, most: int) -> LandmarkCover:
        """Return the landmarks, extended by uncovered rows up to `most`."""
        run, kernel = self.passes.run, self.kernel
        plan = plan_embedding(self.source, basis.size, run.device)
        self.passes.run = Run(self.source, plan, None, "embed", run.device)
        while True:
            check_reach(self.bandwidth, basis.landmarks)
            features = LandmarkKernel(basis, device=run.device)
            total = self.passes(partial(block_sums, features, kernel_total), np.zeros(0))["total"]
            whitened = LandmarkWhitening.of(kernel.values(basis.landmarks, basis.landmarks), total)
            found = LandmarkCover(basis, whitened, self.passes(partial(cover_sums, features), whitened))
            if not found.missed or basis.size + found.missed > most:
                return found
            logger.info("%d points that no landmark covers are added to the landmarks", found.missed)
            basis = LandmarkBasis(kernel, np.concatenate([basis.landmarks, found.cover["missed"]]))

    def _check(self, found: LandmarkCover) -> None:
        n, cover, landmarks = self.source.n, found.cover, found.basis.landmarks
        if found.missed:
            raise UncoveredError(
                f"the landmarks do not cover {found.missed} of {n} points (|psi|^2 below {COVERED}, least "
                f"{found.coverage:.2g}). Raise n_landmarks or n_candidates, or increase the bandwidth."
            )
        if count := int(cover["unbounded"]):
            raise ValueError(f"diagonal must be positive at every row, got {count} of {n} that are not.")
        extremes = np.array([-float(cover["lightest"]), float(cover["heaviest"])])
        check_masses(self.bandwidth, extremes[:n], found.whitened.masses.total)
        if found.coverage > 1 - 1e-8:  # every row is a landmark, or equal to one
            check_joined(self.bandwidth, landmarks, self.kernel.values(landmarks, landmarks).sum(axis=1))

    def _solved(self, covered: LandmarkCover, less: EmbeddingSolution | None) -> EmbeddingSolution:
        """Return the embedding, with an error estimate from fewer landmarks, `less`."""
        passes, run, kernel = self.passes, self.passes.run, self.kernel
        basis, whitened = covered.basis, covered.whitened
        rows, (probes, probe_bound) = self._drawn(ROWS, 1)[0], self._drawn(PROBES, 2)
        before = None if less is None else less.extension
        features = LandmarkKernel(basis, device=run.device)
        gradient, proof = (
            partial(block_sums, features, kind(whitened.masses)) for kind in (GradientTask, CertificateTask)
        )
        problem = LowRankProblem(whitened, lambda v: passes(gradient, v), lambda v: passes(proof, v))

        def start(stage: int) -> Array:
            if before is not None and stage < len(before.stages):
                columns = slice(sum(before.stages[:stage]), sum(before.stages[: stage + 1]))
                values = before.kernel.values(before.points, basis.landmarks) @ before.coefficients[:, columns]
                return np.asarray(whitened.whitening.T @ values)
            q = len(whitened.sigma)
            return np.random.default_rng([self.seed, stage]).standard_normal((q, min(RANK, q)))

        stages = solve_stages(problem, start, self.solve, self.count)
        whitenings, ranks = [stage.problem.whitened for stage in stages], tuple(stage.rank for stage in stages)
        states = [stage.point * column_signs(stage.point) for stage in stages]
        parts = [f.coefficients(z) for f, z in zip(whitenings, states, strict=True)]
        overlap = whitened.masses.weights @ passes(gradient, parts[0])["state"]
        masses = whitened.masses
        if "diagonal" not in self.source.readers:
            masses = replace(masses, longest=float(masses.bound(-covered.cover["lightest"])))
        extension = Extension(
            kernel,
            basis.landmarks,
            masses,
            np.ascontiguousarray(np.hstack(parts)),
            ranks,
            sum(ranks) if self.count is None else min(self.count, sum(ranks)),
            np.ascontiguousarray(whitened.whitening),
            rows,
            preparation=self.source.preparation,
            device=run.device,
        )
        probe = ProbeComparison.of(passes, extension, overlap, probes, probe_bound)
        error = _error(None if less is None else less.probe, probe)
        logger.info("%d landmarks: the relative error of the Gram matrix is about %.1e", basis.size, error)
        return EmbeddingSolution(extension, stages, "lowrank", None, covered.coverage, error, probe)

    def _drawn(self, size: int, number: int) -> tuple[Array, Array | None]:
        fields = draw_fields(self.source, size, np.random.default_rng([self.seed, number]))[1]
        return self.source.preparation(fields["x"]), fields.get("diagonal")


def column_signs(columns: Array) -> Array:
    """Return signs (r,) that make the largest entry of each column positive, ignoring NaN."""
    size = np.abs(columns)
    first = (size >= (1 - 1e-6) * np.nanmax(size, axis=0)).argmax(axis=0)
    return np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def _error(before: ProbeComparison | None, now: ProbeComparison) -> float:
    """Return the relative error of the Gram matrix, from the change since `before` and the decrease of the residual.

    It is right within a factor of 3.
    """
    if before is None:
        return MARGIN * now.residual
    moved = gram_distance(before.embedding, now.embedding)
    return moved * min(1.0, SHRUNK * now.residual / before.residual) if before.residual else moved
