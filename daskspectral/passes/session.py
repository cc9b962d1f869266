"""Session of a fit, from open data to sums: plan, selection of functions, checkpoint, pass, and appended rows."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from daskspectral.data.folders import Folder
from daskspectral.data.integrity import Manifest
from daskspectral.data.source import Source, check_widths, label_of
from daskspectral.engine.checkpoint import Checkpoint, checkpoint_directory
from daskspectral.moments import Moments
from daskspectral.moments.folds import FoldRule
from daskspectral.neural import TrainerState
from daskspectral.operators import Operator
from daskspectral.operators.laplacian import has_graph
from daskspectral.passes.folds import FoldRequest
from daskspectral.passes.sums import Discretization, Outline, PassPlan, measure, plan_sums, seconds_of
from daskspectral.registry import decode, encode
from daskspectral.store import read_state, write_state

logger = logging.getLogger("daskspectral.plan")
Sizes = tuple[int, int | None]
FoldRuleOf = Callable[[Sizes], FoldRule | None]
LONG = 60  # seconds of a pass to which a faster one is proposed
TRAINING = ".training"  # file of the state of a training, in the folder of a checkpoint


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Stored state of a training, in the folder of a checkpoint, for the run of this `identity`."""

    directory: Folder
    identity: Mapping[str, Any]

    def read(self) -> TrainerState | None:
        """Return the state of the training, or None; raise ValueError if it is that of another run."""
        try:
            kind, found = read_state(f"{self.directory}/{TRAINING}")
        except FileNotFoundError:
            return None
        if kind != "training" or found["identity"] != self._identity():
            raise ValueError(
                f"the checkpoint {self.directory} contains the training of another run. Pass another path, or "
                "delete it to start again"
            )
        state = decode(found["state"], dict)
        return TrainerState(**{**state, "losses": tuple(state["losses"])})

    def write(self, state: TrainerState) -> None:
        self.directory.make()
        found = {"identity": self._identity(), "state": encode(dict(vars(state)))}
        write_state(f"{self.directory}/{TRAINING}", "training", found, overwrite=True)

    def clear(self) -> None:
        self.directory.delete(TRAINING)

    def _identity(self) -> Any:
        return json.loads(json.dumps(self.identity, sort_keys=True, default=str))


@dataclass(frozen=True, eq=False)
class Session:
    """Fit with open and checked data, with arithmetic of `dtype` on a `device`.

    `choose(source, fold_rule, state)` returns the functions and the scaling of columns; a training of networks requires
    the fold rule, and the store of its state. If the outline of the functions is `expected`, the plan is made before
    any work. `choosing` is the memory of the automatic selection in bytes. `lattice` is the outline of a lattice that
    could replace the functions.
    """

    source: Source
    operator: Operator
    choose: Callable[[Source, FoldRuleOf, TrainingState | None], Discretization]
    dtype: str
    device: str
    asked: FoldRequest | None = None
    expected: Outline | None = None
    choosing: int = 0
    lattice: Outline | None = None

    @cached_property
    def folds(self) -> FoldRequest | None:
        return None if self.asked is None else self.asked.counted(self.source)

    @cached_property
    def outline(self) -> PassPlan | None:
        """Plan before any work; None if the number of functions depends on the data."""
        if self.expected is None:
            return None
        seconds = seconds_of(self.source, self.expected)
        faster = None
        if self.lattice is not None and self.device == "cpu":
            least = seconds_of(self.source, self.lattice)
            faster = least if seconds > max(LONG, 4 * least) else None
        return self._planned(self.expected, self.choosing, seconds, faster)

    def plan(self) -> PassPlan:
        """Return the plan of the pass; functions are selected first if it depends on them."""
        Manifest(self.source)  # raises OSError if chunks are missing
        return self.outline or self._planned(self._chosen(None).outline, self.choosing)

    def measured(
        self,
        identity: Callable[[Manifest], Mapping[str, Any]],
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: float,
    ) -> tuple[Discretization, Moments]:
        """Return the functions and the moments, resumed from a checkpoint of this `identity`."""
        _ = self.outline
        snapshot, saved = Manifest(self.source), None
        if checkpoint is None:
            discretization = self._chosen(None)
        else:
            known = identity(snapshot)
            kept, kinds = TrainingState(checkpoint_directory(checkpoint), known), {"discretization": Discretization}
            saved = Checkpoint.open(
                checkpoint, known, lambda: {"discretization": self._chosen(kept)}, kinds, checkpoint_every
            )
            kept.clear()
            discretization = saved.constants["discretization"]
        plan = self.outline
        if plan is None or discretization.outline != self.expected:
            plan = self._planned(discretization.outline)  # fewer landmarks than requested, or repeated rows
        return discretization, measure(
            self.source, discretization, self.operator, plan, snapshot=snapshot, checkpoint=saved
        )

    def _chosen(self, kept: TrainingState | None) -> Discretization:
        by_number = self.folds is not None and self.folds.by_number(self.source) and not has_graph(self.operator)
        return self.choose(replace(self.source, by_number=by_number), self._fold_rule, kept)

    def _fold_rule(self, sizes: Sizes) -> FoldRule | None:
        return self._planned(Outline(sizes, self.expected is not None and self.expected.apart)).fold_rule

    def _planned(
        self, outline: Outline, choosing: int = 0, seconds: float = 0.0, faster: float | None = None
    ) -> PassPlan:
        shared: dict[str, Any] = {"device": self.device, "folds": self.folds, "choosing": choosing}
        plan = plan_sums(self.source, self.operator, outline, self.dtype, **shared)
        plan = replace(plan, seconds=seconds, faster=faster)
        logger.info("plan: %s", plan)
        return plan


