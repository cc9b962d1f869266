"""Installing: what the package needs by itself, and what an extra adds.

`pip install .` in a checkout brings numpy, scipy, scikit-learn, dask, zarr and xarray; Python 3.11 or later. Several
extras go together, `pip install ".[plot,cloud]"`. A call that needs a missing one says which.

    extra       what it is for                          what it brings
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
    test        the tests                               all of these but cloud and gpu, pytest, ...

In a shell, `eval "$(_DASKSPECTRAL_COMPLETE=bash_source daskspectral)"` in ~/.bashrc (zsh_source, fish_source elsewhere)
lets the tab key complete commands and options.

`python -m sphinx examples/pages build/pages` (extra `docs`) builds the documentation as pages; it needs no network.
"""
