"""DualQuery: draws, records, likelihood, and its budget."""

from __future__ import annotations

import math
import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from juncture.engine.plan import Plan
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.mechanisms.draw_likelihood import DrawLikelihood, Round
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.hdmm import Estimation
from juncture.mechanisms.record_search import RecordSearch
from juncture.mechanisms.result import RunResult
from juncture.privacy import score_units
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.curator import Curator
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.workload import Task, Workload, workload_error

DOMAIN = Domain({"a": 3, "b": 2, "c": 4})
WORKLOAD = Workload(
    DOMAIN,
    (
        Task(("a", "b"), (Identity(), Identity())),
        Task(("b", "c"), (Identity(), Prefix())),
        Task(("c", "a"), (Identity(), Identity())),
    ),
)
N = 2000


def table(n: int = N) -> CodedTable:
    """Dependent columns."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a % 2, rng.integers(0, 2, n))
    c = np.where(rng.random(n) < 0.7, a, rng.integers(0, 4, n))
    return CodedTable(DOMAIN, {"a": a, "b": b, "c": c})


def truth(source: CodedTable) -> list[np.ndarray]:
    """The true answers."""
    pairs = zip(WORKLOAD.tasks, source.exact_counts(WORKLOAD.cliques), strict=True)
    return [task.operator(DOMAIN).apply(found.values) for task, found in pairs]


def ran(path: Path, mechanism: DualQuery, rho: float, seed: int = 0) -> tuple[RunResult, Ledger]:
    """A simulated run."""
    ledger = Ledger.create(path, Budget(rho=rho), Neighbours.REPLACE)
    curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(seed))
    return mechanism.run(curator, WORKLOAD), ledger


@pytest.mark.parametrize("estimation", list(Estimation))
def test_the_budget(estimation: Estimation, tmp_path: Path) -> None:
    """No more is spent than claimed, and one round more would not fit; runs can be repeated."""
    mechanism = DualQuery(Budget(rho=0.05), draws=10, estimation=estimation, rng=0, max_steps=40)
    outcome, ledger = ran(tmp_path / "one", mechanism, 0.05)
    rounds = outcome.details["rounds"]
    assert ledger.spent <= 0.05
    spent_by_rounds = 10 * (2.0 / N) ** 2 * (rounds - 1) * rounds * (2 * rounds - 1) / 12
    assert ledger.spent == pytest.approx(spent_by_rounds, rel=1e-4)
    assert 10 * (2.0 / N) ** 2 * rounds * (rounds + 1) * (2 * rounds + 1) / 12 > 0.05
    again, _ = ran(tmp_path / "two", mechanism, 0.05)
    pairs = zip(outcome.answers(WORKLOAD), again.answers(WORKLOAD), strict=True)
    assert all((one == other).all() for one, other in pairs)


@pytest.mark.slow
def test_both_forms_learn_and_the_model_learns_more(tmp_path: Path) -> None:
    """With budget enough, the model is nearer than the records."""
    errors = {}
    for estimation in Estimation:
        mechanism = DualQuery(Budget(rho=1.0), draws=20, estimation=estimation, rng=1)
        outcome, _ = ran(tmp_path / estimation.name, mechanism, 1.0)
        errors[estimation] = workload_error(truth(table()), outcome.answers(WORKLOAD))
    assert errors[Estimation.MODEL] < errors[Estimation.LOCAL] < 0.25
    assert errors[Estimation.MODEL] < 0.1


def test_the_real_curator_draws(tmp_path: Path) -> None:
    """A release, with an epsilon and a delta."""
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0, delta=1e-3), Neighbours.REPLACE)
    mechanism = DualQuery(Budget(epsilon=1.0, delta=1e-3), draws=5, rng=0, max_steps=30)
    outcome = mechanism.run(Curator(table(), ledger), WORKLOAD)
    assert 0.8 < ledger.spent <= 1.0
    assert outcome.model is not None
    assert "draws from" in ledger.events[0].what


def likelihood() -> tuple[DrawLikelihood, list[Round]]:
    """Some rounds of made-up draws."""
    rng = np.random.default_rng(2)
    n = WORKLOAD.n_queries
    rounds = [
        Round(rng.integers(0, t + 1, n).astype(np.int32), rng.integers(0, 2 * n, 6), t)
        for t in range(4)
    ]
    return DrawLikelihood(DOMAIN, WORKLOAD, rounds, 0.7, N), rounds


def test_the_likelihood_is_that_of_the_draws() -> None:
    """Draw by draw from the definition, up to what does not depend on the answers."""
    loss, rounds = likelihood()
    rng = np.random.default_rng(0)
    answers = [rng.random(WORKLOAD.n_queries) for _ in range(2)]
    values = []
    for y in answers:
        total = 0.0
        for each in rounds[1:]:
            g = 0.7 * (each.n_earlier * y - each.satisfied)
            whole = np.exp(g).sum() + np.exp(-g).sum()
            both = np.concatenate([g, -g])
            total += sum(math.log(whole) - both[place] for place in each.drawn)
        values.append(total)
    found = [loss.evaluate(y)[0] for y in answers]
    assert found == pytest.approx(values, rel=1e-12)


def test_the_gradient_of_the_likelihood() -> None:
    """Against finite differences, in answers and in marginals."""
    loss, _ = likelihood()
    y = np.random.default_rng(1).random(WORKLOAD.n_queries)
    _, slope = loss.evaluate(y)
    for place in (0, 5, 11, WORKLOAD.n_queries - 1):
        step = np.zeros_like(y)
        step[place] = 1e-6
        change = (loss.evaluate(y + step)[0] - loss.evaluate(y - step)[0]) / 2e-6
        assert slope[place] == pytest.approx(change, rel=1e-5, abs=1e-7)
    source = table()
    tables = dict(zip(WORKLOAD.cliques, source.exact_counts(WORKLOAD.cliques), strict=True))
    value, gradient = loss(tables)
    clique = ("b", "c")
    moved = {**tables, clique: tables[clique] + 1e-3 * (gradient[clique] / gradient[clique])}
    expected = 1e-3 * float(gradient[clique].values.sum())
    assert loss(moved)[0] - value == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("exact", [True, False])
def test_the_record_found_is_the_best(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By brute force over all records, for the exact search and its fallback."""
    if not exact:

        def too_large(*_arguments: object, **_options: object) -> Plan:
            raise ModelTooLarge("too large")

        monkeypatch.setattr(Plan, "build", too_large)
    search = RecordSearch(DOMAIN, WORKLOAD, np.random.default_rng(3))
    assert (search._oracle is not None) == exact
    for seed in range(10):
        drawn = np.random.default_rng(seed).integers(-3, 4, WORKLOAD.n_queries).astype(float)
        scores = {
            record: float(drawn @ search.answers(dict(zip(DOMAIN, record, strict=True))))
            for record in product(*map(range, DOMAIN.shape))
        }
        found = search.find_best(drawn)
        slack = 1e-4 if exact else 2.0  # one attribute at a time may end beside the best
        assert scores[tuple(found.values())] >= max(scores.values()) - slack


