"""Columns with private bins: their grids, what they become, and what a release says inside bins."""

from __future__ import annotations

import datetime as dt
import itertools
import tomllib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from juncture.errors import InvalidInput
from juncture.private.sources.duck import DuckDB
from juncture.tables.columns import (
    Date,
    Integer,
    Number,
    OpenDate,
    OpenInteger,
    OpenNumber,
    Outside,
)
from juncture.tables.columns.grid import Scale
from juncture.tables.columns.open import OpenBins
from juncture.tables.histogram import FineHistogram
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import parse_schema, schema_toml
from juncture.tables.spread import Spread

OPEN: dict[str, OpenBins] = {
    "few whole numbers": OpenInteger(low=3, high=60, outside=Outside.NEAREST),
    "many whole numbers": OpenInteger(low=0, high=99_999, outside=Outside.NEAREST, special=(-1,)),
    "whole numbers, log": OpenInteger(low=0, high=10**6, scale=Scale.LOG, missing=True),
    "numbers": OpenNumber(low=-5.0, high=10.0, outside=Outside.CODE, missing=True),
    "numbers, log": OpenNumber(low=0, high=1e6, scale=Scale.LOG, outside=Outside.NEAREST),
    "large numbers, log": OpenNumber(low=10, high=1e6, scale=Scale.LOG),
    "decimals": OpenNumber(low=0, high=90, step=0.01, special=(-9.0,)),
    "coarse decimals": OpenNumber(low=0, high=5000, step=0.01, outside=Outside.NEAREST),
    "days": OpenDate(low=dt.date(2020, 1, 1), high=dt.date(2021, 6, 30), missing=True),
    "centuries": OpenDate(low=dt.date(1800, 1, 1), high=dt.date(2025, 12, 31)),
}


@pytest.mark.parametrize("column", OPEN.values(), ids=OPEN)
def test_the_cells_of_a_grid_are_in_order_and_leave_no_gap(column: OpenBins) -> None:
    """From the lower bound to the upper one, each code once."""
    cells = column.cells
    ends = [(cell.low, cell.high) for cell in cells]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))
    codes = [cell.code for cell in cells]
    assert sorted(codes) == list(range(column.n_own, column.n_regular))
    assert 2 <= len(cells) <= 10_003


@pytest.mark.parametrize("column", OPEN.values(), ids=OPEN)
def test_a_schema_file_keeps_an_open_column(column: OpenBins) -> None:
    """Written and read again, it is the same."""
    text = schema_toml(Schema({"x": column}))
    assert 'bins = "private"' in text
    assert parse_schema(tomllib.loads(text)).columns["x"] == column


