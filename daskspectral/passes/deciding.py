"""What an automatic choice decides for an estimator: kernel, landmarks, spread, penalty; and the table behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import landmarks as choosing
from daskspectral.basis import Basis
from daskspectral.data.source import Source, label_of
from daskspectral.engine.memory import local_threads
from daskspectral.kernels import Kernel, Periodic
from daskspectral.operators import Operator
from daskspectral.passes.automatic import PENALTIES, SPREADS, TRIAL_LANDMARKS, Search, Setting, families_of
from daskspectral.passes.parameters import given_landmarks
from daskspectral.passes.pilot import FOLDS, ROWS, Pilot
from daskspectral.passes.selection import Candidate, Selection

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
BLOCK_ROWS = 2048  # of the basis functions' buffers
MOST_OF_POOL = 0.1  # of the rows, up to which landmarks are chosen among all of them
LEAST_ROWS = 40  # of a pilot: with fewer there is nothing to compare by
PLAIN = Setting(-1, 0.5)  # where nothing can be compared: the smooth kernel at half the median distance


@dataclass(frozen=True)
class Open:
    """What an estimator leaves to the data: a kernel of open scale (None: the kernel too), and "auto" for numbers.

    `laid` puts functions at landmarks into the basis that is used, `periods` are those of the prepared columns.
    `landmarks` and `right_landmarks` are methods, or arrays in the columns of the data; `count` is p. `penalty` is None
    for a solution by rank cut. The right functions have the kernel `right_kernel` where it is not None.
    """

    kernel: Kernel | None
    periods: tuple[float | None, ...] | None
    laid: Callable[[Basis], Basis]
    landmarks: Any
    count: int
    constant: bool
    components: int
    spread: float | str
    penalty: float | str | None
    dtype: str
    right_kernel: Kernel | str | None = None
    right_landmarks: Any = None


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
    pilot = Pilot.draw(source, judge or operator, rng, blocks=blocks, on_invalid=on_invalid, progress=progress)
    families = families_of(wanted.kernel, operator, wanted.periods)
    search, raw = _search(pilot, families, wanted, rng)
    comparable = judge is not None and pilot.rows >= LEAST_ROWS and pilot.folds > 1
    why = ""
    if not comparable:
        penalty = search.penalties[0]
        setting = Setting(len(families) - 1, PLAIN.factor, search.spreads[0], penalty)
        candidates: tuple[Candidate, ...] = ()
        edge = ""
        why = f"{operator.name} has no score"
        if judge is not None:
            why = f"{pilot.rows} rows are too few, {LEAST_ROWS} at least are needed"
        logger.info("nothing was compared (%s): %s", why, search.kernel(setting))
    else:
        judged, edge = search.run(rng)
        setting = judged[0][0]
        candidates = search.table(judged)
        logger.info("chosen among %d candidates: %s", len(candidates), candidates[0].kernel)
    kernel = search.kernel(setting)
    found: dict[str, Any] = {"kernel": _plain(kernel, wanted.kernel), "spread": setting.spread}
    if wanted.penalty is not None:
        found["penalty"] = setting.penalty
    for view, side in raw.items():
        found[side.name] = side.chosen(kernel, view, pilot, rng)
        if side.name == "right_landmarks":
            found["right_kernel"] = _plain(search.kernel(setting, right=True), wanted.right_kernel)
        else:
            found["n_landmarks"] = len(found[side.name])
    return Selection(candidates, found, pilot.rows, search.median, edge, why)


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """The memory of a choice for bases of `size` functions: the pilot's rows, and a trial's sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


@dataclass(frozen=True, eq=False)
class _Landmarks:
    """Landmarks of one side: given, or chosen rows of the pilot, or a method that needs the kernel first."""

    name: str
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


def _search(
    pilot: Pilot, families: tuple[Kernel, ...], wanted: Open, rng: np.random.Generator
) -> tuple[Search, dict[str, _Landmarks]]:
    operator, source = pilot.operator, pilot.source
    sides = {"x": ("landmarks", wanted.landmarks)}
    if wanted.right_kernel is not None:
        sides[operator.right_view] = ("right_landmarks", wanted.right_landmarks)
    found: dict[str, _Landmarks] = {}
    points: dict[str, Array] = {}
    medians: dict[str, float] = {}
    unjudged: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    for view, (name, value) in sides.items():
        embedded = families[0].embedded(pilot.points(view))
        medians[view] = _median(embedded, rng)
        if isinstance(value, str):
            method = "kmeans++" if value in choosing.BY_KERNEL else value
            pool = _pool(pilot.rows, wanted.count, rng)
            rows = pool[choosing.choose(method, embedded[pool], min(wanted.count, len(pool)), rng)]
            if view == "x":
                unjudged = pool if len(pool) < pilot.rows else rows[:TRIAL_LANDMARKS]
            found[view] = _Landmarks(name, None, value, wanted.count, rows)
            points[view] = pilot.points(view)[rows[:TRIAL_LANDMARKS]]
        else:
            preparation = source.preparations[view]
            raw = given_landmarks(value, source.width(view), label_of(view), preparation.columns)
            found[view] = _Landmarks(name, raw, "", len(raw), np.empty(0, dtype=np.intp))
            points[view] = preparation(raw)[:TRIAL_LANDMARKS]
    landmark = np.zeros(pilot.rows, dtype=bool)
    landmark[unjudged] = True
    right = operator.right_view if wanted.right_kernel is not None else None
    still = operator.derivative_order == 0 or operator.on_manifold or wanted.periods is not None or right is not None
    penalties = (wanted.penalty,) if wanted.penalty != "auto" else PENALTIES
    spreads = (wanted.spread,) if wanted.spread != "auto" else (0.0,) if still else (0.0, *SPREADS)
    given = wanted.right_kernel
    fixed = given if isinstance(given, Kernel) and not given.automatic else None
    search = Search(
        pilot,
        families,
        penalties,  # type: ignore[arg-type]
        spreads,  # type: ignore[arg-type]
        points["x"],
        landmark,
        medians["x"],
        fixed,
        None if right is None else points[right],
        0.0 if right is None else medians[right],
        wanted.constant,
        wanted.laid,
        wanted.components,
        wanted.dtype,
    )
    return search, found


def _pool(rows: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The rows of a pilot among which landmarks are chosen: half of them where that leaves few others.

    Methods that spread landmarks leave rows close to some landmark, where functions are flat: on these a basis would
    seem better than it is. Rows that had no part in the choice judge it.
    """
    if count <= MOST_OF_POOL * rows:
        return np.arange(rows)
    return np.sort(rng.permutation(rows)[: max(count, rows // 2)])


def _median(points: Array, rng: np.random.Generator) -> float:
    """The median distance, of distinct points where most of them coincide. Raises ValueError where all are equal."""
    try:
        return choosing.median_distance(points, rng)
    except ValueError:
        distinct = np.unique(points, axis=0)
        if len(distinct) < 2:
            raise ValueError(
                f"expected rows that differ, received {len(points)} that are all {points[0].tolist()}: a constant has "
                "no spectrum; choose other columns or rows"
            ) from None
        return choosing.median_distance(distinct, rng)


def _plain(kernel: Kernel, given: Any) -> Kernel:
    """The kernel as an estimator takes it: without periods that were added to it."""
    inner = kernel.kernel if isinstance(kernel, Periodic) and not isinstance(given, Periodic) else kernel
    return inner
