"""Tiers: what is chosen, what is paid, and what is refused before anything is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.engine.particles import Particles
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.mechanisms import tier_choice, tier_rounds, tier_run
from juncture.mechanisms.result import RunResult
from juncture.mechanisms.tier_choice import Offer, TierChooser
from juncture.mechanisms.tier_rounds import PairRounds
from juncture.mechanisms.tier_state import Taken, TierState
from juncture.mechanisms.tier_tables import (
    divide_what_is_left,
)
from juncture.mechanisms.tiers import Tiers
from juncture.model.distribution import Distribution
from juncture.model.record_distribution import RecordDistribution
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.score import GroupError
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 4, "b": 4, "c": 2, "d": 2, "e": 2, "f": 3})
TRIPLES = Workload.all_marginals(DOMAIN, 3)
BUDGET = Budget(rho=0.05)


def table(n: int = 20_000) -> CodedTable:
    """Records in which `b` follows `a`, `e` is the parity of `c` and `d`, and `f` is alone."""
    rng = np.random.default_rng(0)
    a, c, d = rng.integers(0, 4, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 4, n))
    return CodedTable(
        DOMAIN, {"a": a, "b": b, "c": c, "d": d, "e": c ^ d, "f": rng.integers(0, 3, n)}
    )


def run(
    folder: Path,
    mechanism: Tiers,
    workload: Workload = TRIPLES,
    *,
    source: CodedTable | None = None,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    seed: int = 0,
) -> tuple[RunResult, Ledger]:
    """A simulated run, and its ledger."""
    folder.mkdir(exist_ok=True)
    ledger = Ledger.create(folder / f"{seed}-{neighbours!s}", mechanism.budget, neighbours)
    curator = SimulatedCurator(source or table(), ledger, rng=np.random.default_rng(seed))
    return mechanism.run(curator, workload), ledger


def test_it_finds_the_pair_that_depends_and_the_triple_that_pairs_do_not_explain(
    tmp_path: Path,
) -> None:
    """Of 15 pairs the one, of 20 triples the parity; both are in the model."""
    result, _ = run(tmp_path, Tiers(BUDGET))
    measured = {each.clique for each in result.measurements}
    assert ("a", "b") in measured
    assert ["c", "d", "e"] in result.details["triples"]
    exact = table().exact_counts([("a", "b"), ("c", "d", "e")])
    for clique, truth in zip([("a", "b"), ("c", "d", "e")], exact, strict=True):
        assert np.abs(result.project(clique).values - truth.values).sum() < 0.02 * 20_000


def test_with_records_it_finds_the_same(tmp_path: Path) -> None:
    """The choices do not depend on how the model is fitted."""
    result, _ = run(tmp_path, Tiers(BUDGET, oracle=Particles(n_records=20_000)))
    assert ["c", "d", "e"] in result.details["triples"]
    truth = table().exact_counts([("c", "d", "e")])[0].values
    assert np.abs(result.project(("c", "d", "e")).values - truth).sum() < 0.03 * 20_000


@pytest.mark.parametrize(
    "price", [{"epsilon": 1.0}, {"rho": 0.01}, {"epsilon": 1.0, "delta": 1e-6}]
)
@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
@pytest.mark.parametrize("n", [50, 5_000])
def test_it_spends_its_budget_and_no_more(
    price: dict[str, float], neighbours: Neighbours, n: int, tmp_path: Path
) -> None:
    """Whatever was chosen, or not: the costs stated and those paid add up to the budget."""
    budget = Budget(**price)
    prepared = Tiers(budget).prepare(TRIPLES, neighbours)
    assert budget.compose(prepared.costs) == pytest.approx(budget.limit, rel=1e-6)
    for seed in range(2):
        _, ledger = run(tmp_path, Tiers(budget), source=table(n), neighbours=neighbours, seed=seed)
        assert len(ledger.events) <= len(prepared.costs)
        paid = budget.compose([entry.cost for entry in ledger.events])
        assert budget.limit * (1 - 1e-3) <= paid <= budget.limit


def test_choices_that_could_not_tell_are_not_paid_for(tmp_path: Path) -> None:
    """With few records no triple is looked for."""
    result, ledger = run(tmp_path, Tiers(Budget(rho=0.001)), source=table(300))
    assert not [e for e in ledger.events if e.mechanism == "exponential mechanism"]
    assert result.details["triples"] == []


def test_fewer_triples_are_chosen_where_noise_would_hide_as_many_as_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,000 records, noise of 50 allows 2 * 0.015 * 0.05 * 50**2 = 3.75 choices: of 6, so 3."""
    monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda *_: [])
    flags = Domain(dict.fromkeys("abcdef", 2))
    rng = np.random.default_rng(0)
    source = CodedTable(flags, {name: rng.integers(0, 2, 1_000) for name in flags})
    workload = Workload.all_marginals(flags, 3)
    _, ledger = run(tmp_path, Tiers(BUDGET), workload, source=source)
    ones, group = [e for e in ledger.events if e.mechanism == "exponential mechanism"]
    assert ones.parameters["draws"] == 3
    assert "groups" in group.what


