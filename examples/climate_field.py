"""Patterns of a climate field
===========================

Patterns of the Pacific Ocean: sea surface temperatures of fifty winters, in three decompositions of one field.

The field (time, latitude, longitude) is passed unchanged: grid points on land are left out and are NaN in the results,
latitudes are weighted by the cosine of the latitude, and maps and time series come out with the field's coordinates.

1. Empirical orthogonal functions: `EOF`, with 95 % intervals of the variances. The first is El Nino.
   Where the package `xeofs` is installed, the same from it, and how far the two are apart.
2. Kernel principal components: `operators.Covariance()` with a Gaussian kernel, whose functions may bend.
3. Slow modes: `Koopman(1)` of the leading principal components, from one winter to the next. Fifty winters
   are few for it, as the warnings state.

Usage::

    python examples/climate_field.py [FIELD.nc --variable sst] [--out examples/pictures]

Without a file the field is the one that the package `eofs` brings (`pip install eofs`): anomalies of November to March
means, 1962 to 2011, 22.5 S to 62.5 N.
"""

# sphinx_gallery_thumbnail_path = '../pictures/climate_field.png'

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

import daskspectral as dsp
from daskspectral import plot

PICTURE = "climate_field.png"
COMPONENTS = 4


def open_field(path=None, variable="sst"):
    """A field (time, latitude, longitude), lazily."""
    if path is None:
        from eofs.examples import example_data_path

        path = example_data_path("sst_ndjfm_anom.nc")
    field = xr.open_dataset(path, chunks={})[variable].squeeze(drop=True).astype(float)
    return field.assign_coords(latitude=field.latitude.astype(float))  # weights to rounding


def times(field):
    """A row for each time; grid points on land are left out, and the others weighted by their area."""
    return dsp.Rows(field, sample_dims=("time",), latitude="latitude", on_invalid="skip")


def empirical(field):
    """The model of principal components, and itself as a Dataset with maps."""
    model = dsp.EOF(COMPONENTS, random_state=0)
    model.fit(times(field))
    return model, model.to_xarray(field)


def of_another_package(field):
    """Variances and maps of unit time series by xeofs; None where it is not installed."""
    try:
        from xeofs.single import EOF
    except ImportError:
        return None
    eof = EOF(n_modes=COMPONENTS, use_coslat=True, solver="full").fit(
        field.rename(latitude="lat").compute(), dim="time"
    )
    scores = eof.scores(normalized=False).transpose("time", "mode").values
    return scores.var(axis=0), scores / scores.std(axis=0)


def kernel_components(field):
    """Kernel principal components: variances in the function space, and what they explain of the field."""
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian("auto"))
    model = dsp.SpectralDecomposition(dsp.operators.Covariance(), basis, n_components=COMPONENTS, random_state=0)
    return model.fit(times(field)).to_xarray(field)


def slow_modes(scores):
    """Singular values from one winter to the next of linear functions of the leading principal components."""
    basis = dsp.basis.Landmarks(dsp.kernels.Linear())
    model = dsp.Koopman(1, basis=basis, n_components=COMPONENTS, folds="blocks", random_state=0)
    return model.fit(scores.values)


def draw(found, kernel, path):
    """Four maps: two empirical orthogonal functions with their time series below, and two kernel components."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8))
    axes = figure.subplots(3, 2, gridspec_kw={"height_ratios": [2, 1, 2]})
    for k in range(2):
        _map(figure, axes[0, k], found.components[k], f"EOF {k + 1}: {_share(found, k)} of the variance")
        series = axes[1, k]
        series.plot(found.time.dt.year, found.scores[k], color="black", linewidth=1)
        series.axhline(0, color="grey", linewidth=0.5)
        series.set(xlabel="winter", ylabel="standard deviations")
        _map(figure, axes[2, k], kernel.sst_pattern[k], f"kernel component {k + 1}: {_share(kernel, k)}")
    figure.tight_layout()
    plot.save_figure(figure, path, overwrite=True, dpi=110)


def _map(figure, axes, pattern, title):
    reach = float(abs(pattern).max())
    image = axes.pcolormesh(pattern.longitude, pattern.latitude, pattern, cmap="RdBu_r", vmin=-reach, vmax=reach)
    axes.set(title=title, xlabel="longitude", ylabel="latitude", facecolor="lightgrey")
    figure.colorbar(image, ax=axes, label="degrees C")


def _share(found, k):
    return f"{100 * float(found.explained_variance_ratio[k]):.0f} %"


def main(path=None, variable="sst", out="examples/pictures"):
    """The numbers of the three decompositions; the picture goes into `out`."""
    picture = Path(out) / PICTURE
    plot.refuse_picture(picture, overwrite=True)
    field = open_field(path, variable)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", dsp.FitWarning)
        model, found = empirical(field)
        kernel = kernel_components(field)
        slow = slow_modes(found.scores.T)
    print("   variance   95 % interval       held out   share")
    for k in range(COMPONENTS):
        one = found.isel(mode=k)
        interval = f"{float(one.explained_variance_lower):8.3f} {float(one.explained_variance_upper):8.3f}"
        held_out, share = model.validation_values_[k], _share(found, k)
        print(f"{k + 1}  {float(one.explained_variance):8.3f} {interval}  {held_out:11.3f}   {share:>5}")
    other = of_another_package(field)
    numbers = {"share of the first": float(found.explained_variance_ratio[0])}
    if other is not None:
        variances, scores = other
        numbers["relative difference of variances from xeofs"] = float(
            np.abs(found.explained_variance / variances - 1).max()
        )
        ours = found.scores.T.values * np.sign((found.scores.T.values * scores).sum(axis=0))
        numbers["difference of time series from xeofs"] = float(np.abs(ours - scores).max())
    back = model.inverse_transform(found.scores.T)
    left = float(((field - back) ** 2).mean() / field.var())
    numbers["mean square that four components leave, over the variance"] = left
    numbers["share of the first kernel component"] = float(kernel.explained_variance_ratio[0])
    numbers["largest singular value from winter to winter"] = float(slow.singular_values_[0])
    numbers["the same on winters that were not fitted to"] = float(slow.validation_values_[0])
    for name, value in numbers.items():
        print(f"{name}: {value:.3g}")
    for text in dict.fromkeys(str(one.message) for one in caught):
        print("warning:", text)
    draw(found, kernel, picture)
    return numbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("path", nargs="?", metavar="FIELD.nc")
    parser.add_argument("--variable", default="sst")
    parser.add_argument("--out", default="examples/pictures")
    arguments = parser.parse_args()
    main(arguments.path, arguments.variable, arguments.out)
