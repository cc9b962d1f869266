"""The solution of modes on a Fourier lattice, with the prior that is given or chosen by the folds, and its table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from daskspectral.basis import FourierLattice, as_lattice
from daskspectral.basis.lattice import prior_weights
from daskspectral.choosing.lattice import check_prior
from daskspectral.choosing.search import in_threads
from daskspectral.engine.memory import release
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments
from daskspectral.moments.lattice import lattice_of, solve_modes
from daskspectral.moments.lattice_regression import Regressed, regress
from daskspectral.moments.prior_choice import FAMILIES, UNIT, Chosen, choose_prior, kernel_of
from daskspectral.moments.problem import checked_means
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solvers import Penalised, Solving

LEAST_LONG, LEAST_SHORT = 1e-4, 1e-3  # of the prior's weight at 0, and at half the frequency


def solve_on_lattice(moments: Moments, *, basis: Any, solver: Solving, count: int) -> tuple[dict[str, Any], Selection]:
    """The attributes of an estimator from modes, for the kernel of a `basis` and a penalty, and how they were chosen.

    What is left to the data is chosen by the folds. A lattice `basis` may have fewer frequencies than were measured.
    Raises ValueError for more frequencies than were measured.
    """
    checked_means(moments)
    orders, own = _given(basis, moments)
    penalty = solver.resolved("auto" if moments.penalty is None else moments.penalty)
    c = penalty if isinstance(penalty, float) else None
    if penalty is None or not (c is None or own is None or own.automatic):
        family = FAMILIES[0] if own is None else own
        chosen = Chosen(kernel_of(family, UNIT, moments), c, reason="every parameter was given")
    else:
        chosen = choose_prior(moments, kernel=own, penalty=c, count=count, threads=_in_threads)
        if not chosen.table:
            warn_user(
                f"kernels and scales of the lattice were not compared, since {chosen.reason}: {chosen.kernel} and "
                f"penalty={chosen.penalty:g} were taken, which suit some data. Fit with folds, or give kernel and "
                "penalty",
                TrustWarning,
            )
    release()
    attributes = solve_modes(
        moments,
        kernel=chosen.kernel,
        orders=orders,
        solver=solver,
        penalty=chosen.penalty,
        count=count,
    )
    selection = _selection(moments, chosen, orders, count)
    if penalty is None:
        return attributes, selection
    return attributes, selection.with_parameters({"solver": Penalised(chosen.penalty or 0.0)})


def regress_on_lattice(
    moments: Moments, *, basis: Any, alpha: float | str | None, gradient_weight: float, cut: float
) -> tuple[Regressed, Selection]:
    """The solution of modes of a regression for a kernel and a penalty, each given or chosen by the folds, and how."""
    orders, own = _given(basis, moments)
    terms: dict[str, Any] = {"alpha": alpha, "gradient_weight": gradient_weight, "cut": cut}
    found = regress(moments, kernel=own, orders=orders, **terms, threads=_in_threads)
    return found, _selection(moments, found.chosen, orders)


def _given(basis: Any, moments: Moments) -> tuple[tuple[int, ...] | None, Kernel | None]:
    """The frequencies and the prior that an estimator's basis gives; None for each that is left to what was measured.

    Raises TypeError or ValueError for a kernel that is no prior, ValueError for frequencies that were not measured.
    """
    own, lattice, kernel = as_lattice(basis), lattice_of(moments), None
    if own is not None:
        check_prior(own)
        kernel = None if isinstance(own.kernel, str) else copy.deepcopy(own.kernel)  # kernels can be changed in place
    if kernel is not None and not kernel.automatic:
        advise_range(kernel, lattice)
    release()  # what the pass over the rows has left
    return None if own is None else _given_orders(own, lattice), kernel


def _selection(moments: Moments, chosen: Chosen, orders: tuple[int, ...] | None, count: int | None = None) -> Selection:
    """The table, and the basis that gives the solution again; rows are those of the pass, scales of its period."""
    table = tuple(
        Candidate.of(str(kernel), factor, penalty, score, values[:, :count], "" if place else "best")
        for place, (kernel, factor, penalty, score, values) in enumerate(chosen.table)
    )
    lattice = lattice_of(moments)
    basis = replace(lattice if orders is None else lattice.truncated(orders), kernel=chosen.kernel)
    period = float(lattice.period.max())
    return Selection(table, {"basis": basis}, moments.count, period, chosen.edge, chosen.reason)


def advise_range(kernel: Kernel, lattice: FourierLattice) -> None:
    """Warn where a smooth kernel cannot turn within the gap between opposite edges of the box.

    That is where waves of twice the gap have next to no weight in the prior, and those of the gap far less.
    """
    sides = zip(lattice.period, lattice.periods or (None,) * lattice.dimension, strict=True)
    assert lattice.margin is not None
    for axis, (period, closed) in enumerate(sides):
        if closed:
            continue
        gap = float(period) * lattice.margin / (1 + lattice.margin)
        line = FourierLattice(2, periods=(2 * gap,)).on_box(1, None, None)
        still, long, short = prior_weights(kernel, line)[:3]
        if long < LEAST_LONG * still and short < LEAST_SHORT * max(long, LEAST_LONG**2 * still):
            warn_user(
                f"the kernel {kernel} reaches far across the gap of {gap:.3g} between opposite edges of column {axis}, "
                "and functions that differ there are held back: take a narrower or a rougher kernel, or a wider gap, "
                f"FourierLattice(margin={2 * lattice.margin:.2g})",
                TrustWarning,
            )
            return


def _in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`in_threads`; large matrices that are freed go back to the system, which would keep them for each thread."""
    found = in_threads(function, items)
    release()
    return found


def _given_orders(basis: FourierLattice, measured: FourierLattice) -> tuple[int, ...] | None:
    """The frequencies that an estimator's basis asks for; None for all that were measured."""
    boxes = zip(basis.box or (), measured.box or (), strict=False)
    other = "box" if any(side is not None and side != own for side, own in boxes) else ""
    if basis.box is None and basis.margin is not None and basis.margin != measured.margin:
        other = "margin"  # with a box it may follow from m
    other = "periods" if basis.periods is not None and basis.periods != measured.periods else other
    if other:
        raise ValueError(
            f"these modes were measured with {other}={getattr(measured, other)!r}, and the basis of this estimator has "
            f"{other}={getattr(basis, other)!r}: fit it to the data, or leave {other} out"
        )
    if basis.m is None:
        return None
    orders = basis.m if isinstance(basis.m, tuple) else (basis.m,) * measured.dimension
    if len(orders) != measured.dimension:
        raise ValueError(
            f"the modes of these moments are of {measured.dimension} variables, and the basis of this estimator has "
            f"m={basis.m}, for {len(orders)}: fit it to the data, or give m for each variable"
        )
    if any(a > b for a, b in zip(orders, measured.orders, strict=True)):
        raise ValueError(
            f"the modes of these moments serve frequencies up to {measured.orders}, and the basis of this estimator "
            f"asks for {orders}: fit it to the data, or lower m"
        )
    return None if orders == measured.orders else orders