def test_pairs_and_columns_alone_are_workloads_too(tmp_path: Path) -> None:
    """Without triples all is spent on pairs; without pairs, on columns."""
    pairs, _ = run(tmp_path, Tiers(BUDGET), Workload.all_marginals(DOMAIN, 2), seed=1)
    assert max(len(each.clique) for each in pairs.measurements) == 2
    columns, ledger = run(tmp_path, Tiers(BUDGET), Workload.all_marginals(DOMAIN, 1), seed=2)
    assert {len(each.clique) for each in columns.measurements} == {1}
    assert len(ledger.events) == len(DOMAIN)


def independent_table(n: int = 20_000) -> CodedTable:
    """Records whose columns have nothing to do with each other."""
    rng = np.random.default_rng(1)
    return CodedTable(DOMAIN, {name: rng.integers(0, size, n) for name, size in DOMAIN.items()})


def find_mean_error(result: RunResult, source: CodedTable, workload: Workload) -> float:
    """How far the marginals of a workload are off on average, in records."""
    truth = source.exact_counts(workload.cliques)
    return float(
        np.mean(
            [
                np.abs(result.project(clique).values - exact.values).sum()
                for clique, exact in zip(workload.cliques, truth, strict=True)
            ]
        )
    )


def test_where_columns_are_independent_looking_for_pairs_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside spending everything on columns, which is the best that can be done there."""
    source, workload = independent_table(), Workload.all_marginals(DOMAIN, 2)
    errors = list[float]()
    for folder in ("looked", "not looked"):
        made = [
            run(tmp_path / folder, Tiers(Budget(rho=0.002)), workload, source=source, seed=seed)[0]
            for seed in range(12)
        ]
        errors.append(float(np.mean([find_mean_error(each, source, workload) for each in made])))
        monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda *_: [])
    assert errors[0] < 1.35 * errors[1]


def test_triples_are_in_doubt_by_the_noise_on_columns_that_no_pair_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no pair measured, nothing but noise on columns sets a triple apart from the model."""
    doubts = list[dict[tuple[str, ...], float]]()
    noise = list[dict[str, float]]()
    rho, mechanism = 0.001, Tiers(Budget(rho=0.001))

    def find_noise(spent: float, size: int) -> float:
        """Counts for the first share, then what no other column tells: less for the same noise."""
        first = mechanism.single_share / len(DOMAIN)
        precision = 2.0 * rho * (first + (spent - first) * size / (size - 1))
        return float(np.sqrt(2.0 / (np.pi * precision)))

    def choose_none(
        self: TierChooser,
        tables: object,  # noqa: ARG001
        offer: Offer,
        *_: int,
    ) -> list[tuple[str, ...]]:
        doubts.append(dict(offer.doubts))
        spent = self.state.spent
        noise.append({name: find_noise(spent[(name,)], size) for name, size in DOMAIN.items()})
        return []

    monkeypatch.setattr(TierChooser, "choose_two_ways", choose_none)
    monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda *_: [])
    run(tmp_path, mechanism, source=independent_table())
    (of_triples,), (off,) = doubts, noise
    for triple, doubt in of_triples.items():
        # Columns of even values far above the noise: each is off by it in every value.
        expected = np.hypot.reduce([off[name] * DOMAIN[name] for name in triple])
        assert doubt == pytest.approx(expected, rel=1e-3)


