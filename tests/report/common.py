"""Models of every kind, fitted once, and what a page holds."""

from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import Landmarks, MonomialBasis
from daskspectral.datasets import SAMPLES
from daskspectral.kernels import Gaussian

VOID = {"meta", "br", "wbr", "hr", "img", "link", "input"}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def spectral(
    kernel: Any = "auto", operator: Any = None, count: int = 60, n_components: int = 6
) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(operator, Landmarks(kernel, count), n_components=n_components, random_state=0)


def moons() -> tuple[Any, Any]:
    x = SAMPLES["two-moons"].draw(2000, 2, 0.05, rng())[0]
    return spectral(count=80).fit(x), x


def turning() -> tuple[Any, Any]:
    t = np.linspace(0, 200 * np.pi, 2001)[:, None]
    x = np.hstack([np.cos(t), np.sin(t)])
    return dsp.Koopman(method="eigen", basis=MonomialBasis(2, 1), n_components=3).fit(x), x


def lags() -> tuple[Any, Any]:
    x = SAMPLES["ou"].draw(2000, 1, 0.0, rng())[0]
    basis = Landmarks(Gaussian(0.6), 60)
    return dsp.Koopman((5, 20), reversible=True, basis=basis, n_components=4, random_state=0).fit(x), x


def cross() -> tuple[Any, Any]:
    x = rng().standard_normal((800, 2))
    y = x[:, :1] + 0.3 * rng(1).standard_normal((800, 1))
    return spectral(Gaussian(1.5), dsp.operators.Cross(), n_components=4).fit((x, y)), (x, y)


def field() -> tuple[Any, Any]:
    lat, lon, n = np.arange(-60, 61, 15.0), np.arange(0, 360, 30.0), 120
    time = np.arange("2000-01", "2010-01", dtype="M8[M]").astype("M8[ns]")
    shape = np.cos(np.deg2rad(lat))[:, None] * np.cos(np.deg2rad(lon))
    values = np.sin(np.arange(n) / 5)[:, None, None] * shape + 0.1 * rng().standard_normal((n, len(lat), len(lon)))
    values[:, 2, 3] = np.nan
    coords: dict[str, Any] = {"time": time, "lat": ("lat", lat, {"units": "degrees_north"}), "lon": lon}
    data = xr.DataArray(values, coords, ("time", "lat", "lon"), name="sst", attrs={"units": "degC"})
    model = dsp.EOF(4, folds="random", random_state=0)
    return model.fit(dsp.Rows(data, sample_dims=("time",), latitude="lat", on_invalid="skip")), data


def hermite() -> tuple[Any, Any]:
    x = rng().standard_normal((600, 2))
    return dsp.HermiteRegressor(Landmarks(Gaussian(1.0), 40), random_state=0).fit(x, np.sin(x[:, 0])), x


def invariant() -> tuple[Any, Any]:
    x = SAMPLES["sphere"].draw(500, 3, 0.0, rng())[0]
    y = 5 * x.prod(axis=1) + x.sum(axis=1) ** 2
    return dsp.InvariantRegressor(dsp.manifolds.Sphere(3), dsp.groups.Permutations(3)).fit(x, y), x


def sdp() -> tuple[Any, Any]:
    x = SAMPLES["two-moons"].draw(200, 2, 0.05, rng())[0]
    return dsp.SDPEmbedding(0.3, random_state=0).fit(x), x


def moments() -> tuple[Any, Any]:
    return model("moons")[0].moments_, None


MADE = (moons, lags, turning, cross, field, hermite, invariant, sdp, moments)
MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {made.__name__: made for made in MADE}


@cache
def model(name: str) -> tuple[Any, Any]:
    """A fitted model by its name, and its points."""
    return MODELS[name]()


class Page(HTMLParser):
    """The elements of a page: tags with their attributes, headings, words, and which tags are not closed in order."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.words = ""
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append((tag, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)

    def every(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.tags if attributes.get("id")]
