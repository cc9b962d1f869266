"""Points, comparisons that report the place of failure, and finite differences."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.errors import SmoothnessError
from daskspectral.kernels.base import MultiIndex, unit_index
from daskspectral.registry import decode, digest_of, encode, foreign

Array = NDArray[np.floating[Any]]
Derivative = Callable[[Array, MultiIndex], Array]
Thing = TypeVar("Thing")

EXACT = 1e-10  # relative to the largest entry: a difference by rounding alone
DIFFERENCES = 1e-6  # likewise, of finite differences
HIGHEST = 4  # orders of derivatives above it are not checked
INDICES = 15  # multi-indices checked of each order: all of them in three variables
POINTS, LEAST = 40, 12


def require(condition: bool, message: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def compare(what: str, found: Any, expected: Any, tolerance: float, floor: float = 0.0) -> None:
    """Raise AssertionError if an error exceeds `tolerance` times the largest entry plus `floor`."""
    found, expected = np.asarray(found), np.asarray(expected)
    require(found.shape == expected.shape, f"{what}: expected the shape {expected.shape}, got {found.shape}")
    allowed = tolerance * float(np.abs(expected).max(initial=0)) + floor
    with np.errstate(invalid="ignore"):
        error = np.abs(found - expected)
    bad = ~(error <= allowed)  # NaN is bad
    if bad.any():
        worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error)), bad.shape)
        raise AssertionError(
            f"{what}: {found[worst]:.6g} at {[int(i) for i in worst]}, expected {expected[worst]:.6g}; off by "
            f"{error[worst]:.2g}, allowed {allowed:.2g} ({bad.sum()} of {bad.size} entries are off)"
        )


def draw_points(x: ArrayLike | None, d: int, rng: np.random.Generator) -> Array:
    """Return distinct points, normal ones or rows of x, in random order, as a read-only array."""
    if x is None:
        points = rng.standard_normal((POINTS, d))
    else:
        points = np.array(x, dtype=float)
        if points.ndim != 2:
            raise ValueError(f"x must have the shape (n, d), got {points.shape}")
        points = rng.permutation(np.unique(points, axis=0))[:POINTS]
        if len(points) < LEAST:
            raise ValueError(f"x must have at least {LEAST} distinct points, got {len(points)}")
    points.flags.writeable = False
    return points


def copies_of(what: str, thing: Thing, expected: type) -> dict[str, Thing]:
    """Return the pickled copy and, if there is a saved state, the copy read from it, with descriptions."""
    try:
        copies = {"its pickled copy": cloudpickle.loads(cloudpickle.dumps(thing))}
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise AssertionError(f"{what} cannot be pickled and sent to workers: {error}") from error
    try:
        state = encode(thing)
    except (ValueError, TypeError):  # of functions or classes that cannot be imported: for use, not to be saved
        return copies
    try:
        found = decode(state, expected, trusted=foreign(state))
    except (ValueError, TypeError) as error:
        raise AssertionError(f"{what} cannot be read from its state: {error}") from error
    require(digest_of(encode(found)) == digest_of(state), f"{what}: its state changes when it is saved and loaded")
    return copies | {"the one read from its state": found}


def check_copies(thing: Any, expected: type) -> None:
    """Raise AssertionError unless copies have the same repr and, if equality is by value, are equal."""
    equality: Any = type(thing).__eq__
    for name, copy in copies_of(f"{thing}", thing, expected).items():
        same = repr(copy) == repr(thing) and (equality is object.__eq__ or copy == thing)
        require(type(copy) is type(thing) and same, f"{thing}: {name} is {copy}")


def check_contracted(
    what: str,
    shape: tuple[int, int],
    order: float,
    partial: Callable[[MultiIndex], Array],
    along: Callable[[Array], Array],
    second: Callable[[Array | None], Array],
    rng: np.random.Generator,
) -> None:
    """Compare directional and second derivatives with sums of partial derivatives."""
    n, d = shape
    if order >= 1:
        v = rng.standard_normal(shape)
        expected = np.sum([partial(unit_index(a, d)) * v[:, a] for a in range(d)], axis=0)
        compare(f"{what}: along, against partial derivatives", along(v), expected, EXACT)
    for matrix in (rng.standard_normal((n, d, d)), None) if order >= 2 else ():
        weights = np.zeros((n, d, d)) + np.eye(d) if matrix is None else matrix
        pairs = itertools.product(range(d), repeat=2)
        expected = np.sum([weights[:, a, b] * partial(two_axes(a, b, d)) for a, b in pairs], axis=0)
        name = f"{what}: second derivatives {'without' if matrix is None else 'with a field of'} matrices"
        compare(f"{name}, against partial derivatives", second(matrix), expected, EXACT)


def two_axes(a: int, b: int, d: int) -> MultiIndex:
    """Return the multi-index of d_a d_b."""
    return tuple((k == a) + (k == b) for k in range(d))


def multi_indices(d: int, order: int, rng: np.random.Generator) -> list[MultiIndex]:
    """Return multi-indices of total order `order`, all or some of them."""
    if math.comb(d + order - 1, order) <= INDICES:
        axes = np.array(list(itertools.combinations_with_replacement(range(d), order)))
    else:
        axes = rng.integers(d, size=(INDICES, order))
    return sorted({tuple(int(k) for k in np.bincount(row, minlength=d)) for row in axes}, reverse=True)


def differences(function: Callable[[Array], Array], x: Array, axis: int) -> tuple[Array, Array]:
    """Return d function / dx_axis at x and its error, by central differences extrapolated twice."""
    unit = np.array(unit_index(axis, x.shape[1]))
    steps = 2.0 ** (math.floor(math.log2(0.02 * spread(x))) - np.arange(3))
    table = [(function(x + h * unit) - function(x - h * unit)) / (2 * h) for h in steps]
    fine = [(4 * b - a) / 3 for a, b in itertools.pairwise(table)]
    best = np.asarray((16 * fine[1] - fine[0]) / 15)
    return best, np.abs(best - fine[1])


def spread(x: Array) -> float:
    """Return the largest standard deviation of a coordinate."""
    return float(x.std(axis=0).max())


def check_partials(
    what: str,
    derivative: Derivative,
    values: Array,
    order: float,
    x: Array,
    rng: np.random.Generator,
) -> None:
    """Compare derivatives with differences of one order lower; above `order` they must raise an error."""
    whole = order == math.inf or order in range(1000)
    require(whole, f"{what}: order must be a nonnegative integer or infinite, got {order!r}")
    d = x.shape[1]

    def given(x: Array, alpha: MultiIndex) -> Array:
        try:
            return derivative(x, alpha)
        except (IndexError, KeyError, NotImplementedError, SmoothnessError, ValueError) as error:
            raise AssertionError(f"{what} declares the derivative {alpha}, but raises {error!r}") from error

    compare(f"{what}: the partial derivative of order 0, against values", given(x, (0,) * d), values, EXACT)
    for total in range(1, int(min(order, HIGHEST)) + 1):
        for alpha in multi_indices(d, total, rng):
            axis = max(a for a in range(d) if alpha[a])
            below = tuple(k - int(a == axis) for a, k in enumerate(alpha))
            floor = 1e-9 * float(np.abs(given(x, below)).max()) / spread(x)
            expected, error = differences(lambda z, b=below: np.array(given(z, b)), x, axis)  # type: ignore[misc]
            allowed = DIFFERENCES * float(np.abs(expected).max()) + floor
            name = f"{what}: the partial derivative {alpha}"
            require(
                bool(np.all(error <= allowed)),
                f"{name} cannot be checked: differences of {below} have an error of {error.max():.2g}. There is "
                "a jump, noise, or a very narrow function; pass other points as x",
            )
            compare(f"{name}, against differences of {below}", given(x, alpha), expected, DIFFERENCES, floor)
    if order < math.inf:
        above = tuple((int(order) + 1) * k for k in unit_index(0, d))
        try:
            derivative(x, above)
        except SmoothnessError:
            return
        raise AssertionError(f"{what} of order {int(order)} must raise SmoothnessError for {above}")
