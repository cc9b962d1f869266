"""Ridge regression from moments, (A + alpha K) a = b, with alpha by cross-validation over folds, or generalized.

K is the norm of a function space, or diagonal. Cross-validation reads no rows, and requires one decomposition or
factorization per fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from daskspectral.solve.whitening import at_unit_diagonal, eigh, inverse_root, resolve_cut, symmetric_part, whiten

Array = NDArray[np.floating[Any]]

CUTS = {"float64": 1e-15, "float32": 1e-6}  # ten times the rounding of the sums, relative to the largest direction
GRID = 5  # number of penalties per decade
LEAST_FREE = 1e-3  # least share of residual degrees of freedom; below it the score is 0 / 0
ROBUST = 2.0  # the score of an interpolating fit is 1 + ROBUST times its cross-validation
ROUNDING = 1e-16  # of the largest eigenvalue

DIAGONAL_CUT = 1e-13  # of the Gram matrix: harmonics are well conditioned, or not determined
DIAGONAL_ROUNDING = 1e-15  # of sums of squares
LEAST = 1e-9  # of the squares of functions: least penalty of the last function without cross-validation
STRIDE = 10.0  # ratio of the penalties in the first search


@dataclass(frozen=True, eq=False)
class FoldSums:
    """Observations by fold: forms (K, p, p), targets (K, p, m) and squares (K, m), with a common `unit`.

    With an intercept, `functions` (K, p) and `values` (K, m) are the first moments, `weights` (K,) the zeroth.
    """

    forms: Array
    targets: Array
    squares: Array
    unit: float = 1.0
    functions: Array | None = None
    values: Array | None = None
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class FoldPart:
    """Sums of one fold: form (p, p), target (p, m) and squares (m,).

    With an intercept they are about the mean over all rows; `sums` (p,) and `values` (m,) are of functions and values
    over the fold, `functions` (p,) the means over all rows.
    """

    form: Array
    target: Array
    squares: Array
    sums: Array
    values: Array
    functions: Array

    def turned(self, s: Array) -> FoldPart:
        target, sums, functions = (s.T @ array for array in (self.target, self.sums, self.functions))
        return FoldPart(symmetric_part(s.T @ self.form @ s), target, self.squares, sums, self.values, functions)

    def left_out(self, share: float) -> FoldPart:
        """Return the sums about the mean over the other folds; this one has weight `share`."""
        level = self.values / (share - 1)
        squares = self.squares - 2 * level * self.values + share * level**2
        return replace(self, target=self.target - np.outer(self.sums, level), squares=squares)

    def from_others(self, share: float) -> Array:
        """Return the change of the target (p, m) without this fold."""
        shift = np.outer(self.functions - self.sums, self.values) / (1 - share)
        return np.asarray(shift - self.target)


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations of one kind, as means over the rows: values, or gradients times their weight.

    `form` (p, p), `target` (p, m), and `squares` (m,), the mean squares of `count` observations. With an intercept,
    target and squares are about the mean, and `level` contains the means of functions (p,) and values (m,).
    """

    form: Array
    target: Array
    squares: Array
    count: float
    folds: FoldSums | None = None
    level: tuple[Array, Array] | None = None

    def about(self, functions: Array, values: Array) -> Observed:
        """Return the observations with an intercept, from means (p,) and (m,)."""
        target, squares = self.target - np.outer(functions, values), self.squares - values**2
        return replace(self, target=target, squares=np.maximum(squares, 0.0), level=(functions, values))

    def leading(self, size: int) -> Observed:
        folds, level = self.folds, self.level
        if folds is not None:
            first = None if folds.functions is None else folds.functions[:, :size]
            forms, targets = folds.forms[:, :size, :size], folds.targets[:, :size]
            folds = replace(folds, forms=forms, targets=targets, functions=first)
        if level is not None:
            level = level[0][:size], level[1]
        return replace(self, form=self.form[:size, :size], target=self.target[:size], folds=folds, level=level)

    def part(self, fold: int) -> FoldPart:
        """Return the sums of one fold, about the level."""
        folds, level = self.folds, self.level
        assert folds is not None
        form, target, squares = (folds.unit * sums[fold] for sums in (folds.forms, folds.targets, folds.squares))
        if level is None or folds.functions is None or folds.values is None or folds.weights is None:
            zero = np.zeros(len(target))
            return FoldPart(form, target, squares, zero, np.zeros(target.shape[1]), zero)
        first, values, weight = (folds.unit * sums[fold] for sums in (folds.functions, folds.values, folds.weights))
        functions, mean = level
        target, squares = target - np.outer(first, mean), squares - 2 * mean * values + weight * mean**2
        return FoldPart(form, target, squares, first, values - weight * mean, functions)


