"""Theorem 1 of Soleymani and others (2025) in numbers: the risk of the projection against n, for `invariances.py`.

Targets are sums of zonal functions about an axis v that the group keeps, f(x) = Σ_l b_l Z_l(x . v) / √(m_l):
b_l² is the energy of level l, and the coefficients in an orthonormal basis φ of its m_l functions are
b_l φ(v) / √(m_l). Risks are sums of squared errors of coefficients, without test points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from daskspectral import InvariantRegressor
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.data.writing import create_array
from daskspectral.datasets import write
from daskspectral.groups import Cyclic, Group, Permutations, Rotations
from daskspectral.manifolds import Sphere

Floats = NDArray[np.float64]
AMPLITUDE, NOISE = 2.0, 1.0
TRIALS = 20
BEYOND = 8  # levels of a target, as a multiple of the levels of the largest fit
PROBES = 20_000
AXES = {2: np.array([1.0, 0.0]), 3: np.ones(3) / np.sqrt(3)}
SAMPLES = {2: "circle", 3: "sphere"}


@dataclass(frozen=True)
class Case:
    """A smoothness s on a sphere under a group, and the numbers of fitted levels, ascending.

    `functions` is the number of invariant functions of a level. n = D^(1 + alpha) for the D of the levels, so that all
    of them are whole.
    """

    name: str
    d: int
    group: Group
    functions: Callable[[int], int]
    smoothness: float
    levels: tuple[int, ...]

    @property
    def sphere(self) -> Sphere:
        return Sphere(self.d)

    @property
    def exponent(self) -> float:
        """alpha = 2 s / dimension."""
        return 2 * self.smoothness / (self.d - 1)

    @property
    def rate(self) -> float:
        """s / (s + dimension / 2)."""
        return self.smoothness / (self.smoothness + (self.d - 1) / 2)

    def rows(self, levels: int) -> int:
        """The n that goes with so many levels."""
        return int(np.ceil(cumulative(self.d, levels)[-1] ** (1 + self.exponent) - 1e-6))

    def edge(self) -> Target:
        """c² = A² D_lambda^(-alpha - 1) for each invariant function but the constant: in H^r for every r < s.

        Its norm in H^s grows as the logarithm of the number of levels.
        """
        totals = cumulative(self.d, BEYOND * self.levels[-1]).astype(float)
        counts = np.array([self.functions(level) for level in range(len(totals))])
        energies = AMPLITUDE**2 * counts * totals ** (-self.exponent - 1)
        energies[0] = 0
        return Target(self.d, np.sqrt(energies))


def cumulative(d: int, levels: int) -> NDArray[np.int64]:
    """D_lambda of the first levels."""
    return np.cumsum([Sphere(d).multiplicity(level) for level in range(levels)])


CASES = (
    Case("circle, s = 1", 2, Rotations(2), lambda k: 2 - (k == 0) - 2 * (k % 2), 1.0, (7, 11, 19, 29, 45, 69, 107)),
    Case("circle, s = 2", 2, Rotations(2), lambda k: 2 - (k == 0) - 2 * (k % 2), 2.0, (3, 5, 7, 9, 11, 13)),
    Case("sphere, s = 1.5", 3, Cyclic(3), lambda k: 2 * (k // 3) + 1, 1.5, (4, 5, 7, 10, 13, 16, 20, 25)),
    Case("sphere, s = 2", 3, Cyclic(3), lambda k: 2 * (k // 3) + 1, 2.0, (3, 4, 5, 6, 8, 10, 12, 14)),
)


@dataclass(frozen=True, eq=False)
class Target:
    """f(x) = sum_l b_l sqrt(m_l) G_l(x . v), G_l the zonal polynomial of degree l that is 1 at 1."""

    d: int
    amplitudes: Floats

    def __call__(self, x: Floats) -> Floats:
        """f at points (n, d), (n,), by the recurrence (l + d - 2) G_(l+1) = (2 l + d - 2) t G_l - l G_(l-1)."""
        values, d = np.empty(len(x)), self.d
        scale = self.amplitudes * np.sqrt(np.diff(cumulative(d, len(self.amplitudes)), prepend=0))
        for start in range(0, len(x), 8192):
            t = np.ascontiguousarray(x[start : start + 8192] @ AXES[d])
            total, before, now, product = np.full_like(t, scale[0]), np.ones_like(t), t.copy(), np.empty_like(t)
            for level in range(1, len(scale)):
                if scale[level]:
                    total += np.multiply(now, scale[level], out=product)
                np.multiply(t, now, out=product)
                product *= (2 * level + d - 2) / (level + d - 2)
                before *= level / (level + d - 2)
                np.subtract(product, before, out=before)
                before, now = now, before
            values[start : start + 8192] = total
        return values

    def coefficients(self, level: int) -> Floats:
        """The coefficients of the harmonics of a level, (m,)."""
        space = Sphere(self.d).eigenfunctions(level)
        return self.amplitudes[level] * space.values(AXES[self.d][None])[0] / np.sqrt(space.size)

    def floor(self, levels: int) -> float:
        """The risk of its exact projection on the first levels."""
        return float(np.sum(self.amplitudes[levels:] ** 2))

    def risk(self, fitted: InvariantRegressor) -> float:
        """|f_hat - f|^2 in L2 of the uniform probability."""
        parts = [np.sum((c - self.coefficients(level)) ** 2) for level, c in enumerate(fitted.coef_)]
        return float(sum(parts)) + self.floor(len(parts))


def expected(case: Case, target: Target, levels: int) -> float:
    """The risk of the projection over samples: the floor, and (E[(σ² + f²) sum u²] - sum c²) / n.

    The expectation over points is a mean over fresh ones; without a group sum u² = D everywhere.
    """
    size = int(cumulative(case.d, levels)[-1])
    basis = InvariantBasis(HarmonicBasis(case.sphere, size), case.group)
    x = case.sphere.sample(PROBES, np.random.default_rng(0))
    squares = sum(np.sum(basis.values(part) ** 2 @ target(part) ** 2) for part in np.array_split(x, 10)) / PROBES
    variance = NOISE**2 * basis.size + squares - np.sum(target.amplitudes[:levels] ** 2)
    return target.floor(levels) + float(variance) / case.rows(levels)


# -- data ------------------------------------------------------------------------------------------------------------


def paths(case: Case, folder: Path) -> tuple[Path, Path]:
    """The paths of its points and values."""
    return folder / f"{SAMPLES[case.d]}.zarr", folder / f"{case.name.replace(', s = ', '-')}.zarr"


def write_data(cases: tuple[Case, ...], folder: Path) -> None:
    """Write uniform points of each sphere and the noisy values of each case, chunk by chunk, where they are missing.

    Raises ValueError for files of other data.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        points, values = paths(case, folder)
        n = max(other.rows(other.levels[-1]) for other in cases if other.d == case.d)
        if not points.exists():
            write(SAMPLES[case.d], points, n, dimension=case.d, seed=1)
        x = zarr.open_array(points, mode="r")
        if x.shape != (n, case.d):
            raise ValueError(f"{points} has {x.shape[0]} points instead of {n}; name another --folder, or remove it")
        about = {"case": case.name, "amplitude": AMPLITUDE, "noise": NOISE, "levels": BEYOND * case.levels[-1]}
        if not values.exists():
            rows, target = (x.shards or x.chunks)[0], case.edge()
            with create_array(values, (n,), "float64", chunk_rows=rows, attributes=about) as y:
                for i, start in enumerate(range(0, n, rows)):
                    block = np.asarray(x[start : start + rows])
                    noise = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(round(4 * case.smoothness), i)))
                    y[start : start + rows] = target(block) + NOISE * noise.standard_normal(len(block))
        written = zarr.open_array(values, mode="r")
        if written.shape != (n,) or any(written.attrs.get(key) != value for key, value in about.items()):
            raise ValueError(f"{values} has other values; name another --folder, or remove it")


