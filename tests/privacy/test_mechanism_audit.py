"""Every mechanism, run many times on two neighbouring tables, keeps its promise."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from audit import lower_bound
from juncture.mechanisms.aim import AIM
from juncture.mechanisms.baselines import Direct, Independent
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.hdmm import HDMM, Estimation
from juncture.mechanisms.mst import MST
from juncture.mechanisms.mwem import MWEM, Selection
from juncture.mechanisms.privbayes import PrivBayes
from juncture.mechanisms.residual_planner import ResidualPlanner
from juncture.mechanisms.result import RunResult
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import Price, Pure
from juncture.privacy.score import MarginalError
from juncture.private.simulated import SeededSampler, SimulatedCurator
from juncture.private.sources.source import CodedTable, Source
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.workload import Workload
from scribe import FreeLedger

pytestmark = pytest.mark.slow

DOMAIN = Domain({"a": 2, "b": 2, "c": 2})
WORKLOAD = Workload.all_marginals(DOMAIN, 2)
EPSILON, RUNS = 2.0, 500


def free_ledger() -> FreeLedger:
    """A budget without a file and without an end: for thousands of runs."""
    return FreeLedger(Neighbours.REPLACE, Budget(epsilon=1e9))


class HalfNoise(SimulatedCurator):
    """A broken copy: half the noise, and choices as if scores moved half as much."""

    def __init__(self, source: Source, ledger: Ledger, *, rng: np.random.Generator) -> None:
        super().__init__(source, ledger, rng=rng)
        self._sampler = HalfSampler(rng)


class TenthNoise(HalfNoise):
    """A copy that is broken more, so that fewer runs show it."""

    def __init__(self, source: Source, ledger: Ledger, *, rng: np.random.Generator) -> None:
        super().__init__(source, ledger, rng=rng)
        self._sampler = HalfSampler(rng, factor=0.1)


class HalfSampler(SeededSampler):
    """Half the noise of every answer and every choice, or less."""

    def __init__(self, rng: np.random.Generator, factor: float = 0.5) -> None:
        super().__init__(rng)
        self._factor = factor

    def add_noise(self, values: Any, noise: Noise, scale: float) -> Any:
        """See `Sampler.add_noise`."""
        return super().add_noise(values, noise, self._factor * scale)

    def select(self, scores: Any, sensitivity: int, price: Price) -> int:
        """See `Sampler.select`."""
        return super().select(scores, max(1, sensitivity // 2), price)


def tables() -> tuple[CodedTable, CodedTable]:
    """Two tables that differ in one record."""
    a, b, c = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 0, 1]), np.zeros(6, dtype=int)
    other = [column.copy() for column in (a, b, c)]
    other[0][0], other[1][0], other[2][0] = 1, 0, 1
    pair = ((a, b, c), tuple(other))
    return tuple(CodedTable(DOMAIN, dict(zip("abc", t, strict=True))) for t in pair)  # type: ignore[return-value]


def first_value(outcome: RunResult) -> float:
    """The first number that was measured."""
    return float(outcome.measurements[0].values[0])


def clique_and_value(outcome: RunResult) -> float:
    """Which clique was chosen and measured, and which of its values is large."""
    measured = outcome.measurements[-1]
    cliques = [(), *((name,) for name in DOMAIN), *WORKLOAD.cliques]
    place = cliques.index(measured.clique)
    return 100.0 * place + float(np.clip(measured.values[0], -40, 40))


def network(outcome: RunResult) -> float:
    """Which parents were chosen, as a number."""
    return float(sum(hash_of(link) for link in outcome.details["network"]) % 97)


def hash_of(text: str) -> int:
    """The same in every process."""
    return sum((i + 1) * ord(letter) for i, letter in enumerate(text))


def records(outcome: RunResult) -> float:
    """The second record that was found: the first draws look at nothing."""
    record = outcome.details["records"][min(1, len(outcome.details["records"]) - 1)]
    return float(sum(code << i for i, code in enumerate(record.values())))


Statistic = Callable[[RunResult], float]
LOCAL = Estimation.LOCAL
CASES: list[tuple[str, Any, Statistic]] = [
    ("hdmm", HDMM(Budget(epsilon=EPSILON), estimation=LOCAL), first_value),
    ("mwem", MWEM(Budget(epsilon=EPSILON), rounds=1, max_steps=5), clique_and_value),
    ("mwem, single columns", MWEM(Budget(epsilon=EPSILON), rounds=1, max_steps=5), first_value),
    ("aim", AIM(Budget(epsilon=EPSILON), rounds=4, max_steps=5), clique_and_value),
    (
        "mwem, queries",
        MWEM(Budget(epsilon=EPSILON), rounds=1, max_steps=5, selection=Selection.QUERY),
        clique_and_value,
    ),
    (
        "privbayes",
        PrivBayes(Budget(epsilon=EPSILON), estimation=LOCAL, usefulness=0.1, rng=0),
        network,
    ),
    (
        "dual query",
        DualQuery(Budget(rho=EPSILON**2 / 2), draws=2, eta=1.0, rng=0, estimation=LOCAL),
        records,
    ),
]


def audited(kind: type[SimulatedCurator], mechanism: Any, statistic: Statistic, runs: int) -> float:
    """The lower bound from many runs."""
    found = []
    for side, source in enumerate(tables()):
        rng = np.random.default_rng(side + 1)
        curator = kind(source, free_ledger(), rng=rng)
        seeded = hasattr(mechanism, "rng")
        outcomes = (
            (replace(mechanism, rng=run) if seeded else mechanism).run(curator, WORKLOAD)
            for run in range(runs)
        )
        found.append(np.array([statistic(outcome) for outcome in outcomes]))
    return lower_bound(*found)


@pytest.mark.parametrize(
    ("mechanism", "statistic"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_audit(mechanism: Any, statistic: Statistic) -> None:
    """The bound stays below what the mechanism claims."""
    assert audited(SimulatedCurator, mechanism, statistic, RUNS) <= EPSILON


def test_the_audit_catches_a_broken_curator() -> None:
    """Half the noise under one measurement of one task."""
    one = Workload.of_marginals(DOMAIN, [("a", "b")])

    def run(kind: type[SimulatedCurator]) -> float:
        sides = []
        for side, source in enumerate(tables()):
            curator = kind(source, free_ledger(), rng=np.random.default_rng(side))
            mechanism = HDMM(Budget(epsilon=EPSILON), estimation=LOCAL)
            outcomes = [mechanism.run(curator, one) for _ in range(4000)]
            # The record has left one cell for another: their difference shows it best.
            values = np.array([o.measurements[0].values for o in outcomes])
            sides.append(values[:, 2] - values[:, 0])
        return lower_bound(*sides)

    assert run(SimulatedCurator) <= EPSILON
    assert run(HalfNoise) > EPSILON


# Audits by everything that was measured: the likelihood ratio of the two tables is the best event.


def flipped(domain: Domain) -> tuple[CodedTable, CodedTable]:
    """Two tables that differ in one record, in every column."""
    a = np.array([0, 0, 1, 1, 0, 1])
    return tuple(
        CodedTable(domain, dict.fromkeys(domain, np.concatenate([[first], a[1:]])))
        for first in (0, 1)
    )  # type: ignore[return-value]


class Likelihoods:
    """How much likelier measurements with Laplace noise are on one table than on another."""

    def __init__(self, left: CodedTable, right: CodedTable) -> None:
        self._sides, self._known = (left, right), dict[Any, list[np.ndarray]]()

    def __call__(self, outcome: RunResult) -> float:
        """The logarithm of the ratio, in steps."""
        return round(2.0 * sum(map(self._compare, outcome.measurements))) / 2.0

    def _compare(self, measured: Measurement) -> float:
        key = (measured.clique, type(measured.query))
        if key not in self._known:
            operator = measured.operator(self._sides[0].domain)
            tables = (side.exact_counts([measured.clique])[0].values for side in self._sides)
            self._known[key] = [operator.apply(table).reshape(-1) for table in tables]
        far, near = (np.abs(measured.values - exact).sum() for exact in self._known[key])
        return float((far - near) * np.sqrt(2.0) / measured.stddev)


PAIR = Workload.of_marginals(Domain({"a": 2, "b": 2}), [("a", "b")])
COLUMN = Workload.of_marginals(DOMAIN, [("a",)])
# Few events for much budget: where many share little, no number of runs would show half the noise.
BUDGET, MORE = Budget(epsilon=EPSILON), Budget(epsilon=3.0)
MEASURED: list[tuple[str, Any, Workload]] = [
    ("aim", AIM(MORE, rounds=3, max_steps=1), PAIR),
    ("tiers", Tiers(MORE, single_share=0.3, pair_share=0.5, max_steps=1), PAIR),
    ("mst", MST(MORE, max_steps=1), PAIR),
    ("residual", ResidualPlanner(BUDGET, max_steps=1), COLUMN),
    ("direct", Direct(BUDGET, max_steps=1), PAIR),
    ("independent", Independent(BUDGET, max_steps=1), COLUMN),
]


def audit_measurements(
    kind: type[SimulatedCurator], mechanism: Any, workload: Workload, runs: int
) -> float:
    """The lower bound from all that is measured in so many runs on each of two tables."""
    sources = flipped(workload.domain)
    run = mechanism.prepare(workload, Neighbours.REPLACE, 6)
    statistic, sides = Likelihoods(*sources), []
    for side, source in enumerate(sources):
        curator = kind(source, free_ledger(), rng=np.random.default_rng(side))
        sides.append(np.array([statistic(run(curator)) for _ in range(runs)]))
    return lower_bound(*sides)


# Runs on each of two tables. Set this variable to 10000 for an audit by 20,000 runs, which catches
# half the noise of each; it takes a quarter of an hour.
AUDIT_RUNS = int(os.environ.get("AUDIT_RUNS", "1000"))


@pytest.mark.parametrize(
    ("mechanism", "workload"), [each[1:] for each in MEASURED], ids=[each[0] for each in MEASURED]
)
def test_all_measurements_together_keep_the_promise(mechanism: Any, workload: Workload) -> None:
    """In many runs, half on each table; a broken copy is caught."""
    epsilon = mechanism.budget.epsilon
    broken = HalfNoise if AUDIT_RUNS >= 10_000 else TenthNoise
    assert audit_measurements(broken, mechanism, workload, AUDIT_RUNS) > epsilon
    assert audit_measurements(SimulatedCurator, mechanism, workload, AUDIT_RUNS) <= epsilon


@pytest.mark.parametrize("weighted", [False, True])
def test_choices_of_marginals_keep_the_promise(weighted: bool) -> None:
    """One distance grows where nine others shrink; a doubled exponent is caught."""
    domain = Domain({f"x{i}": 2 for i in range(10)})
    # One record more makes the first column's count larger, and takes the others' to what is given.
    cliques: list[Clique] = [(name,) for name in domain]
    answers = {clique: [0.0 if clique == ("x0",) else 100.0, 0.0] for clique in cliques}
    penalties = {clique: 5.5 if clique == ("x0",) else 94.5 for clique in cliques}
    weights = dict.fromkeys(cliques, 0.7) if weighted else None
    score = MarginalError(answers, penalties=penalties, weights=weights)
    ledger = free_ledger()
    ledger.neighbours = Neighbours.ADD_OR_REMOVE

    def audited(kind: type[SimulatedCurator]) -> float:
        sides = []
        for side, n in enumerate((5, 6)):
            source = CodedTable(domain, dict.fromkeys(domain, np.zeros(n, dtype=int)))
            curator = kind(source, ledger, rng=np.random.default_rng(side))
            chosen = [curator.select(score, Pure(1.0)) == ("x0",) for _ in range(10_000)]
            sides.append(np.array(chosen, dtype=float))
        return lower_bound(*sides)

    assert audited(SimulatedCurator) <= 1.0
    assert audited(HalfNoise) > 1.0
