"""Moments: additive sums over rows of products of basis functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.moments.autocovariance import Autocovariance
from daskspectral.moments.folds import DIMENSIONS, Folds
from daskspectral.moments.pairwise import CLIPPED, POINTS, PRESENT, SQUARES, SUMS, Pairs
from daskspectral.moments.sample import Sample
from daskspectral.moments.shifting import about
from daskspectral.operators import Operator
from daskspectral.operators.density import estimate_of
from daskspectral.operators.regression import side_by_side
from daskspectral.registry import Registered, digest_of, encode

Array = NDArray[np.floating[Any]]


class LandmarkRows(StrEnum):
    """Treatment of rows that coincide with landmarks: kept, summed apart from the folds, or dropped."""

    KEPT = "kept"
    APART = "apart"
    DROPPED = "dropped"


@dataclass(frozen=True, eq=False)
class Moments(Registered):
    """Sums of forms over the rows of data: an additive monoid.

    ``a + b`` are the moments of both data sets together. Pass them to `fit_moments`.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Sum of each form of the operator, (p, q), between left and right functions, and of functionals, by name.
    weight : float
        Total weight of the rows.
    count : int
        Number of rows in the sums.
    basis : Basis
        Left functions.
    operator : Operator
        Operator whose forms are summed.
    dtype : str, default="float64"
        Precision of products.
    preparation : mapping
        Preparation of points from columns.
    right_basis : Basis, optional
        Right functions, if they are others.
    folds : Folds, optional
        The same sums by fold; a sum of moments has folds if both have them.
    rows : int, default=0
        Number of rows read, including landmarks that were left out.
    skipped : int, default=0
        Number of invalid rows that were dropped.
    short_trajectories : int, default=0
        Number of trajectories that were dropped because they are shorter than the lag.
    seen : mapping, optional
        Identity of the data by field (`data.integrity.Manifest.seen`); None for sums of moments.
    landmark_rows : LandmarkRows, default="kept"
        Treatment of rows that coincide with landmarks.
    penalty : float, optional
        Strength c of the penalty.
    finalist_gap : ndarray of shape (k,), optional
        Factors by which other functions had lower validation values in the search.
    order : ndarray, optional
        Sums over runs of consecutive rows, which depend on the chunks (`moments.counting`).
    of_rows : bool, default=False
        Whether functions are combinations of the rows; such moments cannot be added.
    sample : Sample, optional
        Random sample of the rows.
    autocovariance : Autocovariance, optional
        Products of consecutive rows, if the operator requires them.

    See Also
    --------
    daskspectral.SpectralDecomposition : Its `moments_` are the moments of a fit.

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

    expects: ClassVar = {
        "basis": Basis,
        "right_basis": Basis,
        "operator": Operator,
        "folds": Folds,
        "sample": Sample,
        "autocovariance": Autocovariance,
        "landmark_rows": LandmarkRows,
    }
    dimension_names: ClassVar = DIMENSIONS

    arrays: Mapping[str, Array]
    weight: float
    count: int
    basis: Basis
    operator: Operator
    dtype: str = "float64"
    preparation: Mapping[str, Any] = field(default_factory=dict)
    right_basis: Basis | None = None
    folds: Folds | None = None
    rows: int = 0
    skipped: int = 0
    short_trajectories: int = 0
    seen: Mapping[str, Any] | None = None
    landmark_rows: LandmarkRows = LandmarkRows.KEPT
    penalty: float | None = None
    finalist_gap: Array | None = None
    order: Array | None = None
    of_rows: bool = False
    sample: Sample | None = None
    autocovariance: Autocovariance | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of bases, operator, preparation of columns and dtype, equal if moments can be added."""
        return digest_of(self._digests)

    @property
    def _digests(self) -> dict[str, str]:
        measured = (self.operator.forms, self.operator.functionals)
        return {
            "bases (kernel, landmarks)": digest_of([encode(self.basis), encode(self.right_basis)]),
            "preparations of the columns": digest_of(self.preparation),
            "dtypes": self.dtype,
            "forms": digest_of(repr((self.operator, *(sorted(m.items()) for m in measured)))),
        }

    @property
    def spanned(self) -> bool:
        """Whether functions span all linear ones on the rows, so that products with columns are not stored."""
        return SUMS in self.arrays and POINTS not in self.arrays

    @property
    def pairs(self) -> Pairs | None:
        """Conversion of pairwise sums of rows with missing values to means; None without missing values."""
        if PRESENT not in self.arrays:
            return None
        d, columns = self.basis.dimension, self.preparation["columns"]
        names = [f"column {column} of X" for column in (range(d) if columns is None else columns)]
        names += [f"column {column} of y" for column in range(len(self.arrays[PRESENT]) - d)]
        return Pairs(self.operator.center or self.basis.size > d, tuple(names))

    @cached_property
    def _completed(self) -> Mapping[str, Array]:
        if self.pairs is None:
            return {}
        found = self.pairs.completed({name: values / self.weight for name, values in self.arrays.items()})
        d = self.basis.dimension
        squares = (
            np.diag(self.arrays["gram"])[-d:] / np.diag(self.arrays[PRESENT])[:d]
        )  # over present values, not clipped
        return {**found, SUMS: found["first"][-d:], SQUARES: squares}

    @property
    def clipped(self) -> float:
        """Share of negative eigenvalues, in absolute value, of the pairwise covariance; 0 without missing values."""
        return float(self._completed.get(CLIPPED, 0.0))

    @property
    def outside(self) -> int:
        """Number of rows outside the domain of the basis, which are not used."""
        return 0 if self.basis.domain is None else self.rows - self.count - self.skipped

    @property
    def missing(self) -> float:
        """Share of missing entries in the summed rows."""
        return 1 - float(np.diag(self.arrays[PRESENT]).mean() / self.weight) if PRESENT in self.arrays else 0.0

    def points(self, functions: Any = 1.0) -> Any:
        """Return the means of f(x) x, (k, d), of functions with conjugate coefficients (k, p), by default all.

        If they are not stored, they are computed from x = E x + qᵀ (q x - E q x) for orthonormal landmarks q (r, d).
        """
        if not self.spanned:
            return np.dot(functions, self.mean(POINTS))
        q: Any = self.basis.parts[-1]
        first, gram = self.mean("first"), self.mean("gram")[:, -q.size :]
        shared, beyond = np.outer(first, self.mean(SUMS)), gram - np.outer(first, first[-q.size :])
        return np.dot(functions, shared) + np.dot(functions, beyond) @ q.landmarks

    def mapped(self, each: Callable[[Mapping[str, Array], float], Mapping[str, Array]], **changes: Any) -> Moments:
        """Return the moments with all sums transformed by `each(sums, weight)`, and `changes`."""
        folds = None if self.folds is None else self.folds.mapped(each)
        return replace(self, arrays=each(self.arrays, self.weight), folds=folds, **changes)

    def expanded(self, basis: Basis | None = None) -> Moments:
        """Return the moments with matrices of forms, of this basis or one of lower order."""
        found = self.basis if basis is None else basis
        return self.mapped(lambda sums, _: matrices_of(found, self.operator, sums), basis=found)

    def __add__(self, other: Moments) -> Moments:
        """Add the moments of two data sets.

        Raises ValueError if operators, bases, preparations, dtypes or folds differ, or functions are `of_rows`.
        """
        if not isinstance(other, Moments):
            return NotImplemented
        if self.of_rows or other.of_rows:
            raise ValueError(
                "cannot add moments of fewer rows than columns, whose functions span the rows of one fit. Fit all rows "
                "together, or update the model"
            )
        other = self._aligned(other)
        self._check_addable(other)
        return replace(
            self,
            arrays={k: v + other.arrays[k] for k, v in self.arrays.items()},
            weight=self.weight + other.weight,
            count=self.count + other.count,
            rows=self.rows + other.rows,
            skipped=self.skipped + other.skipped,
            short_trajectories=self.short_trajectories + other.short_trajectories,
            seen=None,
            folds=None if self.folds is None or other.folds is None else self.folds + other.folds,
            finalist_gap=_lower(self.finalist_gap, other.finalist_gap),
            **{
                name: _both(getattr(self, name), getattr(other, name)) for name in ("order", "sample", "autocovariance")
            },
        )

    def _check_addable(self, other: Moments) -> None:
        if self.operator != other.operator:
            estimated = ""
            if estimate_of(self.operator.density) is not None:
                estimated = ". Each fit estimates the density: fit with the operator of the first, moments_.operator"
            raise ValueError(
                f"cannot add moments of different operators, {self.operator} and {other.operator}{estimated}"
            )
        own, their = self._digests, other._digests
        if own != their and (difference := self.basis.difference(other.basis)):
            raise ValueError(
                f"cannot add moments of different FourierBasis: {difference}. Fit both with "
                "FourierBasis(n_frequencies, box=...), or with the basis_ of the first"
            )
        if own != their:
            raise ValueError(
                f"cannot add moments of different {' and '.join(n for n in own if own[n] != their[n])}. Fit the second "
                "with **first.search_results_.best_params (on the command line: fit --functions-of FIRST)"
            )
        shapes, theirs = ({k: v.shape for k, v in m.arrays.items()} for m in (self, other))
        if shapes != theirs:
            raise ValueError(f"cannot add moments of different forms, {shapes} and {theirs}")

    def _aligned(self, other: Moments) -> Moments:
        """Return the other moments with the centers of columns and the origin of targets of these."""
        from daskspectral.moments.regression import with_origin
        from daskspectral.operators.regression import Regression

        own, their = self.operator, other.operator
        if isinstance(own, Regression) and isinstance(their, Regression) and own.origin != their.origin:
            other = with_origin(other, own.origin)
        if digest_of(self.preparation) != digest_of(other.preparation):
            other = about(other, self)
        return other

    def __radd__(self, other: int) -> Moments:
        if other == 0:  # start value of sum()
            return self
        return NotImplemented

    def mean(self, name: str) -> Array:
        """Return the weighted mean of a sum over the rows, (p, q) for a form."""
        found = self._completed.get(name)
        return np.asarray(self.arrays[name] / self.weight) if found is None else found


def matrices_of(basis: Basis, operator: Operator, sums: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return sums with forms (p, p) and functionals (p,) or (p, m) computed from those of a basis."""
    return sums if "gram" in sums else side_by_side(basis.matrices(operator.forms, operator.functionals, sums))


def _both(one: Any, other: Any) -> Any:
    """Return the sum; None unless both are given."""
    return None if one is None or other is None else one + other


def _lower(left: Array | None, right: Array | None) -> Array | None:
    known = [factors for factors in (left, right) if factors is not None]
    size = max((len(factors) for factors in known), default=0)
    return np.min([np.append(f, np.ones(size - len(f))) for f in known], axis=0) if known else None
