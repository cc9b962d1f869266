"""One page that shows a fitted model: `daskspectral report model.zarr points.zarr --out report.html`.

Reading the report
------------------
The page is one HTML file: pictures (SVG), tables and words, no scripts, no other files, light or dark as the reader's
system prefers. It can be mailed, archived beside the model, and printed.

Read it from the top:

1. **The head**: what was found and which values are not reliable, then numbers, then all warnings of the fit. A warning
   names a cause and a remedy: follow it before reading on. `repr` of a fitted estimator, a notebook and
   `daskspectral info` show the same.
2. **Spectrum**: the values, with 95 % intervals from the folds of the one pass. Filled dots are reliable: held-out
   values differ from them by less than a tenth, the intervals are narrower than 30 %, and half of the landmarks change
   them by no more than a tenth. Only they, and their functions, are results; hollow dots are an invitation to take
   more rows or landmarks, or fewer values. The intervals are of chance; they do not contain how well the basis suits
   the operator. A tick is the value on rows that were not fitted to: eigenvalues farther from 0 there, and singular
   values and variances nearer to it, are overfitted.
3. **Eigenfunctions** (of `Cross` the left and the right singular functions): over the rows of the points that the
   command is given, else over the landmarks. A line for one column; rows colored by the values for two; the two most
   telling columns for more; along time for trajectories and fields, whose patterns follow as maps in their own units. A
   function is determined up to its sign, and up to mixtures within a group of the spectrum's table.
4. **Choice**: the candidates of the automatic choice and their scores on rows held out. A flat top means that the
   choice hardly matters; a best candidate at the edge, that a better one may lie beyond.
5. **Provenance**: what was measured, the version, the parameters, the fingerprint by which sums are known to add, and
   the settings of the command that made the model.

Regressions show the error on rows left out by penalty, and the fitted function; invariant ones the share of each
eigenspace; embeddings the rows in their coordinates.

In Python
---------
>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> import daskspectral as dsp
>>> x = np.random.default_rng(0).uniform(0, np.pi, (2000, 1))
>>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
>>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
>>> with tempfile.TemporaryDirectory() as folder:
...     dsp.report.save(est, Path(folder) / "report.html", x)
...     text = (Path(folder) / "report.html").read_text(encoding="utf-8")
>>> text[:15], "<script" in text
('<!doctype html>', False)
"""

from daskspectral.report.page import refuse_report, render, save

__all__ = ["refuse_report", "render", "save"]
