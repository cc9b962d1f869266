"""What a saved model or saved moments hold, as plain data for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from daskspectral.basis import Basis
from daskspectral.estimators import SpectralDecomposition
from daskspectral.estimators.base import Estimator
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments

LONGEST = 1000  # entries of an array that is shown
SPECTRUM = (
    *("standard_errors_", "held_out_", "groups_", "function_errors_", "approximation_", "trusted_", "constants_"),
    *("rank_", "residuals_", "status_", "kernel_"),
)
PUBLIC = ("classes_", "coef_", "certificate_")
"""Attributes that are not saved, but follow from what is."""


def facts_of(what: Any) -> dict[str, Any]:
    """A fitted model or moments as numbers, texts, lists and mappings. Raises TypeError for anything else."""
    if isinstance(what, Moments):
        return _moments(what) | {"moments": sorted(what.arrays)}
    if not isinstance(what, Estimator):
        raise TypeError(f"a fitted model or moments are wanted, not {type(what).__name__}")
    found: dict[str, Any] = {"kind": type(what).__name__}
    moments = getattr(what, "moments_", None)
    if isinstance(moments, Moments):
        found |= _moments(moments)
    if isinstance(what, SpectralDecomposition):
        solver = what.solver_
        names: tuple[str, ...] = (solver.values, solver.errors, *SPECTRUM)
    else:
        names = (*(name for name in what.fitted_attributes if not name.startswith("_")), *PUBLIC)
    for name in names:
        value = plain(getattr(what, name, None))
        if value is not None:
            found[name.removesuffix("_")] = value
    choice = getattr(what, "choice_", None)
    if choice is not None and choice.chosen is not None:
        found["chosen"] = plain(choice.chosen) or str(choice.chosen)
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinity as null, a complex number as a pair; None for what has no such form.

    What is made of named parts, such as a certificate, is a mapping of these.
    """
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value] if value.size <= LONGEST else {"shape": list(value.shape)}
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (complex, np.complexfloating)):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, Moments):
        return None
    if isinstance(value, Basis):
        return {"name": value.description, "functions": value.size, "variables": value.dimension}
    if dataclasses.is_dataclass(value) and not isinstance(value, (Kernel, type)):
        fields = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
        return {name: plain(getattr(value, name)) for name in fields}
    text = repr(value)
    return text if len(text) <= LONGEST else None


def _moments(moments: Moments) -> dict[str, Any]:
    return {
        "operator": repr(moments.operator),
        "rows": int(moments.count),
        "skipped": int(moments.skipped),
        "weight": float(moments.weight),
        "dtype": moments.dtype,
        "functions": int(moments.basis.size),
    }
