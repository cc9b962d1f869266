"""Invariant and equivariant functions of one eigenspace, from the generators of a group and its Lie algebra."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Array, Eigenspace, Floats, Integers, Matrix, dense
from daskspectral.manifolds.isometry import Isometry, KillingField

Move = tuple[Integers, Floats]
"""Images (n,) of n functions, and their phases (n,)."""

_TRIVIAL = 1e-11  # a phase below this, summed around a cycle of functions, is rounding error


def positions_among(rows: Integers, among: Integers) -> Integers:
    """Return the indices of distinct rows (n, m) among the same rows in another order."""
    found = np.empty(len(rows), dtype=np.int64)
    found[np.lexsort(rows.T)] = np.lexsort(among.T)
    return found


def orbits(count: int, moves: Sequence[Move]) -> tuple[Integers, Floats, NDArray[np.bool_]]:
    """Return the orbit of each function, its phase relative to the first, and the closed orbits.

    An orbit closes, and contains one invariant function, if all its cycles multiply by the same phase.
    """
    sources = np.tile(np.arange(count), len(moves))
    targets = np.concatenate([target for target, _ in moves]) if moves else sources
    graph = csr_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    orbit = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    front = np.unique(orbit, return_index=True)[1]
    phase, known = np.zeros(count), np.zeros(count, dtype=bool)
    known[front] = True
    closed = np.ones(len(front), dtype=bool)
    while len(front):  # each move is a permutation, which reaches its orbit forwards
        reached = []
        for target, shift in moves:
            fresh = front[~known[target[front]]]
            phase[target[fresh]] = phase[fresh] + shift[fresh]
            known[target[fresh]] = True
            reached.append(target[fresh])
        front = np.concatenate(reached) if reached else front[:0]
    for target, shift in moves:
        closed[orbit[np.abs(np.exp(1j * (phase + shift - phase[target])) - 1) > _TRIVIAL]] = False
    return orbit, phase, closed


# -- of any functions --------------------------------------------------------------------------------------------------


_ZERO = 1e-6  # singular values above are never zeros
_ROUNDING = 1e-11  # times the size: singular values up to this may be zeros
_COUPLED = 1e-13  # entries of D(g) above couple functions of a torus
_GAP = 100.0  # least ratio of the smallest nonzero singular value to the largest zero


def invariant_coefficients(
    space: Eigenspace, isometries: Sequence[Isometry], algebra: Sequence[KillingField] = ()
) -> Matrix:
    """Return orthonormal U (m, r) of the functions of an eigenspace that generators leave invariant.

    {a : D(g) a = a for every generator g, dD(X) a = 0 for every X of the algebra}; Uᵀ φ are invariant functions. On
    tori U is sparse; otherwise it spans the null space of the stacked D(g) - I and dD(X) (Proposition 6, Soleymani et
    al. 2025).

    Parameters
    ----------
    space : Eigenspace
        Eigenspace of m functions.
    isometries : sequence of Isometry
        Generators of the group.
    algebra : sequence of KillingField, optional
        Elements of its Lie algebra.

    Returns
    -------
    ndarray or sparse array of shape (m, r)
        Orthonormal columns.

    Raises
    ------
    ValueError
        If there are more than 5000 functions, or no gap separates zero singular values from the others.

    See Also
    --------
    Eigenspace : One eigenspace of a manifold.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> invariant_coefficients(Sphere(3).eigenfunctions(2), Permutations(3).generators).shape
    (5, 1)
    """
    isometries = [g for g in isometries if not g.trivial]
    algebra = [field for field in algebra if not field.trivial]
    if not isometries and not algebra:
        return np.eye(space.size)
    found = space.closed_form(isometries, algebra)
    if found is not None:
        return found
    check_dense(space.size)
    return null_space(
        [dense(space.action(g)) for g in isometries], [dense(space.derived_action(field)) for field in algebra]
    )


def check_dense(size: int) -> None:
    """Raise ValueError for too many functions for dense matrices."""
    if size > DENSE_LIMIT:
        raise ValueError(
            f"a level must have at most {DENSE_LIMIT} functions to compute invariant ones, got {size}; use fewer levels"
        )


def null_space(actions: Sequence[Array], derived: Sequence[Array] = ()) -> Array:
    """Return an orthonormal basis (m, r) of vectors fixed by D and annihilated by dD, (m, m).

    The null space of the first dD, with eigenvalues i times integers, is exact: eigenvalues of dDᵀ dD below 1/4.
    Within it the others are solved by the singular values of B = [D_1 - I; D_2 - I; ...; dD_2; ...], because Bᵀ B
    would square small ones, cut at the widest gap below 1e-6. Raises ValueError for a gap below a factor of 100.
    """
    within = _skew_null_space(derived[0]) if derived else None
    if within is not None and (not within.shape[1] or len(actions) + len(derived) == 1):
        return within
    start = np.eye(len(actions[0])) if within is None else within
    m = start.shape[1]
    factor: Array = np.zeros((0, m))
    for action in actions:
        factor = _stacked_triangle(factor, action @ start - start)
    for each in derived[1:]:
        factor = _stacked_triangle(factor, each @ start)
    values, rows = _singular(factor)
    values = np.maximum(values[::-1], 64 * np.finfo(float).eps * m)  # ascending; below, rounding errors
    candidates = np.flatnonzero(values <= _ZERO)
    if not len(candidates):
        return start[:, :0]
    ratios = np.append(values, max(1.0, values[-1]))[candidates + 1] / values[candidates]
    rank = int(ratios.argmax()) + 1
    if ratios[rank - 1] < _GAP or values[rank - 1] > _ROUNDING * m:
        raise ValueError(
            "expected singular values of D(g) - I with a gap that separates zeros, received "
            f"{values[rank - 1]:.3g} and then {values[min(rank, m - 1)]:.3g}; the generators are not "
            "orthogonal, or too near the identity"
        )
    null = np.ascontiguousarray(rows[::-1][:rank].T)
    return null if within is None else np.asarray(within @ null)


def _skew_null_space(derived: Array) -> Array:
    """Return the null space (m, r) of an antisymmetric matrix with eigenvalues i times integers."""
    values, vectors = scipy.linalg.eigh(derived.T @ derived, subset_by_value=(-np.inf, 0.25))
    if values.max(initial=0) > _ZERO:
        raise ValueError(
            "expected a Killing field whose flow closes at 2 pi, with eigenvalues i times integers; received i "
            f"times {np.sqrt(values.max()):.3g}"
        )
    return np.ascontiguousarray(vectors)


def _singular(factor: Array) -> tuple[Array, Array]:
    """Return the singular values, descending, and right singular vectors, as rows."""
    try:
        _, values, rows = scipy.linalg.svd(factor, lapack_driver="gesdd")
    except scipy.linalg.LinAlgError:  # divide and conquer can fail for many equal values, but not in another order
        _, values, rows = scipy.linalg.svd(factor[:, ::-1], lapack_driver="gesdd")
        rows = rows[:, ::-1]
    return values, rows


def _stacked_triangle(factor: Array, below: Array) -> Array:
    """Return the triangular factor of two stacked matrices."""
    return np.asarray(np.linalg.qr(np.concatenate([factor, below]), mode="r"))


def equivariant_coefficients(
    space: Eigenspace, pairs: tuple[Sequence[Isometry], Sequence[KillingField]], components: int
) -> Matrix:
    """Return an orthonormal basis U (m k, r) of the coefficients of equivariant functions.

    Columns are matrices A (m, k), row by row, of functions f = Aᵀ φ with D(g) A ρ(g)ᵀ = A for every generator g, and
    dD(X) A + A drho(X)ᵀ = 0 for every X of the algebra. `pairs` are generators and elements of the algebra, each with
    its matrix as one map of d + k coordinates. Raises ValueError for m k above 5000, and without a gap between zero
    and other singular values.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> pairs = [g.direct_sum(g) for g in Permutations(3).generators], []
    >>> equivariant_coefficients(Sphere(3).eigenfunctions(1), pairs, 3).shape  # x, and (s, s, s), s the sum
    (9, 2)
    """
    isometries, algebra = ([g for g in pairs[0] if not g.trivial], [x for x in pairs[1] if not x.trivial])
    m, k, d = space.size, components, space.ambient
    if not isometries and not algebra:
        return csr_array(eye_array(m * k))
    point = slice(d)
    actions = [space.action(g.block(point)) for g in isometries]
    actions += [space.derived_action(x.block(point)) for x in algebra]

    def null(actions: Sequence[Array]) -> Array:
        """Return the null space, from D of all isometries, then dD of fields, or their blocks."""
        fixed = [np.kron(a, g.matrix[d:, d:]) for a, g in zip(actions, isometries, strict=False)]
        turned = zip(actions[len(isometries) :], algebra, strict=True)
        still = [np.kron(a, np.eye(k)) + np.kron(np.eye(len(a)), x.matrix[d:, d:]) for a, x in turned]
        return null_space(fixed, still)

    sparse = [action for action in actions if isinstance(action, csr_array)]
    if len(sparse) == len(actions):
        return _by_orbits(sparse, null, k)
    check_dense(m * k)
    return null([dense(action) for action in actions])


def _by_orbits(actions: Sequence[csr_array], null: Callable[[Sequence[Array]], Array], k: int) -> csr_array:
    """Return the null space by sets of functions that the matrices couple."""
    where = [action.tocoo() for action in actions]
    entries = np.concatenate([a.data for a in where])
    rows, columns = (np.concatenate([a.coords[axis] for a in where]) for axis in (0, 1))
    coupled, m = np.abs(entries) > _COUPLED, actions[0].shape[0]
    graph = csr_array((np.ones(coupled.sum()), (rows[coupled], columns[coupled])), shape=(m, m))
    labels = connected_components(graph, directed=False)[1]
    parts: list[tuple[Array, Array, Array]] = []
    total = 0
    for members in np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1]):
        vectors = null([np.asarray(action[members][:, members].toarray()) for action in actions])
        places = (members[:, None] * k + np.arange(k)).ravel()
        r = vectors.shape[1]
        parts.append((vectors.ravel(), np.repeat(places, r), np.tile(np.arange(total, total + r), len(places))))
        total += r
    entries, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    return csr_array((entries, (rows, columns)), shape=(m * k, total))
