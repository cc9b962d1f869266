"""Checks of an operator, a solver, an estimator, a manifold and a group."""

from __future__ import annotations

import itertools
import math
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from daskspectral.basis import ConstantBasis, LandmarkBasis
from daskspectral.groups import Group
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Manifold
from daskspectral.operators import Operator
from daskspectral.solve import GalerkinSystem, Problem
from daskspectral.store import load, save, untrusted
from daskspectral.testing.compare import Array, check_copies, compare, require
from daskspectral.testing.form import check_form, draw_fields, measure

SAMPLED = 4000
NOISE = 0.3  # of the mean of a product of two functions over SAMPLED points: more than 6 standard deviations
CLOSE = 1e-6  # of differences by a step of 1e-5, relative


def check_manifold(manifold: Manifold, x: ArrayLike | None = None, *, levels: int = 3, random_state: int = 0) -> None:
    """Check points, normals, tangents and eigenfunctions of a manifold.

    If it can be sampled, its eigenvalues have the declared multiplicities, and the eigenfunctions of the first levels
    are orthonormal, with derivatives that agree with differences along tangents.

    Parameters
    ----------
    manifold : Manifold
        The manifold.
    x : array-like of shape (n, d), optional
        Points of a manifold that cannot be sampled.
    levels : int
        Number of levels.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.

    See Also
    --------
    check_group : Check of a group of isometries.

    Examples
    --------
    >>> from daskspectral.manifolds import Sphere
    >>> check_manifold(Sphere(3))
    """
    rng = np.random.default_rng(random_state)
    check_copies(manifold, Manifold)
    points = manifold.sample(SAMPLED, rng) if x is None else np.asarray(x, dtype=float)
    manifold.check(points)
    few = points[:20]
    frame, tangents, d = manifold.normals(few), manifold.tangents(few), manifold.ambient
    if tangents is not None:
        frame = np.concatenate([frame, tangents])
        compare(f"{manifold}: number of normals and tangents", len(frame), d, 0.0)
    products = np.einsum("mcd,ncd->cmn", frame, frame)
    compare(f"{manifold}: inner products in a frame", products, np.zeros_like(products) + np.eye(len(frame)), CLOSE)
    if x is not None:
        return
    values = [manifold.eigenvalue(level) for level in range(levels) for _ in range(manifold.multiplicity(level))]
    compare(f"{manifold}: eigenvalues by levels", manifold.eigenvalues(len(values)), np.sort(values), CLOSE)
    for level in range(levels):
        _check_functions(manifold, level, points, rng)


def _check_functions(manifold: Manifold, level: int, points: Array, rng: np.random.Generator) -> None:
    space, what = manifold.eigenfunctions(level), f"{manifold}: eigenfunctions of level {level}"
    values = space.values(points)
    require(values.shape[1] == manifold.multiplicity(level), f"{what}: got {values.shape[1]} functions")
    compare(f"{what}: means of products", values.T @ values / len(points), np.eye(values.shape[1]), 0.0, NOISE)
    x, v = points[:20], rng.standard_normal(points[:20].shape)
    slopes = (space.values(x + 1e-5 * v) - space.values(x - 1e-5 * v)) / 2e-5
    compare(f"{what}: derivatives, against differences", space.derivatives(x, v), slopes, CLOSE, CLOSE)


def check_group(group: Group, manifold: Manifold, *, random_state: int = 0) -> None:
    """Check a group of isometries of a manifold.

    Generators, flows of the algebra and words are isometries; words act on eigenspaces by orthogonal matrices. A
    finite group of at most 1000 elements has as many as `order`.

    Parameters
    ----------
    group : Group
        The group.
    manifold : Manifold
        The manifold.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.
    ValueError
        If a generator is not an isometry.

    See Also
    --------
    check_manifold : Check of a manifold.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> check_group(Permutations(3), Sphere(3))
    """
    rng = np.random.default_rng(random_state)
    check_copies(group, Group)
    group.check(manifold)
    word, x = group.word(rng), manifold.sample(200, rng)
    manifold.check(word(x))
    compare(f"{group}: a word and its inverse", word.inverse(word(x)), x, CLOSE)
    space = manifold.eigenfunctions(1)
    before, after = space.values(x), space.values(word(x))
    moved = np.linalg.lstsq(before, after)[0]
    compare(f"{group}: eigenfunctions after a word", before @ moved, after, CLOSE)
    compare(f"{group}: the matrix of a word", moved @ moved.T, np.eye(len(moved)), CLOSE)
    if not group.algebra and (group.order or math.inf) <= 1000:
        found = {np.eye(group.dimension).tobytes(): np.eye(group.dimension)}
        fresh = list(found.values())
        while fresh:
            products = [np.round(g.matrix @ a, 6) + 0.0 for g, a in itertools.product(group.generators, fresh)]
            fresh = [a for a in {a.tobytes(): a for a in products}.values() if a.tobytes() not in found]
            found |= {a.tobytes(): a for a in fresh}
        require(len(found) == group.order, f"{group} has {len(found)} elements, but the order {group.order}")


SAME = 1e-7  # relative, of answers that differ by rounding
SINGLE = 1e-2  # the same for single precision


