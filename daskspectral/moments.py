"""Moments: sums over rows of products of basis functions, measured block by block, added in any order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Basis, Block, Evaluation
from daskspectral.basis.base import pair_with_field
from daskspectral.forms import Atom, Form, Functional, all_products
from daskspectral.operators import Operator

Array = NDArray[np.floating[Any]]

__all__ = ["Measure", "Moments", "block_rows"]


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of forms over rows, never means: an additive monoid.

    `arrays` holds one sum a form, (p, q), by name; `weight` is the total sample weight, `count` the rows that
    went in, `skipped` those dropped as invalid. `a + b` is the moments of both data sets together.
    """

    arrays: Mapping[str, Array]
    weight: float
    count: int
    basis: Basis
    operator: Operator
    skipped: int = 0
    dtype: str = "float64"
    preparation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """A digest of basis, operator, preparation of the columns and arithmetic; equal ones can be added."""
        digest = hashlib.sha256()
        for part in (self.basis.state(), self.preparation, self.dtype):
            update_digest(digest, part)
        digest.update(repr((self.operator, sorted(self.operator.forms.items()))).encode())
        return digest.hexdigest()

    def __add__(self, other: Moments) -> Moments:
        """The moments of both. Raises ValueError where they measure different things."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.operator != other.operator:
            raise ValueError(f"moments of different operators do not add: {self.operator}, {other.operator}")
        if self.fingerprint != other.fingerprint:
            raise ValueError(
                "these moments were measured with different bases (kernel, landmarks), column preparations "
                "or dtypes, and do not add; measure both with one basis: give the landmarks of the first as "
                "an array"
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
        )

    def mean(self, name: str) -> Array:
        """The weighted mean of one form over the rows, (p, q)."""
        return np.asarray(self.arrays[name] / self.weight)


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


def block_rows(p: int) -> int:
    """Columns of a block: wide enough for the GEMMs, small enough for the buffers; depends on p alone."""
    return 1024 if p <= 512 else 2048


@dataclass(frozen=True, eq=False)
class Measure:
    """What every task measures: forms between two bases, functionals of the left one.

    Called with the batches of one range of rows (mappings of fields, `x` (c, d), `weight` (c,) where given),
    it returns the sums by name. Immutable and picklable; it travels to the workers once a run.
    """

    left: Basis
    right: Basis
    forms: Mapping[str, Form]
    functionals: Mapping[str, Functional] = field(default_factory=dict)
    operator: Operator | None = None
    dtype: str = "float64"
    rows: int | None = None

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        """The sums over the rows of these batches."""
        arena = Arena()
        dtype = np.dtype(self.dtype)
        products = all_products(tuple(self.forms.values()))
        contraction = self.left.contraction(self.right, products, dtype, arena)
        pairings = tuple(dict.fromkeys(p for f in self.functionals.values() for p in f.pairings))
        vectors: dict[Any, Array] = {}
        left_atoms = [p.left for p in products] + [p.atom for p in pairings]
        right_atoms = [p.right for p in products]
        if self.right is self.left:
            left_atoms = right_atoms = left_atoms + right_atoms
        for block in self._blocks(batches, dtype, arena):
            lefts = _evaluate(self.left, block.part("left"), left_atoms)
            rights = lefts
            if self.right is not self.left:
                rights = _evaluate(self.right, block.part("right"), right_atoms)
            for pairing in pairings:
                part = pair_with_field(lefts[pairing.atom.view], pairing, block, self.left.dimension)
                vectors[pairing] = vectors[pairing] + part if pairing in vectors else part
            contraction.add(lefts, rights, block)
        matrices = contraction.result()
        sums = {name: _combine(f.expression.terms, matrices) for name, f in self.forms.items()}
        if vectors:
            sums |= {name: _combine(f.expression.terms, vectors) for name, f in self.functionals.items()}
        return sums

    def _blocks(self, batches: Iterable[Mapping[str, Array]], dtype: Any, arena: Arena) -> Iterable[Block]:
        rows = self.rows or block_rows(max(self.left.size, self.right.size))
        for batch in batches:
            for start in range(0, len(batch["x"]), rows):
                fields = {k: v[start : start + rows] for k, v in batch.items()}
                if self.operator is not None:
                    fields |= self.operator.derived_fields(fields["x"])
                weight = fields.pop("weight", None)
                scale = None if weight is None else np.sqrt(weight, dtype=float)
                yield Block(fields, dtype, arena, scale)


def _evaluate(basis: Basis, block: Block, atoms: list[Atom]) -> dict[str, Evaluation]:
    views = dict.fromkeys(a.view for a in atoms)
    return {v: basis.at(block.view(v), [a for a in atoms if a.view == v]) for v in views}


def _combine(terms: tuple[tuple[float, Any], ...], sums: Mapping[Any, Array]) -> Array:
    factor, key = terms[0]
    total = factor * sums[key]  # an array of its own: two forms may share a product
    for factor, key in terms[1:]:
        total += factor * sums[key]
    return np.asarray(total)
