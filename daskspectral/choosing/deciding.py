"""What an automatic choice decides for an estimator: kernel, landmarks, spread, penalty; and the table behind it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.choosing.landmarks import advise_copies
from daskspectral.choosing.pilot import FOLDS, ROWS, Pilot
from daskspectral.choosing.rivals import Kind, Rival
from daskspectral.choosing.search import (
    PENALTIES,
    TIMES,
    TRIAL_LANDMARKS,
    Family,
    LandmarkSearch,
    SideFunctions,
    families_of,
)
from daskspectral.choosing.side import Open, Side
from daskspectral.data.source import Source
from daskspectral.engine.memory import local_threads
from daskspectral.errors import Rank, TrustWarning, warn_user
from daskspectral.kernels import Kernel
from daskspectral.moments.search import Search, Setting
from daskspectral.moments.trial import half_splits
from daskspectral.operators import Operator
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solvers import Penalised

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
BLOCK_ROWS = 2048  # of the basis functions' buffers
LEAST_ROWS, LEAST_DISTINCT = 40, 20  # of a pilot, and of those that differ: with fewer there is nothing to compare by
PLAIN = 0.5  # of the median distance, where nothing can be compared
TWO_SIDED = (*PENALTIES, 0.01, 100.0)


def decide(source: Source, wanted: Open, rng: np.random.Generator) -> Selection:
    """The table of the candidates, with the parameters chosen by it: kernel, landmarks, spread, penalty.

    Functions of other kinds take part where nothing of the left ones is given. Raises InvalidRowError for an invalid
    row (on_invalid="raise"), ValueError where no row is valid, or all are equal, LinAlgError where no candidate
    converges.
    """
    operator = wanted.operator
    periods = wanted.left.periods_in(source, operator) if wanted.alone else None
    pilot = Pilot.draw(source, wanted.judge, rng, blocks=source.lagged is not None)
    advise_copies(pilot.raw["x"], source)
    if pilot.repeated is not None:
        warn_user(
            f"of {pilot.rows} rows only {pilot.distinct} differ, and equal rows tell nothing of slopes: kernels are "
            "compared at points that they did not see, so that the values are those of a smooth distribution of "
            "which the rows are rounded. Leave out columns of categories; give copies of rows once, with sample_weight",
            TrustWarning,
            Rank.DATA,
        )
    search = _search(pilot, wanted, rng)
    candidates: tuple[Candidate, ...] = ()
    median, edge, undercut = search.leading.families[0].median, "", None
    why = "" if operator.comparable is not None else f"{operator.name} has no score"
    if not why and (pilot.rows < LEAST_ROWS or pilot.distinct < LEAST_DISTINCT or pilot.folds < 2):
        what, least = ("rows", LEAST_ROWS) if pilot.repeated is None else ("distinct rows", LEAST_DISTINCT)
        why = f"{pilot.distinct} {what} are too few, {least} at least are needed"
    if why:
        setting = Setting(0, PLAIN, search.penalties[0])
        logger.info("nothing was compared (%s): %s", why, search.leading.kernel(setting))
    else:
        splits = half_splits(pilot.folds, TIMES, rng)
        final, first, edge = search.run(splits, rng)
        setting, undercut = final.order[0], search.undercut(final)
        kinds = [kind for kind in Kind.family() if wanted.alone and kind.takes(wanted, source.dimension, periods)]
        rivals = {kind: kind.rival(search, splits, periods, rng) for kind in kinds}
        better, candidates = _best(search, final, {kind: rival for kind, rival in rivals.items() if rival is not None})
        others = zip(first.order, search.leading.table(first, wanted.components), strict=True)
        candidates += tuple(candidate for s, candidate in others if s not in final.found)
        logger.info("chosen among %d candidates: %s", len(candidates), candidates[0].kernel)
        if better is not None:
            return Selection(candidates, {"basis": better}, pilot.rows, median)
    parameters: dict[str, Any] = {} if setting.penalty is None else {"solver": Penalised(setting.penalty)}
    for functions in search.sides:
        side = functions.side
        if side.landmarks is not None:
            kernel = functions.kernel(setting)
            raw = functions.family(setting).raw(kernel, side, pilot, rng, filled=pilot.repeated is None)
            parameters[f"{side.prefix}basis"] = side.given_at(raw, kernel, 0.0 if side.prefix else search.spread)
    return Selection(candidates, parameters, pilot.rows, median, edge, why, undercut)


def _best(
    search: LandmarkSearch, final: Search, rivals: Mapping[Kind, Rival]
) -> tuple[Basis | None, tuple[Candidate, ...]]:
    """Return the basis that is better than the best kernel at landmarks, if one is, and the table with all of them."""
    best, *others = search.leading.table(final, search.open.components, "compared in all splits")
    values: dict[Kind | None, Array] = {None: final.found[final.order[0]]}
    values |= {kind: rival.values for kind, rival in rivals.items()}
    scores = final.evaluator.totals(values)
    shown: dict[Kind | None, Candidate] = {None: best}
    for kind, own in rivals.items():
        why = f"the best {kind.name}"
        shown[kind] = Candidate.of(own.shown, own.factor, own.penalty, scores[kind], own.values, why)
    order = sorted(shown, key=lambda kind: -scores[kind] - (0.0 if kind is None else kind.ahead))
    shown[order[0]] = replace(shown[order[0]], why="best")
    basis = None if order[0] is None else rivals[order[0]].basis
    return basis, (*(shown[kind] for kind in order), *others)


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """The memory of a choice for bases of `size` functions: the pilot's rows, and a trial's sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


def _search(pilot: Pilot, wanted: Open, rng: np.random.Generator) -> LandmarkSearch:
    """What is compared. Landmarks are rows of one half of the pilot: the other half judges.

    Methods that spread landmarks leave rows close to some landmark, where functions are flat: on these a basis would
    seem better than it is. Raises ValueError where all rows are equal.
    """
    operator = pilot.operator
    chosen = rng.permutation(pilot.distinct)[: (pilot.distinct + 1) // 2]
    pool = np.sort(chosen) if pilot.repeated is None else np.flatnonzero(np.isin(pilot.repeated, chosen))

    def drawn(side: Side, kernel: Kernel) -> Family:
        found = Family.of(kernel, side, pilot, rng, pool)
        if found.median == 0:
            points = pilot.points(side.view)
            raise ValueError(
                f"expected rows that differ, received {len(points)} that are all {points[0].tolist()}: a constant has "
                "no spectrum; choose other columns or rows"
            )
        return found

    def functions(side: Side) -> SideFunctions:
        own, periods = side.landmarks, None if side.landmarks is None else side.periods_in(pilot.source, operator)
        kernels = () if own is None else families_of(own.kernel, operator.derivative_order, periods)
        return SideFunctions(side, [drawn(side, kernel) for kernel in kernels])

    left, right = functions(wanted.left), None if wanted.right is None else functions(wanted.right)
    usual = TWO_SIDED if operator.solver.two_sided else PENALTIES
    given = wanted.solver.penalty
    penalties: Any = tuple(c * pilot.repeats for c in usual) if given == "auto" else (given,)
    landmark = np.zeros(pilot.rows, dtype=bool)
    landmark[pool] = any(side.drawn for side in wanted.sides)
    return LandmarkSearch(pilot, wanted, left, right, landmark, partial(drawn, wanted.left), penalties)
