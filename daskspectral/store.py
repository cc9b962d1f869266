"""Save objects as zarr groups, atomically, and load them: digests are verified, and no code is executed."""

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
AT_ONCE = 16  # arrays in transfer to or from an object store

Path = str | os.PathLike[str]
Array = np.ndarray[Any, Any]


def save(what: Any, path: Path, *, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> None:
    """Save a fitted estimator, or another object of this package, as a zarr group, atomically.

    `xarray.open_zarr(path)` shows the arrays of the object, and `xarray.open_datatree(path)` also those of its parts.
    Everything else is in the attribute "daskspectral".

    Parameters
    ----------
    what : Registered
        A fitted estimator, moments, metastable sets, first passage times, basis or recipe, operator or kernel.
    path : str or path
        Path or URL.
    overwrite : bool, default=False
        Replace an existing zarr store.
    storage_options : mapping, optional
        Options of fsspec for a URL, such as {"endpoint_url": ...}; they are not saved.

    Raises
    ------
    FileExistsError
        If the path exists and `overwrite` is False.
    TypeError or ValueError
        If the estimator is not fitted, or contains a class or function that is not at the top level of a module.

    See Also
    --------
    load : Load what was saved.

    Examples
    --------
    >>> import daskspectral as dsp, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "kernel.zarr")
    >>> dsp.save(dsp.kernels.Gaussian(scale=2.0), path)
    >>> dsp.load(path)
    Gaussian(scale=2.0)
    """
    if not isinstance(what, Registered):
        raise TypeError(f"save() requires a fitted estimator or moments, got {type(what).__name__}")
    data = encode(what)
    decode(data, type(what), trusted=foreign(data))
    with using(storage_options):
        write_state(path, name_of(type(what)), data, overwrite=overwrite)


def load(path: Path, *, trusted: Iterable[Trusted] = (), storage_options: Mapping[str, Any] | None = None) -> Any:
    """Load a fitted estimator, or another object that `save` wrote.

    Classes of daskspectral always load. Your classes and functions load only if `trusted` lists them: a trusted name is
    imported and runs with your rights.

    Parameters
    ----------
    path : str or path
        Path or URL.
    trusted : iterable of str, class or function
        Trusted classes and functions, or their names such as "mymodule.MyKernel"; `untrusted(path)` lists the names
        in a file.
    storage_options : mapping, optional
        Options of fsspec for a URL.

    Returns
    -------
    Registered
        The object, such as a fitted estimator.

    Raises
    ------
    UntrustedError
        If the file names any other class or function; before anything is imported.
    FileNotFoundError
        If there is no saved model.
    ValueError
        If the store is not a saved model, or has another format.
    OSError
        If the store is damaged.

    See Also
    --------
    save : Save an object.
    untrusted : List what a file would import.

    Examples
    --------
    >>> import daskspectral as dsp, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "kernel.zarr")
    >>> dsp.save(dsp.kernels.Gaussian(scale=2.0), path)
    >>> dsp.load(path).scale
    2.0
    """
    with using(storage_options):
        _, data = read_state(path)
    with _of(path):
        return decode(data, Registered, trusted)


def untrusted(path: Path, *, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of classes and functions in a file that are not part of daskspectral.

    The file is read, and no module is imported.

    Parameters
    ----------
    path : str or path
        Path or URL of a saved object.
    storage_options : mapping, optional
        Options of fsspec for a URL.

    Returns
    -------
    list of str
        Names, as `module.name`.

    Raises
    ------
    FileNotFoundError, ValueError or OSError
        As `load`.

    See Also
    --------
    load : Load an object, with the names that are trusted.

    Examples
    --------
    >>> import daskspectral as dsp, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "kernel.zarr")
    >>> dsp.save(dsp.kernels.Gaussian(scale=2.0), path)
    >>> dsp.untrusted(path)
    []
    """
    with using(storage_options):
        _, data = read_state(path)
    with _of(path):
        return foreign(data)


def write_state(path: Path, kind: str, data: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write encoded data as a zarr group, atomically.

    Raises FileExistsError if the path exists, unless `overwrite`, and OSError if the disk is full.
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
    """Return the kind and the encoded data of a path or URL.

    Raises FileNotFoundError without a store, ValueError for another kind or format, OSError for a damaged store.
    """
    try:
        return _read(os.fspath(path))
    except OSError:  # it may have been replaced while it was read
        return _read(os.fspath(path))


def _for_each(function: Callable[[str], Any], names: Iterable[str], path: Path) -> list[Any]:
    """Return the results of a function of names, concurrently for a URL."""
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
        raise OSError(f"{text} is damaged: its attributes changed after saving. Save it again")
    return str(header["kind"]), _data(text, group, header)


def _data(text: str, group: Any, header: Mapping[str, Any]) -> Any:
    def read(name: str) -> Array:
        """Return an array of the group, verified by its digest because zarr reads a missing chunk as zeros."""
        try:
            array = np.asarray(group[name][...])
        except (KeyError, ValueError, RuntimeError, OSError, MemoryError) as error:
            raise OSError(f"{text} is damaged: its array {name} cannot be read ({error}). Save it again") from error
        if digest_of(array) != header["arrays"][name]:
            raise OSError(f"{text} is damaged: its array {name} changed after saving. Save it again")
        return array

    try:
        names = list(header["arrays"])
        return _with_arrays(header["state"], dict(zip(names, _for_each(read, names, text), strict=True)))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, MemoryError) as error:
        raise OSError(f"{text} is damaged: its state does not match its arrays ({error!r})") from error


def _without_arrays(data: Any) -> tuple[Any, dict[str, tuple[Array, list[str]]]]:
    """Return encoded data with arrays replaced by paths, and arrays with dimension names by path.

    Objects and mappings are groups of the path, items of lists are numbered in its last part. A dimension name has one
    length in all arrays and occurs once in each; otherwise a number is appended.
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
    """Return the path of a key's value in a mapping at a path: a new part, or an extension of one with a dot."""
    if "." not in path and re.fullmatch(r"(?!__)\w[\w ]*", key, re.ASCII):
        return f"{path}/{key}".lstrip("/")
    return f"{path or 'state'}.{re.sub(r'[^A-Za-z0-9_ -]', '_', key)}"


def _with_arrays(value: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, dict):
        return arrays[value["$array"]] if "$array" in value else {k: _with_arrays(v, arrays) for k, v in value.items()}
    return [_with_arrays(v, arrays) for v in value] if isinstance(value, list) else value
