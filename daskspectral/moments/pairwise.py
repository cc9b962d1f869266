"""Covariances of columns with single missing values, each from the rows in which both of its columns are present.

With zeros at what is missing and the mask M of what is not, weighted sums over rows give S = XᵀX, the counts N = MᵀM
and T = XᵀM, of column i where j is present. Pairwise-complete covariances are C_ij = S_ij / N_ij - m_ij m_ji with
m_ij = T_ij / N_ij (Little and Rubin 2019, section 3.4). They need not be positive: negative eigenvalues are clipped.

Held-out values and error bars are those of the folds as ever: of a fold the products about the means of the others,
unclipped, each pair divided by its own number of rows. Of `Cross` the covariances of both views are clipped together,
so that correlations are at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.solve.whitening import eigh

Array = NDArray[np.floating[Any]]
Sums = Mapping[str, Array]

PRESENT, BESIDE, CLIPPED = "pairs present", "sums beside", "share clipped"
"""The names of N and T, (D, D), and of the share of the negative eigenvalues."""

POINTS, SUMS, SQUARES = "points", "point sums", "point squares"
"""The names of the sums of f(x) x, (p, d), of x and of x^2, (d,)."""

ALONE = 1e-12  # of the weight of all folds: rounding


def zero_filled(rows: Mapping[str, Any], views: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Rows with 0 in the place of NaN, and N and T of the columns of all views."""
    present = [~np.isnan(rows[view]) for view in views]
    filled = {view: np.where(here, rows[view], 0.0) for view, here in zip(views, present, strict=True)}
    mask = np.hstack(present).astype(float)
    weighted = mask * rows["weight"][:, None] if "weight" in rows else mask
    return {**rows, **filled}, {PRESENT: mask.T @ weighted, BESIDE: np.hstack([*filled.values()]).T @ weighted}


def moved(sums: Sums, delta: Array) -> dict[str, Array]:
    """The sums of columns with gaps that lie `delta` (D,) higher, wherever they are present."""
    counts, beside = sums[PRESENT], sums[BESIDE] + sums[PRESENT] * delta[:, None]
    across = sums[BESIDE] * delta
    products = _products(sums) + across + across.T + counts * np.outer(delta, delta)
    found, first = {**sums, BESIDE: beside}, np.diag(beside)
    d = len(sums[SUMS]) if SUMS in sums else 0
    found |= {SUMS: first[:d], SQUARES: np.diag(products)[:d]} if d else {}
    return found | _joined(sums, products, first, float(sums["gram"][0, 0]))


@dataclass(frozen=True, eq=False)
class Pairs:
    """How means over all rows follow from sums with gaps: covariances where these are `centred`, else second moments.

    `names` (D,) are those of the columns in messages.
    """

    centred: bool
    names: tuple[str, ...]

    def completed(self, sums: Sums, *, clip: bool = True) -> dict[str, Array]:
        """The means of functions that are columns, as of rows without gaps, without negative eigenvalues (`clip`).

        Raises ValueError for two columns that have no row in common.
        """
        self._check(sums[PRESENT])
        covariance = self._about(sums, sums) / sums[PRESENT]
        if not clip:
            return {**sums, **self._moments(sums, covariance, sums)}
        values, vectors = eigh(covariance)
        negative = values < 0
        covariance -= (vectors[:, negative] * values[negative]) @ vectors[:, negative].T
        total = np.abs(values).sum()
        share = np.array(-values[negative].sum() / total if total else 0.0)
        return {**sums, **self._moments(sums, covariance, sums), CLIPPED: share}

    def of_fold(self, seen: Sums, fitted: Sums, counts: Array, weight: float) -> dict[str, Array]:
        """Sums over a fold of this weight about the means `fitted` to others, in which each pair counts as it would
        without gaps: `counts` (D, D) are the shares of all rows in which it is present."""
        covariance = self._about(seen, fitted) / counts / weight
        found = self._moments(seen, covariance, fitted)
        return {**seen, **{name: weight * values for name, values in found.items()}}

    def _check(self, counts: Array) -> None:
        lacking = np.argwhere(counts <= 0)
        if len(lacking):
            i, j = (self.names[k] for k in min(lacking.tolist(), key=lambda pair: pair[0] != pair[1]))
            what = f"{i} has no value" if i == j else f"{i} and {j} have no row in common"
            raise ValueError(f"{what}, and their covariance is not known: leave one of such columns out by columns=")

    def _about(self, sums: Sums, fitted: Sums) -> Array:
        """The sums of (x_i - m_ij) (x_j - m_ji), with the means of the `fitted`."""
        products = _products(sums)
        if not self.centred:
            return products
        m, n, t = fitted[BESIDE] / fitted[PRESENT], sums[PRESENT], sums[BESIDE]
        return np.asarray(products - m.T * t - m * t.T + n * m * m.T)

    def _moments(self, sums: Sums, covariance: Array, fitted: Sums) -> dict[str, Array]:
        """The moments of the functions of sums from a covariance about the means of the `fitted`."""
        means = np.diag(fitted[BESIDE]) / np.diag(fitted[PRESENT])
        return _joined(sums, covariance + np.outer(means, means) if self.centred else covariance, means, 1.0)


def _joined(sums: Sums, second: Array, first: Array, constant: float) -> dict[str, Array]:
    """The Gram matrices, the form and the first moments from those of all columns.

    They are behind those of a `constant` function if there is one.
    """
    p = len(sums["gram"])
    if "right_gram" in sums:
        found = {"gram": second[:p, :p], "form": second[:p, p:], "right_gram": second[p:, p:]}
        return found | {"first": first[:p], "right_first": first[p:]}
    if p == len(first):
        return {"gram": second, "first": first}
    whole = np.append(constant, first)
    return {"gram": np.block([[whole[:1, None], first[None]], [first[:, None], second]]), "first": whole}


def any_pair_alone(counts: Array) -> bool:
    """Whether a pair of columns is present in one fold alone, of the N (K, D, D) of all folds."""
    total = counts.sum(axis=0)
    return bool((total - counts.max(axis=0) <= ALONE * total).any())


def _products(sums: Sums) -> Array:
    if "right_gram" not in sums:
        size = len(sums[PRESENT])
        return sums["gram"][-size:, -size:]
    return np.block([[sums["gram"], sums["form"]], [sums["form"].T, sums["right_gram"]]])
