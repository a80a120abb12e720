"""Every mechanism in every form spends what it says, learns with budget, and can be repeated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.engine.particles import Particles
from juncture.engine.plan import Plan
from juncture.errors import BudgetExceeded, InvalidInput, ModelTooLarge
from juncture.mechanisms.aim import AIM, weigh_candidates
from juncture.mechanisms.baselines import Direct, Division, Independent
from juncture.mechanisms.hdmm import HDMM, Estimation, Template
from juncture.mechanisms.mst import MST, find_rare
from juncture.mechanisms.multiplicative_weights import MultiplicativeWeights
from juncture.mechanisms.mwem import MWEM, Selection, Update, extract_row
from juncture.mechanisms.parent_sets import find_parent_sets
from juncture.mechanisms.privbayes import PrivBayes
from juncture.mechanisms.residual_planner import (
    Balance,
    ResidualPlanner,
    contrasts,
    weigh_residuals,
)
from juncture.mechanisms.strategy import Shares
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.dependence import Dependence
from juncture.privacy.ledger import Ledger
from juncture.private.curator import Curator
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.workload import Task, Workload, workload_error

DOMAIN = Domain({"a": 4, "b": 3, "c": 2, "d": 5})
WORKLOAD = Workload.all_marginals(DOMAIN, 2)


@dataclass(frozen=True)
class Form:
    """A mechanism in one form, and the least error that it is held to with a huge budget."""

    name: str
    mechanism: Any
    best: float
    neighbours: tuple[Neighbours, ...] = tuple(Neighbours)


REPLACE = (Neighbours.REPLACE,)
LOCAL = Estimation.LOCAL
ONE = Budget(epsilon=1.0)
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


def table(n: int = 3000) -> CodedTable:
    """Records of a chain: each attribute depends on the one before."""
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 4, n)]
    for size in DOMAIN.shape[1:]:
        fresh = rng.integers(0, size, n)
        columns.append(np.where(rng.random(n) < 0.6, columns[-1] % size, fresh))
    return CodedTable(DOMAIN, dict(zip(DOMAIN, columns, strict=True)))


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
        outcome, ledger = ran(form, tmp_path / neighbours.name, price, neighbours)
        (whole,) = price.values()
        assert ledger.spent == pytest.approx(whole, rel=1e-9)
        assert list(outcome.guarantee.events) == ledger.events
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


def test_dense_forms_say_when_they_do_not_fit(tmp_path: Path) -> None:
    """Before the table is made, with its size and what to do."""
    wide = Domain({f"x{i}": 100 for i in range(9)})
    with pytest.raises(ModelTooLarge, match="Use the graphical-model form"):
        MultiplicativeWeights(wide, 10.0, factored=False)
    weights = MultiplicativeWeights(wide, 10.0, factored=True)
    pairs = [(f"x{i}", f"x{i + 1}") for i in range(8)]
    measured = [Measurement(pair, np.zeros(10_000), stddev=1.0) for pair in pairs]
    with pytest.raises(ModelTooLarge, match="a dense table over"):
        weights.fit(measured, 1)
    assert not list(tmp_path.iterdir())


def test_factored_weights_are_full_weights_on_disjoint_groups() -> None:
    """Where measurements share no attribute, the product of the groups is the full table."""
    rng = np.random.default_rng(0)
    measured = [
        Measurement(("a", "b"), rng.random(12) * 10, stddev=1.0),
        Measurement(("d",), rng.random(5) * 10, stddev=1.0),
    ]
    tables = []
    for factored in (True, False):
        weights = MultiplicativeWeights(DOMAIN, 60.0, factored=factored)
        weights.fit(measured, 30)
        tables.append(weights.project(("d", "c", "a")).values)
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-9)


def test_one_step_of_multiplicative_weights() -> None:
    """The closed form for a table of two cells."""
    domain, total, seen = Domain({"x": 2}), 10.0, 9.0
    weights = MultiplicativeWeights(domain, total, factored=False)
    weights.fit([Measurement(("x",), [seen], stddev=1.0, query=extract_row(
        Task(("x",), (Identity(),)), domain, 0))], 1)  # fmt: skip
    step = np.exp((seen - total / 2) / (2 * total))
    assert weights.project(("x",)).values[0] == pytest.approx(total * step / (step + 1))


# Scores and parent sets of PrivBayes.


def test_sensitivities_of_dependence_by_brute_force() -> None:
    """Over all tables of a few records and all their neighbours, in four shapes."""
    from itertools import combinations_with_replacement  # noqa: PLC0415

    for shape, n in (((2, 2), 6), ((2, 3), 5), ((3, 3), 4), ((3, 2), 5)):
        domain = Domain(dict(zip("xy", shape, strict=True)))
        cells = list(np.ndindex(*shape))
        kinds = [by for by in Dependence if by is not Dependence.FIT or shape[1] == 2]
        moved = dict.fromkeys(kinds, 0.0)
        for rest in combinations_with_replacement(cells, n - 1):
            base = np.zeros(shape)
            for cell in rest:
                base[cell] += 1
            found: dict[Dependence, list[float]] = {by: [] for by in kinds}
            for cell in cells:
                table = base.copy()
                table[cell] += 1
                for by in kinds:
                    found[by].append(by.score(Factor(domain, table), n))
            for by, values in found.items():
                moved[by] = max(moved[by], max(values) - min(values))
        for by, most in moved.items():
            assert 0.99 < most <= by.sensitivity(n) + 1e-9


def test_the_fit_to_a_deciding_set_by_brute_force() -> None:
    """Over all ways to give each value of the set one of the two values."""
    from itertools import product  # noqa: PLC0415

    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = int(rng.integers(1, 7))
        counts = rng.integers(0, 9, (rows, 2)).astype(float)
        n = int(counts.sum())
        best = min(
            sum(
                max(n / 2 - sum(counts[i, v] for i in range(rows) if given[i] == v), 0.0)
                for v in (0, 1)
            )
            for given in product((0, 1), repeat=rows)
        )
        factor = Factor(Domain({"x": rows, "y": 2}), counts)
        assert Dependence.FIT.score(factor, n) == pytest.approx(-best)


def test_privbayes_keeps_its_model_within_the_limit(tmp_path: Path) -> None:
    """Parents that would make the tree larger are let go; what is spent stays the same."""
    cells = {}
    for most in (60, 10_000_000):
        ledger = Ledger.create(tmp_path / f"{most}", Budget(epsilon=1e6), Neighbours.REPLACE)
        curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(0))
        outcome = PrivBayes(Budget(epsilon=1e6), max_model_cells=most).run(curator, WORKLOAD)
        assert outcome.model is not None
        assert ledger.spent == pytest.approx(1e6)
        cells[most] = outcome.model.plan.cells
    assert cells[60] <= 60 < cells[10_000_000]


def test_privbayes_by_fit_is_for_attributes_of_two_values(tmp_path: Path) -> None:
    """On a chain of such it finds the chain; on others it is refused before anything is paid."""
    domain = Domain(dict.fromkeys("abc", 2))
    rng = np.random.default_rng(0)
    columns = {"a": rng.integers(0, 2, 4000)}
    for before, name in ("ab", "bc"):
        columns[name] = np.where(rng.random(4000) < 0.9, columns[before], 1 - columns[before])
    ledger = Ledger.create(tmp_path / "binary", Budget(epsilon=5000.0), Neighbours.REPLACE)
    curator = SimulatedCurator(CodedTable(domain, columns), ledger, rng=rng)
    mechanism = PrivBayes(Budget(epsilon=50.0), dependence=Dependence.FIT, usefulness=4000.0)
    outcome = mechanism.run(curator, Workload.all_marginals(domain, 2))
    assert outcome.details["network"] == ["a | ", "b | a", "c | b"]
    other = Ledger.create(tmp_path / "other", Budget(epsilon=50.0), Neighbours.REPLACE)
    with pytest.raises(InvalidInput, match="two values"):
        mechanism.run(SimulatedCurator(table(), other, rng=rng), WORKLOAD)
    assert other.spent == 0


def test_maximal_parent_sets_by_brute_force() -> None:
    """Every set that fits and cannot be enlarged, and no other; each once."""
    from itertools import combinations  # noqa: PLC0415

    rng = np.random.default_rng(0)
    for _ in range(60):
        sizes = rng.integers(1, 6, rng.integers(1, 7)).tolist()
        domain = Domain({f"x{i}": size for i, size in enumerate(sizes)})
        names, limit = tuple(domain), float(rng.choice([0.5, 1.0, 2.5, 6.0, 12.0, 30.0, 1e4]))
        fitting = [
            set(each)
            for k in range(len(names) + 1)
            for each in combinations(names, k)
            if domain.size_of(each) <= limit
        ]
        maximal = [each for each in fitting if not any(each < other for other in fitting)]
        expected = sorted(domain.canonical(each) for each in maximal) or [()]
        assert sorted(find_parent_sets(domain, names, limit)) == expected
        few = find_parent_sets(domain, names, limit, max_sets=2)
        assert len(few) == min(2, len(expected))
        assert set(few) <= set(expected)


def test_parent_sets_of_a_wide_table_are_thinned_at_once() -> None:
    """Of millions of sets, as many as asked for, all maximal, the same each time."""
    domain = Domain({f"x{i}": 2 for i in range(100)})
    found = find_parent_sets(domain, tuple(domain), 40.0, max_sets=50)
    assert len(set(found)) == 50
    assert all(len(each) == 5 for each in found)
    assert found == find_parent_sets(domain, tuple(domain), 40.0, max_sets=50)
    assert found != find_parent_sets(domain, tuple(domain), 40.0, max_sets=50, seed=1)


# AIM.


def test_candidates_lie_below_the_workload() -> None:
    """All subsets, weighted by the columns that they have in common with every task."""
    domain = Domain({"a": 2, "b": 3, "c": 2, "d": 2})
    workload = Workload.of_marginals(domain, [("c", "a"), ("a", "b", "c"), ("b",)])
    weights = weigh_candidates(workload)
    sums = {
        clique: sum(len(set(clique) & set(task.clique)) for task in workload.tasks)
        for clique in weights
    }
    assert set(weights) == {(*"a",), (*"b",), (*"c",), (*"ab",), (*"ac",), (*"bc",), (*"abc",)}
    largest = max(sums.values())
    assert weights == pytest.approx({clique: each / largest for clique, each in sums.items()})


@pytest.mark.parametrize("price", [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_aim_spends_no_more_than_its_bound(
    price: dict[str, float], neighbours: Neighbours, tmp_path: Path
) -> None:
    """The costs stated beforehand and those paid both add up to the budget, never above it."""
    budget = Budget(**price)
    run = AIM(budget).prepare(WORKLOAD, neighbours)
    assert not run.costs_are_exact
    assert budget.compose(run.costs) == pytest.approx(budget.limit, rel=1e-6)
    for seed in range(3):
        ledger = Ledger.create(tmp_path / f"{seed}", budget, neighbours)
        curator = SimulatedCurator(table(300), ledger, rng=np.random.default_rng(seed))
        result = run(curator)
        paid = [entry.cost for entry in ledger.events]
        assert len(paid) <= len(run.costs)
        assert budget.limit * (1 - 1e-6) <= budget.compose(paid) <= budget.limit
        assert len(paid) == len(DOMAIN) + 2 * result.details["rounds"]


def test_aims_rounds_become_dearer_where_nothing_is_learned(tmp_path: Path) -> None:
    """On uniform records every measurement is noise: each round has half the noise of the last."""
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 2000) for name, size in DOMAIN.items()}
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=0.001))
    curator = SimulatedCurator(CodedTable(DOMAIN, columns), ledger, rng=rng)
    result = AIM(Budget(rho=0.001)).run(curator, WORKLOAD)
    stddevs = [float(m.stddev) for m in result.measurements[len(DOMAIN) - 1 :]]
    halved = [late / early for early, late in pairwise(stddevs[:-1])]
    assert set(np.round(halved, 2)) <= {0.5, 1.0}
    assert sum(abs(each - 0.5) < 0.01 for each in halved) >= 2
    assert result.details["rounds"] < 16 * len(DOMAIN) // 4


def test_aim_keeps_its_model_within_the_limit(tmp_path: Path) -> None:
    """What would be larger is never chosen, but for the columns themselves."""
    cells = {}
    for limit in (1, 40, 4_000_000):
        budget = Budget(epsilon=1e6)
        ledger = Ledger.create(tmp_path / f"{limit}", budget, Neighbours.REPLACE)
        curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(0))
        outcome = AIM(budget, max_model_cells=limit).run(curator, WORKLOAD)
        assert outcome.model is not None
        cells[limit] = outcome.model.plan.cells
    assert cells[1] == sum(DOMAIN.shape)
    assert cells[40] <= 40 < cells[4_000_000]


def test_aim_learns_the_whole_table_where_it_may(tmp_path: Path) -> None:
    """With next to no noise and one task about all columns, the model is the table."""
    source = table(500)
    names = tuple(DOMAIN)
    workload = Workload.of_marginals(DOMAIN, [names])
    budget = Budget(rho=1e6)
    ledger = Ledger.create(tmp_path / "ledger", budget, Neighbours.REPLACE)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    result = AIM(budget, max_steps=5000).run(curator, workload)
    exact = source.exact_counts([names])[0].values
    assert np.abs(result.project(names).values - exact).sum() <= 0.02 * exact.sum()


def test_aim_refuses_what_it_cannot_do() -> None:
    """Rounds that the columns would use up, a share that is none, a workload without columns."""
    for bad in (AIM(ONE, rounds=4), AIM(ONE, measured_fraction=1.0)):
        with pytest.raises(InvalidInput):
            bad.prepare(WORKLOAD, Neighbours.REPLACE)
    with pytest.raises(InvalidInput, match="about a column"):
        AIM(ONE).prepare(Workload.of_marginals(DOMAIN, [()]), Neighbours.REPLACE)


# MST.


def simulate(mechanism: Any, source: CodedTable, path: Path, workload: Workload) -> Any:
    """A run on replaced records, with the mechanism's own budget."""
    ledger = Ledger.create(path, mechanism.budget, Neighbours.REPLACE)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    return mechanism.run(curator, workload)


