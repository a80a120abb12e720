"""The question behind a chart as SQL: the query that is shown is the query that is run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from juncture._util.sql import quote_name, quote_text
from juncture._util.text import choose_name
from juncture.errors import InvalidInput
from juncture.tables.codebook import Codebook, Coding, Meaning, Special
from juncture.tables.domain import Domain

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class OneOf:
    """The records whose attribute has one of some codes."""

    attribute: str
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Between:
    """The records whose number lies between two ends; an end that is None is open."""

    attribute: str
    low: float | None
    high: float | None


Condition = OneOf | Between


def build_sql(
    codebook: Codebook,
    attributes: Sequence[str],
    conditions: Iterable[Condition],
    cases: Mapping[str, str] | None = None,
) -> str:
    """A SELECT that counts all combinations of some attributes' values, under conditions.

    - `cases`: for attributes that are counted in groups, the group of a value as an expression.
    """
    domain = codebook.domain
    names = {name: quote_identifier(name) for name in domain.project(attributes)}
    given = cases or {}
    outputs = [f"{given[n]} AS {text}" if n in given else text for n, text in names.items()]
    outputs.append(f"COUNT(*) AS {quote_identifier(choose_name('count', attributes))}")
    joint = ",\n  " if given else ", "
    lines = [f"SELECT {joint.join(outputs)}", *_source_lines(codebook, conditions)]
    if names:
        keys = [str(rank + 1) if n in given else names[n] for rank, n in enumerate(names)]
        lines.append(f"GROUP BY {', '.join(keys)}")
    return "\n".join(lines)


def find_codes(codebook: Codebook, conditions: Iterable[Condition]) -> dict[str, list[int]]:
    """The codes of each attribute that meet all conditions on it.

    A range that divides a bin is refused: which records of the bin lie inside is not known.
    """
    allowed: dict[str, set[int]] = {}
    for each in conditions:
        name = _resolve_attribute(codebook.domain, each)
        coding = codebook[name]
        if isinstance(each, OneOf):
            condition_sql(each, coding)  # refuses codes that there are not
            codes = set(each.codes)
        else:
            codes = {c for c in range(coding.size) if _lies_within(coding, c, each)}
        allowed[name] = allowed.get(name, codes) & codes
    return {name: sorted(codes) for name, codes in allowed.items()}


def _lies_within(coding: Coding, code: int, condition: Between) -> bool:
    """Whether the value of a code is a number inside a range; refused where only a part is."""
    meaning = coding.meanings[code]
    low = -math.inf if condition.low is None else condition.low
    high = math.inf if condition.high is None else condition.high
    if isinstance(meaning, bool) or not isinstance(meaning, int | float | tuple):
        return False
    if not isinstance(meaning, tuple):
        return low <= meaning <= high
    first, last = meaning[0], meaning[1] - (1 if coding.counts_whole else 0)
    inside, outside = low <= first and last <= high, last < low or first > high
    if not inside and not outside and last > low and first < high:
        raise InvalidInput(
            f"`conditions` must take whole bins of {condition.attribute!r} here; got a range that "
            f"divides {coding.labels[code]}. Choose bins, or move the ends of the range."
        )
    return inside


def build_summary_sql(
    codebook: Codebook, column: str | None, conditions: Iterable[Condition]
) -> str:
    """A SELECT that counts records under conditions, and takes the mean of a column if given."""
    mean = "" if column is None else f", AVG({quote_identifier(column)}) AS mean"
    return "\n".join([f"SELECT COUNT(*) AS count{mean}", *_source_lines(codebook, conditions)])


def _source_lines(codebook: Codebook, conditions: Iterable[Condition]) -> list[str]:
    domain = codebook.domain
    texts = [condition_sql(each, codebook[_resolve_attribute(domain, each)]) for each in conditions]
    return ["FROM records", *(["WHERE " + "\n  AND ".join(texts)] if texts else [])]


def _resolve_attribute(domain: Domain, condition: Condition) -> str:
    return domain.project([condition.attribute]).attributes[0]


@lru_cache(maxsize=4096)
def quote_identifier(name: str) -> str:
    """A name in SQL, in quotes only where it needs them."""
    reserved = name.lower() in DuckDB.Generator.RESERVED_KEYWORDS
    known = reserved or name.upper() in DuckDB.Tokenizer.KEYWORDS
    if _PLAIN_NAME.fullmatch(name) and not known:
        tree = sqlglot.parse_one(name, read="duckdb")
        if isinstance(tree, exp.Column) and tree.name == name:
            return name
    return quote_name(name)


def format_literal(value: str | float | bool) -> str:
    """A value in SQL."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return quote_text(value)
    return repr(int(value) if float(value).is_integer() and abs(value) < 2**53 else value)


