"""What is publicly known of a table's columns, in short: bounds, values, or that they are bool.

What is not said is found privately, for part of the budget: the bins of numbers, the values of
texts. Only the bounds of numbers and dates cannot be found that way, and must be given.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from juncture._util.text import list_names
from juncture.errors import InvalidInput
from juncture.private.sources.files import TableFile, exact_relation, is_text_file
from juncture.tables.columns import (
    Boolean,
    Categorical,
    Column,
    Date,
    Integer,
    OpenCategorical,
    OpenInteger,
    OpenNumber,
)
from juncture.tables.columns.grid import Scale
from juncture.tables.periods import Period
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    from juncture.private.sources.read import Table

Known = Column | tuple[Any, Any] | Iterable[Any] | type
"""What is known of a column: two bounds, a list of values, bool, str, or a column kind."""

# A range of more whole numbers than this gets private bins, and one of numbers always.
_MAX_SINGLE = 128
# Ranges at least as long are counted in cells that grow, unless both ends are of about one size.
_LONG, _ABOUT_ONE_SIZE = 100_000.0, 100.0
_DAYS_OF_MONTHS, _DAYS_OF_YEARS = 62, 5 * 366
_BOOL = ("bool", "boolean", "bool[pyarrow]")
# How the names of text types begin, in pandas, Polars, Arrow, DuckDB and Spark.
_TEXT = ("object", "str", "large_str", "categor", "enum", "varchar", "dictionary<values=str",
         "dictionary<values=large_str")  # fmt: skip


def make_schema(
    table: Table, columns: Mapping[str, Known], missing: bool | Iterable[str] = False
) -> Schema:
    """The schema of a table's columns by what is known of them.

    Reads the names and types of the columns and no value. Columns of type bool need no words, and
    neither do texts: their values are found privately, and may be missing. A column of numbers or
    dates of which nothing is known is refused. `missing` are columns that may have missing values.
    """
    types = list_types(table)
    with_missing = set(types if missing is True else () if missing is False else missing)
    absent = [name for name in (*columns, *sorted(with_missing)) if name not in types]
    if absent:
        raise InvalidInput(
            f"`columns` must name columns of the table; got {list_names(absent)}, which it does "
            f"not have. Its columns are {list_names(types)}."
        )
    known: dict[str, Known] = {**_find_by_type(table, types), **columns}
    unknown = [name for name in types if name not in known]
    if unknown:
        raise InvalidInput(_ask_for_bounds(unknown, is_text_file(table)))
    return Schema({n: describe_column(n, known[n], missing=n in with_missing) for n in types})


def _find_by_type(table: Table, types: Mapping[str, str]) -> dict[str, Known]:
    """What the types say: truth values, and texts. In a file of texts, all columns are texts."""
    known: dict[str, Known] = {name: bool for name, kind in types.items() if kind == "bool"}
    if not is_text_file(table):
        texts = [name for name, kind in types.items() if kind.lower().startswith(_TEXT)]
        known |= dict.fromkeys(texts, str)
    return known


def _ask_for_bounds(names: Sequence[str], from_text_file: bool) -> str:
    """The refusal of columns of which nothing is known."""
    first = f"columns={{{names[0]!r}: (low, high), ...}}"
    if from_text_file:
        return (
            "`columns` must say what every column of a file of texts may hold; got nothing on "
            f"{list_names(names)}. Give two bounds, as (0, 99), a list of values, or the "
            f"type str for values that are found privately: {first}. Or read the file into a data "
            "frame, whose types say more; or give a `schema`, of which `juncture schema suggest` "
            "writes a first version."
        )
    return (
        f"`columns` must have bounds for numbers and dates; got none for {list_names(names)}. "
        f"Bins are found privately, but bounds must be public, known without looking into the "
        f"table, since its largest value is somebody's: {first}. Values beyond them count as the "
        "nearest. Or drop the columns."
    )


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


def _type_name(kind: object) -> str:
    """The name of a type; Spark lists types with the names of their columns."""
    return str(kind[1] if isinstance(kind, tuple) else kind)


def describe_column(name: str, known: Known, *, missing: bool = False) -> Column:
    """The column kind for what is known of a column.

    >>> describe_column("age", (18, 97)).coding.size, describe_column("sex", ["f", "m"]).values
    (80, ('f', 'm'))

    What is long is divided privately, and so are texts of which nothing is known:

    >>> describe_column("pay", (0.0, 150_000.0)).is_open, describe_column("city", str).is_open
    (True, True)
    """
    if isinstance(known, Column):
        return known
    if known is bool:
        return Boolean(missing=missing)
    if known is str:  # whether some are missing is private too
        return OpenCategorical(missing=True)
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
    scale = _find_scale(low, high)
    if not all(isinstance(bound, int) for bound in bounds):
        return OpenNumber(low=float(low), high=float(high), scale=scale, **more)
    if high - low < _MAX_SINGLE:
        return Integer(low=low, high=high, **more)
    return OpenInteger(low=low, high=high, scale=scale, **more)


def _find_scale(low: float, high: float) -> Scale:
    """How the cells grow in which numbers between bounds are counted before their bins are known.

    Amounts of up to a million lie mostly far below it: cells of one width would be too coarse.

    >>> [str(_find_scale(*bounds)) for bounds in ((0, 1e6), (0, 200), (2e9, 3e9), (1e-6, 1))]
    ['log', 'linear', 'linear', 'linear']
    """
    smaller, larger = sorted((abs(low), abs(high)))
    is_about_one_size = low * high > 0 and larger <= _ABOUT_ONE_SIZE * smaller
    return Scale.LOG if high - low >= _LONG and not is_about_one_size else Scale.LINEAR


def _refusal(name: str, known: object) -> str:
    return (
        f"`columns[{name!r}]` must be two bounds, as (0, 99), a list of values, the type bool or "
        f"str, or a column kind such as juncture.Number; got {known!r}."
    )
