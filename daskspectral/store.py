"""State dictionaries (plain data and arrays) to and from zarr groups: versioned, atomic, never pickled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr

from daskspectral.data.writer import check_complete, create_group, local_path

FORMAT = 1
_KEY = "daskspectral"


def write_state(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write a state as a zarr group that appears whole or not at all.

    Raises FileExistsError for a path that exists, unless `overwrite`.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _without_arrays(state, "", arrays)
    with create_group(path, overwrite=overwrite) as group:
        for name, array in arrays.items():
            group.create_array(name, data=array)
        group.attrs[_KEY] = {"format": FORMAT, "kind": kind, "state": plain}


def read_state(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The kind and state written at a path or URL.

    Raises FileNotFoundError where there is nothing, ValueError for a store of another kind or a newer format.
    """
    text = os.fspath(path)
    local = local_path(text)
    if local is not None and not local.exists():
        raise FileNotFoundError(f"there is no saved model at {text}: the path does not exist")
    try:
        group = zarr.open(text if local is None else str(local), mode="r")
    except (FileNotFoundError, KeyError, NotADirectoryError):
        raise ValueError(f"{text} is not a saved model: it is no zarr group") from None
    attributes = dict(group.attrs)
    check_complete(attributes, text)
    header = attributes.get(_KEY)
    if not isinstance(header, dict) or "kind" not in header or not isinstance(group, zarr.Group):
        what = "an array" if isinstance(group, zarr.Array) else "a zarr group of something else"
        raise ValueError(f"{text} is {what}, not a model or moments saved by daskspectral")
    if header["format"] > FORMAT:
        raise ValueError(
            f"{text} was written in format {header['format']} and this daskspectral reads up to {FORMAT}: upgrade it"
        )
    state = _with_arrays(header["state"], group)
    assert isinstance(state, dict)
    return str(header["kind"]), state


def _without_arrays(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {k: _without_arrays(v, f"{name}.{k}".lstrip("."), arrays) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(value: Any, group: zarr.Group) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array"}:
            array = group[value["array"]]
            assert isinstance(array, zarr.Array)
            return np.asarray(array[...])
        return {k: _with_arrays(v, group) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_arrays(v, group) for v in value]
    return value
