"""Every mechanism in every form spends what it says, learns with budget, and can be repeated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chain_table import DOMAIN, ONE, WORKLOAD, table
from juncture.engine.particles import Particles
from juncture.engine.plan import Plan
from juncture.errors import BudgetExceeded, InvalidInput
from juncture.mechanisms.aim import AIM
from juncture.mechanisms.baselines import Direct, Division, Independent
from juncture.mechanisms.hdmm import HDMM, Estimation, Template
from juncture.mechanisms.mst import MST
from juncture.mechanisms.mwem import MWEM, Selection, Update
from juncture.mechanisms.privbayes import PrivBayes
from juncture.mechanisms.residual_planner import (
    Balance,
    ResidualPlanner,
)
from juncture.mechanisms.strategy import Shares
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.dependence import Dependence
from juncture.privacy.ledger import Ledger
from juncture.private.curator import Curator
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.workload import Workload, workload_error


@dataclass(frozen=True)
class Form:
    """A mechanism in one form, and the least error that it is held to with a huge budget."""

    name: str
    mechanism: Any
    best: float
    neighbours: tuple[Neighbours, ...] = RECORD_NEIGHBOURS


REPLACE = (Neighbours.REPLACE,)
LOCAL = Estimation.LOCAL
FEW = Particles(n_records=20_000)
FORMS = [
    Form("hdmm, model", HDMM(ONE), 0.01),
    Form("hdmm, local", HDMM(ONE, estimation=LOCAL), 1e-6),
    Form("hdmm, full", HDMM(ONE, estimation=Estimation.FULL), 1e-6),
    Form("hdmm, model, unequal shares", HDMM(ONE, shares=Shares.TOTAL), 0.01),
    Form("hdmm, local, relative shares", HDMM(ONE, shares=Shares.RELATIVE, estimation=LOCAL), 1e-6),
    Form("hdmm, marginals, model", HDMM(ONE, template=Template.MARGINALS), 0.01),
    Form("hdmm, marginals, local", HDMM(ONE, template=Template.MARGINALS, estimation=LOCAL), 1e-6),
    Form("hdmm, best, local", HDMM(ONE, template=Template.BEST, estimation=LOCAL), 1e-6),
    Form("mwem, model", MWEM(ONE, rounds=8), 0.02),
    Form(
        "mwem, model, queries", MWEM(ONE, rounds=10, selection=Selection.QUERY, max_steps=200), 0.2
    ),
    Form("mwem, factored", MWEM(ONE, rounds=8, update=Update.FACTORED, passes=400), 0.06),
    Form("mwem, full", MWEM(ONE, rounds=8, update=Update.FULL, passes=400), 0.06),
    Form("aim", AIM(ONE), 0.02),
    Form("tiers", Tiers(ONE), 0.02),
    Form("tiers, records", Tiers(ONE, oracle=FEW), 0.03),
    Form("mst", MST(ONE), 0.05),
    Form("residual", ResidualPlanner(ONE), 0.01),
    Form("residual, marginals", ResidualPlanner(ONE, balance=Balance.MARGINALS), 0.01),
    Form("direct", Direct(ONE), 0.01),
    Form("direct, by cells", Direct(ONE, division=Division.CELLS), 0.01),
    Form("independent", Independent(ONE), 0.5),
    Form("privbayes, model", PrivBayes(ONE), 0.05, REPLACE),
    Form(
        "privbayes, mutual information",
        PrivBayes(ONE, dependence=Dependence.INFORMATION),
        0.05,
        REPLACE,
    ),
    Form("hdmm, records", HDMM(ONE, oracle=FEW), 0.02),
    Form("mwem, records", MWEM(ONE, rounds=8, oracle=FEW), 0.03),
    Form("privbayes, records", PrivBayes(ONE, oracle=FEW), 0.05, REPLACE),
    Form("privbayes, local", PrivBayes(ONE, estimation=LOCAL, rng=0), 0.05, REPLACE),
]
FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


def truth(source: CodedTable) -> list[np.ndarray]:
    """The true answers."""
    tables = source.exact_counts(WORKLOAD.cliques)
    pairs = zip(WORKLOAD.tasks, tables, strict=True)
    return [task.operator(DOMAIN).apply(found.values) for task, found in pairs]


def ran(
    form: Form, path: Path, price: dict[str, float], neighbours: Neighbours, seed: int = 0
) -> tuple[Any, Ledger]:
    """A simulated run with exactly the budget that it asks for."""
    ledger = Ledger.create(path, Budget(**price), neighbours)
    curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(seed))
    return replace(form.mechanism, budget=Budget(**price)).run(curator, WORKLOAD), ledger


@pytest.mark.slow
@FORM
@pytest.mark.parametrize("price", [{"epsilon": 1.0}, {"rho": 0.1}], ids=["epsilon", "rho"])
def test_the_budget_spent_is_the_budget_claimed(
    form: Form, price: dict[str, float], tmp_path: Path
) -> None:
    """To the last digit, and all of it is in the outcome's own list of events."""
    for neighbours in form.neighbours:
        outcome, ledger = ran(form, tmp_path / str(neighbours), price, neighbours)
        (whole,) = price.values()
        assert ledger.spent == pytest.approx(whole, rel=1e-9)
        assert list(outcome.guarantee.events) == [event.publish() for event in ledger.events]
        assert len(outcome.answers(WORKLOAD)) == len(WORKLOAD.tasks)


@pytest.mark.slow
@FORM
def test_more_budget_means_less_error(form: Form, tmp_path: Path) -> None:
    """With a huge budget the workload's error goes to (nearly) nothing."""
    outcome, _ = ran(form, tmp_path / "huge", {"epsilon": 1e7}, Neighbours.REPLACE)
    assert workload_error(truth(table()), outcome.answers(WORKLOAD)) <= form.best


