"""Is a store whole, and what do its columns hold? Every chunk is listed, decoded and counted."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import zarr

from daskspectral.data.integrity import check_chunks, list_chunks
from daskspectral.data.readers import zarr_reader
from daskspectral.data.remote import reaching, stored
from daskspectral.data.stores import all_arrays, has_checksums, metadata_of, open_existing
from daskspectral.store import is_saved, read_state

SHOWN = 20  # columns, or what is damaged of an array, that are shown as text
Numbers = np.ndarray[Any, Any]


@stored
def verify(path: str, *, allow_missing: bool = False) -> dict[str, Any]:
    """What the store at a path is, whether it is whole, its arrays, and what is damaged of the store as a whole.

    Raises FileNotFoundError where there is no store, ValueError for a file, and OSError for metadata that cannot be
    read.
    """
    node = open_existing(path, "zarr store")
    kind, damage, digests = "array", [], False
    if isinstance(node, zarr.Array):
        arrays = {"": node}
    else:
        kind, digests = "group", is_saved(node)
        if digests:
            try:
                kind = f"saved {read_state(path)[0]}"
            except (OSError, ValueError) as error:
                kind, damage = "saved, but damaged", [str(error)]
        with metadata_of(path), reaching(path):
            arrays = all_arrays(node, path)
    found = [_checked(array, f"{path.rstrip('/')}/{name}".rstrip("/"), digests) for name, array in arrays.items()]
    whole = not damage and not any(array["damage"] for array in found)
    return {"store": kind, "whole": whole, "damage": damage, "arrays": found}


def _checked(array: zarr.Array[Any], name: str, digests: bool) -> dict[str, Any]:
    """One array: its metadata, what is damaged of it, and its columns where they are numbers."""
    damage: list[str] = []
    found: dict[str, Any] = {
        "name": name,
        "shape": [int(n) for n in array.shape],
        "dtype": str(array.dtype),
        "chunks": [int(n) for n in array.chunks],
        "files": None,
        "bytes": None,
        "checksums": digests or has_checksums(array.metadata.to_dict()),
        "damage": damage,
    }
    if not array.shape or 0 in array.shape:
        return found
    reader = zarr_reader(array, name)
    listing = list_chunks(reader)
    if listing is not None:
        sizes = [size for key, (size, _) in listing.files.items() if not key.endswith((".json", ".zarray", ".zattrs"))]
        found |= {"files": len(sizes), "bytes": sum(sizes)}
    try:
        check_chunks(reader, listing)
    except OSError as error:
        damage.append(str(error))

    def read(span: tuple[int, int]) -> Numbers | str | None:
        try:
            rows = np.asarray(reader.read(*span))
        except OSError as error:
            return str(error)
        except MemoryError as error:
            return f"{name} cannot be held in memory, chunk by chunk: {error}. Write it in smaller chunks"
        return _measured(rows) if array.dtype.kind in "fiub" else None

    parts: list[Numbers] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for result in pool.map(read, pairwise(reader.edges.tolist())):
            if isinstance(result, np.ndarray):
                parts.append(result)
            elif result is not None and not _told(result, damage):
                damage.append(result)
    if parts:
        found["columns"] = _columns(np.stack(parts))
    return found


def _measured(rows: Numbers) -> Numbers:
    """Of the columns of some rows: how many are finite, NaN and infinite, and the least, the greatest, the sum."""
    flat = rows.reshape(len(rows), -1).astype(float)
    finite = np.isfinite(flat)
    low, high = np.where(finite, flat, np.inf).min(axis=0), np.where(finite, flat, -np.inf).max(axis=0)
    counts = [count.sum(axis=0) for count in (finite, np.isnan(flat), np.isinf(flat))]
    return np.stack([*counts, low, high, np.where(finite, flat, 0).sum(axis=0)])


def _columns(parts: Numbers) -> list[dict[str, Any]]:
    """The columns of all rows, from what is `_measured` of their parts."""
    low, high = parts[:, 3].min(axis=0), parts[:, 4].max(axis=0)
    columns = zip(*parts[:, [0, 1, 2, 5]].sum(axis=0), low, high, strict=True)
    return [
        {
            "nan": int(nan),
            "infinite": int(infinite),
            "least": float(least) if finite else None,
            "greatest": float(greatest) if finite else None,
            "mean": float(total / finite) if finite else None,
        }
        for finite, nan, infinite, total, least, greatest in columns
    ]


def _told(damage: str, known: list[str]) -> bool:
    """Whether a missing chunk was told of, with all others, from the listing."""
    return "is missing for this process" in damage and any("is not whole" in text for text in known)


def text_of(found: dict[str, Any]) -> str:
    """What was verified, for people."""
    lines, wrong = [f"store       {found['store']}"], len(found["damage"])
    for array in found["arrays"]:
        size = "" if array["files"] is None else f", {array['files']} files of {array['bytes']} bytes"
        shape, chunks = tuple(array["shape"]), tuple(array["chunks"])
        lines += ["", f"{array['name']}: {shape} {array['dtype']} in chunks {chunks}{size}"]
        if not array["checksums"]:
            lines.append("  no checksums: values that were altered, and can still be decoded, are not noticed")
        lines += _table(array["columns"]) if "columns" in array else []
        lines += [f"  DAMAGED: {text}" for text in array["damage"][:SHOWN]]
        if len(array["damage"]) > SHOWN:
            lines.append(f"  and {len(array['damage']) - SHOWN} more, in --json")
        wrong += len(array["damage"])
    lines += ["", *(f"DAMAGED: {text}" for text in found["damage"])] if found["damage"] else []
    return "\n".join([*lines, "", f"{wrong} things are damaged" if wrong else "whole"])


def _table(columns: list[dict[str, Any]]) -> list[str]:
    lines = [f"  {'column':>6s} {'least':>12s} {'greatest':>12s} {'mean':>12s} {'nan':>8s} {'infinite':>8s}"]
    for i, column in enumerate(columns[:SHOWN]):
        numbers = [np.nan if column[name] is None else column[name] for name in ("least", "greatest", "mean")]
        shown = " ".join(f"{number:12.6g}" for number in numbers)
        lines.append(f"  {i:6d} {shown} {column['nan']:8d} {column['infinite']:8d}")
    if len(columns) > SHOWN:
        lines.append(f"  ... and {len(columns) - SHOWN} more columns; --json has all of them")
    return lines
