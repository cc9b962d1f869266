"""Saving to zarr groups and loading: with a format version, whole or not at all, digests checked, nothing executed."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from daskspectral.data.remote import is_url, stored
from daskspectral.data.writing import create_group
from daskspectral.errors import UntrustedError
from daskspectral.registry import Registered, Trusted, decode, encode, foreign, name_of

if TYPE_CHECKING:
    import zarr

__all__ = ["load", "save", "untrusted"]

FORMAT = 8
ZARR_FORMAT: Final = 3  # arrays of format 2 name codecs that unpickle
AT_ONCE = 16  # arrays that are on their way to or from an object store
_KEY = "daskspectral"
_PARTS = ("format", "kind", "state", "digests")

Path = str | os.PathLike[str]
Array = np.ndarray[Any, Any]


@stored
def save(what: Any, path: Path, *, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator or moments as a zarr group at a path or URL; it appears whole or not at all.

    `storage_options` are fsspec's for a URL, such as {"endpoint_url": ...}; they are written nowhere.

    Raises FileExistsError for a path that exists, unless `overwrite`; ValueError or TypeError for an estimator that is
    not fitted, and for classes and functions that are not at the top level of a module and could not be loaded again.
    """
    if not isinstance(what, Registered):
        raise TypeError(f"save() takes a fitted estimator or moments, not {type(what).__name__}")
    data = encode(what)
    decode(data, type(what), trusted=foreign(data))
    write_state(path, name_of(type(what)), data, overwrite=overwrite)


@stored
def load(path: Path, *, trusted: Iterable[Trusted] = (), storage_options: Mapping[str, Any] | None = None) -> Any:
    """What `save` wrote at a path or URL, opened with `storage_options`: a fitted estimator, or moments.

    A file may ask for daskspectral's own classes. Your own classes and functions load only where `trusted` lists them,
    by name ("mymodule.MyKernel") or as objects; `untrusted(path)` lists the names that a file asks for. Trust what you
    would import: it runs with your rights.

    Raises UntrustedError, before anything is imported, where the file asks for any other; FileNotFoundError where
    there is nothing; ValueError for a store of another kind; OSError for a store that is damaged.
    """
    _, data = read_state(path)
    with _of(path):
        return decode(data, Registered, trusted)


