"""What a draft needs to know about every column of a private table, read in one pass.

A sample says what the texts of each column are (numbers, dates, ...), and each column is then
summarized as that, some columns at a time. So the table should be one that gives columns quickly: a
file of texts is copied into the engine first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from juncture._util.sql import quote_name, quote_text
from juncture.tables.columns import ColumnSummary, RawType
from juncture.tables.columns.summary import MAX_DRAFT_VALUES

MISSING_TEXTS = frozenset(
    ("", "?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "unknown", "missing")
)
"""Texts that stand for a missing value in many tables, in lower case."""
# The sample has at most this many values, and this many rows.
_SAMPLE_VALUES, _SAMPLE_ROWS = 1_000_000, 20_000
# An engine's time to plan a query grows with the square of its answers.
_MAX_COLUMNS = 40
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NUMBERS = {"FLOAT", "DOUBLE", "HUGEINT", "UBIGINT", "UHUGEINT"}
_N_QUANTILES = 201
_MAX_EXACT = 2**53


@dataclass(frozen=True)
class Profile:
    """One column of a private table."""

    name: str
    summary: ColumnSummary | None
    """What a kind of column may draft itself from; None if there is nothing to describe."""
    missing_values: tuple[str, ...] = ()
    """Texts that stand for a missing value."""
    n_values: int = 0
    """How many values are not missing."""
    n_distinct: int = 0
    """How many of them differ, about."""
    has_own_name: bool = False
    """Whether the column's name is among its values."""


@dataclass(frozen=True)
class _Counts:
    """The answers of the engine about one column."""

    n_records: int
    n_present: int
    n_readable: int
    low: Any
    high: Any
    is_whole: bool
    n_distinct: int
    n_nan: int


class _Table:
    """The table as a source of SQL."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation
        self.columns = dict(zip(relation.columns, map(str, relation.dtypes), strict=True))

    def fetch(self, answers: str, rest: str = "") -> list[tuple[Any, ...]]:
        return list(self._query(answers, rest).fetchall())

    def sample(self, columns: Mapping[str, str]) -> pa.Table:
        """Some rows of these expressions, as columns c0, c1 and so on."""
        n_rows = max(200, min(_SAMPLE_ROWS, _SAMPLE_VALUES // max(1, len(columns))))
        listed = ", ".join(f"{sql} AS c{index}" for index, sql in enumerate(columns.values()))
        sampled = f"USING SAMPLE reservoir({n_rows} ROWS) REPEATABLE (0)"
        found = self._query(listed, sampled).to_arrow_table()
        return found.rename_columns(list(columns))

    def _query(self, answers: str, rest: str) -> Any:  # noqa: ANN401
        return self._relation.query(
            "juncture_table", f"SELECT {answers} FROM juncture_table {rest}"
        )


def exact_profiles(relation: duckdb.DuckDBPyRelation) -> list[Profile]:
    """A profile of every column, in order."""
    table = _Table(relation)
    known = {name: raw_type(kind) for name, kind in table.columns.items()}
    readable = {name: kind for name, kind in known.items() if kind is not None}
    sample = table.sample({name: _sample_sql(name, kind) for name, kind in readable.items()})
    texts = [name for name, kind in readable.items() if kind is RawType.TEXT]
    guessed = _guess_types(sample, texts)
    readable |= {name: kind for name, (kind, _) in guessed.items()}
    counted = _count_all(table, readable)
    listed = {name: _list_unreadable(table, name, readable[name], c) for name, c in counted.items()}
    wrong = {name: RawType.TEXT for name, values in listed.items() if values is None}
    readable |= wrong  # the sample was too small to see what else the column holds
    counted |= _count_all(table, wrong)
    profiles = []
    for name in table.columns:
        if name not in readable:
            profiles.append(Profile(name, None))
            continue
        missing_values = listed[name] or ()
        profile = _make_profile(table, name, readable[name], counted[name], missing_values)
        own = name in guessed and guessed[name][1]
        profiles.append(_add_quantiles(replace(profile, has_own_name=own), sample[name]))
    return profiles


def raw_type(kind: str) -> RawType | None:
    """What the engine's type holds; None for what no kind of column describes."""
    if kind == "BOOLEAN":
        return RawType.BOOLEAN
    if kind in _INTEGERS:
        return RawType.INTEGER
    if kind in _NUMBERS or kind.startswith("DECIMAL"):
        return RawType.NUMBER
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return RawType.DATE
    return RawType.TEXT if kind == "VARCHAR" or kind.startswith("ENUM") else None