def test_mst_finds_the_tree_of_a_tree(tmp_path: Path) -> None:
    """With next to no noise, the pairs that it chooses are those that made the records."""
    result = simulate(MST(Budget(rho=1e6)), table(), tmp_path / "ledger", WORKLOAD)
    assert {frozenset(edge) for edge in result.details["tree"]} == {
        frozenset("ab"),
        frozenset("bc"),
        frozenset("cd"),
    }


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_mst_of_few_columns(n_columns: int, tmp_path: Path) -> None:
    """All of the budget is spent, and as many pairs measured as a tree has edges."""
    domain = Domain(dict(list(DOMAIN.items())[:n_columns]))
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 100) for name, size in domain.items()}
    mechanism = MST(Budget(rho=0.3))
    workload = Workload.all_marginals(domain, 1)
    result = simulate(mechanism, CodedTable(domain, columns), tmp_path / "ledger", workload)
    assert len(result.measurements) == 2 * n_columns - 1
    paid = [entry.cost for entry in result.guarantee.events]
    assert mechanism.budget.compose(paid) == pytest.approx(0.3)


def test_rare_values_are_measured_together(tmp_path: Path) -> None:
    """In pairs they are one answer; the model still has every value, and keeps the records."""
    domain = Domain({"a": 40, "b": 2, "c": 2})
    rng = np.random.default_rng(0)
    a = np.where(rng.random(2000) < 0.98, rng.integers(0, 3, 2000), rng.integers(3, 40, 2000))
    source = CodedTable(domain, {"a": a, "b": a % 2, "c": rng.integers(0, 2, 2000)})
    workload = Workload.all_marginals(domain, 2)
    result = simulate(MST(Budget(rho=0.1)), source, tmp_path / "ledger", workload)
    assert result.details["merged"] == ["a"]
    (pair,) = (m for m in result.measurements if set(m.clique) == {"a", "b"})
    assert pair.n_rows == 2 * 4
    values = result.project(("a", "b")).values
    assert values.shape == (40, 2)
    assert values.sum() == pytest.approx(2000)


