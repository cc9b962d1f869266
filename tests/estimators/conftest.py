import pytest

import daskspectral as dsp
from tests.estimators.common import X, make


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make().fit(X)