def _sample_sql(name: str, kind: RawType) -> str:
    cast = "DOUBLE" if kind in (RawType.INTEGER, RawType.NUMBER) else "VARCHAR"
    return f"CAST({quote_name(name)} AS {cast})"


def _guess_types(sample: pa.Table, names: Sequence[str]) -> dict[str, tuple[RawType, bool]]:
    """For columns of texts, what most of them are, and whether the name is among them."""
    if not names:
        return {}
    columns = ", ".join(quote_name(name) for name in names)
    missing = ", ".join(map(quote_text, sorted(MISSING_TEXTS)))
    number = "isfinite(TRY_CAST(value AS DOUBLE))"
    code = "regexp_matches(value, '^0[0-9]')"  # such as a postal code: its zeros matter
    with duckdb.connect() as connection:
        connection.register("sample", sample)
        rows = connection.execute(
            f"SELECT index, count(*), count(*) FILTER ({number}), "
            "count(TRY_CAST(value AS DATE)), count(*) FILTER (lower(value) IN ('true', 'false')), "
            f"count(*) FILTER ({code}), count(*) FILTER (value = name) FROM (SELECT "
            f"unnest([{columns}]) AS value, unnest(range({len(names)})) AS index, "
            f"unnest([{', '.join(map(quote_text, names))}]) AS name FROM sample) "
            f"WHERE value IS NOT NULL AND lower(trim(value)) NOT IN ({missing}) GROUP BY index"
        ).fetchall()
    result = dict.fromkeys(names, (RawType.TEXT, False))
    for index, n_values, n_numbers, n_dates, n_truths, n_codes, n_own in rows:
        kind = RawType.TEXT
        if 2 * n_dates > n_values:
            kind = RawType.DATE
        elif 2 * n_truths > n_values:
            kind = RawType.BOOLEAN
        elif 2 * n_numbers > n_values and not n_codes:
            kind = RawType.NUMBER
        result[names[index]] = kind, bool(n_own)
    return result


def _value_sql(name: str, kind: RawType) -> str:
    """The value as its type, NULL where it is not of it."""
    raw = quote_name(name)
    match kind:
        case RawType.BOOLEAN:
            return f"CASE WHEN lower(CAST({raw} AS VARCHAR)) IN ('true', 'false') THEN {raw} END"
        case RawType.INTEGER | RawType.NUMBER:
            return f"TRY_CAST({raw} AS DOUBLE)"
        case RawType.DATE:
            return f"TRY_CAST({raw} AS DATE)"
        case RawType.TEXT:
            return f"CAST({raw} AS VARCHAR)"


def _answers_sql(name: str, kind: RawType) -> list[str]:
    """What is asked about a column: the fields of `_Counts`."""
    raw, value = quote_name(name), _value_sql(name, kind)
    whole, distinct, nan, bounded = "FALSE", "0", "0", value
    match kind:
        case RawType.INTEGER | RawType.NUMBER:
            bounded = f"CASE WHEN isfinite({value}) THEN {value} END"
            whole, nan = f"bool_and({value} = floor({value}))", f"count(*) FILTER (isnan({value}))"
            distinct = f"approx_count_distinct({value})"
        case RawType.DATE:
            bounded = f"CASE WHEN year({value}) BETWEEN 2 AND 9998 THEN {value} END"
        case RawType.TEXT:
            distinct = f"approx_count_distinct({value})"
    bounds = [f"min({bounded})", f"max({bounded})"]
    return ["count(*)", f"count({raw})", f"count({value})", *bounds, whole, distinct, nan]


def _count_all(table: _Table, kinds: Mapping[str, RawType]) -> dict[str, _Counts]:
    result: dict[str, _Counts] = {}
    for chunk in _chunks(list(kinds)):
        asked = [sql for name in chunk for sql in _answers_sql(name, kinds[name])]
        (row,) = table.fetch(", ".join(asked))
        size = len(row) // len(chunk)
        for index, name in enumerate(chunk):
            result[name] = _Counts(*row[index * size : (index + 1) * size])
    return result


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _MAX_COLUMNS):
        yield names[start : start + _MAX_COLUMNS]


