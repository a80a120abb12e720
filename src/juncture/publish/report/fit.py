"""The section on the fit: how it ended, its certificate, and measurements that do not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.errors import JunctureError
from juncture.fit.misfit import Misfit, measure_misfit
from juncture.fit.summary import Status
from juncture.model.model import Model
from juncture.privacy.request import words as query_words
from juncture.publish.report.tables import render_long_table, render_table
from juncture.publish.report.words import format_number, pluralize, truncate
from juncture.tables.measurement import Measurement

_FLAG, _LARGE = 6.0, 3.0
_MAX_ROWS = 300
# What other parts of the page say, or this one in words of its own.
_KNOWN_STATISTICS = frozenset(
    {"status", "loss", "lower_bound", "oracle_calls", "seconds", "neighbours", "budget", "spent"}
)


def render_fit(
    model: Model, measurements: Sequence[Measurement], statistics: Mapping[str, Any]
) -> Markup:
    """Status and certificate, then one line for each measurement."""
    return join(
        [
            _describe_status(statistics),
            _figure_table(statistics),
            _render_misfits(model, measurements),
        ]
    )


def _describe_status(statistics: Mapping[str, Any]) -> Markup:
    name = statistics.get("status")
    known = name in Status.__members__ if isinstance(name, str) else False
    if known and isinstance(name, str):
        return tag("p", tag("strong", Status[name].headline), " ", Status[name].explanation)
    return tag("p", "The release does not say how its fit ended.")


def _figure_table(statistics: Mapping[str, Any]) -> Markup | None:
    numbers = {name: _finite_number(value) for name, value in statistics.items()}
    loss, bound = numbers.get("loss"), numbers.get("lower_bound")
    known = [
        ("Loss", loss, "how far the model is from the measurements"),
        ("Lower bound", bound, "certified: no model has a smaller loss"),
        ("Gap", None if loss is None or bound is None else loss - bound,
         "the loss is at most so far above the best"),
        ("Steps", numbers.get("oracle_calls"), "computations of all marginals"),
        ("Seconds", numbers.get("seconds"), "where the release was made"),
    ]  # fmt: skip
    rows = [
        (name, format_number(value), meaning) for name, value, meaning in known if value is not None
    ]
    for name in [name for name in numbers if name not in _KNOWN_STATISTICS]:
        shown = numbers[name]
        rows.append(
            (name, _format_value(statistics[name]) if shown is None else format_number(shown), "")
        )
    if not rows:
        return None
    return render_table("How the fit went", ("Figure", "Value", "Meaning"), rows, numbers=(1,))


def _format_value(value: object) -> str:
    """Whatever a release states, at a length that can be read."""
    return (
        f"{len(value)} entries"
        if isinstance(value, list | tuple | dict)
        else truncate(str(value), 120)
    )


def _finite_number(value: object) -> float | None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(float(value)) else None  # type: ignore[arg-type]


def _render_misfits(model: Model, measurements: Sequence[Measurement]) -> Markup:
    heading = tag("h3", "Do the measurements agree with the model?")
    if not measurements:
        return join([heading, tag("p", "The release holds no measurements to compare with.")])
    misfits = [_compare(model, measurement) for measurement in measurements[:_MAX_ROWS]]
    pairs = list(zip(measurements, misfits, strict=False))
    flagged = [pair for pair in pairs if pair[1] is not None and pair[1].deviations > _FLAG]
    left = len(measurements) - len(misfits)
    more = tag("p", f"And {pluralize(left, 'measurement')} more.", class_="hint") if left else None
    heads = ("Measurement", "Asked", "Answers", "Noise", "Residuals", "Verdict")
    return join(
        [
            heading,
            tag("p", _EXPLANATION),
            _summary(len(flagged), len(pairs)),
            render_table(
                "Measurements that do not fit",
                heads,
                map(_row, *zip(*flagged, strict=True)),
                numbers=(2, 3, 4),
            )
            if flagged
            else None,
            render_long_table(
                [_row(*pair) for pair in pairs],
                "All measurements",
                heads,
                noun="measurement",
                numbers=(2, 3, 4),
            ),
            more,
        ]
    )


_EXPLANATION = (
    "A measurement's residuals are compared with its own noise: the mean squared residual over the "
    "variance is about 1, or less, where all is well. Far more means that the stated noise is too "
    "small, that values were mixed up, or that other measurements contradict it."
)


def _summary(flagged: int, compared: int) -> Markup:
    if flagged:
        sentence = (
            f"{flagged} of {compared} contradict their own noise. Do not rely on them unseen."
        )
        return tag("p", tag("strong", sentence), class_="note flag")
    sentence = "The measurement agrees" if compared == 1 else f"All {compared} measurements agree"
    return tag("p", tag("strong", f"{sentence} with the model, within the noise."), class_="note")


def _compare(model: Model, measurement: Measurement) -> Misfit | None:
    """How a measurement fits; none where the model cannot be asked for its table."""
    try:
        return measure_misfit(model, measurement)
    except JunctureError:
        return None


def _row(measurement: Measurement, misfit: Misfit | None) -> tuple[str | Markup, ...]:
    return (
        ", ".join(measurement.clique) or "all records",
        _describe_query(measurement),
        f"{measurement.n_rows:,}",
        f"{measurement.noise} {_format_stddev(measurement)}",
        "" if misfit is None else f"{misfit.ratio:.2f}",
        _verdict(misfit),
    )


def _describe_query(measurement: Measurement) -> str:
    return query_words(measurement.query)


def _format_stddev(measurement: Measurement) -> str:
    low, high = float(measurement.stddev.min()), float(measurement.stddev.max())
    return (
        f"±{format_number(low)}"
        if low == high
        else f"±{format_number(low)} to {format_number(high)}"
    )


def _verdict(misfit: Misfit | None) -> str | Markup:
    if misfit is None:
        return "could not be compared"
    if misfit.deviations > _FLAG:
        return tag("strong", "contradicts its noise", class_="flagged")
    return "rather large" if misfit.deviations > _LARGE else "fits"
