"""The semidefinite embedding of all points, with the kernel between all pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.engine import Run
from daskspectral.kernels import Gaussian
from daskspectral.passes.embedding import KernelProduct, check_masses, check_reach, gathered, positive
from daskspectral.passes.extension import Extension
from daskspectral.solve.sdp import RANK, Deflated, ExactProblem, Problem, SDPSolution

Array = NDArray[np.floating[Any]]
Solve = Callable[[Problem, Array], SDPSolution]


def embed_exact(run: Run, kernel: Gaussian, solve: Solve, rng: np.random.Generator) -> tuple[Extension, Array]:
    """Embed all valid rows of a run: the embedding as a function of any point, and E (n, rank) at these rows.

    E E^T maximises Tr(Abar B) over positive semidefinite matrices B (n, n) with bounded diagonal, where Abar is the
    kernel exp(-r^2 / bandwidth^2), normalised and without its first eigenvector (Fanuel et al. 2022); `solve` does so
    from a starting point that `rng` draws.

    Raises ValueError for a bandwidth at which the kernel joins no two points or cannot tell any apart, for a point too
    far from the others, and for bounds on the diagonal that are not positive.
    """
    x, bound = gathered(run)
    check_reach(kernel, x)
    product = KernelProduct.of(kernel, x, False)
    m = product(np.ones((len(x), 1)))[:, 0]
    check_masses(kernel, float(m.min()), float(m.max()), float(m.sum()), len(m))
    matrix = Deflated(product, m)
    if bound is not None and not (bound > 0).all():
        raise ValueError(f"diagonal must be positive at every row; {np.count_nonzero(~(bound > 0))} are not")
    d = matrix.bound if bound is None else bound
    problem = ExactProblem(matrix, d, d * matrix.bound)
    e = problem.embedding(solve(problem, rng.standard_normal((len(x), min(RANK, len(x))))).point)
    e = e * positive(e)
    pulled = matrix @ e  # the extension at the points themselves: both agree, converged or not
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