def test_pairs_are_left_out_where_all_are_independent_but_not_the_few_that_depend(
    tmp_path: Path,
) -> None:
    """Two columns that follow each other, among others that do not: one pair of 66."""
    domain = Domain({f"x{i}": 4 for i in range(12)})
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 4, 20_000) for name in domain}
    codes["x1"] = np.where(rng.random(20_000) < 0.3, codes["x0"], codes["x1"])
    workload = Workload.all_marginals(domain, 2)
    found = list[list[tuple[str, ...]]]()
    for seed in range(6):
        result, _ = run(
            tmp_path,
            Tiers(Budget(rho=0.002)),
            workload,
            source=CodedTable(domain, codes),
            seed=seed,
        )
        found.append([each.clique for each in result.measurements if len(each.clique) == 2])
    assert all(("x0", "x1") in pairs for pairs in found)
    assert np.median([len(pairs) for pairs in found]) <= 8


def test_a_pair_that_the_first_ones_get_wrong_is_added(tmp_path: Path) -> None:
    """Two independent columns and the larger of them: given that one, they depend on each other.

    The model of the two pairs that depend would say that the other pair does, too.
    """
    domain = Domain(dict.fromkeys("abc", 4))
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 20_000), rng.integers(0, 4, 20_000)
    source = CodedTable(domain, {"a": a, "b": b, "c": np.maximum(a, b)})
    result, ledger = run(
        tmp_path, Tiers(Budget(rho=0.01)), Workload.all_marginals(domain, 2), source=source
    )
    assert result.details["pairs"] == 3
    rounds = [event for event in ledger.events if event.mechanism == "exponential mechanism"]
    assert len(rounds) > 1
    assert np.abs(result.project(("a", "b")).values - 20_000 / 16).sum() < 0.05 * 20_000


def test_a_round_leaves_something_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pairs it might choose, and however much each would get."""
    monkeypatch.setattr(tier_rounds, "_FIRST_PART", 0.99)
    monkeypatch.setattr(tier_rounds, "_PER_COLUMN", 1e9)
    flags = Domain({f"x{i}": 2 for i in range(12)})
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 20_000)
    codes = {n: np.where(rng.random(20_000) < 0.6, first, 1 - first) for n in flags}
    mechanism, workload = Tiers(Budget(rho=0.1)), Workload.all_marginals(flags, 2)
    result, ledger = run(tmp_path, mechanism, workload, source=CodedTable(flags, codes))
    assert result.details["pairs"] < 66
    paid = sum(entry.cost.rho for entry in ledger.events)
    assert 0.1 * (1 - 1e-3) <= paid <= 0.1


def test_a_round_says_less_for_sure_the_later_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which round is the last to end by itself is chance: the i-th may go wrong 1/(i (i + 1))."""
    raw, factors = list[int](), list[tuple[int, float]]()
    choose, choose_round = TierState.choose, PairRounds.choose_round

    def note(self: TierState, *rest: Any) -> Taken:
        taken = choose(self, *rest)
        assert taken.last is not None
        raw.append(taken.last.n_candidates)
        return taken

    def spy(self: PairRounds, index: int, *rest: Any) -> list[tuple[str, ...]]:
        taken = choose_round(self, index, *rest)
        if len(taken) < rest[-1]:
            (kept,) = self.state.choices
            factors.append((index, kept.n_candidates / raw[-1]))
        return taken

    monkeypatch.setattr(TierState, "choose", note)
    monkeypatch.setattr(PairRounds, "choose_round", spy)
    run(tmp_path, Tiers(Budget(rho=0.02)), Workload.all_marginals(DOMAIN, 2))
    assert len(factors) > 1
    assert all(factor == index * (index + 1) for index, factor in factors)


