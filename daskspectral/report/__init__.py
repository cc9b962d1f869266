"""One page that shows a fitted model: `daskspectral report model.zarr points.zarr --out report.html`.

Reading the report
------------------
The page is one HTML file: pictures (SVG), tables and text, without scripts or other files, light or dark by the
reader's system. It can be mailed, archived with the model, and printed.

Read it from the top:

1. **Header**: result and unreliable values, then numbers, then all warnings of the fit. A warning names a cause and a
   remedy: follow it first. `repr` of a fitted estimator, a notebook and `daskspectral info` show the same.
2. **Spectrum**: values with 95 % intervals from the folds of the pass. Filled dots are reliable: validation values
   differ from them by less than 10 %, the intervals are narrower than 30 %, and half of the landmarks change them by
   at most 10 %. Only these, and their functions, are results; for hollow dots use more rows or landmarks, or fewer
   values. The intervals contain the sampling error, not the approximation error of the basis. A tick is the
   validation value: eigenvalues farther from 0 there, and singular values and variances nearer to it, are overfitted.
3. **Eigenfunctions** (of `Cross` the left and the right singular functions): over the points of the command, else
   over the landmarks. A line for one column; rows colored by the values for two; the two most informative columns for
   more; along time for trajectories and fields, with patterns as maps in the field's units. A function is determined
   up to its sign, and up to mixtures within a multiplet of the spectrum's table.
4. **Choice**: candidates of the automatic choice and their validation scores. A flat maximum means that the choice
   hardly matters; a maximum at the boundary, that a better candidate may lie beyond.
5. **Provenance**: data, version, parameters, the fingerprint that sums must share to be added, and the settings of
   the command.

Regressions show the validation error by penalty and the fitted function; invariant ones the share of each eigenspace;
embeddings the rows in their coordinates.

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
