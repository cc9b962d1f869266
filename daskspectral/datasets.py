"""Test data: arrays in memory, or zarr arrays of any size.

Functions accept the number of rows; equal names, rows, `seed` and `chunk_rows` return equal numbers, in memory and from
the command `daskspectral sample`. Each chunk has a separate random generator.

`ocean(n)` is a labeled field of n months, in memory: seasons, a trend and two patterns, with land.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from daskspectral.data.batches import read_ahead
from daskspectral.data.remote import Location
from daskspectral.data.writing import create_array, default_chunk_rows, progress_bar
from daskspectral.errors import ParameterError
from daskspectral.validation import check_integer, check_number, check_option

if TYPE_CHECKING:
    import xarray as xr

Floats = npt.NDArray[np.float64]

OU_STEP = 0.1
"""Time between two rows of the Ornstein-Uhlenbeck trajectory."""

LANGEVIN_STEP, LANGEVIN_STEPS = 0.1, 50
"""Time between two rows of the Langevin trajectory, and number of integration steps."""
BARRIER = 4.0
"""Height of the double well V = BARRIER (x^2 - 1)^2, in units of the temperature."""
BLOBS = 5


@dataclass(frozen=True)
class Sample:
    """Test distribution: `points(n, dimension, rng)` returns n rows, shape (n, d), before noise.

    `dimension` and `noise` (standard deviation in each coordinate) are defaults; a `fixed` dimension cannot be changed.
    Rows are independent, except those of a trajectory, at times `step` apart: its `points` have a fourth argument, the
    preceding row (d,).
    """

    description: str
    dimension: int
    points: Callable[..., Floats]
    noise: float = 0.0
    fixed: bool = False
    step: float = 0.0

    def draw(
        self, n: int, dimension: int, noise: float, rng: np.random.Generator, last: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return n rows (n, dimension), and the last one without noise, from which a trajectory continues."""
        points = self.points(n, dimension, rng, *((last,) if self.step else ()))
        return points + noise * rng.standard_normal(points.shape) if noise else points, points[-1].copy()


