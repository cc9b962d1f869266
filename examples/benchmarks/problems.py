"""Problems with known spectra, shared by the benchmarks: a sampler and exact eigenvalues for each.

`FIRST_FIT` holds the twelve distributions of `first_fit.py`, `SUBMANIFOLDS` the four of `submanifolds.py`. Eigenvalues
are of -div(rho grad f) = lambda rho f, along the submanifold where the rows lie on one; `spectra.py` computes them.

Where the rows of the twelve have noise their density is one of the whole space, and its spectrum is the reference: S^2
with noise .05 has 2.0049, 6.0142, ... for 2, 6, ... (and radial functions from 1 / .05^2 on), the two moons with noise
.03 have 0, 0, 1.0018, 1.0018, 4.0067, ... for 0, 0, 1, 1, 4, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import click
import numpy as np
import spectra
from scipy.signal import lfilter

from daskspectral.data.distributions import SAMPLES

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """Rows (n, d) from `points(n, rng)`, and the lowest eigenvalues `spectrum(count)` with their multiplicities.

    `even`: the density is constant, along the submanifold where there is one. `zeros`: how often 0 is an eigenvalue.
    """

    name: str
    points: Callable[[int, np.random.Generator], Array]
    spectrum: Callable[[int], Array]
    even: bool = False
    zeros: int = 1

    def draw(self, n: int, seed: int) -> Array:
        """n independent rows, the same for the same n and seed."""
        return self.points(n, np.random.default_rng(seed))

    def eigenvalues(self, count: int) -> Array:
        """The lowest `count` eigenvalues, ascending."""
        return computed(self)[:count] if count <= COMPUTED else self.spectrum(count)


COMPUTED = 32


@lru_cache
def computed(problem: Problem) -> Array:
    return problem.spectrum(COMPUTED)


# -- samplers --------------------------------------------------------------------------------------------------------


def rejected(
    n: int, propose: Callable[[int], Array], chance: Callable[[Array], Array], rng: np.random.Generator
) -> Array:
    """n of the proposed rows, each kept with its chance."""
    found: list[Array] = []
    while sum(map(len, found)) < n:
        proposed = propose(2 * n + 100)
        found.append(proposed[rng.random(len(proposed)) < chance(proposed)])
    return np.concatenate(found)[:n]


def l_shape(n: int, rng: np.random.Generator) -> Array:
    def chance(x: Array) -> Array:
        return spectra.l_shape_density(x) / 3.02 * ~((x[:, 0] > 0) & (x[:, 1] < 0))

    return rejected(n, lambda m: rng.uniform(-1, 1, (m, 2)), chance, rng)


def annulus(n: int, rng: np.random.Generator) -> Array:
    def chance(x: Array) -> Array:
        radius = np.hypot(*x.T)
        density = spectra.annulus_density(radius, np.arctan2(x[:, 1], x[:, 0]))
        return density * np.e / 1.8 * ((radius > 0.5) & (radius < 1))

    return rejected(n, lambda m: rng.uniform(-1, 1, (m, 2)), chance, rng)


def mixture(n: int, rng: np.random.Generator) -> Array:
    return rejected(n, lambda m: rng.uniform(0, 3, (m, 1)), lambda x: spectra.mixture_density(x[:, 0]) / 1.02, rng)


def circles(n: int, rng: np.random.Generator) -> Array:
    """Concentric circles of radii .5 and 1, each with half of the rows on average."""
    radius = np.where(rng.random(n) < 0.5, 0.5, 1.0)
    return radius[:, None] * around(n, rng)


def around(n: int, rng: np.random.Generator) -> Array:
    return SAMPLES["circle"].draw(n, 2, 0.0, rng)


def sample(name: str, d: int, noise: float = 0.0) -> Callable[[int, np.random.Generator], Array]:
    """Rows of a distribution of `daskspectral sample`."""
    return lambda n, rng: SAMPLES[name].draw(n, d, noise, rng)


def cube(d: int) -> Callable[[int, np.random.Generator], Array]:
    return lambda n, rng: rng.random((n, d))


def rotated(points: Callable[[int, np.random.Generator], Array], d: int) -> Callable[[int, np.random.Generator], Array]:
    """The rows in d dimensions, in an orientation that the generator draws."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        x = points(n, rng)
        frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
        return x @ frame[: x.shape[1]]

    return draw


