"""Which mechanism is taken where nobody chooses one, and why: by forecasts, never by data."""

from __future__ import annotations

from dataclasses import dataclass

from juncture.mechanisms.registry import default_mechanisms
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.tables.workload import Workload
from juncture.workflow.forecast import ASSUMED_RECORDS, Forecast, Method, forecast

# Another mechanism than the usual one, which was compared on real tables, must be expected to be
# better by this share. Only rehearsals decide: what is computed instead knows nothing of fits.
_MARGIN = 0.2


@dataclass(frozen=True)
class DefaultChoice:
    """A mechanism that was chosen, and what was expected of each that might have been."""

    mechanism: str
    forecasts: tuple[Forecast, ...]
    n_records: int
    """The number of records that the forecasts are for."""

    @property
    def is_unusual(self) -> bool:
        """Whether another mechanism than the usual one was chosen."""
        return self.mechanism != self.forecasts[0].mechanism

    def __str__(self) -> str:
        """Why it was chosen, in a sentence or two."""
        (own,) = (each for each in self.forecasts if each.mechanism == self.mechanism)
        others = [
            f"{each.mechanism} {_show(each)}"
            for each in self.forecasts
            if each is not own and each.error is not None
        ]
        words = [f"Chosen: {self.mechanism}."]
        words += [
            f"Not {each.mechanism}: {each.method}."
            for each in self.forecasts
            if each.method.is_refusal and each is not own
        ]
        if own.error is not None:
            beside = f" ({', '.join(others)})" if others else ""
            words.append(
                f"Expected error {_show(own)}{beside}, {own.method} of {self.n_records:,} records."
            )
        return " ".join(words)


def choose_default(
    budget: Budget, workload: Workload, neighbours: Neighbours, n_records: int | None = None
) -> DefaultChoice:
    """The usual mechanism, or the one that is expected to be better by a fifth or more.

    - `n_records`: a public guess; a number that was counted would be data.

    >>> from juncture import Domain
    >>> workload = Workload.default(Domain({"age": 8, "sex": 2, "smokes": 2}))
    >>> choose_default(Budget(epsilon=1), workload, Neighbours.ADD_OR_REMOVE).mechanism
    'hdmm'
    """
    names = default_mechanisms(budget, workload)
    forecasts = forecast(names, budget, workload, neighbours, n_records)
    able = [each for each in forecasts if not each.method.is_refusal]
    usual = able[0] if able else forecasts[0]  # if none can serve, the usual one says why
    chosen = usual
    for each in able:
        if _is_better(each, chosen, 0.0 if chosen is not usual else _MARGIN):
            chosen = each
    return DefaultChoice(chosen.mechanism, tuple(forecasts), n_records or ASSUMED_RECORDS)


def _is_better(one: Forecast, other: Forecast, margin: float) -> bool:
    """Whether both were rehearsed, and one is expected to be better by a share."""
    if not one.method is other.method is Method.REHEARSAL:
        return False
    return (one.error or 0.0) < (1.0 - margin) * (other.error or 0.0)


def _show(forecast: Forecast) -> str:
    return f"{100.0 * (forecast.error or 0.0):.2g} %"
