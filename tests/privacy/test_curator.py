"""The one door: what comes through it, what it costs, and an audit that broken copies fail.

The audit looks for an event that is much likelier on one of two neighbouring tables. With counts
of how often it happened in many runs, a lower bound of epsilon follows at a stated confidence
(Clopper and Pearson), which must stay below what is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from audit import FALSE_ALARM, lower_bound
from juncture.errors import BudgetExceeded, InvalidInput, NotPublic
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.lattice import round_to_lattice
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.price import ZCDP, Price, Pure
from juncture.privacy.request import Request
from juncture.privacy.score import MarginalError, QueryError
from juncture.private import noise
from juncture.private.curator import Curator
from juncture.private.noise import ExactSampler
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable, Source
from juncture.tables.columns import Integer
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.noise import Noise
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind
from juncture.tables.schema import Schema

DOMAIN = Domain({"a": 3, "b": 2})
ADD, REPLACE = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE
Integers = np.ndarray


def table(n: int = 40, extra: tuple[int, int] | None = None) -> CodedTable:
    """Some records, and perhaps one more."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, n), rng.integers(0, 2, n)
    if extra:
        a, b = np.append(a, extra[0]), np.append(b, extra[1])
    return CodedTable(DOMAIN, {"a": a, "b": b})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A large budget of pure epsilon."""
    return Ledger.create(tmp_path / "ledger", Budget(epsilon=1e15), ADD)


def test_a_measurement_states_its_noise(ledger: Ledger) -> None:
    """Values, kind and scale; the ledger has what was paid."""
    found = Curator(table(), ledger).measure(("b", "a"), Pure(2.0))
    assert found.clique == ("b", "a")
    assert found.noise is Noise.LAPLACE
    decay = math.exp(-2.0)
    assert float(found.stddev) == pytest.approx(math.sqrt(2 * decay) / (1 - decay))
    assert (found.values == np.round(found.values)).all()
    (line,) = ledger.events
    assert (line.cost.epsilon, line.what) == (2.0, "every count of b, a")
    assert line.mechanism == "discrete laplace"


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
def test_noise_follows_the_neighbours(tmp_path: Path, neighbours: Neighbours) -> None:
    """Twice the Laplace scale, and the root of 2 times the Gaussian one, for replaced records."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=1e9), neighbours)
    curator = Curator(table(), ledger)
    laplace = curator.measure(("a",), Pure(0.01))
    gaussian = curator.measure(("a",), ZCDP(0.0001))
    factor = 1.0 if neighbours is ADD else 2.0
    assert float(laplace.stddev) == pytest.approx(factor * 100 * math.sqrt(2), rel=1e-4)
    base = 1 / math.sqrt(2 * 0.0001)
    assert float(gaussian.stddev) == pytest.approx(math.sqrt(factor) * base, rel=1e-9)
    single = curator.measure(("a",), Pure(0.01), blocks.Point(1))
    assert float(single.stddev) == pytest.approx(100 * math.sqrt(2), rel=1e-4)


def test_the_number_of_records_is_public_only_where_it_is(tmp_path: Path) -> None:
    """Known to everybody when records are replaced; private when they come and go."""
    for neighbours, expected in ((ADD, None), (REPLACE, 40)):
        ledger = Ledger.create(tmp_path / str(neighbours), Budget(epsilon=1.0), neighbours)
        assert Curator(table(), ledger).public_n_records == expected


QUERIES: list[Query] = [
    blocks.Identity(),
    Kron({"a": blocks.Prefix(), "b": blocks.Total()}),
    Kron({"a": blocks.WeightedSum((0.1, 0.25, 1 / 3))}),
    Kron(
        {
            "a": blocks.Matrix(np.array([[0.3, 0.7, 0.1]])),
            "b": blocks.WeightedSum((math.pi, -math.e)),
        }
    ),
    Stack([Kron({"a": blocks.Identity()}), Kron({"b": blocks.WeightedSum((0.5, 0.1))})]),
    blocks.Matrix(np.random.default_rng(3).normal(size=(4, 6))),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: type(q).__name__)
def test_answers_are_exact_multiples_of_the_lattice(ledger: Ledger, query: Query) -> None:
    """With next to no noise, answers are those of the query that the measurement states."""
    source = table()
    found = Curator(source, ledger).measure(("a", "b"), Pure(1e12), query)
    (exact,) = source.exact_counts([("a", "b")])
    expected = found.operator(DOMAIN).apply(exact.values)
    np.testing.assert_array_equal(found.values, expected)
    asked = bind(query, DOMAIN).apply(exact.values)
    np.testing.assert_allclose(expected, asked, rtol=1e-2)  # rounded, where it had to be


