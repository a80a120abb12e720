"""The section on bins and values that were found privately: how, how many, and for what price."""

from __future__ import annotations

from collections.abc import Sequence

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.publish.found import Found, FoundColumn
from juncture.publish.report.tables import fold, render_table
from juncture.publish.report.words import format_count, truncate
from juncture.tables.schema import Schema

_MAX_LETTERS, _MAX_LISTED = 60, 400


def render_found(found: Sequence[FoundColumn], schema: Schema | None) -> Markup:
    """A line for each column, and what was found of it."""
    n_events = sum(each.n_events for each in found)
    introduction = (
        "The bins and values of these columns were not known beforehand. They were found in the "
        "private table through noisy counts, which are paid for like all others: "
        f"{count_noun(n_events, 'event')} of the ledger. Numbers inside a bin, and the values that "
        "synthetic records have there, follow the same noisy counts."
    )
    rows = [
        (
            truncate(each.name, _MAX_LETTERS),
            f"{each.n_found:,} {each.what}",
            each.how,
            _describe_noise(each),
            f"{each.price_words}, in {count_noun(each.n_events, 'event')}",
        )
        for each in found
    ]
    heads = ("Column", "Found", "What was counted", "Noise", "Cost")
    table = render_table("Columns whose bins or values were found privately", heads, rows)
    lists = [] if schema is None else [_list_codes(each, schema) for each in found]
    return join([tag("p", introduction), table, *lists])


def _describe_noise(each: FoundColumn) -> str:
    if each.what is Found.BINS:
        return f"±{format_count(round(each.noise))} on a range"
    least = "" if each.threshold is None else f"; known from {format_count(round(each.threshold))}"
    return f"±{format_count(round(each.noise))} on a value{least}"


def _list_codes(each: FoundColumn, schema: Schema) -> Markup:
    labels = [str(label) for label in schema.columns[each.name].coding.labels]
    shown = ", ".join(truncate(label, _MAX_LETTERS) for label in labels[:_MAX_LISTED])
    more = f" and {len(labels) - _MAX_LISTED:,} more" if len(labels) > _MAX_LISTED else ""
    name = truncate(each.name, _MAX_LETTERS)
    return fold(f"The {each.what} of {name}", tag("p", shown + more, class_="hint"))
