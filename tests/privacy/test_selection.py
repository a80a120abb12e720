"""Choices among candidates that fit, and of several candidates: distribution, cost, resuming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from audit import lower_bound
from juncture.errors import BudgetExceeded, InvalidInput
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import ZCDP, Price, Pure
from juncture.privacy.score import MarginalError
from juncture.private.curator import Curator
from juncture.private.journal import Journal
from juncture.private.noise import ExactSampler, Sampler
from juncture.private.selection import UnitScores, choose_fitting, choose_many
from juncture.private.simulated import SeededSampler
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain

UNIT, RUNS = 2**20, 1500
# The chance that a sound choice fails any one of these tests.
FALSE_ALARM = 1e-7
SCORES = np.array([0.0, 1.0, 3.0, 2.0, 4.0])
FITTING = {0, 1, 3}
EPSILON = 1.2
PRICES = [Pure(EPSILON), ZCDP(EPSILON**2 / 8)]
SAMPLERS: list[Sampler] = [ExactSampler(), SeededSampler(np.random.default_rng(1))]
SCORED = UnitScores((SCORES * UNIT).astype(np.int64), UNIT)
DOMAIN = Domain({"a": 3, "b": 2, "c": 2})
ANSWERS: dict[Clique, Any] = {("a",): np.zeros(3), ("b",): np.full(2, 9.0), ("c",): np.zeros(2)}


def differs(drawn: list[Any], chances: dict[Any, float]) -> bool:
    """Whether Pearson's test tells draws from the chances that they should have."""
    counts = Counter(drawn)
    assert set(counts) <= set(chances)
    expected = {each: len(drawn) * chance for each, chance in chances.items()}
    statistic = sum((counts[each] - mean) ** 2 / mean for each, mean in expected.items())
    return bool(statistic > chi2.isf(FALSE_ALARM, len(chances) - 1))


