"""The words that options take, spelled out, so that no help text loads what they stand for; a test compares them."""

LANDMARKS = ("uniform", "kmeans++", "cholesky", "farthest", "leverage")
BANDWIDTHS = ("auto", "median", "local")
EMBEDDINGS = ("auto", "exact", "sparse", "lowrank")
UNCOVERED = ("nearest", "nan", "raise")
INVARIANT_SOLVERS = ("least-squares", "projection")
SAMPLES = (
    *("two-moons", "sphere", "circle", "gaussian", "torus", "torus-surface", "swiss-roll", "uniform", "ou"),
    *("langevin", "torsions", "blobs", "double-well"),
)
OPERATORS = (
    *("laplacian", "covariance", "schroedinger", "anisotropic[:factored]", "tangent", "differential[:solver]"),
    *("partial:axis[:solver]", "generator[:reversible]", "transfer[:lag[:solver]]", "cross[:center]", "augmentation"),
)
PICTURES = ("functions", "spectrum", "choice")
PLANNED = ("fit", "regress", "invariant")
