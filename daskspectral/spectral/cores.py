"""Visits of trajectories to the cores of metastable sets, rows whose membership in one set is near 1.

A trajectory is assigned to the set whose core it visited last, so that recrossings are not counted as jumps
(milestoning; Schütte, Noé, Lu, Sarich and Vanden-Eijnden 2011). Visits of consecutive rows are additive across chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.engine import Run, plan_rows
from daskspectral.moments import NUMBER
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.scale import added

Array = NDArray[Any]
CORE = 0.8  # membership from which a row is in the core of a set


@dataclass(frozen=True, eq=False)
class Visits:
    """Visits of consecutive rows to cores: jumps (m, m) between cores, and rows (m,) after a visit to each.

    The rows start in the trajectory `first`, with `lead` rows before the core `entered`, and end in the trajectory
    `last` after a visit to the core `left`; -1 means no core.
    """

    jumps: Array
    rows: Array
    first: int
    lead: int
    entered: int
    last: int
    left: int

    @classmethod
    def of(cls, memberships: Array, trajectories: Array) -> Visits:
        """Return the visits of rows with memberships (c, m) in trajectories of ascending numbers (c,)."""
        count, m = memberships.shape
        number = np.arange(count)
        core = np.where(memberships.max(axis=1) >= CORE, memberships.argmax(axis=1), -1)
        begins = np.append(True, trajectories[1:] != trajectories[:-1])
        latest = np.maximum.accumulate(np.where(core >= 0, number, -1))
        after = latest >= np.maximum.accumulate(np.where(begins, number, 0))
        state = np.where(after, core[latest], -1)
        jumped = np.flatnonzero(~begins[1:] & (state[:-1] >= 0) & (state[1:] != state[:-1]))
        jumps = np.zeros((m, m))
        np.add.at(jumps, (state[jumped], state[jumped + 1]), 1)
        head = state[trajectories == trajectories[0]]
        lead = int(np.count_nonzero(head < 0))
        entered = int(head[lead]) if lead < len(head) else -1
        rows = np.bincount(state[state >= 0], minlength=m).astype(float)
        return cls(jumps, rows, int(trajectories[0]), lead, entered, int(trajectories[-1]), int(state[-1]))

    def __add__(self, other: Visits) -> Visits:
        jumps, rows = self.jumps + other.jumps, self.rows + other.rows
        first, lead, entered, left = self.first, self.lead, self.entered, other.left
        if self.last == other.first:
            if self.left >= 0:
                rows[self.left] += other.lead
                if other.entered not in (-1, self.left):
                    jumps[self.left, other.entered] += 1
            elif self.first == self.last:
                lead, entered = self.lead + other.lead, other.entered
            if other.last == other.first and other.left < 0:
                left = self.left
        return Visits(jumps, rows, first, lead, entered, other.last, left)

    @property
    def rates(self) -> Array | None:
        """Rates (m, m) of jumps between sets; None if a set was never visited."""
        if not self.rows.all():
            return None
        found = self.jumps / self.rows[:, None]
        return found - np.diag(found.sum(axis=1))


def _visits(memberships: SpanValues, ends: Array, batch: Mapping[str, Array]) -> dict[str, Visits]:
    """Return the visits of a batch of rows; `ends` (T,) are cumulative lengths of trajectories."""
    values = memberships.of_prepared(batch["x"])[0]
    return {"visits": Visits.of(values, np.searchsorted(ends, batch[NUMBER], "right"))}


def visits_of(source: Source, memberships: SpanValues) -> Visits:
    """Return the visits of trajectories to the cores of sets, counted in one pass."""
    assert source.lagged is not None
    ends = np.cumsum([pairs.count for pairs in source.lagged.trajectories])
    run = Run(source, plan_rows(source, 2000.0 * memberships.columns), None, "sets")
    found: Visits = run.reduce(partial(added, partial(_visits, memberships, ends))).sums["visits"]
    return found