def blurred(problem: Problem, noise: float) -> Problem:
    """The same problem with normal noise in every coordinate; the eigenvalues stay those of the submanifold."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        x = problem.points(n, rng)
        return x + noise * rng.standard_normal(x.shape)

    return Problem(f"{problem.name}, noise {noise:g}", draw, problem.spectrum, problem.even, problem.zeros)


def autoregression(n: int, d: int, rho: float, rng: np.random.Generator) -> Array:
    """A stationary trajectory (n, d) of independent columns, each standard normal with correlation rho between rows."""
    kicks = rng.standard_normal((n, d))
    kicks[1:] *= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], kicks, axis=0)


# -- problems --------------------------------------------------------------------------------------------------------


def by_name(*problems: Problem) -> dict[str, Problem]:
    return {problem.name: problem for problem in problems}


FIRST_FIT = by_name(
    Problem("l-shape", l_shape, spectra.l_shape),
    Problem("annulus", annulus, spectra.annulus),
    Problem("mixture", mixture, spectra.mixture),
    Problem("interval", cube(1), lambda k: spectra.box((1.0,), k), even=True),
    Problem("square", cube(2), lambda k: spectra.box((1.0, 1.0), k), even=True),
    Problem("normal-2", sample("gaussian", 2), lambda k: spectra.normal(2, k)),
    Problem("normal-10", sample("gaussian", 10), lambda k: spectra.normal(10, k)),
    Problem("sphere", sample("sphere", 3), lambda k: spectra.sphere(3, k), even=True),
    Problem("noisy-sphere", sample("sphere", 3, 0.05), lambda k: spectra.noisy_sphere(0.05, k)),
    Problem("two-moons", sample("two-moons", 2, 0.03), lambda k: spectra.two_moons(0.03, k), even=True, zeros=2),
    Problem("circles", circles, lambda k: spectra.circles((0.5, 1.0), k), even=True, zeros=2),
    Problem("swiss-roll", sample("swiss-roll", 3), spectra.swiss_roll),
)

SUBMANIFOLDS = by_name(
    Problem("S^2 in R^3", sample("sphere", 3), lambda k: spectra.sphere(3, k), even=True),
    Problem("S^4 in R^5", sample("sphere", 5), lambda k: spectra.sphere(5, k), even=True),
    Problem("torus in R^4", sample("torus", 4), lambda k: spectra.torus((1.0, 1.0), k), even=True),
    Problem("circle in R^10", rotated(around, 10), lambda k: spectra.circles((1.0,), k), even=True),
)

CIRCLE = Problem("circle", around, lambda k: spectra.circles((1.0,), k), even=True)


def chosen(names: Iterable[str], among: dict[str, Problem]) -> list[Problem]:
    """The problems of these names, all of them for no name. Raises click.BadParameter for a name that is not there."""
    names = list(names)
    for name in names:
        if name not in among:
            raise click.BadParameter(f"there is no problem {name!r}; the problems are {', '.join(among)}")
    return [among[name] for name in names or among]


# -- errors ----------------------------------------------------------------------------------------------------------


def relative_errors(found: Array, problem: Problem, components: int) -> Array:
    """|found / exact - 1| of the first ten nonzero eigenvalues, or as many as there are among `components`.

    One that was not found has the error 1, as 0 would have.
    """
    exact = problem.eigenvalues(min(problem.zeros + 10, components))
    filled = np.zeros(len(exact))
    filled[: len(found)] = found[: len(exact)]
    return np.abs(filled[problem.zeros :] / exact[problem.zeros :] - 1)


def error_21(found: Array, exact: Array) -> float:
    """Equation (21) of Cabannes and Bach over the eigenvalues after the constant's: sum |1/a - 1/b| / sum 1/a.

    One that was not found counts as inf, which is a relative error of 1 of its inverse.
    """
    exact, filled = exact[1:], np.full(len(exact) - 1, np.inf)
    found = found[1 : len(exact) + 1]
    filled[: len(found)] = found
    return float(np.abs(1 / exact - 1 / filled).sum() / (1 / exact).sum())
