"""Guarantees: what holds whatever happens, and what is warned of.

- **The same bits.** The same rows in the same chunks, with the same parameters, give the same bits on the same kind of
  processor, whatever the scheduler, the number of workers and the order in which they finish, with or without a stop;
  eigenvalues too, where the driving process has as many BLAS threads (`OPENBLAS_NUM_THREADS`).
- **Nothing half-written.** Outputs appear whole or not at all, with their settings, at a URL too: the metadata,
  without which nothing loads, are the last object there, and what a killed run left gives way to the next. A store on
  a disk is written next to its place, and takes it when it is whole; the one that it replaces is moved to
  `.NAME.replaced` for that instant. Nothing is overwritten unasked (a store that is replaced at a URL goes when the
  writing begins), and one run at a time writes to a place.
- **One version of the data.** Fits, updates, scores, and `transform` and `predict` with `out=` raise where a stored
  input changes meanwhile, and write nothing. An update sums the new rows only if the files behind the others are as
  they were, by size, time or etag, and otherwise all rows again; other data are refused by their first rows. Lazy
  results, and dask arrays of your own, cannot know.
- **No credentials.** `storage_options` are written to no file, model or log; a URL with a user part (but a container of
  abfs), a query or a fragment is refused, and the shell prints and logs none of these.
- **The lowest bad row.** NaN or infinity raises `InvalidRowError` with the number of the first such row, of labelled
  data with its time and place (of a lazy `transform`, which you compute, the first that dask meets).
- **Missing chunks.** A chunk missing from a zarr array is an error, unless `dsp.Rows(x, allow_missing=True)` says that
  fill values are meant. `verify` says which arrays have no checksums.
- **Errors before work.** Parameters, shapes and outputs are checked before the data are read.
- **Files execute nothing.** A model names classes of daskspectral only; a class or function of your own loads where
  you name it, `dsp.load(path, trusted=["mymodule.MyKernel"])` or `--trust`, and `dsp.untrusted(path)` lists what a
  file asks for. Data at a path or URL are read from regular files only, by codecs that only compute; any other is
  refused by name before a chunk is read, and so is an HDF5 file that takes values from other files. Of a result,
  `--config` takes what changes the values and nothing else: what was read is told, and given anew.
- **No silent mending.** The default solution prefers smooth functions by a penalty chosen on rows held out; the values
  that it reports carry no penalty, and `solver=dsp.solvers.Truncated()` has none. Directions that the data do not
  determine are left out, and `rank_` counts the others; fewer eigenvalues than asked for come with a `RankWarning`. No
  ridge is added unless you ask.
- **Doubts are told.** Every fit of 100 rows or more has 95 % intervals from the folds of its one pass, and values on
  rows that were not fitted to; a fit that has none says why. A `ReliabilityWarning` names cause and remedy where half
  of the values are known no better than to 20 %, more landmarks would change them, columns are of unlike units, the
  best scale was the last one tried, rows are copies of others, or rows that follow one another are alike. The intervals
  are of chance, and go down to what other candidates of the choice have: on 37 problems with known spectra they hold
  .94 of the exact values at 1000 and 10 000 rows, fewest where the functions are too few (a narrow gap) or tails are
  heavy (`examples/benchmarks/first_fit.py`; of slow processes `slow_dynamics.py`). How well the basis suits the
  operator is seen by comparing kernels, as the default does and a kernel that is given does not.
"""
