"""Pairwise-complete covariances of columns with missing values.

With zeros in place of missing values and the mask M of present ones, the weighted sums over rows are S = XᵀX, the
counts N = MᵀM, and T = XᵀM, of column i in rows with column j. The covariances are C_ij = S_ij / N_ij - m_ij m_ji with
m_ij = T_ij / N_ij (Little and Rubin 2019, section 3.4). The matrix may be indefinite: negative eigenvalues are clipped.

Validation values and error bars are computed from folds as without missing values: products of a fold about the means
of the others, not clipped, each pair divided by its number of rows. For `Cross`, the covariances of both views are
clipped together, so that correlations are at most 1.
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

PRESENT, PAIR_SUMS, CLIPPED = "pairs present", "sums over pairs", "share clipped"
"""Names of N and T, (D, D), and of the share of negative eigenvalues."""

POINTS, SUMS, SQUARES = "points", "point sums", "point squares"
"""Names of the sums of f(x) x, (p, d), of x and of x^2, (d,)."""

ALONE = 1e-12  # of the weight of all folds, for rounding


def zero_filled(rows: Mapping[str, Any], views: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return rows with 0 in place of NaN, and N and T of the columns of all views."""
    present = [~np.isnan(rows[view]) for view in views]
    filled = {view: np.where(here, rows[view], 0.0) for view, here in zip(views, present, strict=True)}
    mask = np.hstack(present).astype(float)
    weighted = mask * rows["weight"][:, None] if "weight" in rows else mask
    return {**rows, **filled}, {PRESENT: mask.T @ weighted, PAIR_SUMS: np.hstack([*filled.values()]).T @ weighted}


def moved(sums: Sums, delta: Array) -> dict[str, Array]:
    """Return the sums of columns shifted by `delta` (D,), with missing values."""
    counts, pair_sums = sums[PRESENT], sums[PAIR_SUMS] + sums[PRESENT] * delta[:, None]
    across = sums[PAIR_SUMS] * delta
    products = _products(sums) + across + across.T + counts * np.outer(delta, delta)
    found, first = {**sums, PAIR_SUMS: pair_sums}, np.diag(pair_sums)
    d = len(sums[SUMS]) if SUMS in sums else 0
    found |= {SUMS: first[:d], SQUARES: np.diag(products)[:d]} if d else {}
    return found | _joined(sums, products, first, float(sums["gram"][0, 0]))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Conversion of pairwise sums to means: of covariances if `centered`, otherwise of second moments."""

    centered: bool
    names: tuple[str, ...]

    def completed(self, sums: Sums, *, clip: bool = True) -> dict[str, Array]:
        """Return means as those of complete rows, negative eigenvalues clipped if `clip`.

        Raises ValueError if two columns have no common row.
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
        """Return the sums over a fold about the means `fitted` to others, scaled to those of complete rows.

        `counts` (D, D) are the shares of all rows in which each pair is present, and `weight` is that of the fold.
        """
        covariance = self._about(seen, fitted) / counts / weight
        found = self._moments(seen, covariance, fitted)
        return {**seen, **{name: weight * values for name, values in found.items()}}

    def _check(self, counts: Array) -> None:
        lacking = np.argwhere(counts <= 0)
        if len(lacking):
            i, j = (self.names[k] for k in min(lacking.tolist(), key=lambda pair: pair[0] != pair[1]))
            what = f"{i} has no values" if i == j else f"{i} and {j} have no common row"
            raise ValueError(f"{what}, so that their covariance is unknown. Exclude one of them by columns=")

    def _about(self, sums: Sums, fitted: Sums) -> Array:
        """Return the sums of (x_i - m_ij) (x_j - m_ji), with the means of `fitted`."""
        products = _products(sums)
        if not self.centered:
            return products
        m, n, t = fitted[PAIR_SUMS] / fitted[PRESENT], sums[PRESENT], sums[PAIR_SUMS]
        return np.asarray(products - m.T * t - m * t.T + n * m * m.T)

    def _moments(self, sums: Sums, covariance: Array, fitted: Sums) -> dict[str, Array]:
        means = np.diag(fitted[PAIR_SUMS]) / np.diag(fitted[PRESENT])
        return _joined(sums, covariance + np.outer(means, means) if self.centered else covariance, means, 1.0)


def _joined(sums: Sums, second: Array, first: Array, constant: float) -> dict[str, Array]:
    """Return the Gram matrices, the form and the first moments of all columns, after a `constant` if any."""
    p = len(sums["gram"])
    if "right_gram" in sums:
        found = {"gram": second[:p, :p], "form": second[:p, p:], "right_gram": second[p:, p:]}
        return found | {"first": first[:p], "right_first": first[p:]}
    if p == len(first):
        return {"gram": second, "first": first}
    whole = np.append(constant, first)
    return {"gram": np.block([[whole[:1, None], first[None]], [first[:, None], second]]), "first": whole}


def any_pair_alone(counts: Array) -> bool:
    """Return whether a pair of columns is present in one fold only, from the counts N (K, D, D)."""
    total = counts.sum(axis=0)
    return bool((total - counts.max(axis=0) <= ALONE * total).any())


def _products(sums: Sums) -> Array:
    if "right_gram" not in sums:
        size = len(sums[PRESENT])
        return sums["gram"][-size:, -size:]
    return np.block([[sums["gram"], sums["form"]], [sums["form"].T, sums["right_gram"]]])
