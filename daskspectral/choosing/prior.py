"""The solution of modes on a Fourier lattice, with the prior that is given or chosen by the folds, and its table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from daskspectral.basis import FourierLattice
from daskspectral.basis.lattice import check_stationary, prior_weights
from daskspectral.choosing.search import in_threads
from daskspectral.engine.memory import release
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments
from daskspectral.moments.lattice import lattice_of, solve_modes
from daskspectral.moments.lattice_regression import PARTS, regress
from daskspectral.moments.prior_choice import FAMILIES, UNIT, Chosen, choose_prior
from daskspectral.moments.problem import checked_means
from daskspectral.moments.trial import Setting
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solve.ridge import RidgeFit, RidgeProblem
from daskspectral.solvers import Penalised, Solving

LEAST_LONG, LEAST_SHORT = 1e-4, 1e-3  # of the prior's weight at 0, and at half the frequency


@dataclass(frozen=True, eq=False)
class LatticeSolution:
    """The attributes of an estimator, how its prior was chosen, and the kernel."""

    attributes: dict[str, Any]
    selection: Selection
    kernel: Kernel


def solve_on_lattice(moments: Moments, *, basis: Any, solver: Solving, count: int) -> LatticeSolution:
    """Solve modes for the kernel of a `basis` and a penalty, chosen by the folds where they are left to the data.

    A lattice `basis` may have fewer frequencies than were measured. Raises ValueError for more frequencies than were
    measured.
    """
    lattice = lattice_of(moments)
    checked_means(moments)
    orders, own = _given_orders(basis, lattice), _given_kernel(basis)
    penalty = solver.resolved("auto" if moments.penalty is None else moments.penalty)
    if own is not None and not own.automatic:
        advise_reach(own, lattice)
    c = penalty if isinstance(penalty, float) else None
    release()  # what the pass over the rows has left
    if penalty is None or not (c is None or own is None or own.automatic):
        known = (FAMILIES[0],) if own is None else (own,)
        chosen = Chosen(known, Setting(0, UNIT, 1.0 if c is None else c), reason="every parameter was given")
    else:
        chosen = choose_prior(moments, kernel=own, penalty=c, count=count, threads=_in_threads)
        if not chosen.table:
            warn_user(
                f"kernels and scales of the lattice were not compared, since {chosen.reason}: "
                f"{chosen.kernel(chosen.prior, moments)} and penalty={chosen.prior.penalty:g} were taken, which suit "
                "some data. Fit with folds, or give kernel and penalty",
                TrustWarning,
            )
    best = chosen.prior
    found = chosen.kernel(best, moments)
    release()
    attributes = solve_modes(
        moments,
        kernel=found,
        orders=orders,
        solver=solver,
        penalty=None if penalty is None else best.penalty,
        count=count,
        compared=bool(chosen.table),
    )
    parameters: dict[str, Any] = {"basis": _as_given(lattice, orders, found)}
    if penalty is not None:
        parameters["solver"] = Penalised(best.penalty or 0.0)
    selection = Selection(
        tuple(
            Candidate.of(
                str(chosen.kernel(s, moments)), s.factor, s.penalty, score, values[:, :count], "" if place else "best"
            )
            for place, (s, score, values) in enumerate(chosen.table)
        ),
        parameters,
        rows=moments.count,
        median=float(lattice.period.max()),
        edge=chosen.edge,
        reason=chosen.reason,
    )
    return LatticeSolution(attributes, selection, found)


def advise_reach(kernel: Kernel, lattice: FourierLattice) -> None:
    """Warn where a smooth kernel cannot turn within the gap between opposite edges of the box.

    That is where waves of twice the gap have next to no weight in the prior, and those of the gap far less.
    """
    sides = zip(lattice.period, lattice.periods or (None,) * lattice.dimension, strict=True)
    assert lattice.margin is not None
    for axis, (period, closed) in enumerate(sides):
        if closed:
            continue
        gap = float(period) * lattice.margin / (1 + lattice.margin)
        line = FourierLattice(2, periods=(2 * gap,)).laid(1, None, None)
        still, long, short = prior_weights(kernel, line)[:3]
        if long < LEAST_LONG * still and short < LEAST_SHORT * max(long, LEAST_LONG**2 * still):
            warn_user(
                f"the kernel {kernel} reaches far across the gap of {gap:.3g} between opposite edges of column {axis}, "
                "and functions that differ there are held back: take a narrower or a rougher kernel, or a wider gap, "
                f"FourierLattice(margin={2 * lattice.margin:.2g})",
                TrustWarning,
            )
            return


def _given_kernel(basis: Any) -> Kernel | None:
    """The prior that a lattice has; None where it is left to the data. Raises TypeError or ValueError for no prior."""
    if not isinstance(basis, FourierLattice) or isinstance(basis.kernel, str):
        return None
    check_stationary(basis.kernel)
    return copy.deepcopy(basis.kernel)  # kernels can be changed in place


def _as_given(lattice: FourierLattice, orders: tuple[int, ...] | None, kernel: Kernel) -> FourierLattice:
    return replace(lattice if orders is None else lattice.truncated(orders), kernel=kernel)


def _in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`in_threads`; large matrices that are freed go back to the system, which would keep them for each thread."""
    found = in_threads(function, items)
    release()
    return found


def _given_orders(basis: Any, measured: FourierLattice) -> tuple[int, ...] | None:
    """The frequencies that an estimator's basis asks for; None for all that were measured."""
    if not isinstance(basis, FourierLattice):
        return None
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


@dataclass(frozen=True, eq=False)
class LatticeRegression:
    """A ridge problem and its fit, the coefficients (p, m), and how the prior was chosen."""

    problem: RidgeProblem
    fit: RidgeFit
    coefficients: Any
    selection: Selection


def regress_on_lattice(
    moments: Moments,
    *,
    basis: Any,
    alpha: float | str | None,
    gradient_weight: float,
    cut: float,
) -> LatticeRegression:
    """Solve modes of a regression for a kernel and a penalty, each given or chosen by the folds."""
    lattice = lattice_of(moments)
    orders = _given_orders(basis, lattice)
    release()  # what the pass over the rows has left
    own = _given_kernel(basis)
    if own is not None and not own.automatic:
        advise_reach(own, lattice)
    found = regress(
        moments,
        kernel=own,
        orders=orders,
        alpha=alpha,
        gradient_weight=gradient_weight,
        cut=cut,
        threads=_in_threads,
    )
    table = tuple(
        Candidate(name, factor, penalty, explained, errors, PARTS, "" if place else "best")
        for place, (name, factor, penalty, explained, errors) in enumerate(found.table)
    )
    selection = Selection(
        table,
        {"basis": _as_given(lattice, orders, found.kernel)},
        rows=moments.count,
        median=float(lattice.period.max()),
        edge=found.edge,
        reason="" if table else "every parameter was given, or there are no folds",
    )
    return LatticeRegression(found.problem, found.fit, found.coefficients, selection)
