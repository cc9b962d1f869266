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
from daskspectral.moments.trial import Setting, half_splits
from daskspectral.operators import Operator
from daskspectral.passes.automatic import (
    PENALTIES,
    TIMES,
    TRIAL_LANDMARKS,
    Family,
    Functions,
    Search,
    families_of,
)
from daskspectral.passes.cells_trial import CellsRival, cells_candidate
from daskspectral.passes.copies import advise_copies
from daskspectral.passes.lattice_trial import LatticeRival, lattice_candidate
from daskspectral.passes.network_trial import SPLIT, Halves, network_candidate
from daskspectral.passes.parameters import given_landmarks
from daskspectral.passes.pilot import FOLDS, ROWS, Pilot
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.passes.side import Side

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
BLOCK_ROWS = 2048  # of the basis functions' buffers
LEAST_DISTINCT = 0.5  # of the rows
LEAST_HALVED = 4000  # rows of a pilot, of which half train a network
LEAST_ROWS = 40  # of a pilot: with fewer there is nothing to compare by
TIE = 0.01  # of scores, below which the lattice is taken, whose pass over all rows costs a hundredth
PLAIN = 0.5  # of the median distance, where nothing can be compared
SPREAD = 0.3  # J of functions whose gradients count
TWO_SIDED = (*PENALTIES, 0.01, 100.0)


@dataclass(frozen=True, eq=False)
class Open:
    """What an estimator leaves to the data: the functions of each side, and "auto" for numbers.

    `right` is None where the right functions are the left ones. `penalty` is None for a solution by rank cut.
    With `lattice` a Fourier lattice is compared with kernels at landmarks, with `network` a network, with `cells` soft
    cells.
    """

    left: Side
    right: Side | None
    components: int
    spread: float | str
    penalty: float | str | None
    dtype: str
    lattice: bool = False
    network: bool = False
    cells: bool = False


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

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid, or all are equal,
    LinAlgError where no candidate converges.
    """
    judge = operator.comparable
    options: dict[str, Any] = {"blocks": source.lagged is not None, "on_invalid": on_invalid, "progress": progress}
    pilot = Pilot.draw(source, judge or operator, rng, **options, halves=1 + wanted.network)
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
        rival: LatticeRival | CellsRival | None = None
        if wanted.cells:
            rival = cells_candidate(search, splits, rng)
        elif wanted.lattice:
            periods = wanted.left.periods_in(source, operator)
            rival = lattice_candidate(pilot, search, splits, wanted.components, periods)
        better, candidates = _rivals(halves, search, judged[0], rival, candidates, wanted, rng, progress)
        if better is not None:
            return Selection(candidates, {"basis": better}, pilot.rows, search.leading.families[0].median, "", why)
    found: dict[str, Any] = {}
    for functions, side in ((search.left, wanted.left), (search.right, wanted.right)):
        if functions is not None and side is not None and functions.basis is None:
            kernel = functions.kernel(setting)
            found[f"{side.prefix}kernel"] = _plain(kernel, side.kernel)
            found[f"{side.prefix}landmarks"] = _landmarks(side, functions.family(setting), kernel, pilot, rng)
            if not side.prefix:
                found |= {"spread": search.spread, "n_landmarks": len(found["landmarks"])}
    if wanted.penalty is not None:
        found["penalty"] = setting.penalty
    undercut = None if why else search.undercut(judged)
    return Selection(candidates, found, pilot.rows, search.leading.families[0].median, edge, why, undercut)


def _rivals(
    halves: Halves | None,
    search: Search,
    best: tuple[Setting, Array],
    rival: LatticeRival | CellsRival | None,
    table: tuple[Candidate, ...],
    wanted: Open,
    rng: np.random.Generator,
    progress: bool | None,
) -> tuple[Basis | None, tuple[Candidate, ...]]:
    """The basis that is better than the best kernel at landmarks, None where none is, and the table with all of them.

    Where a network is among them, all are fitted to one half of a pilot and judged on the other, which none saw.
    """
    values: dict[str, Array] = {"landmarks": best[1]}
    if rival is not None:
        values[rival.name] = rival.values
    network = None
    if halves is not None:
        whole, landmark = halves.whole, halves.marked(search.landmark)
        network = network_candidate(
            halves, wanted.components, search.count, wanted.left.completed, int(rng.integers(2**31)), progress
        )
        values["landmarks"] = replace(search, pilot=whole, landmark=landmark).judge([best[0]], [SPLIT])[best[0]]
        if rival is not None:
            values[rival.name] = rival.judged(whole, landmark, wanted.components, SPLIT)
        values["network"] = network.values
    scores = search.scores(values)
    logger.info("scores: %s", ", ".join(f"{name} {score:.5g}" for name, score in scores.items()))
    shown: dict[str, Candidate] = {"landmarks": table[0]}
    if network is not None:
        held_out = "on the half that no basis saw"
        shown["landmarks"] = replace(table[0], score=scores["landmarks"], why=f"best at landmarks, {held_out}")
        shown["network"] = network.candidate(scores["network"], held_out)
    if rival is not None:
        shown[rival.name] = rival.candidate(scores[rival.name], f"the best {rival.name}")
    ranks = {name: score + TIE * (name == "lattice") for name, score in scores.items()}
    order = sorted(shown, key=lambda name: -ranks[name])
    others = tuple(shown[name] for name in order)
    found: dict[str, Basis | None] = {"landmarks": None}
    if rival is not None:
        found[rival.name] = rival.basis
    if network is not None:
        found["network"] = network.basis
    return found[order[0]], (*others, *table[1:])


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """The memory of a choice for bases of `size` functions: the pilot's rows, and a trial's sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