def _list_unreadable(
    table: _Table, name: str, kind: RawType, counts: _Counts
) -> tuple[str, ...] | None:
    """The values that are not of the column's type, if all of them stand for a missing value."""
    if counts.n_readable == counts.n_present:
        return ()
    values = _distinct(
        table, name, f"{quote_name(name)} IS NOT NULL AND {_value_sql(name, kind)} IS NULL",
        len(MISSING_TEXTS) + 1,
    )  # fmt: skip
    return values if all(map(_is_missing_text, values)) else None


def _is_missing_text(value: str) -> bool:
    return value.strip().lower() in MISSING_TEXTS


def _distinct(table: _Table, name: str, condition: str, max_values: int) -> tuple[str, ...]:
    rows = table.fetch(
        f"DISTINCT CAST({quote_name(name)} AS VARCHAR) AS value",
        f"WHERE {condition} ORDER BY value LIMIT {max_values}",
    )
    return tuple(row[0] for row in rows)


def _make_profile(
    table: _Table, name: str, kind: RawType, counts: _Counts, missing_values: tuple[str, ...]
) -> Profile:
    has_missing = counts.n_readable < counts.n_records or counts.n_nan > 0
    low, high, values = counts.low, counts.high, partial(_list_values, table, name, counts)
    if kind is RawType.TEXT:
        present = values(MAX_DRAFT_VALUES + len(MISSING_TEXTS)) or ()
        missing_values = tuple(filter(_is_missing_text, present))
        values = partial(_keep_values, values, missing_values)
        low = None if present and len(present) == len(missing_values) else low
    exact = kind in (RawType.INTEGER, RawType.NUMBER) and _is_exact(low, high)
    if low is None or (kind is RawType.INTEGER and not exact):
        return Profile(name, None)
    if kind is RawType.NUMBER and counts.is_whole and exact:
        kind = RawType.INTEGER
    if kind is RawType.INTEGER:
        low, high = int(low), int(high)
    if kind is RawType.BOOLEAN:
        low, high = str(low).lower() == "true", str(high).lower() == "true"
    summary = ColumnSummary(kind, low, high, has_missing or bool(missing_values), values)
    return Profile(name, summary, missing_values, counts.n_readable, counts.n_distinct)


def _is_exact(low: float | None, high: float | None) -> bool:
    """Whether whole numbers between two bounds are exact as floating-point numbers."""
    return low is not None and high is not None and max(abs(low), abs(high)) <= _MAX_EXACT


def _list_values(
    table: _Table, name: str, counts: _Counts, max_values: int
) -> tuple[str, ...] | None:
    """All distinct values as texts, or None if there are too many; their number is approximate."""
    if counts.n_distinct > 2 * max_values:
        return None
    values = _distinct(table, name, f"{quote_name(name)} IS NOT NULL", max_values + 1)
    return values if len(values) <= max_values else None


def _keep_values(
    list_values: partial[tuple[str, ...] | None], unwanted: Iterable[str], max_values: int
) -> tuple[str, ...] | None:
    """The values that do not stand for a missing one, or None if there are too many."""
    gone = set(unwanted)
    values = list_values(max_values + len(gone))
    return None if values is None else tuple(each for each in values if each not in gone)


def _add_quantiles(profile: Profile, sample: pa.ChunkedArray) -> Profile:
    summary = profile.summary
    if summary is None or summary.raw_type not in (RawType.INTEGER, RawType.NUMBER):
        return profile
    numbers = np.asarray(_to_numbers(sample))
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return profile
    levels = np.linspace(0, 1, _N_QUANTILES)
    inner = np.quantile(finite, levels, method="inverted_cdf").tolist()
    quantiles = (float(summary.low), *inner[1:-1], float(summary.high))
    return replace(profile, summary=replace(summary, quantiles=quantiles))


def _to_numbers(sample: pa.ChunkedArray) -> list[float]:
    return [_to_number(each) for each in sample.to_pylist() if each is not None]


def _to_number(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
