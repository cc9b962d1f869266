"""Problems with known spectra for `first_fit.py`: a sampler and exact eigenvalues for each.

`FIRST_FIT` holds twelve distributions, `HARD` more, written down before the automatic choice was tuned on any: narrow
gaps, clusters that barely touch, columns without structure, scales far apart, copies, thin curves, heavy tails, many
dimensions. Eigenvalues are of -div(rho grad f) = lambda rho f, along the submanifold on which the rows lie;
`spectra.py` computes them. Rows with noise have a density on the whole space, whose spectrum is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import spectra

from daskspectral.datasets import SAMPLES

Array = np.ndarray
Points = Callable[[int, np.random.Generator], Array]
Spectrum = Callable[[int], Array]


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
    return SAMPLES["circle"].draw(n, 2, 0.0, rng)[0]


def sample(name: str, d: int, noise: float = 0.0) -> Callable[[int, np.random.Generator], Array]:
    """Rows of a distribution of `daskspectral sample`."""
    return lambda n, rng: SAMPLES[name].draw(n, d, noise, rng)[0]


def cube(d: int) -> Callable[[int, np.random.Generator], Array]:
    return lambda n, rng: rng.random((n, d))


def rotated(points: Callable[[int, np.random.Generator], Array], d: int) -> Callable[[int, np.random.Generator], Array]:
    """The rows in d dimensions, in an orientation that the generator draws."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        x = points(n, rng)
        frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
        return x @ frame[: x.shape[1]]

    return draw


def turned(part: tuple[Points, Spectrum], d: int) -> tuple[Points, Spectrum]:
    """A part of a problem in d dimensions, in an orientation that the generator draws."""
    return rotated(part[0], d), part[1]


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


