"""Installing: dependencies and extras.

`pip install .` in a checkout installs numpy, scipy, scikit-learn, dask, zarr and xarray; Python 3.11 or later. Extras
can be combined, `pip install ".[plot,cloud]"`. A call that needs a missing extra names it.

    extra       purpose                                 packages
    plot        pictures                                matplotlib
    maps        coastlines on maps of fields            cartopy
    files       Parquet, CSV, NetCDF files              pyarrow, h5py, h5netcdf, cftime
    cloud       s3, gs and abfs URLs                    s3fs, gcsfs, adlfs
    hpc         batch systems: SLURM, PBS               dask-jobqueue, cryptography
    lattice     faster sums on Fourier lattices         finufft
    neural      networks as functions                   jax, optax
    dashboard   the dashboard, performance reports      bokeh
    gpu         GPUs (deploy/README.md)                 cupy
    docs        the documentation                       sphinx, numpydoc, sphinx-gallery, myst-parser
    test        the tests                               all of these except cloud and gpu, pytest, ...

The line `eval "$(_DASKSPECTRAL_COMPLETE=bash_source daskspectral)"` in ~/.bashrc (zsh_source, fish_source in other
shells) enables completion of commands and options.

`python -m sphinx examples/pages build/pages` (extra `docs`) builds the documentation; it needs no network.
"""
