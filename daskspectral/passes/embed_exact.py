"""The semidefinite embedding of all points, with the kernel between all pairs, or between near ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskspectral.engine import Run
from daskspectral.kernels import Gaussian
from daskspectral.passes.embedding import (
    Array,
    KernelProduct,
    Solve,
    points_in_memory,
    positive,
)
from daskspectral.passes.extension import Extension
from daskspectral.passes.reach import check_joined, check_masses, check_reach
from daskspectral.passes.sparse_kernel import CUT, SparseProduct
from daskspectral.solve.sdp import RANK, Deflated, ExactProblem, Stage, solve_stages

NARROW = 10  # columns at the start where the bandwidth is narrow: each that is missing costs an ascent of its own


@dataclass(frozen=True, eq=False)
class Embedded:
    """An embedding: the function of points, the stages with their certificates, and how it was found.

    `embedding` (n, columns) is E at the rows of the fit, None where the function gives it. With landmarks, `coverage`
    is the least |psi|^2 of a row, `approximation` an estimate of the relative error of the Gram matrix E E^T, and
    `probed` the least eigenvalue of the full dual matrix among the probe rows.
    """

    extension: Extension
    stages: tuple[Stage, ...]
    method: str
    embedding: Array | None = None
    coverage: float | None = None
    approximation: float | None = None
    probed: float | None = None


def embed_exact(
    run: Run,
    kernel: Gaussian,
    solve: Solve,
    *,
    seed: int,
    count: int | None,
    sparse: bool,
    scratch: str | None,
    before: Extension | None = None,
) -> Embedded:
    """Embed all valid rows of a run, with `count` columns, or the rank of the optimum for None.

    E E^T maximises Tr(Abar B) over positive semidefinite matrices B (n, n) with bounded diagonal, where Abar is the
    kernel exp(-r^2 / bandwidth^2), normalised and without its first eigenvector (Fanuel et al. 2022); `solve` does so
    from a starting point drawn with `seed`, or from the embedding `before`. With `sparse`, kernel values below 1e-6 are
    zeros; the others are kept in a new zarr group at `scratch`, where one is given.

    Raises ValueError for a bandwidth at which the kernel joins no two points or cannot tell any apart, for a point too
    far from the others, and for bounds on the diagonal that are not positive.
    """
    x, bound = points_in_memory(run)
    check_reach(kernel, x)
    product = SparseProduct.of(kernel, x, scratch) if sparse else KernelProduct.of(kernel, x)
    m = product(np.ones((len(x), 1)))[:, 0]
    check_masses(kernel, float(m.min()), float(m.max()), float(m.sum()), len(m))
    check_joined(kernel, x, m)
    matrix = Deflated(product, m)
    if bound is not None and not (bound > 0).all():
        raise ValueError(f"diagonal must be positive at every row; {np.count_nonzero(~(bound > 0))} are not")
    d = matrix.bound if bound is None else bound

    last = None if before is None else before.whole(x)

    def start(stage: int) -> Array:
        rng = np.random.default_rng([seed, stage])
        if last is None or stage >= len(last):
            return rng.standard_normal((len(x), min(NARROW if sparse else RANK, len(x))))
        point = last[stage]
        length = np.linalg.norm(point, axis=1, keepdims=True)  # 0 where the bound was, at rows of another fit
        return np.where(length > 0, point / np.where(length > 0, length, 1.0), rng.standard_normal(point.shape))

    stages = solve_stages(ExactProblem.of(matrix, d), start, solve, count)
    columns, weights, embedded = [], [], []
    for stage in stages:
        problem: ExactProblem = stage.problem
        e = problem.embedding(stage.solution.point)
        e = e * positive(e)
        columns.append(problem.matrix.weights(e))
        pulled = problem.matrix @ e  # the extension at the points themselves: both agree, converged or not
        length = np.linalg.norm(pulled, axis=1, keepdims=True)
        embedded.append(np.divide(np.sqrt(d)[:, None] * pulled, length, out=e.copy(), where=length > 0))
        weights.append(stage.rank)
    whole = np.hstack(embedded)
    extension = Extension(
        kernel,
        x,
        np.ones(len(x)),
        float(m.sum()),
        np.hstack(columns),
        whole,
        float(matrix.bound.max()),
        tuple(weights),
        whole.shape[1] if count is None else min(count, whole.shape[1]),
        cut=CUT if sparse else 0.0,
        preparation=run.source.preparation,
        unit=bound is not None,
    )
    return Embedded(extension, stages, "sparse" if sparse else "exact", whole[:, : extension.kept])