def test_what_is_rare() -> None:
    """Below three standard deviations; one value alone, or all of them, are not merged."""
    assert find_rare(Measurement(("a",), [9.0, 2.9, 3.1, -1.0], stddev=1.0)) is not None
    assert find_rare(Measurement(("a",), [9.0, 2.9, 3.1], stddev=1.0)) is None
    assert find_rare(Measurement(("a",), [2.0, 2.9, 1.1], stddev=1.0)) is None


# Plain measurements.


def test_direct_shares_by_cells_are_the_best() -> None:
    """No other division of the budget has less total variance; equal noise with equal shares."""
    for budget, power in ((Budget(rho=0.1), 1), (Budget(epsilon=1.0), 2)):
        run = Direct(budget, division=Division.CELLS).prepare(WORKLOAD, Neighbours.REPLACE)
        total = sum(each.cells * each.stddev**2 for each in run.marginals)
        shares = np.array([each.share for each in run.marginals])
        for seed in range(20):
            other = shares * np.exp(0.1 * np.random.default_rng(seed).normal(size=len(shares)))
            factor = (shares / (other * shares.sum() / other.sum())) ** power
            cells = np.array([each.cells * each.stddev**2 for each in run.marginals])
            assert (cells * factor).sum() >= total * (1 - 1e-12)
        equal = Direct(budget).prepare(WORKLOAD, Neighbours.REPLACE)
        assert len({round(each.stddev, 9) for each in equal.marginals}) == 1