def test_pairs_of_small_weight_get_less_in_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares go by the roots of weights: a sixteenth of the weight, a quarter, twice the noise."""
    monkeypatch.setattr(tier_run.TierRun, "measure_tables", lambda *_: None)
    flags = Domain(dict.fromkeys("abcd", 2))
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 2, (2, 20_000))
    source = CodedTable(flags, {"a": a, "b": a, "c": c, "d": c})
    workload = Workload.of_marginals(flags, [("a", "b"), ("c", "d")]).weigh({("c", "d"): 1 / 16})
    result, _ = run(tmp_path, Tiers(Budget(rho=1.0)), workload, source=source)
    noise = {each.clique: float(each.stddev) for each in result.measurements}
    assert noise["c", "d"] == pytest.approx(2.0 * noise["a", "b"], rel=1e-3)


def test_distances_of_merged_tables_are_asked_of_merged_tables(tmp_path: Path) -> None:
    """Rare values share counts in what is asked, as in what is measured."""
    rng = np.random.default_rng(0)
    domain = Domain({"a": 40, "b": 40})
    a = np.minimum(rng.geometric(0.3, 20_000) - 1, 39)
    source = CodedTable(domain, {"a": a, "b": a})
    mechanism = Tiers(Budget(rho=0.002), merge_rare="on")
    result, _ = run(tmp_path, mechanism, Workload.all_marginals(domain, 2), source=source)
    (pair,) = [each for each in result.measurements if len(each.clique) == 2]
    assert pair.n_rows < 1_600
    assert result.details["pairs"] == 1


def test_the_noise_of_a_choice_counts_no_more_than_a_wrong_choice_would_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much noise may lift the best of many, a pair that is far off is chosen by itself."""
    monkeypatch.setattr(tier_run, "PAIR_LIFT", 1e9)
    monkeypatch.setattr(TierChooser, "choose_group", lambda *_: [])
    laplace = Tiers(Budget(epsilon=1.0), max_pairs=14)
    result, _ = run(tmp_path, laplace, Workload.all_marginals(DOMAIN, 2))
    assert ("a", "b") in {each.clique for each in result.measurements}


def test_where_noise_is_below_chance_all_pairs_are_measured(tmp_path: Path) -> None:
    """Columns of 20,000 records are tied by chance, by more than so little noise leaves."""
    result, _ = run(
        tmp_path, Tiers(Budget(rho=1.0)), Workload.all_marginals(DOMAIN, 2),
        source=independent_table(),
    )  # fmt: skip
    assert int(str(result.details["pairs"])) >= 12


def test_small_tables_are_measured_by_what_their_columns_say_together(tmp_path: Path) -> None:
    """One contrast of a pair of flags; its error is that of a fourth of the price, or less."""
    flags = Domain(dict.fromkeys("abcdefghij", 2))
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, 20_000)
    codes = {
        n: np.where(rng.random(20_000) < 0.5, first, rng.integers(0, 2, 20_000)) for n in flags
    }
    source, workload = CodedTable(flags, codes), Workload.all_marginals(flags, 2)
    errors = dict[bool, list[float]]()
    for seed in range(6):
        for contrasts in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                if not contrasts:
                    patch.setattr(TierState, "by_contrasts", False)
                result, _ = run(
                    tmp_path / str(contrasts), Tiers(BUDGET), workload, source=source, seed=seed
                )
            pairs = [each for each in result.measurements if len(each.clique) == 2]
            assert all(len(each.values) == (1 if contrasts else 4) for each in pairs)
            truth = source.exact_counts(workload.cliques)
            off = [
                np.abs(result.project(clique).values - exact.values).sum()
                for clique, exact in zip(workload.cliques, truth, strict=True)
            ]
            errors.setdefault(contrasts, []).append(float(np.mean(off)))
    assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])


