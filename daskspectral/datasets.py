"""Distributions to try things on, of any size: arrays in memory, lazy dask arrays, or zarr arrays.

Each function takes the number of rows; the same name, rows, `seed` and `chunk_rows` give the same numbers in memory, on
a cluster, and in the shell's `daskspectral sample`, whatever draws them. Chunk i has a generator of its own, so that a
part of the rows costs no more than its chunks; a trajectory is drawn from its beginning.

    two_moons       two interleaved half-circles; labels
    swiss_roll      a rolled sheet in three dimensions
    sphere, circle  uniform on the unit sphere Sᵈ⁻¹, and on the unit circle
    torus           the flat torus (cos t1, sin t1, cos t2, ...)
    torus_surface   a ring in three dimensions, uniform in area
    blobs           normal clusters around fixed centres; labels
    gaussian        standard normal
    uniform         uniform in the cube [-1, 1]^d
    torsions        two torsion angles of a peptide, in radians; labels
    double_well     the density exp(-V), V = 4 (x² - 1)²
    langevin        a trajectory in this well, dX = -V'(X) dt + √2 dW
    ou              an Ornstein-Uhlenbeck trajectory
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from inspect import signature
from typing import Any

import numpy as np

from daskspectral.data.samples import SAMPLES, Drawing, write_sample

__all__ = [
    "blobs",
    "circle",
    "double_well",
    "draw",
    "gaussian",
    "langevin",
    "ou",
    "sphere",
    "swiss_roll",
    "torsions",
    "torus",
    "torus_surface",
    "two_moons",
    "uniform",
    "write",
]


def draw(
    name: str,
    n: int,
    *,
    dimension: int | None = None,
    noise: float | None = None,
    dtype: str = "float64",
    chunk_rows: int | None = None,
    seed: int = 0,
    lazy: bool = False,
    labels: bool = False,
) -> Any:
    """n rows (n, d) of a distribution: a numpy array, or with `lazy` a dask array whose tasks draw the chunks.

    `noise` is the standard deviation of normal noise in each column, `dimension` is d where the distribution leaves a
    choice; None: its own. With `labels` the rows' groups (n,) come too, where it has such. Raises ValueError for values
    that it cannot have.

    Examples
    --------
    >>> x, moon = draw("two-moons", 1000, labels=True)
    >>> x.shape, int(moon.sum())
    ((1000, 2), 534)
    >>> two_moons(10**9, lazy=True).shape
    (1000000000, 2)
    """
    drawing = Drawing.of(name, n, dimension=dimension, noise=noise, dtype=dtype, chunk_rows=chunk_rows, seed=seed)
    if labels:
        drawing.labels(len(drawing.starts) - 1)  # an error before anything is drawn
    if lazy:
        return _lazy(drawing, labels)
    rows = np.concatenate([*drawing.chunks()])
    return (rows, np.concatenate([drawing.labels(i) for i in range(len(drawing.starts))])) if labels else rows


def write(name: str, path: Any, n: int, **options: Any) -> None:
    """n rows of a distribution into a new zarr array at a path or URL, chunk by chunk (`daskspectral sample`).

    `options` are dimension, noise, dtype, chunk_rows and seed of `draw`, `overwrite`, and `progress` (None: a bar on a
    terminal only). Raises ValueError for values that it cannot have, and OSError where the path cannot be written.
    """
    write_sample(name, path, n, **options)


def _lazy(drawing: Drawing, labels: bool) -> Any:
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import delayed

    counts = [drawing.count(i) for i in range(len(drawing.starts))]

    def array(parts: list[Any], columns: tuple[int, ...], dtype: Any) -> Any:
        blocks = [
            da.from_delayed(part, (count, *columns), dtype=dtype) for part, count in zip(parts, counts, strict=True)
        ]
        return da.concatenate(blocks)

    # the same drawing has the same name in every process, so that checkpoints know its rows again
    key = f"{drawing.name}-{tokenize(*astuple(drawing))}"
    parts, last = [], None
    for i in range(len(counts)):
        chunk, end = delayed(drawing.chunk, nout=2)(i, last, dask_key_name=f"{key}-{i}")
        parts.append(chunk)
        last = end if drawing.sample.trajectory else None
    rows = array(parts, (drawing.dimension,), drawing.dtype)
    if not labels:
        return rows
    groups = [delayed(drawing.labels)(i, dask_key_name=f"{key}-labels-{i}") for i in range(len(counts))]
    return rows, array(groups, (), np.int64)


def _function(name: str) -> Callable[..., Any]:
    def function(n: int, **options: Any) -> Any:
        return draw(name, n, **options)

    parameters = list(signature(draw).parameters.values())[1:]
    if SAMPLES[name].fixed:
        parameters = [p for p in parameters if p.name != "dimension"]
    if SAMPLES[name].labels is None:
        parameters = [p for p in parameters if p.name != "labels"]
    function.__name__ = function.__qualname__ = name.replace("-", "_")
    function.__signature__ = signature(draw).replace(parameters=parameters)  # type: ignore[attr-defined]
    described = SAMPLES[name].description
    function.__doc__ = f"{described[0].upper()}{described[1:]}: n rows, with the options of `draw`."
    return function


blobs, circle, double_well, gaussian, langevin, ou, sphere, swiss_roll = (
    _function(name) for name in ("blobs", "circle", "double-well", "gaussian", "langevin", "ou", "sphere", "swiss-roll")
)
torsions, torus, torus_surface, two_moons, uniform = (
    _function(name) for name in ("torsions", "torus", "torus-surface", "two-moons", "uniform")
)
