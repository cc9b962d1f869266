"""A command whose writing to a store stops, at its second object or before its metadata, until it is killed."""

import sys
import time
from typing import Any

from daskspectral.cli import main
from daskspectral.data.stores import HeldBackStore

plain_set, written = HeldBackStore.set, 0


def wait() -> None:
    print("waiting", flush=True)
    time.sleep(600)


async def counted(self: HeldBackStore, key: str, value: Any) -> None:
    """Write one object besides the metadata of arrays, then wait."""
    global written
    await plain_set(self, key, value)
    written += not key.endswith("zarr.json")
    if written == 1:
        wait()


if __name__ == "__main__":
    when, *arguments = sys.argv[1:]
    if when == "end":
        HeldBackStore.publish = lambda self: wait()  # type: ignore[method-assign]
    else:
        HeldBackStore.set = counted  # type: ignore[method-assign]
    main(arguments)
