"""Test distributions of any size, drawn chunk by chunk."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from daskspectral.data.writer import Location, create_array, default_chunk_rows, progress_bar, refuse_existing

Floats = npt.NDArray[np.float64]

OU_STEP = 0.1
"""Time between two rows of the Ornstein-Uhlenbeck trajectory."""

_THREADS = 2


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A test distribution: `points(n, dimension, rng)` gives n rows, shape (n, d), before noise.

    `dimension` and `noise` (standard deviation of the Gaussian noise in each coordinate) are defaults. A
    `fixed` dimension has no other value; else it is a multiple of `multiple` and at least `least`. The rows
    are independent, except in a `trajectory`: there `points` takes a fourth argument, the row (d,) that its
    first row follows.
    """

    name: str
    description: str
    dimension: int
    points: Callable[..., Floats]
    noise: float = 0.0
    fixed: bool = False
    least: int = 1
    multiple: int = 1
    trajectory: bool = False

    def draw(self, n: int, dimension: int, noise: float, rng: np.random.Generator) -> Floats:
        """Return n rows, shape (n, dimension). Raises ValueError for a dimension that the distribution cannot have."""
        self.check_dimension(dimension)
        return _blurred(self.points(n, dimension, rng), noise, rng)

    def check_dimension(self, dimension: int) -> None:
        """Raise ValueError for a dimension that the distribution cannot have."""
        if self.fixed and dimension != self.dimension:
            raise ValueError(f"{self.name} has dimension {self.dimension}, not {dimension}: leave it out.")
        if dimension < self.least or dimension % self.multiple:
            parity = f"a multiple of {self.multiple} and " if self.multiple > 1 else ""
            raise ValueError(
                f"{self.name} needs a dimension that is {parity}at least {self.least}, not {dimension}; "
                f"the default is {self.dimension}."
            )


def write_sample(
    name: str,
    path: Location,
    n: int,
    *,
    dimension: int | None = None,
    noise: float | None = None,
    dtype: npt.DTypeLike = "float64",
    chunk_rows: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool | None = None,
) -> None:
    """Draw n rows of the distribution SAMPLES[name] into a zarr array (n, d) at `path`, chunk by chunk.

    Chunk i has the generator of SeedSequence(seed, spawn_key=(i,)), so the result is a function of name, n,
    dimension, noise, dtype, chunk_rows and seed alone; these are stored as the array's attributes. `progress`
    shows a bar on stderr: None only on a terminal.

    Raises ValueError for a value that the distribution cannot have, and OSError where `path` cannot be written
    (FileExistsError where it exists).
    """
    if name not in SAMPLES:
        raise ValueError(f"There is no sample {name!r}; the samples are {', '.join(SAMPLES)}.")
    sample = SAMPLES[name]
    d = sample.dimension if dimension is None else dimension
    spread = sample.noise if noise is None else float(noise)
    kind = np.dtype(dtype)
    sample.check_dimension(d)
    if n < 1:
        raise ValueError(f"n must be at least 1 row, not {n}.")
    if not (math.isfinite(spread) and spread >= 0):
        raise ValueError(f"noise is a standard deviation, finite and at least 0, not {noise}.")
    if seed < 0:
        raise ValueError(f"seed must be an integer of at least 0, not {seed}.")
    if kind.kind != "f":
        raise ValueError(f"dtype must be a floating type such as float64 or float32, not {kind}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be a positive integer, not {chunk_rows}.")
    refuse_existing(path, overwrite)

    rows = min(n, chunk_rows or default_chunk_rows((n, d), kind))
    attributes = {"sample": name, "seed": seed, "noise": spread}
    if sample.trajectory:
        attributes["step"] = OU_STEP
    bar = progress_bar(n, f"{name} to {os.fspath(path)}", progress)
    with (
        bar,
        create_array(path, (n, d), kind, chunk_rows=rows, attributes=attributes, overwrite=overwrite) as array,
        ThreadPoolExecutor(_THREADS) as pool,
    ):

        def write(start: int, draw: Callable[[], Floats]) -> int:
            block = draw().astype(kind, copy=False)
            array[start : start + len(block)] = block
            return len(block)

        pending: deque[Future[int]] = deque()
        for start, draw in _chunks(sample, n, d, spread, rows, seed):
            if len(pending) > _THREADS:
                bar.update(pending.popleft().result())
            pending.append(pool.submit(write, start, draw))
        while pending:
            bar.update(pending.popleft().result())


def _chunks(
    sample: Sample, n: int, d: int, noise: float, rows: int, seed: int
) -> Iterator[tuple[int, Callable[[], Floats]]]:
    """Yield the first row of each chunk and a function that draws it; a trajectory is drawn here, in order."""
    last: Floats | None = None
    for i, start in enumerate(range(0, n, rows)):
        count = min(rows, n - start)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))
        if sample.trajectory:
            clean = sample.points(count, d, rng, last)
            last = clean[-1].copy()
            yield start, partial(_blurred, clean, noise, rng)
        else:
            yield start, partial(sample.draw, count, d, noise, rng)


