"""What is promised to a person with several rows: sensitivities, scores, ledgers and audits."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from audit import lower_bound
from juncture.errors import InvalidInput, UnknownAttribute
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.privbayes import PrivBayes
from juncture.privacy.accounting import Change, Neighbours, l1_sensitivity, l2_sensitivity
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.guarantee import Guarantee, Unit
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.price import ZCDP, Pure
from juncture.privacy.score import (
    DependenceScore,
    GroupError,
    MarginalError,
    QueryError,
    RowError,
    Score,
    Setting,
)
from juncture.private.curator import Curator
from juncture.private.simulated import SeededSampler, SimulatedCurator
from juncture.private.sources.read import read_table
from juncture.private.sources.source import CodedTable, Source
from juncture.publish.report.document import render_report
from juncture.tables.columns import Categorical
from juncture.tables.domain import Clique, Domain
from juncture.tables.noise import Noise
from juncture.tables.person import Person
from juncture.tables.queries import (
    AllRanges,
    Buckets,
    Identity,
    Kron,
    Matrix,
    Prefix,
    Total,
    WeightedSum,
)
from juncture.tables.queries.products import bind
from juncture.tables.schema import Schema
from juncture.tables.workload import Workload
from juncture.workflow.release import release

DOMAIN = Domain({"a": 3, "b": 2})
RELATIONS = [Neighbours(change, Person("who", k)) for change in Change for k in (1, 2, 3)]
QUERIES: list[Any] = [
    Identity(),
    Total(),
    Kron({"a": Prefix(), "b": Identity()}),
    Kron({"a": AllRanges(), "b": Total()}),
    Kron({"a": WeightedSum((-0.5, 2.0, 1.0)), "b": Total()}),
    Kron({"a": WeightedSum((0.5, 2.0, 1.0)), "b": Total()}),
    Matrix(np.random.default_rng(0).normal(size=(4, 6))),
]


def sums_of_rows(k: int) -> list[np.ndarray]:
    """The counts that from none to k rows of a person make."""
    cells = np.eye(6)
    return [
        np.sum(cells[list(rows)], axis=0) if rows else np.zeros(6)
        for n in range(k + 1)
        for rows in combinations_with_replacement(range(6), n)
    ]


def changes(neighbours: Neighbours) -> list[np.ndarray]:
    """How the counts of neighbouring tables may differ: every way there is."""
    sums = sums_of_rows(neighbours.max_rows)
    if not neighbours.replaces:
        return sums
    return [left - right for left in sums for right in sums]


@pytest.mark.parametrize("neighbours", RELATIONS, ids=str)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_no_person_moves_answers_further_than_stated(query: Any, neighbours: Neighbours) -> None:
    """By trying all rows that a person may have; the bound is met but for signs."""
    operator = bind(query, DOMAIN)
    moved = [operator.apply(change.reshape(DOMAIN.shape)) for change in changes(neighbours)]
    for norm, stated in (
        (1, l1_sensitivity(operator, neighbours)),
        (2, l2_sensitivity(operator, neighbours)),
    ):
        most = max(float(np.linalg.norm(each, norm)) for each in moved)
        assert most <= stated * (1 + 1e-12)
        assert most >= 0.5 * stated


RNG = np.random.default_rng(5)
ANSWERS: dict[Clique, Any] = {("a",): RNG.uniform(0, 3, 3), ("b", "a"): RNG.uniform(0, 2, (2, 3))}
SCORES: dict[str, Score[Any]] = {
    "marginals": MarginalError(ANSWERS),
    "weighted": MarginalError(ANSWERS, weights={("a",): 0.37, ("b", "a"): 3.3}),
    "merged": MarginalError(
        {("a",): [2.3, 1.1], ("b", "a"): RNG.uniform(0, 2, 4)},
        queries={
            ("a",): Buckets([0, 1, 0]),
            ("b", "a"): Kron({"b": Identity(), "a": Buckets([0, 1, 0])}),
        },
    ),
    "groups": GroupError(
        ANSWERS,
        [[], [("a",)], [("a",), ("b", "a")]],
        [0.0, 0.4, 1.3],
        weights={("a",): 0.37, ("b", "a"): 3.3},
    ),
    "queries": QueryError([(("a",), [0.2, 1.0, 0.0]), (("b",), [1.0, 0.0])], [1.3, 0.4]),
    "rows": RowError(
        [(("a",), Kron({"a": Prefix()})), (("a", "b"), Identity())],
        [RNG.uniform(0, 3, 3), RNG.uniform(0, 2, 6)],
    ),
}


def table_of(counts: np.ndarray) -> CodedTable:
    """The table with these counts."""
    cells = np.repeat(np.arange(6), counts.astype(int))
    return CodedTable(DOMAIN, {"a": cells // 2, "b": cells % 2})


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("neighbours", RELATIONS, ids=str)
def test_no_person_moves_a_score_further_than_stated(name: str, neighbours: Neighbours) -> None:
    """Whatever else is in the table, and the bound is nearly met."""
    bound = SCORES[name].bind(Setting(DOMAIN, neighbours, None))
    most = 0.0
    for others in (np.zeros(6), np.array([1, 0, 2, 0, 0, 3]), np.array([9, 9, 9, 9, 9, 9])):
        persons = sums_of_rows(neighbours.max_rows)
        values = np.array(
            [
                bound.evaluate(table_of(others + each).exact_counts(bound.cliques))
                for each in persons
            ]
        )
        apart = values[:, None] - values[None] if neighbours.replaces else values - values[0]
        most = max(most, float(np.abs(apart).max()))
    assert most <= bound.sensitivity
    assert most >= 0.5 * bound.sensitivity


@pytest.mark.parametrize("change", Change)
def test_what_needs_the_number_of_records_is_refused(change: Change, tmp_path: Path) -> None:
    """A person replaced by another may leave fewer rows: shares of them have no bound here."""
    person = Person("who", 2)
    neighbours = Neighbours(change, person)
    with pytest.raises(InvalidInput, match="replace one record"):
        DependenceScore([("a", ("b",))]).bind(Setting(DOMAIN, neighbours, None))
    workload = Workload.all_marginals(DOMAIN, 2)
    for mechanism in (PrivBayes(Budget(epsilon=1.0)), DualQuery(Budget(rho=0.5))):
        with pytest.raises(InvalidInput, match=r"without \[person\]"):
            mechanism.prepare(workload, neighbours, 100)
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), neighbours)
    source = CodedTable(DOMAIN, {"a": [0], "b": [1]}, person=person)
    curator = Curator(source, ledger)
    assert curator.public_n_records is None
    with pytest.raises(InvalidInput, match="replace one record"):
        curator.draw_queries([(("a",), Identity())], [0] * 3, n_earlier=1, eta=1.0, draws=1)
    assert not ledger.events


def test_rows_must_be_limited_for_what_the_ledger_protects(tmp_path: Path) -> None:
    """Not more, not less, and for the same column: anything else is refused unspent."""
    columns = {"a": [0], "b": [1]}
    kinds = [None, Person("who", 2), Person("who", 3), Person("visit", 2)]
    for i, protected in enumerate(kinds):
        neighbours = Neighbours.ADD_OR_REMOVE.of(protected)
        ledger = Ledger.create(tmp_path / str(i), Budget(epsilon=1.0), neighbours)
        assert Ledger(ledger.path).neighbours == neighbours
        for limited in kinds:
            source = CodedTable(DOMAIN, columns, person=limited)
            if limited == protected:
                Curator(source, ledger)
                continue
            with pytest.raises(InvalidInput, match="must count the rows of what its ledger"):
                Curator(source, ledger)


@pytest.mark.parametrize("neighbours", [*RELATIONS, None], ids=str)
def test_a_guarantee_survives_its_file(neighbours: Neighbours | None) -> None:
    """With its unit; a file that contradicts itself is refused."""
    made = Guarantee((), neighbours, Budget(epsilon=1.0))
    plain = json.loads(json.dumps(made.to_json()))
    assert Guarantee.from_json(plain) == made
    assert made.unit is (Unit.RECORD if neighbours is None else Unit.PERSON)
    with pytest.raises((ValueError, InvalidInput)):
        Guarantee.from_json({**plain, "unit": "one family"})
    if neighbours is not None:
        with pytest.raises((ValueError, InvalidInput)):
            Guarantee.from_json({**plain, "unit": "one record"})
        with pytest.raises((ValueError, InvalidInput)):
            Guarantee.from_json({**plain, "person": None})


def test_no_module_asks_which_neighbours_they_are() -> None:
    """Relations about persons are neither of the two constants: what matters has properties."""
    folder = Path(__file__).parents[2] / "src"
    pattern = re.compile(r"(is|is not|==|!=) Neighbours\.(ADD_OR_REMOVE|REPLACE)")
    modules = [path for path in folder.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert [path.name for path in modules] == []


VISITS = Schema(
    {"ill": Categorical(values=("flu", "cold")), "ward": Categorical(values=("a", "b", "c"))},
    person=Person("patient", max_rows=3),
)


def visits(*, with_target: bool) -> pa.Table:
    """Eight people, and with the target one who has seven rows, in a cell of their own."""
    rows = [(f"p{i}", "cold", "ab"[j % 2]) for i in range(9) for j in range(i)]
    rows += [("target", "flu", "c")] * (7 if with_target else 0)
    patient, ill, ward = zip(*rows, strict=True)
    return pa.table({"patient": patient, "ill": ill, "ward": ward})


def test_a_release_about_persons_says_so_everywhere(tmp_path: Path) -> None:
    """Ledger, guarantee, file, report and the answer to who asks about a person."""
    ledger, path = tmp_path / "visits.ledger", tmp_path / "visits.jct"
    table = visits(with_target=True)
    made = release(table, VISITS, Budget(epsilon=50.0), ledger=ledger, path=path)
    words = "add or remove one person with up to 3 rows"
    assert str(Ledger(ledger).neighbours) == words
    assert words in str(made.guarantee)
    from juncture.publish.release import load  # noqa: PLC0415

    read = load(path)
    assert read.guarantee == made.guarantee
    assert read.schema is not None
    assert read.schema.person == VISITS.person
    page = render_report(read)
    assert "all rows of one person, added or removed" in page
    assert "At most 3 rows of each person" in page
    assert "knows all rows of everybody else" in page
    assert list(made.model.domain) == ["ill", "ward"]
    assert made.model.total == pytest.approx(1 + 2 + 3 * 6 + 3, abs=2)
    for ask in (
        lambda: read.sql("SELECT patient, COUNT(*) FROM t GROUP BY patient"),
        lambda: read.project(["patient"]),
    ):
        with pytest.raises(UnknownAttribute, match="tells people apart"):
            ask()
    with pytest.raises(UnknownAttribute, match="must name columns"):
        read.sql("SELECT COUNT(*) FROM t WHERE nobody = 1")
    # The ledger goes on with the same persons only.
    for other in (replace(VISITS, person=None), replace(VISITS, person=Person("patient", 4))):
        with pytest.raises(InvalidInput, match="must protect what the ledger does"):
            release(table, other, Budget(epsilon=1.0), ledger=ledger)


EPSILON = 1.0


class NoLedger(Ledger):
    """A budget without its file: for thousands of runs."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.budget, self.neighbours = Budget(epsilon=1e9), neighbours

    def spend(self, *events: Event, ticket: Ticket | None = None) -> list[Entry]:  # noqa: ARG002
        """Nothing to write."""
        return []