def condition_sql(condition: Condition, coding: Coding) -> str:
    """A condition in SQL; it is about one attribute, as `Model.sql` requires."""
    if isinstance(condition, Between):
        return _within_sql(condition)
    codes = sorted(set(condition.codes))
    if not codes or not 0 <= codes[0] <= codes[-1] < coding.size:
        raise InvalidInput(
            f"`codes` must be some of 0 to {coding.size - 1}, the codes of "
            f"{condition.attribute!r}; got {codes}."
        )
    parts = list(_alternatives(quote_identifier(condition.attribute), coding, codes))
    joined = " OR ".join(parts)
    return joined if len(parts) == 1 else f"({joined})"


def _within_sql(condition: Between) -> str:
    name, low, high = quote_identifier(condition.attribute), condition.low, condition.high
    if low is not None and high is not None:
        return f"{name} BETWEEN {format_literal(low)} AND {format_literal(high)}"
    if low is None and high is None:
        raise InvalidInput(
            "`low` and `high` must not both be open; got neither. Give at least one of them."
        )
    return (
        f"{name} >= {format_literal(low)}"
        if low is not None
        else f"{name} <= {format_literal(high or 0.0)}"
    )


def _alternatives(name: str, coding: Coding, codes: Sequence[int]) -> Iterator[str]:
    """Conditions to be joined by OR: intervals, single values, missing, outside."""
    meanings = [coding.meanings[code] for code in codes]
    if coding.period is not None:
        yield from _periods_sql(name, coding, [c for c in codes if coding.spreads[c] is not None])
        meanings = [m for m in meanings if not isinstance(m, tuple)]
    for low, high in _merge_intervals(m for m in meanings if isinstance(m, tuple)):
        yield f"{name} >= {format_literal(low)} AND {name} < {format_literal(high)}"
    yield from _values_sql(name, coding, [m for m in meanings if _is_value(m)])
    if None in meanings:
        yield f"{name} IS NULL"
    special = [m for m in meanings if isinstance(m, Special)]
    if special:
        yield _outside_sql(name, coding, special)


def _periods_sql(name: str, coding: Coding, codes: Sequence[int]) -> Iterator[str]:
    """Periods by their names; those that follow each other by the first and the last."""
    single: list[str] = []
    for _, run in groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0]):
        names = [format_literal(str(coding.labels[code])) for _, code in run]
        if len(names) > 2:
            yield f"{name} BETWEEN {names[0]} AND {names[-1]}"
        else:
            single += names
    if single:
        yield f"{name} = {single[0]}" if len(single) == 1 else f"{name} IN ({', '.join(single)})"


def _is_value(meaning: Meaning) -> bool:
    return meaning is not None and not isinstance(meaning, tuple | Special)


def _merge_intervals(intervals: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Intervals in order; those that touch become one."""
    last: tuple[float, float] | None = None
    for low, high in sorted(intervals):
        if last is not None and last[1] == low:
            last = (last[0], high)
        else:
            if last is not None:
                yield last
            last = (low, high)
    if last is not None:
        yield last


def _values_sql(name: str, coding: Coding, values: Sequence[Meaning]) -> Iterator[str]:
    if not values:
        return
    kinds = {isinstance(m, str) for m in coding.meanings if _is_value(m)}
    if len(kinds) > 1:  # SQL compares texts with texts only
        name, values = f"CAST({name} AS TEXT)", [str(value) for value in values]
    single: list[Meaning] = []
    for run in _group_runs(coding, values):
        if len(run) > 2:
            yield f"{name} BETWEEN {format_literal(run[0])} AND {format_literal(run[-1])}"  # type: ignore[arg-type]
        else:
            single += run
    texts = [format_literal(value) for value in single]  # type: ignore[arg-type]
    if len(texts) == 1:
        yield f"{name} = {texts[0]}"
    elif texts:
        yield f"{name} IN ({', '.join(texts)})"


def _group_runs(coding: Coding, values: Sequence[Meaning]) -> Iterator[list[Meaning]]:
    """Values that follow each other, where all values are numbers; else every value alone."""
    regular = [m for m in coding.meanings if m is not None and not isinstance(m, Special)]
    if not all(type(m) in (int, float) for m in regular):
        yield from ([value] for value in values)
        return
    ranks: dict[Meaning, int] = {number: rank for rank, number in enumerate(sorted(regular))}
    ordered = sorted(ranks[value] for value in values)
    numbers = list(ranks)
    for _, run in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0]):
        yield [numbers[rank] for _, rank in run]


def _outside_sql(name: str, coding: Coding, chosen: Sequence[Special]) -> str:
    """A condition for values outside the domain: not missing, but no comparison decides them."""
    if len(chosen) < sum(isinstance(m, Special) for m in coding.meanings):
        raise InvalidInput(
            f"`codes` must have all codes outside the domain or none; got {len(chosen)} of them. "
            "SQL cannot tell them apart."
        )
    known = f"{name} = {name}"
    if coding.period is not None:
        known = f"{name} >= {format_literal(str(coding.labels[0]))}"
    elif coding.has_intervals:
        numbers = [m[0] if isinstance(m, tuple) else m for m in coding.meanings]
        lowest = min(number for number in numbers if isinstance(number, int | float))
        known = f"{name} >= {format_literal(lowest)}"
    return f"NOT COALESCE({known}, {name} IS NULL)"