def weights(epsilon: float) -> np.ndarray:
    """What the exponential mechanism weighs the scores by."""
    return np.asarray(np.exp(epsilon * SCORES / 2))


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("max_walk", [0, 1, 16])
def test_the_choice_is_among_those_that_fit(
    price: Price, sampler: Sampler, max_walk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chances are those of an exponential mechanism that knows no others."""
    monkeypatch.setattr("juncture.private.selection._MAX_WALK", max_walk)
    drawn = [choose_fitting(sampler, SCORED, price, FITTING.__contains__) for _ in range(RUNS)]
    weight = weights(EPSILON)
    whole = sum(weight[i] for i in FITTING)
    assert not differs(drawn, {i: float(weight[i] / whole) for i in FITTING})


def test_a_doubled_exponent_is_caught() -> None:
    """Scores said to move half as far as they do are chosen with other chances."""
    broken = UnitScores(SCORED.units, UNIT // 2)
    sampler, price = ExactSampler(), ZCDP(EPSILON**2 / 8)
    drawn = [choose_fitting(sampler, broken, price, FITTING.__contains__) for _ in range(RUNS)]
    weight = weights(EPSILON)
    whole = sum(weight[i] for i in FITTING)
    assert differs(drawn, {i: float(weight[i] / whole) for i in FITTING})


def orders(k: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """The chance of every order of k draws without replacement, by weights."""
    weight, chances = weights(epsilon), {}
    for order in permutations(range(len(SCORES)), k):
        left, chance = float(weight.sum()), 1.0
        for index in order:
            chance *= float(weight[index]) / left
            left -= float(weight[index])
        chances[order] = chance
    return chances


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_several_choices_are_draws_without_replacement(sampler: Sampler) -> None:
    """Each has the weights of its share; shares that are not divided are caught."""
    share = ZCDP(EPSILON**2 / 8).share(0.5)
    for used, sound in ((share, True), (ZCDP(4 * share.rho), False)):
        drawn = [tuple(choose_many(sampler, SCORED, 2, used).tolist()) for _ in range(RUNS)]
        assert differs(drawn, orders(2, share.selection_epsilon)) is not sound


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_choosing_ends_at_the_floor(sampler: Sampler) -> None:
    """As if one more candidate had that score: what is drawn before it, up to k, is chosen."""
    share, floor, k = ZCDP(EPSILON**2 / 8), 2.5, 2
    weight = np.append(weights(EPSILON), np.exp(EPSILON * floor / 2))
    end, chances = len(SCORES), dict[tuple[int, ...], float]()
    for order in permutations(range(end + 1), k):
        left, chance = float(weight.sum()), 1.0
        for index in order:
            chance *= float(weight[index]) / left
            left -= float(weight[index])
        chosen = order[: order.index(end)] if end in order else order
        chances[chosen] = chances.get(chosen, 0.0) + chance
    for used, sound in ((floor, True), (floor + 1.0, False)):
        drawn = [tuple(choose_many(sampler, SCORED, k, share, used).tolist()) for _ in range(RUNS)]
        assert differs(drawn, chances) is not sound


@pytest.mark.slow
@pytest.mark.parametrize("price", PRICES, ids=str)
def test_audit_of_both_choices(price: Price) -> None:
    """Scores that move against each other keep the promise; half the sensitivity is caught.

    Exact draws have the same distribution, by the tests above, and take a hundred times longer.
    """
    sampler = SeededSampler(np.random.default_rng(2))
    # One candidate moves against nine others; the last one does not fit.
    left, right = (np.array([a, *[b] * 9, 3]) * UNIT for a, b in ((0, 1), (1, 0)))

    def audited(choose: Callable[[UnitScores], int], moves: int) -> float:
        pair = (
            np.array([choose(UnitScores(scores, moves)) for _ in range(20_000)])
            for scores in (left, right)
        )
        return lower_bound(*pair)

    def fitting(scores: UnitScores) -> int:
        return choose_fitting(sampler, scores, price, lambda index: index < 10)

    def several(scores: UnitScores) -> int:
        """The rank of the one that moves alone, or none."""
        chosen = choose_many(sampler, scores.keep(np.arange(10)), 2, price.share(0.5))
        return int(np.argmin(np.append(chosen, 0)))

    def until_the_floor(scores: UnitScores) -> int:
        """The rank of the one that moves alone, or how many were chosen without it."""
        kept = scores.keep(np.arange(10))
        chosen = choose_many(sampler, kept, 2, price.share(0.5), floor=0.0).tolist()
        return chosen.index(0) if 0 in chosen else 10 + len(chosen)

    claimed = 2 * price.share(0.5).selection_epsilon
    assert audited(fitting, UNIT) <= EPSILON
    assert audited(fitting, UNIT // 2) > EPSILON
    assert audited(several, UNIT) <= claimed
    assert audited(several, UNIT // 4) > claimed
    assert audited(until_the_floor, UNIT) <= claimed
    assert audited(until_the_floor, UNIT // 4) > claimed


def curator(folder: Path, budget: Budget, journal: Journal | None = None) -> Curator:
    """A curator of a small table."""
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 50) for name, size in DOMAIN.items()}
    path = folder / "ledger"
    ledger = Ledger(path) if path.exists() else Ledger.create(path, budget)
    return Curator(CodedTable(DOMAIN, columns), ledger, journal)


@pytest.mark.parametrize("price", [Pure(0.5), ZCDP(0.02)], ids=str)
def test_what_choices_cost(tmp_path: Path, price: Price) -> None:
    """One that must fit costs what one costs; k cost k times what a share of the price does."""
    door = curator(tmp_path, Budget(rho=1.0))
    score = MarginalError(ANSWERS)
    assert door.select(score, price, fits=lambda clique: clique == ("c",)) == ("c",)
    assert len(set(door.select_many(score, 3, price))) == 3
    one, many = (entry.cost for entry in door.events)
    assert one == price.selection_cost
    each = price.share(1 / 3).selection_cost
    assert many.rho == pytest.approx(3 * each.rho)
    assert many.epsilon == pytest.approx(3 * each.epsilon)
    if isinstance(price, ZCDP):
        assert many.rho == pytest.approx(price.rho)
    else:
        assert many.epsilon == pytest.approx(price.amount)


def test_choices_that_cannot_be_made_cost_nothing(tmp_path: Path) -> None:
    """More choices than candidates, none to choose from, or too little budget."""
    door, score = curator(tmp_path, Budget(epsilon=1.0)), MarginalError(ANSWERS)
    for k in (0, 4):
        with pytest.raises(InvalidInput, match="`k` must be between 1 and"):
            door.select_many(score, k, Pure(0.1))
    with pytest.raises(InvalidInput, match="at least one candidate"):
        door.select_many(MarginalError({}), 1, Pure(0.1))
    with pytest.raises(InvalidInput, match="`floor` must be a number"):
        door.select_many(score, 1, Pure(0.1), floor=float("nan"))
    with pytest.raises(InvalidInput, match="at least one candidate"):
        door.select(MarginalError({}), Pure(0.1), fits=lambda _: True)
    for k in (1, 2):
        with pytest.raises(BudgetExceeded):
            door.select_many(score, k, Pure(1.1))
    assert door.ledger.events == []
    with pytest.raises(InvalidInput, match="`fits` must hold for a candidate"):
        door.select(score, Pure(0.5), fits=lambda _: False)


def test_choices_are_kept_in_the_journal(tmp_path: Path) -> None:
    """A second run is given the same candidates for free, and tests none."""
    journal = Journal.create(tmp_path / "x.partial", {})
    score, price = MarginalError(ANSWERS), ZCDP(0.01)
    door = curator(tmp_path, Budget(rho=0.02), journal)
    first = door.select(score, price, fits=lambda _: True), door.select_many(score, 2, price)
    journal.close()
    again = curator(tmp_path, Budget(rho=0.02), Journal(tmp_path / "x.partial"))

    def refuse(clique: Clique) -> bool:
        raise AssertionError(clique)

    assert (again.select(score, price, fits=refuse), again.select_many(score, 2, price)) == first
    assert len(again.ledger.events) == 2


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
def test_half_of_the_exponent_is_for_replaced_records(
    tmp_path: Path, neighbours: Neighbours
) -> None:
    """Two scores that differ by 4 are chosen with the odds of the neighbours' sensitivity."""
    wide = Domain({"a": 2, "b": 2})
    source = CodedTable(wide, {"a": np.zeros(4, dtype=int), "b": np.zeros(4, dtype=int)})
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1e6), neighbours)
    door = Curator(source, ledger)
    score = MarginalError({("a",): [0.0, 0.0], ("b",): [4.0, 0.0]})
    drawn = [door.select_many(score, 1, ZCDP(0.125))[0] for _ in range(400)]
    odds = np.exp(2.0 if neighbours == Neighbours.ADD_OR_REMOVE else 1.0)
    chances: dict[Any, float] = {("a",): float(odds / (1 + odds)), ("b",): float(1 / (1 + odds))}
    assert not differs(drawn, chances)