def check_operator(operator: Operator, d: int = 2, *, random_state: int = 0) -> None:
    """Check the forms, copies and saved state of an operator.

    Each form passes `check_form`; the form of a constant is 0 if this is declared.

    Parameters
    ----------
    operator : Operator
        The operator.
    d : int
        Number of variables of both functions.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.

    See Also
    --------
    check_form : Check of a form.

    Examples
    --------
    >>> from daskspectral.operators import Schroedinger
    >>> check_operator(Schroedinger())
    """
    rng = np.random.default_rng(random_state)
    check_copies(operator, Operator)
    operator.check({}, d, d)
    left, right = (LandmarkBasis(Gaussian(scale), rng.standard_normal((4, d))) for scale in (1.0, 1.3))
    for form in operator.forms.values():
        check_form(form, left, right, random_state=random_state)
    if operator.annihilates_constants and "form" in operator.forms:
        batch = draw_fields(operator.form, d, d, rng)
        most = np.abs(measure(operator.form, left, ConstantBasis(d), batch)).max()
        require(bool(most == 0), f"{operator} declares L 1 = 0, but <f, L 1> is up to {most:.3g}")


def check_solver(solver: Problem, *, random_state: int = 0) -> None:
    """Check a spectral problem on a random system of 6 functions.

    Solutions do not depend on the basis; Ritz values of a solution in its system are its values, and its score is not
    less than that of random functions.

    Parameters
    ----------
    solver : Problem
        The problem.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.

    See Also
    --------
    check_operator : Check of an operator.

    Examples
    --------
    >>> from daskspectral.solve import SymmetricPencil
    >>> check_solver(SymmetricPencil())
    """
    rng, what = np.random.default_rng(random_state), f"the solver {solver}"
    check_copies(solver, Problem)
    form, mix = rng.standard_normal((6, 6)), rng.standard_normal((6, 6))
    grams = [a @ a.T + np.eye(6) for a in rng.standard_normal((2, 6, 6))][: 1 + solver.two_sided]
    if solver.needs_symmetry:
        form = form @ form.T
    system, changed = (
        GalerkinSystem(m.T @ form @ m, *(m.T @ g @ m for g in grams), count=2, cut=1e-12) for m in (np.eye(6), mix)
    )
    found, other = solver.solve(system), solver.solve(changed)
    values = solver.ritz(found.left, found.right, system)
    compare(f"{what}: Ritz values of a solution", np.sort(values), np.sort(found.values), SAME)
    if not np.iscomplexobj(values):
        random = solver.score(solver.ritz(mix[:, :2], mix[:, 2:4], system), 2)
        require(solver.score(values, 2) >= random, f"{what}: random functions have the higher score {random}")
    compare(f"{what}: values after a change of basis", other.values, found.values, SAME)
    require(float(found.residuals.max()) < SAME, f"{what}: the residuals are {found.residuals}")
    for gram, one, two in ((grams[0], found.left, mix @ other.left), (grams[-1], found.right, mix @ other.right)):
        pairs = (one, two), (one, one), (two, two)
        overlap, first, second = (np.abs(np.einsum("ik,ij,jk->k", f.conj(), gram, g)) for f, g in pairs)
        compare(f"{what}: functions after a change of basis", overlap**2, first * second, SAME)


def check_estimator(
    estimator: Any, x: ArrayLike, y: ArrayLike | None = None, *, exchangeable: bool = True, random_state: int = 0
) -> None:
    """Check invariances of the result of an estimator with fixed functions.

    The result must not depend on chunks, single precision, pickling or saving and, if rows are exchangeable, on their
    order and on whether a row is repeated or has the weight 2.

    Parameters
    ----------
    estimator : estimator
        The estimator, not fitted.
    x : array-like of shape (n, d)
        Rows.
    y : array-like, optional
        Targets (n,).
    exchangeable : bool
        True unless the order of rows matters.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.

    See Also
    --------
    check_operator : Check of an operator.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.gaussian(200)
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), points=x[:8])
    >>> check_estimator(dsp.HermiteRegressor(basis, alpha=1e-3), x, x[:, 0])
    """
    import dask.array as da

    rng, rows, what = np.random.default_rng(random_state), np.asarray(x, dtype=float), type(estimator).__name__
    targets = () if y is None else (np.asarray(y, dtype=float),)

    def answer(model: Any) -> Any:
        return (model.predict if hasattr(model, "predict") else model.transform)(rows[:20])

    def fitted(*given: Any, **options: Any) -> Any:
        return answer(clone(estimator).fit(*given, **options))

    model = clone(estimator).fit(rows, *targets)
    wanted = answer(model)
    compare(f"{what}: its pickled copy", answer(pickle.loads(pickle.dumps(model))), wanted, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.zarr"
        save(model, path)
        compare(f"{what}: saved and loaded", answer(load(path, trusted=untrusted(path))), wanted, 0.0)
    chunks = [da.from_array(part, chunks=(len(rows) // 3 + 1, *part.shape[1:])) for part in (rows, *targets)]
    compare(f"{what}: of rows in chunks", fitted(*chunks), wanted, SAME)
    compare(f"{what}: of rows in single precision", fitted(rows.astype("float32"), *targets), wanted, SINGLE)
    if exchangeable:
        order, counts = rng.permutation(len(rows)), rng.integers(1, 3, len(rows))
        compare(f"{what}: of rows in another order", fitted(*(v[order] for v in (rows, *targets))), wanted, SAME)
        twice = fitted(*(np.repeat(v, counts, axis=0) for v in (rows, *targets)))
        weighted = fitted(rows, *targets, sample_weight=counts.astype(float))
        compare(f"{what}: weights, against repeated rows", weighted, twice, SAME)
