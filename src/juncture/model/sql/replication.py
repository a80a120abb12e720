"""The answers of many replicas to one SELECT, group by group, beside the model's own.

A replica answers the same sums as the model, over the groups that the model's answer has. Sums come
for all replicas at once, with the replicas on their first axis; aggregates are made of them as of
any others, and the outputs of all replicas are one more run of DuckDB. What depends on other rows
(windows), or on which rows there are, has no replicas; nor has a query over another's answer.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from juncture.model.sql.aggregates import MIN_SHARE, Aggregate, Total, compute
from juncture.model.sql.answer import SqlAnswer
from juncture.model.sql.factored import Factored
from juncture.model.sql.groups import GroupTable, Outputs, known_column
from juncture.model.sql.joint import Joint
from juncture.model.sql.question import Question
from juncture.model.sql.syntax import Expr, find_aggregates, write
from juncture.tables.layout import Vector
from juncture.tables.queries.products import Kron

Grades = NDArray[np.int8]


class Replies(NamedTuple):
    """What answers for replicas."""

    n: int
    """How many replies there are to each question."""
    ask: Callable[[Kron], Vector | None]
    """Their answers to a factored query for one record, replies on the first axis; or None where
    nobody knows."""
    grade: Callable[[Kron], Grades]
    """What each answer of a factored query rests on; larger is weaker."""
    ask_plain: Callable[[Kron], tuple[Vector, Vector]]
    """What measurements alone say of each answer, for one record, and its deviation; not a number
    where they say nothing."""
    ask_noise: Callable[[Kron], Vector]
    """How far the noise of single columns moves each answer, for one record."""


class OutputKind(Enum):
    """What a column of an answer is."""

    COUNT = "count"
    SUM = "sum"
    OTHER = "other"


class Moments(NamedTuple):
    """What the width of an assumed count, sum or average depends on."""

    n: Vector
    """How many records it is of."""
    size: Vector
    """What a record that is added or missing changes in it: the root of the mean square."""
    noise: Vector
    """How far the noise of single columns moves it, at the level that is asked for."""


class ReplicatedColumn(NamedTuple):
    """One output that is made of aggregates, for the rows of the answer."""

    kind: OutputKind
    grades: Grades
    """What each row's value rests on; larger is weaker."""
    values: Vector | None
    """The values of the replicas, replies on the first axis; None where nobody knows."""
    moments: Moments | None = None
    """Of a count, a sum or an average; None for other outputs."""
    plain: tuple[Vector, Vector] | None = None
    """What measurements alone say of a count, sum or average, and its deviation; else None."""
    query: tuple[Kron, float] | None = None
    """A count or sum as one factored query, and what multiplies it; None for other outputs."""
    extent: tuple[float, float] | None = None
    """The least and the largest value that an average is of; None for other outputs."""


class ReplicatedAnswer(NamedTuple):
    """An answer with what the replicas say."""

    answer: SqlAnswer
    columns: tuple[ReplicatedColumn | None, ...]
    """For each column; None for groups, and for what has no replicas."""


class _Unknown(Exception):
    """No replica knows a sum."""


class _Made(NamedTuple):
    """One aggregate in each of the model's groups."""

    grades: Grades
    values: Vector | None


def replicate(
    question: Question, groups: GroupTable, way: Factored | Joint, replies: Replies
) -> tuple[SqlAnswer, tuple[ReplicatedColumn | None, ...]]:
    """The rows of the answer, and for each output what replicas say of it."""
    answer, rows = Outputs(question, groups).select()
    made = (
        _sum_factored(question, groups, way, replies)
        if isinstance(way, Factored)
        else _sum_jointly(question, groups, way, replies)
    )
    outputs = _evaluate(question, groups, made, replies.n)
    columns = list[ReplicatedColumn | None]()
    for index, node in enumerate(question.outputs):
        column = _read_column(question, node, made, outputs[index], rows)
        if column is not None:
            column = column._replace(query=_find_query(question, node, way))
        if column is not None and isinstance(way, Factored):
            if column.grades.any():
                column = column._replace(
                    moments=_find_moments(question, node, way, groups, rows, replies)
                )
            plain = _find_plain(question, node, way, groups, rows, replies)
            column = column._replace(plain=plain, extent=_find_extent(question, node, way))
        columns.append(column)
    return answer, tuple(columns)


