"""Labeled data as an xarray object or a table: arrays in memory, zarr groups, NetCDF, Parquet."""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from daskspectral.data.folders import Folder
from daskspectral.data.frames import PARQUET, is_csv, library, open_table
from daskspectral.data.readers import FILL_MEANT, DaskReader, Reader, ZarrReader, zarr_reader
from daskspectral.data.remote import connect, fill_is_meant, local_path, opened_file, reaching
from daskspectral.validation import is_path, is_sequence, loaded

if TYPE_CHECKING:
    import xarray as xr
    import zarr

PHANTOM = b"This is a netCDF dimension but not a netCDF variable"


def check_hdf5(source: Any, name: str) -> None:
    """Raise OSError if an HDF5 file, open or a path, refers to external values or is incomplete.

    External values are those in other files or, for virtual datasets, other datasets. Unwritten chunks, which HDF5
    reads as fill values, are an error in the root group unless fill values mark missing values or are accepted.
    """
    h5py = library("h5py", f"{name} may be HDF5, which")
    try:
        file = h5py.File(source, "r")
    except OSError:
        return

    def check(path: str, node: Any) -> None:
        if isinstance(node, h5py.Group):
            links = (node.get(key, getlink=True) for key in node)
            elsewhere = [link.filename for link in links if isinstance(link, h5py.ExternalLink)]
        else:
            elsewhere = [part[0] for part in getattr(node, "external", None) or ()]
        if elsewhere or getattr(node, "is_virtual", False):
            other = ascii(elsewhere[0]) if elsewhere else "other datasets"
            raise OSError(
                f"{path!a} of {name} refers to values in {other}. Copy them into one file, such as by h5repack"
            )
        if isinstance(node, h5py.Dataset) and "/" not in path and not fill_is_meant() and _lacks_chunks(node, h5py):
            raise OSError(f"{path!a} of {name} lacks chunks. Restore the file, or {FILL_MEANT}")

    with file:
        try:
            check("/", file)
            file.visititems(check)
        except (RuntimeError, KeyError) as error:
            raise OSError(f"{name} has damaged HDF5 groups: {error}. Restore it") from error


def _lacks_chunks(dataset: Any, h5py: Any) -> bool:
    """Return whether unwritten chunks would read as numbers that do not mark missing values."""
    label = dataset.attrs.get("NAME")
    if not dataset.size or (dataset.is_scale and isinstance(label, bytes) and label.startswith(PHANTOM)):
        return False
    fill = np.asarray(dataset.fillvalue)
    meant = [np.asarray(dataset.attrs[a]).ravel() for a in ("_FillValue", "missing_value") if a in dataset.attrs]
    if fill.dtype.kind not in "fiu" or fill != fill or any(fill.item() in values for values in meant):
        return False
    return bool(dataset.id.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED)


NETCDF = (".nc", ".nc4", ".cdf", ".netcdf")
_PACKED = ("scale_factor", "add_offset", "missing_value", "_Unsigned")


@dataclass(frozen=True, eq=False)
class LabeledData:
    """Labeled data: an xarray object whose values are not yet read, or a table.

    `direct` reads the array of a zarr group without xarray if its values need no decoding; `files` are readers of all
    arrays of a group, by name, and `paths` other files.
    """

    data: Any
    direct: Reader | None = None
    files: Mapping[str, Reader] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def behind(self, reader: Reader, names: Iterable[Hashable]) -> Reader:
        """Return a reader of values computed from these arrays, which has the files behind them."""
        found = tuple(self.files[str(name)] for name in names if str(name) in self.files)
        return replace(cast(DaskReader, reader), files=found, paths=self.paths) if reader.lazy else reader