def _two_moons(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    angle, upper = rng.uniform(0, math.pi, n), rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.column_stack([x, y])


@lru_cache(maxsize=8)
def _centers(dimension: int) -> Floats:
    """Return the centers, each the farthest of some points from those before."""
    points = np.random.default_rng([5, dimension]).uniform(-10, 10, (100, dimension))
    chosen = points[:1]
    for _ in range(BLOBS - 1):
        near = ((points[:, None] - chosen) ** 2).sum(axis=2).min(axis=1)
        chosen = np.concatenate([chosen, points[[near.argmax()]]])
    return chosen


def _blobs(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    return np.asarray(_centers(dimension)[rng.integers(BLOBS, size=n)] + rng.standard_normal((n, dimension)))


def _sphere(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    x = rng.standard_normal((n, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def _circle(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    angle = rng.uniform(0, 2 * math.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _gaussian(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, dimension))


def _torus(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    angles = rng.uniform(0, 2 * math.pi, (n, dimension // 2))
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(n, dimension)


def _swiss_roll(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    t = 1.5 * math.pi * (1 + 2 * rng.random(n))
    return np.column_stack([t * np.cos(t), 21 * rng.random(n), t * np.sin(t)])


def _uniform(n: int, dimension: int, rng: np.random.Generator) -> Floats:
    return rng.uniform(-1, 1, (n, dimension))


def _ou(n: int, dimension: int, rng: np.random.Generator, last: Floats | None = None) -> Floats:
    """Return a stationary Ornstein-Uhlenbeck trajectory, exact for any step.

    x' = exp(-h) x + sqrt(1 - exp(-2 h)) xi; starts from N(0, 1).
    """
    decay = math.exp(-OU_STEP)
    kicks = math.sqrt(1 - decay**2) * rng.standard_normal((n, dimension))
    if last is None:
        kicks[0], last = rng.standard_normal(dimension), np.zeros(dimension)
    path, _ = lfilter([1.0], [1.0, -decay], kicks, axis=0, zi=decay * last[None])
    return np.asarray(path, dtype=np.float64)


@lru_cache(maxsize=1)
def _well_table() -> tuple[Floats, Floats]:
    x = np.linspace(-2.2, 2.2, 2**17 + 1)  # the density at the ends is below 1e-25
    density = np.exp(-BARRIER * (x**2 - 1) ** 2)
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return mass / mass[-1], x


def _langevin(n: int, dimension: int, rng: np.random.Generator, last: Floats | None = None) -> Floats:
    """Return a trajectory of dX = -4 B X (X^2 - 1) dt + sqrt(2) dW, in law to second order in the step.

    The scheme of Leimkuhler and Matthews 2013 adds the mean of two successive noises; the noise that a chunk shares
    with the next one is drawn again.
    """
    step = LANGEVIN_STEP / LANGEVIN_STEPS
    noise = rng.standard_normal(n * LANGEVIN_STEPS + 1)
    kicks = (math.sqrt(step / 2) * (noise[1:] + noise[:-1])).tolist()
    x = float(np.interp(rng.random(), *_well_table())) if last is None else float(last[0])
    path = np.empty((n, 1))
    if last is None:
        path[0], kicks[:LANGEVIN_STEPS] = x, []
    drift, done = -4 * BARRIER * step, int(last is None)
    for row in range(done, n):
        first = (row - done) * LANGEVIN_STEPS
        for kick in kicks[first : first + LANGEVIN_STEPS]:
            x += drift * x * (x * x - 1) + kick
        path[row] = x
    return path


SAMPLES = {
    "two-moons": Sample("two half-circles of radius 1 in the plane, with noise 0.05", 2, _two_moons, 0.05, fixed=True),
    "sphere": Sample("uniform on the unit sphere S^(d-1)", 3, _sphere),
    "circle": Sample("uniform on the unit circle", 2, _circle, fixed=True),
    "gaussian": Sample("standard normal", 2, _gaussian),
    "torus": Sample("flat torus (cos t1, sin t1, cos t2, ...) with uniform angles, d even", 4, _torus),
    "swiss-roll": Sample("rolled sheet (t cos t, h, t sin t)", 3, _swiss_roll, fixed=True),
    "uniform": Sample("uniform in the cube [-1, 1]^d", 2, _uniform),
    "ou": Sample(f"Ornstein-Uhlenbeck, dX = -X dt + sqrt(2) dW, time step {OU_STEP}", 2, _ou, step=OU_STEP),
    "langevin": Sample(
        f"double well, dX = -V' dt + sqrt(2) dW, V = {BARRIER:g} (X^2 - 1)^2, time step {LANGEVIN_STEP}",
        1,
        _langevin,
        fixed=True,
        step=LANGEVIN_STEP,
    ),
    "blobs": Sample(f"{BLOBS} normal clusters around fixed centers in the cube [-10, 10]^d", 2, _blobs),
}


@dataclass(frozen=True)
class Drawing:
    """Drawing of n rows of a distribution in chunks; chunk i has the generator of SeedSequence(seed, (i,))."""

    name: str
    n: int
    dimension: int
    noise: float
    dtype: np.dtype[Any]
    rows: int
    seed: int

    @classmethod
    def of(
        cls,
        name: str,
        n: int,
        *,
        dimension: int | None = None,
        noise: float | None = None,
        dtype: npt.DTypeLike = "float64",
        chunk_rows: int | None = None,
        seed: int = 0,
    ) -> Drawing:
        """Return the drawing with default options; raise ValueError for invalid ones."""
        name = check_option("name", str(name).replace("_", "-"), tuple(SAMPLES))
        sample, kind = SAMPLES[name], np.dtype(dtype)
        n, seed = check_integer("n", n), check_integer("seed", seed, 0)
        d = sample.dimension if dimension is None else check_integer("dimension", dimension)
        rows = default_chunk_rows((n, d), kind) if chunk_rows is None else check_integer("chunk_rows", chunk_rows)
        spread = check_number("noise", sample.noise if noise is None else noise, "[0, inf)")
        if (sample.fixed and d != sample.dimension) or (name == "torus" and d % 2):
            raise ParameterError("dimension", f"one that {name} has, such as {sample.dimension}", d)
        if kind.kind != "f":
            raise ParameterError("dtype", "a floating type such as float64 or float32", kind)
        return cls(name, n, d, spread, kind, min(n, rows), seed)

    @property
    def starts(self) -> range:
        return range(0, self.n, self.rows)

    def chunks(self) -> Iterator[Floats]:
        """Yield the rows of each chunk; a trajectory continues from the last row, without its noise."""
        last: Floats | None = None
        for chunk, start in enumerate(self.starts):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chunk,)))
            count = min(self.rows, self.n - start)
            rows, last = SAMPLES[self.name].draw(count, self.dimension, self.noise, rng, last)
            yield rows.astype(self.dtype, copy=False)


def draw(
    name: str,
    n: int,
    *,
    dimension: int | None = None,
    noise: float | None = None,
    dtype: str = "float64",
    chunk_rows: int | None = None,
    seed: int = 0,
) -> npt.NDArray[Any]:
    """Return n rows (n, d) of a distribution or a trajectory, by name.

    Parameters
    ----------
    name : {"two-moons", "sphere", "circle", "gaussian", "torus", "swiss-roll", "uniform", "ou", "langevin", "blobs"}
        Distribution.
    n : int
        Number of rows.
    dimension : int, optional
        Number of columns d, unless fixed by the distribution.
    noise : float, optional
        Standard deviation of normal noise in each column; by default that of the distribution.
    dtype : {"float64", "float32"}
        Precision.
    chunk_rows : int, optional
        Rows per chunk; by default 16 to 32 MB.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    array of shape (n, d)
        Rows.

    Raises
    ------
    ValueError
        For options that the distribution does not support.

    See Also
    --------
    write : Rows of a distribution in a zarr array.

    Examples
    --------
    >>> draw("two-moons", 1000).shape, two_moons(1000, seed=1).shape
    ((1000, 2), (1000, 2))
    """
    drawing = Drawing.of(name, n, dimension=dimension, noise=noise, dtype=dtype, chunk_rows=chunk_rows, seed=seed)
    return np.concatenate([*drawing.chunks()])


def write(
    name: str, path: Location, n: int, *, overwrite: bool = False, progress: bool | None = None, **options: Any
) -> None:
    """Write n rows of a distribution to a new zarr array, chunk by chunk (`daskspectral sample`).

    Parameters
    ----------
    name : str
        Distribution, as in `draw`.
    path : str or path
        Path or URL.
    n : int
        Number of rows.
    overwrite : bool
        True to replace an existing array.
    progress : bool, optional
        Progress bar on stderr; by default on a terminal.
    **options
        The dimension, noise, dtype, chunk_rows and seed of `draw`, stored as the array's attributes.

    Raises
    ------
    ValueError
        For options that the distribution does not support.
    FileExistsError
        If the path exists.
    OSError
        If the path cannot be written.

    See Also
    --------
    draw : Rows in memory.

    Examples
    --------
    >>> import tempfile, zarr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write("sphere", f"{folder}/x.zarr", 100, progress=False)
    ...     zarr.open(f"{folder}/x.zarr").shape
    (100, 3)
    """
    drawing = Drawing.of(name, n, **options)
    shape, rows = (n, drawing.dimension), drawing.rows
    attributes: dict[str, Any] = {"sample": drawing.name, "seed": drawing.seed, "noise": drawing.noise}
    if step := SAMPLES[drawing.name].step:
        attributes["step"] = step
    with (
        create_array(path, shape, drawing.dtype, chunk_rows=rows, attributes=attributes, overwrite=overwrite) as array,
        progress_bar(n, f"{drawing.name} to {os.fspath(path)}", progress) as bar,
        read_ahead(drawing.chunks()) as blocks,
    ):
        for start, block in zip(drawing.starts, blocks, strict=True):
            array[start : start + len(block)] = block
            bar.update(len(block))


def ocean(n: int = 720, *, seed: int = 0) -> xr.DataArray:
    """Return synthetic sea surface temperatures (time, lat, lon) of n months, in degrees Celsius.

    The grid has 10 degrees, the months start in 1960, and land is NaN. Seasons of 8 K change sign at the equator; the
    trend is 0.02 K per year, and white noise 0.3 K. Two patterns have series of variance 1 with a correlation of 0.5
    between months: 1.5 K about the equator at 220 degrees east, and 0.8 K about 40 degrees north at 180, with the
    opposite sign at 220.

    Parameters
    ----------
    n : int
        Number of months.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    xarray.DataArray
        Temperatures.

    Raises
    ------
    ValueError
        If n < 1.

    See Also
    --------
    draw : Rows of other distributions.

    Examples
    --------
    >>> ocean(24).sizes["time"]
    24
    """
    import xarray as xr

    rng, size = np.random.default_rng(seed), check_integer("n", n, 1)
    times = np.datetime64("1960-01") + np.arange(size)
    lat, lon, year = np.arange(-60.0, 61.0, 10.0)[:, None], np.arange(0.0, 360.0, 10.0), np.arange(size) / 12

    def bump(north: float, east: float, wide: float) -> Floats:
        return np.asarray(np.exp(-(((lat - north) / 15) ** 2) - ((lon - east) / wide) ** 2))

    patterns = np.array([1.5 * bump(0, 220, 40), 0.8 * (bump(40, 180, 20) - bump(40, 220, 20))])
    kicks = rng.standard_normal((size, 2))
    kicks[1:] *= math.sqrt(1 - 0.5**2)
    series = lfilter([1.0], [1.0, -0.5], kicks, axis=0)
    season = -8 * np.cos(2 * np.pi * year)[:, None, None] * np.sin(np.deg2rad(lat))
    values = 15 + season + 0.02 * year[:, None, None] + np.tensordot(series, patterns, 1)
    values = values + 0.3 * rng.standard_normal(values.shape)
    land = (abs(lon - 20 - lat / 3) < 25) | (abs(lon - 290 + lat / 2) < 20)
    coords = {
        "time": times.astype("M8[ns]"),
        "lat": ("lat", lat.ravel(), {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    dims, attrs = ("time", "lat", "lon"), {"units": "degC"}
    return xr.DataArray(np.where(land, np.nan, values), coords, dims, name="temperature", attrs=attrs)


_TEXT = """Return n rows of a {kind}: {described}.

Parameters
----------
n : int
    Number of rows.
**options
    Those of `draw`.

Returns
-------
array of shape (n, d)
    Rows.

See Also
--------
draw : Rows of a distribution by its name.

Examples
--------
>>> {name}(5, {options}seed=1).shape
(5, {d})
"""


def _function(name: str) -> Callable[..., npt.NDArray[Any]]:
    def function(n: int, **options: Any) -> npt.NDArray[Any]:
        return draw(name, n, **options)

    function.__name__ = function.__qualname__ = name.replace("-", "_")
    described = SAMPLES[name].description
    options = f"noise={SAMPLES[name].noise}, " if SAMPLES[name].noise else ""
    kind = "trajectory" if SAMPLES[name].step else "distribution"
    function.__doc__ = _TEXT.format(
        name=function.__name__, kind=kind, described=described, options=options, d=SAMPLES[name].dimension
    )
    return function


blobs, circle, gaussian, langevin, ou = map(_function, ("blobs", "circle", "gaussian", "langevin", "ou"))
sphere, swiss_roll, torus, two_moons, uniform = map(
    _function, ("sphere", "swiss-roll", "torus", "two-moons", "uniform")
)
__all__ = ["draw", "ocean", "write", *(name.replace("-", "_") for name in SAMPLES)]
