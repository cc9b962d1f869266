"""The plan of a fit: shown when it is made, or in place of the fit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from daskspectral.cli.commands import say, session
from daskspectral.cli.terminal import echo

if TYPE_CHECKING:
    from daskspectral.passes.sums import PassPlan

LOGGER = "daskspectral.plan"


class _Planned(Exception):
    """A plan was made, and nothing else is wanted."""

    def __init__(self, plan: PassPlan):
        super().__init__()
        self.plan = plan


class _Shown(logging.Handler):
    """Plans as lines on stderr, or the end of the fit where nothing but its plan is wanted."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message alone, or raise."""
        now = session()
        if now.only_plan:
            assert isinstance(record.args, tuple)
            raise _Planned(record.args[0])  # type: ignore[arg-type]
        if not now.quiet:
            echo(record.getMessage(), err=True)


@contextmanager
def planned(*, show: bool = False) -> Iterator[None]:
    """Where `show`, print the plan of a fit when it is made; of `daskspectral plan` the fit ends there."""
    if not (show or session().only_plan):
        yield
        return
    planning, shown = logging.getLogger(LOGGER), _Shown()
    before = planning.level, planning.propagate
    planning.addHandler(shown)
    planning.setLevel(logging.INFO)
    planning.propagate = session().log_file is not None
    try:
        yield
        if session().only_plan and "tasks" not in session().facts:
            raise ValueError("this fit is made without a plan")
    except _Planned as found:
        say_plan(found.plan)
        raise click.exceptions.Exit(0) from None
    finally:
        planning.removeHandler(shown)
        planning.level, planning.propagate = before


def say_plan(plan: PassPlan) -> None:
    """Print the tasks and the peak memory of a pass, and its time where two tasks were timed."""
    memory = {name: int(value) for name, value in vars(plan.memory).items() if isinstance(value, int)}
    tasks, epochs = len(plan.ranges.ranges), len(plan.ranges.epochs)
    rows = plan.ranges.ranges[-1][1] if tasks else 0
    say(f"plan: {plan}", tasks=tasks, epochs=epochs, rows=rows, memory=memory)
    if plan.probe is not None:
        session().facts["time"] = {"seconds": plan.probe.seconds, **vars(plan.probe)}