def summed(observed: Sequence[Observed]) -> tuple[Array, Array]:
    """Return the form and target of all kinds together."""
    return np.sum([kind.form for kind in observed], axis=0), np.sum([kind.target for kind in observed], axis=0)


def without_fold(observed: Sequence[Observed], fold: int, share: float) -> tuple[Array, Array]:
    """Return the form and target as means over all folds except one, of weight `share`."""
    return other_folds(*summed(observed), [kind.part(fold) for kind in observed], share)


def other_folds(form: Array, target: Array, parts: Sequence[FoldPart], share: float) -> tuple[Array, Array]:
    """Return the form and target as means over the other folds."""
    rest = 1 - share
    form = (form - np.sum([part.form for part in parts], axis=0)) / rest
    return form, np.sum([target, *(part.from_others(share) for part in parts)], axis=0) / rest


def squared_residual(form: Array, target: Array, squares: float, a: Array, floor: float) -> float:
    """Return the squared residual of coefficients a (p, m), at least `floor`, for rounding."""
    return max(squares - float(np.sum(a * (2 * target - form @ a))), floor)


def validation_folds(shares: Array | None) -> list[int]:
    """Return the folds that can be left out, at least two; otherwise an empty list."""
    some = [] if shares is None else [k for k in range(len(shares)) if 0 < shares[k] < 1]
    return some if len(some) > 1 else []


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients (p, m) at the penalty `alpha`, and the curves by which it was selected.

    `alphas` (ascending), `scores` (g,) by robust generalized cross-validation, and `errors` (g, kinds) on validation
    folds, None without; `rank` is the number of resolved directions, `freedom` the trace of the hat matrix.
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
        """Validation error at alpha, over all kinds; None without folds."""
        if self.errors is None:
            return None
        total = self.errors.sum(axis=1)
        return float(total[0] if len(total) == 1 else np.interp(np.log(self.alpha), np.log(self.alphas), total))


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """Ridge regression on observations of several kinds.

    Minimizes a.A a - 2 a.b + squares + alpha a.K a for each column b (p, m), summed over the kinds `observed`, K =
    `penalty` (p, p); A and K may be singular in the same directions. `shares` (K,) are the folds' shares of the
    weight, or None. `spread` is the mean square of centered values and of gradients, of folds that are left out.
    """

    observed: Sequence[Observed]
    penalty: Array
    shares: Array | None = None
    spread: float = 0.0

    def solve(self, alpha: float | str | None = None, cut: float = CUTS["float64"]) -> RidgeFit:
        """Return the solution at one penalty: `alpha`, that of least validation error (None), or that of "gcv".

        Without folds, and for alpha="gcv", the sum over the kinds is minimized of

            score(alpha) = residual / (1 - tr(A_kind R) / count)² (1 + 2 (tr(A_kind R A R) / count)²)

        with R = (A + alpha K)⁻¹: generalized cross-validation times a factor of at most 3 after Lukas (2006), against
        interpolating fits that score lower by chance. Directions below `cut` times the largest of A + alpha K, and
        directions in which A is rounding, are excluded. Raises ValueError if every function vanishes.
        """
        given = None if alpha is None or alpha == "gcv" else float(alpha)
        alphas, scores, errors, pencil = self.curve(given, cut)
        if given is not None:
            best = given
        elif alpha is None and errors is not None:
            best = best_penalty(alphas, errors.sum(axis=1))
        else:
            best = float(alphas[::-1][np.argmin(scores[::-1])])  # the largest of equally good ones
            best = pencil.moved(best, self, cut).best_near(best)
        return replace(pencil.moved(best, self, cut).fit(best), alphas=alphas, scores=scores, errors=errors)

    def curve(
        self, alpha: float | None = None, cut: float = CUTS["float64"]
    ) -> tuple[Array, Array, Array | None, _Pencil]:
        """Return penalties (g,), their generalized and fold errors (g, kinds), and the pencil."""
        form, _ = summed(self.observed)
        if not np.trace(form) > 0:
            raise ValueError("every function is 0 on all rows. Fit columns that vary, or widen the kernel")
        # A scales as K^2: directions of relative size sqrt(cut), at which A is rounding, are equal in A and alpha K
        paid = np.diag(self.penalty) > 0  # a constant in addition to linear functions has no penalty
        size = np.diag(form)[paid].sum() or np.trace(form)
        anchor = float(np.sqrt(cut) * size / np.trace(self.penalty)) if alpha is None else alpha
        pencil, alphas = _Pencil.at(anchor, self, cut), np.array([anchor])
        if alpha is None:
            low, high = np.log10(1e-3 * anchor), np.log10(100 * pencil.largest)
            alphas = 10 ** (low + np.arange(np.ceil(GRID * (high - low)) + 1) / GRID)
        scores = np.array([pencil.score(a) for a in alphas])
        errors = None if self.shares is None else fold_errors(self, self.shares, alphas, cut)
        return alphas, scores, errors, pencil

    @property
    def intercept(self) -> Array:
        """Means (m,) of the values; 0 without an intercept."""
        none = np.zeros(self.observed[0].target.shape[1])
        return next((kind.level[1] for kind in self.observed if kind.level is not None), none)

    def explained(self, error: float) -> float:
        """Return the explained share of the spread for a mean squared error."""
        return 1 - error / self.spread if self.spread > 0 else 0.0


