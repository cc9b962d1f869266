"""Records of models: parameters, digests of arrays, and the warnings of the fit, `warnings_`."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from daskspectral.data.integrity import Manifest
from daskspectral.data.source import Source
from daskspectral.errors import combined_warnings, ranked, recorded_warnings
from daskspectral.registry import digest_of, encode


def provenance(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the origin of a result (version, class, parameters) as attributes of its store.

    Parameters that files cannot represent, such as functions of a notebook, are replaced by their class.
    """
    plain: dict[str, Any] = {name: type(value).__name__ for name, value in params.items()}
    for name, value in params.items():
        with suppress(ValueError):
            plain[name] = _digested(encode(value))
    return {
        "daskspectral_version": importlib.import_module("daskspectral").__version__,
        "estimator": kind,
        "parameters": json.dumps(plain, sort_keys=True),
    }


def identity_of(snapshot: Manifest, source: Source, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data, options and parameters that a resumed checkpoint must have.

    Raises ValueError or TypeError for parameters that could not be read back.
    """
    plain = {f"parameter {name}": _digested(encode(value)) for name, value in params.items()}
    reading = {
        "columns": source.preparation.columns,
        "delays": source.delays,
        "standardize": source.standardize,
        "on_invalid": source.on_invalid,
    }
    return {**snapshot.identity, **plain, **reading}


def _digested(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {digest_of(value)[:16]}"
    if isinstance(value, Mapping):
        return {k: _digested(v) for k, v in value.items()}
    return [_digested(v) for v in value] if isinstance(value, list) else value


# -- warnings ----------------------------------------------------------------------------------------------------------


WARNINGS = "warnings_"


@contextmanager
def recording_warnings(estimator: Any) -> Iterator[None]:
    """Store warnings raised inside as `warnings_` of an estimator, "Category: message", by rank."""
    with recorded_warnings() as heard, combined_warnings():
        yield
    estimator.warnings_ = ranked(heard)
