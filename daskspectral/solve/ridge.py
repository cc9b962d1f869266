"""Ridge regression from moments, (A + alpha K) a = b, with alpha by cross-validation over folds, or generalised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from daskspectral.solve.folded import FoldSums, best_penalty, fold_errors
from daskspectral.solve.whitening import resolve_cut, symmetric_part, whiten

Array = NDArray[np.floating[Any]]

CUTS = {"float64": 1e-15, "float32": 1e-6}  # ten times the rounding of the sums, relative to the largest direction
GRID = 5  # penalties a decade
LEAST_FREE = 1e-3  # share of the observations that a fit leaves free; below it the score is 0 / 0


ROBUST = 2.0  # the score of an interpolating fit is 1 + ROBUST times its cross-validation


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations of one kind, as means over the rows: values, or gradients times their weight.

    `form` (p, p), the `target` b (p, m) and `squares` (m,), the squared norms of what is fitted; `count` observations.
    `folds` are the same sums by fold.
    """

    form: Array
    target: Array
    squares: Array
    count: float
    folds: FoldSums | None = None


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients (p, m) at the penalty `alpha`, and how it was chosen.

    `score` is the robust generalised cross-validation at `alpha`; `alphas` and `scores` (g,) are its curve, ascending.
    `errors` (g, kinds) are the errors at the same penalties on folds that were left out, None without folds. `rank`
    counts the directions that the moments resolve; `freedom` is the trace of the hat matrix.
    """

    coefficients: Array
    alpha: float
    score: float
    rank: int
    freedom: float
    alphas: Array
    scores: Array
    errors: Array | None = None

    @property
    def error(self) -> float | None:
        """The error on folds that were left out, at alpha, summed over the kinds; None without folds."""
        if self.errors is None:
            return None
        total = self.errors.sum(axis=1)
        return float(total[0] if len(total) == 1 else np.interp(np.log(self.alpha), np.log(self.alphas), total))


def solve_ridge(
    observed: Sequence[Observed],
    penalty: Array,
    *,
    alpha: float | str | None = None,
    shares: Array | None = None,
    cut: float = CUTS["float64"],
) -> RidgeFit:
    """Minimise a.A a - 2 a.b + squares + alpha a.K a for each column b (p, m), all summed over the kinds `observed`.

    K = `penalty` (p, p). Without `alpha`, and with the `shares` (K,) of the folds in the weight, one alpha for all
    columns has the least error on folds that were left out (`daskspectral.solve.folded`). Without folds, and for
    alpha="gcv", it has the least score, the sum over the kinds of

        score(alpha) = residual / (1 - tr(A_kind R) / count)² (1 + 2 (tr(A_kind R A R) / count)²)

    with R = (A + alpha K)⁻¹. The first factor is generalised cross-validation, with the mean leverage of each kind
    taken separately: observations of one kind do not make up for observations of another, whose weight may be next to
    nothing. The second factor, after the robust cross-validation of Lukas (2006), grows with the variance of the fit
    relative to the noise. It is near 1 for smooth fits, and at most 3. Plain scores of an interpolating fit and of a
    smooth one may differ by chance alone where leverages differ; this factor then decides for the smooth one. Where
    there is no noise, the residual decides.

    A and K may be singular to rounding, both in the same directions. Directions below `cut` times the largest of
    A + alpha K are left out, and directions in which A is no more than rounding. One decomposition, with folds one more
    for each, gives the curve; the coefficients come from another one at alpha, the same bits for an alpha that is given
    as for the same alpha when it is found. Raises ValueError where every function vanishes.
    """
    given = None if isinstance(alpha, str) else alpha
    curve = ridge_curve(observed, penalty, alpha=given, shares=shares, cut=cut)
    alphas = curve.alphas
    if given is not None:
        found = given
    elif alpha is None and curve.errors is not None:
        found = best_penalty(alphas, curve.errors.sum(axis=1))
    else:
        found = float(alphas[::-1][np.argmin(curve.scores[::-1])])  # the largest of several that are equally good
        found = curve.pencil.moved(found, observed, penalty, cut).best_near(found)
    return curve.pencil.moved(found, observed, penalty, cut).fit(found, curve)


@dataclass(frozen=True, eq=False)
class Curve:
    """Penalties (g,) with their generalised cross-validation `scores` (g,), and `errors` (g, kinds) on folds."""

    alphas: Array
    scores: Array
    errors: Array | None
    pencil: _Pencil


def ridge_curve(
    observed: Sequence[Observed],
    penalty: Array,
    *,
    alpha: float | None = None,
    shares: Array | None = None,
    cut: float = CUTS["float64"],
) -> Curve:
    """How all penalties do, or the one that is given; arguments as of `solve_ridge`."""
    form = np.sum([kind.form for kind in observed], axis=0)
    if not np.trace(form) > 0:
        raise ValueError("every basis function is zero on every point; widen the kernel's scale")
    if alpha is None:
        # A is like K^2: directions of relative size sqrt(cut), where A reaches rounding, weigh the same in A and
        # alpha K
        anchor = float(np.sqrt(cut) * np.trace(form) / np.trace(penalty))
        pencil = _Pencil.at(anchor, observed, form, penalty, cut)
        low, high = np.log10(1e-3 * anchor), np.log10(100 * pencil.largest)
        alphas = 10 ** (low + np.arange(np.ceil(GRID * (high - low)) + 1) / GRID)
    else:
        pencil = _Pencil.at(alpha, observed, form, penalty, cut)
        alphas = np.array([alpha])
    scores = np.array([pencil.score(a) for a in alphas])
    folds = [kind.folds for kind in observed if kind.folds is not None]
    whole = [(kind.form, kind.target) for kind in observed]
    errors = None if shares is None else fold_errors(folds, shares, whole, penalty, alphas, cut)
    return Curve(alphas, scores, errors, pencil)


def resolve_ridge_cut(rtol: float | None, dtype: str) -> float:
    """The relative cut of `solve_ridge`: `rtol`, or 1e-15 in float64, 1e-6 in float32. ValueError for 0 or less."""
    if rtol is None:
        return CUTS[dtype]
    if rtol == 0:
        raise ValueError(
            "rtol must be positive: it separates directions of the data from directions of rounding; it is "
            f"{rtol!r}. Leave it None for {CUTS[dtype]:g}"
        )
    return resolve_cut(rtol, dtype)


@dataclass(frozen=True, eq=False)
class _Kind:
    """The observations of one kind in the directions of a pencil: Z.T A_kind Z (r, r), or its diagonal alone."""

    form: Array
    target: Array  # Z.T b (r, m)
    squares: float
    count: float
    floor: float

    @cached_property
    def seen(self) -> Array:
        """The diagonal (r,)."""
        return self.form if self.form.ndim == 1 else np.diag(self.form)

    def residual(self, coefficients: Array) -> float:
        """The squared residual, summed over the targets, of coefficients (r, m) of the directions."""
        image = self.form[:, None] * coefficients if self.form.ndim == 1 else self.form @ coefficients
        return max(self.squares - float(np.sum(coefficients * (2 * self.target - image))), self.floor)


@dataclass(frozen=True, eq=False)
class _Pencil:
    """A + alpha K on the directions that matter near one alpha: Z.T A Z = diag(seen), Z.T K Z = diag(paid)."""

    directions: Array  # Z (p, r)
    seen: Array
    paid: Array
    target: Array  # Z.T b (r, m)
    kinds: tuple[_Kind, ...]
    anchor: float

    @classmethod
    def at(cls, anchor: float, observed: Sequence[Observed], form: Array, penalty: Array, cut: float) -> _Pencil:
        """Diagonalise both on the directions above the cut of A + anchor K, which becomes the identity there."""
        total = form + anchor * penalty
        whitening = whiten(total, cut)
        w = whitening.matrix
        reduced = w.T @ form @ w
        seen, turned = scipy.linalg.eigh(symmetric_part(reduced))
        z = w @ turned
        rounding = 0.1 * cut * whitening.spectrum[0] * (np.diag(total) @ z**2)
        z, seen = z[:, seen > rounding], seen[seen > rounding]
        paid = np.maximum(np.einsum("ij,ij->j", z, penalty @ z), 0)
        kinds = []
        for kind in observed:
            squares = float(kind.squares.sum())
            own = seen if len(observed) == 1 else z.T @ kind.form @ z
            kinds.append(_Kind(own, z.T @ kind.target, squares, kind.count, 10 * cut * squares + 1e-300))
        return cls(z, seen, paid, np.sum([kind.target for kind in kinds], axis=0), tuple(kinds), anchor)

    def moved(self, anchor: float, observed: Sequence[Observed], penalty: Array, cut: float) -> _Pencil:
        """The pencil of the same matrices at another anchor."""
        if anchor == self.anchor:
            return self
        return _Pencil.at(anchor, observed, np.sum([kind.form for kind in observed], axis=0), penalty, cut)

    @property
    def largest(self) -> float:
        """The largest alpha at which some direction still keeps half of its coefficient."""
        return float(np.max(self.seen / np.maximum(self.paid, 1e-300)))

    def shrunk(self, alpha: float) -> Array:
        """The diagonal of (A + alpha K)^(-1), (r,)."""
        return np.asarray(1 / (self.seen + alpha * self.paid))

    def score(self, alpha: float) -> float:
        """Robust cross-validation, summed over kinds and targets; infinite where the fit leaves nothing free."""
        shrunk = self.shrunk(alpha)
        coefficients = shrunk[:, None] * self.target
        total = 0.0
        for kind in self.kinds:
            free = 1 - float(kind.seen @ shrunk) / kind.count
            if free < LEAST_FREE:
                return float("inf")
            variance = float(kind.seen @ (shrunk**2 * self.seen)) / kind.count
            total += kind.residual(coefficients) / free**2 * (1 + ROBUST * variance**2)
        return total

    def best_near(self, alpha: float) -> float:
        """The alpha of least score within a factor of ten."""

        def height(log: float) -> float:
            return float(np.log(min(self.score(10**log), 1e300)))

        bounds = np.log10(alpha) - 1, np.log10(alpha) + 1
        result = scipy.optimize.minimize_scalar(height, bounds=bounds, method="bounded", options={"xatol": 1e-5})
        return float(10**result.x) if result.fun < height(np.log10(alpha)) else alpha

    def fit(self, alpha: float, curve: Curve) -> RidgeFit:
        """The solution at one alpha."""
        shrunk = self.shrunk(alpha)
        return RidgeFit(
            self.directions @ (shrunk[:, None] * self.target),
            alpha,
            self.score(alpha),
            len(self.seen),
            float(np.sum(self.seen * shrunk)),
            curve.alphas,
            curve.scores,
            curve.errors,
        )
