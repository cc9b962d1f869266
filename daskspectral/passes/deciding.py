"""What an automatic choice decides for an estimator: kernel, landmarks, spread, penalty; and the table behind it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import landmarks as choosing
from daskspectral.basis import Basis
from daskspectral.data.source import Source, label_of
from daskspectral.engine.memory import local_threads
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.kernels import Kernel, Periodic
from daskspectral.moments.trial import half_splits
from daskspectral.operators import Operator
from daskspectral.passes.automatic import (
    PENALTIES,
    SPREADS,
    TIMES,
    TRIAL_LANDMARKS,
    Functions,
    Search,
    Setting,
    families_of,
)
from daskspectral.passes.copies import advise_copies
from daskspectral.passes.lattice_trial import Rival, judged_lattice, lattice_candidate
from daskspectral.passes.network_trial import SPLIT, Halves, network_candidate
from daskspectral.passes.parameters import given_landmarks
from daskspectral.passes.pilot import FOLDS, ROWS, Pilot
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.passes.side import Side

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
BLOCK_ROWS = 2048  # of the basis functions' buffers
MOST_OF_POOL = 0.1  # of the rows, up to which landmarks are chosen among all of them
LEAST_DISTINCT = 0.5  # of the rows
LEAST_HALVED = 4000  # rows of a pilot, of which half train a network
LEAST_ROWS = 40  # of a pilot: with fewer there is nothing to compare by
TIE = 0.01  # of scores, below which the lattice is taken, whose pass over all rows costs a hundredth
PLAIN = Setting(-1, 0.5)  # where nothing can be compared: the smooth kernel at half the median distance


@dataclass(frozen=True, eq=False)
class Open:
    """What an estimator leaves to the data: the functions of each side, and "auto" for numbers.

    `right` is None where the right functions are the left ones. `penalty` is None for a solution by rank cut.
    With `lattice` a Fourier lattice is compared with kernels at landmarks, with `network` a network.
    """

    left: Side
    right: Side | None
    components: int
    spread: float | str
    penalty: float | str | None
    dtype: str
    lattice: bool = False
    network: bool = False


def decide(
    source: Source,
    operator: Operator,
    wanted: Open,
    rng: np.random.Generator,
    *,
    on_invalid: str,
    progress: bool | None,
) -> Selection:
    """The table of the candidates, with the parameters chosen by it: kernel, landmarks, spread, penalty.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid, or all are equal.
    """
    judge = operator.comparable
    blocks = source.lagged is not None
    options: dict[str, Any] = {"blocks": blocks, "on_invalid": on_invalid, "progress": progress}
    pilot = Pilot.draw(source, judge or operator, rng, **options, halves=1 + wanted.network)
    advise_copies(pilot.raw["x"], source)
    halves = None
    if wanted.network and pilot.rows >= LEAST_HALVED:
        halves = Halves.of(pilot, rng)
        pilot = halves.seen
    if operator.derivative_order > 0:
        _advise_distinct(pilot)
    search, landmarks = _search(pilot, wanted, rng)
    comparable = judge is not None and pilot.rows >= LEAST_ROWS and pilot.folds > 1
    why = ""
    if not comparable:
        penalty = search.penalties[0]
        setting = Setting(search.families - 1, PLAIN.factor, search.spreads[0], penalty)
        candidates: tuple[Candidate, ...] = ()
        edge = ""
        why = f"{operator.name} has no score"
        if judge is not None:
            why = f"{pilot.rows} rows are too few, {LEAST_ROWS} at least are needed"
        logger.info("nothing was compared (%s): %s", why, search.leading.kernel(setting))
    else:
        splits = half_splits(pilot.folds, TIMES, rng)
        judged, edge = search.run(splits, rng)
        setting = judged[0][0]
        candidates = search.table(judged)
        logger.info("chosen among %d candidates: %s", len(candidates), candidates[0].kernel)
        rival = None
        if wanted.lattice:
            periods = wanted.left.periods_in(source, operator)
            rival = lattice_candidate(pilot, search, splits, wanted.components, periods)
        better, candidates = _rivals(halves, search, judged[0], rival, candidates, wanted, rng, progress)
        if better is not None:
            return Selection(candidates, {"basis": better}, pilot.rows, search.leading.median, "", why)
    found: dict[str, Any] = {}
    for functions, side, of in ((search.left, wanted.left, "left"), (search.right, wanted.right, "right")):
        if functions is not None and side is not None and functions.basis is None:
            kernel, points = functions.kernel(setting), landmarks[of]
            found[f"{side.prefix}kernel"] = _plain(kernel, side.kernel)
            found[f"{side.prefix}landmarks"] = points.chosen(kernel, side.view, pilot, rng)
            if of == "left":
                found |= {"spread": setting.spread, "n_landmarks": len(found["landmarks"])}
    if wanted.penalty is not None:
        found["penalty"] = setting.penalty
    return Selection(candidates, found, pilot.rows, search.leading.median, edge, why)


def _rivals(
    halves: Halves | None,
    search: Search,
    best: tuple[Setting, Array],
    lattice: Rival | None,
    table: tuple[Candidate, ...],
    wanted: Open,
    rng: np.random.Generator,
    progress: bool | None,
) -> tuple[Basis | None, tuple[Candidate, ...]]:
    """The basis that is better than the best kernel at landmarks, None where none is, and the table with all of them.

    Where a network is among them, all are fitted to one half of a pilot and judged on the other, which none saw.
    """
    values: dict[str, Array] = {"landmarks": best[1]}
    if lattice is not None:
        values["lattice"] = lattice.values
    network = None
    if halves is not None:
        whole, landmark = halves.whole, halves.marked(search.landmark)
        network = network_candidate(
            halves, wanted.components, search.count, wanted.left.completed, int(rng.integers(2**31)), progress
        )
        values["landmarks"] = replace(search, pilot=whole, landmark=landmark).judge([best[0]], [SPLIT])[best[0]]
        if lattice is not None:
            values["lattice"] = judged_lattice(lattice, whole, landmark, wanted.components, SPLIT)
        values["network"] = network.values
    scores = search.scores(values)
    logger.info("scores: %s", ", ".join(f"{name} {score:.5g}" for name, score in scores.items()))
    shown: dict[str, Candidate] = {"landmarks": table[0]}
    if network is not None:
        held_out = "on the half that no basis saw"
        shown["landmarks"] = replace(table[0], score=scores["landmarks"], why=f"best at landmarks, {held_out}")
        shown["network"] = network.candidate(scores["network"], held_out)
    if lattice is not None:
        shown["lattice"] = lattice.candidate(scores["lattice"], "the lattice, by prior and penalty")
    ranks = {name: score + TIE * (name == "lattice") for name, score in scores.items()}
    order = sorted(shown, key=lambda name: -ranks[name])
    others = tuple(shown[name] for name in order)
    found: dict[str, Basis | None] = {"landmarks": None}
    if lattice is not None:
        found["lattice"] = lattice.lattice
    if network is not None:
        found["network"] = network.basis
    return found[order[0]], (*others, *table[1:])


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """The memory of a choice for bases of `size` functions: the pilot's rows, and a trial's sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