def measured_further(before: Moments, source: Source, folds: FoldRequest | None, device: str) -> Moments:
    """Return the moments of all rows, given those of the first rows, `before`.

    Only the other rows are summed if the files of the first ones are unchanged; all are for arrays in memory or dask
    arrays. Raises ValueError as `check_appended`.
    """
    snapshot = Manifest(source)
    unchanged = check_appended(before, source, snapshot)
    discretization = replace(Discretization.of(before), landmark_rows=before.landmark_rows)
    shared: dict[str, Any] = {"device": device, "folds": folds, "start": before.rows if unchanged else 0}
    plan = plan_sums(source, before.operator, discretization.outline, before.dtype, **shared)
    after = before if unchanged else None
    found = measure(source, discretization, before.operator, plan, snapshot=snapshot, after=after)
    if unchanged:
        return replace(before + found, seen=snapshot.seen(source.n))
    return replace(found, finalist_gap=before.finalist_gap)


def check_appended(before: Moments, source: Source, snapshot: Manifest) -> bool:
    """Return whether the files of the measured rows are unchanged, so that only the others must be read.

    Raises ValueError without further rows, for weights only before or only now, and for other first rows.
    """
    check_widths(before, source)
    known = before.seen
    if known is None:
        raise ValueError(
            "cannot update moments that were added from several arrays. Fit the new rows with the same functions, and "
            "add the moments (on the command line: fit --functions-of MODEL, then merge)"
        )
    if source.n <= before.rows:
        raise ValueError(
            f"X must have more rows than the fit, {before.rows}, got {source.rows}. Pass the same rows with others "
            "appended"
        )
    if ("weight" in known) != ("weight" in source.readers):
        then, now = ("with", "without") if "weight" in known else ("without", "with")
        raise ValueError(
            f"the fit was {then} sample_weight, but the update is {now}. Pass the weights of all rows to both, or to "
            "neither"
        )
    present = snapshot.seen(before.rows)
    for name, (rows, _) in present.items():
        if name in known and known[name][0] != rows:
            raise ValueError(
                f"the first rows of {label_of(name)} must be those of the fit. For other data, add the moments "
                "(fit --functions-of MODEL, then merge)"
            )
    return all(files is not None and files == known.get(name, [None, None])[1] for name, (_, files) in present.items())