def product_of(*parts: tuple[Points, Spectrum]) -> tuple[Points, Spectrum]:
    """Independent columns, each with its rows and its spectrum: those of the product."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        return np.hstack([points(n, rng) for points, _ in parts])

    return draw, lambda count: spectra.sums([spectrum(count) for _, spectrum in parts], count)


def uniform(side: float) -> tuple[Points, Spectrum]:
    return lambda n, rng: side * rng.random((n, 1)), lambda count: spectra.box((side,), count)


def normal(d: int, scale: float = 1.0) -> tuple[Points, Spectrum]:
    return lambda n, rng: scale * rng.standard_normal((n, d)), lambda count: spectra.normal(d, count) / scale**2


def normals(means: tuple[float, ...], shares: tuple[float, ...], widths: tuple[float, ...]) -> tuple[Points, Spectrum]:
    def draw(n: int, rng: np.random.Generator) -> Array:
        k = rng.choice(len(means), n, p=shares)
        return (np.array(means)[k] + np.array(widths)[k] * rng.standard_normal(n))[:, None]

    return draw, lambda count: spectra.normals(means, shares, widths, count)


def on_line(density: Callable[[Array], Array], end: float) -> Points:
    """Rows of a density of at most 1 on [-end, end]."""
    return lambda n, rng: rejected(n, lambda m: rng.uniform(-end, end, (m, 1)), lambda x: density(x[:, 0]), rng)


def repeated(times: int, points: Points) -> Points:
    """Every row several times, in another order."""
    return lambda n, rng: rng.permutation(np.repeat(points(-(-n // times), rng), times, axis=0)[:n])


def of_radius(d: int, low: float, angle: float, n: int, rng: np.random.Generator) -> Array:
    """Uniform by volume between radii low and 1, within the first `angle` of the plane where d is 2."""
    radius = (low**d + (1 - low**d) * rng.random((n, 1))) ** (1 / d)
    if d == 2:
        turn = angle * rng.random(n)
        return radius * np.column_stack([np.cos(turn), np.sin(turn)])
    x = rng.standard_normal((n, d))
    return radius * x / np.linalg.norm(x, axis=1, keepdims=True)


def in_sector(low: float, angle: float) -> tuple[Points, Spectrum]:
    return lambda n, rng: of_radius(2, low, angle, n, rng), lambda k: spectra.sector((low, 1), angle, k)


def in_triangle(n: int, rng: np.random.Generator) -> Array:
    u, v = np.sort(rng.random((2, n)), axis=0)
    return np.column_stack([v - u, u]) @ np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])


def half_sphere(n: int, rng: np.random.Generator) -> Array:
    x = SAMPLES["sphere"].draw(n, 3, 0.0, rng)[0]
    return np.column_stack([x[:, :2], np.abs(x[:, 2])])


def tilted_sphere(n: int, rng: np.random.Generator) -> Array:
    return rejected(n, lambda m: SAMPLES["sphere"].draw(m, 3, 0.0, rng)[0], lambda x: np.exp(TILT * (x[:, 2] - 1)), rng)


def ring_surface(n: int, rng: np.random.Generator) -> Array:
    """The surface of a ring, uniform by area."""
    turns = rejected(
        n,
        lambda m: rng.uniform(0, 2 * np.pi, (m, 2)),
        lambda t: (1 + TUBE * np.cos(t[:, 0])) / (1 + TUBE),
        rng,
    )
    radius = 1 + TUBE * np.cos(turns[:, 0])
    return np.column_stack([radius * np.cos(turns[:, 1]), radius * np.sin(turns[:, 1]), TUBE * np.sin(turns[:, 0])])


def steep(n: int, rng: np.random.Generator) -> Array:
    """The density exp(4 x) on [0, 1]."""
    return np.log1p(rng.random((n, 1)) * np.expm1(4.0)) / 4.0


def radii_torus(n: int, rng: np.random.Generator) -> Array:
    return np.hstack([around(n, rng), 3 * around(n, rng)])


def knot(n: int, rng: np.random.Generator) -> Array:
    """A trefoil, uniform by arc length."""
    t = np.linspace(0, 2 * np.pi, 20_001)
    curve = np.column_stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)])
    length = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1)))
    at = rng.random(n) * length[-1]
    return np.column_stack([np.interp(at, length, column) for column in curve.T])


def knot_radius() -> float:
    """Of the circle that is as long as the trefoil."""
    t = np.linspace(0, 2 * np.pi, 200_001)
    slopes = [np.cos(t) + 4 * np.cos(2 * t), -np.sin(t) + 4 * np.sin(2 * t), -3 * np.cos(3 * t)]
    return float(np.sqrt(np.sum(np.square(slopes), axis=0))[:-1].mean())


TILT, TUBE, POWER, HEIGHT = 2.0, 0.4, 1.2, 3.0
SIX_APART = normals((-3, 3), (0.5, 0.5), (1, 1))
WELL = on_line(lambda x: np.exp(-HEIGHT * (x**2 - 1) ** 2), 3.0), lambda k: spectra.double_well(HEIGHT, k)
TAILS = on_line(lambda x: np.exp(-(np.abs(x) ** POWER)), 120 ** (1 / POWER)), lambda k: spectra.stretched(POWER, k)

HARD = by_name(
    Problem("gap", *in_sector(0.7, 6.2), even=True),
    Problem("quarter", *in_sector(0.5, 1.6), even=True),
    Problem("six-apart", *product_of(SIX_APART, normal(1))),
    Problem("rare-cluster", *product_of(normals((0, 5), (0.96, 0.04), (1, 0.7)), normal(1))),
    Problem("three-clusters", *product_of(normals((-4, 0, 4), (0.5, 0.3, 0.2), (1, 0.8, 0.9)), normal(2, 0.8))),
    Problem("double-well", *product_of(WELL, normal(2, 0.4))),
    Problem("2-of-30", *product_of(uniform(6), uniform(5), normal(28))),
    Problem("2-of-8, rotated", *turned(product_of(uniform(6), uniform(5), normal(6)), 8)),
    Problem("1-to-100", *product_of(uniform(1), uniform(0.01)), even=True),
    Problem("1-to-4-to-10", *product_of(uniform(10), uniform(4), uniform(1)), even=True),
    Problem("square, twice", repeated(2, cube(2)), lambda k: spectra.box((1.0, 1.0), k), even=True),
    Problem("square, five times", repeated(5, cube(2)), lambda k: spectra.box((1.0, 1.0), k), even=True),
    Problem("knot", knot, lambda k: spectra.circles((knot_radius(),), k), even=True),
    Problem("cylinder", *product_of((around, lambda k: spectra.circles((1.0,), k)), uniform(0.3)), even=True),
    Problem("heavy-tails", *product_of(TAILS, normal(1))),
    Problem("steep", *product_of((steep, lambda k: spectra.steep(4.0, k)), uniform(1))),
    Problem("disk", lambda n, rng: of_radius(2, 0, 2 * np.pi, n, rng), spectra.disk, even=True),
    Problem("disk in R^10", rotated(lambda n, rng: of_radius(2, 0, 2 * np.pi, n, rng), 10), spectra.disk, even=True),
    Problem("ball", lambda n, rng: of_radius(3, 0, 0, n, rng), spectra.ball, even=True),
    Problem("triangle", in_triangle, spectra.triangle, even=True),
    Problem("half-sphere", half_sphere, spectra.half_sphere, even=True),
    Problem("tilted-sphere", tilted_sphere, lambda k: spectra.tilted_sphere(TILT, k)),
    Problem("ring-surface", ring_surface, lambda k: spectra.ring_surface(TUBE, k), even=True),
    Problem("torus, 1 to 3", *turned((radii_torus, lambda k: spectra.torus((1.0, 3.0), k)), 12), even=True),
    Problem("cube-5", cube(5), lambda k: spectra.box((1.0,) * 5, k), even=True),
)


def roll(tightness: float, width: float, noise: float) -> tuple[Points, Spectrum]:
    """A sheet rolled to the radius t / tightness, t in [1.5 pi, 4.5 pi], with noise of t."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        angle = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n)
        radius = (angle + noise * rng.standard_normal(n)) / tightness
        return np.column_stack([radius * np.sin(angle), radius * np.cos(angle), rng.uniform(0, width, n)])

    return draw, lambda k: spectra.roll(tightness, width, k)


