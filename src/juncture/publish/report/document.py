"""The report: one HTML file that says what a release is, and loads nothing else.

The page contains its style and drawings and no script; its policy forbids every request. The same
release gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from juncture._util.atomic_file import atomic_write
from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.privacy.guarantee import Guarantee
from juncture.publish.count_noise import CountNoise
from juncture.publish.release import Release
from juncture.publish.report.distributions import render_attributes, render_pairs
from juncture.publish.report.fit import render_fit
from juncture.publish.report.found import render_found
from juncture.publish.report.guarantee import render_guarantee
from juncture.publish.report.ledger_section import render_ledger
from juncture.publish.report.reuse import render_reuse
from juncture.publish.report.structure import render_structure
from juncture.publish.report.style import build_style_sheet
from juncture.publish.report.words import format_count, format_large, format_noise

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LOGO = Markup(
    '<svg viewBox="0 0 24 24" role="img" aria-label="Juncture"><path class="edge" '
    'd="M5 5L12 12L19 5M12 12V20"/><circle class="dot" cx="5" cy="5" r="2.6"/><circle class="dot" '
    'cx="19" cy="5" r="2.6"/><circle class="dot" cx="12" cy="20" r="2.6"/><circle '
    'class="dot root" cx="12" cy="12" r="3"/></svg>'
)


def write_report(
    release: Release,
    path: str | Path,
    *,
    title: str | None = None,
    source: str | Path | None = None,
) -> Path:
    """Write the report of a release to an HTML file, and return its path.

    - `path`: the file; it is written completely or not at all.
    - `title`: the heading; by default, made from the name of `source`.
    - `source`: the file that the release was loaded from; its name, size and checksum are stated.

    >>> from tempfile import TemporaryDirectory
    >>> from juncture import Domain, Model
    >>> model = Model.of_potentials(Domain({"age": 2}), [], total=100)
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report(Release(model=model), f"{folder}/people.html", title="People")
    ...     print(page.name, "<h1>People</h1>" in page.read_text())
    people.html True
    """
    target = Path(path)
    page = render_report(release, title=title, source=source).encode()
    with atomic_write(target) as file:
        file.write(page)
    return target


def render_report(
    release: Release, *, title: str | None = None, source: str | Path | None = None
) -> str:
    """The report of a release as one HTML document."""
    file = None if source is None else Path(source)
    name = title or (f"Release of {file.stem}" if file else "Privacy-protected release")
    sections = _make_sections(release, file)
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#report", class_="skip"),
        tag(
            "div",
            _render_header(release, name),
            tag("div", _render_contents(sections), _render_main(sections), class_="columns"),
            class_="page",
        ),
    )
    return f"<!DOCTYPE html>\n{tag('html', _render_head(name), body, lang='en')}\n"


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


def _render_header(release: Release, name: str) -> Markup:
    return tag(
        "header",
        tag("p", _LOGO, "Report of a release made with Juncture", class_="mark"),
        tag("h1", name),
        tag("p", _introduce(release.guarantee), class_="intro"),
        tag(
            "dl",
            [
                tag("div", tag("dt", what), tag("dd", value))
                for what, value in _list_key_figures(release)
            ],
            class_="figures",
        ),
    )


def _introduce(guarantee: Guarantee | None) -> str:
    protected = guarantee is not None and guarantee.holds
    basis = "counts to which noise was added" if protected else "noisy counts"
    return (
        f"This is a statistical model of a table of records, estimated from {basis}; it contains "
        "nobody’s record. It answers questions about the table, and this page says "
        + ("how the people in the table are protected, " if protected else "")
        + "what the model says, and how far to trust it."
    )


def _list_key_figures(release: Release) -> list[tuple[str, str]]:
    model, guarantee = release.model, release.guarantee
    figures = [
        (_label_records(release), format_count(round(model.total))),
        ("attributes" if len(model.domain) != 1 else "attribute", f"{len(model.domain):,}"),
        ("cells in the full table", format_large(model.domain.size)),
        ("measurements", f"{len(release.measurements):,}"),
        ("privacy budget spent", _format_spent(guarantee, model.total)),
    ]
    if guarantee is not None and guarantee.days:
        figures.append(("last event", guarantee.days[1]))
    return figures


def _label_records(release: Release) -> str:
    guarantee = release.guarantee
    neighbours = None if guarantee is None else guarantee.neighbours
    if neighbours is not None and neighbours.n_records_is_public:
        return "records"
    stddev = CountNoise(release.model.domain, release.measurements).stddevs(())
    noise = "" if stddev is None else f" {format_noise(float(stddev))}"
    return f"records, estimated{noise}"


def _format_spent(guarantee: Guarantee | None, n_records: float) -> str:
    if guarantee is None or not guarantee.holds:
        return "not stated"
    return str(guarantee.state(n_records))


Section = tuple[str, str, str, Markup]


def _make_sections(release: Release, source: Path | None) -> list[Section]:
    """For each section: its anchor, its name in the contents, its heading, and its content."""
    model = release.model
    named = count_noun(len(model.domain), "attribute")
    return [
        ("guarantee", "Guarantee", "The guarantee",
         render_guarantee(release.guarantee, model.total)),
        ("ledger", "Ledger", "The ledger: what was spent",
         render_ledger(release.guarantee, release.measurements)),
        *([("found", "Bins and values", "Bins and values, found privately",
            render_found(release.found, release.schema))] if release.found else []),
        ("structure", "Structure", "The structure of the model",
         render_structure(model, release.schema)),
        ("attributes", "Attributes", f"The {named}, one by one",
         render_attributes(model, release.measurements)),
        ("pairs", "Pairs", "The strongest pairs",
         render_pairs(model, release.measurements)),
        ("fit", "Fit", "How well it fits", render_fit(release)),
        ("reuse", "Use and cite", "How to use and cite it", render_reuse(model, source)),
    ]  # fmt: skip


def _render_contents(sections: list[Section]) -> Markup:
    links = [tag("li", tag("a", short, href=f"#{anchor}")) for anchor, short, _, _ in sections]
    return tag("nav", tag("ol", links), aria_label="Contents")


def _render_main(sections: list[Section]) -> Markup:
    rendered = [
        tag("section", tag("h2", heading, id=f"{anchor}-title"), content, id=anchor,
            aria_labelledby=f"{anchor}-title")
        for anchor, _, heading, content in sections
    ]  # fmt: skip
    footer = tag(
        "footer",
        tag("p", "Written by Juncture from the release alone. This page loads nothing else."),
    )
    return tag("main", join(rendered), footer, id="report")
