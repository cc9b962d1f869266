"""One page that shows a fitted model: `daskspectral report model.zarr points.zarr --out report.html`.

Reading the report
------------------
The page is one HTML file of pictures (SVG), tables and text, without scripts or other files.

1. **Header**: result, unreliable values, numbers, and all warnings of the fit, each with its cause and a remedy: follow
   the first one first.
2. **Spectrum**: values with 95 % intervals, which contain the sampling error, not the approximation error of the basis.
   Filled dots are reliable: validation values differ from them by less than 10 %, the intervals are narrower than 30 %,
   and half of the landmarks change them by at most 10 %. Only these, and their functions, are results; for hollow dots
   use more rows or landmarks, or fewer values. A tick is the validation value: eigenvalues farther from 0 there, and
   singular values and variances nearer to it, are overfitted.
3. **Eigenfunctions**: over the points of the command, else over the landmarks, or along time for trajectories and
   fields. A function is determined up to its sign, and up to mixtures within a multiplet.
4. **Choice**: candidates and their validation scores. A flat maximum means that the choice hardly matters; a maximum
   at the boundary, that a better candidate may lie beyond.
5. **Provenance**: data, version, parameters, the fingerprint that sums must share to be added, and settings.

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
