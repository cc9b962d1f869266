"""Fitting: what a fit gives, what data it takes, and what may be told to it.

What it gives
-------------
>>> import numpy as np
>>> import daskspectral as dsp
>>> x = dsp.datasets.uniform(3000)
>>> est = dsp.SpectralDecomposition(n_components=4, random_state=0).fit(x)  # of the Laplacian; all else is chosen
>>> est.eigenvalues_.shape, est.transform(x).shape  # ascending; functions of unit L2 norm under the data
((4,), (3000, 4))

    repr(est)                          the verdict in one line; in a notebook, and `daskspectral info`, with the table
    eigenvalue_errors_, validation_values_      ends of 95 % intervals (k, 2); values on rows that were not fitted to
    reliable_, multiplets_                  whether each value holds up; which ones the data cannot tell apart
    search_results_                            the candidates and their scores:
    SpectralDecomposition(**est.search_results_.best_params)
                                       fits the same and chooses no more
    transform(x), transform(x, out=)   functions at any rows; lazily, or chunk by chunk into a zarr group
    score(x)                           how good the functions are on new rows: larger is better, across kernels, scales
                                       and bases; what `cross_val_score` and `GridSearchCV` maximise
    patterns_, to_xarray(x)            what the columns do where a function is large; all results with their labels
    plan(x)                            tasks and memory before the fit
    moments_, fit_moments(moments)     the sums: saved, added (`a + b`, of one basis) and solved again without the data
    save(path), dsp.load(path)         a zarr group

`dsp.SpectralClustering(n_clusters)` divides rows into clusters of any shape; scale the columns first:

    labels_, predict(x, out=)          clusters of rows in memory; of any rows, lazily or into a zarr group
    n_clusters_, cut_                  "auto" looks for a clear gap in eigenvalues_; the normalized cut
    transform(x)                       the eigenfunctions by which rows are divided

`dsp.EOF(n_components)` is of fields:

    explained_variance_ratio_          shares of the variance of all columns
    pattern_errors_                    95 % intervals of the patterns
    rotated(m), significance()         varimax; which modes rise above red noise (rule N), which are separate (North)
    to_xarray(x, details=)             components, scores, explained_variance, ... along mode, from 1, as xeofs has them
    hilbert(x)                         complex components, of what propagates

`dsp.CCA(n_components)` and `dsp.MCA(n_components)` are of two fields, `fit(x, y)`; `transform(y, side="right")` returns
the scores of the second one, and `to_xarray((x, y))` maps and scores of both. `dsp.plot.eof(model, 1)` draws a map.

`dsp.Koopman(lag=(1, 2, 5, 10))` is of trajectories. Rows with times (a coordinate of their dimension, the index of a
frame) are paired by them, so that no pair spans a gap; a lag such as "6h" is converted to rows, the unit of timescales:

    timescales_, dynamic_residuals_    at every lag, with intervals; how far functions are from eigenfunctions
    chapman_kolmogorov()               what the first lag predicts at the others, and what is measured
    metastable_sets(m)                 PCCA+, with probabilities, rates, passage times, memberships(x), predict(x)
    first_passage(x, a, b)             with committor(x), passage_time(x): at any lag; both of generators, too
    forecast(x, steps)                 the mean of the columns later, with forecast_score(x) on other rows
    equilibrium_weights(x)             of trajectories that do not start in equilibrium; interval=True for their ends

All of them accept a list of trajectories, of which `transform` and the like return a list.

`dsp.plot` draws it (`free_energy`, `eigenfunctions`, `timescales`, ...), and `dsp.report` puts it on one page.

What it takes
-------------
A numpy array (also memory-mapped), a dask array, a `zarr.Array` or its path or URL, the path of a .npy file, a data
frame of pandas, polars or Arrow, or data with labels: an xarray DataArray or Dataset, a zarr group, NetCDF, Parquet or
CSV files. A dask DataFrame goes in as `frame.to_dask_array(lengths=True)`. `transform` gives numpy for numpy, xarray
with the rows' coordinates and the eigenvalues for labels (lazily if chunked), a lazy dask array for the rest, and a
frame if `set_output` asks for it.
Every estimator passes scikit-learn's checks: pipelines, `clone`, grid search over `basis__kernel__scale`, metadata
routing. `help(dsp.model_selection)` tells how to hold out blocks of a trajectory.

`dsp.Rows` says how data are read and goes wherever data do (`help(dsp.Rows)`):

    Rows(x, columns=[0, 2], standardize=True)       some columns, brought to mean 0 and deviation 1; later rows alike
    Rows(frame, columns=["ash", "malt"])            by name, which later rows are matched by too, in any container
    Rows(x, on_invalid="skip")                      leave out rows with NaN or infinity, and masked ones; land first
    Rows(x, on_invalid="pairwise")                  of EOF and CCA: covariances of what is present
    Rows(field, sample_dims=("time",))              rows are the times, columns all other dimensions
    Rows(field, latitude="lat")                     weigh by the cosine of the latitude
    Rows(field, anomaly="month", detrend=1)         subtract seasons and a trend, kept with the model
    Rows(x, fields={"potential": v})                further arrays, row by row, that the operator reads
    Rows(x, allow_missing=True)                     read fill values where a chunk of a zarr array is missing

A CSV file (.csv, .tsv; its first line names the columns, an empty field is NaN) is parsed whole in one task. Other
files become arrays, or zarr and Parquet, which many tasks read at once (`da` is dask.array, `ds` pyarrow.dataset):

    x = np.load("x.npz")["x"]                       a .npz file
    x = pd.read_csv("n.csv", header=None)           CSV without names
    x = da.from_array(h5py.File("x.h5")["x"])       HDF5, read block by block, in this process alone
    da.from_array(np.load("x.npy", mmap_mode="r"), chunks=(10_000, -1)).to_zarr("n.zarr")
    da.from_array(h5py.File("x.h5")["x"], chunks=(10_000, -1)).to_zarr("h.zarr")
    xr.open_dataset("x.nc", chunks={}).to_zarr("c.zarr")
    ds.write_dataset(ds.dataset("x.csv", format="csv"), "x.parquet", format="parquet")

In `fit(x, sample_weight=w)` weight 2 is the row twice in all sums, and in the penalties that shrink with the number of
rows. What is chosen by default (landmarks, kernel, penalty) is chosen from draws and folds of the rows as they are
given, whatever the unit of the weights: weights and repeated rows have the same fit where these are given.

What may be told
----------------
The parameters of `SpectralDecomposition` that are changed most often:

    basis=Landmarks("gaussian:0.5", 300)            kernel, or `dsp.kernels.Gaussian(0.5)`, and number; what is left
                                                    out, or "auto" as in "matern:1.5:auto", is chosen
    basis=Landmarks(periods={0: 360.0})             a periodic column
    basis=DirichletBasis(Landmarks(), boundary)     functions that are 0 at the boundary of the data
    basis=FourierBasis()                          1 to 3 columns, any number of rows: modes in place of matrices,
                                                    some hundred times faster (extra `lattice` for the speed); kernel
                                                    and scale are chosen after the pass
    basis=FourierBasis(7, periods=(360.0, 360.0)) angles; TrigonometricBasis((360.0, 360.0), 7) of trajectories
    basis=NeuralBasis()                             many columns of which few matter: a network trained by the
                                                    operator's own loss (extra `neural`), frozen, and solved over all
                                                    rows as any other basis; a model runs without jax
    basis="auto"                                    compare landmarks with a lattice
    solver=Truncated()                                    no penalty (`help(dsp.solvers)`)
    folds="blocks"                                  rows that follow one another: error bars from blocks of them, as
                                                    rows with times as their coordinate or index have by themselves
    folds="random"                                  rows that are independent, in whatever order

Other estimators
----------------
>>> x, unit = x[:300], x[:300] / np.linalg.norm(x[:300], axis=1, keepdims=True)
>>> y, slopes = np.sin(x[:, 0]), np.column_stack([np.cos(x[:, 0]), 0 * x[:, 1]])
>>> h = dsp.HermiteRegressor(random_state=0).fit(x, y, gradients=slopes)  # kernel, scale, penalty: by cross-validation
>>> bool(np.isclose(h.intercept_, y.mean()))  # with an intercept: y + b has predictions + b
True
>>> h.predict(x).shape, h.predict_gradient(x).shape, h.cv_score_ > 0.99  # R² on rows left out
((300,), (300, 2), True)
>>> sdp = dsp.SDPEmbedding(random_state=0).fit(x)  # the bandwidth is chosen: sdp.bandwidth_
>>> sdp.certificate_.optimal, sdp.embedding_.shape[1] == sdp.rank_
(True, True)
>>> circle, group = dsp.manifolds.Sphere(2), dsp.groups.Permutations(2)
>>> f = dsp.InvariantRegressor(circle, group).fit(unit, unit.prod(axis=1))  # levels and penalty are chosen
>>> f.cv_score_ > 0.99, dsp.InvariantFeatures(circle, group).fit_transform(unit).shape[0]
(True, 300)

When to use something else
--------------------------
Memory does not grow with the rows; where the basis holds the eigenfunctions, the error falls as n^(-1/2) in any
dimension. Results are functions, with values at new points, intervals, held-out values and warnings. Rows on a curved
manifold need no description of it: landmarks moved off the data take most of the bias away. It works from a few hundred
rows on.

Other tools serve better on a domain with a mesh (finite elements are far more accurate), for clusters alone (k-means),
and for features learned by a network from trajectories in memory (deeptime). A graph Laplacian
(`sklearn.manifold.SpectralEmbedding`) is as accurate for a few thousand points in two or three dimensions. Where heavy
tails leave a few rows far out, or a given kernel is too wide, the error bars are too narrow, and not every such fit
warns.
"""