def test_pairs_that_need_next_to_nothing_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share of the price that is not worth an event is not spent, and the run goes on."""
    monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda _, tables, __: list(tables))

    def starve(shares: Any, spent: Any, left: float) -> dict[tuple[str, ...], float]:
        return {
            c: 0.0 if c == ("a", "b") else x
            for c, x in divide_what_is_left(shares, spent, left).items()
        }

    monkeypatch.setattr(tier_run, "divide_what_is_left", starve)
    result, _ = run(tmp_path, Tiers(BUDGET))
    assert ("a", "b") not in {each.clique for each in result.measurements}


def test_many_weak_triples_are_found_together(tmp_path: Path) -> None:
    """Each is hidden by the noise of a choice of its own; their mean is not."""
    flags = Domain({f"x{i}": 2 for i in range(10)})
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 2, 40_000) for name in flags}
    names = list(flags)
    for i in range(10):  # each column leans to the parity of the next two
        leans = rng.random(40_000) < 0.08
        parity = codes[names[(i + 1) % 10]] ^ codes[names[(i + 2) % 10]]
        codes[names[i]] = np.where(leans, parity, codes[names[i]])
    workload = Workload.all_marginals(flags, 3)
    result, _ = run(tmp_path, Tiers(Budget(rho=0.3)), workload, source=CodedTable(flags, codes))
    assert len(result.details["triples"]) >= 60


def test_a_group_must_be_worth_what_it_takes_from_the_tables_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All triples rest on the columns: less for these is a loss for every one of them.

    Noise falls with the root of the share, so what columns get without a group and with it says by
    how much each doubt grows.
    """
    monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda *_: [])
    monkeypatch.setattr(TierChooser, "choose_ones", lambda *_: [])
    seen = list[tuple[list[int], list[float]]]()
    expected = list[list[float]]()
    choose_group = TierChooser.choose_group

    def spy(
        self: TierChooser, tables: dict[tuple[str, ...], np.ndarray], offer: Offer,
        max_tables: int,
    ) -> list[tuple[str, ...]]:  # fmt: skip
        left = self.state.left - offer.share
        known, weights = offer.known_share, {c: offer.weights[c] for c in tables}
        doubt = sum(weights[c] * offer.doubts[c] for c in tables) / sum(weights.values())
        n_groups = [0, *sorted({-(-len(tables) // 2**i) for i in range(tier_choice.N_GROUPS)})]
        falls = [(1.0 + left / (len(DOMAIN) + n) / known) ** -0.5 for n in n_groups]
        expected.append([doubt * (fall - falls[0]) for fall in falls])
        return choose_group(self, tables, offer, max_tables)

    def note(tables: Any, groups: Any, penalties: Any, **rest: Any) -> GroupError:
        seen.append(([len(group) for group in groups], list(penalties)))
        return GroupError(tables, groups, penalties, **rest)

    monkeypatch.setattr(TierChooser, "choose_group", spy)
    monkeypatch.setattr(tier_choice, "GroupError", note)
    run(tmp_path / "with", Tiers(Budget(rho=0.01)), source=independent_table())
    monkeypatch.setattr(TierChooser, "expect_dilution", lambda *_: 0.0)
    run(tmp_path / "without", Tiers(Budget(rho=0.01)), source=independent_table())
    (sizes, paid), (_, plain) = seen
    assert sizes == [0, 3, 5, 10, 20]
    lost = np.subtract(paid, plain)
    np.testing.assert_allclose(lost, expected[0], rtol=0.01)
    assert (np.diff(lost) > 0.0).all()


def test_triples_are_looked_for_where_no_pair_depends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parity alone: no pair shows it, and the budget of pairs goes to the triple."""
    monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda *_: [])
    source = independent_table().exact_records()
    codes = {**source, "e": source["c"] ^ source["d"]}
    result, _ = run(tmp_path, Tiers(Budget(rho=0.01)), source=CodedTable(DOMAIN, codes))
    assert result.details["pairs"] == 0
    assert ["c", "d", "e"] in result.details["triples"]
    measured = {each.clique: each for each in result.measurements}
    whole = Budget(rho=0.01).price.cell_stddev(Neighbours.ADD_OR_REMOVE)
    assert float(measured["c", "d", "e"].stddev) < 3.0 * whole


def test_only_what_the_workload_asks_about_is_measured(tmp_path: Path) -> None:
    """A column of no task is left alone."""
    workload = Workload.of_marginals(DOMAIN, [("a", "b"), ("c",)])
    result, _ = run(tmp_path, Tiers(BUDGET), workload)
    assert {each.clique for each in result.measurements} == {("a",), ("b",), ("c",), ("a", "b")}


def test_at_most_so_many_pairs(tmp_path: Path) -> None:
    """The limit holds, and the strongest pair is among them."""
    result, _ = run(tmp_path, Tiers(BUDGET, max_pairs=3))
    measured = [each.clique for each in result.measurements if len(each.clique) == 2]
    assert len(measured) <= 3
    assert ("a", "b") in measured


def test_columns_of_pairs_that_are_not_measured_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They alone answer those pairs. Where every pair is measured, they have their first share."""
    monkeypatch.setattr(TierState, "by_contrasts", False)
    first = BUDGET.price.share(0.08 / len(DOMAIN)).cell_stddev(Neighbours.ADD_OR_REMOVE)
    workload = Workload.all_marginals(DOMAIN, 2)
    few, _ = run(tmp_path, Tiers(BUDGET, max_pairs=1), workload)
    known = {each.clique: float(each.stddev) for each in few.measurements}
    assert {clique for clique in known if len(clique) == 2} == {("a", "b")}
    assert all(known[name,] < 0.9 * first for name in DOMAIN)
    monkeypatch.setattr(tier_run.TierRun, "choose_pairs", lambda _, tables, __: list(tables))
    all_pairs, _ = run(tmp_path / "all", Tiers(BUDGET), workload)
    known = {each.clique: float(each.stddev) for each in all_pairs.measurements}
    assert len(known) == 6 + 15
    assert all(known[name,] == pytest.approx(first) for name in DOMAIN)


@pytest.mark.parametrize(("limit", "kind"), [(1, RecordDistribution), (4_000_000, Distribution)])
def test_a_large_tree_gives_way_to_records(limit: int, kind: type, tmp_path: Path) -> None:
    """Where "auto" is asked for and the tree has more cells than the limit."""
    result, _ = run(tmp_path, Tiers(BUDGET, max_tree_cells=limit), source=table(3_000))
    assert result.model is not None
    assert isinstance(result.model.distribution, kind)


def test_bad_settings_are_refused_before_anything_is_paid() -> None:
    """Shares that leave nothing, no pairs, no columns, and an exact model that cannot fit."""
    for bad in (
        Tiers(BUDGET, single_share=0.5),
        Tiers(BUDGET, pair_share=0.0),
        Tiers(BUDGET, max_pairs=0),
        Tiers(BUDGET, oracle="best"),
    ):
        with pytest.raises(InvalidInput):
            bad.prepare(TRIPLES, Neighbours.REPLACE)
    with pytest.raises(InvalidInput, match="about a column"):
        Tiers(BUDGET).prepare(Workload.of_marginals(DOMAIN, [()]), Neighbours.REPLACE)
    wide = Workload.all_marginals(Domain({f"x{i}": 50 for i in range(12)}), 2)
    with pytest.raises(ModelTooLarge):
        Tiers(BUDGET, oracle="exact").prepare(wide, Neighbours.REPLACE)
    Tiers(BUDGET).prepare(wide, Neighbours.REPLACE)
