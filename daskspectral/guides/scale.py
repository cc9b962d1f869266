"""Scale: clusters, object stores, long runs and growing data.

Clusters
--------
Work runs on the active Dask scheduler: threads by default, or the current `distributed.Client` (in a shell,
`--scheduler tcp://scheduler:8786`). Workers open a zarr path or URL themselves, so they must see the same file system
or object store as the caller. A script that starts workers needs `if __name__ == "__main__":`, because they import it.
`deploy/` contains scripts for SLURM, PBS, Kubernetes and plain hosts, and explains how many workers are worthwhile.

The stages of a fit have names on the dashboard: `landmarks`, `sums` and their `tree`, `apply`;
`examples/performance_report.py` writes a report of a fit. `progress=True` shows a bar of rows; callbacks such as
`dask.diagnostics.ProgressBar` do not see the passes.
`dask.config.set(scheduler="threads")` has precedence over a client, a fit inside a task uses the cluster of its worker,
and code with an event loop calls `await asyncio.to_thread(est.fit, x)`.

Object stores
-------------
Data, weights, models, outputs, checkpoints and pictures may be URLs (`s3://bucket/points.zarr`; extra `cloud`).
`dsp.Rows(x, storage_options={"endpoint_url": ...})` applies to all URLs of its call, as do `storage_options=` of
`save`, `load` and other calls without rows, and `--storage-option endpoint_url=...` of a command. Credentials are read
from the environment or from these options.

Long runs and growing data
--------------------------
`fit(x, checkpoint="run.checkpoint")` saves the sums every 60 seconds; a stopped run resumes from them, with the same
bits. `update` sums only the rows appended since the fit, if the files of the others are unchanged (append whole
chunks); otherwise, and for arrays in memory or dask arrays, it sums all rows again. Principal components and other
linear functions of fewer rows than columns are an exception: they span these rows only, so `update` computes them from
all rows, and their moments cannot be added.

Fields of up to 2000 rows and more columns are summed over blocks of columns, as the Gram matrix of rows, in two passes.
Chunks of all times at some places (zarr, dask) are read directly; for other chunks all rows are held in memory. A
checkpoint starts after these two passes, which a stopped run repeats.

>>> import tempfile
>>> import zarr
>>> import daskspectral as dsp
>>> path = tempfile.mkdtemp() + "/points.zarr"
>>> dsp.datasets.write("uniform", path, 2000)
>>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 40)
>>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(path)
>>> shape = zarr.open_array(path).append(dsp.datasets.uniform(1000, seed=1))  # more rows
>>> est.update(path).moments_.count
3000
"""
