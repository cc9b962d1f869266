"""Is a store whole, and what do its columns hold? Every chunk is listed, decoded and counted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import zarr

from daskspectral.data.integrity import check_chunks, list_chunks
from daskspectral.data.readers import Reader, zarr_reader
from daskspectral.data.remote import lacks_bucket, local_path, reaching, stored
from daskspectral.data.stores import all_arrays, has_checksums, metadata_of, open_node
from daskspectral.store import is_saved, read_state

SHOWN = 20  # columns that are shown as text
Numbers = np.ndarray[Any, Any]


@dataclass
class Columns:
    """The columns of an array, or of a part of its rows: counts, extremes and sums."""

    rows: int
    nan: Numbers
    inf: Numbers
    low: Numbers
    high: Numbers
    total: Numbers

    @classmethod
    def of(cls, block: Numbers) -> Columns:
        """The columns of some rows."""
        flat = block.reshape(len(block), -1).astype(float)
        finite = np.isfinite(flat)
        low, high = np.where(finite, flat, np.inf).min(axis=0), np.where(finite, flat, -np.inf).max(axis=0)
        total = np.where(finite, flat, 0).sum(axis=0)
        return cls(len(flat), np.isnan(flat).sum(axis=0), np.isinf(flat).sum(axis=0), low, high, total)

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """The columns of all rows, from those of their parts."""
        nan, inf, total = (sum(getattr(part, name) for part in parts) for name in ("nan", "inf", "total"))
        low = np.min([part.low for part in parts], axis=0)
        high = np.max([part.high for part in parts], axis=0)
        rows = sum(part.rows for part in parts)
        return cls(rows, nan, inf, low, high, total)


@dataclass
class Checked:
    """One array: its metadata, what is wrong with it, and its columns where they are numbers."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...]
    files: int | None = None
    bytes: int | None = None
    checksums: bool = True
    damage: list[str] = field(default_factory=list)
    columns: Columns | None = None


@stored
def verify(path: str, *, allow_missing: bool = False) -> tuple[str, list[Checked], list[str]]:
    """The kind of the store at a path, its arrays, and what is damaged of the store as a whole.

    Raises FileNotFoundError where there is no store, ValueError for a file, and OSError for metadata that cannot be
    read.
    """
    local = local_path(path)
    target = path if local is None else str(local)
    if local is not None and not local.exists():
        raise FileNotFoundError(f"there is no store at {path}: the path does not exist")
    if local is not None and local.is_file():
        raise ValueError(f"{path} is a file, and a zarr store is wanted")
    try:
        node = open_node(path)
    except (FileNotFoundError, KeyError) as error:
        if lacks_bucket(error):
            raise
        raise FileNotFoundError(f"there is no zarr store at {path}") from None
    kind, damage, digests = "array", [], False
    if isinstance(node, zarr.Group):
        kind = "group"
        digests = is_saved(node)
        if digests:
            try:
                kind = f"saved {read_state(path)[0]}"
            except (OSError, ValueError) as error:
                kind, damage = "saved, but damaged", [str(error)]
        with metadata_of(target), reaching(path):
            arrays = all_arrays(node, path)
    else:
        arrays = {"": node}
    found = [_checked(array, f"{path.rstrip('/')}/{name}".rstrip("/")) for name, array in arrays.items()]
    for checked in found if digests else []:
        checked.checksums = True
    return kind, found, damage


