"""Parameters of the package that are options of commands, by the class or function that has them."""

from daskspectral.cli.signatures import Parameters

SEED = {"random_state": 0}
ROWS = Parameters("data.rows:Rows", "sample_dims latitude anomaly detrend delays on_invalid allow_missing")
PREPARED = Parameters(ROWS.path, "columns standardize")
VALID = Parameters(ROWS.path, "on_invalid allow_missing")
COMPLETE = Parameters(ROWS.path, "allow_missing")

OPERATOR = Parameters("operators.names:parse", "text=operator", defaults={"text": "laplacian"})
TRANSFER = Parameters("operators.paired:Transfer", "lag", when="transfer")
LAPLACIAN = Parameters("operators.laplacian:Laplacian", "manifold density", when="laplacian")

LANDMARKS = Parameters(
    "basis.nystrom:Landmarks",
    "kernel n_landmarks=landmarks method=landmark-method n_candidates=landmark-sample periods",
)
FEATURES = Parameters(LANDMARKS.path, "jitter constant drop_landmark_rows=exclude-landmarks/--keep-landmarks")
COVERING = Parameters(
    LANDMARKS.path, "n_landmarks=landmarks method=landmark-method", defaults={"n_landmarks": None, "method": "cholesky"}
)
CANDIDATES = Parameters(LANDMARKS.path, "n_candidates=landmark-sample")
LATTICE = Parameters("basis.lattice:FourierBasis", "n_frequencies=lattice", when="in place of landmarks")
NETWORK = Parameters("basis.network:NeuralBasis", "hidden=network", when="in place of landmarks")

ESTIMATOR = "spectral.estimator:SpectralEstimator"
DECOMPOSITION = "spectral.decomposition:SpectralDecomposition"
REGULARIZED = Parameters("solvers:Regularized", "penalty", when="regularized")
TRUNCATED = Parameters("solvers:Truncated", "rtol ridge", when="truncated")
FOLDS = Parameters(DECOMPOSITION, "folds")
SPECTRAL = Parameters(DECOMPOSITION, "n_components=components dtype device random_state=seed", defaults=SEED)
WEIGHTS = Parameters(f"{ESTIMATOR}.fit", "sample_weight=weights")
SAVED = Parameters(f"{ESTIMATOR}.fit", "checkpoint checkpoint_every", kept=False)

CLUSTERS = Parameters(
    "spectral.clustering:SpectralClustering",
    "n_clusters=clusters n_centroids=centroids assign_labels random_state=seed",
    defaults=SEED,
)

HERMITE = "regression.hermite:HermiteRegressor"
RIDGE = Parameters(HERMITE, "alpha rtol dtype device random_state=seed", defaults=SEED)
INVARIANT = "invariance.regressor:InvariantRegressor"
GROUP = Parameters(INVARIANT, "manifold group")
INVARIANCE = Parameters(INVARIANT, "smoothness n_eigenfunctions=functions")
GROUP_SOLVER = Parameters(INVARIANT, "solver", defaults={"solver": "least-squares"})
LEAST_SQUARES = Parameters(INVARIANT, "alpha", when="least-squares")
TARGETS = Parameters(f"{HERMITE}.fit", "y=targets", when="regressor")
GRADIENTS = Parameters(f"{HERMITE}.fit", "gradients")
GRADIENT_WEIGHT = Parameters(HERMITE, "gradient_weight", when="gradients")

EMBEDDING = Parameters("embedding.sdp:SDPEmbedding", "bandwidth random_state=seed", defaults=SEED)
SDP = Parameters(EMBEDDING.path, "n_components=components method accuracy device", when="sdp")
ASCENT = Parameters("solvers:BurerMonteiro", "tolerance max_passes", when="sdp")
DIFFUSION = Parameters(
    "embedding.diffusion:DiffusionMap", "n_components=components method time alpha=density", when="diffusion"
)
LEARNED = Parameters(
    "embedding.kernelized:KernelEmbedding", "kernel regularization tolerance max_passes", when="kernel"
)

MAPS = {
    "sdp": (SDP, ASCENT, COVERING, CANDIDATES, PREPARED, SAVED),
    "diffusion": (DIFFUSION, COVERING),
    "kernel": (LEARNED,),
}
"""Parameters that some maps of `embed` read, by map."""

FAR = Parameters("passes.apply:RowFunction", "extrapolate", when="far rows")
PANELS = Parameters("plot.functions:eigenfunctions", "count=components", when="functions")
DRAWING = Parameters("datasets:draw", "name=NAME dimension noise dtype chunk_rows seed")