def test_large_trees_are_not_built_by_default() -> None:
    """Where an exact fit would be slow, a plan has records, unless an oracle is named."""
    wide = Workload.all_marginals(Domain({f"x{i}": 8 for i in range(12)}), 2)
    for make in (Direct, ResidualPlanner):
        runs = [make(ONE).prepare(each, Neighbours.REPLACE) for each in (wide, WORKLOAD)]
        runs.append(make(ONE, oracle="records").prepare(WORKLOAD, Neighbours.REPLACE))
        plans = [run.plan for run in runs]
        assert [plan is not None and plan.has_tree for plan in plans] == [False, True, False]


# ResidualPlanner.


@pytest.mark.parametrize("size", [2, 3, 7, 50])
def test_contrasts_are_orthonormal(size: int) -> None:
    """Among each other and to the total; every column has the same norm."""
    rows = contrasts(size)
    np.testing.assert_allclose(rows @ rows.T, np.eye(size - 1), atol=1e-12)
    np.testing.assert_allclose(rows.T @ rows, np.eye(size) - 1 / size, atol=1e-12)


def test_residuals_reach_the_bound_of_every_linear_mechanism() -> None:
    """The total variance is the singular-value bound of the matrix mechanism, from the matrix."""
    rho = 0.4
    run = ResidualPlanner(Budget(rho=rho)).prepare(WORKLOAD, Neighbours.ADD_OR_REMOVE)
    total = sum(each.cells * each.error**2 for each in run.marginals)
    positions = np.arange(DOMAIN.size).reshape(DOMAIN.shape)
    rows = []
    for clique in WORKLOAD.cliques:
        for cell in np.ndindex(*[DOMAIN[name] for name in clique]):
            index = [slice(None)] * len(DOMAIN)
            for name, value in zip(clique, cell, strict=True):
                index[list(DOMAIN).index(name)] = value
            row = np.zeros(DOMAIN.size)
            row[positions[tuple(index)].reshape(-1)] = 1.0
            rows.append(row)
    singular = np.linalg.svd(np.array(rows), compute_uv=False)
    assert total == pytest.approx(singular.sum() ** 2 / DOMAIN.size / (2 * rho), rel=1e-9)


