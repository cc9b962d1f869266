"""Moments of rows by fold without a fit, for the tests of what follows from them."""

from typing import Any

import numpy as np

from daskspectral.basis import Basis
from daskspectral.moments import Folds, Moments
from daskspectral.moments.problem import GalerkinProblem
from daskspectral.moments.summing import SumTask
from daskspectral.operators import Laplacian, Operator
from daskspectral.passes.sums import measure_of
from daskspectral.solvers import Truncated


def moments_of(
    basis: Basis,
    rows: dict[str, Any],
    fold: Any,
    operator: Operator | None = None,
    right: Any = None,
    *,
    patterns: bool = False,
    **options: Any,
) -> Moments:
    """The moments of rows (fields (n, ...)) whose groups are `fold` (n,), each measured alone; options are of Folds."""
    operator = operator or Laplacian()
    measure = measure_of(basis, right, operator, "float64", patterns=patterns)
    task, n = SumTask(measure, operator), len(rows["x"])
    groups = [np.flatnonzero(fold == g) for g in range(int(fold.max()) + 1)]
    parts = [task([{name: values[chosen] for name, values in rows.items()}]) for chosen in groups]
    arrays = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    weight = np.asarray(rows.get("weight", np.ones(n)), dtype=float)
    folds = Folds(arrays, np.bincount(fold, weight).astype(float), np.bincount(fold), **options)
    return Moments(folds.total(), weight.sum(), n, basis, operator, right_basis=right, folds=folds, rows=n)


def folds_of(moments: Any) -> Folds:
    """The folds of moments, or of a fitted model's, which have some."""
    found = getattr(moments, "moments_", moments).folds
    assert isinstance(found, Folds)
    return found


def problem_of(
    moments: Moments, count: int, penalty: float | None = None, half: bool = False, **options: Any
) -> GalerkinProblem:
    """The problem of moments, in all directions that the data see where there is no penalty."""
    return GalerkinProblem(moments, count, penalty, Truncated(**({"min_support": 0.0} | options)), half)
