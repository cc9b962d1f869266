"""HDF5 and NetCDF 4 files can name other files of the machine as theirs: only those are read that hold their values."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from daskspectral.data.bounded import PLAIN_BYTES

DENSEST = 1032  # bytes that a byte of a deflated stream can stand for


def refuse_external(source: Any, name: str) -> None:
    """Raise OSError for an HDF5 file, by its path or open, that takes values or members from other files.

    So it does for one that declares arrays, over 64 MB each, larger than what is stored of them can hold.

    A file of another format is left to its reader. Raises ImportError without h5py.
    """
    if importlib.util.find_spec("h5py") is None:
        raise ImportError(f"{name} may be HDF5, which needs h5py: pip install daskspectral[convert]")
    h5py = importlib.import_module("h5py")

    def others(node: Any) -> Iterator[str]:
        if isinstance(node, h5py.Group):
            links = (node.get(key, getlink=True) for key in node)
            yield from (link.filename for link in links if isinstance(link, h5py.ExternalLink))
        elif isinstance(node, h5py.Dataset):
            yield from (part[0] for part in node.external or ())
            sources = node.virtual_sources() if node.is_virtual else ()
            yield from (part.file_name for part in sources if part.file_name != ".")

    def look(path: str, node: Any) -> None:
        for other in others(node):
            raise OSError(
                f"{name} takes values of {path!a} from another file, {other!a}, and only files that hold their values "
                "are read. Where you trust it, copy them into one file, such as by h5py or h5repack"
            )

        if isinstance(node, h5py.Dataset) and not node.is_virtual and node.nbytes > PLAIN_BYTES:
            stored = node.id.get_storage_size()
            if node.nbytes > DENSEST * stored:
                raise OSError(
                    f"{name} declares {node.nbytes} bytes of {path!a}, more than the {stored} bytes that are stored of "
                    "it can hold: it was altered or is incomplete. Write it again, with its fill values"
                )

    try:
        file = h5py.File(source, "r")
    except OSError:
        return
    with file:
        try:
            look("/", file)
            file.visititems(look)
        except (RuntimeError, KeyError) as error:
            raise OSError(f"{name} is damaged, and its HDF5 groups cannot be read: {error}. Restore it") from error
