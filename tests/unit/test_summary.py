"""What is said about how a fit ended, and what is kept of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from juncture.fit.summary import FitSummary, Status

SUMMARY = FitSummary(
    status=Status.STALLED, loss=12.5, lower_bound=11.0, oracle_calls=90, seconds=0.25
)

NOT_NUMBERS: list[Any] = [
    True, "1", [1.0], {}, math.nan, math.inf, -math.inf, 10**400, -(10**400)
]  # fmt: skip
NOT_STATUSES: list[Any] = [None, 3, "certified", "", ["CERTIFIED"], {}]
NOT_COUNTS: list[Any] = [None, -1, 1.0, 1.5, True, "3", 10**400, math.nan]
FALSE_ENTRIES: list[tuple[str, Any]] = [
    *(("status", value) for value in NOT_STATUSES),
    *((name, value) for name in ("loss", "seconds", "lower_bound") for value in NOT_NUMBERS),
    *(("oracle_calls", value) for value in NOT_COUNTS),
    ("loss", None),
    ("seconds", None),
    ("seconds", -1.0),
    ("lower_bound", 12.6),
]


def test_every_status_has_its_sentences() -> None:
    """Headlines and explanations are sentences, and no two statuses share one."""
    for texts in ([s.headline for s in Status], [s.explanation for s in Status]):
        assert len(set(texts)) == len(Status)
        assert all(text[0].isupper() and text.endswith(".") for text in texts)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("bound", [11.0, -3.0, -math.inf])
def test_a_summary_survives_json(status: Status, bound: float) -> None:
    """Strict JSON holds every summary, an infinite bound as null."""
    before = FitSummary(status=status, loss=12.5, lower_bound=bound, oracle_calls=0, seconds=0.0)
    text = json.dumps(before.to_json(), allow_nan=False)
    assert FitSummary.from_json(json.loads(text)) == before
    assert (json.loads(text)["lower_bound"] is None) is math.isinf(bound)


def test_other_entries_are_left_alone() -> None:
    """A summary may stand among other facts about a release."""
    assert FitSummary.from_json({**SUMMARY.to_json(), "rounds": 7}) == SUMMARY


def test_the_gap_is_the_loss_above_the_bound() -> None:
    """Nothing is known of the optimum where there is no bound."""
    assert SUMMARY.gap == 1.5
    assert FitSummary.from_json({**SUMMARY.to_json(), "lower_bound": None}).gap == math.inf


@pytest.mark.parametrize(("name", "value"), FALSE_ENTRIES)
def test_what_no_fit_has_written_is_refused(name: str, value: Any) -> None:
    """A false entry is a ValueError that names it."""
    with pytest.raises(ValueError, match=f"`{name}` must"):
        FitSummary.from_json({**SUMMARY.to_json(), name: value})


@pytest.mark.parametrize("name", ["status", "loss", "oracle_calls", "seconds"])
def test_a_missing_entry_is_refused(name: str) -> None:
    """All but the bound must be there."""
    document = SUMMARY.to_json()
    del document[name]
    with pytest.raises(ValueError, match=f"`{name}` must"):
        FitSummary.from_json(document)


@pytest.mark.parametrize("document", [None, [], "CERTIFIED", 3])
def test_what_is_no_mapping_is_refused(document: Any) -> None:
    """A summary is written as an object."""
    with pytest.raises(ValueError, match="`document` must be a mapping"):
        FitSummary.from_json(document)


def test_errors_of_records_add_in_squares() -> None:
    """The stated growth of the noise is that of the root of summed squares, from small to large."""
    for error, expected in [
        (0.02, "2 % of the noise's standard deviation. Errors add in squares, so both together "
         "are hardly larger than"),
        (0.3, "are 4.4 % larger than"),
        (0.75, "are 25 % larger than"),
        (2.4, "2.4 times the noise's standard deviation. Errors add in squares, so both together "
         "are 2.6 times"),
    ]:  # fmt: skip
        summary = FitSummary(
            status=Status.AT_NOISE, loss=1.0, lower_bound=0.0, oracle_calls=1, seconds=0.0,
            oracle_error=error,
        )  # fmt: skip
        assert expected in summary.record_words
        assert summary.noise_factor**2 == pytest.approx(1.0 + error**2)
        assert ("fit again" in summary.record_words) is (error >= 0.5)
    assert replace(summary, oracle_error=None).record_words == ""