def resolve_ridge_cut(rtol: float | None, dtype: str) -> float:
    """Return the relative cutoff: `rtol`, or 1e-15 in float64, 1e-6 in float32; raise ValueError for 0."""
    if rtol is None:
        return CUTS[dtype]
    if rtol == 0:
        raise ValueError(f"rtol must be positive, got {rtol!r}. Omit it for the default {CUTS[dtype]:g}")
    return resolve_cut(rtol, dtype)


@dataclass(frozen=True, eq=False)
class _ObservedInPencil:
    """Observations of one kind in the directions of a pencil: Z.T A_kind Z (r, r)."""

    form: Array
    target: Array  # Z.T b (r, m)
    squares: float
    count: float
    floor: float
    means: Array | None = None  # Z.T of the functions' means (r,), with an intercept

    def leverage(self, shrunk: Array, seen: Array) -> tuple[float, float]:
        """Return the means over the observations of the diagonals of H and of H Hᵀ, for the hat matrix H.

        With an intercept H is P + H₀ (1 - P), with H₀ about the mean and P = 1 1ᵀ / n.
        """
        variance, own = shrunk**2 * seen, np.diag(self.form)
        traces = float(own @ shrunk), float(own @ variance)
        if self.means is not None:
            squares = self.means**2
            traces = traces[0] + 1 - float(squares @ shrunk), traces[1] + 1 - float(squares @ variance)
        return traces[0] / self.count, traces[1] / self.count


