"""Why there is nothing at a URL: no bucket, or a store whose writer has not published it."""

from __future__ import annotations

from daskspectral.data.folder import Prefix
from daskspectral.data.lease import writer_of


def refuse_absent(url: str) -> None:
    """Raise FileNotFoundError where a bucket is missing, or where a run was writing at a URL and has not ended."""
    folder = Prefix(url)
    folder.names()
    writer = writer_of(folder)
    if writer is not None:
        raise FileNotFoundError(
            f"{url} is unfinished: {writer} is still writing there, or has died. Wait for it, or write it again"
        )
