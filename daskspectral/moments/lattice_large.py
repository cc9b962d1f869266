"""The solution of more functions than matrices hold: products by fast Fourier transforms, and error bars of lower ones.

Values and functions are those of all frequencies, by the block iteration of `solve.iterative`. Folds keep the modes of
lower frequencies alone: the relative width of intervals, the groups and the held-out values are of a lattice of up to
2500 functions, solved for the same prior and penalty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.basis.prior import WeighedLattice
from daskspectral.errors import RankWarning, warn_user
from daskspectral.kernels import Kernel
from daskspectral.modes import (
    ModeTerm,
    ModeWeight,
    form_matrix,
    functional_vector,
    pairing_terms_of,
    terms_of,
    truncated,
)
from daskspectral.modes.products import FormProducts
from daskspectral.modes.symbol import SymbolInverse
from daskspectral.moments.counting import counted_rows
from daskspectral.moments.modes import MODES, weights_of
from daskspectral.moments.moments import Moments
from daskspectral.operators import Operator
from daskspectral.solve.iterative import leading_iterative
from daskspectral.solve.pencil import ritz_size

Array = NDArray[np.floating[Any]]
COARSE = 2500  # functions of the block that preconditions, and of the lattice of the error bars
TOLERANCE, ITERATIONS = 1e-6, 100
WORKERS = 2


def mean_modes(moments: Moments, lattice: FourierLattice) -> dict[ModeWeight, Any]:
    """The means of the modes of all weights, for the frequencies of a lattice."""
    wanted = weights_of(moments.operator, lattice.dimension)
    return {w: truncated(moments.arrays[MODES + w.name], lattice.orders) / moments.weight for w in wanted}


def energy_terms(operator: Operator, dimension: int) -> tuple[ModeTerm, ...]:
    """The terms of a symmetric form, ascending."""
    terms = terms_of(operator.form.expression, dimension)
    return tuple(replace(term, factor=-term.factor) for term in terms) if operator.descending else terms


def coarse_orders(orders: Sequence[int]) -> tuple[int, ...]:
    """The lower frequencies, in proportion, of which there are up to 2500 functions."""
    return shrunk_orders(orders, COARSE)


def shrunk_orders(orders: Sequence[int], most: int) -> tuple[int, ...]:
    """Lower frequencies, along all axes in proportion, of which there are no more than so many functions."""
    found, share = tuple(orders), 1.0
    while math.prod(2 * order + 1 for order in found) > most:
        share *= 0.98
        found = tuple(max(1, round(share * order)) for order in orders)
    return found


def solve_large(
    moments: Moments, lattice: FourierLattice, kernel: Kernel, penalty: float, count: int, lower: Mapping[str, Any]
) -> dict[str, Any]:
    """The attributes of an estimator for all functions of a lattice, with the error bars of `lower` ones.

    Warns where the residuals stay above the tolerance. Raises ValueError for operators that are not symmetric.
    """
    operator, d = moments.operator, lattice.dimension
    if not operator.solver.needs_symmetry:
        raise ValueError(
            f"{operator.name} is solved by {operator.solver!r}, which takes matrices, and those of {lattice.size} "
            "functions are too large: lower m"
        )
    modes, weighed = mean_modes(moments, lattice), WeighedLattice(lattice, kernel)
    gram, energy = terms_of(operator.gram.expression, d), energy_terms(operator, d)
    products = FormProducts(lattice, [gram, energy], modes, workers=WORKERS)
    scale = np.sqrt(weighed.weights)
    diagonals = products.diagonals()
    squares = operator.slopes_squared(d)
    kappa = float(diagonals[1] @ scale**2) if squares is None else squares * weighed.slope_norm
    mu = penalty * kappa / counted_rows(moments)
    null = all(any(term.left) and any(term.right) for term in energy)
    block = lattice.truncated(coarse_orders(lattice.orders))
    places = lattice.places(block)
    order = np.argsort(-scale[places], kind="stable")
    order = order[places[order] > 0] if null else order
    among = np.ix_(order, order)
    few = {w: truncated(c, block.orders) for w, c in modes.items()}
    coarse = places[order]
    span = leading_iterative(
        products,
        scale,
        mu,
        null=null,
        count=ritz_size(count),
        coarse=coarse,
        coarse_gram=form_matrix(block, gram, few)[among],
        coarse_energy=form_matrix(block, energy, few)[among],
        fine=SymbolInverse(lattice, modes[ModeWeight()], scale, diagonals[1], mu, coarse, workers=WORKERS),
        tolerance=TOLERANCE,
        iterations=ITERATIONS,
    )
    if not span.converged:
        warn_user(
            f"the solution of {lattice.size} functions has {span.status}: the last values may be off by more than "
            "their intervals. A larger penalty, fewer components or a lower m converge sooner",
            RankWarning,
        )
    found = span.spectrum(count)
    sign = -1 if operator.descending else 1
    values = sign * found.values
    known = min(len(values), len(lower["eigenvalues_"]))
    return {
        **lower,
        **_with_errors(np.asarray(values[:known].real), lower),
        "coefficients_": found.right[:, :known],
        "residuals_": found.residuals[:known],
        "rank_": lattice.size,
        "status_": f"{known} of the {count} values wanted; {span.status}; error bars of {block.size} functions",
        "support_": _support(moments, lattice, modes, diagonals[0]),
    }


def _with_errors(values: Array, lower: Mapping[str, Any]) -> dict[str, Array]:
    """Values with the relative errors of a lower lattice."""
    base = lower["eigenvalues_"][: len(values)]
    ratio = np.divide(values, base, out=np.ones_like(values), where=np.abs(base) > 1e-12 * np.abs(base).max(initial=0))
    found: dict[str, Array] = {"eigenvalues_": values}
    for name in (
        "eigenvalue_errors_",
        "standard_errors_",
        "held_out_",
        "groups_",
        "function_errors_",
        "approximation_",
        "trusted_",
    ):
        given = lower[name][: len(values)]
        if name in ("groups_", "function_errors_", "trusted_"):
            found[name] = given
        else:
            found[name] = given * (ratio[:, None] if given.ndim == 2 else ratio)
    return found


def _support(moments: Moments, lattice: FourierLattice, modes: Mapping[ModeWeight, Any], squares: Array) -> Array:
    """The effective number of rows under each function."""
    terms = pairing_terms_of(moments.operator.functionals["first"].expression, lattice.dimension)
    first = functional_vector(lattice, terms, modes)
    return np.divide(first**2, squares, out=np.zeros_like(first), where=squares > 0) * counted_rows(moments)


def of_functions(moments: Moments, lattice: FourierLattice, functions: Array) -> Moments:
    """The moments of k functions with coefficients (p, k), by products: (k, k) forms."""
    operator, d = moments.operator, lattice.dimension
    names = list(operator.forms)
    forms = [terms_of(operator.forms[name].expression, d) for name in names]
    images = FormProducts(lattice, forms, mean_modes(moments, lattice), workers=WORKERS)(functions)
    arrays = {name: moments.weight * (functions.T @ image) for name, image in zip(names, images, strict=True)}
    others = {name: values for name, values in moments.arrays.items() if not name.startswith(MODES)}
    return replace(moments, arrays={**arrays, **others}, folds=None)