@pytest.mark.slow
@FORM
def test_simulated_runs_can_be_repeated(form: Form, tmp_path: Path) -> None:
    """The same seed gives the same answers to the bit; another one others."""
    price = {"epsilon": 0.5}
    first, same, other = (
        ran(form, tmp_path / str(i), price, Neighbours.REPLACE, seed)[0].answers(WORKLOAD)
        for i, seed in enumerate((1, 1, 2))
    )
    assert all((a == b).all() for a, b in zip(first, same, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))


@FORM
def test_releases_run_through_the_real_curator(form: Form, tmp_path: Path) -> None:
    """With exact noise; and a budget that is too small is refused."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), Neighbours.REPLACE)
    small = replace(form.mechanism, budget=ONE)
    if isinstance(small, MWEM):
        small = replace(small, rounds=2)
    outcome = small.run(Curator(table(200), ledger), WORKLOAD)
    assert all(np.isfinite(answer).all() for answer in outcome.answers(WORKLOAD))
    if outcome.model is None:
        with pytest.raises(InvalidInput, match="must have a model"):
            outcome.release()
    else:
        assert outcome.release().measurements == outcome.measurements
    with pytest.raises(BudgetExceeded):
        small.run(Curator(table(200), ledger), WORKLOAD)


@FORM
def test_nonsense_is_refused(form: Form, tmp_path: Path) -> None:
    """No workload, or one of another table."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), Neighbours.REPLACE)
    curator = SimulatedCurator(table(50), ledger, rng=np.random.default_rng(0))
    other = Workload.all_marginals(Domain({"a": 4, "b": 3}), 2)
    for workload in (other, Workload(DOMAIN, ())):
        with pytest.raises(InvalidInput):
            form.mechanism.run(curator, workload)
    assert ledger.events == []


@FORM
def test_the_smallest_tables(form: Form, tmp_path: Path) -> None:
    """One record, and an attribute with one value, are no obstacle."""
    domain = Domain({"a": 2, "one": 1, "b": 2})
    source = CodedTable(domain, {"a": [1], "one": [0], "b": [0]})
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), Neighbours.REPLACE)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    workload = Workload.all_marginals(domain, 2)
    mechanism = replace(form.mechanism, budget=ONE)
    if isinstance(mechanism, MWEM):
        mechanism = replace(mechanism, rounds=2)
    answers = mechanism.run(curator, workload).answers(workload)
    assert all(np.isfinite(answer).all() for answer in answers)


def test_only_the_curator_touches_the_data() -> None:
    """Mechanisms import no source."""
    import juncture.mechanisms as package  # noqa: PLC0415

    for path in Path(str(package.__file__)).parent.glob("*.py"):
        assert "juncture.private.sources" not in path.read_text()


class _Spy(CodedTable):
    """Notes what it is asked."""

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """Count, and remember."""
        asked = list(cliques)
        self.asked = [*getattr(self, "asked", []), *asked]
        return super().exact_counts(asked)


def test_nothing_is_read_before_it_is_paid_for(tmp_path: Path) -> None:
    """A run that cannot pay reads no count at all."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1e-6), Neighbours.REPLACE)
    zeros = np.zeros(10, dtype=int)
    for form in FORMS:
        spy = _Spy(DOMAIN, dict.fromkeys(DOMAIN, zeros))
        curator = SimulatedCurator(spy, ledger, rng=np.random.default_rng(0))
        with pytest.raises(BudgetExceeded):
            replace(form.mechanism, budget=ONE).run(curator, WORKLOAD)
        assert not hasattr(spy, "asked")


@pytest.mark.parametrize("oracle", ["auto", FEW])
def test_records_lift_the_limit_on_the_tree(oracle: Any, tmp_path: Path) -> None:
    """What the exact model must leave out for its size is chosen with the other oracles."""
    chosen = {}
    for name, each in {"exact": "exact", "other": oracle}.items():
        mechanism = MWEM(ONE, rounds=8, max_model_cells=45, oracle=each)
        outcome, _ = ran(Form("", mechanism, 0.0), tmp_path / name, {"epsilon": 1e4}, REPLACE[0])
        cliques = {measurement.clique for measurement in outcome.measurements}
        chosen[name] = Plan.build(DOMAIN, cliques).cells
        assert outcome.model.plan.has_tree is (each is not FEW)
    assert chosen["exact"] <= 45 < chosen["other"]


@pytest.mark.parametrize("oracle", ["auto", FEW])
def test_parents_are_kept_without_a_limit_on_the_tree(oracle: Any, tmp_path: Path) -> None:
    """PrivBayes drops parents of a large tree only with the exact oracle."""
    chosen = {}
    for name, each in {"exact": "exact", "other": oracle}.items():
        form = Form("", PrivBayes(ONE, max_model_cells=15, oracle=each), 0.0)
        outcome, _ = ran(form, tmp_path / name, {"epsilon": 1e4}, REPLACE[0])
        chosen[name] = max(len(measurement.clique) for measurement in outcome.measurements)
    assert chosen["exact"] < chosen["other"]


@pytest.mark.parametrize("make", [HDMM, MWEM, PrivBayes])
def test_an_unknown_oracle_is_refused_before_anything_is_spent(make: Any) -> None:
    """The name is checked when the run is prepared."""
    with pytest.raises(InvalidInput, match="`oracle` must be exact, records, auto"):
        make(ONE, oracle="recods").prepare(WORKLOAD, Neighbours.REPLACE, 3000)