def _find_moments(
    question: Question, node: Expr, way: Factored, groups: GroupTable, rows: list[int],
    replies: Replies,
) -> Moments | None:  # fmt: skip
    aggregate = question.aggregates.get(write(node.unnest()))
    if aggregate is None or not isinstance(aggregate.node, exp.Count | exp.Sum | exp.Avg):
        return None
    assert groups.cells is not None
    cells = groups.cells[rows]

    def read(other: Expr) -> Vector:
        own = Aggregate(other, aggregate.arguments, aggregate.conditions)
        values, known = compute(own, way.split, way.total, way.n_records)
        return np.asarray(np.where(known, values, 0.0).reshape(-1)[cells])

    def ask_noise(total: Total) -> Vector:
        query, constant = way.make_query(total)
        found = replies.ask_noise(query).reshape(-1)[cells]
        return np.asarray(way.n_records * abs(constant) * found)

    n = read(exp.Count())
    sums = _find_total(aggregate, way)
    if isinstance(aggregate.node, exp.Count):
        assert sums is not None, "a count is one total"
        return Moments(n, np.ones(len(n)), ask_noise(sums))
    (argument,) = aggregate.arguments
    if sums is None or len(question.attributes(argument)) != 1:
        return None
    spread, mean = (read(each(this=argument.copy())) for each in (exp.StddevPop, exp.Avg))
    if isinstance(aggregate.node, exp.Sum):
        return Moments(n, np.hypot(spread, mean), ask_noise(sums))
    off = _subtract(argument, float(n @ mean) / max(float(n.sum()), 1e-300))
    n_least = np.maximum(n, 1.0)
    return Moments(n, spread / n_least, ask_noise(sums._replace(factors=(off,))) / n_least)


def _find_query(question: Question, node: Expr, way: Factored | Joint) -> tuple[Kron, float] | None:
    """A count or sum as one factored query; of a joint question, one that holds its counts."""
    aggregate = question.aggregates.get(write(node.unnest()))
    if aggregate is None or isinstance(aggregate.node, exp.Avg):
        return None
    if isinstance(way, Joint):
        return (way.make_query(), 1.0) if isinstance(aggregate.node, exp.Count) else None
    total = _find_total(aggregate, way)
    return None if total is None else way.make_query(total)


def _find_extent(question: Question, node: Expr, way: Factored) -> tuple[float, float] | None:
    """What an average of a column lies between, whatever the records."""
    aggregate = question.aggregates.get(write(node.unnest()))
    if aggregate is None or not isinstance(aggregate.node, exp.Avg):
        return None
    (argument,) = aggregate.arguments
    if not isinstance(argument, exp.Column):
        return None
    low, high = way.find_extent(Total((argument,), (argument,), aggregate.conditions))
    return (low, high) if low <= high else None


def _find_total(aggregate: Aggregate, way: Factored) -> Total | None:
    """The one total that a count, sum or average adds up; None if there are several."""
    arguments, conditions = aggregate.arguments, aggregate.conditions
    if isinstance(aggregate.node, exp.Count):
        return Total((), arguments, conditions, counts_outside=True)
    if not isinstance(aggregate.node, exp.Sum | exp.Avg) or len(way.split(arguments[0])) > 1:
        return None
    return Total(arguments, arguments, conditions)


def _find_plain(
    question: Question, node: Expr, way: Factored, groups: GroupTable, rows: list[int],
    replies: Replies,
) -> tuple[Vector, Vector] | None:  # fmt: skip
    """What measurements alone say of a count, or of a sum or average that is one factored query."""
    aggregate = question.aggregates.get(write(node.unnest()))
    sums = None if aggregate is None else _find_total(aggregate, way)
    if aggregate is None or sums is None:
        return None
    assert groups.cells is not None
    cells = groups.cells[rows]

    def ask(total: Total) -> tuple[Vector, Vector]:
        query, constant = way.make_query(total)
        value, stddev = (each.reshape(-1)[cells] for each in replies.ask_plain(query))
        return constant * value, abs(constant) * stddev

    if not isinstance(aggregate.node, exp.Avg):
        value, stddev = ask(sums)
        return way.n_records * value, way.n_records * stddev

    def read(total: Total) -> Vector:
        return np.asarray(way.total(total).reshape(-1)[cells])

    return _find_plain_mean(sums, ask, read)


def _find_plain_mean(
    sums: Total, ask: Callable[[Total], tuple[Vector, Vector]], read: Callable[[Total], Vector]
) -> tuple[Vector, Vector]:
    """What measurements alone say of an average a, to first order around the model's.

    The sum of x - a over the records is zero for the model; what it is for the measurements, over
    the number of records, is how much larger the average is. Groups have different a: the sums
    of x, x - h and x - 2 h give it for all of them, since it is a line in a, and its variance is a
    parabola. None of these is the number of records alone, which others may have measured too.
    """
    (x,) = sums.factors
    n = read(sums._replace(factors=()))
    n = np.where(n > MIN_SHARE, n, np.nan)
    mean = read(sums) / n
    step = float(np.nanmax(np.abs(mean), initial=0.0)) or 1.0

    def ask_less(times: float) -> tuple[Vector, Vector]:
        return ask(sums._replace(factors=(_subtract(x, times * step),)))

    (first, sd_0), (second, sd_1), (_, sd_2) = ask(sums), ask_less(1.0), ask_less(2.0)
    bend = (sd_2**2 - 2.0 * sd_1**2 + sd_0**2) / 2.0
    at = mean / step
    variance = sd_0**2 + at * (sd_1**2 - sd_0**2 - bend) + at**2 * bend
    return mean + (first + at * (second - first)) / n, np.sqrt(np.maximum(variance, 0.0)) / n


