"""Dense matrices of forms, and vectors of functionals, from modes of the data: no row is needed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.lattice import FourierLattice
from daskspectral.modes.terms import ModeTerm, ModeWeight

Array = NDArray[np.floating[Any]]
Modes = Mapping[ModeWeight, NDArray[np.complexfloating[Any, Any]]]


def truncated(modes: Any, orders: Sequence[int]) -> Any:
    """The modes |j_a| <= 2 m_a of an array (..., 2 M_1 + 1, ..., 2 M_d + 1), for the frequencies m (d,)."""
    middle = [size // 2 for size in modes.shape[modes.ndim - len(orders) :]]
    cut = tuple(slice(c - 2 * m, c + 2 * m + 1) for c, m in zip(middle, orders, strict=True))
    return modes[(..., *cut)]


def form_matrix(lattice: FourierLattice, terms: Collection[ModeTerm], modes: Modes) -> Array:
    """sum of the terms' factor * weight * d_left phi_i d_right phi_j over the rows, (p, p), by their weights' modes.

    With c = C / weight of mean modes these are means. Products of cosines and sines are cosines and sines of sums and
    differences of frequencies: 2 cos k cos l = Re c(k - l) + Re c(k + l), and the other three alike.
    """
    half = lattice.half
    h, p = len(half), lattice.size
    cos, sin = slice(1, h + 1), slice(h + 1, p)
    result = np.zeros((p, p))
    groups: dict[ModeWeight, dict[tuple[int, int], list[ModeTerm]]] = {}
    for term in terms:
        parity = sum(term.left) % 2, sum(term.right) % 2
        groups.setdefault(term.weight, {}).setdefault(parity, []).append(term)
    w = lattice.frequencies[cos]
    for weight, by_parity in groups.items():
        c = truncated(modes[weight], lattice.orders)
        flat, place = c.ravel(), _flat(half, c.shape)
        minus, plus = (flat[place[:, None] + sign * place + flat.size // 2] for sign in (-1, 1))
        products = {  # by (left, right): 0 for a cosine, 1 for a sine
            (0, 0): minus.real + plus.real,
            (1, 1): minus.real - plus.real,
            (0, 1): minus.imag - plus.imag,
            (1, 0): -minus.imag - plus.imag,
        }
        for (odd, other), members in by_parity.items():
            symbol = sum(t.factor * np.outer(_symbol(w, t.left), _symbol(w, t.right)) for t in members)
            for i, rows in enumerate((cos, sin)):
                for j, columns in enumerate((cos, sin)):
                    sign = (-1) ** (odd * (i == 0) + other * (j == 0))  # cos' = -sin
                    result[rows, columns] += sign * symbol * products[i ^ odd, j ^ other]
    result[:, 0] = functional_vector(lattice, [t for t in terms if not any(t.right)], modes)
    result[0] = functional_vector(lattice, [replace(t, left=t.right) for t in terms if not any(t.left)], modes)
    return result


def functional_vector(lattice: FourierLattice, terms: Iterable[ModeTerm], modes: Modes) -> Array:
    """sum of the terms' factor * weight * d_left phi_i over the rows, (p,), or (p, m) for weights of m columns."""
    half, w = lattice.half, lattice.frequencies[1 : len(lattice.half) + 1]
    total: Any = 0.0
    for term in terms:
        c = truncated(modes[term.weight], lattice.orders)
        shape = c.shape[c.ndim - lattice.dimension :]
        flat = c.reshape(*c.shape[: c.ndim - lattice.dimension], -1)
        middle = flat.shape[-1] // 2
        found = np.sqrt(2) * flat[..., _flat(half, shape) + middle]
        parts, odd, symbol = (found.real, -found.imag), sum(term.left) % 2, _symbol(w, term.left)
        first = flat[..., middle : middle + 1].real * (not any(term.left))
        both = [(-1) ** (odd * (i == 0)) * symbol * parts[i ^ odd] for i in range(2)]
        total = total + term.factor * np.moveaxis(np.concatenate([first, *both], axis=-1), -1, 0)
    return np.asarray(total)


def _flat(half: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Places of frequencies relative to 0 in the flattened array of modes."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.asarray(half @ np.array(strides))


def _symbol(w: Array, alpha: tuple[int, ...]) -> Array:
    """What the derivative alpha multiplies a cosine or a sine with, before it is advanced by the odd quarter turn."""
    return np.asarray((-1) ** (sum(alpha) // 2) * np.prod(w ** np.array(alpha), axis=1))