def _landmarks(side: Side, family: Family, kernel: Kernel, pilot: Pilot, rng: np.random.Generator) -> Array:
    """The landmarks of one side in the columns of the data: given, or rows of the pilot, as many as are wanted."""
    if family.rows is None:
        return np.asarray(side.landmarks)
    points, count = pilot.points(side.view), min(side.count, pilot.rows)
    rows = family.rows
    if side.landmarks in choosing.BY_KERNEL:
        rows = choosing.choose(side.landmarks, points, count, rng, gram=kernel, diagonal=kernel.diagonal)
    others = np.setdiff1d(np.arange(pilot.rows), rows)[: count - len(rows)]
    return np.asarray(pilot.raw[side.view][np.concatenate([rows, others])])


def _search(pilot: Pilot, wanted: Open, rng: np.random.Generator) -> Search:
    """What is compared. Landmarks are rows of one half of the pilot: the other half judges.

    Methods that spread landmarks leave rows close to some landmark, where functions are flat: on these a basis would
    seem better than it is.
    """
    operator = pilot.operator
    pool = np.sort(rng.permutation(pilot.rows)[: (pilot.rows + 1) // 2])

    def functions(side: Side) -> Functions:
        def drawn(kernel: Kernel) -> Family:
            embedded = kernel.embedded(pilot.points(side.view))
            median = _median(embedded, rng)
            if not isinstance(side.landmarks, str):
                preparation = pilot.source.preparations[side.view]
                width = pilot.source.width(side.view)
                raw = given_landmarks(side.landmarks, width, label_of(side.view), preparation.columns)
                return Family(kernel, median, preparation(raw))
            method = "kmeans++" if side.landmarks in choosing.BY_KERNEL else side.landmarks
            rows = pool[choosing.choose(method, embedded[pool], min(side.count, len(pool)), rng)]
            return Family(kernel, median, pilot.points(side.view)[rows], rows)

        found = Functions(side.laid, drawn, side.constant, side.given)
        if side.given is None:
            periods = side.periods_in(pilot.source, operator)
            found.families.extend(map(drawn, families_of(side.kernel, operator, periods)))
        return found

    left = functions(wanted.left)
    right = None if wanted.right is None else functions(wanted.right)
    still = operator.derivative_order == 0 or operator.on_manifold or right is not None
    still = still or (left.basis is None and wanted.left.periods is not None)
    usual = TWO_SIDED if operator.solver.two_sided else PENALTIES
    penalties: Any = tuple(c * pilot.repeats for c in usual) if wanted.penalty == "auto" else (wanted.penalty,)
    spread = wanted.spread if not isinstance(wanted.spread, str) else 0.0 if still else SPREAD
    metrics = not still and operator.derivative_order == 1 and not isinstance(wanted.left.kernel, Kernel)
    landmark = np.zeros(pilot.rows, dtype=bool)
    if any(
        isinstance(side.landmarks, str)
        for side in (wanted.left, wanted.right)
        if side is not None and side.basis is None
    ):
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