@pytest.mark.parametrize("column", OPEN.values(), ids=OPEN)
def test_codes_of_the_closed_column_are_those_of_its_own_values(column: OpenBins) -> None:
    """Encoded by the grid and then closed, or by the closed column at once: the same counts."""
    n_cells = len(column.cells)
    cuts = sorted({0, 1, n_cells // 3, n_cells // 2, n_cells - 1, n_cells})
    bins = list(itertools.pairwise(cuts))
    closed = column.close(bins, bins, [1.0] * n_cells)
    rng = np.random.default_rng(0)
    values: list[Any] = []
    for cell in column.cells[:: max(1, n_cells // 50)]:
        number = cell.low + (cell.high - cell.low) * rng.uniform(0.2, 0.8)
        if isinstance(column, OpenDate):
            values.append(dt.date(1970, 1, 1) + dt.timedelta(days=int(number)))
        elif isinstance(column, OpenInteger):
            values.append(int(number))
        else:
            values.append(cell.low if getattr(column, "step", None) else number)
    values += [*column.special[: column.n_own]] if isinstance(column, Number | Integer) else []
    values += [None] if column.missing else []
    opened = DuckDB(pa.table({"x": values}), Schema({"x": column}))
    at_once = DuckDB(pa.table({"x": values}), Schema({"x": closed.column}))
    before = opened.exact_counts([("x",)])[0].values
    opened.close(Schema({"x": closed.column}), {"x": closed.codes})
    after = opened.exact_counts([("x",)])[0].values
    np.testing.assert_array_equal(after, at_once.exact_counts([("x",)])[0].values)
    np.testing.assert_array_equal(
        after, np.bincount(closed.codes, before, closed.column.coding.size)
    )
    assert column.widest.coding.size >= 2


def test_values_beyond_the_bounds_count_as_the_bounds() -> None:
    """With `nearest`, they are among those of the bound itself; special values are not moved."""
    column = OpenInteger(low=0, high=99_999, outside=Outside.NEAREST, special=(-1,))
    table = pa.table({"x": [-5, -1, 0, 99_999, 10**6, None]}).slice(0, 5)
    counts = DuckDB(table, Schema({"x": column})).exact_counts([("x",)])[0].values
    by_low = {cell.low: counts[cell.code] for cell in column.cells if counts[cell.code]}
    assert counts[0] == 1
    assert by_low == {0.0: 2.0, 99_999.0: 2.0}


BAD = {
    'low = 5\nhigh = 5\nbins = "private"': "`low` must be a number below `high`; got 5 and 5",
    'low = 9\nhigh = 5\nbins = "private"': "`low` must be a number below `high`; got 9 and 5",
    'low = 0\nhigh = 5\nbins = "private"\nmax_bins = 1': "`max_bins` must be a whole number",
    'low = 0\nhigh = 5\nbins = "private"\nscale = "cubic"': "`scale` must be one of linear, log",
    'low = 0\nhigh = 5\nbins = "private"\nstep = 9': "`step` must be a positive number up to",
    'low = 0\nhigh = 5\nbins = "private"\nstep = 1\ndecimals = 2': "`decimals` must be",
    'low = 0\nbins = "private"': "must have the entries 'high'",
    'low = 0\nhigh = 5\nvalues = "private"': "`values` must not be 'private' for the kind number",
}


@pytest.mark.parametrize(("entries", "words"), BAD.items())
def test_bad_entries_are_named(entries: str, words: str) -> None:
    """With the column and what to write."""
    text = f'format = "juncture schema"\nversion = 3\n[columns.x]\nkind = "number"\n{entries}'
    with pytest.raises(InvalidInput, match=f"Column 'x': .*{words}"):
        parse_schema(tomllib.loads(text))


def test_dates_in_the_wrong_order_are_refused() -> None:
    """So are bins of booleans."""
    with pytest.raises(InvalidInput, match="`low` must be before `high`"):
        OpenDate(low=dt.date(2021, 1, 1), high=dt.date(2020, 1, 1))
    text = (
        'format = "juncture schema"\nversion = 3\n[columns.x]\nkind = "boolean"\nbins = "private"'
    )
    with pytest.raises(InvalidInput, match="must not be 'private' for the kind boolean"):
        parse_schema(tomllib.loads(text))


@pytest.mark.parametrize("outside", [Outside.NEAREST, Outside.CODE])
def test_a_column_without_a_value_inside_its_bounds_is_refused(outside: Outside) -> None:
    """Before anything could be spent; one value inside is enough."""
    schema = Schema({"x": OpenInteger(low=0, high=50, outside=outside)})
    with pytest.raises(InvalidInput, match="got a column 'x' without any"):
        DuckDB(pa.table({"x": [70, 80, 90]}), schema)
    DuckDB(pa.table({"x": [70, 80, 50]}), schema)
    DuckDB(pa.table({"x": [0, 0, 0]}), schema)


STEPS = FineHistogram((0.0, 1.0, 3.0, 10.0, 20.0), (60.0, 20.0, 0.0, 20.0))


def test_answers_follow_the_steps() -> None:
    """Shares, means and points agree with sums over the pieces."""
    spread = Spread.stepped(np.array(STEPS.edges), np.array(STEPS.masses))
    assert spread.share(0.0, 1.0) == pytest.approx(0.6)
    assert spread.share(0.5, 2.0) == pytest.approx(0.4)
    assert spread.share(4.0, 9.0) == 0.0
    assert spread.mean(0.0, 20.0) == pytest.approx(0.6 * 0.5 + 0.2 * 2.0 + 0.2 * 15.0)
    points, shares = spread.points(0.0, 20.0, 5)
    assert sum(shares) == pytest.approx(1.0)
    mean = sum(p * s for p, s in zip(points, shares, strict=True))
    assert mean == pytest.approx(spread.mean(0.0, 20.0))


CLOSED = {
    "number": Number(edges=(0.0, 3.0, 20.0), fine=STEPS),
    "integer": Integer(low=0, high=19, starts=(0, 3), fine=STEPS),
    "date": Date(
        low=dt.date(1970, 1, 1), high=dt.date(1970, 1, 20),
        edges=(dt.date(1970, 1, 1), dt.date(1970, 1, 4), dt.date(1970, 1, 20)), fine=STEPS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("column", CLOSED.values(), ids=CLOSED)
def test_drawn_values_follow_the_steps(column: Any) -> None:
    """As many in each piece as it should have, and none outside the bin."""
    rng, n = np.random.default_rng(1), 40_000
    drawn = column.draw(np.repeat([0, 1], n).astype(np.int32), rng)
    if isinstance(column, Date):
        drawn = drawn.astype(np.int64)
    first, second = drawn[:n].astype(np.float64), drawn[n:].astype(np.float64)
    assert (first >= 0).all()
    assert (first < 3).all()
    assert (second >= 10).all()
    assert (second < 20).all()
    assert (first < 1).mean() == pytest.approx(0.75, abs=0.01)
    assert (second < 15).mean() == pytest.approx(0.5, abs=0.015)


def test_records_are_multiples_of_the_step() -> None:
    """As the table's own numbers."""
    column = Number(edges=(0.0, 2.0, 10.0), step=0.25)
    drawn = column.draw(np.repeat([0, 1], 500).astype(np.int32), np.random.default_rng(0))
    np.testing.assert_array_equal(drawn * 4, np.round(drawn * 4))
    assert drawn[:500].max() < 2.0 <= drawn[500:].min()
