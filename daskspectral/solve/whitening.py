"""Whitening: orthonormal combinations of functions, by eigenvalues of a Gram matrix above a relative cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device

Array = NDArray[np.floating[Any]]

CUTS = {"float64": 1e-10, "float32": 1e-6}
LEAST_CUTS = {"float64": 0.0, "float32": 1e-7}
LARGE = 2000  # rows above which an accelerator is faster, including transfers
Driver = Literal["ev", "evd", "evx", "evr"] | None


def symmetric_part(matrix: Any) -> NDArray[Any]:
    """Return (M + M^H)/2 of a matrix (p, p) that is Hermitian up to rounding.

    Examples
    --------
    >>> symmetric_part(np.array([[1.0, 2.0], [4.0, 3.0]]))
    array([[1., 3.],
           [3., 3.]])
    """
    return np.asarray(0.5 * (matrix + matrix.conj().T))


def eigh(matrix: Any, driver: Driver = None, device: Device = HOST) -> tuple[Array, Any]:
    """Return all eigenvalues (p,) of a Hermitian matrix (p, p), ascending, with their eigenvectors (p, p).

    Examples
    --------
    >>> eigh(np.diag([2.0, 1.0]))[0]
    array([1., 2.])
    """
    if not device.accelerated or len(matrix) <= LARGE:
        try:
            values, vectors = scipy.linalg.eigh(matrix, driver=driver)
        except np.linalg.LinAlgError:  # the default, "evr", fails for some clusters of equal eigenvalues
            values, vectors = scipy.linalg.eigh(matrix, driver="evd")
        return values, vectors
    with device.guarded():
        values, vectors = np.linalg.eigh(device.put(matrix))
        return device.get(values), device.get(vectors)


def fix_signs(whitened: NDArray[Any], *followers: NDArray[Any]) -> None:
    """Make the coefficient of largest modulus in each column real and positive, in place.

    The `followers` are multiplied by the same phases. Of entries that are equal up to rounding, the first decides.
    """
    if not whitened.size:
        return
    magnitude = np.abs(whitened)
    ties = magnitude >= magnitude.max(axis=0) * (1 - 1e-6)
    first = np.take_along_axis(whitened, ties.argmax(axis=0)[None], axis=0)[0]
    size = np.abs(first)
    phases = np.divide(first.conj(), size, out=np.ones_like(first), where=size > 0)
    for array in (whitened, *followers):
        array *= phases


def inverse_root(
    gram: NDArray[Any], cut: float, least: float = 0.0, driver: Driver = None, device: Device = HOST
) -> NDArray[Any]:
    """Return the inverse root W (p, r), W^H G W = I, of a Gram matrix.

    Of eigenvalues above `cut` times the largest, and above `least`, ascending.
    """
    values, vectors = eigh(gram, driver, device)
    kept = values > max(cut * values.max(initial=0.0), least)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def unit_root(
    gram: Array, cut: float, least: float = 0.0, blurred: Array | None = None, device: Device = HOST
) -> tuple[Array, Array]:
    """Return the inverse root (p, r) at unit diagonal, and eigenvalues (p,), ascending.

    Directions below `blurred` (p,), the rounding of squared norms, are excluded too.
    """
    correlation, scale = at_unit_diagonal(gram)
    values, vectors = eigh(symmetric_part(correlation), device=device)
    kept = values > max(cut * values.max(initial=0.0), least)
    if blurred is not None:
        kept &= values > (blurred * scale**2) @ vectors**2
    fix_signs(vectors)
    return scale[:, None] * (vectors[:, kept] / np.sqrt(values[kept])), values


def at_unit_diagonal(gram: Array) -> tuple[Array, Array]:
    """Return S G S of unit diagonal for a matrix (p, p), and S (p,), 0 for functions that vanish."""
    diagonal = np.diag(gram)
    scale = np.divide(1, np.sqrt(np.abs(diagonal)), out=np.zeros(len(gram)), where=diagonal > 0)
    return gram * scale[:, None] * scale, scale


def orthonormal(span: Array, inner: Array) -> Array:
    """Orthonormalize functions (p, q) with Gram matrix `inner` (q, q) by the symmetric root, in the same order."""
    values, vectors = eigh(symmetric_part(inner))
    kept = values > 1e-8 * values.max(initial=0.0)
    fix_signs(vectors)
    whole = vectors.T if kept.all() else np.eye(int(kept.sum()))
    return np.asarray(span @ (vectors[:, kept] / np.sqrt(values[kept])) @ whole)


@dataclass(frozen=True, eq=False)
class Whitening:
    """Whitening matrix W (p, r), or (p,) if diagonal, Wᵀ Φ W = I, and descending eigenvalues.

    `directions` is the number that the data determine. `coordinates` (q, r) are its functions in the basis of
    `whiten`, which fixes signs; None if they are that basis.
    """

    matrix: Array
    spectrum: Array
    directions: int | None = None
    coordinates: Array | None = None

    @property
    def rank(self) -> int:
        return int(self.matrix.shape[-1]) if self.directions is None else self.directions

    def applied(self, rows: Any) -> Any:
        """Return Wᵀ M (r, k)."""
        return self.matrix.T @ rows if self.matrix.ndim == 2 else self.matrix[:, None] * rows

    def functions(self, vectors: Any) -> Any:
        """Return W V (p, k)."""
        return self.matrix @ vectors if self.matrix.ndim == 2 else self.matrix[:, None] * vectors

    def whitened(self, vectors: Any) -> Any:
        """Return coefficients (q, k) in the whitened basis, from V (r, k)."""
        return vectors.copy() if self.coordinates is None else np.asarray(self.coordinates @ vectors)


def whiten(
    gram: Array,
    cut: float,
    keep: NDArray[np.bool_] | None = None,
    blurred: Array | None = None,
    device: Device = HOST,
) -> Whitening:
    """Return the whitening by eigenvalues of a Gram matrix above `cut` times the largest, at unit norms.

    Functions marked by `keep` (p,) are always retained, first; the others are orthogonal to them. `blurred` (p,) is
    the rounding of squared norms. Raises ValueError if every function vanishes.
    """
    seen = check_seen(gram)
    if keep is None or not (keep & seen).any():
        root, values = unit_root(gram, cut, 0.0, blurred, device)
        return Whitening(np.ascontiguousarray(root[:, ::-1]), values[::-1])
    correlation, scale = at_unit_diagonal(gram)
    values = scipy.linalg.eigvalsh(symmetric_part(correlation))[::-1]
    keep = keep & seen
    first = inverse_root(symmetric_part(correlation[np.ix_(keep, keep)]), 0.0, cut * values[0])[:, ::-1]
    fix_signs(first)
    projection = first @ first.T @ correlation[np.ix_(keep, ~keep)]
    rest = correlation[np.ix_(~keep, ~keep)] - correlation[np.ix_(~keep, keep)] @ projection
    second = inverse_root(symmetric_part(rest), 0.0, cut * values[0], device=device)[:, ::-1]
    fix_signs(second)
    return Whitening(scale[:, None] * with_null(first, -projection @ second, second, keep), values)


def check_seen(gram: Array) -> NDArray[np.bool_]:
    """Return which functions do not vanish on the data (p,); raise ValueError if all do."""
    seen: NDArray[np.bool_] = np.diag(gram) > 0
    if not seen.any():
        raise ValueError("every function is 0 on all rows. Fit columns that vary, or widen the kernel")
    return seen


def deflated(gram: Array, null: NDArray[np.bool_], cut: float) -> tuple[Array, Array, Array]:
    """Return orthonormal null functions (n, n'), components of the others (n', r), and their remaining Gram matrix."""
    rest = ~null
    first = unit_root(gram[np.ix_(null, null)], cut)[0]
    shift = first.T @ gram[np.ix_(null, rest)]
    return first, shift, gram[np.ix_(rest, rest)] - shift.T @ shift


def with_null(first: Array, across: Array, others: Array, null: NDArray[np.bool_]) -> Array:
    """Return null functions (n, n'), and others (n, k) and (r, k), as one matrix."""
    n = first.shape[1]
    matrix = np.zeros((len(null), n + others.shape[1]))
    matrix[null, :n], matrix[null, n:], matrix[~null, n:] = first, across, others
    return matrix


def resolve_cut(rtol: float | None, dtype: str) -> float:
    """Return the relative cutoff: `rtol`, or 1e-10 in float64, 1e-6 in float32; raise ValueError if out of range."""
    if rtol is None:
        return CUTS[dtype]
    if not 0 <= rtol < 1 or rtol < LEAST_CUTS[dtype]:
        raise ValueError(
            f"rtol must be in [{LEAST_CUTS[dtype]:g}, 1) for dtype {dtype}, got {rtol!r}. Products of float32 "
            "features have errors of about 1e-7"
        )
    return float(rtol)
