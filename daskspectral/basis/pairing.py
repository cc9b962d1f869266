"""Products of features as pairs of scalar features, and features summed against a field of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import Block, Evaluation, scalar_feature
from daskspectral.forms import Atom, Pairing, Product
from daskspectral.kernels.base import unit_index

Array = NDArray[np.floating[Any]]


def scalar_pairs(product: Product, block: Block, d: int) -> Iterator[tuple[Atom, Atom]]:
    """The product as pairs of scalar atoms: a pair of vectors is the sum over their coordinates."""
    if not product.left.vector:
        yield product.left, product.right
        return
    lefts, rights = _coordinates(product.left, block, d), _coordinates(product.right, block, d)
    if len(lefts) != len(rights):
        raise ValueError(
            f"inner() pairs the same number of directions on both sides: {product.left.direction} has {len(lefts)} in "
            f"a row, and {product.right.direction} has {len(rights)}"
        )
    yield from zip(lefts, rights, strict=True)


def _coordinates(atom: Atom, block: Block, d: int) -> list[Atom]:
    """The coordinates of a gradient, or of the derivatives along each of several directions."""
    if atom.direction is None:
        return [replace(atom, kind="partial", alpha=unit_index(axis, d)) for axis in range(d)]
    count, path = block.field(atom.direction).shape[1], atom.direction.path
    directions = [replace(atom.direction, index=(*path, m)) for m in range(count)]
    return [replace(atom, kind="along", direction=direction) for direction in directions]


def pair_with_field(evaluation: Evaluation, pairing: Pairing, block: Block, d: int) -> Array:
    """Σ_k w_k atom(φ_i)(x_k) target_k over one block, (p,) or (p, m); a gradient needs a field (c, d).

    Functions with several components are multiplied with the target's (c, k), component by component: (p, 1).
    """
    target: Array = np.ones(len(block.x), like=block.x) if pairing.target is None else block.field(pairing.target)
    if pairing.weight is not None:
        weight = block.field(pairing.weight)
        target = target * (weight if target.ndim == 1 else weight[:, None])
    if block.scale is not None:
        target = target * (block.scale if target.ndim == 1 else block.scale[:, None])
    target = target.astype(block.dtype, copy=False)
    atom = pairing.atom
    if atom.kind != "gradient":
        feature = scalar_feature({atom.view: evaluation}, atom, block)
        if feature.shape[1] > len(target):
            target = target.T.reshape(-1, 1)
        found: Array = feature @ target
        return found.astype(float, copy=False)
    if target.ndim != 2 or target.shape[1] != d:
        raise ValueError(
            f"the gradient pairs with a field of vectors of shape (n, {d}); the field has rows of shape "
            f"{target.shape[1:]}"
        )
    partials = (replace(atom, kind="partial", alpha=unit_index(a, d)) for a in range(d))
    parts = [evaluation.feature(partial) @ target[:, a] for a, partial in enumerate(partials)]
    total: Array = parts[0].astype(float)
    for part in parts[1:]:
        total += part
    return total