class HalfSampler(SeededSampler):
    """Half the noise."""

    def add_noise(self, values: Any, noise: Noise, scale: float) -> Any:
        """See `Sampler.add_noise`."""
        return super().add_noise(values, noise, 0.5 * scale)


def read_visits(*, with_target: bool) -> Source:
    """The table with its rows limited."""
    return read_table(visits(with_target=with_target), VISITS)


def forget_limit(*, with_target: bool) -> Source:
    """A broken copy: every row counts, and it says otherwise."""
    plain = replace(VISITS, person=None)
    source = read_table(visits(with_target=with_target), plain)
    assert isinstance(source, CodedTable)
    source.person = VISITS.person
    return source


@cache
def audited(read: Any, half: bool, n_rows: int, price: Pure | ZCDP) -> float:
    """The lower bound of epsilon from many runs on tables that differ in one person."""
    sides = []
    for side, with_target in enumerate((True, False)):
        found = []
        for number in range(8):  # the rows that count are drawn anew for each
            source = read(with_target=with_target)
            rng = np.random.default_rng([side, number])
            person = VISITS.person if n_rows == 3 else Person("patient", n_rows)
            source.person = person
            ledger = NoLedger(Neighbours.ADD_OR_REMOVE.of(person))
            curator = SimulatedCurator(source, ledger, rng=rng)
            if half:
                curator._sampler = HalfSampler(rng)
            found += [curator.measure(("ill", "ward"), price).values[2] for _ in range(400)]
        sides.append(np.array(found))
    return lower_bound(*sides)


@pytest.mark.slow
@pytest.mark.parametrize("price", [Pure(EPSILON), ZCDP(EPSILON**2 / 4)], ids=str)
def test_a_whole_person_is_protected(price: Pure | ZCDP) -> None:
    """From raw tables to noisy counts; a copy with half the noise, or without limit, is caught.

    The Gaussian is compared with what the same noise allows at most in these many runs.
    """
    honest = audited(read_visits, half=False, n_rows=3, price=price)
    assert honest <= EPSILON
    for broken in (
        audited(read_visits, half=True, n_rows=3, price=price),
        audited(forget_limit, half=False, n_rows=3, price=price),
        audited(read_visits, half=False, n_rows=1, price=price),
    ):
        assert broken > EPSILON