def test_residuals_have_the_errors_that_were_forecast(tmp_path: Path) -> None:
    """Least squares on many runs: the spread of a cell is what was known before."""
    domain = Domain({"a": 3, "b": 4})
    workload = Workload.all_marginals(domain, 2)
    mechanism = ResidualPlanner(Budget(rho=0.05), max_steps=1)
    run = mechanism.prepare(workload, Neighbours.ADD_OR_REMOVE)
    source = CodedTable(domain, {"a": np.zeros(50, dtype=int), "b": np.ones(50, dtype=int)})
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=1e6))
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    exact, errors = source.exact_counts([("a", "b")])[0].values.reshape(-1), []
    for _ in range(300):
        measured = run(curator).measurements
        matrix = np.concatenate([_dense(m, domain) / m.stddev for m in measured])
        values = np.concatenate([m.values / m.stddev for m in measured])
        errors.append(np.linalg.lstsq(matrix, values, rcond=None)[0] - exact)
    spread = float(np.sqrt(np.mean(np.square(errors))))
    assert spread == pytest.approx(run.marginals[0].error, rel=0.05)


def _dense(measured: Measurement, domain: Domain) -> np.ndarray:
    """The matrix of a measurement on the full table."""
    rows = []
    for cell in np.eye(domain.size).reshape(-1, *domain.shape):
        table = Factor(domain, cell).project(measured.clique)
        rows.append(measured.operator(domain).apply(table.values).reshape(-1))
    return np.array(rows).T


def test_residuals_leave_out_what_says_nothing() -> None:
    """Columns of one value have no contrast, and very long ones are refused."""
    domain = Domain({"a": 3, "one": 1, "b": 2})
    weights = weigh_residuals(Workload.all_marginals(domain, 2))
    assert set(weights) == {(), ("a",), ("b",), ("a", "b")}
    long = Workload.all_marginals(Domain({"a": 1001}), 1)
    with pytest.raises(InvalidInput, match="at most 1,000 values"):
        ResidualPlanner(ONE).prepare(long, Neighbours.REPLACE)


def test_the_papers_workload() -> None:
    """The first triples, prefixes where sizes are 100 or 101, and the number of queries."""
    domain = Domain({"p": 100, "q": 3, "r": 101, "s": 4, "t": 5, "u": 2, "v": 2})
    workload = Workload.paper_triples(domain, 10_000)
    assert len(workload.tasks) == 15
    assert workload.cliques == Workload.paper_triples(domain, 10_000).cliques
    for task in workload.tasks:
        for name, each in zip(task.clique, task.blocks, strict=True):
            assert isinstance(each, Prefix if name in ("p", "r") else Identity)
    with pytest.raises(InvalidInput, match="sets of 3 attributes that are small enough"):
        Workload.paper_triples(Domain({"a": 2, "b": 2, "c": 2}), 100)


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
