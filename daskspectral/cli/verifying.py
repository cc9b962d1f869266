"""Verification of a store: every chunk is listed and decoded, and invalid rows are counted."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import zarr

from daskspectral.data.folders import SAVED
from daskspectral.data.integrity import check_chunks, list_chunks
from daskspectral.data.readers import zarr_reader
from daskspectral.data.remote import using
from daskspectral.data.stores import all_arrays, has_checksums, metadata_of, open_existing
from daskspectral.store import read_state

SHOWN = 20  # damages that are shown as text; --json has all


def verify(path: str, *, allow_missing: bool = False) -> dict[str, Any]:
    """Return the type of the store at a path, its arrays, its damages, and whether it is intact.

    Raises FileNotFoundError without a store, ValueError for a file, and OSError for metadata that cannot be read.
    """
    node = open_existing(path, "zarr store")
    kind, damage, digests = "array", [], False
    if isinstance(node, zarr.Array):
        arrays = {"": node}
    else:
        kind, digests = "group", SAVED in node.attrs
        if digests:
            try:
                kind = f"saved {read_state(path)[0]}"
            except (OSError, ValueError) as error:
                kind, damage = "saved, but damaged", [str(error)]
        with metadata_of(path):
            arrays = all_arrays(node)
    with using(None, allow_missing):
        found = [_checked(array, f"{path.rstrip('/')}/{name}".rstrip("/"), digests) for name, array in arrays.items()]
    whole = not damage and not any(array["damage"] for array in found)
    return {"store": kind, "whole": whole, "damage": damage, "arrays": found}


def _checked(array: zarr.Array[Any], name: str, digests: bool) -> dict[str, Any]:
    """Return the metadata of one array, its damages, and its number of rows with NaN or infinity."""
    damage: list[str] = []
    found: dict[str, Any] = {
        "name": name,
        "shape": [int(n) for n in array.shape],
        "dtype": str(array.dtype),
        "chunks": [int(n) for n in array.chunks],
        "checksums": digests or has_checksums(array.metadata.to_dict()),
        "damage": damage,
    }
    if not array.shape or 0 in array.shape:
        return found
    reader = zarr_reader(array, name)
    listing = list_chunks(reader)
    try:
        check_chunks(reader, listing)
    except OSError as error:
        damage.append(str(error))
        reader = reader.lenient()  # each missing chunk is counted there

    def read(span: tuple[int, int]) -> int | str:
        try:
            rows = np.asarray(reader.read(*span))
        except (OSError, MemoryError) as error:
            return f"{name}, rows {span[0]} to {span[1]}: {error}"
        return int((~np.isfinite(rows)).reshape(len(rows), -1).any(axis=1).sum()) if array.dtype.kind in "fc" else 0

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = [*pool.map(read, pairwise(reader.edges.tolist()))]
    damage += [result for result in results if isinstance(result, str)]
    return found | {"invalid": sum(result for result in results if isinstance(result, int))}


def text_of(found: dict[str, Any]) -> str:
    """Return the result of `verify` as text."""
    lines, damage = [f"store       {found['store']}"], [*found["damage"]]
    for array in found["arrays"]:
        lines += ["", f"{array['name']}: {tuple(array['shape'])} {array['dtype']} in chunks {tuple(array['chunks'])}"]
        if not array["checksums"]:
            lines.append("  no checksums: values that were altered, and can still be decoded, are not noticed")
        if array.get("invalid"):
            lines.append(f"  {array['invalid']} rows hold NaN or infinity")
        damage += array["damage"]
    lines += ["", *(f"DAMAGED: {text}" for text in damage[:SHOWN])]
    return "\n".join([*lines, f"{len(damage)} damages" if damage else "whole"])
