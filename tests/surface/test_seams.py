"""What only a test file defines works everywhere, or fails loudly: a mechanism, a kind of noise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

import juncture as jn
from juncture.cli.main import run as run_command
from juncture.errors import InvalidInput
from juncture.fit.misfit import find_misfits
from juncture.fit.solvers import EarlyStopping
from juncture.mechanisms import Assignment, Findings, Mechanism, Outline, registry
from juncture.privacy import Price, Pure, Request
from juncture.private import noise as samplers
from juncture.private.curator import Curator
from juncture.private.sources.source import CodedTable
from juncture.tables import noise as kinds
from juncture.tables.noise import Noise
from tables import Table, write_table

if TYPE_CHECKING:
    from juncture._util.watch import Watch
    from juncture.privacy.accounting import Cost, Neighbours
    from juncture.tables.queries.products import Operator

# A mechanism.


@dataclass(frozen=True)
class OneByOne(Mechanism):
    """Every column alone, for equal shares; a model of independent columns."""

    name: ClassVar[str] = "one-by-one"
    budget: jn.Budget

    def outline(self, assignment: Assignment) -> Outline:
        """Each column costs the same."""
        workload = assignment.workload
        price = self.budget.price.share(1 / len(workload.domain))

        def execute(curator: Curator, watch: Watch) -> Findings:
            requests = [Request((name,), price) for name in workload.domain]
            measurements = curator.measure_all(requests)
            fit = jn.estimate(curator.domain, measurements, watch=watch)
            return Findings(fit.model.project, fit.model, measurements, fit.summary)

        return Outline(
            costs=(price.cost,) * len(workload.domain),
            execute=execute,
            facts=(("columns", "each alone"),),
        )


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism is offered, until the test ends."""
    monkeypatch.setattr(registry, "_OFFERS", dict(registry._OFFERS))
    registry.register("one-by-one", OneByOne, "measures every column alone")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A small private table."""
    return write_table(tmp_path_factory.mktemp("seams"))


@pytest.mark.usefixtures("registered")
def test_a_mechanism_goes_through_the_command_line(
    table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`plan` shows it, `release` runs it, and the release says how its fit ended."""
    options = ["--schema", str(table.schema), "--epsilon", "3", "--mechanism", "one-by-one"]
    assert run_command(["plan", *options]) == 0
    shown = capsys.readouterr().out
    assert "Mechanism: one-by-one." in shown
    assert "each alone" in shown
    out, ledger = tmp_path / "out.jct", tmp_path / "ledger"
    files = ["--out", str(out), "--ledger", str(ledger)]
    assert run_command(["release", str(table.data), *options, *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mechanism"] == "one-by-one"
    made = jn.load(out)
    assert (made.mechanism, len(made.measurements)) == ("one-by-one", 3)
    assert made.fit is not None
    assert made.guarantee is not None
    assert made.guarantee.epsilon == pytest.approx(3.0)
    assert made.sql("SELECT COUNT(*) FROM t WHERE sex = 'f'").rows[0][0] > 50


def test_a_mechanism_goes_through_python(table: Table, tmp_path: Path) -> None:
    """As an object, registered or not; with another budget than the release it is refused."""
    budget = jn.Budget(rho=0.5)
    made = jn.release(
        table.data, table.schema, budget, ledger=tmp_path / "one", mechanism=OneByOne(budget)
    )
    assert made.mechanism == "one-by-one"
    with pytest.raises(InvalidInput, match="must have the budget of the release"):
        jn.release(
            table.data, table.schema, jn.Budget(rho=0.6), ledger=tmp_path / "two",
            mechanism=OneByOne(budget),
        )  # fmt: skip
    assert not (tmp_path / "two").exists()


def test_an_unknown_mechanism_is_refused_loudly(
    table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python and on the command line, with the names that there are; nothing is created."""
    ledger = tmp_path / "ledger"
    with pytest.raises(
        InvalidInput, match="must be one of hdmm, tiers, mwem, aim, mst, residual, privbayes, dual"
    ):
        jn.release(
            table.data, table.schema, jn.Budget(epsilon=1), ledger=ledger, mechanism="one-by-one"
        )
    options = ["--schema", str(table.schema), "--epsilon", "1", "--mechanism", "guess"]
    assert run_command(["plan", *options]) == 2
    assert "must be one of hdmm" in capsys.readouterr().err
    assert not ledger.exists()
    with pytest.raises(InvalidInput, match="no mechanism has yet"):
        registry.register("hdmm", OneByOne, "an impostor")


# A kind of noise.


class Uniform(Noise):
    """Evenly distributed over a range: bounded, so it protects only together with others."""

    name = "uniform"
    squared_loss = True
    kurtosis = 1.8

    def draw(self, rng: np.random.Generator, stddev: Any, n: int) -> Any:
        """See `Noise.draw`."""
        return rng.uniform(-1, 1, n) * np.asarray(stddev) * math.sqrt(3.0)

    def mean_absolute(self, stddev: float) -> float:
        """See `Noise.mean_absolute`."""
        return stddev * math.sqrt(3.0) / 2.0

    def stddev(self, scale: float) -> float:
        """See `Noise.stddev`."""
        return scale / math.sqrt(3.0)

    def discrete_stddev(self, scale: float) -> float:
        """See `Noise.discrete_stddev`."""
        return math.sqrt(((2 * math.floor(scale) + 1) ** 2 - 1) / 12.0)


UNIFORM = Uniform()


@dataclass(frozen=True, repr=False)
class UniformPrice(Price):
    """Buys uniform noise: a price for this test alone, with the costs of a pure one."""

    unit = "epsilon"
    noise = UNIFORM
    norm = 1

    @property
    def cost(self) -> Cost:
        """As a pure price."""
        return Pure(self.amount).cost

    @property
    def selection_cost(self) -> Cost:
        """As a pure price."""
        return Pure(self.amount).selection_cost

    @property
    def selection_epsilon(self) -> float:
        """As a pure price."""
        return self.amount

    def sensitivity(self, operator: Operator, neighbours: Neighbours) -> float:
        """As a pure price."""
        return Pure(self.amount).sensitivity(operator, neighbours)

    def scale(self, sensitivity: float) -> float:
        """Half the width of the range."""
        return 10.0 * sensitivity / self.amount


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind is registered, and so is its sampler, until the test ends."""
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    monkeypatch.setattr(samplers, "_ADDERS", dict(samplers._ADDERS))
    kinds.register_noise(UNIFORM)
    rng = np.random.default_rng(0)

    def add(values: Any, scale: float) -> Any:
        width = math.floor(scale)
        return values + rng.integers(-width, width + 1, len(values))

    samplers.register_sampler(UNIFORM, add)


SOURCE = CodedTable(jn.Domain({"a": 4, "b": 3}), {"a": [0, 1, 2, 3] * 50, "b": [0, 1, 2, 2] * 50})


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("loss", ["l2", "likelihood", "l1"])
def test_a_kind_of_noise_goes_all_the_way(tmp_path: Path, loss: str) -> None:
    """Through the curator, every loss, early stopping, the check of misfits, and a file."""
    ledger = jn.Ledger.create(tmp_path / "ledger", jn.Budget(epsilon=10))
    curator = Curator(SOURCE, ledger)
    measured = [curator.measure(c, UniformPrice(5.0)) for c in (("a",), ("a", "b"))]
    assert all(m.noise is UNIFORM for m in measured)
    assert float(measured[0].stddev) == pytest.approx(UNIFORM.discrete_stddev(2.0))
    assert [entry.mechanism for entry in ledger.events] == ["discrete uniform"] * 2
    fit = jn.estimate(curator.domain, measured, loss=loss)
    np.testing.assert_allclose(fit.model.one_way("a"), 50.0, atol=6.0)
    assert not find_misfits(fit.model, measured)
    stopped = jn.estimate(curator.domain, measured, solver=EarlyStopping())
    assert stopped.status is jn.Status.AT_NOISE
    made = jn.Release(model=fit.model, measurements=measured, guarantee=curator.guarantee)
    assert jn.load(made.save(tmp_path / "noise.jct")).measurements[0].noise is UNIFORM


def test_a_kind_that_is_not_registered_fails_loudly(tmp_path: Path) -> None:
    """Before anything is paid, measured or read; it never becomes another kind."""
    ledger = jn.Ledger.create(tmp_path / "ledger", jn.Budget(epsilon=10))
    curator = Curator(SOURCE, ledger)
    with pytest.raises(InvalidInput, match="noise that can be drawn exactly; got uniform"):
        curator.measure(("a",), UniformPrice(5.0))
    assert ledger.events == []
    for noise in ("uniform", UNIFORM):
        with pytest.raises(InvalidInput, match="`noise` must be one of gaussian, laplace"):
            jn.Measurement(("a",), [1.0] * 4, stddev=1.0, noise=noise)


@pytest.mark.usefixtures("known")
def test_a_file_with_an_unknown_kind_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has not registered the kind cannot open the file by mistake."""
    measured = [jn.Measurement(("a",), [50.0] * 4, stddev=1.0, noise=UNIFORM)]
    fit = jn.estimate(SOURCE.domain, measured)
    path = jn.Release(model=fit.model, measurements=measured).save(tmp_path / "noise.jct")
    monkeypatch.setattr(kinds, "_KINDS", {n: k for n, k in kinds._KINDS.items() if n != "uniform"})
    with pytest.raises(jn.UnreadableFile, match="`noise` must be one of gaussian, laplace"):
        jn.load(path)


def test_a_selection_for_another_notion_is_refused(tmp_path: Path) -> None:
    """No exact selection is known for a price of another kind."""
    from juncture.privacy import MarginalError  # noqa: PLC0415

    ledger = jn.Ledger.create(tmp_path / "ledger", jn.Budget(epsilon=10))
    with pytest.raises(InvalidInput, match="pure or zCDP for a selection"):
        Curator(SOURCE, ledger).select(MarginalError({("a",): [1.0] * 4}), UniformPrice(1.0))