@stored
def untrusted(path: Path, *, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """The names of the classes and functions that a saved model or moments ask for besides daskspectral's own.

    Nothing is imported. Raises FileNotFoundError, ValueError or OSError where there is no model, or a damaged one.
    """
    _, data = read_state(path)
    with _of(path):
        return foreign(data)


def write_state(path: Path, kind: str, data: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write encoded data as a zarr group that appears whole or not at all.

    Raises FileExistsError for a path that exists, unless `overwrite`, and OSError where the disk is full.
    """
    arrays: dict[str, Array] = {}
    plain = _without_arrays(data, "", arrays)
    with create_group(path, overwrite=overwrite) as group:

        def write(name: str) -> None:
            group.create_array(name, data=arrays[name], config={"write_empty_chunks": True})

        _for_each(write, arrays, path)
        digests = {name: digest(array) for name, array in arrays.items()}
        made = importlib.import_module("daskspectral").__version__
        header = {"format": FORMAT, "kind": kind, "state": plain, "digests": digests, "version": made}
        group.attrs[_KEY] = {**header, "digest": _header_digest(header)}


def read_state(path: Path) -> tuple[str, Any]:
    """The kind and the encoded data written at a path or URL.

    Raises FileNotFoundError where there is nothing, ValueError for a store of another kind or another format, OSError
    for a store that is damaged.
    """
    try:
        return _read(os.fspath(path))
    except OSError:  # it may have been replaced while it was read
        return _read(os.fspath(path))


def _read(text: str) -> tuple[str, Any]:
    group, header = _opened(text)
    return str(header["kind"]), _data(text, group, header)


def _for_each(function: Callable[[str], Any], names: Iterable[str], path: Path) -> list[Any]:
    """The results of a function of names; at a URL, where most time is spent waiting, several at once."""
    if not is_url(path):
        return [function(name) for name in names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, names))


def is_saved(group: zarr.Group) -> bool:
    """Whether an open group is a saved estimator or moments, be it damaged."""
    return _KEY in group.attrs


def digest(array: Array) -> str:
    """A digest of an array's shape, type and bytes."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return hashlib.sha256(repr((array.shape, little.dtype.str)).encode() + little.tobytes()).hexdigest()


@contextmanager
def _of(path: Path) -> Iterator[None]:
    """A ValueError inside says what file it is about."""
    try:
        yield
    except UntrustedError:
        raise
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error


def _opened(text: str) -> tuple[zarr.Group, Mapping[str, Any]]:
    """Return a saved group and its header, of which no array has been read yet."""
    import zarr

    from daskspectral.data.stores import open_existing

    group = open_existing(text, "saved model", ZARR_FORMAT)
    header: Any = group.attrs.get(_KEY)
    if not isinstance(group, zarr.Group) or not isinstance(header, dict):
        what = "an array" if isinstance(group, zarr.Array) else "a zarr group of something else"
        raise ValueError(f"{text} is {what}, not a model or moments saved by daskspectral")
    version = header.get("format")
    if isinstance(version, int) and version != FORMAT:
        remedy = "upgrade it" if version > FORMAT else "fit and save it again"
        raise ValueError(
            f"{text} was written in format {version}, and this daskspectral reads format {FORMAT}: {remedy}"
        )
    if not header.keys() >= {*_PARTS, "digest"}:
        raise OSError(f"{text} is damaged: its attributes are incomplete; save it again")
    if header["digest"] != _header_digest({part: value for part, value in header.items() if part != "digest"}):
        raise OSError(f"{text} is damaged: its attributes are not what was saved; save it again")
    return group, header


def _data(text: str, group: zarr.Group, header: Mapping[str, Any]) -> Any:
    def read(name: str) -> Array:
        """An array of the group; a chunk that is lost would read as zeros, so the digest is compared."""
        try:
            stored: Any = group[name]
            array = np.asarray(stored[...])
        except (KeyError, ValueError, RuntimeError, OSError, MemoryError) as error:
            raise OSError(f"{text} is damaged: its array {name} cannot be read ({error}); save it again") from error
        if digest(array) != header["digests"][name]:
            raise OSError(f"{text} is damaged: its array {name} is not what was saved; save it again")
        return array

    try:
        names = list(header["digests"])
        return _with_arrays(header["state"], dict(zip(names, _for_each(read, names, text), strict=True)))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, MemoryError) as error:
        raise OSError(f"{text} is damaged: its state and its arrays do not go together ({error!r})") from error


def _header_digest(header: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def _without_arrays(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """The data with each array's name in its place; empty arrays, which are not written, become their shape."""
    if isinstance(value, np.ndarray):
        if not value.size:
            return {"$empty": list(value.shape), "dtype": value.dtype.str}
        while name in arrays:
            name += "_"
        arrays[name] = value
        return {"$array": name}
    if isinstance(value, Mapping):
        inside = {k: name if k == "state" and "$class" in value else f"{name}.{k}".lstrip(".") for k in value}
        return {k: _without_arrays(v, inside[k].replace(".$tuple", ""), arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_arrays(v, f"{name}.{i}".lstrip("."), arrays) for i, v in enumerate(value)]
    return value


def _with_arrays(value: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, dict):
        if "$array" in value:
            return arrays[value["$array"]]
        if "$empty" in value:
            empty = np.empty([0, *value["$empty"]], value["dtype"])  # whatever size is declared
            return empty.reshape(value["$empty"])
        return {k: _with_arrays(v, arrays) for k, v in value.items()}
    return [_with_arrays(v, arrays) for v in value] if isinstance(value, list) else value
