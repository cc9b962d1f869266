"""What an automatic choice decides for an estimator: kernel, landmarks, spread, penalty; and the table behind it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import landmarks as choosing
from daskspectral.basis import Basis
from daskspectral.choosing.landmarks import advise_copies, given_points, rows_by
from daskspectral.choosing.pilot import FOLDS, ROWS, Pilot
from daskspectral.choosing.rivals import SPLIT, Halves, Kind, Rival, network_candidate
from daskspectral.choosing.search import PENALTIES, TIMES, TRIAL_LANDMARKS, Family, Search, SideFunctions, families_of
from daskspectral.choosing.side import Side
from daskspectral.data.source import Source
from daskspectral.engine.memory import local_threads
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.kernels import Kernel, Periodic
from daskspectral.moments.trial import Setting, Split, half_splits
from daskspectral.operators import Operator
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solvers import Penalised, Solving

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
BLOCK_ROWS = 2048  # of the basis functions' buffers
LEAST_DISTINCT = 0.5  # of the rows
LEAST_HALVED = 4000  # rows of a pilot, of which half train a network
LEAST_ROWS = 40  # of a pilot: with fewer there is nothing to compare by
PLAIN = 0.5  # of the median distance, where nothing can be compared
SPREAD = 0.3  # J of functions whose gradients count
TWO_SIDED = (*PENALTIES, 0.01, 100.0)


@dataclass(frozen=True, eq=False)
class Open:
    """What an estimator leaves to the data: the functions of each side, and "auto" for numbers.

    `right` is None where the right functions are the left ones. Functions of other kinds are compared with a kernel
    that stands `alone`, of which nothing is given, all kinds where `everything` is asked for; with `network` a network.
    """

    operator: Operator
    left: Side
    right: Side | None
    components: int
    solver: Solving
    dtype: str
    alone: bool = False
    everything: bool = False
    network: bool = False


def decide(source: Source, wanted: Open, rng: np.random.Generator) -> Selection:
    """The table of the candidates, with the parameters chosen by it: kernel, landmarks, spread, penalty.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid, or all are equal,
    LinAlgError where no candidate converges.
    """
    operator = wanted.operator
    judge = operator.comparable
    blocks = source.lagged is not None
    pilot = Pilot.draw(source, judge or operator, rng, blocks=blocks, halves=1 + wanted.network)
    advise_copies(pilot.raw["x"], source)
    halves = None
    if wanted.network and pilot.rows >= LEAST_HALVED:
        halves = Halves.of(pilot, rng)
        pilot = halves.seen
    if operator.derivative_order > 0:
        _advise_distinct(pilot)
    search = _search(pilot, wanted, rng)
    candidates: tuple[Candidate, ...] = ()
    edge = why = ""
    if judge is None:
        why = f"{operator.name} has no score"
    elif pilot.rows < LEAST_ROWS or pilot.folds < 2:
        why = f"{pilot.rows} rows are too few, {LEAST_ROWS} at least are needed"
    if why:
        setting = Setting(0, PLAIN, search.penalties[0])
        logger.info("nothing was compared (%s): %s", why, search.leading.kernel(setting))
    else:
        splits = half_splits(pilot.folds, TIMES, rng)
        judged, edge = search.run(splits, rng)
        if len(search.failed) == len(judged):
            raise np.linalg.LinAlgError(f"no candidate of the choice converged:\n{search.failures}")
        setting = judged[0][0]
        candidates = search.table(judged)
        logger.info("chosen among %d candidates: %s", len(candidates), candidates[0].kernel)
        rivals = [] if not wanted.alone else _rivals_of(search, wanted, splits, rng)
        better, candidates = _best(halves, search, judged[0], rivals, candidates, wanted, rng)
        if better is not None:
            return Selection(candidates, {"basis": better}, pilot.rows, search.leading.families[0].median, "", why)
    found: dict[str, Any] = {}
    for functions, side in ((search.left, wanted.left), (search.right, wanted.right)):
        if functions is not None and side is not None and side.landmarks is not None:
            kernel = functions.kernel(setting)
            raw = _landmarks(side, functions.family(setting), kernel, pilot, rng)
            spread = 0.0 if side.prefix else search.spread
            chosen = replace(side.landmarks, kernel=_plain(kernel, side.landmarks.kernel), points=raw, spread=spread)
            found[f"{side.prefix}basis"] = side.vanishing.of(chosen) if side.vanishing is not None else chosen
    if setting.penalty is not None:
        found["solver"] = Penalised(setting.penalty)
    undercut = None if why else search.undercut(judged)
    return Selection(candidates, found, pilot.rows, search.leading.families[0].median, edge, why, undercut)


def _rivals_of(search: Search, wanted: Open, splits: Sequence[Split], rng: np.random.Generator) -> list[Rival]:
    """The best functions of each other kind that suits the operator and the rows."""
    operator, dimension = search.operator, search.pilot.points("x").shape[1]
    periods = wanted.left.periods_in(search.pilot.source, wanted.operator)
    kinds = [kind for kind in Kind.family() if kind.takes(operator, dimension, periods, wanted.everything)]
    found = (kind.rival(search, splits, periods, rng) for kind in kinds)
    return [rival for rival in found if rival is not None]


def _best(
    halves: Halves | None,
    search: Search,
    best: tuple[Setting, Array],
    rivals: Sequence[Rival],
    table: tuple[Candidate, ...],
    wanted: Open,
    rng: np.random.Generator,
) -> tuple[Basis | None, tuple[Candidate, ...]]:
    """The basis that is better than the best kernel at landmarks, None where none is, and the table with all of them.

    Where a network is among them, all are fitted to one half of a pilot and judged on the other, which none saw.
    """
    values: dict[str, Array] = {"landmarks": best[1], **{rival.kind: rival.values for rival in rivals}}
    bases: dict[str, Basis | None] = {"landmarks": None, **{rival.kind: rival.basis for rival in rivals}}
    name = ""
    if halves is not None:
        whole, landmark = halves.whole, halves.marked(search.landmark)
        seed = int(rng.integers(2**31))
        trained = network_candidate(halves, wanted.components, search.count, wanted.left.completed, seed)
        bases["network"], values["network"], name = trained
        values["landmarks"] = replace(search, pilot=whole, landmark=landmark).judge([best[0]], [SPLIT])[best[0]]
        values |= {rival.kind: rival.again(whole, landmark, SPLIT) for rival in rivals}
    scores = search.scores(values)
    logger.info("scores: %s", ", ".join(f"{name} {score:.5g}" for name, score in scores.items()))
    shown: dict[str, Candidate] = {"landmarks": table[0]}
    if halves is not None:
        held_out = "on the half that no basis saw"
        shown["landmarks"] = replace(table[0], score=scores["landmarks"], why=f"best at landmarks, {held_out}")
        shown["network"] = Candidate.of(name, 1.0, 1.0, scores["network"], values["network"], held_out)
    shown |= {rival.kind: rival.candidate(scores[rival.kind], f"the best {rival.kind}") for rival in rivals}
    ahead = {kind.name: kind.ahead for kind in Kind.family()}
    order = sorted(shown, key=lambda kind: -scores[kind] - ahead.get(kind, 0.0))
    return bases[order[0]], (*(shown[kind] for kind in order), *table[1:])


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """The memory of a choice for bases of `size` functions: the pilot's rows, and a trial's sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


