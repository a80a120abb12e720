"""How a fit ended: the status with its sentences, and the figures that are kept with a release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, NamedTuple

from juncture.errors import InvalidInput

# A bound may exceed the loss by rounding; by more than this share, the two contradict each other.
_ROUNDING = 1e-6

# Records that are off by this share of the noise make both together an eighth larger.
_LARGE_ERROR = 0.5


class Status(Enum):
    """Why a fit ended, with sentences for people.

    >>> print(Status.OUT_OF_STEPS.headline, Status.OUT_OF_STEPS.advice)
    The fit ended when its allowed steps were used up. Raise `max_steps` to go on.
    """

    CERTIFIED = "certified"
    STALLED = "stalled"
    SLOW = "slow"
    AT_NOISE = "at noise"
    OUT_OF_STEPS = "out of steps"
    UNCERTIFIED = "uncertified"
    NOT_MIXED = "not mixed"

    @property
    def headline(self) -> str:
        """What happened, in one short sentence."""
        return _SENTENCES[self].headline

    @property
    def explanation(self) -> str:
        """What that means for the model, for people who did not run the fit."""
        return _SENTENCES[self].explanation

    @property
    def advice(self) -> str:
        """What to change for a closer fit; empty where nothing helps."""
        return _SENTENCES[self].advice


class _Sentences(NamedTuple):
    headline: str
    explanation: str
    advice: str = ""


_SENTENCES = {
    Status.CERTIFIED: _Sentences(
        "The fit is certified.",
        "It is proven that no model, whatever its structure, fits these measurements noticeably "
        "better than this one.",
    ),
    Status.STALLED: _Sentences(
        "The fit has settled.",
        "Further steps hardly improved it. It is proven that no model fits these measurements "
        "twice as well, though not that this one is as close to the best as requested.",
        "Lower `tolerance` to go on.",
    ),
    Status.SLOW: _Sentences(
        "The fit ended because it had become slow.",
        "Nothing proves that it is near the best one: other models may fit these measurements much "
        "better.",
        "Lower `tolerance` and raise `max_steps` to go on, or take another `solver`: Newton() "
        "where the model is small, Sequential(Accelerated(), Proximal()) elsewhere.",
    ),
    Status.AT_NOISE: _Sentences(
        "The fit was ended on purpose, at the noise.",
        "Fitting the measurements more closely would only have copied their noise into the model. "
        "The gap to the lower bound is therefore not a defect.",
    ),
    Status.OUT_OF_STEPS: _Sentences(
        "The fit ended when its allowed steps were used up.",
        "A longer fit may come closer to the measurements.",
        "Raise `max_steps` to go on.",
    ),
    Status.UNCERTIFIED: _Sentences(
        "The fit has settled, without a certificate.",
        "Its marginals are estimated from records, not computed on exact tables. Further steps "
        "hardly improved it, but nothing proves how near it is to the best one.",
    ),
    Status.NOT_MIXED: _Sentences(
        "The fit ended, but its records have not mixed.",
        "Some attributes hardly move when their records are drawn anew: they determine each other, "
        "or the distribution has modes that are cut off from each other. Marginals may be off by "
        "more than stated.",
        "Leave out a clique until the exact oracle fits, or merge attributes that determine each "
        "other into one.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class FitSummary:
    """The figures of a fit: how it ended, its loss, and what it took.

    >>> summary = FitSummary(
    ...     status=Status.STALLED, loss=12.5, lower_bound=12.0, oracle_calls=90, seconds=0.2)
    >>> summary.gap
    0.5
    >>> FitSummary.from_json(summary.to_json()) == summary
    True
    """

    status: Status
    loss: float
    lower_bound: float
    """No model has a smaller loss than this, certified by max-product; minus infinity where
    nothing is known."""
    oracle_calls: int
    seconds: float
    oracle_error: float | None = None
    """The error that an oracle made of records adds by itself, as a share of the noise of the
    answers; None where the oracle is exact, or where it is not known."""

    @property
    def gap(self) -> float:
        """The most that the loss can be above the optimum."""
        return self.loss - self.lower_bound

    @property
    def noise_factor(self) -> float:
        """How many times the noise the noise and the oracle's error are: errors add in squares."""
        return math.hypot(1.0, self.oracle_error or 0.0)

    @property
    def record_words(self) -> str:
        """How large the error of a model's own records is, in words; empty where it has none.

        >>> summary = FitSummary(
        ...     status=Status.AT_NOISE, loss=1.0, lower_bound=0.0, oracle_calls=9, seconds=1.0,
        ...     oracle_error=0.3)
        >>> print(summary.record_words.partition(". ")[2])
        Errors add in squares, so both together are 4.4 % larger than the noise alone.
        """
        if self.oracle_error is None:
            return ""
        words = (
            "Drawn anew, this model's records would move its answers by "
            f"{_format_share(self.oracle_error)} the noise's standard deviation. Errors add "
            "in squares, so both together are "
            f"{_format_growth(self.noise_factor)} the noise alone."
        )
        if self.oracle_error >= _LARGE_ERROR:
            words += " That is much: fit again with more records."
        if self.status is Status.NOT_MIXED:
            words += " As the records have not mixed, their error may be more than that."
        return words

    def to_json(self) -> dict[str, Any]:
        """The fields by name, as JSON can hold them: an infinite bound becomes null."""
        bound = float(self.lower_bound)
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return {
            **known,
            "status": self.status.name,
            "loss": float(self.loss),
            "lower_bound": bound if math.isfinite(bound) else None,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FitSummary:
        """The summary that `to_json` wrote; other entries of the document are left alone.

        The document may come from anywhere: what no fit can have written is an `InvalidInput`
        (a `ValueError`).
        """
        if not isinstance(document, Mapping):
            raise InvalidInput(f"`document` must be a mapping; got {type(document).__name__}.")
        bound, error = document.get("lower_bound"), document.get("oracle_error")
        summary = cls(
            status=_read_status(document.get("status")),
            loss=_read_number(document, "loss"),
            lower_bound=-math.inf if bound is None else _read_number(document, "lower_bound"),
            oracle_calls=int(_read_number(document, "oracle_calls", lowest=0, whole=True)),
            seconds=_read_number(document, "seconds", lowest=0),
            oracle_error=None
            if error is None
            else _read_number(document, "oracle_error", lowest=0),
        )
        if summary.gap < -_ROUNDING * max(1.0, abs(summary.loss)):
            raise InvalidInput(
                f"`lower_bound` must not be above the loss of {summary.loss}; "
                f"got {summary.lower_bound}."
            )
        return summary


def _format_share(share: float) -> str:
    return f"{100.0 * share:.2g} % of" if share < 0.995 else f"{share:.3g} times"


def _format_growth(factor: float) -> str:
    growth = factor - 1.0
    if growth < 0.995:
        return f"{100.0 * growth:.2g} % larger than" if growth >= 5e-4 else "hardly larger than"
    return f"{factor:.3g} times"


def _read_status(name: object) -> Status:
    if not isinstance(name, str) or name not in Status.__members__:
        raise InvalidInput(
            f"`status` must be one of {', '.join(Status.__members__)}; got {_show(name)}."
        )
    return Status[name]


def _read_number(
    document: Mapping[str, Any], name: str, *, lowest: float = -math.inf, whole: bool = False
) -> float:
    value: Any = document.get(name)
    types, limit = (int, 2**63) if whole else (int | float, 2**1000)
    # The limit comes first: an integer may be too large to be made a float.
    valid = isinstance(value, types) and not isinstance(value, bool)
    if not valid or not -limit < value < limit or value < lowest:
        kind = "a whole number" if whole else "a finite number"
        least = f" of at least {lowest:g}" if math.isfinite(lowest) else ""
        raise InvalidInput(f"`{name}` must be {kind}{least}; got {_show(value)}.")
    return value if whole else float(value)


def _show(value: object) -> str:
    """A value of unknown origin, at a length that can be read."""
    if isinstance(value, int) and abs(value) >= 2**64:
        return "an integer of more than 64 bits"  # Python may refuse to write it out
    plain = value is None or isinstance(value, str | int | float)
    return repr(value)[:60] if plain else f"a {type(value).__name__}"