def _blurred(points: Floats, noise: float, rng: np.random.Generator) -> Floats:
    return points + noise * rng.standard_normal(points.shape) if noise else points


def _angles(n: int, rng: np.random.Generator) -> Floats:
    return rng.uniform(0, 2 * math.pi, n)


def _two_moons(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    angle, upper = rng.uniform(0, math.pi, n), rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.column_stack([x, y])


def _sphere(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    x = rng.standard_normal((n, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def _circle(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    angle = _angles(n, rng)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _gaussian(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, dimension))


def _torus(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    angles = rng.uniform(0, 2 * math.pi, (n, dimension // 2))
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(n, dimension)


def _torus_surface(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    """Radii R = 2 and r = 1: the area element is (2 + cos tube), so the tube's angle has a density in proportion to it.

    A uniform angle t is kept with probability (1 + cos(t) / 2) / 2 and turned by pi otherwise: the density is
    [p(t) + 1 - p(t - pi)] / (2 pi) = (1 + cos(t) / 2) / (2 pi), exactly and without rejection.
    """
    around, tube = _angles(n, rng), _angles(n, rng)
    tube += np.where(rng.random(n) < (1 + np.cos(tube) / 2) / 2, 0.0, math.pi)
    radius = 2 + np.cos(tube)
    return np.column_stack([radius * np.cos(around), radius * np.sin(around), np.sin(tube)])


def _swiss_roll(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    t = 1.5 * math.pi * (1 + 2 * rng.random(n))
    return np.column_stack([t * np.cos(t), 21 * rng.random(n), t * np.sin(t)])


def _uniform(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    return rng.uniform(-1, 1, (n, dimension))


def _ou(n: int, dimension: int, rng: np.random.Generator, last: Floats | None = None) -> Floats:
    """x' = exp(-h) x + sqrt(1 - exp(-2 h)) xi, exact for any step h; starts stationary, N(0, 1)."""
    decay = math.exp(-OU_STEP)
    kicks = math.sqrt(1 - decay**2) * rng.standard_normal((n, dimension))
    if last is None:
        kicks[0], last = rng.standard_normal(dimension), np.zeros(dimension)
    path, _ = lfilter([1.0], [1.0, -decay], kicks, axis=0, zi=decay * last[None])
    return np.asarray(path, dtype=np.float64)


@lru_cache(maxsize=1)
def _double_well_table() -> tuple[Floats, Floats]:
    x = np.linspace(-2.2, 2.2, 2**17 + 1)  # the density at the ends is below 1e-25
    density = np.exp(-4 * (x**2 - 1) ** 2)
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return mass / mass[-1], x


def _double_well(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    return np.interp(rng.random(n), *_double_well_table())[:, None]


SAMPLES: dict[str, Sample] = {
    sample.name: sample
    for sample in (
        Sample(
            name="two-moons",
            description="two interleaved half-circles of radius 1 in the plane, with noise 0.05",
            dimension=2,
            points=_two_moons,
            noise=0.05,
            fixed=True,
        ),
        Sample(
            name="sphere",
            description="uniform on the unit sphere S^(d-1)",
            dimension=3,
            points=_sphere,
            least=2,
        ),
        Sample(name="circle", description="uniform on the unit circle", dimension=2, points=_circle, fixed=True),
        Sample(name="gaussian", description="standard normal", dimension=2, points=_gaussian),
        Sample(
            name="torus",
            description="flat torus (cos t1, sin t1, cos t2, ...) with uniform angles, d even",
            dimension=4,
            points=_torus,
            least=2,
            multiple=2,
        ),
        Sample(
            name="torus-surface",
            description="ring torus of radii 2 and 1 around the third axis, uniform in area",
            dimension=3,
            points=_torus_surface,
            fixed=True,
        ),
        Sample(
            name="swiss-roll",
            description="rolled sheet (t cos t, h, t sin t), t in [1.5 pi, 4.5 pi], h in [0, 21]",
            dimension=3,
            points=_swiss_roll,
            fixed=True,
        ),
        Sample(name="uniform", description="uniform in the cube [-1, 1]^d", dimension=2, points=_uniform),
        Sample(
            name="ou",
            description=f"Ornstein-Uhlenbeck trajectory dX = -X dt + sqrt(2) dW, time step {OU_STEP}",
            dimension=2,
            points=_ou,
            trajectory=True,
        ),
        Sample(
            name="double-well",
            description="density exp(-V) on the line, V = 4 (x^2 - 1)^2",
            dimension=1,
            points=_double_well,
            fixed=True,
        ),
    )
}
