"""Checks of a kernel."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Kernel
from daskspectral.testing.basis import check_functions
from daskspectral.testing.compare import (
    EXACT,
    HIGHEST,
    Array,
    check_contracted,
    check_partials,
    compare,
    copies_of,
    draw_points,
    multi_indices,
    require,
    spread,
)

LANDMARKS = 5
COINCIDENT = 1e-7  # relative, of k(x, x): the root of the rounding of a squared distance


def check_kernel(kernel: Kernel, d: int = 3, *, x: ArrayLike | None = None, random_state: int = 0) -> None:
    """Check a kernel in d variables, on normal points, or on rows of x (n, d) for a kernel in other units.

    Its values are symmetric, of the right shape, and positive semidefinite; `diagonal` agrees; derivatives of every
    order that it declares (up to 4) agree with finite differences, `along` and `second` with `partial`, and the next
    order raises SmoothnessError; coincident points give finite numbers; parameters, copies and the saved state give
    the same kernel. Then the functions k(., y_i), which a basis computes from the profile, and their sums are checked.

    A function that is not symmetric or not positive semidefinite is not a kernel, but may still serve as a basis: see
    `check_basis`. Raises AssertionError with what is wrong, where and by how much; TypeError for anything but a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from daskspectral.kernels import Radial
    >>> from daskspectral.testing import check_kernel
    >>> check_kernel(Radial(lambda s: np.exp(-s), [lambda s: -np.exp(-s)]))
    >>> check_kernel(Radial(lambda s: np.exp(-s), [lambda s: np.exp(-s)]))  # the derivative has the wrong sign
    Traceback (most recent call last):
    ...
    AssertionError: ...
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"check_kernel takes a kernel of daskspectral.kernels or a subclass of Kernel; got {kernel!r}")
    rng = np.random.default_rng(random_state)
    points = draw_points(x, d, rng)
    if kernel.needs_median:
        kernel = kernel.resolve(float(np.median(np.linalg.norm(points[:, None] - points, axis=2))))
    y = points[:LANDMARKS]
    near = points[0 if kernel.order == math.inf else LANDMARKS :][: LANDMARKS + 2]  # all are landmarks, or none
    _check_values(kernel, points, y)
    check_partials(f"{kernel}", lambda z, a: kernel.partial(z, y, a), kernel.values(near, y), kernel.order, near, rng)
    _check_coincident(kernel, points, rng)
    check_contracted(
        f"{kernel}",
        points.shape,
        kernel.order,
        lambda alpha: kernel.partial(points, y, alpha),
        lambda v: kernel.along(points, y, v),
        lambda matrix: kernel.second(points, y, matrix),
        rng,
    )
    _check_parameters(kernel, points, y)
    basis, x = LandmarkBasis(kernel, y), points[LANDMARKS:]
    compare(f"{kernel}: values in buffers, against values", basis.values(x), kernel.values(x, y), EXACT)
    check_functions(basis, x, rng)


def _check_values(kernel: Kernel, points: Array, y: Array) -> None:
    x, table = points[LANDMARKS:], kernel.values(points, points)
    one_by_one = [[kernel.values(a[None], b[None])[0, 0] for a in x] for b in y]
    compare(f"{kernel}: values(x, y), against one pair at a time", kernel.values(x, y), one_by_one, EXACT)
    compare(f"{kernel}: k(x, y), against k(y, x)", table, table.T, EXACT)
    compare(f"{kernel}: diagonal(x), against k(x, x)", kernel.diagonal(points), np.diag(table), COINCIDENT)
    between = np.abs(table - np.diag(np.diag(table))).max()
    units = f"{kernel} vanishes between different points, and nothing can be checked: give x, points in its units"
    require(bool(between > 1e-30 * np.abs(np.diag(table)).max()), units)
    values = np.linalg.eigvalsh((table + table.T) / 2)
    least = f"{kernel} is not positive semidefinite: eigenvalues from {values[0]:.3g} to {values[-1]:.3g}"
    require(bool(values[0] >= -COINCIDENT * values[-1]), least)


def _check_coincident(kernel: Kernel, points: Array, rng: np.random.Generator) -> None:
    """Derivatives are finite at landmarks, and bounded near them."""
    y = points[:LANDMARKS]
    for total in range(1, int(min(kernel.order, HIGHEST)) + 1):
        for alpha in multi_indices(points.shape[1], total, rng):
            steps = spread(points) * rng.choice([-1.0, 1.0], y.shape)
            with np.errstate(all="ignore"):
                at, near, far = (np.abs(kernel.partial(y + h * steps, y, alpha)).max() for h in (0.0, 1e-5, 1e-3))
            bounded = bool(np.isfinite(at) and near < 10 * far + 1e-9)
            what = f"{kernel}: the partial derivative {alpha}"
            require(bounded, f"{what} is {at:.3g} at landmarks, {near:.3g} near them and {far:.3g} farther away")


def _check_parameters(kernel: Kernel, points: Array, y: Array) -> None:
    try:
        copies = {"its clone": clone(kernel), "its clone after set_params": clone(kernel)}
    except (RuntimeError, TypeError, ValueError) as error:
        raise AssertionError(f"{kernel} cannot be cloned as scikit-learn does it: {error}") from error
    copies["its clone after set_params"].set_params(**kernel.get_params(deep=False))
    for name, copy in (copies | copies_of(f"{kernel}", kernel, Kernel)).items():
        compare(f"{kernel}: k(x, y) of {name}", copy.values(points, y), kernel.values(points, y), 0.0)