def open_labeled(value: Any, what: str) -> LabeledData | None:
    """Return DataArrays, Datasets, zarr groups of named dimensions, NetCDF, Parquet and CSV; else None.

    Only coordinates and metadata are read, and the number of rows of CSV. Raises ValueError for incompatible files,
    OSError for a damaged one, FileNotFoundError for a pattern without matches, ImportError without the library.
    """
    if isinstance(value, loaded("xarray.DataArray", "xarray.Dataset")):
        return LabeledData(value)
    if isinstance(value, loaded("zarr.Group")):
        return _group(value, what)
    paths = _paths(value)
    if not paths:
        return None
    if all(_ends(path, NETCDF) for path in paths):
        found = _matching(paths, what)
        return LabeledData(_netcdf(found, what), paths=tuple(found))
    if all(_ends(path, PARQUET) or _is_folder_of_parquet(path) for path in paths) or is_csv(paths):
        return LabeledData(open_table(_matching(paths, what)))
    if is_sequence(value):
        return None
    return _store(paths[0])


def is_files(value: Any) -> bool:
    """Return whether this is a list of NetCDF or Parquet files that form one array of rows."""
    if not is_sequence(value):
        return False
    paths = _paths(value)
    return bool(paths) and (any(all(_ends(p, of) for p in paths) for of in (NETCDF, PARQUET)) or is_csv(paths))


def _paths(value: Any) -> list[str]:
    parts = value if is_sequence(value) else [value]
    if not all(is_path(part) for part in parts):
        return []
    return [os.fspath(part) for part in parts]


def _ends(path: str, endings: tuple[str, ...]) -> bool:
    return path.lower().endswith(endings)


def _is_folder_of_parquet(path: str) -> bool:
    folder = local_path(path)
    if folder is None or not folder.is_dir() or Folder(folder).is_store:
        return False
    return next(folder.rglob("*.parquet"), None) is not None


def _matching(paths: list[str], what: str) -> list[str]:
    """Return the paths, patterns replaced by their matches; raise FileNotFoundError without matches."""
    from daskspectral.data.stores import refuse_irregular

    found: list[str] = []
    for path in paths:
        local = local_path(path)
        if glob.has_magic(path):
            if local is None:
                files, root = connect(path)
                with reaching(path):
                    matches = [files.unstrip_protocol(name) for name in sorted(files.glob(root))]
            else:
                matches = sorted(glob.glob(str(local)))
            if not matches:
                raise FileNotFoundError(f"{what} must match a file, got the pattern {path}. Check the folder")
            found += matches
        elif local is not None and not local.exists():
            raise FileNotFoundError(f"{what} must be an existing path, got {path}")
        else:
            found.append(path if local is None else str(local))
    for path in found:
        if "://" not in path:
            refuse_irregular(path)
    return found


def _netcdf(paths: list[str], what: str) -> xr.Dataset:
    """Return files as one Dataset, in the order of their coordinates; raise OSError if damaged or incompatible."""
    import xarray as xr

    if not any(importlib.util.find_spec(engine) for engine in ("h5netcdf", "netCDF4")):
        library("h5netcdf", f"{what} is NetCDF, which")
    remote = [path for path in paths if "://" in path]
    sources: Any = [opened_file(path) for path in paths] if remote else paths
    for path, source in zip(paths, sources, strict=True):
        check_hdf5(source, path)
    options: dict[str, Any] = {
        "chunks": {},
        "data_vars": "minimal",
        "coords": "minimal",
        "compat": "override",
        "join": "exact",
        "decode_coords": "all",
        "decode_timedelta": False,
        **({"engine": "h5netcdf"} if remote else {}),
    }
    try:
        found = xr.open_mfdataset(sources, combine="by_coords", **options)
    except Exception as error:  # of any kind: the message reports the files
        if isinstance(error, (PermissionError, ImportError, MemoryError)):
            raise
        raise OSError(
            f"{', '.join(paths[:3])} cannot be read as NetCDF: damaged or incompatible files "
            f"({type(error).__name__}: {str(error)[:200]!a}). Open them by xarray.open_mfdataset, and pass the Dataset"
        ) from error
    _check_attributes(found, ", ".join(paths[:3]))
    return found


