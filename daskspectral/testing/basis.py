"""Checks of a basis and of a kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from daskspectral.basis import Basis, Block, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.basis.evaluation import VALUE
from daskspectral.forms import Atom, Field, dirichlet, form, gram, inner, partial
from daskspectral.kernels import Kernel
from daskspectral.kernels.base import MultiIndex, unit_index
from daskspectral.moments import Measure
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
from daskspectral.validation import check_type
from daskspectral.workspace import Workspace

SINGLE = 1e-3  # relative, of values in float32


def check_basis(basis: Basis, x: ArrayLike | None = None, *, random_state: int = 0) -> None:
    """Check values, derivatives, sums, copies and saved state of a basis.

    Derivatives up to the declared order (at most 4) agree with finite differences; the next order raises
    SmoothnessError. The Gram matrix and the Dirichlet form are sums over points, for blocks of any length and weights
    that repeat rows.

    Parameters
    ----------
    basis : Basis
        The basis.
    x : array-like of shape (n, d), optional
        Points; by default normal ones.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.
    TypeError
        If the object is not a basis.

    See Also
    --------
    check_kernel : Check of a kernel and its basis functions.

    Examples
    --------
    >>> import numpy as np
    >>> from daskspectral.basis import CallableBasis
    >>> from daskspectral.testing import check_basis
    >>> waves = CallableBasis(lambda x: np.sin(x).T, lambda x: np.cos(x).T[:, :, None] * np.eye(2)[:, None], d=2)
    >>> check_basis(waves)
    >>> wrong = CallableBasis(lambda x: np.sin(x).T, lambda x: np.sin(x).T[:, :, None] * np.eye(2)[:, None], d=2)
    >>> check_basis(wrong)
    Traceback (most recent call last):
    ...
    AssertionError: ...
    """
    check_type("basis", basis, Basis, "one of daskspectral.basis, or a subclass of Basis")
    rng = np.random.default_rng(random_state)
    points = draw_points(x, basis.dimension, rng)
    shape, wanted = basis.values(points).shape, (basis.size, len(points))
    require(shape == wanted, f"{basis.description}: values(x) must have the shape (p, c) = {wanted}, got {shape}")
    few = points[:7]
    check_partials(
        basis.description,
        lambda z, alpha: feature(basis, {"x": z}, derivative(alpha)),
        basis.values(few),
        basis.order,
        few,
        rng,
    )
    check_functions(basis, points, rng)


def feature(basis: Basis, fields: Mapping[str, Array], atom: Atom, scale: Array | None = None) -> Array:
    """Return an atom of all functions at all points, a copy (p, c)."""
    block = Block(fields, np.dtype(float), Workspace(), scale).view(atom.view)
    return np.array(basis.at(block, [atom]).feature(atom))


def derivative(alpha: MultiIndex, view: str = "x") -> Atom:
    """Return the atom of a partial derivative."""
    return Atom("partial", view, alpha)


def check_functions(basis: Basis, x: Array, rng: np.random.Generator) -> None:
    """Check all properties of a basis except the derivatives."""
    what, values = basis.description, basis.values(x)
    one_by_one = np.hstack([basis.values(x[k : k + 1]) for k in range(len(x))])
    compare(f"{what}: values(x), against one point at a time", values, one_by_one, EXACT)
    single = basis.values(x, "float32")
    require(single.dtype == np.float32, f"{what}: values(x, 'float32') have the dtype {single.dtype}")
    compare(f"{what}: values(x, 'float32')", single, values, SINGLE)
    require(basis.local.shape == (basis.size,), f"{what}: local must have the shape (p,), got {basis.local.shape}")
    _check_features(basis, x, rng)
    _check_sums(basis, x, rng)
    _check_copies(basis, x)


def _check_features(basis: Basis, x: Array, rng: np.random.Generator) -> None:
    what, d = basis.description, basis.dimension
    fields = {"x": x, "direction": rng.standard_normal(x.shape)}
    plain = {VALUE: feature(basis, fields, VALUE)}
    compare(f"{what}: values in a block", plain[VALUE], basis.values(x), EXACT)
    if basis.order >= 1:
        atoms = [*(derivative(unit_index(a, d)) for a in range(d)), Atom("along", direction=Field("direction"))]
        plain |= {atom: feature(basis, fields, atom) for atom in atoms}

    def second(matrix: Array | None) -> Array:
        atom = Atom("second", direction=None if matrix is None else Field("matrix"))
        block = Block(fields if matrix is None else fields | {"matrix": matrix}, np.dtype(float), Workspace())
        return basis.at(block, [atom]).second(atom, block)

    check_contracted(
        what,
        x.shape,
        basis.order,
        lambda alpha: feature(basis, fields, derivative(alpha)),
        lambda v: feature(basis, fields | {"direction": v}, Atom("along", direction=Field("direction"))),
        second,
        rng,
    )
    scale = rng.random(len(x)) + 0.5
    for atom, expected in plain.items():
        name = f"{atom.kind} {atom.alpha}" if atom.alpha else atom.kind
        found = feature(basis, fields, atom, scale)
        compare(f"{what}: {name}, times the square root of the weight", found, expected * scale, EXACT)
        if basis.is_zero(atom):
            most = float(np.abs(expected).max())
            require(most == 0, f"{what}: is_zero() returns True for {name}, whose largest value is {most:.3g}")


def _check_sums(basis: Basis, x: Array, rng: np.random.Generator) -> None:
    """Compare sums of forms with products of features."""
    d, counts = basis.dimension, rng.integers(0, 4, len(x))
    repeated = {"x": np.repeat(x, counts, axis=0)}
    values = feature(basis, repeated, VALUE)
    forms, expected = {"gram": gram}, {"gram": values @ values.T}
    if basis.order >= 1:
        first, *others = (feature(basis, repeated, derivative(unit_index(a, d))) for a in range(d))
        forms |= {"dirichlet": dirichlet, "mixed": form(lambda f, g, x: inner(f, partial(g, *unit_index(0, d))))}
        expected["dirichlet"] = np.sum([p @ p.T for p in (first, *others)], axis=0)
        expected["mixed"] = values @ first.T
    whole = Concatenated((ConstantBasis(d), basis))
    for batch, rows in itertools.product((repeated, {"x": x, "weight": counts.astype(float)}), (None, 7)):
        alone = basis.matrices(forms, {}, Measure(basis, basis, forms, rows=rows)([batch]))
        with_constant = Measure(whole, whole, forms, rows=rows)([batch])
        for key, table in expected.items():
            kind = "weighted" if "weight" in batch else "repeated"
            what = f"{basis.description}: the sum {key} over {kind} rows, {rows or 'all'} in a block"
            compare(f"{what}, against products of features", alone[key], table, EXACT)
            compare(f"{what}, with a constant", with_constant[key][1:, 1:], table, EXACT)


def _check_copies(basis: Basis, x: Array) -> None:
    what = basis.description
    for name, copy in copies_of(what, basis, Basis).items():
        sizes, wanted = ((b.size, b.dimension, b.order) for b in (copy, basis))
        require(sizes == wanted, f"{what}: size, dimension and order of {name} are {sizes}; expected {wanted}")
        compare(f"{what}: values(x) of {name}", copy.values(x), basis.values(x), 0.0)


LANDMARKS = 5
COINCIDENT = 1e-7  # relative, of k(x, x): the root of the rounding of a squared distance


def check_kernel(kernel: Kernel, d: int = 3, *, x: ArrayLike | None = None, random_state: int = 0) -> None:
    """Check values, derivatives, copies, saved state and basis functions of a kernel.

    Values are symmetric and positive semidefinite; derivatives up to the declared order (at most 4) agree with finite
    differences, and the next order raises SmoothnessError. For functions that are not symmetric or not positive
    semidefinite see `check_basis`.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    d : int
        Number of variables.
    x : array-like of shape (n, d), optional
        Points in the units of the kernel; by default normal ones.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.
    TypeError
        If the object is not a kernel.

    See Also
    --------
    check_basis : Check of a basis.

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
    check_type("kernel", kernel, Kernel, "one of daskspectral.kernels, or a subclass of Kernel")
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
    units = f"{kernel} vanishes between different points; pass x, points in its units"
    require(bool(between > 1e-30 * np.abs(np.diag(table)).max()), units)
    values = np.linalg.eigvalsh((table + table.T) / 2)
    least = f"{kernel} is not positive semidefinite: eigenvalues from {values[0]:.3g} to {values[-1]:.3g}"
    require(bool(values[0] >= -COINCIDENT * values[-1]), least)


def _check_coincident(kernel: Kernel, points: Array, rng: np.random.Generator) -> None:
    """Check that derivatives are finite at landmarks, bounded near them."""
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
