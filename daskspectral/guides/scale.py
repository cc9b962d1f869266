"""Scale: clusters, object stores, long runs and growing data.

Clusters
--------
Work runs on the active Dask scheduler: threads by default, the current `distributed.Client` where there is one (in a
shell, `--scheduler tcp://scheduler:8786`). Workers open a zarr path or URL themselves, so they must see the same file
system or object store as the caller. A script that starts workers needs `if __name__ == "__main__":`, since they import
it. `deploy/` has scripts for SLURM, PBS, Kubernetes and plain hosts, and tells how many workers pay.

The stages of a fit have names on the dashboard: `landmarks`, `sums` and their `tree`, `apply`;
`examples/performance_report.py` writes a report of a fit. Callbacks such as `dask.diagnostics.ProgressBar` see no pass:
`progress=True` shows a bar of rows.
`dask.config.set(scheduler="threads")` comes before a client, a fit inside a task goes to the cluster of its worker, and
beside an event loop it is `await asyncio.to_thread(est.fit, x)`.

Object stores
-------------
Data, weights, models, outputs, checkpoints and pictures may be URLs (`s3://bucket/points.zarr`; extra `cloud`).
`dsp.Rows(x, storage_options={"endpoint_url": ...})` is for all URLs of its call, as is `storage_options=` of `save`,
`load` and other calls without rows, and `--storage-option endpoint_url=...` of a command; credentials come from the
environment, or are given in these options.

Long runs and growing data
--------------------------
`fit(x, checkpoint="run.checkpoint")` keeps the sums so far, every 60 seconds; a stopped run goes on from them, to the
same bits. `update` sums only the rows appended since the fit, if the files of the others are unchanged (append whole
chunks); otherwise, and of arrays in memory or of dask, it sums all rows again. Principal components, and other linear
functions, of fewer rows than columns are an exception: they span these rows only, so that `update` makes them of all
rows, and their moments do not add.

Fields of up to 2000 rows and more columns are summed over blocks of columns, as the Gram matrix of rows, twice: chunks
of all times at some places (zarr, dask) are read as they are, and of others all rows are held in memory. A checkpoint
starts after these two passes, which a stopped run repeats.

>>> import tempfile
>>> import zarr
>>> import daskspectral as dsp
>>> path = tempfile.mkdtemp() + "/points.zarr"
>>> dsp.datasets.write("uniform", path, 2000)
>>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 40)
>>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(path)
>>> shape = zarr.open_array(path).append(dsp.datasets.uniform(1000, seed=1))  # more rows have come
>>> est.update(path).moments_.count
3000
"""
