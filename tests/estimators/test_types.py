"""Types of fitted attributes: mypy reports a mistyped one, or else that its "type: ignore" is not needed."""

import pytest

import daskspectral as dsp


def test_mistyped_attributes_are_errors_for_mypy_and_at_run_time() -> None:
    clustering, eof, koopman = dsp.SpectralClustering(2), dsp.EOF(2), dsp.Koopman(lag=1)
    regressor, embedding, diffusion = dsp.HermiteRegressor(), dsp.SDPEmbedding(), dsp.DiffusionMap()
    with pytest.raises(AttributeError):
        _ = dsp.SpectralDecomposition().eigenvalue_  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = clustering.label_  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = eof.explained_variance_ratios_  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = koopman.timescale_  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = regressor.coefs_  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = embedding.certificate  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = diffusion.spectra_  # type: ignore[attr-defined]
