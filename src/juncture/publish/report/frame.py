"""What all pages of a release share: the frame around their sections, with its style.

A page contains its style and drawings and no script; its policy forbids every request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from juncture._util.html import Markup, join, tag
from juncture.publish.report.style import build_style_sheet

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LOGO = Markup(
    '<svg viewBox="0 0 24 24" role="img" aria-label="Juncture"><path class="edge" '
    'd="M5 5L12 12L19 5M12 12V20"/><circle class="dot" cx="5" cy="5" r="2.6"/><circle class="dot" '
    'cx="19" cy="5" r="2.6"/><circle class="dot" cx="12" cy="20" r="2.6"/><circle '
    'class="dot root" cx="12" cy="12" r="3"/></svg>'
)


class Section(NamedTuple):
    """A part of a page: its anchor, its name in the contents, its heading, and its content."""

    anchor: str
    short: str
    heading: str
    content: Markup


def render_page(
    title: str, mark: str, opening: Markup, sections: Sequence[Section], footer: str
) -> str:
    """One HTML document: a small line above its title, an opening, sections, a last line."""
    header = tag("header", tag("p", _LOGO, mark, class_="mark"), tag("h1", title), opening)
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#report", class_="skip"),
        tag(
            "div",
            header,
            tag("div", _render_contents(sections), _render_main(sections, footer),
                class_="columns"),
            class_="page",
        ),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{tag('html', _render_head(title), body, lang='en')}\n"


def render_figures(figures: Sequence[tuple[str, str]]) -> Markup:
    """A few figures in large letters, each with its name."""
    items = [tag("div", tag("dt", what), tag("dd", _keep_whole(value))) for what, value in figures]
    return tag("dl", items, class_="figures")


def _keep_whole(value: str) -> Markup:
    """A figure that breaks into lines after its commas alone."""
    *first, last = value.split(", ")
    return join([*(join([tag("span", f"{part},"), " "]) for part in first), tag("span", last)])


def _render_head(name: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", name),
        tag("style", Markup(build_style_sheet())),
    )


def _render_contents(sections: Sequence[Section]) -> Markup:
    links = [tag("li", tag("a", each.short, href=f"#{each.anchor}")) for each in sections]
    return tag("nav", tag("ol", links), aria_label="Contents")


def _render_main(sections: Sequence[Section], footer: str) -> Markup:
    rendered = [
        tag("section", tag("h2", each.heading, id=f"{each.anchor}-title"), each.content,
            id=each.anchor, aria_labelledby=f"{each.anchor}-title")
        for each in sections
    ]  # fmt: skip
    return tag("main", join(rendered), tag("footer", tag("p", footer)), id="report")
