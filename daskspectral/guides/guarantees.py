"""Guarantees: what holds for every run, and what raises a warning.

- **Identical results.** The same rows in the same chunks, with the same parameters, yield bitwise identical results on
  the same kind of processor, for any scheduler, number of workers and order of completion, with or without a restart;
  eigenvalues also require the same number of BLAS threads in the driving process (`OPENBLAS_NUM_THREADS`).
- **No partial output.** Outputs appear whole or not at all, with their settings, also at a URL: the metadata, without
  which the output cannot be loaded, are written last, and the next run removes what a killed run left. A store on a
  disk is written to a temporary place and then moved; a store that it replaces is moved to `.NAME.replaced` for that
  instant. Existing outputs are overwritten on request only (at a URL they are removed when writing begins), and a lock
  prevents two runs from writing to one place.
- **One version of the data.** Fits, updates, scores, and `transform` and `predict` with `out=` raise an error and write
  no output if a stored input changes during the run. An update sums only the new rows if the files of the others are
  unchanged by size, time or etag, and otherwise all rows; other data are rejected by their first rows. Lazy results
  and dask arrays of a user cannot be checked.
- **No credentials.** `storage_options` are never written to a file, model or log; a URL with a user part (except a
  container of abfs), a query or a fragment is rejected, and the command neither prints nor logs such parts.
- **The first invalid row.** NaN or infinity raises `InvalidRowError` with the number of the first such row, and with
  time and place for labeled data (for a lazy `transform`, the first that dask meets).
- **Missing chunks.** A missing chunk of a zarr array is an error, unless `dsp.Rows(x, allow_missing=True)` accepts fill
  values. `verify` lists arrays without checksums.
- **Errors before work.** Parameters, shapes and outputs are checked before the data are read.
- **Files execute no code.** A model names classes of daskspectral only; a class or function of a user is loaded if it
  is named, `dsp.load(path, trusted=["mymodule.MyKernel"])` or `--trust`, and `dsp.untrusted(path)` lists the names in
  a file. Data at a path or URL are read from regular files, by codecs that only compute; other codecs are rejected by
  name before a chunk is read, and so are HDF5 files with values in other files. `--config` uses only those settings of
  a result that change values; paths of input data are printed and must be passed again.
- **No silent regularization.** The default solution prefers smooth functions by a penalty chosen on held-out rows;
  reported values do not contain the penalty, and `solver=dsp.solvers.Truncated()` has no penalty. Directions that the
  data do not determine are omitted, and `rank_` counts the others; fewer eigenvalues than requested raise a
  `RankWarning`. A ridge is added on request only.
- **Unreliable results are flagged.** Every fit of at least 100 rows has 95 % intervals from the folds of its only pass,
  and values on held-out rows; a fit without them reports the reason. A `ReliabilityWarning` contains cause and remedy
  if half of the values are known to 20 % at best, more landmarks would change them, columns have very different units,
  the best scale is at the boundary of the search, rows are copies of others, or consecutive rows are correlated. The
  intervals describe sampling errors, and extend to the values of other candidates of the search: on 37 problems with
  known spectra they contain .94 of the exact values at 1000 and 10 000 rows, fewest if the functions are too few (a
  narrow gap) or tails are heavy (`examples/benchmarks/first_fit.py`; slow processes: `slow_dynamics.py`). The
  choice of a kernel is tested by comparison with others, as in the default search; a kernel that is given is not.
"""