# -- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RateRow:
    """One n of a case: D, the number of invariant functions, the mean and spread of the risk, and its expectation."""

    case: float
    n: float
    D: float
    functions: float
    trials: float
    risk: float
    spread: float
    expected: float
    floor: float
    seconds: float


def rate(case: Case, levels: int, folder: Path) -> RateRow:
    """Fit disjoint ranges of n rows of the stored points, and all of them from their path."""
    target, n = case.edge(), case.rows(levels)
    points, values = paths(case, folder)
    x, y = da.from_zarr(points), da.from_zarr(values)
    trials = int(np.clip(len(x) // 5 // n, 1, TRIALS))
    risks, seconds = [], []
    for trial in range(trials):
        here = slice(trial * n, (trial + 1) * n)
        data = (points, values) if n == len(x) else (x[here], y[here])
        model = InvariantRegressor(case.sphere, case.group, case.smoothness, solver="projection")
        start = perf_counter()
        model.fit(*data, progress=False)
        seconds.append(perf_counter() - start)
        assert model.levels_ == levels, (case.name, n, model.levels_)
        assert model.invariant_dimensions_.tolist() == [case.functions(level) for level in range(levels)]
        risks.append(target.risk(model))
    return RateRow(
        case=[each.name for each in CASES].index(case.name),
        n=n,
        D=model.n_eigenfunctions_,
        functions=int(model.invariant_dimensions_.sum()),
        trials=trials,
        risk=float(np.mean(risks)),
        spread=float(np.std(risks)),
        expected=expected(case, target, levels),
        floor=target.floor(levels),
        seconds=float(np.median(seconds)),
    )


@dataclass(frozen=True)
class SolverRow:
    """Projection and least squares on the same noiseless values: their D and risk, and the projection's floor.

    `wide` is the risk of the projection with the D of least squares.
    """

    n: float
    projection_D: float
    projection: float
    floor: float
    wide: float
    least_squares_D: float
    least_squares: float


def solvers(n: int) -> SolverRow:
    """The analytic target b_l = 2^(-l) on the sphere under all permutations, without noise."""
    target, sphere = Target(3, 0.5 ** np.arange(60.0)), Sphere(3)
    x = sphere.sample(n, np.random.default_rng(3))

    def fit(solver: str, size: int | None = None) -> InvariantRegressor:
        return InvariantRegressor(sphere, Permutations(3), 2.0, size, solver).fit(x, target(x), progress=False)

    projection, least = fit("projection"), fit("least_squares")
    return SolverRow(
        n=n,
        projection_D=projection.n_eigenfunctions_,
        projection=target.risk(projection),
        floor=target.floor(projection.levels_),
        wide=target.risk(fit("projection", least.n_eigenfunctions_)),
        least_squares_D=least.n_eigenfunctions_,
        least_squares=target.risk(least),
    )