def test_nothing_comes_without_paying(tmp_path: Path) -> None:
    """A refused request reads no data, draws no noise and leaves no trace."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), ADD)

    class Untouchable(CodedTable):
        def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
            raise AssertionError(list(cliques))

    a = np.zeros(3, dtype=int)
    curator = Curator(Untouchable(DOMAIN, {"a": a, "b": a}), ledger)
    before = ledger.path.read_bytes()
    requests = [Request(("a",), Pure(0.6)), Request(("b",), Pure(0.6))]
    with pytest.raises(BudgetExceeded):
        curator.measure_all(requests)
    with pytest.raises(BudgetExceeded):
        curator.select(MarginalError({("a",): np.zeros(3)}), Pure(2.0))
    assert ledger.path.read_bytes() == before
    with pytest.raises(AssertionError):
        curator.measure(("a",), Pure(0.5))
    assert Ledger(ledger.path).spent == 0.5  # paid first, then lost: never the other way round


def test_a_draft_schema_is_refused(tmp_path: Path) -> None:
    """Domains read off private data are not public until a person says so."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), ADD)
    schema = Schema({"a": Integer(low=0, high=2)}, drafted=True)
    with pytest.raises(NotPublic, match="`source.schema` must be .*confirmed_public = true"):
        Curator(CodedTable(schema.domain, {"a": [0, 2]}, schema), ledger)
    confirmed = Schema(schema.columns, drafted=True, confirmed=True)
    Curator(CodedTable(schema.domain, {"a": [0, 2]}, confirmed), ledger)


def test_bad_requests_are_refused_before_they_cost(ledger: Ledger) -> None:
    """Prices that are none, unknown attributes, queries and answers that do not fit."""
    curator = Curator(table(), ledger)
    prices: list[Any] = [None, 1.0, {"epsilon": 1.0}]
    for price in prices:
        with pytest.raises(InvalidInput, match="`price` must be a price such as"):
            curator.measure(("a",), price)
    for make, amount in ((Pure, -1.0), (ZCDP, math.nan), (Pure, 0.0)):
        with pytest.raises(InvalidInput, match="must be a positive number"):
            make(amount)
    with pytest.raises(InvalidInput, match="must be one of the domain's 2 attributes"):
        curator.measure(("nobody",), Pure(1.0))
    with pytest.raises(InvalidInput, match="whole number for a query that is measured"):
        curator.measure(("a",), Pure(1.0), Scaled(0.3, blocks.Identity()))
    with pytest.raises(InvalidInput, match="vanishes when"):
        curator.measure(("b",), Pure(1.0), blocks.WeightedSum((1e-12, 2e-12)))
    with pytest.raises(InvalidInput, match="finite numbers for"):
        curator.select(MarginalError({("a",): [1.0, 2.0]}), Pure(1.0))
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        curator.select(QueryError([(("a",), [2.0, 0, 0])], [1.0]), Pure(1.0))
    with pytest.raises(InvalidInput, match="a finite number for each of the 1 queries"):
        curator.select(QueryError([(("a",), [1.0, 0, 0])], [1.0, 2.0]), Pure(1.0))
    with pytest.raises(InvalidInput, match="must have at least one candidate"):
        curator.select(MarginalError({}), Pure(1.0))
    assert ledger.events == []


def test_no_error_depends_on_the_data(ledger: Ledger) -> None:
    """Answers beyond what is exact count as the limit: their size cannot be read off an error."""
    source = table()
    curator = Curator(source, ledger)
    for weight in (2.0**40, 2.0**47, 2.0**51):
        found = curator.measure(("a",), Pure(1.0), Scaled(weight, blocks.Subset([0])))
        assert np.isfinite(found.values).all()


def test_scores_cannot_overflow(ledger: Ledger) -> None:
    """Given answers and penalties are numbers, and what lies beyond a limit is cut there."""
    curator = Curator(table(), ledger)
    rows: list[tuple[tuple[str, ...], Any]] = [(("a",), [1, 0, 0]), (("a",), [0, 0, 0])]
    for bad in (math.inf, math.nan):
        with pytest.raises(InvalidInput, match="finite numbers"):
            curator.select(QueryError(rows, [-bad, 0.0]), Pure(1.0))
        with pytest.raises(InvalidInput, match="finite"):
            curator.select(MarginalError({("a",): np.zeros(3)}, penalties={("a",): bad}), Pure(1.0))
    assert ledger.events == []
    assert curator.select(QueryError(rows, [-(2.0**43), 0.0]), Pure(5.0)) == 0


def test_fractions_on_many_attributes_are_refused() -> None:
    """There are not bits enough for each."""
    domain = Domain({f"x{i}": 1 for i in range(25)})
    query = Kron({name: blocks.Matrix(np.array([[0.3]])) for name in domain})
    with pytest.raises(InvalidInput, match="fractions on at most 8 attributes"):
        round_to_lattice(query, domain)