def test_ties_may_go_to_first_values() -> None:
    """Where all records are as good, the first of all; where one cell is better, that one."""
    search = RecordSearch(DOMAIN, WORKLOAD, np.random.default_rng(3), random_ties=False)
    assert search.find_best(np.zeros(WORKLOAD.n_queries)) == {"a": 0, "b": 0, "c": 0}
    drawn = np.zeros(WORKLOAD.n_queries)
    drawn[3] = 1.0  # the second value of a with the second of b
    assert search.find_best(drawn) == {"a": 1, "b": 1, "c": 0}


def test_rounds_can_be_limited(tmp_path: Path) -> None:
    """Fewer rounds than the budget allows cost less, and all are kept."""
    mechanism = DualQuery(
        Budget(rho=0.05), draws=10, max_rounds=3, rng=0, estimation=Estimation.LOCAL
    )
    outcome, ledger = ran(tmp_path / "few", mechanism, 0.05)
    assert outcome.details["rounds"] == 3
    assert ledger.spent < 0.05


def test_draws_follow_their_exponents() -> None:
    """Also when some are hundreds of times likelier than others, or cannot be told from zero."""
    exponents = np.array([0.0, 1.0, -2.0, 3.0, -800.0, 2.5])
    generator = random.Random(0)
    n = 30_000
    places = score_units.draw(exponents, n, generator.randrange)
    counts = np.bincount(places, minlength=len(exponents))
    chances = np.exp(exponents - exponents.max())
    expected = n * chances / chances.sum()
    assert counts[4] == 0
    kept = expected > 5
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.isf(1e-6, kept.sum() - 1)


def test_nonsense_is_refused(tmp_path: Path) -> None:
    """Prices, neighbours and numbers that do not fit."""
    ledger = Ledger.create(tmp_path / "add", Budget(rho=1.0), Neighbours.ADD_OR_REMOVE)
    curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="needs the number of records"):
        DualQuery(Budget(rho=0.1)).run(curator, WORKLOAD)
    with pytest.raises(InvalidInput, match="relative to the number of records"):
        curator.draw_queries([], [], n_earlier=1, eta=1.0, draws=1)
    replaced = Ledger.create(tmp_path / "replace", Budget(rho=1.0), Neighbours.REPLACE)
    curator = SimulatedCurator(table(), replaced, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="must be a rho, or an epsilon with a delta"):
        DualQuery(Budget(epsilon=1.0)).run(curator, WORKLOAD)
    with pytest.raises(InvalidInput, match="must be positive"):
        DualQuery(Budget(rho=0.1), eta=-1.0).run(curator, WORKLOAD)
    with pytest.raises(InvalidInput, match="must have a task"):
        DualQuery(Budget(rho=0.1)).run(curator, Workload(DOMAIN, ()))
    tasks = [(task.clique, task.query) for task in WORKLOAD.tasks]
    wrong = np.full(WORKLOAD.n_queries, 5.0)
    with pytest.raises(InvalidInput, match="`satisfied` must lie between 0 and `n_earlier`"):
        curator.draw_queries(tasks, wrong, n_earlier=1, eta=1.0, draws=1)
    assert replaced.events == []
