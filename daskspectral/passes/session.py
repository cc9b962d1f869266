"""One fit from opened data to sums: its plan, the choice of functions, the checkpoint, the pass, and rows appended."""

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
from daskspectral.neural import State
from daskspectral.operators import Operator
from daskspectral.operators.laplacian import has_graph
from daskspectral.passes.folds import FoldRequest
from daskspectral.passes.sums import Discretisation, Outline, PassPlan, measure, plan_sums
from daskspectral.registry import decode, encode
from daskspectral.store import read_state, write_state

logger = logging.getLogger("daskspectral.plan")
Sizes = tuple[int, int | None]
FoldRuleOf = Callable[[Sizes], FoldRule | None]
TRAINING = ".training"  # the store of a training's state, in the folder of a checkpoint


@dataclass(frozen=True, eq=False)
class Kept:
    """Where the state of a training is kept, in the folder of a checkpoint, for the run of this `identity`."""

    directory: Folder
    identity: Mapping[str, Any]

    def read(self) -> State | None:
        """The state of this run's training; None where there is none. Raises ValueError for another run's."""
        try:
            kind, found = read_state(f"{self.directory}/{TRAINING}")
        except FileNotFoundError:
            return None
        if kind != "training" or found["identity"] != self._identity():
            raise ValueError(
                f"the checkpoint {self.directory} holds the training of another run: give another path, or delete it "
                "to start anew"
            )
        state = decode(found["state"], dict)
        return State(**{**state, "losses": tuple(state["losses"])})

    def write(self, state: State) -> None:
        """Write a state, which appears whole or not at all."""
        self.directory.make()
        found = {"identity": self._identity(), "state": encode(dict(vars(state)))}
        write_state(f"{self.directory}/{TRAINING}", "training", found, overwrite=True)

    def clear(self) -> None:
        """Delete what is kept: the networks are trained."""
        self.directory.delete(TRAINING)

    def _identity(self) -> Any:
        return json.loads(json.dumps(self.identity, sort_keys=True, default=str))


@dataclass(frozen=True, eq=False)
class Session:
    """A fit whose data are opened and checked, with arithmetic of `dtype` on a `device`.

    `choose` gives the functions and the scaling of columns for a source; a training of networks needs to know the fold
    rule of a pass with so many functions, and where its state is kept, None if it is not. Where what is `expected` of
    the functions is known, the plan is made before any work. `choosing` is the memory of an automatic choice, in bytes.
    """

    source: Source
    operator: Operator
    choose: Callable[[Source, FoldRuleOf, Kept | None], Discretisation]
    dtype: str
    device: str
    asked: FoldRequest | None = None
    expected: Outline | None = None
    choosing: int = 0

    @cached_property
    def folds(self) -> FoldRequest | None:
        """The folds, for which labels outside memory are read once."""
        return None if self.asked is None else self.asked.counted(self.source)

    @cached_property
    def outline(self) -> PassPlan | None:
        """The plan before any work; None where the number of functions follows from the data."""
        return None if self.expected is None else self._planned(self.expected, self.choosing)

    def plan(self) -> PassPlan:
        """The plan of the pass, for which the functions are chosen where it needs them.

        Raises as `measured` does.
        """
        Manifest(self.source)  # raises OSError if chunks are missing
        return self.outline or self._planned(self._chosen(None).outline, self.choosing)

    def measured(
        self,
        identity: Callable[[Manifest], Mapping[str, Any]],
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: float,
    ) -> tuple[Discretisation, Moments]:
        """What was measured with, and the moments; a checkpoint at the path goes on where it has this `identity`."""
        _ = self.outline
        snapshot, saved = Manifest(self.source), None
        if checkpoint is None:
            discretisation = self._chosen(None)
        else:
            known = identity(snapshot)
            kept, kinds = Kept(checkpoint_directory(checkpoint), known), {"discretisation": Discretisation}
            saved = Checkpoint.take_up(
                checkpoint, known, lambda: {"discretisation": self._chosen(kept)}, kinds, checkpoint_every
            )
            kept.clear()
            discretisation = saved.constants["discretisation"]
        plan = self.outline
        if plan is None or discretisation.outline != self.expected:
            plan = self._planned(discretisation.outline)  # fewer landmarks than were asked for, or rows alike
        return discretisation, measure(
            self.source, discretisation, self.operator, plan, snapshot=snapshot, checkpoint=saved
        )

    def _chosen(self, kept: Kept | None) -> Discretisation:
        by_number = self.folds is not None and self.folds.by_number(self.source) and not has_graph(self.operator)
        return self.choose(replace(self.source, by_number=by_number), self._fold_rule, kept)

    def _fold_rule(self, sizes: Sizes) -> FoldRule | None:
        return self._planned(Outline(sizes, self.expected is not None and self.expected.apart)).fold_rule

    def _planned(self, outline: Outline, choosing: int = 0) -> PassPlan:
        shared: dict[str, Any] = {"device": self.device, "folds": self.folds, "choosing": choosing}
        plan = plan_sums(self.source, self.operator, outline, self.dtype, **shared)
        logger.info("plan: %s", plan)
        return plan


def measured_further(before: Moments, source: Source, folds: FoldRequest | None, device: str) -> Moments:
    """Return the moments of all rows: of stores whose files are unchanged, the rows after those of `before` are summed.

    All rows are summed again if files behind the rows of `before` were written since, and of arrays that are in memory
    or dask's. Raises ValueError as `check_appended`.
    """
    snapshot = Manifest(source)
    unchanged = check_appended(before, source, snapshot)
    discretisation = replace(Discretisation.of(before), landmark_rows=before.landmark_rows)
    shared: dict[str, Any] = {"device": device, "folds": folds, "start": before.rows if unchanged else 0}
    plan = plan_sums(source, before.operator, discretisation.outline, before.dtype, **shared)
    after = before if unchanged else None
    found = measure(source, discretisation, before.operator, plan, snapshot=snapshot, after=after)
    if unchanged:
        return replace(before + found, seen=snapshot.seen(source.n))
    return replace(found, undercut=before.undercut)


def check_appended(before: Moments, source: Source, snapshot: Manifest) -> bool:
    """Return whether the stores behind the measured rows are unchanged, so that only the other rows are to be read.

    Raises ValueError if there are no further rows, if there are weights only then or only now, and if the first rows
    are not those that were measured: data with rows appended are expected.
    """
    check_widths(before, source)
    known = before.seen
    if known is None:
        raise ValueError(
            "these moments were added up from several arrays: fit the new rows with the same functions, and add the "
            "moments (fit --functions-of MODEL, then merge, in the shell)"
        )
    if source.n <= before.rows:
        told = "there is nothing to add" if source.n == before.rows else "give the same rows with others appended"
        raise ValueError(f"X has {source.rows}, and the model has seen {before.rows}: {told}")
    if ("weight" in known) != ("weight" in source.readers):
        then, now = ("with", "without") if "weight" in known else ("without", "with")
        raise ValueError(
            f"the fit was {then} sample_weight, and the update is {now}: give the weights of all rows to both or none"
        )
    present = snapshot.seen(before.rows)
    for name, (rows, _) in present.items():
        if name in known and known[name][0] != rows:
            raise ValueError(
                f"{label_of(name)} differs in its first rows from what was measured: an update takes the same data "
                "with rows appended; of other data add the moments (fit --functions-of MODEL, then merge)"
            )
    return all(files is not None and files == known.get(name, [None, None])[1] for name, (_, files) in present.items())
