"""The main job on PBS: `daskspectral fit` on worker jobs that come and go, with a checkpoint (`batch.py`).

Every option that is not listed by --help goes to `daskspectral fit`:

    python deploy/pbs/fit.py --workers-max 20 --cores 16 --memory 64GB --walltime 04:00:00 --queue workq \\
        points.zarr --kernel gaussian:1.0 --landmarks 1000 --out model.zarr --checkpoint run.checkpoint
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from batch import System, command, run

SYSTEM = System("PBS", "PBSCluster", "queue", "#PBS")

main = command(
    SYSTEM,
    click.option("--queue", help="Queue of the worker jobs; the default queue unless given."),
    click.option("--directive", multiple=True, help="A #PBS line, in place of that with its option: '-l place=excl'."),
    click.option(
        "--resource-spec", help="What a worker job requests: select=1:ncpus=16:mem=64gb; cores and memory unless given."
    ),
)

if __name__ == "__main__":
    run(main)
