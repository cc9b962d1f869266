"""Evaluation of a basis on one block of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import filled
from daskspectral.errors import SmoothnessError, renumbered
from daskspectral.forms import Atom, AtomProduct, Field, Pairing
from daskspectral.kernels.base import check_index, unit_index
from daskspectral.workspace import Workspace

if TYPE_CHECKING:
    from daskspectral.basis.base import Basis

Array = NDArray[np.floating[Any]]
VALUE = Atom("value")

NUMBER = "row number"
"Field with the row numbers in the data; forms cannot read a field of this name."


@dataclass(frozen=True)
class Block:
    """Block of c rows with its fields and buffers.

    Parameters
    ----------
    fields : mapping of str to array
        Values by field name, with c rows each.
    dtype : dtype
        Type of features.
    workspace : Workspace
        Buffers and device.
    scale : array of shape (c,), optional
        Square roots of the sample weights.
    points : str
        Name of the field with the points of this view.
    owner : str
        Prefix of buffer names, which separates simultaneous evaluations.
    shared : dict, optional
        Results shared by evaluations of the same functions on the block.
    host : Block, optional
        The same rows on the host, for functions that an accelerator cannot evaluate.
    shifts : mapping of str to int
        Rows by which the points of a view follow those of x.

    See Also
    --------
    Evaluation : Features of a basis on a block.

    Examples
    --------
    >>> block = Block({"x": np.zeros((5, 2)), "force": np.ones((5, 3))}, np.dtype(float), Workspace())
    >>> block.x.shape, block.field(Field("force", 0)).shape
    ((5, 2), (5,))
    """

    fields: Mapping[str, Array]
    dtype: Any
    workspace: Workspace
    scale: Array | None = None
    points: str = "x"
    owner: str = ""
    shared: dict[int, Array] | None = None
    host: Block | None = None
    shifts: Mapping[str, int] = field(default_factory=dict)

    def field(self, field: Field) -> Array:
        """Return the values of a named field of the block's rows, (c,), (c, d) or (c, d, d)."""
        values: Array = field.of(self.fields)
        return values

    def weighted(self, values: Any) -> Array:
        """Return values (..., c) in the block's dtype, times the square-root weights."""
        values = values.astype(self.dtype, copy=False)
        found: Array = values if self.scale is None else values * self.scale.astype(self.dtype, copy=False)
        return found

    def view(self, name: str) -> Block:
        """Return this block with the points of another view."""
        return replace(self, points=name, host=None if self.host is None else self.host.view(name))

    def part(self, name: str) -> Block:
        """Return this block with separate buffers, for one of several bases."""
        host = None if self.host is None else self.host.part(name)
        return replace(self, owner=f"{self.owner}{name} ", host=host)

    def buffer(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return a buffer for the evaluation of this basis at this view."""
        return self.workspace.get(f"{self.owner}{self.points} {name}", shape, self.dtype)

    @property
    def x(self) -> Array:
        """Points (c, d)."""
        return self.fields[self.points]

    def on(self, workspace: Workspace) -> Block:
        """Return the block on the workspace's device, with its buffers."""
        device = workspace.device
        if not device.accelerated:
            return self
        fields = {name: device.put(values) for name, values in self.fields.items()}
        scale, host = None if self.scale is None else device.put(self.scale), replace(self, workspace=workspace.host)
        return replace(self, fields=fields, workspace=workspace, scale=scale, host=host)


class Evaluation:
    """Features of a basis on one block, multiplied by square-root sample weights.

    A subclass implements `feature`; or `value`, and `along` and `partial` for derivatives.

    See Also
    --------
    Block : The rows.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> block = Block({"x": np.array([[2.0], [3.0]])}, np.dtype(float), Workspace())
    >>> MonomialBasis(1, 2).at(block, []).feature(Atom("partial", alpha=(1,)))
    array([[0., 0.],
           [1., 1.],
           [4., 6.]])
    """

    basis: Any
    block: Block

    def feature(self, atom: Atom) -> Array:
        """Return one scalar atom of all functions at all points, (p, c); valid until the next block."""
        if atom.kind == "partial":
            check_index(atom.alpha, self.basis.dimension)
        if atom.order > self.basis.order:
            raise SmoothnessError(
                f"a form requires derivatives of order {atom.order} of {self.basis.description}. "
                f"{self.basis.remedy(atom.order)}"
            )
        if atom.order == 0:
            return self.value
        if atom.kind == "second":
            return self.second(atom, self.block)
        return self.partial(atom.alpha) if atom.direction is None else self.along(self.block.field(atom.direction))

    @property
    def value(self) -> Array:
        raise NotImplementedError

    def mapped(self, mapping: Callable[[Array], Array]) -> Evaluation:
        """Return the evaluation with each feature (p, c) mapped."""
        return MappedEvaluation(self, mapping)

    def along(self, direction: Array) -> Array:
        """Return derivatives (p, c) along directions (c, d); by default from partial ones."""
        d = direction.shape[1]
        parts = [self.feature(Atom("partial", alpha=unit_index(axis, d))) for axis in range(d)]
        return weighted_sum(parts, direction.T, parts[0].dtype)

    def partial(self, alpha: tuple[int, ...]) -> Array:
        """Return partial derivatives (p, c) of order 1 or more; by default first ones by `along`."""
        return self.along(np.broadcast_to(np.asarray(alpha, dtype=float, like=self.block.x), self.block.x.shape))

    def second(self, atom: Atom, block: Block) -> Array:
        """Return sum_ab matrix_ab d_a d_b of all functions, (p, c); without a matrix, the Laplacian."""
        d = block.fields[atom.view].shape[1]
        diagonal = [(a, a) for a in range(d)]
        mixed = [] if atom.direction is None else [(a, b) for a in range(d) for b in range(a)]
        weights: list[Any] = [1.0 for _ in diagonal]
        if atom.direction is not None:
            matrix = block.field(atom.direction).astype(block.dtype, copy=False)
            weights = [matrix[:, a, a] for a, _ in diagonal] + [matrix[:, a, b] + matrix[:, b, a] for a, b in mixed]
        alphas = [tuple((k == a) + (k == b) for k in range(d)) for a, b in [*diagonal, *mixed]]
        return weighted_sum((self.feature(Atom("partial", atom.view, alpha)) for alpha in alphas), weights, block.dtype)


def cached(method: Callable[..., Array]) -> Callable[..., Array]:
    """Decorate a method so that each atom's feature is computed once."""

    @wraps(method)
    def found(self: Evaluation, atom: Atom, *block: Block) -> Array:
        features: dict[Atom, Array] = self.__dict__.setdefault("_features", {})
        key = atom if atom.view == "x" else replace(atom, view="x")
        if key not in features:
            features[key] = method(self, atom, *block)
        return features[key]

    return found


class MappedEvaluation(Evaluation):
    """Evaluation with mapped features: moved to a device, or combined."""

    def __init__(self, inner: Evaluation, mapping: Callable[[Array], Array]):
        self.inner, self.mapping = inner, mapping

    @cached
    def feature(self, atom: Atom) -> Array:
        return self.mapping(self.inner.feature(atom))

    @cached
    def second(self, atom: Atom, block: Block) -> Array:
        return self.mapping(self.inner.second(atom, block if block.host is None else block.host))


@dataclass(frozen=True)
class ConcatenatedEvaluation(Evaluation):
    """Evaluations of the parts of a concatenated basis."""

    parts: tuple[Evaluation, ...]

    def feature(self, atom: Atom) -> Array:
        return np.concatenate([p.feature(atom) for p in self.parts])

    def mapped(self, mapping: Callable[[Array], Array]) -> Evaluation:
        return ConcatenatedEvaluation(tuple(part.mapped(mapping) for part in self.parts))


def evaluated(basis: Basis, block: Block, atoms: Sequence[Atom]) -> Evaluation:
    """Return the evaluation of a basis on a block, on its device if possible."""
    if block.host is None or basis.portable:
        return basis.at(block, atoms)
    return MappedEvaluation(basis.at(block.host, atoms), block.workspace.device.put)


def numbered(fields: Mapping[str, Array]) -> AbstractContextManager[None]:
    """Replace row numbers of a PointError by those in the data, if known."""
    numbers = fields.get(NUMBER)
    return nullcontext() if numbers is None else renumbered(numbers.__getitem__)


def scalar_feature(evaluations: Mapping[str, Evaluation], atom: Atom, block: Block) -> Array:
    """Return a scalar atom of all functions, (p, c)."""
    if atom.kind == "second":
        return evaluations[atom.view].second(atom, block)
    if atom.kind != "sum":
        return evaluations[atom.view].feature(atom)
    weights = [t.factor if t.weight is None else t.factor * block.field(t.weight) for t in atom.terms]
    return weighted_sum((scalar_feature(evaluations, t.atom, block) for t in atom.terms), weights, block.dtype)


def weighted_sum(features: Iterable[Array], weights: Iterable[Any], dtype: Any) -> Array:
    """Return sum_t weight_t feature_t, (p, c), for weights that are numbers or (c,).

    The result is a new array, except for one feature with weight 1.
    """
    total: Any = None
    is_new = False
    for feature, weight in zip(features, weights, strict=True):
        plain = np.ndim(weight) == 0 and (weight == 1 or (weight == -1 and total is not None))
        scaled = feature
        if not plain:
            factor = np.dtype(dtype).type(weight) if np.ndim(weight) == 0 else weight.astype(dtype, copy=False)
            scaled = feature * factor
        if total is None:
            total, is_new = scaled, not plain
        else:
            combined = np.subtract if plain and weight == -1 else np.add
            total, is_new = combined(total, scaled, out=total if is_new else None), True
    found: Array = total
    return found


def scalar_pairs(product: AtomProduct, block: Block, d: int) -> Iterator[tuple[Atom, Atom]]:
    """Yield the product as pairs of scalar atoms, one for each coordinate of vectors."""
    if not product.left.vector:
        yield product.left, product.right
        return
    lefts, rights = _coordinates(product.left, block, d), _coordinates(product.right, block, d)
    if len(lefts) != len(rights):
        raise ValueError(
            f"inner() requires as many directions of both functions, got {len(lefts)} of "
            f"{product.left.direction} and {len(rights)} of {product.right.direction}."
        )
    yield from zip(lefts, rights, strict=True)


def _coordinates(atom: Atom, block: Block, d: int) -> list[Atom]:
    """Return the scalar atoms of a gradient, or of derivatives along several directions."""
    if atom.direction is None:
        return [replace(atom, kind="partial", alpha=unit_index(axis, d)) for axis in range(d)]
    count, path = block.field(atom.direction).shape[1], atom.direction.path
    directions = [replace(atom.direction, index=(*path, m)) for m in range(count)]
    return [replace(atom, kind="along", direction=direction) for direction in directions]


def pair_with_field(evaluation: Evaluation, pairing: Pairing, block: Block) -> Array:
    """Return Σ_k w_k atom(φ_i)(x_k) target_k over one block, (p,) or (p, m).

    Functions with components are multiplied with those of the target (c, k): (p, 1).
    """
    if isinstance(evaluation, ConcatenatedEvaluation):  # by parts, without a copy of all features
        return np.concatenate([pair_with_field(part, pairing, block) for part in evaluation.parts])
    ones: Array = filled(len(block.x), 1, block.x)
    target = ones if pairing.target is None else block.field(pairing.target)
    feature = scalar_feature({pairing.atom.view: evaluation}, pairing.atom, block)
    if feature.shape[1] > len(target):
        found: Array = feature @ _weighted(target, pairing, block).T.reshape(-1, 1)
    elif block.dtype == np.float64 or pairing.target is None or not len(target):
        found = feature @ _weighted(target, pairing, block)
    else:  # float32 cannot resolve small variations of a large field
        level = target[0].astype(float)
        sums = (feature @ _weighted(ones, pairing, block)).astype(float)
        found = (feature @ _weighted(target - level, pairing, block)).astype(float)
        found += sums * level if target.ndim == 1 else sums[:, None] * level
    return found.astype(float, copy=False)


def _weighted(target: Array, pairing: Pairing, block: Block) -> Array:
    if pairing.weight is not None:
        target = (target.T * block.field(pairing.weight)).T
    if block.scale is not None:
        target = (target.T * block.scale).T
    return target.astype(block.dtype, copy=False)
