"""Exact eigenvalues of -div(rho grad f) = lambda rho f with free ends, for the problems of `problems.py`.

Every function returns the lowest `count` eigenvalues, ascending, the constant's 0 first, each as often as its
multiplicity. If there is no closed form the problem separates into ordinary differential equations, solved by finite
volumes (errors below 1e-5), but two moons (polynomials) and the L-shape: biquadratic finite elements on a grid that is
graded toward the re-entrant corner (relative errors below 1e-4).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count as whole_numbers
from math import comb

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import scipy.special
from numpy.polynomial.hermite_e import hermegauss, hermevander
from numpy.polynomial.legendre import legder, leggauss, legval, legvander

Array = np.ndarray
Function = Callable[[Array], Array]

L_SHAPE_WELLS = (((-0.6, -0.6), 1.0), ((-0.5, 0.5), 0.6), ((0.6, 0.5), 1.4))


# -- densities -------------------------------------------------------------------------------------------------------


def l_shape_density(x: Array) -> Array:
    """Of rows (n, 2) in [-1, 1]^2 without (0, 1] x [-1, 0), up to a factor; at most 3.02."""
    wells = [w * np.exp(-((x - np.array(c)) ** 2).sum(axis=-1) / (2 * 0.35**2)) for c, w in L_SHAPE_WELLS]
    return np.sum(wells, axis=0) + 0.02


def mixture_density(x: Array) -> Array:
    """Of points of [0, 3], up to a factor; at most 1.02."""
    return np.exp(-((x - 0.6) ** 2) / (2 * 0.25**2)) + 0.5 * np.exp(-((x - 2.1) ** 2) / (2 * 0.35**2)) + 0.01


def annulus_density(radius: Array, angle: Array) -> Array:
    """Per area, at radii of [.5, 1], up to a factor; at most 1.8 / e."""
    return (1 + 0.8 * np.cos(angle)) * np.exp(-2 * radius)


# -- closed forms ----------------------------------------------------------------------------------------------------


def box(sides: tuple[float, ...], count: int) -> Array:
    """Uniform in a box: sums of (pi k / side)^2."""
    return sums([(np.pi * np.arange(count) / side) ** 2 for side in sides], count)


def normal(d: int, count: int) -> Array:
    """Standard normal in d dimensions: k, as often as there are monomials of degree k."""
    return repeated(float, lambda k: comb(k + d - 1, k), count)


def sphere(d: int, count: int) -> Array:
    """Uniform on S^(d-1) in R^d: s (s + d - 2), N(d, s) times."""
    return repeated(lambda s: s * (s + d - 2.0), lambda s: harmonics(d, s), count)


def circles(radii: tuple[float, ...], count: int) -> Array:
    """Separate circles with any shares: k^2 / r^2, twice for k > 0."""
    squares = np.array([((k + 1) // 2) ** 2 for k in range(count)], dtype=float)
    return np.sort(np.concatenate([squares / r**2 for r in radii]))[:count]


def torus(radii: tuple[float, ...], count: int) -> Array:
    """A flat torus, the product of circles."""
    return sums([circles((r,), count) for r in radii], count)


def disk(count: int) -> Array:
    """Uniform in the unit disk: squares of the zeros of J_m', twice for m > 0."""
    waves = [np.append([0.0] * (m == 0), scipy.special.jnp_zeros(m, count)) for m in range(count)]
    return np.sort(np.concatenate([np.repeat(z**2, 1 if m == 0 else 2) for m, z in enumerate(waves)]))[:count]


def ball(count: int) -> Array:
    """Uniform in the unit ball of R^3: f = R(r) Y_l, 2 l + 1 times."""
    found: list[float] = []
    for degree in range(count):
        radial = in_cells((0, 1), np.square, count, potential=lambda r, m=degree * (degree + 1): m + 0 * r)
        found += [value for value in radial for _ in range(2 * degree + 1)]
    return grounded(np.sort(found)[:count])


def triangle(count: int) -> Array:
    """Uniform in the equilateral triangle of side 1: 16 pi^2 / 9 (m^2 + m n + n^2) for m, n from 0 on (Lame)."""
    m, n = np.indices((count, count))
    return np.sort((16 * np.pi**2 / 9 * (m**2 + m * n + n**2)).ravel())[:count]


def half_sphere(count: int) -> Array:
    """Uniform on the half of S^2 above its equator: l (l + 1), l + 1 times."""
    return repeated(lambda s: s * (s + 1.0), lambda s: s + 1, count)


