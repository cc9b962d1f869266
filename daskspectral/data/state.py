"""State dictionaries (plain data and arrays) to and from zarr groups: versioned, atomic, never pickled."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr

from daskspectral.data.storage import metadata_of
from daskspectral.data.writer import check_complete, create_group, local_path

FORMAT = 1
_KEY = "daskspectral"


def write_state(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write a state as a zarr group that appears whole or not at all.

    Raises FileExistsError for a path that exists, unless `overwrite`, and OSError where the disk is full.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _without_arrays(state, "", arrays)
    with create_group(path, overwrite=overwrite) as group:
        for name, array in arrays.items():
            group.create_array(name, data=array, config={"write_empty_chunks": True})
        digests = {name: digest(array) for name, array in arrays.items()}
        group.attrs[_KEY] = {"format": FORMAT, "kind": kind, "state": plain, "digests": digests}


def read_state(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The kind and state written at a path or URL.

    Raises FileNotFoundError where there is nothing, ValueError for a store of another kind or a newer format,
    OSError for one that is damaged.
    """
    text = os.fspath(path)
    local = local_path(text)
    if local is not None and not local.exists():
        raise FileNotFoundError(f"there is no saved model at {text}: the path does not exist")
    target = text if local is None else str(local)
    try:
        with metadata_of(target):
            group = zarr.open(target, mode="r")
    except (FileNotFoundError, KeyError, NotADirectoryError):
        raise ValueError(f"{text} is not a saved model: it is no zarr group") from None
    attributes = dict(group.attrs)
    check_complete(attributes, text)
    header = attributes.get(_KEY)
    if not isinstance(group, zarr.Group) or not isinstance(header, dict) or not isinstance(header.get("format"), int):
        what = "an array" if isinstance(group, zarr.Array) else "a zarr group of something else"
        raise ValueError(f"{text} is {what}, not a model or moments saved by daskspectral")
    if header["format"] > FORMAT:
        raise ValueError(
            f"{text} was written in format {header['format']} and this daskspectral reads up to {FORMAT}: upgrade it"
        )
    if not header.keys() >= {"kind", "state", "digests"}:
        raise OSError(f"{text} is damaged: its attributes are incomplete; save it again")
    state = _with_arrays(header["state"], {k: _read_array(group, k, v, text) for k, v in header["digests"].items()})
    assert isinstance(state, dict)
    return str(header["kind"]), state


def digest(array: np.ndarray[Any, Any]) -> str:
    """A digest of an array's shape, type and bytes."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return hashlib.sha256(repr((array.shape, little.dtype.str)).encode() + little.tobytes()).hexdigest()


def _read_array(group: zarr.Group, name: str, expected: str, path: str) -> np.ndarray[Any, Any]:
    """An array of the group; a chunk that is lost would read as zeros, so that the digest is compared."""
    try:
        array = np.asarray(group[name][...])  # type: ignore[index]
    except (KeyError, ValueError, RuntimeError) as error:
        raise OSError(f"{path} is damaged: its array {name} cannot be read ({error}); save it again") from error
    if digest(array) != expected:
        raise OSError(f"{path} is damaged: its array {name} is not what was saved; save it again")
    return array


def _without_arrays(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {k: _without_arrays(v, f"{name}.{k}".lstrip("."), arrays) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array"}:
            return arrays[value["array"]]
        return {k: _with_arrays(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_arrays(v, arrays) for v in value]
    return value
