"""URLs: options, accepted protocols, and notes on errors of a store."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

from daskspectral.errors import nearest, redacted, scoped
from daskspectral.validation import is_path

Location = str | os.PathLike[str]

PROTOCOLS = (
    *("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "http", "https", "memory"),
    *("hdfs", "webhdfs", "sftp", "ssh", "ftp", "oss", "oci"),
)
"""Protocols of URLs that are opened: each identifies one store. Others, such as reference:// and chains by ::, refer to
locations named in a file, which may be local files and devices."""

HINT = "Check the credentials (in the environment or in storage_options), the endpoint_url and the bucket"

_in_force: ContextVar[Mapping[str, Any]] = ContextVar("daskspectral_stores", default=MappingProxyType({}))
"""Options for opening stores, and attributes of new ones: arguments of `using`."""


def is_url(location: Any) -> bool:
    """Return whether this is a URL that is not a local file."""
    if not is_path(location):
        return False
    text = os.fspath(location)
    return isinstance(text, str) and "://" in text and not text.startswith("file://")


def refuse_protocol(text: str) -> None:
    """Raise ValueError for a URL whose protocol is not in PROTOCOLS, and for chains by `::`."""
    scheme = text.partition("://")[0]
    if "::" in re.sub(r"\[[^][/]*\]", "", text):  # except in the address of a host
        raise ValueError(f"{text!a} must be the URL of one store, not a chain by '::'.")
    if scheme not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise ValueError(f"Unknown protocol {scheme!a}{nearest(scheme, PROTOCOLS)}. Available: {known}.")


def refuse_secrets(text: str) -> None:
    """Raise ValueError, without quoting it, for a URL with a user part or a query."""
    whole = re.sub(r"\s", "_", text)
    if redacted(whole) != whole:
        scheme = re.split(r"[^\w+.-]", text.partition(":/")[0])[-1]
        raise ValueError(
            f"the URL {scheme}://*** must not have a user part (before @) or a query (after ?, # or ;), which would be "
            "logged and saved. Pass credentials in the environment or in storage_options."
        )


def using(
    options: Mapping[str, Any] | None = None,
    allow_missing: bool | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> AbstractContextManager[None]:
    """Open URLs inside with these options of fsspec, and add attributes to new arrays and groups.

    None keeps the options in force; `allow_missing` reads missing chunks as fill values. Raises TypeError for options
    that are not a mapping.
    """
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"storage_options must be a mapping such as {{'anon': True}}, got {type(options).__name__}.")
    given = {"options": options, "allow_missing": allow_missing, "attributes": attributes}
    return scoped(_in_force, {**_in_force.get(), **{name: value for name, value in given.items() if value is not None}})


def fill_is_meant() -> bool:
    """Return whether missing chunks of arrays opened here are read as fill values, not an error."""
    return bool(_in_force.get().get("allow_missing", False))


def options_in_force() -> dict[str, Any]:
    """Return the options for opening URLs here."""
    return dict(_in_force.get().get("options", {}))


def attributes_in_force() -> dict[str, Any]:
    """Return the attributes of arrays and groups created here."""
    return dict(_in_force.get().get("attributes", {}))


def connect(url: Location) -> tuple[Any, str]:
    """Return the file system of a URL, with the options in force, and the path in it."""
    text = os.fspath(url)
    refuse_secrets(text)
    refuse_protocol(text)
    try:
        files, root = importlib.import_module("fsspec.core").url_to_fs(text, **options_in_force())
    except ImportError as error:
        scheme = text.partition("://")[0]
        raise ImportError(f"{scheme}:// requires a library: pip install s3fs, gcsfs or adlfs ({error})") from error
    files.invalidate_cache()
    return files, str(root).rstrip("/")


def opened_file(url: Location) -> Any:
    """Return a file at a URL, open for reading; raise as `connect`, and errors of the object store."""
    files, root = connect(url)
    with reaching(url):
        return files.open(root, "rb")


def synchronous(files: Any) -> Any:
    """Return the file system of a zarr store as one that can be called from a thread."""
    inner = getattr(files, "sync_fs", None)
    if inner is not None:
        return inner
    if not getattr(files, "asynchronous", False):
        return files
    return type(files)(*files.storage_args, **{**files.storage_options, "asynchronous": False})


@contextmanager
def reaching(location: Location) -> Iterator[None]:
    """Add the URL and a hint to errors of an object store inside."""
    try:
        yield
    except Exception as error:  # of any type: each package of a store has different ones
        if is_url(location):
            error.add_note(f"At {os.fspath(location)}. {HINT}")
        raise


def local_path(path: Location) -> Path | None:
    """Return the absolute path, links resolved; None for a URL other than file://, ValueError with a credential."""
    text = os.fspath(path)
    refuse_secrets(text)
    if is_url(text):
        return None
    return Path(os.path.realpath(text.removeprefix("file://")))