def spiral(pitch: float, turns: float, noise: float) -> tuple[Points, Spectrum]:
    """A curve of radius .5 + pitch t / (2 pi) at the angle t, with noise."""

    def draw(n: int, rng: np.random.Generator) -> Array:
        angle = rng.uniform(0, 2 * np.pi * turns, n)
        radius = 0.5 + pitch * angle / (2 * np.pi)
        return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + noise * rng.standard_normal((n, 2))

    return draw, lambda k: spectra.spiral(pitch, turns, k)


def rings(gap: float) -> tuple[Points, Spectrum]:
    """Two concentric circles with a gap."""
    radii = (1.0, 1.0 + gap)
    return lambda n, rng: rng.choice(radii, n)[:, None] * around(n, rng), lambda k: spectra.circles(radii, k)


def rounded(part: tuple[Points, Spectrum], step: float) -> tuple[Points, Spectrum]:
    """A part of a problem with rows rounded to multiples of a step."""
    return lambda n, rng: step * np.round(part[0](n, rng) / step), part[1]


FOLDED = by_name(
    *(Problem(f"roll-{t}", *roll(t, 12, 0.1)) for t in (2, 4, 6, 8, 12)),
    Problem("roll-6, narrow", *roll(6, 4, 0.1)),
    Problem("roll-6, noisy", *roll(6, 12, 0.3)),
    *(Problem(f"spiral-{pitch}", *spiral(pitch, 3, 0.02)) for pitch in (0.15, 0.3, 0.6)),
    *(Problem(f"rings-{gap}", *rings(gap), even=True, zeros=2) for gap in (0.1, 0.2)),
)
"""Sheets and curves whose turns come close to each other. A fit of few rows is wrong, and must not be trusted."""

ROUNDED = by_name(
    Problem("square, rounded", *rounded(product_of(uniform(1), uniform(1)), 0.1), even=True),
    Problem("interval, rounded", *rounded(uniform(3), 0.1), even=True),
    Problem("normal-2, rounded", *rounded(normal(2), 0.1)),
)
"""Rows of few distinct points."""


# -- errors ----------------------------------------------------------------------------------------------------------


def relative_errors(found: Array, problem: Problem, components: int) -> Array:
    """|found / exact - 1| of the first ten nonzero eigenvalues, or as many as there are among `components`.

    One that was not found has the error 1, as 0 would have.
    """
    exact = problem.eigenvalues(min(problem.zeros + 10, components))
    filled = np.zeros(len(exact))
    filled[: len(found)] = found[: len(exact)]
    return np.abs(filled[problem.zeros :] / exact[problem.zeros :] - 1)
