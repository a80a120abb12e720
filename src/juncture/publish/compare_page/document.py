"""A page that holds a release against its table: columns, pairs, strengths, and what it teaches.

Made from exact counts it is as private as the table, and says so on top and at the end. Made from
noisy counts it states what they cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from juncture._util.atomic_file import atomic_write
from juncture._util.html import Child, Markup, join, tag
from juncture._util.text import count_noun
from juncture.publish.compare_page.drawings import draw_pair_errors, draw_strengths, draw_two_bars
from juncture.publish.compare_page.facts import ColumnCounts, Comparison
from juncture.publish.comparison import Difference
from juncture.publish.report.frame import Section, render_figures, render_page
from juncture.publish.report.tables import render_table
from juncture.publish.report.words import format_labels, format_number, format_percent

NOT_PRIVATE = "NOT PRIVATE: read from the private table. Do not publish this page."
_MAX_CARDS, _MAX_ROWS, _MAX_SHRUNK = 60, 12, 12
_LEGEND = Markup(
    '<p class="legend"><svg viewBox="0 0 20 10" width="20" height="10" aria-hidden="true">'
    '<rect width="20" height="8" y="1" class="true"/></svg> the table '
    '<svg viewBox="0 0 20 10" width="20" height="10" aria-hidden="true"><rect width="20" '
    'height="8" y="1" class="bar"/></svg> the release</p>'
)


def write_comparison(comparison: Comparison, path: str | Path, *, title: str) -> Path:
    """Write the page to an HTML file, whole or not at all, and return its path."""
    target = Path(path)
    page = render_comparison(comparison, title=title).encode()
    with atomic_write(target) as file:
        file.write(page)
    return target


def render_comparison(comparison: Comparison, *, title: str) -> str:
    """The page as one HTML document."""
    sections = [
        Section("columns", "Columns", "Single columns", _render_columns(comparison)),
        Section("pairs", "Pairs", "Pairs of columns", _render_pairs(comparison)),
    ]
    if comparison.associations:
        strengths = _render_strengths(comparison)
        sections.append(Section("strengths", "Correlations", "What depends on what", strengths))
    learned = _render_lesson(comparison)
    sections.append(Section("learning", "Learning", "What its records teach", learned))
    footer = NOT_PRIVATE if comparison.guarantee is None else _state_cost(comparison.guarantee)
    opening = join([_render_warning(comparison), render_figures(_list_figures(comparison))])
    return render_page(title, "A release beside its table", opening, sections, footer)


def _render_warning(comparison: Comparison) -> Markup:
    if comparison.guarantee is None:
        return tag("div", tag("p", tag("b", NOT_PRIVATE)), class_="note flag")
    return tag("div", tag("p", _state_cost(comparison.guarantee)), class_="note")


def _state_cost(guarantee: str) -> str:
    return (
        f"The table’s counts on this page have noise and were paid for: {guarantee}. What "
        "the noise alone shows as an error is stated beside each."
    )


def _list_figures(comparison: Comparison) -> list[tuple[str, str]]:
    figures = [
        ("mean error of a column", format_percent(_mean(comparison.singles))),
        ("mean error of a pair", format_percent(_mean(comparison.pairs))),
    ]
    if comparison.lesson is not None:
        figures += [
            (f"told right, trained on {score.trained_on}", format_percent(score.accuracy))
            for score in comparison.lesson.scores
        ]
    return figures


def _mean(differences: list[Difference]) -> float:
    return sum(each.error for each in differences) / len(differences) if differences else 0.0


def _render_columns(comparison: Comparison) -> Markup:
    errors = {each.clique[0]: each for each in comparison.singles}
    ordered = sorted(comparison.columns, key=lambda column: -errors[column.name].error)
    cards = [_render_card(c, comparison, errors[c.name]) for c in ordered[:_MAX_CARDS]]
    lead = (
        "The error of a column is the share of records that would have to move to another value. "
        "Columns with the largest error come first."
    )
    left = len(ordered) - len(cards)
    more = tag("p", f"{count_noun(left, 'column')} more with smaller errors.") if left else None
    return join([tag("p", lead), _LEGEND, tag("div", cards, class_="cards"), more])


def _render_card(column: ColumnCounts, comparison: Comparison, error: Difference) -> Markup:
    labels = format_labels(comparison.codebook, column.name)
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", column.name),
            tag("p", f"error {_describe_error(error)}", class_="hint"),
        ),
        draw_two_bars(column.name, labels, column.truth, column.released),
        class_="card",
    )


def _describe_error(difference: Difference) -> str:
    noise = f" ({format_percent(difference.noise)} by noise alone)" if difference.noise else ""
    return f"{format_percent(difference.error)}{noise}"


def _render_pairs(comparison: Comparison) -> Markup:
    pairs = comparison.pairs
    if not pairs:
        return tag("p", "There are no pairs to compare.")
    names = [column.name for column in comparison.columns]
    worst = sorted(pairs, key=lambda pair: -pair.error)[:_MAX_ROWS]
    rows: list[tuple[Child, ...]] = [
        (" and ".join(p.clique), f"{p.cells:,}", _describe_error(p), format_number(p.largest))
        for p in worst
    ]
    heads = ("pair", "cells", "error", "largest difference, records")
    return join([
        tag("p", f"{count_noun(len(pairs), 'pair')} compared. The stronger the colour of a square, "
            "the larger the share of records that would have to move to another cell."),
        tag("div", draw_pair_errors(names, pairs), class_=_frame_of(names)),
        render_table("The largest errors of pairs", heads, rows, numbers=(1, 2, 3)),
    ])  # fmt: skip


def _frame_of(names: Sequence[str]) -> str:
    """The frame of the drawing of pairs: that of a few columns shrinks on a phone."""
    return "tree" if len(names) <= _MAX_SHRUNK else "tree wide"


def _render_strengths(comparison: Comparison) -> Markup:
    apart = sorted(comparison.associations, key=lambda a: -abs(a.truth - a.other))[:_MAX_ROWS]
    rows: list[tuple[Child, ...]] = [
        (" and ".join(each.pair), f"{each.truth:.3f}", f"{each.other:.3f}") for each in apart
    ]
    heads = ("pair", "in the table", "in the release")
    return join([
        tag("p", "Cramér’s V of each pair: 0 where two columns are independent, 1 where one "
            "gives the other. A point on the line is as strong in the release as in the table."),
        tag("div", draw_strengths(comparison.associations), class_="tree"),
        render_table("The pairs whose strength differs most", heads, rows, numbers=(1, 2)),
    ])  # fmt: skip


def _render_lesson(comparison: Comparison) -> Markup:
    lesson = comparison.lesson
    if lesson is None:
        return tag("p", comparison.no_lesson)
    rows: list[tuple[Child, ...]] = [
        (score.trained_on, format_percent(score.accuracy), format_percent(score.balanced))
        for score in lesson.scores
    ]
    heads = ("trained on", "told right", "told right, mean over the values")
    return join([
        tag("p", f"A classifier (gradient-boosted trees) predicts {lesson.target} from all other "
            f"columns, and is tested on {lesson.n_tested:,} real records that it has not seen."),
        render_table(f"Predicting {lesson.target}", heads, rows, numbers=(1, 2)),
    ])  # fmt: skip
