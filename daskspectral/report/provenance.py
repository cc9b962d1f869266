"""What a model cost and where it came from."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskspectral.estimators.base import Estimator
from daskspectral.estimators.notebook import grouped
from daskspectral.estimators.summary import facts
from daskspectral.moments import Moments
from daskspectral.report.page import Section, Table

LONGEST = 400  # characters of a value that is shown


def cost(model: Any) -> list[Section]:
    """The rows read, the sums kept, and the arithmetic of the pass; nothing for a model without moments."""
    moments = model if isinstance(model, Moments) else getattr(model, "moments_", None)
    if not isinstance(moments, Moments):
        passes = getattr(model, "n_passes_", None)
        return (
            []
            if passes is None
            else [Section("Cost", facts={"passes": f"{passes} over the rows, or products with the kernel"})]
        )
    entries = sum(int(array.size) for array in moments.arrays.values())
    held = sum(array.nbytes for array in moments.arrays.values())
    folds = 0 if moments.folds is None else sum(array.nbytes for array in moments.folds.arrays.values())
    words = ["One pass over the rows made sums of this size; everything after it was dense algebra on them."]
    found = {
        "rows read": grouped(moments.rows or moments.count),
        "sums": f"{', '.join(moments.arrays)}: {_bytes(held)}, and {_bytes(folds)} apart by fold",
        "arithmetic": f"about {_operations(2.0 * moments.count * entries)} for products of functions, {moments.dtype}",
    }
    if moments.skipped:
        found["rows left out"] = f"{grouped(moments.skipped)} with NaN or infinity"
    return [Section("Cost", words, facts=found)]


def origin(model: Any, *, about: str, settings: str | None, saved: str | None) -> Section:
    """Versions, parameters, fingerprint, and the settings kept beside the model."""
    found: dict[str, str] = {"file": about} if about else {}
    if saved is not None:
        found["saved by"] = f"daskspectral {saved}"
    moments = model if isinstance(model, Moments) else getattr(model, "moments_", None)
    if isinstance(moments, Moments):
        found["fingerprint"] = f"{moments.fingerprint}, of basis, operator and columns: sums with the same one add"
    more: list[Any] = []
    described = {key: cut(str(value)) for key, value in facts(model, details=True).items()}
    more.append(Table("What was measured", [["name", "value"], *([key, value] for key, value in described.items())]))
    if isinstance(model, Estimator):
        more.append(Table("Parameters", [["parameter", "value"], *_parameters(model)]))
    if settings:
        more.append(("Settings of the command that made it", settings))
    words = [] if settings else ["No settings are kept beside it: it was made in Python, not by a command."]
    return Section("Provenance", words, facts=found, more=more)


def _parameters(model: Estimator) -> list[list[str]]:
    rows = []
    for name, value in sorted(model.plain_params().items()):
        rows.append([name, f"array {value.shape}" if isinstance(value, np.ndarray) else cut(repr(value))])
    return rows


def cut(text: str) -> str:
    """Text that is not too long for a cell."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _bytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def _operations(number: float) -> str:
    power = int(np.floor(np.log10(max(number, 1.0))))
    raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{number / 10.0**power:.2g} · 10{raised} operations"