def test_stated_noise_is_right_for_every_scale() -> None:
    """Where differences of exponentials would cancel."""
    for scale in (1e3, 1e9, 1e16):
        assert Noise.LAPLACE.discrete_stddev(scale) == pytest.approx(scale * math.sqrt(2), rel=1e-6)
    numbers = np.arange(-200, 201)
    for scale in (0.05, 0.5, 5.0):
        weights = np.exp(-np.abs(numbers) / scale)
        summed = math.sqrt(float((weights * numbers**2).sum() / weights.sum()))
        assert Noise.LAPLACE.discrete_stddev(scale) == pytest.approx(summed, rel=1e-9)


def test_prices_of_other_types(ledger: Ledger) -> None:
    """NumPy numbers and decimals are numbers; texts and huge ones are refused."""
    curator = Curator(table(), ledger)
    good: list[Any] = [np.float32(0.5), np.int64(1), Decimal("0.5")]
    bad: list[Any] = ["much", 1e200, None]
    for price in good:
        curator.measure(("a",), Pure(price))
    for price in bad:
        with pytest.raises(InvalidInput, match="must be"):
            curator.measure(("a",), Pure(price))
    with pytest.raises(InvalidInput, match="a sequence of attribute names"):
        curator.measure("ab", Pure(1.0))
    with pytest.raises(InvalidInput, match="must buy noise of a scale below"):
        curator.measure(("a",), Pure(1e-9), blocks.WeightedSum((0.1, 1e6, 2.0)))


def test_factors_are_given_in_any_order(ledger: Ledger) -> None:
    """The exact marginal, its axes swapped, is at no distance."""
    source = table()
    (exact,) = source.exact_counts([("a", "b")])
    answers: dict[tuple[str, ...], Any] = {("b", "a"): exact, ("a",): np.full(3, 1e4)}
    chosen = Curator(source, ledger).select(MarginalError(answers), Pure(50.0))
    assert chosen == ("a",)


def test_selection_finds_what_is_far_off(ledger: Ledger) -> None:
    """With much budget the worst marginal and the worst query are chosen."""
    source = table()
    curator = Curator(source, ledger)
    a, b = (f.values for f in source.exact_counts([("a",), ("b",)]))
    answers: dict[tuple[str, ...], np.ndarray] = {("a",): a + 1.0, ("b",): b + 9.0}
    assert curator.select(MarginalError(answers), Pure(50.0)) == ("b",)
    assert curator.select(MarginalError(answers), ZCDP(500.0)) == ("b",)
    penalties: dict[tuple[str, ...], float] = {("a",): 0.0, ("b",): 100.0}
    chosen = curator.select(MarginalError(answers, penalties=penalties), Pure(50.0))
    assert chosen == ("a",)
    rows: list[tuple[tuple[str, ...], np.ndarray]] = [
        (("a",), np.eye(3)[0]),
        (("b",), np.eye(2)[1]),
        (("a",), np.ones(3)),
    ]
    given = [a[0], b[1] + 8.0, 40.0]
    assert curator.select(QueryError(rows, given), Pure(50.0)) == 1


def test_simulated_noise_is_repeatable_and_says_what_it_is(tmp_path: Path) -> None:
    """The same seed, the same noise; and its spread is what a release would have."""

    def values(seed: int, name: str) -> np.ndarray:
        ledger = Ledger.create(tmp_path / name, Budget(rho=1e9), ADD)
        curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(seed))
        curator.select(MarginalError({("a",): np.zeros(3)}), Pure(1.0))
        requests = [Request(("a",), Pure(0.05))] * 400
        requests += [Request(("a",), ZCDP(0.001))] * 400
        return np.array([m.values for m in curator.measure_all(requests)])

    first, same, other = values(1, "one"), values(1, "two"), values(2, "three")
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    assert first[:400].std(axis=0).mean() == pytest.approx(20 * math.sqrt(2), rel=0.1)
    assert first[400:].std(axis=0).mean() == pytest.approx(1 / math.sqrt(0.002), rel=0.1)


def test_no_way_leads_from_a_release_to_simulated_noise() -> None:
    """The curator of releases does not import it, and takes no seed."""
    source = Path(noise.__file__).parent
    for path in (source / "curator.py", source / "noise.py", *source.glob("../privacy/*.py")):
        assert "simulated" not in path.read_text().replace("simulated_", "")
    assert "rng" not in (source / "noise.py").read_text()


