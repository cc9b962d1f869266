"""The main job on SLURM: `daskspectral fit` on worker jobs that come and go, with a checkpoint (`batch.py`).

Every option that is not listed by --help goes to `daskspectral fit`:

    python deploy/slurm/fit.py --workers-max 20 --cores 16 --memory 64GB --walltime 04:00:00 --partition cpu \\
        points.zarr --kernel gaussian:1.0 --landmarks 1000 --out model.zarr --checkpoint run.checkpoint
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from batch import System, command, run

SHORT = {"--job-name": "-J", "--error": "-e", "--output": "-o", "--partition": "-p", "--account": "-A"}
SHORT |= {"--ntasks": "-n", "--time": "-t", "-c": "--cpus-per-task"}  # as dask-jobqueue writes them

SYSTEM = System("SLURM", "SLURMCluster", "partition", "#SBATCH", SHORT, gpu="--gres=gpu:1")

main = command(
    SYSTEM,
    click.option("--partition", help="Partition of the worker jobs; SLURM's default partition unless given."),
    click.option(
        "--directive", multiple=True, help="An #SBATCH line, in place of that with its option: --directive=--qos=low."
    ),
    click.option(
        "--device", type=click.Choice(["cpu", "cuda"]), help="cuda: one GPU for each worker job (--gres=gpu:1)."
    ),
)

if __name__ == "__main__":
    run(main)
