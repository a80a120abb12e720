"""Column kinds: each is one class that says everything about itself.

To add a kind to the package, write its class in a module here and add it to the list below. To add
one from outside, pass the class to `register_column_kind`.
"""

from juncture.tables.columns.base import Column, Outside, column_kinds, register_column_kind
from juncture.tables.columns.boolean import Boolean
from juncture.tables.columns.categorical import Categorical
from juncture.tables.columns.date import Date
from juncture.tables.columns.display import Display, display_of
from juncture.tables.columns.integer import Integer
from juncture.tables.columns.number import Number
from juncture.tables.columns.sql import Dialect, RawColumn
from juncture.tables.columns.summary import ColumnSummary, RawType
from juncture.tables.periods import Period

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "ColumnSummary",
    "Date",
    "Dialect",
    "Display",
    "Integer",
    "Number",
    "Outside",
    "Period",
    "RawColumn",
    "RawType",
    "column_kinds",
    "display_of",
    "register_column_kind",
]

for _kind in (Categorical, Boolean, Integer, Number, Date):
    register_column_kind(_kind)