# The audit.


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_audit_of_laplace_noise(epsilon: float) -> None:
    """The sampler keeps its promise, and half the noise is caught."""
    n = 60_000

    def audited(scale: float) -> float:
        pair = (noise.add_laplace(np.full(n, value), scale) for value in (10, 11))
        return lower_bound(*pair)

    assert audited(1 / epsilon) <= epsilon
    assert audited(0.5 / epsilon) > epsilon


@pytest.mark.slow
def test_audit_of_gaussian_noise() -> None:
    """zCDP bounds epsilon for any delta; half the noise (four times rho) is caught."""
    n, rho, delta = 60_000, 0.5, 0.02

    def audited(stddev: float) -> float:
        left, right = (noise.add_gaussian(np.full(n, v), stddev) for v in (10, 11))
        worst = -math.inf
        for cut in range(6, 16):
            p, q = int((right >= cut).sum()), int((left >= cut).sum())
            low = beta.ppf(FALSE_ALARM / 2, p, n - p + 1) if p else 0.0
            high = beta.ppf(1 - FALSE_ALARM / 2, q + 1, n - q) if q < n else 1.0
            worst = max(worst, math.log(max(low - delta, 1e-12) / high))
        return worst

    from juncture.privacy.accounting import epsilon_of_rho  # noqa: PLC0415

    claimed = epsilon_of_rho(rho, delta)
    assert audited(1 / math.sqrt(2 * rho)) <= claimed
    assert audited(0.5 / math.sqrt(2 * rho)) > claimed


class HalfNoise(Curator):
    """A broken copy: half the noise."""

    def __init__(self, source: Source, ledger: Ledger) -> None:
        super().__init__(source, ledger)
        self._sampler = HalfSampler()


class HalfSampler(ExactSampler):
    """Half the noise of every answer and every choice."""

    def add_noise(self, values: Integers, noise: Noise, scale: float) -> Integers:
        """See `Sampler.add_noise`."""
        return super().add_noise(values, noise, 0.5 * scale)

    def select(self, scores: Integers, sensitivity: int, price: Price) -> int:
        """See `Sampler.select`."""
        return super().select(scores, max(1, sensitivity // 2), price)


def outcomes(
    kind: type[Curator], tmp_path: Path, ask: Callable[[Curator], float], runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Many runs on a table and on its neighbour, which has one record more."""
    found = []
    for name, extra in (("left", None), ("right", (2, 1))):
        ledger = Ledger.create(tmp_path / f"{kind.__name__}-{name}", Budget(epsilon=1e9), ADD)
        curator = kind(table(extra=extra), _Unsynced(ledger))
        found.append(np.array([ask(curator) for _ in range(runs)]))
    return found[0], found[1]


class _Unsynced(Ledger):
    """The budget of a ledger, without its file: for thousands of runs."""

    def __init__(self, ledger: Ledger) -> None:
        self.path, self.budget, self.neighbours = ledger.path, ledger.budget, ledger.neighbours

    def spend(self, *events: Event, ticket: Ticket | None = None) -> list[Entry]:  # noqa: ARG002
        """Nothing to write."""
        return []


def measured(curator: Curator) -> float:
    """One cell of a release of all cells."""
    return float(curator.measure(("a", "b"), Pure(1.5)).values[5])


@pytest.mark.slow
def test_audit_of_the_curators_measurements(tmp_path: Path) -> None:
    """The whole way from counts to a measurement keeps its promise; half the noise is caught."""
    assert lower_bound(*outcomes(Curator, tmp_path, measured, 4000)) <= 1.5
    assert lower_bound(*outcomes(HalfNoise, tmp_path, measured, 4000)) > 1.5


def selected(curator: Curator) -> float:
    """Which of three queries was chosen: the table decides by one record."""
    clique: tuple[str, ...] = ("a", "b")
    rows = [(clique, np.eye(6)[i].reshape(3, 2)) for i in (5, 0, 1)]
    given = [0.0, 50.0, 50.0]
    return float(curator.select(QueryError(rows, given), Pure(1.0)))


@pytest.mark.slow
def test_audit_of_the_curators_selection(tmp_path: Path) -> None:
    """The exponential mechanism keeps its promise."""
    left, right = outcomes(Curator, tmp_path, selected, 3000)
    assert lower_bound(left, right) <= 1.0


@pytest.mark.slow
def test_audit_of_selection_catches_a_broken_copy() -> None:
    """Scores that move against each other as far as they may, and a sampler with half the noise."""
    unit, runs = 2**20, 6000

    def audited(sensitivity: int) -> float:
        pair = (
            np.array(
                [noise.select_noisy_max(np.array(s) * unit, sensitivity, 1.0) for _ in range(runs)]
            )
            for s in ([0, 1], [1, 0])
        )
        return lower_bound(*pair)

    assert audited(unit) <= 1.0
    assert audited(unit // 2) > 1.0
