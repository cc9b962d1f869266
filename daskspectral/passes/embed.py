"""Which form of the semidefinite embedding answers for the data: landmarks, the sparse kernel, or all pairs."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from daskspectral.basis import LandmarkBasis
from daskspectral.data.containers import as_reader
from daskspectral.data.source import Source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.memory import available
from daskspectral.engine.sampling import draw_fields
from daskspectral.errors import RankWarning, TrustWarning, warn_user
from daskspectral.kernels import Gaussian
from daskspectral.passes.embed_exact import Embedded, embed_exact
from daskspectral.passes.embed_lowrank import Covered, RowCover, cover_rows, embed_low_rank
from daskspectral.passes.embedding import Passes, Solve, plan_embedding, points_in_memory
from daskspectral.passes.extension import Extension
from daskspectral.passes.probe import PROBES, Probe, gram_distance
from daskspectral.passes.sparse_kernel import DENSE, ENTRY, NEIGHBOURHOODS, SHARE, degree
from daskspectral.passes.sums import flops_of

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
FEW = 1000  # rows up to which "auto" takes all pairs at once: seconds
EXACT_ROWS = 20_000  # and up to which it does where nothing else answers: some minutes on two cores
SPARSE_ROWS = 300_000  # rows of which "auto" looks at all pairs for near ones
FIRST = 100  # landmarks of the first attempt
MOST = 4000  # and of the last one, at most
ONE_IN = 5  # rows for each landmark: with more landmarks than this, others are faster
ROWS = 5000  # rows of the fit that new points are told from
FURTHER = 1.5  # landmarks over those asked for, at most, once points that were not covered are landmarks too
MARGIN = 4.0  # of a first residual: the error was 1 to 10 times as large where both are known
REACHABLE = 2.0  # landmarks cover more rows each, together, than the first ones do
SHRUNK = 3.0  # and of the ratio of two, by which an error is carried over from one size to the next


@dataclass(frozen=True)
class Sizes:
    """How many landmarks are asked for, and how many there may be once uncovered rows are landmarks too."""

    first: int
    most: int


class Embedding:
    """The embedding of one source: options that all its forms share. The ascent starts from `before`, where given."""

    def __init__(
        self,
        passes: Passes,
        kernel: Gaussian,
        solve: Solve,
        landmarks: Callable[[int], LandmarkBasis],
        *,
        seed: int,
        count: int | None,
        cache: str,
        scratch: str | None,
        before: Extension | None = None,
    ):
        self.passes, self.kernel, self.solve, self.landmarks = passes, kernel, solve, landmarks
        self.seed, self.count, self.cache, self.scratch, self.before = seed, count, cache, scratch, before

    @property
    def source(self) -> Source:
        """The rows."""
        return self.passes.run.source

    def exact(self, sparse: bool) -> Embedded:
        """By the kernel between all pairs, or between near ones."""
        run = self.passes.run
        run = Run(run.source, plan_rows(run.source, flops_of(run.source, 1)), None, "read")
        scratch = self.scratch if sparse else None
        return embed_exact(
            run,
            self.kernel,
            self.solve,
            seed=self.seed,
            count=self.count,
            sparse=sparse,
            scratch=scratch,
            before=self.before,
        )

    def low_rank(self, accuracy: float, sizes: Sizes | None) -> Embedded:
        """At these landmarks, or at as many as make the Gram matrix exact to `accuracy`.

        Raises ValueError where they do not cover the rows.
        """
        most = min(self.source.n, MOST)
        found = None if sizes is not None else self._doubled(accuracy, most)
        if found is not None:
            return found
        wanted = sizes or Sizes(most, int(FURTHER * most))
        covered = self._covered(self.landmarks(wanted.first), wanted.most)
        covered.check(self.source.n)
        return self._halved(covered)

    def _given(self, sizes: Sizes) -> Embedded | None:
        """At given landmarks, None where they do not cover the rows."""
        covered = self._covered(self.landmarks(sizes.first), sizes.most)
        if covered.missed:
            return None
        covered.check(self.source.n)
        return self._halved(covered)

    def _halved(self, covered: Covered) -> Embedded:
        """At landmarks that cover the rows; half of them tell how far they are from all points."""
        basis = covered.basis
        half = LandmarkBasis(self.kernel, basis.landmarks[: max(2, -(-basis.size // 2))])  # one has no columns
        less = self._covered(half, 0)
        return self._low_rank(covered, None if less.missed else self._low_rank(less, None))[0]

    def _doubled(self, accuracy: float, most: int) -> Embedded | None:
        """The low-rank embedding that reaches `accuracy`, or the last of those up to `most` landmarks that cover."""
        p = min(FIRST, most)
        last: tuple[Embedded, Probe] | None = None
        while True:
            covered = self._covered(self.landmarks(p), int(FURTHER * p))
            if covered.missed:
                n, size = self.source.n, covered.basis.size
                logger.info("%d landmarks do not cover %d of %d rows", size, covered.missed, n)
                if size * n > REACHABLE * most * (n - covered.missed):
                    break  # at so few rows a landmark, no number up to `most` covers all
            else:
                covered.check(self.source.n)
                before, last = last, self._low_rank(covered, last)
                error = last[0].approximation
                if before is not None and error is not None and error <= accuracy:
                    break
            if p >= most:
                break
            p = min(2 * p, most)
        return None if last is None else last[0]

    def chosen(self, accuracy: float, sizes: Sizes | None) -> Embedded:
        """The cheapest form that answers to `accuracy`."""
        n = self.source.n
        if n <= FEW:
            return self.exact(sparse=False)
        best = self._given(sizes) if sizes is not None else self._doubled(accuracy, min(n // ONE_IN, MOST))
        if best is not None and best.approximation is not None and best.approximation <= accuracy:
            return best
        if n <= SPARSE_ROWS and 8 * n * self.source.dimension <= available() / SHARE:
            points = points_in_memory(self.passes.run)[0]
            probes = points[np.random.default_rng(self.seed).permutation(len(points))[:NEIGHBOURHOODS]]
            near = degree(self.kernel, points, probes)
            fits = ENTRY * n * near <= available() / SHARE or self.scratch is not None
            if near <= DENSE * n and fits:
                return self.exact(sparse=True)
        if n <= EXACT_ROWS:
            return self.exact(sparse=False)
        return best or self.low_rank(accuracy, sizes)

    def _covered(self, basis: LandmarkBasis, most: int) -> Covered:
        run = self.passes.run
        plan = plan_embedding(self.source, basis.size, run.device)
        self.passes.run = Run(run.source, plan.ranges, None, "embed", run.device)
        return cover_rows(self.passes, basis, most)

    def _low_rank(self, covered: Covered, before: tuple[Embedded, Probe] | None) -> tuple[Embedded, Probe]:
        """The embedding with the estimate of its error, from one at fewer landmarks."""
        embedded, probe = embed_low_rank(
            self.passes,
            covered,
            self.solve,
            seed=self.seed,
            count=self.count,
            rows=self._drawn(ROWS, np.random.default_rng([self.seed, 1])),
            probes=self._drawn(PROBES, np.random.default_rng([self.seed, 2])),
            cache=self.cache,
            scratch=self.scratch,
            before=self.before if before is None else before[0].extension,
        )
        error = _error(None if before is None else before[1], probe)
        logger.info("%d landmarks: the Gram matrix is off by about %.1e", covered.basis.size, error)
        return replace(embedded, approximation=error), probe

    def _drawn(self, size: int, rng: np.random.Generator) -> RowCover:
        run = self.passes.run
        fields = draw_fields(run.source, size, rng)[1]
        return RowCover(run.source.preparation(fields["x"]), fields.get("diagonal"))


def _error(before: Probe | None, now: Probe) -> float:
    """The relative error of the Gram matrix.

    What it has moved since `before` is the error there; it has shrunk as the residual has, give or take a factor of 3.
    """
    if before is None:
        return MARGIN * now.residual
    moved = gram_distance(before.embedding, now.embedding)
    return moved * min(1.0, SHRUNK * now.residual / before.residual) if before.residual else moved


def warn_embedding(found: Embedded, *, tolerance: float, accuracy: float, columns: int | None) -> None:
    """Warn where a stage is not proved optimal, where columns are missing, and where landmarks are not accurate."""
    solutions = [stage.solution for stage in found.stages]
    for number, solution in enumerate(solutions):
        if not solution.certificate.optimal:
            of = "the embedding is" if len(solutions) == 1 else f"stage {number + 1} of the embedding is"
            warn_user(
                f"{of} not proved optimal: the relative duality gap is up to "
                f"{solution.certificate.gap / solution.objective:.1e}, above tolerance={tolerance:g}, after "
                f"{solution.passes} passes; raise max_passes, or widen the bandwidth if few points reach one another",
                ConvergenceWarning,
            )
    if columns is not None and found.extension.kept < columns:
        warn_user(
            f"only {found.extension.kept} of {columns} columns: the kernel holds no more at this bandwidth; lower "
            "n_components or narrow the bandwidth",
            RankWarning,
        )
    error: Any = found.approximation
    if error is not None and error > accuracy:
        p = len(found.extension.points)
        warn_user(
            f"at {p} landmarks the Gram matrix of the embedding is off by about {error:.1%}, more than "
            f"accuracy={accuracy:g}: the certificate is of the problem at these landmarks. Leave their count out, "
            "or give more landmarks, method='auto' or a wider bandwidth",
            TrustWarning,
        )


def scratch_of(cache: Any) -> str | None:
    """The path of a scratch array, None for a word. Raises ValueError for anything else."""
    if isinstance(cache, str) and cache in ("auto", "always", "never"):
        return None
    text = os.fspath(cache) if isinstance(cache, (str, os.PathLike)) else ""
    if not text:
        raise ValueError(f"cache must be 'auto' or 'always' or 'never', or a path; it is {cache!r}")
    if isinstance(cache, str) and not re.search(r"[./\\]", text):
        raise ValueError(f"cache must be 'auto' or 'always' or 'never', or a path such as './{text}'; it is {cache!r}")
    return text


def given_bounds(diagonal: Any, n: int, on_invalid: str) -> Array:
    """Bounds on the diagonal (n,), given by the user; ValueError where they are not n positive numbers."""
    reader = as_reader(diagonal, "diagonal")
    bounds = np.asarray(reader.read(0, n), dtype=float) if reader.shape == (n,) else np.empty(0)
    if bounds.shape != (n,) or not ((bounds > 0) | (np.isnan(bounds) & (on_invalid == "skip"))).all():
        raise ValueError(f"diagonal must be {n} positive numbers, a bound for each row; it has shape {reader.shape}")
    return bounds
