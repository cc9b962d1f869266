"""An operator, a kernel, a basis, a kind of basis, a solver and an estimator of a user's own, saved with the models."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.cli import main
from daskspectral.moments.attributes import Attributes
from tests.common import unreliable

X = np.random.default_rng(0).uniform(0, np.pi, (2000, 1))
NORMAL = np.random.default_rng(1).standard_normal((600, 4))
SMALL: dict[str, Any] = {"n_components": 4, "random_state": 0}
BELLS = Landmarks(dsp.kernels.Gaussian(1.0), 25)


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Any]]:
    """A module with this name and text, which a user wrote."""
    names = []

    def write(name: str, text: str) -> Any:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        names.append(name)
        return importlib.import_module(name)

    yield write
    for name in names:
        sys.modules.pop(name, None)
    gc.collect()  # classes that register themselves are no longer among their family


def saved_and_described(model: Any, path: Path, capsys: pytest.CaptureFixture[str], name: str) -> tuple[Any, str]:
    """The model saved, loaded with trust, and what `daskspectral info` says of it; without trust neither does."""
    dsp.save(model, path)
    assert dsp.untrusted(path) == [name]
    with pytest.raises(dsp.UntrustedError):
        dsp.load(path)
    main(["info", "--details", str(path), "--trust", name])
    return dsp.load(path, trusted=[name]), capsys.readouterr().out


MINE = """
from dataclasses import dataclass, field
import numpy as np
from daskspectral.basis import Basis, Evaluation
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.errors import SmoothnessError
from daskspectral.estimators.base import Estimator
from daskspectral.forms import form, grad, inner
from daskspectral.kernels import DISTANCE, ProfileKernel
from daskspectral.operators import Operator
from daskspectral.solve import Problem, Solution, whiten

@dataclass(frozen=True)
class Twice(Operator):
    factor: float = 2.0
    name: str = field(default="twice", init=False, repr=False)
    form = property(lambda self: form(lambda f, g, x: self.factor * inner(grad(f), grad(g))))

@dataclass(frozen=True)
class Cosines(Basis):
    count: int = 6

    size = property(lambda self: self.count)
    dimension = property(lambda self: 1)
    order = property(lambda self: 1)
    description = property(lambda self: f"{self.count} cosines")
    holds_constant = property(lambda self: True)

    def at(self, block, atoms):
        return Waves(block, np.arange(self.count)[:, None])

class Waves(Evaluation):
    def __init__(self, block, k):
        self.block, self.k = block, k

    def feature(self, atom):
        if atom.order > 1:
            raise SmoothnessError(f"these cosines have first derivatives, not {atom}")
        x, scale = self.block.x[:, 0], 1.0 if self.block.scale is None else self.block.scale
        values = scale * (-self.k * np.sin(self.k * x) if atom.order else np.cos(self.k * x))
        if atom.kind == "along":
            values = values * self.block.field(atom.direction)[:, 0]
        return values.astype(self.block.dtype)

@dataclass(frozen=True, repr=False)
class Rates(Problem):
    name = "rates"
    value = "rate"

    def solve(self, problem):
        w, k = whiten(problem.gram, 1e-8).matrix, problem.count
        values, vectors = np.linalg.eigh(w.T @ problem.form @ w)
        modes = w @ vectors[:, :k]
        return Solution(values[:k], modes, modes, w.shape[1], np.zeros(k), "found by a plain eigh")

class Largest(Estimator):
    _fitted_attributes = ("largest_", "n_features_in_")

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y=None):
        source = open_source(X)
        found = Run(source, plan_rows(source, 10.0)).map(self._norms)
        self.largest_, self.n_features_in_ = float(found.max()), source.n_features_in
        return self

    def _norms(self, batch, state=None):
        return np.linalg.norm(batch["x"], axis=1) ** self.power

class Bell(ProfileKernel):  # no dataclass
    geometry = DISTANCE
    smoothness = float("inf")

    def __init__(self, rate=0.5):
        self.rate = rate

    def profile(self, s, order, out):
        np.exp(-self.rate * s, out=out)
        out *= (-self.rate) ** order
        return out
"""


@pytest.mark.slow
def test_each_is_used_saved_and_described(added: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = added("mine", MINE)
    dsp.testing.check_basis(mine.Cosines())
    stiffness = dsp.forms.form(lambda f, g, x: dsp.forms.inner(dsp.forms.grad(f), dsp.forms.grad(g)))
    rates = dsp.operators.BilinearForm(stiffness, "rates")  # asked for by its name
    for name, operator, basis, values, told in (
        ("Twice", mine.Twice(), BELLS, [0, 2, 8], "Twice(factor=2.0)"),
        ("Cosines", None, mine.Cosines(), [0, 1, 4], "6 cosines: 6 functions of 1 variables"),
        ("Rates", rates, BELLS, [0, 1, 4], "found by a plain eigh"),
        ("Bell", None, Landmarks(mine.Bell(0.7), 25), [0, 1, 4], "Bell"),
    ):
        model = dsp.SpectralDecomposition(operator, basis, **SMALL).fit(X)
        np.testing.assert_allclose(getattr(model, Attributes(model.solver_).values)[:3], values, rtol=0.1, atol=1e-6)
        assert hasattr(model, "eigenvalues_") != (name == "Rates")
        again, text = saved_and_described(model, tmp_path / name, capsys, f"mine.{name}")
        np.testing.assert_array_equal(again.transform(X[:9]), model.transform(X[:9]))
        assert (again.moments_ + model.moments_).count == 2 * model.moments_.count
        assert told in text
    assert clone(model).set_params(basis__kernel__rate=2.0).basis.kernel.rate == 2.0  # Bell is no dataclass
    assert mine.Bell(0.7) != mine.Bell(0.6)
    model = mine.Largest(power=2.0).fit(X)
    assert model.largest_ == pytest.approx(float(X.max()) ** 2)
    again, text = saved_and_described(model, tmp_path / "largest", capsys, "mine.Largest")
    assert (again.largest_, again.power) == (model.largest_, 2.0)
    assert "Largest(power=2.0)" in text


KIND = """
from daskspectral.basis import MonomialBasis
from daskspectral.choosing.search import CandidateFamily, CandidateBasis

class Monomials(CandidateFamily):
    name, ahead = "monomials", 1.0

    def best(self, search, splits, periods, rng):
        dimension = search.pilot.points("x").shape[1]
        return CandidateBasis.of(MonomialBasis(dimension, 2), search, splits, "monomials to degree 2")
"""


@pytest.mark.slow
@unreliable
def test_a_kind_of_basis(added: Any) -> None:
    before = dsp.SpectralDecomposition(basis="auto", **SMALL).fit(NORMAL)
    added("my_kind", KIND)
    model = dsp.SpectralDecomposition(basis="auto", **SMALL).fit(NORMAL)
    assert isinstance(model.basis_, dsp.basis.MonomialBasis), model.search_results_
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1, 1], atol=0.2)
    assert not isinstance(before.basis_, dsp.basis.MonomialBasis)
