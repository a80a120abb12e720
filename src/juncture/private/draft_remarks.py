"""What a draft says to the person who reviews it. No remark holds a figure of the table."""

from __future__ import annotations

import re

from juncture.private.column_names import Role, role_of
from juncture.private.profile import Profile
from juncture.tables.columns import Categorical, Column, Integer, Number, RawType
from juncture.tables.columns.rounding import is_even

# From this many values on, one may say that all differ, or that all are the same.
_MIN_VALUES = 50
_NEARLY_ALL = 0.9
# A column of texts that is called like a name and has this share of different values is one.
_MANY_SHARE = 0.2
# Names of columns that hold keys.
_KEY = re.compile(r"(^|[^a-z])(id|key|nr|no|number|ssn|mrn|phone)$|identifier")


def is_identifier(profile: Profile) -> bool:
    """Whether a column of whole numbers seems to number the records.

    Almost every record has a number of its own, and the numbers follow each other or the name says
    so: those that are merely all different may be amounts. Texts are left out by their number.
    """
    summary = profile.summary
    if summary is None or not _is_whole(profile):
        return False
    in_a_row = summary.high - summary.low < 2 * profile.n_values
    return _is_nearly_unique(profile) and (in_a_row or bool(_KEY.search(profile.name.lower())))


def is_constant(profile: Profile) -> bool:
    """Whether a column has one value everywhere, and so says nothing."""
    summary = profile.summary
    if summary is None or profile.n_values < _MIN_VALUES:
        return False
    return bool(summary.low == summary.high) and not summary.has_missing


def is_revealing(profile: Profile) -> bool:
    """Whether a column of texts is, by its name, about single people, and has many values."""
    summary = profile.summary
    if summary is None or summary.raw_type is not RawType.TEXT:
        return False
    many = profile.n_distinct >= _MANY_SHARE * max(1, profile.n_values)
    return role_of(profile.name).is_revealing and many


def describe_omission(profile: Profile) -> str:
    """Why a column is left out."""
    if profile.summary is None:
        return "no values, or values of a type that no kind of column describes"
    is_text = profile.summary.raw_type is RawType.TEXT
    reasons = (
        (is_constant(profile), "one value everywhere, which says nothing"),
        (is_text and role_of(profile.name) is Role.DATE,
         "a date by its name, but not written as 2024-01-31: convert it to use it"),
        (_is_nearly_unique(profile),
         "almost every record has a value of its own, which would identify it"),
        (is_revealing(profile), f"{role_of(profile.name)}, by its name"),
        (is_text, "free text: too many values to list"),
    )  # fmt: skip
    return next((why for holds, why in reasons if holds), "values that no kind of column describes")


def explain_column(column: Column, profile: Profile) -> tuple[str, ...]:
    """What to look at in a drafted column."""
    remarks = []
    if isinstance(column, Categorical):
        remarks.append(
            "All values that occur. Remove those that few people have; all others share a code."
        )
    if _is_uneven(column):
        remarks.append(
            "A heavy tail: most records lie in a small part of the range, where edges are closer."
        )
    if profile.summary is not None and profile.summary.raw_type in _WITH_BOUNDS:
        remarks.append("Bounds were rounded from the data: write those known without it.")
    if _is_whole(profile) and _is_nearly_unique(profile):
        remarks.append("Almost every record has its own value: remove what identifies people.")
    if profile.missing_values:
        remarks.append("The texts of missing_values were taken for missing values.")
    return tuple(remarks)


_WITH_BOUNDS = (RawType.INTEGER, RawType.NUMBER, RawType.DATE)


def _is_nearly_unique(profile: Profile) -> bool:
    return profile.n_values >= _MIN_VALUES and profile.n_distinct >= _NEARLY_ALL * profile.n_values


def _is_uneven(column: Column) -> bool:
    """Whether a column has bins of several widths."""
    if isinstance(column, Integer):
        return bool(column.starts)
    return isinstance(column, Number) and not is_even(column.edges)


def _is_whole(profile: Profile) -> bool:
    return profile.summary is not None and profile.summary.raw_type is RawType.INTEGER