@dataclass(frozen=True, eq=False)
class _Pencil:
    """A + alpha K in the relevant directions near one alpha: Z.T A Z = diag(seen), Z.T K Z = diag(paid)."""

    directions: Array  # Z (p, r)
    seen: Array
    paid: Array
    target: Array  # Z.T b (r, m)
    kinds: tuple[_ObservedInPencil, ...]
    anchor: float

    @classmethod
    def at(cls, anchor: float, problem: RidgeProblem, cut: float) -> _Pencil:
        """Diagonalize both above the cutoff of A + anchor K, which becomes the identity."""
        (form, _), observed, penalty = summed(problem.observed), problem.observed, problem.penalty
        total = form + anchor * penalty
        whitening = whiten(total, cut)
        w = whitening.matrix
        seen, turned = eigh(symmetric_part(w.T @ form @ w))
        z = w @ turned
        rounding = 0.1 * cut * whitening.spectrum[0] * (np.diag(total) @ z**2)
        z, seen = z[:, seen > rounding], seen[seen > rounding]
        paid = np.maximum(np.einsum("ij,ij->j", z, penalty @ z), 0)
        kinds = []
        for kind in observed:
            squares = float(kind.squares.sum())
            own = np.diag(seen) if len(observed) == 1 else z.T @ kind.form @ z
            means = None if kind.level is None else z.T @ kind.level[0]
            kinds.append(
                _ObservedInPencil(own, z.T @ kind.target, squares, kind.count, 10 * cut * squares + 1e-300, means)
            )
        return cls(z, seen, paid, np.sum([kind.target for kind in kinds], axis=0), tuple(kinds), anchor)

    def moved(self, anchor: float, problem: RidgeProblem, cut: float) -> _Pencil:
        return self if anchor == self.anchor else _Pencil.at(anchor, problem, cut)

    @property
    def largest(self) -> float:
        """Largest alpha that shrinks a direction by at most a half."""
        return float(np.max(self.seen / np.maximum(self.paid, 1e-300)))

    def shrunk(self, alpha: float) -> Array:
        """Return the diagonal of (A + alpha K)^(-1), (r,)."""
        return np.asarray(1 / (self.seen + alpha * self.paid))

    def score(self, alpha: float) -> float:
        """Return the robust generalized cross-validation, infinite at interpolation."""
        shrunk = self.shrunk(alpha)
        a = shrunk[:, None] * self.target
        return sum(
            _robust(
                squared_residual(kind.form, kind.target, kind.squares, a, kind.floor),
                *kind.leverage(shrunk, self.seen),
            )
            for kind in self.kinds
        )

    def best_near(self, alpha: float) -> float:
        """Return the alpha of least score within a factor of ten."""

        def height(log: float) -> float:
            return float(np.log(min(self.score(10**log), 1e300)))

        bounds = np.log10(alpha) - 1, np.log10(alpha) + 1
        result = scipy.optimize.minimize_scalar(height, bounds=bounds, method="bounded", options={"xatol": 1e-5})
        return float(10**result.x) if result.fun < height(np.log10(alpha)) else alpha

    def fit(self, alpha: float) -> RidgeFit:
        shrunk = self.shrunk(alpha)
        coefficients = self.directions @ (shrunk[:, None] * self.target)
        freedom = sum(kind.leverage(shrunk, self.seen)[0] * kind.count for kind in self.kinds)
        score = self.score(alpha)
        return RidgeFit(coefficients, alpha, score, len(self.seen), freedom, np.array([alpha]), np.array([score]))


def _robust(residual: float, leverage: float, variance: float) -> float:
    """Return the score of a kind from mean leverage and variance."""
    free = 1 - leverage
    return residual / free**2 * (1 + ROBUST * variance**2) if free >= LEAST_FREE else float("inf")


# -- folds -------------------------------------------------------------------------------------------------------------


def fold_errors(problem: RidgeProblem, shares: Array, alphas: Array, cut: float) -> NDArray[np.float64] | None:
    """Return the mean squared validation errors (g, kinds) of penalties (g,), or None without two folds.

    For every fold k with the share w_k of the weight, the penalized solution a of the means over all other rows,

        (A - A_k) a / (1 - w_k) + alpha K a = (b - b_k) / (1 - w_k),

    has the error squares_k - 2 a.b_k + a.A_k a on the fold. One eigendecomposition per fold serves all penalties, in
    functions orthonormal in K above the root of `cut`: in the others A, which scales as K², is rounding. A constant
    without penalty is fitted first.
    """
    judged = validation_folds(shares)
    if not judged:
        return None
    s, observed = inverse_root(symmetric_part(problem.penalty), float(np.sqrt(cut)), driver="evd"), problem.observed
    form, target = summed(observed)
    free = np.flatnonzero((np.diag(problem.penalty) == 0) & (np.diag(form) > 0))
    s = np.hstack([np.eye(len(form))[:, free], s])
    form, target = symmetric_part(s.T @ form @ s), s.T @ target
    total = np.zeros((len(alphas), len(observed)))
    for k in judged:
        parts, share = [kind.part(k).turned(s) for kind in observed], float(shares[k])
        a = _ridge(*other_folds(form, target, parts, share), alphas, len(free))
        for j, part in enumerate(each.left_out(share) for each in parts):
            image, norm = (part.form @ a.reshape(len(a), -1)).reshape(a.shape), float(part.squares.sum())
            error = norm - np.einsum("rgm,rgm->g", a, 2 * part.target[:, None] - image)
            total[:, j] += np.maximum(error, 10 * cut * norm)
    return total / float(shares[judged].sum())


