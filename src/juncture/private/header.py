"""Whether the first line of a file is names, or somebody's record."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress


def count_doubtful_names(names: Sequence[str], own_values: Collection[str] = ()) -> int:
    """How many names look like values: numbers, dates, none, repeated, or values of their column.

    - `own_values`: the names that occur among the values of their own column.

    >>> count_doubtful_names(["39", "1985-02-01", "Basel"], own_values=["Basel"])
    3
    >>> count_doubtful_names(["age", "born", "city"])
    0
    """
    times = Counter(names)
    return sum(times[name] > 1 or name in own_values or _is_value(name.strip()) for name in names)


def _is_value(name: str) -> bool:
    with suppress(ValueError):
        float(name)
        return True
    with suppress(ValueError):
        dt.datetime.fromisoformat(name)
        return True
    return not name
