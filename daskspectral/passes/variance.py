"""Bounds of a fitted spectrum's error: Theorem 1's variance term and sharper ones, from one more pass over rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.data.integrity import Snapshot
from daskspectral.data.source import Preparation, label_of, open_data
from daskspectral.engine import Run, plan_rows
from daskspectral.moments import Measure, Moments
from daskspectral.moments.lattice import dense
from daskspectral.moments.modes import Outside
from daskspectral.moments.spread import FormSpread
from daskspectral.operators.weights import exponent_of
from daskspectral.passes.parameters import check_one_of, resolve_support
from daskspectral.passes.sums import Discretisation, flops_of
from daskspectral.solve import resolve_cut
from daskspectral.solve.variance import bernstein_deviation, energy_basis, theorem_term

Array = NDArray[np.floating[Any]]
ROWS = 256  # of a block: (m, r, rows) numbers are held, m the dimension or more


@dataclass(frozen=True, eq=False)
class VarianceBound:
    """How far the estimate may be from the result of infinitely many rows with the same span of functions.

    Theorem 1 and its term (8) are of Cabannes and Bach 2024.

    `theorem` and `bernstein` bound |L^(-1) - Lhat^(-1)| in operator norm on L2(rho), with probability 1 - `delta`
    each, for n = `count` independent rows and the r = `rank` functions of the span that remain without the `deflated`
    ones, which the form kills: the constant. By Weyl they bound the error of every 1 / lambda as well. As in Theorem 1,
    the Gram matrix is taken as known, and the error from functions outside the span (the bias) is not included.
    `inverse` is the norm of L^(-1), 1 / min |lambda|.

    theorem : the first term of (8), with the supremum H of |H(u_i, u_j, x)| over the rows that were read, in the
        basis of the span in which L is the identity up to signs. Proven from `theorem_rows` rows on.
    bernstein : `deviation` / (1 - deviation) / min |lambda|, infinite where the deviation is 1 or more; `deviation`
        bounds |Lhat - L| in that basis by the matrix Bernstein inequality with the variance |E A A^T|, A = H(u, u, x),
        and the supremum of |A| over the rows, in place of r H for both. Where it is small, it is the relative
        precision of each eigenvalue.
    standard_errors : (k,) of `eigenvalues` (k,) to first order, the Gram's error among it: the standard deviation of
        H(f, f, x) - lambda f(x)^2 over the rows by sqrt(n). No bound, but of the size of the error itself where n is
        large against r and the eigenvalue is simple.

    Variances and suprema are taken over the rows that were read, not over the distribution, and the basis is estimated
    too: the bounds are as good as these estimates.

    A bound that is no less than `inverse` is vacuous (`vacuous`): it does not tell the inverse from 0. The theorem's is
    on most data: it multiplies r by the supremum H of a single row. On the uniform square, with r = 27, it is 77 times
    the inverse at 20 000 rows, and proven from 50 million on; the sharper one is .29 of the inverse there, and vacuous
    below a few hundred rows to a function. Error bars for use are the fit's own, `eigenvalue_errors_`, which need no
    further pass.
    """

    delta: float
    count: int
    rank: int
    deflated: int
    inverse: float
    theorem: float
    theorem_rows: int
    deviation: float
    bernstein: float
    eigenvalues: Array
    standard_errors: Array

    def vacuous(self, bound: float) -> bool:
        """Whether a bound of the inverse is no less than the inverse itself, and so says nothing."""
        return not bound < self.inverse

    def __str__(self) -> str:
        proven = "" if self.count >= self.theorem_rows else f", and proven from {self.theorem_rows} rows on only"
        vacuous = ", vacuous as it is no less than the inverse"
        said = {bound: vacuous for bound in (self.theorem, self.bernstein) if self.vacuous(bound)}
        lines = [
            f"{self.count} rows, {self.rank} functions ({self.deflated} deflated); with probability "
            f"{1 - self.delta:g} the inverse, of norm {self.inverse:.6g}, is off by at most",
            f"  {self.theorem:.3g} by Theorem 1{said.get(self.theorem, '')}{proven}",
            f"  {self.bernstein:.3g} by matrix Bernstein{said.get(self.bernstein, '')}: the form is off by "
            f"{self.deviation:.2g} of itself",
            "eigenvalues, with their standard errors (the fit has intervals, eigenvalue_errors_):",
        ]
        pairs = zip(self.eigenvalues, self.standard_errors, strict=True)
        return "\n".join([*lines, *(f"  {value:.6g} +- {error:.2g}" for value, error in pairs)])


class Decomposed(Protocol):
    """The parts of a fitted `SpectralDecomposition` that the bounds need."""

    moments_: Moments
    preparation_: Preparation
    n_features_in_: int
    coefficients_: Array
    eigenvalues_: Array
    support_: Array
    min_support: float | None
    solver: str
    ridge: float
    rtol: float | None


def variance_bound(
    model: Decomposed,
    X: Any,
    *,
    delta: float = 0.05,
    fields: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    on_invalid: str = "raise",
    allow_missing: bool = False,
    progress: bool | None = None,
) -> VarianceBound:
    """The bounds for a fitted model, with variances and suprema over the rows of X, in one pass.

    `delta` is the probability with which a bound may fail; the other options are as in `SpectralDecomposition.fit`.
    The span is that of all functions above the rank cut, also where a penalised solution was sought in a part of it.
    Raises ValueError for operators that are not symmetric, for a model fitted with a ridge, where the operator is not
    invertible on the span, and for data that do not fit the model; InvalidRowError for the lowest invalid row
    (on_invalid="raise"); OSError where the data changed meanwhile.
    """
    moments = model.moments_
    operator, cut = moments.operator, resolve_cut(model.rtol, moments.dtype)
    if not isinstance(delta, (float, np.floating)) or not 0 < delta < 1:
        raise ValueError(f"delta is the probability of being wrong, between 0 and 1; it is {delta!r}")
    check_one_of("on_invalid", on_invalid, ("raise", "skip"))
    if operator.solver.by_norm or not operator.solver.needs_symmetry:
        raise ValueError(
            f"the variance is bounded for symmetric operators, and {operator.name} is solved by {operator.solver!r}"
        )
    if model.ridge:
        raise ValueError("the variance is bounded for the form itself: fit with ridge=0, or fit_moments again")
    kept = ~moments.basis.local | (model.support_ >= resolve_support(model.min_support, model.solver))
    means = dense(moments)
    energy = energy_basis(means.mean("form")[np.ix_(kept, kept)], means.mean("gram")[np.ix_(kept, kept)], cut)
    span = np.zeros((len(kept), energy.matrix.shape[1]))
    span[kept] = energy.matrix
    source = open_data(operator, X, columns=model.preparation_.columns, weight=sample_weight, fields=fields)
    if source.n_features_in != model.n_features_in_:
        raise ValueError(
            f"{label_of('x')} has {source.n_features_in} columns, and the model was fitted on {model.n_features_in_}"
        )
    snapshot = Snapshot(source)
    source = Discretisation(moments.basis, model.preparation_).prepared(source, operator)
    measure = Measure(moments.basis, moments.basis, operator.forms, {}, operator, "float64", ROWS)
    task = FormSpread(measure, span, model.coefficients_, model.eigenvalues_)
    exponent = exponent_of(moments.weight / moments.count) if "weight" in source.readers else 0
    outside = Outside(moments.basis) if isinstance(moments.basis, FourierLattice) else None
    run = Run(
        source, plan_rows(source, flops_of(source, moments.basis.size)), outside, on_invalid, progress, "variance"
    )
    total = run.reduce(_InUnits(task, exponent))
    snapshot.check_unchanged()
    if total.weight <= 0:
        raise ValueError(f"the total sample weight is {total.weight:g}; some row needs a weight above zero")
    unit, n, r = math.ldexp(total.weight, -exponent) / total.count, moments.count, len(energy.values)
    theorem, rows = theorem_term(energy.inverse, r, total.sums["largest"].value / unit, n, delta)
    second = float(np.linalg.norm(total.sums["second"], 2)) / total.count / unit**2
    deviation = bernstein_deviation(second, total.sums["peak"].value / unit, r, n, delta)
    return VarianceBound(
        delta=float(delta),
        count=n,
        rank=r,
        deflated=energy.deflated,
        inverse=energy.inverse,
        theorem=theorem,
        theorem_rows=rows,
        deviation=deviation,
        bernstein=energy.inverse * deviation / (1 - deviation) if deviation < 1 else float("inf"),
        eigenvalues=model.eigenvalues_,
        standard_errors=np.sqrt(total.sums["squares"] / total.count / n) / unit,
    )


@dataclass(frozen=True, eq=False)
class _InUnits:
    """A task whose rows have weights in units of 2^exponent: their squares then neither vanish nor overflow."""

    task: Callable[..., Any]
    exponent: int

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> Any:
        """What the task returns."""
        return self.task(map(self._weighed, batches), state)

    def _weighed(self, batch: Mapping[str, Array]) -> Mapping[str, Array]:
        weight = batch.get("weight")
        if weight is None:
            return batch
        return {**batch, "weight": np.ldexp(np.asarray(weight, dtype=float), -self.exponent)}