def _subtract(x: Expr, number: float) -> Expr:
    """An expression less a number."""
    literal = exp.Paren(this=exp.Literal.number(number))
    return exp.Sub(this=exp.Paren(this=x.copy()), expression=literal)


def _sum_factored(
    question: Question, groups: GroupTable, way: Factored, replies: Replies
) -> dict[str, _Made]:
    assert groups.cells is not None
    made = {}
    for text, aggregate in question.aggregates.items():
        asked: list[Kron] = []
        try:
            values = _compute(aggregate, way, replies, asked)[:, groups.cells]
        except _Unknown:
            values = None
        grades = np.zeros(max(1, int(np.prod(way.shape))), dtype=np.int8)
        for kron in asked:
            grades = np.maximum(grades, replies.grade(kron).reshape(-1))
        made[text] = _Made(grades[groups.cells], values)
    return made


def _compute(aggregate: Aggregate, way: Factored, replies: Replies, asked: list[Kron]) -> Vector:
    """An aggregate for all replies and all groups; not a number where there are no records."""
    unknown = list[Kron]()
    shape = [replies.n, *way.shape]

    def total(sums: Total) -> Vector:
        question, constant = way.make_query(sums)
        asked.append(question)
        values = replies.ask(question)
        if values is None:
            unknown.append(question)
            return np.ones(shape)
        return constant * values.reshape(shape)

    values, known = compute(aggregate, way.split, total, way.n_records)
    if unknown:
        raise _Unknown
    return np.asarray(np.where(known, values, np.nan).reshape(replies.n, -1))


def _sum_jointly(
    question: Question, groups: GroupTable, way: Joint, replies: Replies
) -> dict[str, _Made]:
    query = way.make_query()
    weakest = replies.grade(query).max(initial=0)
    grades = np.full(groups.n_rows, weakest, dtype=np.int8)
    shares = replies.ask(query)
    if shares is None:
        return {text: _Made(grades, None) for text in question.aggregates}
    tables = [way.table_of(share) for share in shares]
    return {
        text: _Made(grades, np.array([_to_numbers(table.aggregates[i]) for table in tables]))
        for i, text in enumerate(question.aggregates)
    }


def _to_numbers(column: pa.Array | pa.ChunkedArray) -> Vector:
    """A column as numbers; anything else is not a number."""
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return np.full(len(column), np.nan)
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _evaluate(
    question: Question, groups: GroupTable, made: dict[str, _Made], n: int
) -> list[Vector | None]:
    """The outputs of all replies in all groups: one more run, over all of them together."""
    size = n * groups.n_rows
    aggregates = []
    for each in made.values():
        values = np.full(size, np.nan) if each.values is None else each.values.reshape(-1)
        aggregates.append(known_column(values, np.isfinite(values)))
    keys, left_out = ([_tile(c, n) for c in part] for part in (groups.keys, groups.left_out))
    columns = Outputs(question, GroupTable(keys, aggregates, left_out, size)).evaluate()
    numbers = [None if column is None else _to_numbers(column) for column in columns]
    return [None if column is None else column.reshape(n, -1) for column in numbers]


def _tile(column: Any, n: int) -> pa.ChunkedArray:  # noqa: ANN401  (chunked or not)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array(chunks * n, type=column.type)


def _read_column(
    question: Question, node: Expr, made: dict[str, _Made], output: Vector | None, rows: list[int]
) -> ReplicatedColumn | None:
    texts = [write(each) for each in find_aggregates(node)]
    if not texts or output is None or node.find(exp.Window):
        return None
    parts = [made[text] for text in texts]
    grades = np.max([part.grades for part in parts], axis=0)[rows]
    # Every possible value has some weight, in replicas too: their extremes are the domain's.
    known = all(part.values is not None for part in parts) and not node.find(exp.Min, exp.Max)
    return ReplicatedColumn(_find_kind(question, node), grades, output[:, rows] if known else None)


def _find_kind(question: Question, node: Expr) -> OutputKind:
    aggregate = question.aggregates.get(write(node.unnest()))
    if aggregate is None:
        return OutputKind.OTHER
    if isinstance(aggregate.node, exp.Count):
        return OutputKind.COUNT
    return OutputKind.SUM if isinstance(aggregate.node, exp.Sum) else OutputKind.OTHER
