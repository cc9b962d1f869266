"""Fitting: results, input data, parameters, and other estimators.

Results
-------
>>> import numpy as np
>>> import daskspectral as dsp
>>> x = dsp.datasets.uniform(3000)
>>> est = dsp.SpectralDecomposition(n_components=4, random_state=0).fit(x)  # Laplacian; kernel and scale are chosen
>>> est.eigenvalues_.shape, est.transform(x).shape  # ascending; functions of unit L2 norm under the data
((4,), (3000, 4))

    repr(est)                           summary in one line; with a table in a notebook and in `daskspectral info`
    eigenvalue_errors_                  ends (k, 2) of 95 % intervals
    validation_values_                  values on held-out rows
    reliable_, multiplets_              whether a value is reliable; groups of values that cannot be distinguished
    search_results_                     candidates and scores; SpectralDecomposition(**est.search_results_.best_params)
                                        repeats the fit without the search
    transform(x), transform(x, out=)    functions at any rows; lazily, or chunk by chunk into a zarr group
    score(x)                            score on new rows, larger is better, for any kernel, scale and basis
    patterns_, to_xarray(x)             change of the columns with each function; all results with labels
    plan(x)                             tasks and memory before the fit
    moments_, fit_moments(moments)      sums, which can be saved, added (`a + b`) and solved without the data
    save(path), dsp.load(path)          a zarr group

`dsp.SpectralClustering(n_clusters)` finds clusters of any shape; scale the columns first:

    labels_, predict(x, out=)           labels of rows in memory; of any rows, lazily or in a zarr group
    n_clusters_, cut_                   number of clusters ("auto": a gap in eigenvalues_); normalized cut
    transform(x)                        eigenfunctions that separate the clusters

`dsp.EOF(n_components)` is for fields:

    explained_variance_ratio_           shares of the total variance
    pattern_errors_                     95 % intervals of the patterns
    rotated(m), significance()          varimax; modes above red noise (rule N), separate modes (North)
    to_xarray(x, details=)              components, scores, explained_variance, ... by mode, from 1, as in xeofs
    hilbert(x)                          complex components, for propagating patterns
    complex_modes(u + 1j * v)           components of complex rows, such as winds; no fit is required

`dsp.CCA(n_components)` and `dsp.MCA(n_components)` are for two fields, `fit(x, y)`; `transform(y, side="right")`
returns the scores of the second one, `to_xarray((x, y))` maps and scores of both. `dsp.plot.eof(model, 1)` draws a map.

`dsp.Koopman(lag=(1, 2, 5, 10))` is for trajectories. Rows with times (a coordinate of their dimension, the index of a
frame) are paired by time, so that no pair spans a gap; a lag such as "6h" is converted to rows, the unit of timescales:

    timescales_, dynamic_residuals_     at every lag, with intervals; distance of functions from eigenfunctions
    chapman_kolmogorov()                predictions of the first lag for the others, and measurements
    metastable_sets(m)                  PCCA+, with probabilities, rates, passage times, memberships(x), predict(x)
    first_passage(x, a, b)              committor(x) and passage_time(x); also for generators
    forecast(x, steps)                  mean of the columns later; forecast_score(x) on other rows
    equilibrium_weights(x)              weights for trajectories that do not start in equilibrium; both with intervals
                                        by `interval=True`

`fit` and these methods accept a list of trajectories; `transform` and similar methods then return a list.

`dsp.plot` draws results (`free_energy`, `eigenfunctions`, `timescales`, ...); `dsp.report` writes one page.

Input data
----------
A numpy array (also memory-mapped), a dask array, a `zarr.Array` or its path or URL, the path of a .npy file, a data
frame of pandas, polars or Arrow, or labeled data: an xarray DataArray or Dataset, a zarr group, NetCDF, Parquet or
CSV files. Convert a dask DataFrame by `frame.to_dask_array(lengths=True)`. `transform` returns numpy for numpy, xarray
with coordinates for labeled data (lazily if chunked), a lazy dask array for other data, and a frame after `set_output`.
Every estimator passes scikit-learn's checks: pipelines, `clone`, grid search over `basis__kernel__scale`, metadata
routing. `help(dsp.model_selection)` explains how to hold out blocks of a trajectory.

`dsp.Rows` describes how data are read and is accepted wherever data are (`help(dsp.Rows)`):

    Rows(x, columns=[0, 2], standardize=True)       some columns, with mean 0 and deviation 1, also for later rows
    Rows(frame, columns=["ash", "malt"])            columns by name, also matched by name in later rows
    Rows(x, on_invalid="skip")                      omit masked rows and rows with NaN or infinity; land first
    Rows(x, on_invalid="pairwise")                  EOF and CCA: covariances of the values that are present
    Rows(field, sample_dims=("time",))              rows are times, columns are all other dimensions
    Rows(field, sample_dims=("member", "time"))     an ensemble; no lag or fold crosses members
    Rows(field, latitude="lat")                     weights by the cosine of the latitude
    Rows(field, column_weights=areas)               weights of columns: an array, a DataArray, or by name
    Rows(field, anomaly="month", detrend=1)         subtract seasons and a trend, saved with the model
    Rows(x, delays=4)                               windows of rows: extended EOFs, Hankel DMD; patterns by `delay`
    Rows(x, fields={"potential": v})                further arrays that the operator needs, row by row
    Rows(x, allow_missing=True)                     read fill values for missing chunks of a zarr array

A CSV file (.csv, .tsv; the first line contains the names, an empty field is NaN) is parsed whole in one task. Convert
other files to arrays, or to zarr and Parquet, which tasks read in parallel (`da` is dask.array, `ds` pyarrow.dataset):

    x = np.load("x.npz")["x"]                       a .npz file
    x = pd.read_csv("n.csv", header=None)           CSV without names
    x = da.from_array(h5py.File("x.h5")["x"])       HDF5, read block by block, in this process only
    da.from_array(np.load("x.npy", mmap_mode="r"), chunks=(10_000, -1)).to_zarr("n.zarr")
    da.from_array(h5py.File("x.h5")["x"], chunks=(10_000, -1)).to_zarr("h.zarr")
    xr.open_dataset("x.nc", chunks={}).to_zarr("c.zarr")
    ds.write_dataset(ds.dataset("x.csv", format="csv"), "x.parquet", format="parquet")

In `fit(x, sample_weight=w)` a weight of 2 equals the row twice in all sums and penalties. Landmarks, kernel and penalty
are selected on samples and folds of the rows without weights: weights and repeated rows yield the same fit only if
landmarks, kernel and penalty are given.

Parameters
----------
The parameters of `SpectralDecomposition` that are changed most often:

    basis=Landmarks("gaussian:0.5", 300)            kernel, or `dsp.kernels.Gaussian(0.5)`, and number of landmarks;
                                                    parts omitted, or "auto" as in "matern:1.5:auto", are chosen
    basis=Landmarks(periods={0: 360.0})             a periodic column
    basis=DirichletBasis(Landmarks(), boundary)     functions that are 0 at the boundary of the data
    basis=FourierBasis()                            1 to 3 columns, any number of rows: some hundred times faster
                                                    (extra `lattice`); kernel and scale are chosen after the pass
    basis=FourierBasis(7, periods=(360.0, 360.0))   angles; TrigonometricBasis((360.0, 360.0), 7) for trajectories
    basis=NeuralBasis()                             many columns of which few matter: a network trained with the loss
                                                    of the operator (extra `neural`) and then used as a fixed basis
    basis="auto"                                    compare landmarks with a Fourier basis
    solver=Truncated()                              no penalty (`help(dsp.solvers)`)
    folds="blocks"                                  correlated rows: error bars from blocks of consecutive rows; the
                                                    default if rows have times as their coordinate or index
    folds="random"                                  independent rows in any order

Other estimators
----------------
>>> x, unit = x[:300], x[:300] / np.linalg.norm(x[:300], axis=1, keepdims=True)
>>> y, slopes = np.sin(x[:, 0]), np.column_stack([np.cos(x[:, 0]), 0 * x[:, 1]])
>>> h = dsp.HermiteRegressor(random_state=0).fit(x, y, gradients=slopes)  # kernel, scale, penalty: by cross-validation
>>> bool(np.isclose(h.intercept_, y.mean()))  # with an intercept: y + b has predictions + b
True
>>> h.predict(x).shape, h.predict_gradient(x).shape, h.cv_score_ > 0.99  # R² on held-out rows
((300,), (300, 2), True)
>>> sdp = dsp.SDPEmbedding(random_state=0).fit(x)  # the bandwidth is chosen: sdp.bandwidth_
>>> sdp.certificate_.optimal, sdp.embedding_.shape[1] == sdp.rank_
(True, True)
>>> circle, group = dsp.manifolds.Sphere(2), dsp.groups.Permutations(2)
>>> f = dsp.InvariantRegressor(circle, group).fit(unit, unit.prod(axis=1))  # levels and penalty are chosen
>>> f.cv_score_ > 0.99, dsp.InvariantFeatures(circle, group).fit_transform(unit).shape[0]
(True, 300)

When to use other tools
-----------------------
Memory does not grow with the number of rows. If the basis contains the eigenfunctions, the error decreases as n^(-1/2)
in any dimension. Results are functions, with values at new points, intervals and validation values. A curved manifold
needs no description: landmarks moved off the data remove most of the bias. A few hundred rows are enough.

Other tools are better on a domain with a mesh (finite elements are far more accurate), for round clusters (k-means),
and for features learned by a network from trajectories in memory (deeptime). A graph Laplacian
(`sklearn.manifold.SpectralEmbedding`) is as accurate for a few thousand points in two or three dimensions. Error bars
are too narrow if heavy tails leave a few rows far out or a given kernel is too wide; not every such fit warns.
"""
