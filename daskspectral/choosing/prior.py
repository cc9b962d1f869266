"""The solution of modes on a Fourier lattice, with the prior that is given or chosen by the folds, and its table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

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
                f"kernels of the lattice were not compared, since {chosen.reason}: {chosen.kernel} and penalty="
                f"{chosen.penalty:g} were taken. Fit with folds, or give kernel and penalty",
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
    assert lattice.margin is not None
    for axis, (period, (closed, _)) in enumerate(zip(lattice.period, lattice.ends, strict=True)):
        if closed:
            continue
        gap = float(period) * lattice.margin / (1 + lattice.margin)
        line = FourierLattice(2, periods=(2 * gap,)).on_box(1, None, None)
        still, long, short = prior_weights(kernel, line)[:3]
        if long < LEAST_LONG * still and short < LEAST_SHORT * max(long, LEAST_LONG**2 * still):
            warn_user(
                f"the kernel {kernel} reaches far across the gap of {gap:.3g} between opposite edges of column {axis}: "
                f"take a narrower or a rougher kernel, or FourierLattice(margin={2 * lattice.margin:.2g})",
                TrustWarning,
            )
            return


def _in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`in_threads`; large matrices that are freed go back to the system, which would keep them for each thread."""
    found = in_threads(function, items)
    release()
    return found


def _given_orders(basis: FourierLattice, measured: FourierLattice) -> tuple[int, ...] | None:
    """Return the frequencies that an estimator's basis asks for; None for all that were measured."""
    other = {
        "box": any(side not in (None, own) for side, own in zip(basis.box or (), measured.box or (), strict=False)),
        "margin": basis.box is None and basis.margin not in (None, measured.margin),  # with a box it may follow from m
        "periods": basis.periods not in (None, measured.periods),
    }
    orders = basis.m if isinstance(basis.m, tuple) else (basis.m or 0,) * measured.dimension
    other["m"] = len(orders) != measured.dimension or any(np.array(orders) > measured.orders)
    for name in (name for name, differs in other.items() if differs):
        raise ValueError(
            f"these moments were measured with {name}={getattr(measured, name)!r}, and the basis of this estimator has "
            f"{name}={getattr(basis, name)!r}. Fit it to the data, or leave {name} out."
        )
    return None if basis.m is None or orders == measured.orders else orders
