"""Save objects as zarr groups, whole or not at all, and load them: digests are compared, and nothing is executed.

Each array has a name and dimensions in the group, which `xarray.open_zarr` and `xarray.open_datatree` show. One
attribute of the group holds everything else.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, count
from typing import Any, Final

import numpy as np

from daskspectral.data.folders import SAVED
from daskspectral.data.remote import is_url, using
from daskspectral.data.writing import create_group
from daskspectral.errors import UntrustedError
from daskspectral.registry import Registered, Trusted, decode, digest_of, dimension_names, encode, foreign, name_of

__all__ = ["load", "save", "untrusted"]

FORMAT = 1
ZARR_FORMAT: Final = 3  # arrays of format 2 name codecs that unpickle
AT_ONCE = 16  # arrays that are on their way to or from an object store

Path = str | os.PathLike[str]
Array = np.ndarray[Any, Any]


def save(what: Any, path: Path, *, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator, or another object of this package, as a zarr group that appears whole or not at all.

    The arrays have names and dimensions: `xarray.open_zarr(path)` shows those of the object, and
    `xarray.open_datatree(path)` those of its parts too. Everything else is in the attribute "daskspectral".

    Parameters
    ----------
    what : Registered
        A fitted estimator, moments, metastable sets, a first passage, a basis or its recipe, an operator or a kernel.
    path : str or path
        A path or URL.
    overwrite : bool
        Whether to replace a zarr store that is there.
    storage_options : mapping, optional
        fsspec's options for a URL, such as {"endpoint_url": ...}. They are not written.

    Raises
    ------
    FileExistsError
        If the path exists, unless `overwrite`.
    ValueError or TypeError
        If the estimator is not fitted, or for classes and functions that are not at the top level of a module and
        could not be loaded again.
    """
    if not isinstance(what, Registered):
        raise TypeError(f"save() takes a fitted estimator or moments, not {type(what).__name__}")
    data = encode(what)
    decode(data, type(what), trusted=foreign(data))
    with using(storage_options):
        write_state(path, name_of(type(what)), data, overwrite=overwrite)


def load(path: Path, *, trusted: Iterable[Trusted] = (), storage_options: Mapping[str, Any] | None = None) -> Any:
    """Load a fitted estimator, or moments, that `save` wrote.

    A file may ask for daskspectral's own classes. Your classes and functions load only if `trusted` lists them. Trust
    what you would import: it runs with your rights.

    Parameters
    ----------
    path : str or path
        A path or URL.
    trusted : iterable of str, class or function
        Classes and functions, or their names such as "mymodule.MyKernel"; `untrusted(path)` lists the names that a
        file asks for.
    storage_options : mapping, optional
        fsspec's options for a URL.

    Returns
    -------
    estimator or Moments

    Raises
    ------
    UntrustedError
        If the file asks for any other class or function, before anything is imported.
    FileNotFoundError
        If there is no saved model.
    ValueError
        For another zarr store, or another format.
    OSError
        For a store that is damaged.
    """
    with using(storage_options):
        _, data = read_state(path)
    with _of(path):
        return decode(data, Registered, trusted)


def untrusted(path: Path, *, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of classes and functions that a file asks for besides daskspectral's.

    Nothing is imported.

    Parameters
    ----------
    path : str or path
        A path or URL of a saved model or moments.
    storage_options : mapping, optional
        fsspec's options for a URL.

    Returns
    -------
    list of str

    Raises
    ------
    FileNotFoundError, ValueError or OSError
        As `load`.
    """
    with using(storage_options):
        _, data = read_state(path)
    with _of(path):
        return foreign(data)


def write_state(path: Path, kind: str, data: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write encoded data as a zarr group that appears whole or not at all.

    Raises FileExistsError for a path that exists, unless `overwrite`, and OSError if the disk is full.
    """
    plain, arrays = _without_arrays(data)
    with create_group(path, overwrite=overwrite) as group:

        def write(name: str) -> str:
            array, dimensions = arrays[name]
            group.create_array(name, data=array, dimension_names=dimensions, config={"write_empty_chunks": True})
            return digest_of(array)

        digests = dict(zip(arrays, _for_each(write, arrays, path), strict=True))
        made = importlib.import_module("daskspectral").__version__
        header = {"format": FORMAT, "kind": kind, "version": made, "state": plain, "arrays": digests}
        group.attrs[SAVED] = {**header, "digest": digest_of(json.dumps(header, sort_keys=True))}


def read_state(path: Path) -> tuple[str, Any]:
    """Return the kind and the encoded data written at a path or URL.

    Raises FileNotFoundError if there is no store, ValueError for a store of another kind or another format, OSError
    for a store that is damaged.
    """
    try:
        return _read(os.fspath(path))
    except OSError:  # it may have been replaced while it was read
        return _read(os.fspath(path))


def _for_each(function: Callable[[str], Any], names: Iterable[str], path: Path) -> list[Any]:
    """Return the results of a function of names, at a URL of several names at once."""
    if not is_url(path):
        return [function(name) for name in names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, names))


