"""What the tests of clusters share: the folder of their scripts, a small fit, and the environment of a process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FIT = ["--landmarks", "20", "--kernel", "gaussian:1.0", "--components", "3", "--folds", "none", "--no-progress"]


def environment() -> dict[str, str]:
    """Without what dask and SLURM were told here, and with this python and package first."""
    left = ("DASK", "SLURM", "SBATCH")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left) and not k.endswith("_NUM_THREADS")}
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:/usr/sbin"
    return kept | {"PATH": path, "PYTHONPATH": str(ROOT)}


def called(
    command: list[Any], given: Mapping[str, str], folder: Path | None = None, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """A command that has ended with a status; an error with all that it printed where it ended with another."""
    done = subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done
