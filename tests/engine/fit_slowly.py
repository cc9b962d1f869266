"""A driver that other processes kill: short epochs, slow reads that are written down, moments saved at the end.

With "later" as the last argument, reads are slow once an epoch is in the checkpoint.
"""

import os
import signal
import sys
import time
from pathlib import Path

import daskspectral as dsp
from daskspectral.data.readers import ZarrReader
from tests.engine.common import SHORT, model

plain_read = ZarrReader.read


def read(self: ZarrReader, start: int, stop: int) -> object:
    """Read as ever, but slowly, and say so in a file."""
    with (folder / "reads").open("a") as log:
        log.write(f"{os.getpid()} {start} {stop}\n")
    if not later or list((folder / "run.zarr").glob("epoch-*")):
        time.sleep(pause)
    return plain_read(self, start, stop)


if __name__ == "__main__":
    points, folder, pause = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
    later = sys.argv[4:] == ["later"]
    for module, name, value in SHORT:
        setattr(module, name, value)
    ZarrReader.read = read  # type: ignore[assignment,method-assign]
    rows = dsp.Rows(points, standardize=True)
    fitted = model().fit(rows, checkpoint=folder / "run.zarr", checkpoint_every=0.0)
    dsp.save(fitted.moments_, folder / "moments.zarr")
