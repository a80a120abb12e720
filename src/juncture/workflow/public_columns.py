"""What is publicly known of a table's columns, in short: bounds, values, or that they are bool."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from juncture._util.text import list_names
from juncture.errors import InvalidInput
from juncture.private.sources.files import TableFile, exact_relation
from juncture.tables.columns import Boolean, Categorical, Column, Date, Integer, Number
from juncture.tables.periods import Period
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    from juncture.private.sources.read import Table

Known = Column | tuple[Any, Any] | Iterable[Any] | type
"""What is known of a column: two bounds, a list of values, the type bool, or a column kind."""

# A range of more whole numbers than this is cut into bins, and of numbers always.
_MAX_SINGLE, _N_BINS = 128, 32
_DAYS_OF_MONTHS, _DAYS_OF_YEARS = 62, 5 * 366


def make_schema(
    table: Table, columns: Mapping[str, Known], missing: bool | Iterable[str] = False
) -> Schema:
    """The schema of a table's columns by what is known of them; columns of type bool need no words.

    Reads the names and types of the columns and no value. `missing` are the columns that may have
    missing values. A column of which nothing is known is refused.
    """
    types = list_types(table)
    with_missing = set(types if missing is True else () if missing is False else missing)
    absent = [name for name in (*columns, *sorted(with_missing)) if name not in types]
    if absent:
        raise InvalidInput(
            f"`columns` must name columns of the table; got {list_names(absent)}, which it does "
            f"not have. Its columns are {list_names(types)}."
        )
    known: dict[str, Known] = {name: bool for name, kind in types.items() if kind == "bool"}
    known = {name: {**known, **columns}[name] for name in types if name in {**known, **columns}}
    unknown = [name for name in types if name not in known]
    if unknown:
        raise InvalidInput(
            f"`columns` must say what every column may hold; got nothing on {list_names(unknown)}. "
            "Give two bounds, as (0, 99), or a list of values, from what is known without looking "
            f"into the table: columns={{{unknown[0]!r}: ...}}. Or give a `schema`, of which "
            "`juncture schema draft` writes a first version to review; or drop the columns."
        )
    return Schema({n: describe_column(n, known[n], missing=n in with_missing) for n in known})


def list_types(table: Table) -> dict[str, str]:
    """The names of a table's columns, each with the name of its type; "bool" for truth values."""
    if isinstance(table, str | Path | TableFile | duckdb.DuckDBPyRelation):
        relation = exact_relation(table)
        pairs = zip(relation.columns, map(str, relation.types), strict=True)
    elif isinstance(table, pa.Table | pa.RecordBatch):
        pairs = zip(table.schema.names, map(str, table.schema.types), strict=True)
    elif hasattr(table, "columns") and hasattr(table, "dtypes"):
        pairs = zip(table.columns, map(_type_name, table.dtypes), strict=True)
    else:
        raise InvalidInput(
            f"`table` must be a data frame, an Arrow table or a file; got {type(table).__name__}."
        )
    return {str(name): "bool" if kind.lower() in _BOOL else kind for name, kind in pairs}


_BOOL = ("bool", "boolean", "bool[pyarrow]")


def _type_name(kind: object) -> str:
    """The name of a type; Spark lists types with the names of their columns."""
    return str(kind[1] if isinstance(kind, tuple) else kind)


def describe_column(name: str, known: Known, *, missing: bool = False) -> Column:
    """The column kind for what is known of a column.

    >>> describe_column("age", (18, 97)).coding.size, describe_column("sex", ["f", "m"]).values
    (80, ('f', 'm'))
    """
    if isinstance(known, Column):
        return known
    if known is bool:
        return Boolean(missing=missing)
    if isinstance(known, str | bytes | type) or not isinstance(known, Iterable):
        raise InvalidInput(_refusal(name, known))
    values = sorted(known) if isinstance(known, set | frozenset) else list(known)
    if isinstance(known, tuple) and len(values) == 2 and not _are_labels(values):
        return _describe_range(name, values, missing=missing)
    if set(map(type, values)) == {bool}:
        return Boolean(missing=missing)
    return Categorical(values=tuple(values), missing=missing)


def _are_labels(values: Sequence[object]) -> bool:
    return all(isinstance(value, str | bool) for value in values)


def _describe_range(name: str, bounds: Sequence[Any], *, missing: bool) -> Column:
    low, high = bounds
    more: dict[str, Any] = {"missing": missing, "outside": "nearest"}
    if all(isinstance(bound, dt.date) for bound in bounds):
        days = (high - low).days
        period = Period.MONTH if days <= _DAYS_OF_YEARS else Period.YEAR
        if days <= _DAYS_OF_MONTHS:
            period = Period.DAY
        return Date(low=low, high=high, period=period, **more)
    if not all(isinstance(bound, int | float) for bound in bounds):
        raise InvalidInput(_refusal(name, tuple(bounds)))
    if all(isinstance(bound, int) for bound in bounds):
        n = high - low + 1
        return Integer(
            low=low, high=high, width=1 if n <= _MAX_SINGLE else -(-n // _N_BINS), **more
        )
    return Number.evenly(float(low), float(high), bins=_N_BINS, **more)


def _refusal(name: str, known: object) -> str:
    return (
        f"`columns[{name!r}]` must be two bounds, as (0, 99), a list of values, the type bool or a "
        f"column kind such as juncture.Number; got {known!r}."
    )