# -- one dimension ---------------------------------------------------------------------------------------------------


def mixture(count: int) -> Array:
    return grounded(in_cells((0, 3), mixture_density, count))


def swiss_roll(count: int) -> Array:
    """The sheet of sklearn's swiss roll, of width 21."""
    return roll(1, 21, count)


def roll(tightness: float, width: float, count: int) -> Array:
    """The strip t in [1.5 pi, 4.5 pi], h in [0, width], t and h uniform, rolled to the radius t / tightness."""
    around = in_cells((1.5 * np.pi, 4.5 * np.pi), np.ones_like, count, lambda t: tightness**2 / (1 + t**2))
    return sums([around, (np.pi * np.arange(count) / width) ** 2], count)


def spiral(pitch: float, turns: float, count: int) -> Array:
    """The curve of radius .5 + pitch t / (2 pi) at the angle t, uniform in [0, 2 pi turns]."""

    def energy(t: Array) -> Array:
        return 1 / ((0.5 + pitch * t / (2 * np.pi)) ** 2 + (pitch / (2 * np.pi)) ** 2)

    return in_cells((0, 2 * np.pi * turns), np.ones_like, count, energy)


def annulus(count: int) -> Array:
    """f = R(r) T(angle): -((1 + .8 cos) T')' = m (1 + .8 cos) T, and R with the potential m / r^2."""
    angle, values, slopes = waves(1024, count + 40)
    weight = 1 + 0.8 * np.cos(angle)
    around = scipy.linalg.eigh(slopes * weight @ slopes.T, values * weight @ values.T, eigvals_only=True)[:count]

    def density(r: Array) -> Array:
        return r * np.exp(-2 * r)

    parts = [in_cells((0.5, 1), density, count, None, lambda r, m=m: m / r**2 * density(r)) for m in around]
    return grounded(np.sort(np.concatenate(parts))[:count])


def normals(means: tuple[float, ...], shares: tuple[float, ...], widths: tuple[float, ...], count: int) -> Array:
    """A mixture of normal densities on the line."""

    def density(x: Array) -> Array:
        each = [w / s * np.exp(-(((x - m) / s) ** 2) / 2) for m, w, s in zip(means, shares, widths, strict=True)]
        return np.sum(each, axis=0)

    wide = 12 * max(widths)
    return grounded(in_cells((min(means) - wide, max(means) + wide), density, count))


def stretched(power: float, count: int) -> Array:
    """The density exp(-|x|^power) on the line."""
    end = 120.0 ** (1 / power)
    return grounded(in_cells((-end, end), lambda x: np.exp(-(np.abs(x) ** power)), count))


def double_well(height: float, count: int) -> Array:
    """The density exp(-height (x^2 - 1)^2) on the line."""
    return grounded(in_cells((-3, 3), lambda x: np.exp(-height * (x**2 - 1) ** 2), count))


def steep(rate: float, count: int) -> Array:
    """The density exp(rate x) on [0, 1]: 0, and rate^2 / 4 + (k pi)^2."""
    return np.append(0.0, rate**2 / 4 + (np.pi * np.arange(1, count)) ** 2)


def sector(radii: tuple[float, float], angle: float, count: int) -> Array:
    """Uniform in a sector of an annulus: R(r) cos(k pi t / angle), and R with the potential (k pi / angle)^2 / r."""
    found = [
        in_cells(radii, lambda r: r, count, potential=lambda r, m=(k * np.pi / angle) ** 2: m / r) for k in range(count)
    ]
    return grounded(np.sort(np.concatenate(found))[:count])


def tilted_sphere(tilt: float, count: int) -> Array:
    """The density exp(tilt z) on S^2: f = (1 - z^2)^(m/2) F(z) with cos or sin of m angle, twice for m > 0.

    With p = exp(tilt z) (1 - z^2)^m, -((1 - z^2) p F')' + m (m + 1 + tilt z) p F = lambda p F.
    """
    found: list[float] = []
    for m in range(count):

        def weight(z: Array, m: int = m) -> Array:
            return np.exp(tilt * z) * (1 - z**2) ** m

        values = in_cells(
            (-1, 1),
            weight,
            count,
            lambda z, weight=weight: (1 - z**2) * weight(z),
            lambda z, m=m, weight=weight: m * (m + 1 + tilt * z) * weight(z),
        )
        found += [value for value in values for _ in range(1 if m == 0 else 2)]
    return grounded(np.sort(found)[:count])


