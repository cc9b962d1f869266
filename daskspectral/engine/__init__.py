"""Plans of row ranges, and `reduce` and `map` over them on the active dask scheduler."""

from daskspectral.engine.plan import Plan, plan_rows, plan_run
from daskspectral.engine.run import Run

__all__ = ["Plan", "Run", "plan_rows", "plan_run"]
