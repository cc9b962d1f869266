"""A Fourier lattice beside kernels at landmarks, both with no argument but the number of components.

Problems in one to three columns with known spectra. "error": the mean relative error of the first ten nonzero
eigenvalues, and the largest. "held out": the sum of the first eight held-out values: by min-max it bounds the exact sum
from above but for chance, for any basis, so that the lower of two is the better. "seconds": of the whole fit.

    python examples/benchmarks/lattice_fit.py --json lattice_fit.json
    python examples/benchmarks/lattice_fit.py --n 1e6 --lattice-alone
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import spectra
from common import Rows, options, report
from problems import FIRST_FIT, Problem, blurred, cube, relative_errors, sample

from daskspectral import SpectralDecomposition
from daskspectral.basis import FourierLattice, Landmarks
from daskspectral.errors import RankWarning, TrustWarning

COMPONENTS = 11
SPHERE = FIRST_FIT["sphere"]
ANGLES = Problem(
    "angles",
    lambda n, rng: 2 * np.pi * cube(2)(n, rng),
    lambda k: np.sort([a * a + b * b for a in range(-9, 10) for b in range(-9, 10)])[:k].astype(float),
    even=True,
)


def normal(d: int) -> Problem:
    """A standard normal distribution."""
    return Problem(f"normal-{d}", sample("gaussian", d), lambda k: spectra.normal(d, k))


PROBLEMS = {
    **{name: problem for name, problem in FIRST_FIT.items() if name != "normal-10"},
    **{(found := normal(d)).name: found for d in (1, 3)},
    **{(found := blurred(SPHERE, noise)).name: found for noise in (0.01, 0.05)},
    "angles": ANGLES,
}


def one_fit(problem: Problem, n: int, basis: Any) -> dict[str, Any]:
    """Errors, held-out values and time of one fit."""
    x, model = problem.draw(n, 0), SpectralDecomposition(basis=basis, n_components=COMPONENTS, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (TrustWarning, RankWarning))  # type: ignore[arg-type]
        model.fit(x)
    errors = relative_errors(model.eigenvalues_, problem, COMPONENTS)
    return {
        "error": float(errors.mean()),
        "largest": float(errors.max()),
        "held out": float(model.held_out_[:8].sum()),
        "seconds": time.perf_counter() - start,
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--n", "size", default="1e5", show_default=True, help="rows")
@click.option("--problem", "names", multiple=True, type=click.Choice(list(PROBLEMS)), help="all by default")
@click.option("--lattice-alone", is_flag=True, help="without landmarks")
def main(quick: bool, json_path: Path | None, size: str, names: tuple[str, ...], lattice_alone: bool) -> None:
    """Fit both ways, and compare."""
    n = 1000 if quick else int(float(size))
    rows: Rows = []
    for name in names or (("square",) if quick else PROBLEMS):
        problem, found = PROBLEMS[name], {}
        turns = (2 * np.pi, 2 * np.pi) if problem is ANGLES else None
        bases: dict[str, Any] = {"lattice": FourierLattice(periods=turns)}
        if not lattice_alone:
            bases["landmarks"] = Landmarks(periods=turns and dict(enumerate(turns)))
        for what, basis in bases.items():
            found |= {f"{what}: {key}": value for key, value in one_fit(problem, n, basis).items()}
        rows.append({"problem": name, "d": problem.draw(2, 0).shape[1], **found})
    report(f"{n:.3g} rows", rows, json_path)


if __name__ == "__main__":
    main()