def _store(path: str) -> LabeledData | None:
    """Return the zarr group at a path, else None."""
    local = local_path(path)
    if local is not None and not local.is_dir():
        return None
    from daskspectral.data.stores import open_node

    try:
        node = open_node(path)
    except (OSError, KeyError, ValueError):
        return None
    return _group(node, path) if isinstance(node, loaded("zarr.Group")) else None


def _group(group: zarr.Group, name: str) -> LabeledData | None:
    """Return a group, or its main array, as a Dataset; None if arrays have no named dimensions."""
    import zarr
    from zarr.storage import LocalStore, MemoryStore

    from daskspectral.data.stores import CheckedFolder, data_arrays, main_name, metadata_of

    with metadata_of(name):
        arrays = data_arrays(group)
    if not arrays:
        return None
    import xarray as xr

    store = CheckedFolder(group.store.root) if isinstance(group.store, LocalStore) else group.store
    unmasked = [str(key) for key, member in group.members() if isinstance(member, zarr.Array) and _has_no_mask(member)]
    main = main_name(group)
    with metadata_of(name):
        data = xr.open_zarr(  # noqa: TID251  # its arrays are checked in `data_arrays`
            store,
            group=group.path or None,
            chunks={},
            consolidated=group.metadata.consolidated_metadata is not None,
            decode_coords="all",
            decode_timedelta=False,
            mask_and_scale=dict.fromkeys(unmasked, False),  # by variable
        )
    for key in unmasked:
        data.variables[key].attrs.pop("_FillValue", None)
    _check_attributes(data, name)
    root = name.rstrip("/")
    files = {
        key: replace(
            ZarrReader.of(array, f"{root}/{key}"), allow_missing=fill_is_meant() or _reads_as_nan(array, data[key])
        )
        for key, array in arrays.items()
        if not isinstance(array.store, MemoryStore)
    }
    if len(arrays) > 1 and main not in data.data_vars:
        return LabeledData(data, files=files)
    key = next(iter(arrays)) if len(arrays) == 1 else str(main)
    direct = None if _packed(data[key]) else zarr_reader(arrays[key], f"{root}/{key}")
    return LabeledData(data[key], direct, files)


def _check_attributes(data: xr.Dataset, name: str) -> None:
    """Raise OSError if attributes for decoding values are not numbers; tasks do not know the file."""
    for key, variable in data.variables.items():
        found = {**variable.attrs, **variable.encoding}
        numeric = variable.dtype.kind in "fiub"
        for attribute in ("scale_factor", "add_offset", *(("_FillValue", "missing_value") if numeric else ())):
            value = np.asarray(found.get(attribute, 1))
            single = value.size == 1 or attribute == "missing_value"
            if value.dtype.kind not in "fiub" or not single or (attribute == "scale_factor" and not value.all()):
                raise OSError(
                    f"{attribute} of {str(key)!a} of {name} must be a number (a nonzero one for factors), got "
                    f"{str(found[attribute])[:80]!a}. Correct or remove it"
                )


def _has_no_mask(array: zarr.Array[Any]) -> bool:
    """Return whether format 2's fill value is the default 0, which xarray would read as missing."""
    cf = {*_PACKED, "_FillValue"} & {*array.attrs}
    return array.metadata.zarr_format == 2 and array.dtype.kind in "fiub" and array.fill_value == 0 and not cf


def _reads_as_nan(array: zarr.Array[Any], decoded: xr.DataArray) -> bool:
    """Return whether a missing chunk reads as NaN: xarray does not write chunks of land."""
    fill: Any = 0 if array.fill_value is None else array.fill_value
    return fill != fill or any(fill == decoded.encoding.get(key) for key in ("_FillValue", "missing_value"))


def _packed(array: xr.DataArray) -> bool:
    fill = array.encoding.get("_FillValue", np.nan)
    times = array.dtype.kind not in "fiub"
    return times or any(key in array.encoding for key in _PACKED) or not np.isnan(fill)
