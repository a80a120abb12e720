"""The section on the fit: how it ended, its certificate, and measurements that do not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.errors import JunctureError
from juncture.fit.misfit import Misfit, measure_misfit
from juncture.fit.summary import FitSummary, Status
from juncture.model.model import Model
from juncture.privacy.request import describe_query
from juncture.publish.release import Release
from juncture.publish.report.tables import render_long_table, render_table
from juncture.publish.report.words import format_number, truncate
from juncture.tables.measurement import Measurement

_FLAG, _LARGE = 6.0, 3.0
_MAX_ROWS = 300
# An error of the records as large as the noise is flagged.
_LARGE_RECORD_ERROR = 1.0


def render_fit(release: Release) -> Markup:
    """The status and the certificate, then one line for each measurement."""
    return join(
        [
            _render_status(release.fit),
            _render_figures(release),
            _render_misfits(release.model, release.measurements),
        ]
    )


def _render_status(fit: FitSummary | None) -> Markup:
    if fit is None:
        return tag("p", "The release does not say how its fit ended.")
    ended = join([tag("strong", fit.status.headline), " ", fit.status.explanation])
    unmixed = fit.status is Status.NOT_MIXED
    return join(
        [
            tag("p", ended, " ", fit.status.advice, class_="note flag") if unmixed else None,
            None if unmixed else tag("p", ended),
            _render_record_error(fit),
        ]
    )


def _render_record_error(fit: FitSummary) -> Markup | None:
    if fit.oracle_error is None:
        return None
    large = fit.oracle_error >= _LARGE_RECORD_ERROR
    return tag("p", fit.record_words, class_="note flag" if large else None)


def _render_figures(release: Release) -> Markup | None:
    rows, fit = list[tuple[str, str, str]](), release.fit
    if fit is not None:
        bounded = math.isfinite(fit.lower_bound)
        figures = [
            ("Loss", fit.loss, _describe_loss(release)),
            ("Lower bound", fit.lower_bound if bounded else None,
             "certified: no model has a smaller loss"),
            ("Gap", fit.gap if bounded else None, "the loss is at most this far above the best"),
            ("Steps", fit.oracle_calls, "computations of all marginals"),
            ("Error of the records", fit.oracle_error,
             "of the model's own records, as a share of the noise's standard deviation"),
            ("Seconds", fit.seconds, "on the machine that made the release"),
        ]  # fmt: skip
        rows += [(n, format_number(value), why) for n, value, why in figures if value is not None]
    if release.mechanism:
        rows.append(("Mechanism", truncate(release.mechanism, 120), "decided what to measure"))
    rows += [(name, _format_value(value), "") for name, value in release.details.items()]
    if not rows:
        return None
    return render_table("How the fit went", ("Figure", "Value", "Meaning"), rows, numbers=(1,))


def _describe_loss(release: Release) -> str:
    if release.measurements:
        return "how far the model is from the measurements"
    return "how far the model is from what it was fitted to"


def _format_value(value: object) -> str:
    """Any value that a release states, at a readable length."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_number(value) if abs(value) < 1e300 else "a very large number"
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}" if value else "none"
    return truncate(str(value), 120)


def _render_misfits(model: Model, measurements: Sequence[Measurement]) -> Markup:
    heading = tag("h3", "Do the measurements agree with the model?")
    if not measurements:
        return join([heading, tag("p", _NO_MEASUREMENTS)])
    misfits = [_compare(model, measurement) for measurement in measurements[:_MAX_ROWS]]
    pairs = list(zip(measurements, misfits, strict=False))
    flagged = [pair for pair in pairs if pair[1] is not None and pair[1].deviations > _FLAG]
    left = len(measurements) - len(misfits)
    more = tag("p", f"And {count_noun(left, 'measurement')} more.", class_="hint") if left else None
    heads = ("Measurement", "Asked", "Answers", "Noise", "Residuals", "Verdict")
    return join(
        [
            heading,
            tag("p", _EXPLANATION),
            _render_summary(len(flagged), len(pairs)),
            _render_misfit_of_all([misfit for misfit in misfits if misfit is not None]),
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
    "variance is about 1 or less where all is well. Far more means that the stated noise is too "
    "small, that values were mixed up, or that other measurements contradict it."
)


_NO_MEASUREMENTS = (
    "The release has no measurements, so no residuals can be compared with a noise: its mechanism "
    "made the model from random choices, or kept its measurements to itself. What is known of the "
    "fit stands above."
)


def _render_misfit_of_all(misfits: Sequence[Misfit]) -> Markup | None:
    """One figure for the whole release, whatever the mechanism: the misfit of all answers."""
    n_answers = sum(misfit.measurement.n_rows for misfit in misfits)
    if not n_answers:
        return None
    ratio = sum(misfit.ratio * misfit.measurement.n_rows for misfit in misfits) / n_answers
    return tag(
        "p",
        tag("strong", f"Misfit {ratio:.2f}"),
        f": the mean squared residual over the variance, of all {count_noun(n_answers, 'answer')}. "
        f"An answer is typically off by {math.sqrt(ratio):.2f} standard deviations of its noise.",
    )


def _render_summary(flagged: int, compared: int) -> Markup:
    if flagged:
        sentence = (
            f"{flagged} of {compared} contradict their own noise. Check them before relying on "
            "the release."
        )
        return tag("p", tag("strong", sentence), class_="note flag")
    sentence = "The measurement agrees" if compared == 1 else f"All {compared} measurements agree"
    return tag("p", tag("strong", f"{sentence} with the model, within the noise."), class_="note")


def _compare(model: Model, measurement: Measurement) -> Misfit | None:
    """How a measurement fits; None where the model cannot answer for its clique."""
    try:
        return measure_misfit(model, measurement)
    except JunctureError:
        return None


def _row(measurement: Measurement, misfit: Misfit | None) -> tuple[str | Markup, ...]:
    return (
        ", ".join(measurement.clique) or "all records",
        describe_query(measurement.query),
        f"{measurement.n_rows:,}",
        f"{measurement.noise} {_format_stddev(measurement)}",
        "" if misfit is None else f"{misfit.ratio:.2f}",
        _render_verdict(misfit),
    )


def _format_stddev(measurement: Measurement) -> str:
    low, high = float(measurement.stddev.min()), float(measurement.stddev.max())
    return (
        f"±{format_number(low)}"
        if low == high
        else f"±{format_number(low)} to {format_number(high)}"
    )


def _render_verdict(misfit: Misfit | None) -> str | Markup:
    if misfit is None:
        return "could not be compared"
    if misfit.deviations > _FLAG:
        return tag("strong", "contradicts its noise", class_="flagged")
    return "rather large" if misfit.deviations > _LARGE else "fits"
