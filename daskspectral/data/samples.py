"""Test distributions of any size, drawn chunk by chunk."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskspectral.data.distributions import SAMPLES, Floats, Sample, blurred
from daskspectral.data.writer import Location, create_array, default_chunk_rows, progress_bar, refuse_existing

_THREADS = 2


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
    drawing = Drawing.of(name, n, dimension=dimension, noise=noise, dtype=dtype, chunk_rows=chunk_rows, seed=seed)
    refuse_existing(path, overwrite)
    kind, rows = drawing.dtype, drawing.rows
    attributes: dict[str, str | int | float] = {"sample": name, "seed": seed, "noise": drawing.noise}
    if drawing.sample.trajectory:
        attributes["step"] = drawing.sample.step
    bar = progress_bar(n, f"{name} to {os.fspath(path)}", progress)
    with (
        bar,
        create_array(
            path, (n, drawing.dimension), kind, chunk_rows=rows, attributes=attributes, overwrite=overwrite
        ) as array,
        ThreadPoolExecutor(_THREADS) as pool,
    ):

        def write(start: int, draw: Callable[[], Floats]) -> int:
            block = draw()
            array[start : start + len(block)] = block
            return len(block)

        pending: deque[Future[int]] = deque()
        for start, draw in drawing.chunks():
            if len(pending) > _THREADS:
                bar.update(pending.popleft().result())
            pending.append(pool.submit(write, start, draw))
        while pending:
            bar.update(pending.popleft().result())


@dataclass(frozen=True)
class Drawing:
    """n rows of a distribution, cut into chunks of `rows`: chunk i has the generator of SeedSequence(seed, (i,))."""

    sample: Sample
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
        """The drawing with the defaults of the distribution. Raises ValueError for what it cannot have."""
        if name not in SAMPLES:
            raise ValueError(f"There is no sample {name!r}; the samples are {', '.join(SAMPLES)}.")
        optional = {"dimension": dimension, "chunk_rows": chunk_rows}
        for what, value in {"n": n, "seed": seed, **optional}.items():
            if value is None and what in optional:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise ValueError(f"{what} must be a whole number, such as 1000, not {value!r}.")
        if noise is not None and not isinstance(noise, (int, float, np.number)):
            raise ValueError(f"noise is a standard deviation, finite and at least 0, not {noise!r}.")
        sample, kind = SAMPLES[name], np.dtype(dtype)
        d = sample.dimension if dimension is None else dimension
        spread = sample.noise if noise is None else float(noise)
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
        return cls(sample, n, d, spread, kind, min(n, chunk_rows or default_chunk_rows((n, d), kind)), seed)

    @property
    def starts(self) -> range:
        """The first row of each chunk."""
        return range(0, self.n, self.rows)

    def generator(self, chunk: int) -> np.random.Generator:
        """The generator of a chunk."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chunk,)))

    def count(self, chunk: int) -> int:
        """How many rows a chunk has."""
        return min(self.rows, self.n - chunk * self.rows)

    def chunk(self, chunk: int) -> Floats:
        """The rows of a chunk, which are independent of all others."""
        rows = self.sample.draw(self.count(chunk), self.dimension, self.noise, self.generator(chunk))
        return rows.astype(self.dtype, copy=False)

    def following(self, chunk: int, last: Floats | None) -> tuple[Callable[[], Floats], Floats]:
        """A chunk of a trajectory that follows a row (d,), as a function that adds its noise, and its own last row."""
        rng = self.generator(chunk)
        clean = self.sample.points(self.count(chunk), self.dimension, rng, last)
        return lambda: blurred(clean, self.noise, rng).astype(self.dtype, copy=False), clean[-1].copy()

    def chunks(self) -> Iterator[tuple[int, Callable[[], Floats]]]:
        """The first row of each chunk and a function that draws it; a trajectory is drawn here, in order."""
        last: Floats | None = None
        for i, start in enumerate(self.starts):
            if self.sample.trajectory:
                draw, last = self.following(i, last)
                yield start, draw
            else:
                yield start, partial(self.chunk, i)

    def labels(self, chunk: int) -> npt.NDArray[np.int64]:
        """The groups of the rows of a chunk. Raises ValueError for a distribution without."""
        if self.sample.labels is None:
            known = ", ".join(name for name, sample in SAMPLES.items() if sample.labels is not None)
            raise ValueError(f"the rows of {self.sample.name} have no labels; those with labels are {known}")
        return self.sample.labels(self.count(chunk), self.dimension, self.generator(chunk))