def _ridge(form: Array, target: Array, alphas: Array, free: int = 0) -> Array:
    """Return (form + alpha)^(-1) target, (r, g, m), without penalty on the first `free`."""
    if free:
        first, shared = form[:free, :free], form[:free, free:]
        known = scipy.linalg.pinvh(first)
        rest = symmetric_part(form[free:, free:] - shared.T @ known @ shared)
        a = _ridge(rest, target[free:] - shared.T @ known @ target[:free], alphas)
        first = known @ (target[:free, None] - np.tensordot(shared, a, 1)).reshape(free, -1)
        return np.concatenate([first.reshape(free, *a.shape[1:]), a])
    if len(alphas) == 1 and alphas[0] > 0:
        try:
            factor = scipy.linalg.cho_factor(form + alphas[0] * np.eye(len(form)))
        except scipy.linalg.LinAlgError:  # the form is positive only up to rounding
            pass
        else:
            return np.asarray(scipy.linalg.cho_solve(factor, target))[:, None]
    values, vectors = scipy.linalg.eigh(form, driver="evd")
    turned = vectors.T @ target
    size = np.maximum(values, 0)[:, None] + alphas
    size[size <= ROUNDING * size.max(axis=0)] = np.inf
    shrunk = turned[:, None] / size[:, :, None]
    return np.asarray((vectors @ shrunk.reshape(len(values), -1)).reshape(shrunk.shape))


def best_penalty(alphas: Array, errors: Array) -> float:
    """Return the largest penalty of least error (g,), refined by a parabola."""
    i = len(errors) - 1 - int(np.argmin(errors[::-1]))
    if not 0 < i < len(errors) - 1 or not errors[i] > 0:
        return float(alphas[i])
    before, here, after = np.log(errors[i - 1 : i + 2])
    bend = before - 2 * here + after
    step = 0.5 * (before - after) / bend if bend > 0 else 0.0  # at most a half, because the middle error is the least
    spacing = np.log(alphas[i + 1] / alphas[i])
    return float(alphas[i] * np.exp(step * spacing))


# -- a penalty for each function, (p,) ---------------------------------------------------------------------------------


def solve_diagonal(form: Array, target: Array, penalty: Array) -> Array:
    """Return (form + diag(penalty))^(-1) target, without directions below rounding."""
    return _inverse(form, penalty)(target)


def generalized(observed: Sequence[Observed], penalty: Array, alpha: float) -> float:
    """Return the robust generalized cross-validation of `RidgeProblem.solve` at one alpha."""
    form, target = summed(observed)
    solve = _inverse(form, alpha * penalty)
    a, whole, total = solve(target), solve(form), 0.0
    for kind in observed:
        hat = whole if len(observed) == 1 else solve(kind.form)
        leverage, variance = float(np.trace(hat)) / kind.count, float(np.sum(hat * whole.T)) / kind.count
        total += _robust(_missed_squares(kind.form, kind.target, kind.squares, a), leverage, variance)
    return total


def validation_error(observed: Sequence[Observed], shares: Array, penalty: Array, alpha: float) -> float:
    """Return the mean squared validation error over the folds that can be left out."""
    error, judged = 0.0, validation_folds(shares)
    for k in judged:
        share = float(shares[k])
        a = solve_diagonal(*without_fold(observed, k, share), alpha * penalty)
        for kind in observed:
            part = kind.part(k).left_out(share)
            error += _missed_squares(part.form, part.target, part.squares, a)
    return error / float(shares[judged].sum())


