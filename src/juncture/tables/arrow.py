"""Codes as Arrow columns: what they stand for, or values like those of the user's own table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from juncture._util.text import choose_name
from juncture.tables.codebook import Codebook, Value
from juncture.tables.columns import Column
from juncture.tables.domain import Domain
from juncture.tables.schema import Schema

Codes = NDArray[np.int32]

_TYPES: Mapping[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
}


class _ColumnDecoder(Protocol):
    """Turns one attribute's codes into values; keeps the state of its random numbers."""

    type: pa.DataType

    def decode(self, codes: Codes) -> pa.Array:
        """The values of the next records."""


class RecordDecoder:
    """Turns records of codes into Arrow tables, any number of records at a time.

    Without a schema, a code becomes its label in the codebook. With one, it becomes a value like
    those of the user's own table: numbers and dates are drawn inside their bins, from random
    numbers that `seed` fixes. Each column has random numbers of its own and takes them in the
    order of the records, so a record does not depend on how many are decoded at a time.

    With `keep_dictionaries`, texts stay codes beside a list of texts: fewer bytes to write.
    """

    def __init__(
        self,
        names: Iterable[str],
        codebook: Codebook | None,
        schema: Schema | None = None,
        *,
        seed: int = 0,
        keep_dictionaries: bool = False,
    ) -> None:
        self._columns: dict[str, _ColumnDecoder] = {}
        for index, name in enumerate(names):
            if schema is not None:
                random = np.random.default_rng((seed, index))
                self._columns[name] = _make_column(schema.columns[name], random, keep_dictionaries)
            elif codebook is not None and name in codebook.codings:
                self._columns[name] = _Labels(array_of(codebook[name].labels), keep_dictionaries)
            else:
                self._columns[name] = _Plain()
        self.schema = pa.schema([(name, each.type) for name, each in self._columns.items()])

    def decode(self, records: Mapping[str, Codes]) -> pa.Table:
        """The next records as a table."""
        arrays = [column.decode(records[name]) for name, column in self._columns.items()]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def long_table(domain: Domain, values: NDArray[np.float64], codebook: Codebook | None) -> pa.Table:
    """A table in long form: a row for each cell, with what its codes stand for and its value."""
    axes = np.ix_(*(np.arange(size, dtype=np.int32) for size in domain.shape))
    codes = {
        name: np.broadcast_to(axis, domain.shape).ravel()
        for name, axis in zip(domain, axes, strict=True)
    }
    columns = RecordDecoder(domain, codebook).decode(codes).columns
    names = [*domain, choose_name("count", domain)]
    return pa.Table.from_arrays([*columns, pa.array(values.ravel())], names)


def array_of(values: Sequence[Value]) -> pa.Array:
    """Values as one column; values of several types become texts."""
    kind = _type_of(values)
    if kind != pa.string():
        return pa.array(values, kind)
    return pa.array([None if value is None else str(value) for value in values], kind)


def _type_of(values: Iterable[Value]) -> pa.DataType:
    present = [value for value in values if value is not None]
    kinds = frozenset(type(value) for value in present)
    if int in kinds and any(abs(value) >= 2**63 for value in present if isinstance(value, int)):
        return pa.string()  # no column of numbers holds them
    return _TYPES.get(kinds, pa.string())


def _make_column(
    column: Column, random: np.random.Generator, keep_dictionaries: bool
) -> _ColumnDecoder:
    if column.draw(np.zeros(0, dtype=np.int32), random).dtype == np.dtype(object):
        values = pa.array([*column.regular, *column.special_values], column.arrow_type)
        return _Labels(values, keep_dictionaries)
    return _Drawn(column, random)


class _Plain:
    """Codes that stand for themselves."""

    type = pa.int32()

    def decode(self, codes: Codes) -> pa.Array:
        return pa.array(codes, pa.int32())


class _Labels:
    """Codes that have names."""

    def __init__(self, table: pa.Array, keep_dictionary: bool) -> None:
        texts = keep_dictionary and pa.types.is_string(table.type)
        self._table = table.dictionary_encode() if texts else table
        self.type = self._table.type

    def decode(self, codes: Codes) -> pa.Array:
        return self._table.take(pa.array(codes))


class _Drawn:
    """Codes that stand for bins: a value is drawn inside the bin of each."""

    def __init__(self, column: Column, random: np.random.Generator) -> None:
        self.type, self._column, self._random = column.arrow_type, column, random

    def decode(self, codes: Codes) -> pa.Array:
        column, n_regular = self._column, self._column.n_regular
        values, mask = column.draw(codes, self._random), np.zeros(len(codes), dtype=np.bool_)
        for code, value in enumerate(column.special_values, n_regular):
            if value is None:
                mask |= codes == code
            else:
                values[codes == code] = value
        return pa.array(values, self.type, mask=mask)