def _landmarks(side: Side, family: Family, kernel: Kernel, pilot: Pilot, rng: np.random.Generator) -> Array:
    """The landmarks of one side in the columns of the data: given, or rows of the pilot, as many as are wanted."""
    assert side.landmarks is not None
    rows, method = family.rows, side.landmarks.method
    if rows is None:
        return np.asarray(side.landmarks.points)
    points, count = pilot.points(side.view), min(side.drawn, pilot.rows)
    if method in choosing.BY_KERNEL:
        rows = rows_by(method, points, count, kernel, rng)
    others = np.setdiff1d(np.arange(pilot.rows), rows)[: count - len(rows)]
    return np.asarray(pilot.raw[side.view][np.concatenate([rows, others])])


def _search(pilot: Pilot, wanted: Open, rng: np.random.Generator) -> Search:
    """What is compared. Landmarks are rows of one half of the pilot: the other half judges.

    Methods that spread landmarks leave rows close to some landmark, where functions are flat: on these a basis would
    seem better than it is.
    """
    operator = pilot.operator
    pool = np.sort(rng.permutation(pilot.rows)[: (pilot.rows + 1) // 2])

    def functions(side: Side) -> SideFunctions:
        landmarks = side.landmarks

        def drawn(kernel: Kernel) -> Family:
            assert landmarks is not None
            embedded = kernel.embedded(pilot.points(side.view))
            median = _median(embedded, rng)
            given = given_points(landmarks, pilot.source, side.view)
            if given is not None:
                return Family(kernel, median, pilot.source.preparations[side.view](given))
            method = "kmeans++" if landmarks.method in choosing.BY_KERNEL else landmarks.method
            rows = pool[choosing.choose(method, embedded[pool], min(side.drawn, len(pool)), rng)]
            return Family(kernel, median, pilot.points(side.view)[rows], rows)

        found = SideFunctions(side.laid, drawn, side.constant, side.given)
        if landmarks is not None:
            periods = side.periods_in(pilot.source, operator)
            found.families.extend(map(drawn, families_of(landmarks.kernel, operator, periods)))
        return found

    left = functions(wanted.left)
    right = None if wanted.right is None else functions(wanted.right)
    own = wanted.left.landmarks
    still = operator.derivative_order == 0 or operator.on_manifold or right is not None
    still = still or (own is not None and own.periods is not None)
    usual = TWO_SIDED if operator.solver.two_sided else PENALTIES
    given = wanted.solver.penalty
    penalties: Any = tuple(c * pilot.repeats for c in usual) if given == "auto" else (given,)
    spread = 0.0 if still or own is None else SPREAD
    if own is not None and not isinstance(own.spread, str):
        spread = own.spread
    metrics = not still and operator.derivative_order == 1 and own is not None and not isinstance(own.kernel, Kernel)
    landmark = np.zeros(pilot.rows, dtype=bool)
    if any(side is not None and side.drawn for side in (wanted.left, wanted.right)):
        landmark[pool] = True
    return Search(pilot, left, right, landmark, penalties, float(spread), metrics, wanted.components, wanted.dtype)


def _advise_distinct(pilot: Pilot) -> None:
    """Warn where rows coincide: eigenvalues of isolated points are all 0."""
    points = np.ascontiguousarray(pilot.points("x"))
    distinct = len(np.unique(points.view(np.dtype((np.void, points.strides[0])))))
    if distinct < LEAST_DISTINCT * pilot.rows:
        warn_user(
            f"of {pilot.rows} rows only {distinct} differ: a function may take any values at separate points without a "
            "slope at one of them, and eigenvalues fall to 0 as the kernel narrows. Leave out columns of categories; "
            "rows that are copies of others are better given once, with sample_weight",
            TrustWarning,
        )


def _median(points: Array, rng: np.random.Generator) -> float:
    """The median distance, of distinct points where most of them coincide. Raises ValueError where all are equal."""
    found = choosing.median_of_distinct(points, rng)
    if found == 0:
        raise ValueError(
            f"expected rows that differ, received {len(points)} that are all {points[0].tolist()}: a constant has "
            "no spectrum; choose other columns or rows"
        )
    return found


def _plain(kernel: Kernel, given: Any) -> Kernel:
    """The kernel as an estimator takes it: without periods that were added to it."""
    inner = kernel.kernel if isinstance(kernel, Periodic) and not isinstance(given, Periodic) else kernel
    return inner