@dataclass(frozen=True, eq=False)
class _Landmarks:
    """Landmarks of one side: given, or chosen rows of the pilot, or a method that needs the kernel first."""

    given: Array | None
    method: str
    count: int
    rows: NDArray[np.intp]

    def chosen(self, kernel: Kernel, view: str, pilot: Pilot, rng: np.random.Generator) -> Array:
        """The landmarks in the columns of the data."""
        if self.given is not None:
            return self.given
        rows = self.rows
        if self.method in choosing.BY_KERNEL:
            points = pilot.points(view)
            rows = choosing.choose(
                self.method,
                points,
                min(self.count, len(points)),
                rng,
                gram=lambda a, b: kernel.values(b, a),
                diagonal=kernel.diagonal,
            )
        return np.asarray(pilot.raw[view][rows])


def _search(pilot: Pilot, wanted: Open, rng: np.random.Generator) -> tuple[Search, dict[str, _Landmarks]]:
    """What is compared, and the landmarks of both sides: all of them, of which a trial has the first."""
    operator = pilot.operator
    landmarks: dict[str, _Landmarks] = {}
    landmark = np.zeros(pilot.rows, dtype=bool)
    counts = [side.count for side in (wanted.left, wanted.right) if side is not None and side.drawn]
    pool = _pool(pilot.rows, max(counts, default=0), rng)

    def functions(side: Side, of: str) -> Functions:
        if side.given is not None:
            return Functions((), np.empty((0, 0)), 0.0, side.laid, side.constant, side.given)
        families = families_of(side.kernel, operator, side.periods_in(pilot.source, operator))
        points = pilot.points(side.view)
        embedded = families[0].embedded(points)
        median = _median(embedded, rng)
        if isinstance(side.landmarks, str):
            method = "kmeans++" if side.landmarks in choosing.BY_KERNEL else side.landmarks
            rows = pool[choosing.choose(method, embedded[pool], min(side.count, len(pool)), rng)]
            landmark[pool if len(pool) < pilot.rows else rows[:TRIAL_LANDMARKS]] = True
            others = np.setdiff1d(np.arange(pilot.rows), rows)[: max(0, min(side.count, pilot.rows) - len(rows))]
            landmarks[of] = _Landmarks(None, side.landmarks, side.count, np.concatenate([rows, others]))
            points = points[rows[:TRIAL_LANDMARKS]]
        else:
            preparation = pilot.source.preparations[side.view]
            width = pilot.source.width(side.view)
            raw = given_landmarks(side.landmarks, width, label_of(side.view), preparation.columns)
            landmarks[of] = _Landmarks(raw, "", len(raw), np.empty(0, dtype=np.intp))
            points = preparation(raw)[:TRIAL_LANDMARKS]
        return Functions(families, points, median, side.laid, side.constant)

    left = functions(wanted.left, "left")
    right = None if wanted.right is None else functions(wanted.right, "right")
    periodic = left.basis is None and wanted.left.periods is not None
    still = operator.derivative_order == 0 or operator.on_manifold or periodic or right is not None
    usual = tuple(c * pilot.repeats for c in PENALTIES)
    penalties: Any = (wanted.penalty,) if wanted.penalty != "auto" else usual
    spreads: Any = (wanted.spread,) if wanted.spread != "auto" else (0.0,) if still else (0.0, *SPREADS)
    return Search(pilot, left, right, landmark, penalties, spreads, wanted.components, wanted.dtype), landmarks


def _pool(rows: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The rows of a pilot among which landmarks of a trial are chosen: half of them where that leaves few others.

    Methods that spread landmarks leave rows close to some landmark, where functions are flat: on these a basis would
    seem better than it is. Rows that had no part in the choice judge it.
    """
    if count <= MOST_OF_POOL * rows:
        return np.arange(rows)
    return np.sort(rng.permutation(rows)[: min(max(count, rows // 2), rows - rows // 4)])


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