def ring_surface(tube: float, count: int) -> Array:
    """The surface of a ring of radius 1 about its axis, and of this tube: f = F(t) with cos or sin of m angle."""
    t, values, slopes = waves(512, count + 20)
    weight = 1 + tube * np.cos(t)
    found: list[float] = []
    for m in range(count):
        form = slopes * (weight / tube**2) @ slopes.T + values * (m**2 / weight) @ values.T
        lowest = scipy.linalg.eigh(form, values * weight @ values.T, eigvals_only=True)[:count]
        found += [value for value in lowest for _ in range(1 if m == 0 else 2)]
    return grounded(np.sort(found)[:count])


def noisy_sphere(noise: float, count: int) -> Array:
    """S^2 with normal noise in R^3: f = R(r) Y_l, with the radial density r exp(-(r - 1)^2 / (2 noise^2)).

    The term exp(-2 r / noise^2) of the exact density is left out: below 1e-300 at .05.
    """

    def weight(r: Array) -> Array:
        return r**2 * np.exp(-((r - 1) ** 2) / (2 * noise**2)) / r

    found: list[float] = []
    for degree in range(count):
        levels = degree * (degree + 1)
        radial = in_cells((0.5, 1.5), weight, count, None, lambda r, m=levels: m / r**2 * weight(r))
        found += [value for value in radial for _ in range(2 * degree + 1)]
    return grounded(np.sort(found)[:count])


def waves(points: int, most: int) -> tuple[Array, Array, Array]:
    """Angles, and 1, cosines and sines below a frequency there, with their slopes."""
    t = np.linspace(0, 2 * np.pi, points, endpoint=False)
    k = np.arange(1, most)[:, None]
    values = np.vstack([np.ones((1, points)), np.cos(k * t), np.sin(k * t)])
    return t, values, np.vstack([np.zeros((1, points)), -k * np.sin(k * t), k * np.cos(k * t)])


def in_cells(
    ends: tuple[float, float],
    weight: Function,
    count: int,
    stiffness: Function | None = None,
    potential: Function | None = None,
) -> Array:
    """The lowest eigenvalues of -(p f')' + v f = lambda w f with free ends, by 20 000 finite volumes.

    p, v and w are stiffness (by default the weight), potential and weight; errors are 1e-5 and less.
    """
    edges = np.linspace(*ends, 20_001)
    x, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    root = np.sqrt(weight(x)) * width
    flux = np.concatenate([[0.0], (stiffness or weight)(edges[1:-1]), [0.0]])
    diagonal = (flux[1:] + flux[:-1]) / root**2
    if potential is not None:
        diagonal += potential(x) / weight(x)
    off = -flux[1:-1] / (root[1:] * root[:-1])
    values = scipy.linalg.eigh_tridiagonal(diagonal, off, eigvals_only=True, select="i", select_range=(0, count - 1))
    return np.where(np.abs(values) < 1e-5, 0.0, values)


# -- two dimensions --------------------------------------------------------------------------------------------------


