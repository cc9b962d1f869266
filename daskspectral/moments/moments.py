"""Moments: sums over rows of products of basis functions, which add in any order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, as_lattice
from daskspectral.moments.digests import Digests
from daskspectral.moments.folds import Folds
from daskspectral.operators import Operator
from daskspectral.registry import Registered, encode

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Moments(Registered):
    """Sums of forms over rows, never means: an additive monoid.

    `arrays` holds the sum of each form, (p, q), by name. `weight` is the total sample weight, `count` the number of
    rows summed, `skipped` the number dropped as invalid, and `rows` the number read, landmarks that were left out
    included. `digests` tell whether data are those that were read, None of moments that were added up.
    `right_basis` is None where `basis` gives the right functions too. `folds` has the same sums by group of rows, None
    where they were not kept apart. Rows that coincide with landmarks are `landmark_rows`: "kept", summed "apart", or
    "dropped". `penalty` is c of their penalised solution, and `undercut` (k,) by what factor other functions had lower
    values on rows held out when these were chosen. `order` are the sums over runs of neighbouring rows, which depend on
    the chunks (`moments.counting`), None where they were not measured. `a + b` is the moments of both data together;
    it has folds where both have them.

    Examples
    --------
    Two halves of the data, measured with the same landmarks, add up to the whole:

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = dsp.SpectralDecomposition(
    ...     basis=dsp.basis.Landmarks(dsp.kernels.Polynomial(2), points=x[:20]), n_components=3
    ... )
    >>> together = model.fit(x[:1000]).moments_ + model.fit(x[1000:]).moments_
    >>> whole = model.fit(x).moments_
    >>> together.count, bool(np.allclose(together.mean("gram"), whole.mean("gram")))
    (2000, True)
    >>> bool(np.allclose(model.eigenvalues_, model.fit_moments(together).eigenvalues_))
    True
    """

    expects: ClassVar = {"basis": Basis, "right_basis": Basis, "operator": Operator, "folds": Folds, "digests": Digests}

    arrays: Mapping[str, Array]
    weight: float
    count: int
    basis: Basis
    operator: Operator
    skipped: int = 0
    dtype: str = "float64"
    preparation: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 0
    right_basis: Basis | None = None
    digests: Digests | None = None
    folds: Folds | None = None
    landmark_rows: str = "kept"
    penalty: float | None = None
    undercut: Array | None = None
    order: Array | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of bases, operator, preparation of the columns and dtype; moments with equal ones can be added."""
        digest = hashlib.sha256()
        for part in (encode(self.basis), encode(self.right_basis), self.preparation, self.dtype):
            update_digest(digest, part)
        measured = (self.operator.forms, self.operator.functionals)
        digest.update(repr((self.operator, *(sorted(m.items()) for m in measured))).encode())
        return digest.hexdigest()

    def __add__(self, other: Moments) -> Moments:
        """The moments of both. Raises ValueError where they measure different things, or by other folds."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.operator != other.operator:
            estimated = (
                ""
                if self.operator.estimate is None
                else (
                    "; a density is estimated anew by each fit: fit the second with the operator of the first, "
                    "moments_.operator"
                )
            )
            raise ValueError(f"moments of different operators do not add: {self.operator}, {other.operator}{estimated}")
        if self.fingerprint != other.fingerprint:
            own, their = as_lattice(self.basis), as_lattice(other.basis)
            if own is not None and their is not None and own != their:
                raise ValueError(
                    f"these moments were measured on different Fourier lattices, {own.difference(their)}, and do not "
                    "add; measure both with one: FourierLattice(m, box=...) with the ends of all data, or the basis_ "
                    "of the first"
                )
            raise ValueError(
                f"these moments were measured with different {' and '.join(_differences(self, other))}, and do not "
                "add; measure both with one basis: give the landmarks of the first as an array, or fit the second by "
                "SpectralDecomposition(**first.choice_.parameters)"
            )
        shapes, theirs = ({k: v.shape for k, v in m.arrays.items()} for m in (self, other))
        if shapes != theirs:
            raise ValueError(f"moments of different forms do not add: {shapes} and {theirs}")
        return replace(
            self,
            arrays={k: v + other.arrays[k] for k, v in self.arrays.items()},
            weight=self.weight + other.weight,
            count=self.count + other.count,
            skipped=self.skipped + other.skipped,
            rows=self.rows + other.rows,
            digests=None,
            folds=None if self.folds is None or other.folds is None else self.folds + other.folds,
            order=None if self.order is None or other.order is None else self.order + other.order,
            undercut=_lower(self.undercut, other.undercut),
        )

    def __radd__(self, other: int) -> Moments:
        if other == 0:  # the start of sum()
            return self
        return NotImplemented

    def mean(self, name: str) -> Array:
        """The weighted mean of one form over the rows, (p, q)."""
        return np.asarray(self.arrays[name] / self.weight)


def _lower(left: Array | None, right: Array | None) -> Array | None:
    """The lower factors of both; values that one of them does not tell have 1."""
    known = [factors for factors in (left, right) if factors is not None]
    size = max((len(factors) for factors in known), default=0)
    return np.min([np.append(f, np.ones(size - len(f))) for f in known], axis=0) if known else None


def _differences(left: Moments, right: Moments) -> list[str]:
    """The names of the parts in which the fingerprints of two moments differ."""
    named: dict[str, Callable[[Moments], Any]] = {
        "bases (kernel, landmarks)": lambda m: [encode(m.basis), encode(m.right_basis)],
        "preparations of the columns": lambda m: m.preparation,
        "dtypes": lambda m: m.dtype,
    }
    digests = [[hashlib.sha256() for _ in named] for _ in range(2)]
    for row, moments in zip(digests, (left, right), strict=True):
        for digest, part in zip(row, named.values(), strict=True):
            update_digest(digest, part(moments))
    return [n for n, a, b in zip(named, *digests, strict=True) if a.digest() != b.digest()] or ["forms"]


def update_digest(digest: Any, value: Any) -> None:
    """Feed plain data and arrays to a hash."""
    if isinstance(value, np.ndarray):
        digest.update(repr((value.shape, value.dtype.str)).encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        digest.update(f"{{{len(value)}".encode())
        for key in sorted(value):
            digest.update(json.dumps(str(key)).encode())
            update_digest(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            update_digest(digest, item)
    else:
        whole = isinstance(value, int) and not isinstance(value, bool)  # 1 and 1.0 are the same parameter
        digest.update((json.dumps(float(value) if whole else value) + ",").encode())
