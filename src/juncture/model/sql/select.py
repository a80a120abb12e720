"""SQL answered by a model: a SELECT becomes weighted sums over the cells of a few attributes.

Where every part of the question is about one attribute, the sums are factored queries; otherwise
they are taken over the joint table of the attributes that it ties together, if that is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp

from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.sql.aggregates import Total
from juncture.model.sql.answer import SqlAnswer
from juncture.model.sql.attributes import Interval, make_pieces
from juncture.model.sql.engine import Engine, read_values
from juncture.model.sql.factored import Factored, NotFinite, is_factored
from juncture.model.sql.groups import GroupTable, Outputs
from juncture.model.sql.joint import Joint
from juncture.model.sql.notes import Note, find_dependence_notes
from juncture.model.sql.question import Question
from juncture.model.sql.ranges import find_bin_notes
from juncture.model.sql.replication import ReplicatedAnswer, Replies, replicate
from juncture.model.sql.scope import Flat, flatten
from juncture.model.sql.syntax import parse, title, write
from juncture.tables.codebook import Codebook
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.queries.products import Kron


class Source(NamedTuple):
    """What a query is asked of."""

    codebook: Codebook
    """Of all attributes, with their domain."""
    total: float
    """The number of records."""
    ask: Callable[[Kron], Vector]
    """Answers factored queries, for one record: counts are its answers times the total."""
    cliques: tuple[Clique, ...]
    """The attributes that were measured together."""


class Limits(NamedTuple):
    """How much one answer may have; None where that does not matter."""

    max_groups: int | None = None
    max_values: int | None = None
    """Groups times outputs, and groups times aggregates."""


_NO_LIMITS = Limits()
# Queries inside a query, each as often as it is used: names in WITH can double them.
_MAX_QUESTIONS = 64


def run(sql: str, source: Source, limits: Limits = _NO_LIMITS) -> SqlAnswer:
    """The answer to a SELECT; refused before anything is computed if it would be too large."""
    with _limit_depth():
        return _Session(source, limits).answer(parse(sql), {})


def run_replicated(
    sql: str, source: Source, replies: Replies, limits: Limits = _NO_LIMITS
) -> ReplicatedAnswer:
    """The answer to a SELECT, with what replicas answer to it."""
    with _limit_depth():
        return _Session(source, limits).answer_replicated(parse(sql), replies)


def count_groups(sql: str, source: Source, limits: Limits = _NO_LIMITS) -> Vector:
    """The number of records in every group of a SELECT, an axis for each grouped attribute.

    All groups are there, in the order of the codes, also those that `run` leaves out for having
    no records; no rows are made, so large tables come fast.
    """
    with _limit_depth():
        return _Session(source, limits).count(parse(sql))


@contextmanager
def _limit_depth() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise InvalidInput(
            "`sql` must not be nested so deeply; got more levels than can be followed. "
            "Write long lists with IN."
        ) from None


class _Session:
    """One question, and those inside it."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source, self._limits, self._engine = source, limits, Engine()
        self._notes: dict[Note, None] = {}
        self._n_questions = 0

    def _flatten(self, tree: exp.Select, queries: Mapping[str, exp.Select]) -> Flat:
        return flatten(tree, self._source.codebook.domain, self.answer, queries)

    def answer(self, tree: exp.Select, queries: Mapping[str, exp.Select]) -> SqlAnswer:
        """All rows: grouped, filtered, ordered and cut."""
        self._n_questions += 1
        if self._n_questions > _MAX_QUESTIONS:
            raise ModelTooLarge(
                f"`sql` must have at most {_MAX_QUESTIONS} queries inside it, each as often as it "
                "is used; got more. Ask several questions."
            )
        flat = self._flatten(tree, queries)
        if flat.rows is not None:
            return self._answer_rows(flat.tree, flat.rows)
        question = Question(flat, self._source.codebook, self._engine)
        groups, _ = self._group(question)
        self._notes |= dict.fromkeys(self._find_notes(question))
        return replace(Outputs(question, groups).answer(), notes=tuple(self._notes))

    def answer_replicated(self, tree: exp.Select, replies: Replies) -> ReplicatedAnswer:
        """The same, with what replicas say: nothing, where a query is inside another."""
        flat = self._flatten(tree, {})
        if flat.rows is not None:
            rows = self._answer_rows(flat.tree, flat.rows)
            return ReplicatedAnswer(rows, (None,) * len(rows.columns))
        question = Question(flat, self._source.codebook, self._engine)
        groups, way = self._group(question)
        self._notes |= dict.fromkeys(self._find_notes(question))
        answer, columns = replicate(question, groups, way, replies)
        if self._n_questions:
            columns = (None,) * len(columns)
        return ReplicatedAnswer(replace(answer, notes=tuple(self._notes)), columns)

    def _find_notes(self, question: Question) -> list[Note]:
        asked = set(question.attributes_of_all(question.parts))
        names = [name for name in self._source.codebook.domain if name in asked]
        return [*find_dependence_notes(names, self._source.cliques), *find_bin_notes(question)]

    def _group(self, question: Question) -> tuple[GroupTable, Factored | Joint]:
        """The groups, and the way to them."""
        _check_types(question)
        self._limit(
            _width(question), _plain_sizes(question)
        )  # before an attribute is taken to pieces
        if is_factored(question):
            factored = Factored(question, self._source.ask, self._source.total)
            self._limit(_width(question), factored.shape)
            with suppress(NotFinite):
                return factored.table(), factored
        joint = Joint(question, self._source.ask, self._source.total)
        groups = joint.table()
        self._limit(_width(question), [groups.n_rows])
        return groups, joint

    def count(self, tree: exp.Select) -> Vector:
        """The records of all groups."""
        flat = self._flatten(tree, {})
        if flat.rows is not None:
            raise InvalidInput("`sql` must count records; got a query over another's answer.")
        question = Question(flat, self._source.codebook, self._engine)
        self._limit(_width(question), _plain_sizes(question))
        question.aggregates.clear()
        if is_factored(question):
            factored = Factored(question, self._source.ask, self._source.total)
            self._limit(_width(question), factored.shape)
            return self._source.total * factored.total(Total((), (), question.conditions))
        shares = Joint(question, self._source.ask, self._source.total).counts()
        self._limit(_width(question), shares.shape)
        return self._source.total * shares

    def _limit(self, width: int, sizes: Iterable[int]) -> None:
        n_groups, (max_groups, max_values) = math.prod(sizes), self._limits
        if max_groups is not None and n_groups > max_groups:
            raise ModelTooLarge(
                f"`sql` must make at most {max_groups:,} groups; got {n_groups:,}. Group by "
                "fewer columns, or by ranges of them."
            )
        if max_values is not None and n_groups * width > max_values:
            raise ModelTooLarge(
                f"`sql` must ask for at most {max_values:,} values; got {n_groups:,} groups of "
                f"{width:,} each. Group by fewer columns, or ask for fewer sums at once."
            )

    def _answer_rows(self, tree: exp.Select, rows: SqlAnswer) -> SqlAnswer:
        """A SELECT over the rows of an answer, which are records like any others."""
        titles = tuple(title(output) for output in tree.expressions)
        self._limit(max(len(titles), len(rows.columns)), [len(rows.rows)])
        table = rows.to_arrow()
        for index, column in enumerate(table.columns):
            if column.null_count == len(column):  # of any type, not of texts
                table = table.set_column(index, rows.columns[index], pa.nulls(len(column)))
        result = self._engine.run(write(tree), t=table)
        if any(output.is_star for output in tree.expressions):
            titles = tuple(result.column_names)
        columns = [read_values(column) for column in result.columns]
        return SqlAnswer(titles, tuple(zip(*columns, strict=True)), tuple(self._notes))


def _width(question: Question) -> int:
    """The numbers that are computed, or given out, for every group."""
    return max(len(question.outputs), len(question.aggregates))


def _plain_sizes(question: Question) -> list[int]:
    """The sizes of the attributes that are grouped by as they are."""
    if question.sets is not None:
        return []
    plain = {node.name for node in question.keys if isinstance(node, exp.Column)}
    return [question.codebook.domain[name] for name in plain]


def _check_types(question: Question) -> None:
    """DuckDB's own objections to the aggregates, on a table without rows."""
    nodes = [a.node for a in question.aggregates.values()]
    names = question.attributes_of_all(nodes)
    if not nodes or not names:
        return
    columns: dict[str, pa.Array] = {}
    for name in names:
        pieces = make_pieces(name, question.codebook[name], Interval())
        columns |= {name: column.slice(0, 0) for name, column in pieces.columns.items()}
    items = ", ".join(f"{write(node)} AS a{i}" for i, node in enumerate(nodes))
    question.engine.run(f"SELECT {items} FROM cells", cells=pa.table(columns))