@contextmanager
def _of(path: Path) -> Iterator[None]:
    """Add the path of the file to a ValueError."""
    try:
        yield
    except UntrustedError:
        raise
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error


def _read(text: str) -> tuple[str, Any]:
    """Return the kind and the data of a store that is not replaced meanwhile."""
    import zarr

    from daskspectral.data.stores import open_existing

    group = open_existing(text, "saved model", ZARR_FORMAT)
    header: Any = group.attrs.get(SAVED)
    if not isinstance(group, zarr.Group) or not isinstance(header, dict):
        raise ValueError(f"{text} must be a saved model or moments, got another zarr {type(group).__name__.lower()}")
    if header.get("format") != FORMAT:
        raise ValueError(f"{text} must have format {FORMAT}, got {header.get('format')!a:.40}. Fit and save it again")
    digested = json.dumps({part: value for part, value in header.items() if part != "digest"}, sort_keys=True)
    if not header.keys() >= {"kind", "state", "arrays"} or header.get("digest") != digest_of(digested):
        raise OSError(f"{text} is damaged: its attributes are not what was saved; save it again")
    return str(header["kind"]), _data(text, group, header)


def _data(text: str, group: Any, header: Mapping[str, Any]) -> Any:
    def read(name: str) -> Array:
        """Return an array of the group. Its digest is compared, because zarr reads a missing chunk as zeros."""
        try:
            array = np.asarray(group[name][...])
        except (KeyError, ValueError, RuntimeError, OSError, MemoryError) as error:
            raise OSError(f"{text} is damaged: its array {name} cannot be read ({error}); save it again") from error
        if digest_of(array) != header["arrays"][name]:
            raise OSError(f"{text} is damaged: its array {name} is not what was saved; save it again")
        return array

    try:
        names = list(header["arrays"])
        return _with_arrays(header["state"], dict(zip(names, _for_each(read, names, text), strict=True)))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, MemoryError) as error:
        raise OSError(f"{text} is damaged: its state and its arrays do not go together ({error!r})") from error


def _without_arrays(data: Any) -> tuple[Any, dict[str, tuple[Array, list[str]]]]:
    """Return encoded data with the path of each array in its place, and by path the arrays and names of dimensions.

    Objects and mappings are groups of the path, items of lists are numbered in its last part. A name of a dimension has
    one length in all arrays, and occurs once in each: others get a number.
    """
    arrays: dict[str, tuple[Array, list[str]]] = {}
    lengths: dict[str, int] = {}

    def plain(value: Any, path: str, key: str, known: Mapping[str, tuple[str, ...]]) -> Any:
        if isinstance(value, np.ndarray):
            names: list[str] = []
            given = chain(known.get(key, ()), (f"{key}_dim_{i}" for i in count()))
            for name, length in zip(given, value.shape, strict=False):
                free = (n for n in chain([name], (f"{name}_{i}" for i in count(2))) if n not in names)
                names.append(next(n for n in free if lengths.setdefault(n, length) == length))
            while path in arrays:
                path += "_"
            arrays[path] = value, names
            return {"$array": path}
        if isinstance(value, list):
            return [plain(item, f"{path}.{i}", key, known) for i, item in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        if "$class" in value:
            return {**value, "state": plain(value["state"], path, key, dimension_names(value["$class"]))}
        if "$tuple" in value:
            return {"$tuple": plain(value["$tuple"], path, key, known)}
        return {k: plain(v, _below(path, k), k, known) for k, v in value.items()}

    return plain(data, "", "array", {}), arrays


def _below(path: str, key: str) -> str:
    """Return the path of the value of a key in a mapping at a path: a new part, or more of one that has a dot."""
    if "." not in path and re.fullmatch(r"(?!__)\w[\w ]*", key, re.ASCII):
        return f"{path}/{key}".lstrip("/")
    return f"{path or 'state'}.{re.sub(r'[^A-Za-z0-9_ -]', '_', key)}"


def _with_arrays(value: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, dict):
        return arrays[value["$array"]] if "$array" in value else {k: _with_arrays(v, arrays) for k, v in value.items()}
    return [_with_arrays(v, arrays) for v in value] if isinstance(value, list) else value
