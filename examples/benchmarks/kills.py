"""Commands killed at random moments: their outputs are complete or absent, and a repeated run has the same bits.

Each command runs on small data in a separate process, forked from one that has imported everything, and is killed by
SIGKILL at a moment drawn from its duration; `save` replaces a model ten times in a row. Every other kill meets another
store at the output's path, which is to be replaced. After a kill the output must be as before (the other store, or
none) or complete: byte by byte what the command writes undisturbed. The same command, run again to its end, must write
these bytes, resuming from the checkpoint of the killed one if there is one, and leave no partial file.

    python examples/benchmarks/kills.py --kills 200 --json kills.json

Target: no failure. The exit code is 1 where there is one.
"""

from __future__ import annotations

import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import zarr
from common import options, report

import daskspectral as dsp
from daskspectral.cli import main as command

IMPORTED = ["daskspectral.estimators", "daskspectral.cli.entry", "daskspectral.estimators.summary"]
IMPORTED += [f"daskspectral.cli.{name}" for name in ("estimators", "spectral", "using")]
LINES = {
    "fit": "fit points.zarr --landmarks 40 --components 4 --kernel gaussian:1 --checkpoint run --checkpoint-every 0",
    "save": "",  # from Python
    "transform": "transform base.zarr points.zarr",
    "update": "update base.zarr grown.zarr",
    "embed": "embed points.zarr --map diffusion --bandwidth 1",
    "regress": "regress points.zarr y.zarr --kernel gaussian:1 --landmarks 40",
}
OUT, ROWS = "out.zarr", "rows.zarr"
STATES = ("whole", "as before", "damaged")


def prepare(here: Path, n: int) -> None:
    """The data of all commands: points and values, and a model of rows to which others were appended."""
    x = np.random.default_rng(0).standard_normal((n, 2))
    for name, values in (("points", x), ("y", x[:, 0] ** 2), ("grown", x[: n // 2])):
        zarr.create_array(here / f"{name}.zarr", data=values, chunks=(n // 10, *values.shape[1:]))
    kernel = dsp.kernels.Gaussian(2.0)
    model = dsp.SpectralDecomposition(basis=dsp.basis.Landmarks(kernel, 30), n_components=3, random_state=0)
    model.fit(str(here / "grown.zarr")).save(here / "base.zarr")
    zarr.open_array(here / "grown.zarr").append(x[n // 2 :])


def work(name: str, here: Path) -> None:
    """Run a command to its end, in a separate process."""
    if name == "save":
        model = dsp.load(here / "base.zarr").set_params(n_components=2)
        for _ in range(10):
            model.save(here / OUT, overwrite=True)
        return
    words = [str(here / word) if word == "run" or word.endswith(".zarr") else word for word in LINES[name].split()]
    command([*words, "--out", str(here / OUT), "--overwrite", "--quiet"])


def content(path: Path) -> dict[str, bytes]:
    """The files of a store by their names; none where it is not there."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def outputs(here: Path) -> list[dict[str, bytes]]:
    """What a command has written."""
    return [content(here / name) for name in (OUT, ROWS)]


def leftovers(here: Path) -> list[str]:
    """Return partial files next to the outputs; an empty folder may belong to a run that begins, for a minute."""
    found = [*here.glob(".*"), *here.glob("run/.*")]
    return [p.name for p in found if p.is_file() or content(p)]


def clear(here: Path, other: bool) -> list[dict[str, bytes]]:
    """Remove the outputs and the checkpoint, and put another store at the path of each output if `other`."""
    for name in (OUT, ROWS, "run"):
        shutil.rmtree(here / name, ignore_errors=True)
        if other and name != "run":
            shutil.copytree(here / "y.zarr", here / name)
    return outputs(here)


def trials(name: str, here: Path, kills: int, rng: np.random.Generator) -> Iterator[tuple[list[str], list[str]]]:
    """Yield for each kill what became of each output, and what failed."""
    context = multiprocessing.get_context("forkserver")

    def run(delay: float | None) -> int | None:
        process = context.Process(target=work, args=(name, here))
        process.start()
        process.join(delay)
        process.kill()  # no effect if it has ended
        process.join()
        return process.exitcode

    for _ in range(2):  # the second is timed
        clear(here, other=False)
        start = time.perf_counter()
        assert run(None) == 0, f"{name} failed without a kill"
        seconds = time.perf_counter() - start
    wanted, done = outputs(here), 0
    while done < kills:
        before = clear(here, other=bool(done % 2))
        code = run(rng.uniform(0, seconds))
        if code != -signal.SIGKILL:
            continue
        done += 1
        states = [
            STATES[0] if now == new else STATES[1] if now == old else STATES[2]
            for now, new, old in zip(outputs(here), wanted, before, strict=True)
            if new
        ]
        failed = ["an output was damaged"] if STATES[2] in states else []
        if run(None) != 0:
            failed.append("the rerun failed")
        elif [now for now, new in zip(outputs(here), wanted, strict=True) if new] != list(filter(None, wanted)):
            failed.append("the rerun gave other bits")
        failed += [f"{left} was left" for left in leftovers(here)]
        yield states, failed


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--kills", default=200, show_default=True, help="of all commands together")
@click.option("--seed", default=0, show_default=True)
def main(quick: bool, json_path: Path | None, kills: int, seed: int) -> None:
    """Kill every command, and judge what is there then and after another run."""
    multiprocessing.set_forkserver_preload(IMPORTED)
    rng, rows, notes = np.random.default_rng(seed), [], []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few rows
        here = Path(folder)
        prepare(here, 200 if quick else 1000)
        for name in list(LINES)[: 3 if quick else None]:
            done = list(trials(name, here, 1 if quick else kills // len(LINES), rng))
            states = {f"first output {state}": sum(one[0][0] == state for one in done) for state in STATES}
            failed = [text for _, texts in done for text in texts]
            rows.append({"command": name, "kills": len(done), **states, "failures": len(failed)})
            notes += [f"{name}: {text}" for text in failed]
    report("commands killed at random moments", rows, json_path, notes)
    if notes:
        sys.exit(1)


if __name__ == "__main__":
    main()
