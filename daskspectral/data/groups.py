"""Zarr groups as xarray lays them out: which of their arrays are data, and which one is meant by the group's path."""

from __future__ import annotations

from typing import Any

import zarr

from daskspectral.data.door import refuse_codecs, refuse_oversized

MAIN = "main_array"
"""Attribute of a group: the name of the array that is meant where one array of the group is wanted."""

MOST_MEMBERS = 10_000  # arrays and groups that are looked for within groups


def data_arrays(group: zarr.Group) -> dict[str, zarr.Array[Any]]:
    """The arrays of a group that are data by name, coordinates and bounds left out.

    It is empty for a group whose arrays have no named dimensions. A coordinate has the name of its dimension, or is
    named by the attribute `coordinates` of the group or of another array (the CF conventions).

    Raises OSError as `refuse_codecs`, and as `refuse_oversized` for a coordinate of its dimension, which is read whole.
    """
    members: dict[str, zarr.Array[Any]] = {k: v for k, v in group.members() if isinstance(v, zarr.Array)}
    dims = {name: dimensions(array) for name, array in members.items()}
    for name, array in members.items():
        refuse_codecs(array.metadata.to_dict(), f"{group.store}/{array.path}")
        if dims[name] == (name,):
            refuse_oversized(array, f"{group.store}/{array.path}")
    if not members or any(names is None for names in dims.values()):
        return {}
    aside = set(str(group.attrs.get("coordinates", "")).split())
    for array in members.values():
        for key in ("coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables"):
            aside |= set(str(array.attrs.get(key, "")).split())
    return {k: v for k, v in members.items() if k not in aside and dims[k] != (k,) and v.shape}


def all_arrays(group: zarr.Group, name: str) -> dict[str, zarr.Array[Any]]:
    """The arrays of a group and of the groups in it by their paths in it.

    Raises OSError for more than MOST_MEMBERS, as links that lead round and round have.
    """
    found: dict[str, zarr.Array[Any]] = {}
    waiting = [group]
    for inside in waiting:  # which grows meanwhile
        for _, member in inside.members():
            if isinstance(member, zarr.Array):
                found[member.path.removeprefix(f"{group.path}/")] = member
            else:
                waiting.append(member)
        if len(found) + len(waiting) > MOST_MEMBERS:
            raise OSError(
                f"{name} has more than {MOST_MEMBERS} arrays and groups, or links that lead back into it: remove such "
                "links, or name one of its arrays"
            )
    return found


def dimensions(array: zarr.Array[Any]) -> tuple[str, ...] | None:
    """The names of an array's dimensions, None where they have none."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if names is None:
        return () if not array.shape else None
    named: list[Any] = list(names)  # type: ignore[arg-type]
    return None if any(name is None for name in named) else tuple(map(str, named))


def main_array(group: zarr.Group) -> zarr.Array[Any] | None:
    """The array that is meant by the group: the one that it names, or its only array of data; None for others."""
    name = group.attrs.get(MAIN)
    if isinstance(name, str) and isinstance(group.get(name), zarr.Array):
        return group[name]  # type: ignore[return-value]
    found = data_arrays(group)
    return next(iter(found.values())) if len(found) == 1 else None
