"""Column kinds: each is one class that says everything about itself.

To add a kind to the package, write its class in a module here and add it to the list below. To add
one from outside, pass the class to `register_column_kind`.
"""

from juncture.errors import InvalidInput
from juncture.tables.columns.base import Column, Outside, column_kinds, register_column_kind
from juncture.tables.columns.boolean import Boolean
from juncture.tables.columns.categorical import Categorical
from juncture.tables.columns.date import Date
from juncture.tables.columns.display import Display, display_of
from juncture.tables.columns.integer import Integer
from juncture.tables.columns.number import Number
from juncture.tables.columns.open import PRIVATE, Open, OpenBins
from juncture.tables.columns.open_categorical import OpenCategorical
from juncture.tables.columns.open_date import OpenDate
from juncture.tables.columns.open_number import OpenInteger, OpenNumber
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
    "Open",
    "OpenBins",
    "OpenCategorical",
    "OpenDate",
    "OpenInteger",
    "OpenNumber",
    "Outside",
    "Period",
    "RawColumn",
    "RawType",
    "column_kinds",
    "display_of",
    "find_kind",
    "register_column_kind",
]

for _kind in (Categorical, Boolean, Integer, Number, Date):
    register_column_kind(_kind)

# The entry that opens a column of each kind, and the class of such columns.
_OPEN_KINDS: dict[str, tuple[str, type[Open]]] = {
    "categorical": ("values", OpenCategorical),
    "integer": ("bins", OpenInteger),
    "number": ("bins", OpenNumber),
    "date": ("bins", OpenDate),
}


def find_kind(kind: str, entries: dict[str, object]) -> type[Column]:
    """The class of columns of a kind: the open one, where its bins or values are private."""
    opening = [name for name in ("bins", "values") if entries.get(name) == PRIVATE]
    if not opening:
        return column_kinds()[kind]
    if kind not in _OPEN_KINDS or opening != [_OPEN_KINDS[kind][0]]:
        raise InvalidInput(
            f"`{opening[0]}` must not be {PRIVATE!r} for the kind {kind}; got that. Bins of "
            "numbers, integers and dates can be private, and values of categorical columns."
        )
    return _OPEN_KINDS[kind][1]
