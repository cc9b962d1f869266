"""The plan of a fit, as it is shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from daskspectral.cli.commands import say, session
from daskspectral.cli.terminal import echo

if TYPE_CHECKING:
    from daskspectral.passes.sums import PassPlan

LOGGER = "daskspectral.plan"


class _Shown(logging.Handler):
    """Plans as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message alone."""
        if not session().quiet:
            echo(record.getMessage(), err=True)


@contextmanager
def planned() -> Iterator[None]:
    """Print the plan of a fit when it is made."""
    planning, shown = logging.getLogger(LOGGER), _Shown()
    before = planning.level, planning.propagate
    planning.addHandler(shown)
    planning.setLevel(logging.INFO)
    planning.propagate = session().log_file is not None
    try:
        yield
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
