"""The command `daskspectral`, for zarr paths, URLs and files.

A first session; `x.npy` and `y.npy` are any two arrays (n, d) with equal numbers of rows, `points.zarr` and
`model.zarr` those of the README.

    daskspectral sample two-moons --noise 0.02 --n 1e4 --seed 1 --out new.zarr
    daskspectral verify points.zarr
    daskspectral plan fit points.zarr --kernel gaussian:0.5 --landmarks 500
    daskspectral fit points.zarr --lattice 25 --out fast.zarr
    daskspectral fit points.zarr --operator covariance --out pca.zarr
    daskspectral fit x.npy --view y.npy --operator cross:center --kernel linear --components 1 --out cca.zarr
    daskspectral info model.zarr --details
    daskspectral score model.zarr new.zarr
    daskspectral transform model.zarr x.npy --out embedding.zarr
    daskspectral plot model.zarr points.zarr --out functions.svg
    daskspectral report model.zarr points.zarr --out report.html
    daskspectral update model.zarr points.zarr --out newer.zarr
    daskspectral regress x.npy y.npy --landmarks 100 --out regressor.zarr
    daskspectral predict regressor.zarr x.npy --out predictions.zarr
    daskspectral cluster x.npy --clusters 2 --save-model clusters.zarr --out labels.zarr
    daskspectral predict clusters.zarr x.npy --out new-labels.zarr
    daskspectral embed x.npy --out sdp.zarr
    daskspectral transform sdp.zarr x.npy --out coordinates.zarr

- `sample` writes test distributions of any size; `verify` checks metadata, listing and checksums of a zarr store, and
  counts rows with NaN or infinity. Commands also read .npy, .parquet, .csv, .tsv and .nc files.
- `plan` prints tasks and memory, and the time if a Fourier basis would be much faster. `fit` resumes from
  `--checkpoint`.
  `--lattice` selects a Fourier basis (two columns, a billion rows), `--network 96,96,96` a network of three hidden
  layers. Every operator has a name; its arrays are passed as `--operator generator --drift b.zarr --diffusion 1.0` or
  `--field NAME=PATH`. The result of `--operator covariance` is an `EOF`, of `crosscovariance` an `MCA`, of
  `cross:center --kernel linear` a `CCA`. `fit sst.nc --sample-dims time --latitude lat` reads a labeled field.
- `--config run.yaml` reads options from a file; `daskspectral info fast.zarr --settings` prints those of a result.
  `info` describes any model, and `--details` adds ranks, residuals and candidates. `score` prints the score of the
  functions on other rows. `plot` has `--kind spectrum`, `choice` and `timescales`; `report` writes one page with the
  spectrum, functions, search results and warnings.
- `update` adds rows that were appended since the fit, `daskspectral merge` the sums of fits with one basis.
- `regress --gradients slopes.zarr` uses gradients, `predict --gradient` returns the gradient at every row; `embed` has
  `--map diffusion`, and `daskspectral invariant` fits an `InvariantRegressor`.

Every command accepts `--config`, `--json` and `--quiet`; `daskspectral -v fit ...` logs the search. Commands that read
data also accept `--scheduler tcp://scheduler:8786` and `--storage-option endpoint_url=...`. `--help` prints examples
and the first options, `--help-all` all of them. An error is one message and exit code 1; a signal ends the command with
128 plus its number.
The line `eval "$(_DASKSPECTRAL_COMPLETE=bash_source daskspectral)"` in ~/.bashrc, or zsh_source in ~/.zshrc, enables
completion of commands and options.
"""
