"""The report: one HTML file that says what a release is, and loads nothing else.

The page contains its style and drawings and no script; its policy forbids every request. The same
release gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from juncture._util.atomic_file import atomic_write
from juncture._util.html import join, tag
from juncture._util.text import count_noun
from juncture.fit.replicas import Replicas
from juncture.privacy.guarantee import Guarantee
from juncture.publish.count_noise import CountNoise
from juncture.publish.intervals import IntervalAnswer
from juncture.publish.release import Release
from juncture.publish.report.certainty import render_certainty
from juncture.publish.report.distributions import render_attributes, render_pairs
from juncture.publish.report.fit import render_fit
from juncture.publish.report.found import render_found
from juncture.publish.report.frame import Section, render_figures, render_page
from juncture.publish.report.guarantee import render_guarantee
from juncture.publish.report.ledger_section import render_ledger
from juncture.publish.report.reuse import render_reuse
from juncture.publish.report.structure import render_structure
from juncture.publish.report.words import format_count, format_large, format_noise

_LEVEL = 0.95


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
    opening = join(
        [
            tag("p", _introduce(release.guarantee), class_="intro"),
            render_figures(_list_key_figures(release)),
        ]
    )
    mark = "Report of a release made with Juncture"
    footer = "Written by Juncture from the release alone. This page loads nothing else."
    return render_page(name, mark, opening, _make_sections(release, file), footer)


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


def _make_sections(release: Release, source: Path | None) -> list[Section]:
    """The sections of the report, in order."""
    model = release.model
    named = count_noun(len(model.domain), "attribute")
    return [
        Section("guarantee", "Guarantee", "The guarantee",
         render_guarantee(release.guarantee, model.total)),
        Section("ledger", "Ledger", "The ledger: what was spent",
         render_ledger(release.guarantee, release.measurements)),
        *([Section("found", "Bins and values", "Bins and values, found privately",
            render_found(release.found, release.schema))] if release.found else []),
        Section("structure", "Structure", "The structure of the model",
         render_structure(model, release.schema)),
        Section("attributes", "Attributes", f"The {named}, one by one",
         render_attributes(model, release.measurements, _find_intervals(release))),
        Section("pairs", "Pairs", "The strongest pairs",
         render_pairs(model, release.measurements)),
        Section(
            "certainty", "Certainty", "How sure the answers are", render_certainty(release)
        ),
        Section("fit", "Fit", "How well it fits", render_fit(release)),
        Section("reuse", "Use and cite", "How to use and cite it", render_reuse(model, source)),
    ]  # fmt: skip


def _find_intervals(release: Release) -> Callable[[str], IntervalAnswer] | None:
    """The intervals of the counts of an attribute, where the file has what they need."""
    if not isinstance(release.replicas, Replicas):
        return None
    return lambda name: release.project((name,), interval=_LEVEL)