def best_on_folds(observed: Sequence[Observed], shares: Array, penalty: Array, start: float | None) -> float:
    """Return the alpha of least validation error, near `start` or among all relevant ones."""
    lowest, highest = _bounds(observed, penalty)
    count = max(2, 1 + int(np.ceil(np.log(highest / lowest) / np.log(STRIDE))))
    alphas = np.geomspace(lowest, highest, count)

    @cache
    def error(i: int) -> float:
        return validation_error(observed, shares, penalty, float(alphas[i]))

    coarse = range(count - 1, -1, -2)
    at = min(coarse, key=error) if start is None else int(np.argmin(np.abs(np.log(alphas / start))))
    while True:
        better = min((i for i in (at + 1, at, at - 1) if 0 <= i < count), key=error)
        if better == at:
            break
        at = better
    if not 0 < at < count - 1:
        return float(alphas[at])
    near = slice(at - 1, at + 2)
    refined = best_penalty(alphas[near], np.array([error(i) for i in range(at - 1, at + 2)]))
    return refined if validation_error(observed, shares, penalty, refined) < error(at) else float(alphas[at])


def best_generalized(observed: Sequence[Observed], penalty: Array) -> float:
    """Return the alpha of least generalized cross-validation, at least 1e-9 over the last function's relative penalty.

    The bound limits functions that are large in regions of few rows, which the mean leverage does not detect.
    """
    paid = penalty > 0
    if not paid.any():
        return 0.0
    squares = np.diag(summed(observed)[0])
    free = ~paid & (squares > 0)
    centered = [_without_unpenalized(kind, free, paid) for kind in observed]
    if not sum(float(np.trace(kind.form)) for kind in centered) > 0:
        return 0.0
    best = RidgeProblem(centered, np.diag(penalty[paid])).solve(cut=DIAGONAL_CUT).alpha
    return max(best, LEAST * float(squares.mean()) / float(penalty.max()))


def _without_unpenalized(kind: Observed, free: NDArray[np.bool_], paid: NDArray[np.bool_]) -> Observed:
    """Return the observations after regression on functions without a penalty."""
    first = free & (np.diag(kind.form) > 0)
    form, target = kind.form[np.ix_(paid, paid)], kind.target[paid]
    if not first.any():
        return Observed(form, target, kind.squares, kind.count)
    across, known = kind.form[np.ix_(first, paid)], kind.form[np.ix_(first, first)]
    a = np.linalg.lstsq(known, np.column_stack([across, kind.target[first]]), rcond=DIAGONAL_CUT)[0]
    shift, level = a[:, : len(form)], a[:, len(form) :]
    squares = np.maximum(kind.squares - np.sum(level * kind.target[first], axis=0), 0)
    return Observed(
        form - across.T @ shift, target - across.T @ level, squares, max(kind.count - int(first.sum()), 1.0)
    )


def _bounds(observed: Sequence[Observed], penalty: Array) -> tuple[float, float]:
    """Return the penalties at which shrinkage begins, and at which all functions vanish."""
    paid, scale = penalty[penalty > 0], float(np.trace(summed(observed)[0])) / len(penalty)
    if not len(paid) or not scale > 0:
        return 1.0, 1.0
    return float(1e-15 * scale / paid.max()), float(1e2 * scale / paid.min())


def _missed_squares(form: Array, target: Array, squares: Array, a: Array) -> float:
    norm = float(squares.sum())
    return squared_residual(form, target, norm, a, DIAGONAL_ROUNDING * norm)


def _inverse(form: Array, penalty: Array) -> Callable[[Array], Array]:
    """Return the operator (form + diag(penalty))^(-1), above rounding."""
    total, scale = at_unit_diagonal(symmetric_part(form) + np.diag(penalty))
    np.fill_diagonal(total, 1.0)
    try:
        factor = scipy.linalg.cho_factor(total)
    except scipy.linalg.LinAlgError:
        root = inverse_root(total, DIAGONAL_CUT, driver="evd")
        return lambda b: np.asarray(scale[:, None] * (root @ (root.T @ (scale[:, None] * b))))
    return lambda b: np.asarray(scale[:, None] * scipy.linalg.cho_solve(factor, scale[:, None] * b))
