"""The problems of the benchmarks: their spectra by other computations, their rows against the densities."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats

FOLDER = Path(__file__).parents[2] / "examples" / "benchmarks"

# Finite elements (P2 on triangles; the mixture by finite volumes), by another program; within 3e-4 of the limit
MESHES = {
    "l-shape": """0 .9919309769858176 3.833802476227007 13.292209754615266 13.377387663014 15.296481707701728
        16.095116564334425 24.459530758635207 24.979553680032048 26.839957831971347 33.86823573873127 41.69100417344986
        42.59957387565426 42.8353004995783 45.73380058160115 45.97013823124294""",
    "annulus": """0 1.8979205750770423 2.9324841844743377 8.166354531595891 8.657602027524998 17.67974593655936
        17.838909845939213 29.853634745451256 29.899454420570077 40.52382918017667 42.468223795323155 43.54771977461872
        44.195619515789204 44.20824314536799 49.22861575783048 49.78113265142389""",
    "mixture": """0 .5289090289566407 9.53643183351286 17.053815374860648 22.75409767017498 35.61247562566227
        45.177204229317184 60.8948924774198 76.56819623642417 95.21340545639472 116.26194314988282 138.8486088019926
        164.4076922174656 191.52327256094736 221.2703086144975 252.99084590699172""",
}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture
def problems(here):
    return importlib.import_module("problems")


@pytest.fixture
def spectra(here):
    return importlib.import_module("spectra")


def finite_volumes(edges, stiffness, weight, count):
    """-(p f')' = lambda w f with free ends, by finite volumes: no function is shared with the Galerkin method."""
    h, centres = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2
    flux, mass = stiffness(edges[1:-1]) / h**2, weight(centres)
    rates = scipy.sparse.diags([flux, flux], [1, -1])
    rates = scipy.sparse.diags(np.asarray(rates.sum(axis=1)).ravel()) - rates
    root = scipy.sparse.diags(mass**-0.5)
    start = np.sqrt(mass)
    return np.sort(scipy.sparse.linalg.eigsh((root @ rates @ root).tocsc(), count, sigma=-1e-3, v0=start)[0])


@pytest.mark.parametrize("name", MESHES)
def test_spectra_of_densities_against_meshes(problems, name):
    exact = np.array([float(word) for word in MESHES[name].split()])
    np.testing.assert_allclose(problems.FIRST_FIT[name].eigenvalues(16), exact, rtol=3e-4, atol=1e-9)


def test_the_mixture_against_finite_volumes(spectra):
    edges = np.linspace(0, 3, 20_001)
    found = finite_volumes(edges, spectra.mixture_density, spectra.mixture_density, 26)
    np.testing.assert_allclose(spectra.mixture(26)[1:], found[1:], rtol=1e-4)


def test_the_swiss_roll_against_finite_volumes_in_arc_length(spectra):
    """In arc length s the density is 1 / speed, and form and weight are the same function."""

    def length(t):
        return (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2

    fine = np.linspace(1.5 * np.pi, 4.5 * np.pi, 100_001)

    def density(s):
        return 1 / np.sqrt(1 + np.interp(s, length(fine), fine) ** 2)

    along = finite_volumes(np.linspace(length(fine[0]), length(fine[-1]), 4001), density, density, 12)
    found = np.sort(np.add.outer(along, (np.pi * np.arange(12) / 21) ** 2).ravel())
    np.testing.assert_allclose(spectra.swiss_roll(26)[1:], found[1:26], rtol=1e-4)


def test_the_noisy_sphere_against_finite_volumes(spectra):
    """The exact radial density r sinh(r / noise^2) exp(-r^2 / (2 noise^2)), in logarithms."""
    edges, noise = np.linspace(0.65, 1.4, 4001), 0.05

    def density(r):
        return r * np.exp(-((r - 1) ** 2) / (2 * noise**2)) * -np.expm1(-2 * r / noise**2)

    h, centres = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2
    flux = density(edges[1:-1]) / h**2
    for degree in range(1, 5):
        rates = scipy.sparse.diags([flux, flux], [1, -1])
        potential = degree * (degree + 1) / centres**2 * density(centres)
        form = scipy.sparse.diags(np.asarray(rates.sum(axis=1)).ravel() + potential) - rates
        root = scipy.sparse.diags(density(centres) ** -0.5)
        least = scipy.sparse.linalg.eigsh((root @ form @ root).tocsc(), 1, sigma=0, v0=centres)[0][0]
        assert spectra.noisy_sphere(noise, 26)[degree**2 : (degree + 1) ** 2] == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("noise", [0.03, 0.05])
def test_two_moons_are_nearly_two_segments(spectra, noise):
    found, squares = spectra.two_moons(noise, 16), np.repeat(np.arange(8.0) ** 2, 2)
    assert (found[:2] == 0).all()
    np.testing.assert_allclose(found[2:], squares[2:], rtol=2.5 * noise**2)


def test_two_moons_against_rows(problems, spectra):
    """The second eigenvalue of a moon from 250 000 rows, in Fourier and radial functions of the plane."""
    noise = 0.1
    rng = np.random.default_rng(0)
    t = rng.uniform(0, np.pi, 250_000)
    x = np.stack([np.cos(t), np.sin(t)]) + noise * rng.standard_normal((2, len(t)))
    r, angle = np.hypot(*x), (np.arctan2(x[1], x[0]) + np.pi / 2) % (2 * np.pi) - np.pi / 2
    k = np.arange(14)[:, None] * np.pi / (np.pi + 10 * noise)
    phase = k * (angle + 5 * noise)
    form = gram = 0.0
    for power in (0, 1):  # functions cos(k angle) and (r - 1) cos(k angle)
        for other in (0, 1):
            f, g = (r - 1) ** power * np.cos(phase), (r - 1) ** other * np.cos(phase)
            df, dg = (-k * (r - 1) ** a * np.sin(phase) / r for a in (power, other))
            block = df @ dg.T + (np.cos(phase) @ np.cos(phase).T if power and other else 0)
            form += np.kron(np.eye(2)[power][:, None] * np.eye(2)[other], block)
            gram += np.kron(np.eye(2)[power][:, None] * np.eye(2)[other], f @ g.T)
    values = scipy.linalg.eigh(form, gram, eigvals_only=True)
    np.testing.assert_allclose(values[1:6], spectra.two_moons(noise, 12)[2::2], rtol=0.015)


def test_closed_forms(problems):
    exact = {name: problem.eigenvalues(26) for name, problem in (problems.FIRST_FIT | problems.SUBMANIFOLDS).items()}
    assert exact["normal-10"].tolist() == [0] + [1] * 10 + [2] * 15
    assert exact["sphere"].tolist() == [s * (s + 1) for s in range(5) for _ in range(2 * s + 1)] + [30]
    assert exact["S^4 in R^5"].tolist() == [0] + [4] * 5 + [10] * 14 + [18] * 6
    lattice = sorted(i * i + j * j for i in range(-6, 7) for j in range(-6, 7))
    assert exact["torus in R^4"].tolist() == lattice[:26]
    assert exact["circles"][:10].tolist() == [0, 0, 1, 1, 4, 4, 4, 4, 9, 9]
    squares = sorted(i * i + j * j for i in range(8) for j in range(8))
    np.testing.assert_allclose(exact["square"] / np.pi**2, squares[:26], atol=1e-12)


def test_every_problem_has_rows_and_values(problems):
    every = problems.FIRST_FIT | problems.SUBMANIFOLDS
    assert len(problems.FIRST_FIT) == 12
    for problem in every.values():
        values = problem.eigenvalues(26)
        assert values.shape == (26,)
        assert (np.diff(values) >= 0).all()
        assert (values == 0).sum() == problem.zeros
        x = problem.draw(500, 3)
        assert len(x) == 500
        assert np.isfinite(x).all()
        assert np.array_equal(x, problem.draw(500, 3))
        assert not np.array_equal(x, problem.draw(500, 4))


def cells_fit(x, density, box, cells):
    """The p-value of the chi-square test of the rows' counts in cells against integrals of the density."""
    edges = [np.linspace(*side, cells + 1) for side in box]
    counts = np.histogramdd(x, edges)[0]
    fine = [np.linspace(*side, 16 * cells + 1) for side in box]
    middles = np.meshgrid(*[(a[1:] + a[:-1]) / 2 for a in fine], indexing="ij")
    values = density(np.stack(middles, axis=-1))
    for axis in range(x.shape[1]):
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], 16), axis=axis)
    expected = values * len(x) / values.sum()
    full = expected > 5
    assert counts.sum() == len(x)
    return scipy.stats.chisquare(counts[full], expected[full] * counts[full].sum() / expected[full].sum()).pvalue


