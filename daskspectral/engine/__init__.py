"""The engine: plans of row ranges, `reduce` and `map` over them, on whatever dask scheduler is active."""

from daskspectral.engine.plan import Plan, plan_rows, plan_run
from daskspectral.engine.run import Run

__all__ = ["Plan", "Run", "plan_rows", "plan_run"]
