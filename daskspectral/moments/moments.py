"""Moments: sums over rows of products of basis functions, which add in any order."""

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
    """What a pass does with rows that coincide with landmarks: nothing, sum them apart from folds, or drop them."""

    KEPT = "kept"
    APART = "apart"
    DROPPED = "dropped"


@dataclass(frozen=True, eq=False)
class Moments(Registered):
    """Sums of forms over rows, never means: an additive monoid.

    `arrays` holds the sum of each form of the `operator`, (p, q), by name, between the functions of the `basis` and, if
    it is not None, of the `right_basis`, over `count` rows of total `weight`; `preparation` tells how points are made
    of columns, and products were computed in the `dtype`. `rows` were read, landmarks that were left out included,
    `skipped` of them dropped as invalid; `short_trajectories` were skipped because they are shorter than the lag.
    `folds` has the same sums by group of rows, None where they were not kept apart. `seen` tells by field whether data
    are those that were read (`data.integrity.Manifest.seen`), None of moments that were added up. Rows that coincide
    with landmarks were treated as `landmark_rows` says. `penalty` is c of their penalised
    solution, and `undercut` (k,) by what factor other functions had lower values on rows held out when these were
    chosen. `order` are the sums over runs of neighbouring rows, which depend on the chunks (`moments.counting`), None
    where they were not measured. `a + b` is the moments of both data together; it has folds where both have them.
    Functions that are `of_rows` are combinations of the rows that were measured: such moments do not add. `sample` are
    rows drawn at random, and `autocovariance` products of rows that follow one another, None if the operator needs
    none.

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
    undercut: Array | None = None
    order: Array | None = None
    of_rows: bool = False
    sample: Sample | None = None
    autocovariance: Autocovariance | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of bases, operator, preparation of the columns and dtype; moments with equal ones can be added."""
        return digest_of(self._digests)

    @property
    def _digests(self) -> dict[str, str]:
        """A digest of each part, by its name."""
        measured = (self.operator.forms, self.operator.functionals)
        return {
            "bases (kernel, landmarks)": digest_of([encode(self.basis), encode(self.right_basis)]),
            "preparations of the columns": digest_of(self.preparation),
            "dtypes": self.dtype,
            "forms": digest_of(repr((self.operator, *(sorted(m.items()) for m in measured)))),
        }

    @property
    def spanned(self) -> bool:
        """Whether the functions are all linear ones on the rows, so that products with columns follow from others."""
        return SUMS in self.arrays and POINTS not in self.arrays

    @property
    def pairs(self) -> Pairs | None:
        """How means follow from the sums of rows with single missing values; None where rows are whole."""
        if PRESENT not in self.arrays:
            return None
        d, columns = self.basis.dimension, self.preparation["columns"]
        names = [f"column {column} of X" for column in (range(d) if columns is None else columns)]
        names += [f"column {column} of y" for column in range(len(self.arrays[PRESENT]) - d)]
        return Pairs(self.operator.center or self.basis.size > d, tuple(names))

    @cached_property
    def _completed(self) -> Mapping[str, Array]:
        """The means by pairs of columns; none where rows are whole."""
        if self.pairs is None:
            return {}
        found = self.pairs.completed({name: values / self.weight for name, values in self.arrays.items()})
        d = self.basis.dimension
        squares = np.diag(self.arrays["gram"])[-d:] / np.diag(self.arrays[PRESENT])[:d]  # of what is present, unclipped
        return {**found, SUMS: found["first"][-d:], SQUARES: squares}

    @property
    def clipped(self) -> float:
        """The share of negative eigenvalues, in absolute value, of covariances by pairs of columns; 0 of whole rows."""
        return float(self._completed.get(CLIPPED, 0.0))

    @property
    def outside(self) -> int:
        """The number of rows outside the domain of the basis, which count as absent."""
        return 0 if self.basis.domain is None else self.rows - self.count - self.skipped

    @property
    def missing(self) -> float:
        """The share of the entries that are missing in the rows that were summed."""
        return 1 - float(np.diag(self.arrays[PRESENT]).mean() / self.weight) if PRESENT in self.arrays else 0.0

    def points(self, functions: Any = 1.0) -> Any:
        """The means of f(x) x, (k, d), of functions with conjugate coefficients (k, p); of all (p, d) by default.

        Where they were not summed, they follow from x = E x + qᵀ (q x - E q x) for orthonormal landmarks q (r, d).
        """
        if not self.spanned:
            return np.dot(functions, self.mean(POINTS))
        q: Any = self.basis.parts[-1]
        first, gram = self.mean("first"), self.mean("gram")[:, -q.size :]
        shared, beside = np.outer(first, self.mean(SUMS)), gram - np.outer(first, first[-q.size :])
        return np.dot(functions, shared) + np.dot(functions, beside) @ q.landmarks

    def mapped(self, each: Callable[[Mapping[str, Array], float], Mapping[str, Array]], **changes: Any) -> Moments:
        """The moments of what `each` makes of sums, and of their weight, by fold too, with other `changes`."""
        folds = None if self.folds is None else self.folds.mapped(each)
        return replace(self, arrays=each(self.arrays, self.weight), folds=folds, **changes)

    def expanded(self, basis: Basis | None = None) -> Moments:
        """Return the moments with matrices of the forms, by fold too, of this basis or a `basis` of lower order."""
        found = self.basis if basis is None else basis
        return self.mapped(lambda sums, _: matrices_of(found, self.operator, sums), basis=found)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both.

        Raises ValueError if they measure different things, by other folds, or in the span of their rows.
        """
        if not isinstance(other, Moments):
            return NotImplemented
        if self.of_rows or other.of_rows:
            raise ValueError(
                "moments of linear functions of fewer rows than columns, which span the rows of one fit, do not add: "
                "fit all rows together, or update the model"
            )
        other = self._alike(other)
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
            undercut=_lower(self.undercut, other.undercut),
            **{
                name: _both(getattr(self, name), getattr(other, name)) for name in ("order", "sample", "autocovariance")
            },
        )

    def _check_addable(self, other: Moments) -> None:
        """Raise ValueError if the sums of the other are not of the same functions and forms."""
        if self.operator != other.operator:
            estimated = ""
            if estimate_of(self.operator.density) is not None:
                estimated = (
                    "; a density is estimated anew by each fit: take the operator of the first, moments_.operator"
                )
            raise ValueError(f"moments of different operators do not add: {self.operator}, {other.operator}{estimated}")
        own, their = self._digests, other._digests
        if own != their and (difference := self.basis.difference(other.basis)):
            raise ValueError(
                f"these moments were measured on different Fourier lattices, {difference}, and do not add; "
                "measure both with one, FourierBasis(n_frequencies, box=...) or the basis_ of the first"
            )
        if own != their:
            raise ValueError(
                f"these moments were measured with different {' and '.join(n for n in own if own[n] != their[n])}, and "
                "do not add; fit the second with **first.search_results_.best_params (shell: fit --functions-of FIRST)"
            )
        shapes, theirs = ({k: v.shape for k, v in m.arrays.items()} for m in (self, other))
        if shapes != theirs:
            raise ValueError(f"moments of different forms do not add: {shapes} and {theirs}")

    def _alike(self, other: Moments) -> Moments:
        """Return the other moments with the centers of columns and the origin of the targets of these."""
        from daskspectral.moments.regression import with_origin
        from daskspectral.operators.regression import Regression

        own, their = self.operator, other.operator
        if isinstance(own, Regression) and isinstance(their, Regression) and own.origin != their.origin:
            other = with_origin(other, own.origin)
        if digest_of(self.preparation) != digest_of(other.preparation):
            other = about(other, self)
        return other

    def __radd__(self, other: int) -> Moments:
        if other == 0:  # the start of sum()
            return self
        return NotImplemented

    def mean(self, name: str) -> Array:
        """The weighted mean of one form over the rows, (p, q)."""
        found = self._completed.get(name)
        return np.asarray(self.arrays[name] / self.weight) if found is None else found


def matrices_of(basis: Basis, operator: Operator, sums: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the sums of forms (p, p) and functionals (p,) or (p, m) from what a basis sums; other sums unchanged."""
    return sums if "gram" in sums else side_by_side(basis.matrices(operator.forms, operator.functionals, sums))


def _both(one: Any, other: Any) -> Any:
    """The sum of what both have, None if one has none."""
    return None if one is None or other is None else one + other


def _lower(left: Array | None, right: Array | None) -> Array | None:
    """The lower factors of both; values that one of them does not tell have 1."""
    known = [factors for factors in (left, right) if factors is not None]
    size = max((len(factors) for factors in known), default=0)
    return np.min([np.append(f, np.ones(size - len(f))) for f in known], axis=0) if known else None