@pytest.mark.parametrize("name", ["l-shape", "annulus", "mixture"])
def test_rows_have_the_density(problems, spectra, name):
    def l_shape(x):
        return spectra.l_shape_density(x) * ~((x[..., 0] > 0) & (x[..., 1] < 0))

    def annulus(x):
        r = np.hypot(x[..., 0], x[..., 1])
        return (1 + 0.8 * x[..., 0] / r) * np.exp(-2 * r) * ((r > 0.5) & (r < 1))

    density, box, cells = {
        "l-shape": (l_shape, [(-1, 1)] * 2, 16),
        "annulus": (annulus, [(-1, 1)] * 2, 6),
        "mixture": (lambda x: spectra.mixture_density(x[..., 0]), [(0, 3)], 60),
    }[name]
    assert cells_fit(problems.FIRST_FIT[name].draw(20_000, 0), density, box, cells) > 1e-3


def test_rows_lie_where_they_should(problems):
    x = problems.FIRST_FIT["circles"].draw(4000, 0)
    radius = np.hypot(*x.T)
    assert np.isclose(radius[:, None], [0.5, 1.0]).any(axis=1).all()
    assert abs((radius < 0.75).mean() - 0.5) < 0.03
    x = problems.FIRST_FIT["swiss-roll"].draw(4000, 0)
    t = np.hypot(x[:, 0], x[:, 2])
    assert scipy.stats.kstest(t, "uniform", (1.5 * np.pi, 3 * np.pi)).pvalue > 1e-3
    assert scipy.stats.kstest(x[:, 1], "uniform", (0, 21)).pvalue > 1e-3
    radius = np.linalg.norm(problems.FIRST_FIT["noisy-sphere"].draw(4000, 0), axis=1)
    assert abs(radius.std() - 0.05) < 0.003
    x = problems.SUBMANIFOLDS["circle in R^10"].draw(4000, 0)
    assert x.shape == (4000, 10)
    np.testing.assert_allclose(np.linalg.eigvalsh(x.T @ x / 4000)[:8], 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1)


def test_noise_around_a_submanifold(problems):
    clean = problems.SUBMANIFOLDS["torus in R^4"]
    noisy = problems.blurred(clean, 0.01)
    difference = noisy.draw(4000, 0) - clean.draw(4000, 0)
    assert np.abs(difference.std(axis=0) - 0.01).max() < 0.001
    assert np.array_equal(noisy.eigenvalues(25), clean.eigenvalues(25))


def test_errors(problems):
    circles = problems.FIRST_FIT["circles"]
    exact = np.array([0, 0, 1, 1, 4, 4, 4, 4, 9, 9, 16])
    assert problems.relative_errors(exact, circles, 11).tolist() == [0] * 9
    assert len(problems.relative_errors(exact, circles, 12)) == 10
    assert problems.relative_errors(exact * 1.5, circles, 11) == pytest.approx(0.5)
    assert problems.relative_errors(exact[:5], circles, 11).tolist() == [0] * 3 + [1] * 6
    assert problems.error_21(2 * exact[1:], exact[1:]) == pytest.approx(0.5)
    assert problems.error_21(exact[1:2], exact[1:]) == 1
