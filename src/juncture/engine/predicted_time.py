"""How long a fit will take, before it runs: exact by its tree, or with records.

The constants were measured by `python bench/predicted_times.py`, which prints predicted beside
measured seconds: fits that stop at the noise, of chains, bands and cliques of attributes. They are
seconds of one processor of about 3 GHz. Both kinds of fit use all processors and take longer where
they go on until they have settled, so what can be relied on is the ratio, within a factor of three.
"""

from __future__ import annotations

from typing import NamedTuple

from juncture.engine.plan import Plan

# An exact fit: so many oracle calls, each of so many seconds by itself and for each operation.
_CALLS, _SECONDS_PER_CALL, _SECONDS_PER_OPERATION = 120, 2e-4, 0.6e-9
# A fit with records: so many of them where nothing else is known, and the seconds for each record
# of each clique.
_TYPICAL_RECORDS, _SECONDS_PER_COUNT = 400_000, 0.3e-6
# An exact fit is preferred where it takes less than this, or fewer times as long as with records:
# it is certified, and its answers have no error of their own.
_SHORT_SECONDS, _MAX_RATIO = 60.0, 4.0


class PredictedTime(NamedTuple):
    """The seconds of a fit on one processor."""

    exact: float | None
    """By message passing; None where the tree does not fit, or is not known."""
    records: float
    """With weighted records."""

    @property
    def is_exact_slow(self) -> bool:
        """Whether an exact fit would take long, and far longer than one with records."""
        if self.exact is None:
            return False
        return self.exact > max(_SHORT_SECONDS, _MAX_RATIO * self.records)


def predict_time(plan: Plan, n_records: int | None = None) -> PredictedTime:
    """The time of a fit with a plan; `n_records` is the number of records, where it is known.

    >>> from juncture import Domain
    >>> plan = Plan.build(Domain({"a": 10, "b": 10, "c": 10}), [("a", "b"), ("b", "c")])
    >>> predict_time(plan).is_exact_slow
    False
    """
    exact = None
    if plan.has_tree:
        exact = _CALLS * (_SECONDS_PER_CALL + _SECONDS_PER_OPERATION * plan.operations)
    number = _TYPICAL_RECORDS if n_records is None else n_records
    return PredictedTime(exact, _SECONDS_PER_COUNT * number * len(plan.cliques))


def format_seconds(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> [format_seconds(each) for each in (0.2, 41.0, 700.0, 9000.0, 1e6)]
    ['less than 1 s', 'about 41 s', 'about 12 min', 'about 2.5 h', 'about 12 days']
    """
    if seconds < 1.0:
        return "less than 1 s"
    for limit, unit, size in ((120.0, "s", 1.0), (7200.0, "min", 60.0)):
        if seconds < limit:
            return f"about {seconds / size:.0f} {unit}"
    if seconds < 172_800.0:
        return f"about {seconds / 3600.0:.2g} h"
    return f"about {seconds / 86_400.0:,.0f} days"