def two_moons(noise: float, count: int) -> Array:
    """Two half-circles of radius 1, with normal noise: each eigenvalue of one moon twice.

    The moons are .5 apart: what their tails share moves the second 0 by less than .001 at a noise of .05, and by
    rounding at .03. In polar coordinates about its center a moon's density is exp(-(r - 1)^2 / (2 noise^2)) times the
    integral of exp(-r (1 - cos(angle - t)) / noise^2) over t in [0, pi]. The strip of angles ends 5 standard
    deviations outside.
    """
    z, radial_weight = hermegauss(16)
    arc, arc_weight = leggauss(1000)
    arc, arc_weight = (arc + 1) * np.pi / 2, arc_weight * np.pi / 2
    nodes, angle_weight = leggauss(300)
    half = np.pi / 2 + 5 * noise
    r = 1 + noise * z
    bend = 1 - np.cos(np.pi / 2 + half * nodes[:, None] - arc)
    density = np.stack([np.exp(-s * bend / noise**2) @ arc_weight for s in r])
    weight = (radial_weight * r)[:, None] * angle_weight * density
    across, across_slopes = hermite(z, 5)
    along = legvander(nodes, 79).T
    along_slopes = legval(nodes, legder(np.eye(80))) / half

    def products(radial: Array, angular: Array) -> Array:
        return np.einsum("aj,bk->abjk", radial, angular).reshape(len(radial) * len(angular), -1)

    values, outward = products(across, along), products(across_slopes / noise, along)
    around = products(across / r, along_slopes)
    flat = weight.ravel()
    form = outward * flat @ outward.T + around * flat @ around.T
    one = grounded(scipy.linalg.eigh(form, values * flat @ values.T, eigvals_only=True))
    return np.repeat(one[: (count + 1) // 2], 2)[:count]


def l_shape(count: int, elements: int = 32) -> Array:
    """Biquadratic finite elements; the lines of the grid, `elements` on a unit length, are graded towards 0."""
    half = np.linspace(0, 1, elements + 1) ** 2
    lines = np.concatenate([-half[:0:-1], half])
    nodes, weights = leggauss(4)
    t, weights = (nodes + 1) / 2, weights / 2
    shape = np.stack([(1 - t) * (1 - 2 * t), 4 * t * (1 - t), t * (2 * t - 1)])
    slope = np.stack([4 * t - 3, 4 - 8 * t, 4 * t - 1])
    i, j = (a.ravel() for a in np.indices((2 * elements, 2 * elements)))
    kept = (i < elements) | (j >= elements)
    i, j = i[kept], j[kept]
    (a, b), (c, d) = np.diff(lines)[[i, j]], lines[[i, j]]
    points = np.stack(
        np.broadcast_arrays((c[:, None] + a[:, None] * t)[:, :, None], (d[:, None] + b[:, None] * t)[:, None]), -1
    )
    area = l_shape_density(points) * (a * b)[:, None, None] * np.outer(weights, weights)

    def local(first: Array, second: Array, factor: Array) -> Array:
        pairs = np.einsum("ag,cg->acg", first, first), np.einsum("bh,dh->bdh", second, second)
        return np.einsum("egh,acg,bdh->eabcd", area * factor[:, None, None], *pairs, optimize=True)

    number = (2 * i[:, None, None] + np.arange(3)[:, None]) * (4 * elements + 1) + 2 * j[:, None, None] + np.arange(3)
    _, number = np.unique(number.reshape(len(i), 9), return_inverse=True)
    number = number.reshape(len(i), 9)
    rows, columns = np.repeat(number, 9, axis=1).ravel(), np.tile(number, 9).ravel()

    def assembled(blocks: Array) -> scipy.sparse.csc_array:
        return scipy.sparse.csc_array((blocks.ravel(), (rows, columns)))

    form = assembled(local(slope, shape, a**-2) + local(shape, slope, b**-2))
    gram = assembled(local(shape, shape, np.ones(len(i))))
    start = np.ones(form.shape[0])
    values = scipy.sparse.linalg.eigsh(form, count, gram, sigma=-1.0, v0=start, return_eigenvectors=False)
    return grounded(np.sort(values))


# -- algebra ---------------------------------------------------------------------------------------------------------


def grounded(values: Array) -> Array:
    """The values with rounding about 0 set to 0."""
    return np.where(np.abs(values) < 1e-7 * values[1], 0.0, values)


def hermite(z: Array, degrees: int) -> tuple[Array, Array]:
    """Hermite polynomials He_k at z and their slopes k He_(k-1), scaled to unit norm, each (degrees, len(z))."""
    scale = np.sqrt(np.cumprod(np.maximum(np.arange(degrees), 1.0)))[:, None]
    values = hermevander(z, degrees - 1).T
    slopes = np.arange(degrees)[:, None] * np.vstack([np.zeros((1, len(z))), values[:-1]])
    return values / scale, slopes / scale


def sums(parts: list[Array], count: int) -> Array:
    """The lowest sums of one value of each part: the eigenvalues of a product."""
    total = np.zeros(1)
    for part in parts:
        total = np.sort(np.add.outer(total, part[:count]).ravel())[:count]
    return total


def repeated(value: Callable[[int], float], multiplicity: Callable[[int], int], count: int) -> Array:
    found: list[float] = []
    for k in whole_numbers():
        found += [value(k)] * multiplicity(k)
        if len(found) >= count:
            return np.array(found[:count])
    raise AssertionError


def harmonics(d: int, degree: int) -> int:
    """N(d, s), the spherical harmonics of degree s on S^(d-1)."""
    return comb(degree + d - 1, d - 1) - (comb(degree + d - 3, d - 1) if degree >= 2 else 0)