def _checked(array: zarr.Array[Any], name: str) -> Checked:
    unit = tuple(int(n) for n in array.chunks)
    found = Checked(name, tuple(int(n) for n in array.shape), str(array.dtype), unit)
    found.checksums = has_checksums(array.metadata.to_dict())
    if not array.shape or 0 in array.shape:
        return found
    reader = zarr_reader(array, name)
    listing = list_chunks(reader)
    if listing is not None:
        sizes = [size for key, (size, _) in listing.files.items() if not key.endswith((".json", ".zarray", ".zattrs"))]
        found.files, found.bytes = len(sizes), sum(sizes)
    try:
        check_chunks(reader, listing)
    except OSError as error:
        found.damage.append(str(error))
    numbers = array.dtype.kind in "fiub"
    spans = list(pairwise(reader.edges.tolist()))

    def read(span: tuple[int, int]) -> Columns | str:
        try:
            rows = _rows(reader, span)
        except OSError as error:
            return str(error)
        except MemoryError as error:
            return f"{name} cannot be held in memory, chunk by chunk: {error}. Write it in smaller chunks"
        return Columns.of(rows) if numbers else ""

    parts: list[Columns] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for result in pool.map(read, spans):
            if isinstance(result, Columns):
                parts.append(result)
            elif result and not _told(result, found.damage):
                found.damage.append(result)
    found.columns = Columns.joined(parts) if parts else None
    return found


def _rows(reader: Reader, span: tuple[int, int]) -> Numbers:
    return np.asarray(reader.read(*span))


def _told(damage: str, known: list[str]) -> bool:
    """Whether a missing chunk was told of, with all others, from the listing."""
    return "is missing for this process" in damage and any("is not whole" in text for text in known)


def text_of(kind: str, found: list[Checked], damage: list[str]) -> str:
    """What was verified, for people."""
    lines = [f"store       {kind}"]
    for array in found:
        size = "" if array.files is None else f", {array.files} files of {array.bytes} bytes"
        lines += ["", f"{array.name}: {array.shape} {array.dtype} in chunks {array.chunks}{size}"]
        if not array.checksums:
            lines.append("  no checksums: values that were altered, and can still be decoded, are not noticed")
        if array.columns is not None:
            lines += _table(array.columns)
        lines += [f"  DAMAGED: {text}" for text in array.damage]
    lines += ["", *(f"DAMAGED: {text}" for text in damage)] if damage else []
    wrong = len(damage) + sum(len(array.damage) for array in found)
    return "\n".join([*lines, "", f"{wrong} things are damaged" if wrong else "whole"])


def facts_of(kind: str, found: list[Checked], damage: list[str]) -> dict[str, Any]:
    """What was verified, as plain data."""
    arrays = []
    for array in found:
        facts: dict[str, Any] = {
            "name": array.name,
            "shape": list(array.shape),
            "dtype": array.dtype,
            "chunks": list(array.chunks),
            "files": array.files,
            "bytes": array.bytes,
            "checksums": array.checksums,
            "damage": array.damage,
        }
        c = array.columns
        if c is not None:
            valid = c.rows - c.nan - c.inf
            mean = np.divide(c.total, valid, out=np.zeros_like(c.total), where=valid > 0)
            facts["columns"] = [
                {
                    "nan": int(c.nan[i]),
                    "infinite": int(c.inf[i]),
                    "least": float(c.low[i]) if valid[i] else None,
                    "greatest": float(c.high[i]) if valid[i] else None,
                    "mean": float(mean[i]) if valid[i] else None,
                }
                for i in range(len(c.nan))
            ]
        arrays.append(facts)
    whole = not damage and not any(array.damage for array in found)
    return {"store": kind, "whole": whole, "damage": damage, "arrays": arrays}


def _table(columns: Columns) -> list[str]:
    lines = [f"  {'column':>6s} {'least':>12s} {'greatest':>12s} {'mean':>12s} {'nan':>8s} {'infinite':>8s}"]
    for i in range(min(SHOWN, len(columns.nan))):
        valid = columns.rows - columns.nan[i] - columns.inf[i]
        numbers = (columns.low[i], columns.high[i], columns.total[i] / valid) if valid else (np.nan,) * 3
        shown = " ".join(f"{number:12.6g}" for number in numbers)
        lines.append(f"  {i:6d} {shown} {columns.nan[i]:8d} {columns.inf[i]:8d}")
    if len(columns.nan) > SHOWN:
        lines.append(f"  ... and {len(columns.nan) - SHOWN} more columns; --json has all of them")
    return lines
