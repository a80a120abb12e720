"""The report: one page, whole, escaped, labelled, and the same each time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guarantees import guarantee_of
from juncture import (
    Codebook,
    Coding,
    Domain,
    Factor,
    Measurement,
    Model,
    Plan,
    Release,
    estimate,
)
from juncture.privacy.accounting import Neighbours, epsilon_of_rho
from juncture.privacy.budget import Budget
from juncture.publish import strongest_pairs
from juncture.publish.explorer.facts import describe_guarantee
from juncture.publish.report import palette
from juncture.publish.report.distributions import render_pairs
from juncture.publish.report.document import render_report, write_report
from juncture.publish.report.reuse import python_example
from juncture.tables.queries import Kron, Prefix
from report_page import Page, of

LOADING = {"src", "srcset", "data", "poster", "action", "background", "xlink:href"}
HOSTILE = "<script>alert('x')</script>\"&'"
EVENT: dict[str, Any] = {
    "event": 1, "time": "2031-05-06T07:08:09+00:00", "what": "every count of a, b",
    "mechanism": "discrete laplace", "parameters": {"scale": 2.0, "answers": 12},
    "epsilon": 0.5, "rho": 0.125, "total": 0.5,
}  # fmt: skip


def fitted() -> Release:
    """A release with everything; its last measurement, which the fit did not see, is far off."""
    domain = Domain({"a": 3, "b": 4, "c": 2})
    measurements = [
        Measurement(("a", "b"), np.arange(12.0) + 10, stddev=2.0, noise="laplace"),
        Measurement(("b", "c"), np.full(8, 23.25), stddev=3.0),
        Measurement(("c",), [400.0, 5.0], stddev=1.0, query=Kron({"c": Prefix()})),
    ]
    impossible = np.zeros((3, 4), dtype=bool)
    impossible[0, 1] = True
    fit = estimate(domain, measurements[:2], total=186.0, constraints={("a", "b"): impossible})
    book = Codebook({"a": Coding(("red", None, "blue")), "b": Coding.of_bins([0, 1, 2.5, 3, 9])})
    return Release(
        model=fit.model.with_codebook(book),
        measurements=measurements,
        fit=fit.summary,
        guarantee=guarantee_of([EVENT, {**EVENT, "event": 2, "total": 1.0}]),
    )


def hostile() -> Release:
    """Every name, label and text of a release tries to break out."""
    model = of([(HOSTILE, "]]>-->")], {HOSTILE: 3, "]]>-->": 40})
    labels = ("</title><img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "\ud800\x00")
    return Release(
        model=model.with_codebook(Codebook({HOSTILE: Coding(labels)})),
        measurements=[Measurement((HOSTILE,), [500.0, 0.0, 0.0], stddev=1.0)],
        details={HOSTILE: HOSTILE, "list": [HOSTILE], "huge": 10**400},
        mechanism=HOSTILE,
        guarantee=guarantee_of(
            [{"event": HOSTILE, "what": HOSTILE, "mechanism": HOSTILE, "time": HOSTILE,
              "parameters": {HOSTILE: HOSTILE}, "epsilon": HOSTILE, "rho": 0.5}]
        ),
    )  # fmt: skip


def wide(n: int, parent: Callable[[int], int]) -> Release:
    """A tree of n attributes of two values, and so of n - 1 cliques."""
    pairs = [(f"x{parent(place)}", f"x{place}") for place in range(1, n)]
    return Release(model=of(pairs, {f"x{place}": 2 for place in range(n)}))


RELEASES: dict[str, Callable[[], Release]] = {
    "everything": fitted,
    "hostile": hostile,
    "single attribute": lambda: Release(model=of([("only",)], {"only": 2})),
    "single value": lambda: Release(model=of([("only",)], {"only": 1})),
    "nothing measured": lambda: Release(model=of([], {"p": 3, "q": 20})),
    "empty ledger": lambda: Release(
        model=of([("p", "q")], {"p": 3, "q": 20}), guarantee=guarantee_of([])
    ),
    "forest": lambda: Release(model=of([("p", "q"), ("r",)], {"p": 3, "q": 900, "r": 2, "s": 2})),
    "chain of 120": lambda: wide(121, lambda place: place - 1),
    "bush of 120": lambda: wide(121, lambda place: place // 3),
}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Release:
    """Releases of every shape."""
    return RELEASES[request.param]()


def test_the_page_is_whole_and_labelled(release: Release) -> None:
    """Elements are closed in order, drawings and scrolling parts have names, headings descend."""
    page = Page(render_report(release))
    assert page.open == []
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert page.all("svg")
    assert all(each.get("role") == "img" and each.get("aria-label") for each in page.all("svg"))
    assert all(each.get("aria-label") for each in page.all("div") if each.get("role") == "region")
    assert len(page.all("caption")) == len(page.all("table"))
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(later <= before + 1 for before, later in pairwise(levels))
    anchors = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(anchors)) == len(anchors)
    targets = {(each["href"] or "")[1:] for each in page.all("a")}
    assert targets <= set(anchors)


def test_the_page_asks_for_nothing(release: Release) -> None:
    """No element, style or script can lead to a request."""
    source = render_report(release)
    page = Page(source)
    assert not {name for name, _ in page.elements} & {"script", "img", "iframe", "object", "form"}
    for name, attributes in page.elements:
        assert not LOADING & attributes.keys(), name
        assert not any(key.startswith("on") for key in attributes), name
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), name
    style = source[source.index("<style>") : source.index("</style>")]
    assert not re.search(r"url\(|@import|expression", style)
    policy = [each["content"] for each in page.all("meta") if "http-equiv" in each]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


@pytest.mark.slow
def test_the_same_release_gives_the_same_bytes(release: Release, tmp_path: Path) -> None:
    """Nothing of the day or of the run is in the page, and the file holds it as it is."""
    page = render_report(release)
    assert render_report(release) == page
    target = write_report(release, tmp_path / "deep" / "report.html")
    assert target == tmp_path / "deep" / "report.html"
    assert target.read_bytes() == page.encode()
    assert list(target.parent.iterdir()) == [target]


def test_hostile_names_are_shown_as_text() -> None:
    """What tries to be markup is read on the page, and the title is the text that was given."""
    source = render_report(hostile(), title=HOSTILE)
    assert "<script" not in source
    assert "onload=alert" not in re.sub(r'"[^"]*"|>[^<]*<', "", source)
    page = Page(source)
    assert HOSTILE in page.text
    assert "\ufffd" in page.text


def test_without_a_ledger_no_guarantee_is_stated() -> None:
    """A release without ledger, or with events without costs, says so plainly."""
    bare = replace(fitted(), guarantee=None)
    for made in (bare, replace(bare, guarantee=guarantee_of([{"event": 1, "what": "counts"}]))):
        words = Page(render_report(made)).text
        assert "No privacy guarantee is stated." in words
        assert "ε =" not in words


@pytest.mark.parametrize("cost", [1e300, 10**400, -1.0, 0, float("nan"), True, "1", [1]])
def test_invalid_costs_are_no_guarantee(cost: object) -> None:
    """What is no positive number of sensible size counts as no cost stated."""
    made = replace(
        fitted(), guarantee=guarantee_of([EVENT, {**EVENT, "epsilon": cost, "rho": cost}])
    )
    assert "No privacy guarantee is stated." in Page(render_report(made)).text


def test_an_empty_ledger_is_called_empty() -> None:
    """No events are not taken for no cost."""
    words = Page(render_report(replace(fitted(), guarantee=guarantee_of([])))).text
    assert "No privacy guarantee is stated. The ledger of this release has no events." in words


@pytest.mark.parametrize("total", [1e-9, 1.0, 1e300])
def test_any_total_can_be_shown(total: float) -> None:
    """Models of a probability, and of extremely many records, have a page of ordinary length."""
    made = Release(model=of([("p", "q")], {"p": 2, "q": 2}, total), guarantee=guarantee_of([EVENT]))
    assert max(map(len, Page(render_report(made)).text.split())) < 60


@pytest.mark.parametrize("limit", ["_SMALL_TREE", "_LARGE_TREE"])
def test_pairs_of_large_trees_are_those_inside_cliques(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not all pairs can be asked, those of the cliques are, with the same figures."""
    model = of([("p", "q"), ("q", "r")], {"p": 4, "q": 5, "r": 3})
    whole = Page(render_pairs(model)).text
    monkeypatch.setattr(strongest_pairs, "_SMALL_TREE", 0)
    monkeypatch.setattr(strongest_pairs, limit, 0)
    fewer = Page(render_pairs(model)).text
    assert "p and r" not in fewer
    assert "r and p" not in fewer
    figures = re.findall(r"\(([\d.]+ bits)\)", fewer)
    assert len(figures) == 2
    assert all(each in whole for each in figures)


def test_the_guarantee_adds_up_the_ledger() -> None:
    """Two events of 0.5 are an epsilon of 1: a ratio of e, and even odds move up to 73.1%."""
    words = Page(render_report(fitted())).text
    assert "ε = 1 pure differential privacy" in words
    assert "more than 2.72 times likelier" in words
    assert "right at most 73.1% of the time" in words
    assert "last event" in words
    assert "2031-05-06" in words


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [
        (Neighbours.ADD_OR_REMOVE, "one record added or removed"),
        (Neighbours.REPLACE, "one record replaced"),
        (None, "does not say whether"),
    ],
)
def test_the_neighbours_are_as_stated(neighbours: Neighbours | None, expected: str) -> None:
    """What is protected is what the file states; nothing is guessed from its noise."""
    made = replace(fitted(), guarantee=guarantee_of([EVENT], neighbours=neighbours))
    words = Page(render_report(made)).text
    assert f"Neighbouring tables differ by {expected}" in words or expected in words


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=2.0), Budget(rho=0.4), None]
)
def test_report_explorer_and_repr_state_the_same(budget: Budget | None) -> None:
    """One file, one guarantee: in the notion of the budget, wherever it is shown."""
    event = {**EVENT, "epsilon": None, "rho": 0.1} if budget and budget.delta else EVENT
    made = replace(fitted(), guarantee=guarantee_of([event], budget, Neighbours.REPLACE))
    assert made.guarantee is not None
    statement = made.guarantee.state(made.model.total)
    page, facts = Page(render_report(made)).text, describe_guarantee(made)
    assert facts is not None
    assert (facts["symbol"], facts["value"]) == (statement.symbol, statement.value)
    assert f"privacy budget spent {statement}" in page
    assert str(statement) in repr(made)
    assert str(statement) in made._repr_html_()


def test_gaussian_events_give_rho_and_an_epsilon_with_delta() -> None:
    """Where an event has no pure epsilon, the page states rho and what follows for a delta."""
    event = {**EVENT, "mechanism": "discrete gaussian", "epsilon": None, "rho": 0.1}
    words = Page(render_report(replace(fitted(), guarantee=guarantee_of([event, event])))).text
    assert "ρ = 0.2 zero-concentrated" in words
    assert f"(ε, δ) = ({epsilon_of_rho(0.2, 1e-6):.4g}, 10 −6" in words
    assert "plus one in 1,000,000." in words


def test_earlier_events_are_mentioned() -> None:
    """A ledger that begins with its fourth event had three before."""
    made = replace(fitted(), guarantee=guarantee_of([{**EVENT, "event": 4}]))
    assert "The ledger had 3 events before" in Page(render_report(made)).text


def test_a_large_epsilon_is_called_large() -> None:
    """Beyond 5 the page warns that the bound allows near certainty; below it does not."""
    for epsilon, warned in ((4.9, False), (5.1, True)):
        made = replace(fitted(), guarantee=guarantee_of([{**EVENT, "epsilon": epsilon}]))
        assert ("allows near certainty" in Page(render_report(made)).text) == warned


def test_the_number_of_records_has_its_noise() -> None:
    """The total is stated with its noise, unless it is public."""
    made = replace(fitted(), measurements=fitted().measurements[:1])
    # Twelve cells with a noise of 2 each.
    assert f"records, estimated ±{np.sqrt(12) * 2:.1f}" in Page(render_report(made)).text
    public = replace(made, guarantee=guarantee_of([EVENT], neighbours=Neighbours.REPLACE))
    assert "estimated ±" not in Page(render_report(public)).text


def test_every_value_has_its_number() -> None:
    """The tables under the charts hold the model's one-way marginals, labels and all."""
    made = fitted()
    words = Page(render_report(made)).text
    for label, count in zip(("red", "(missing)", "blue"), made.model.one_way("a"), strict=True):
        # The counts of a are sums of four cells, each with a noise of 2.
        assert f"{label} {count:.1f} ±4 {100 * count / 186:.1f}%" in words
    assert "[1, 2.5)" in words


def test_a_free_attribute_is_uniform_and_called_so() -> None:
    """What was not measured is marked, and counts alike for every value."""
    model = of([("p",)], {"p": 3, "q": 5}, total=50.0)
    np.testing.assert_allclose(model.one_way("q"), model.project(("q",)).values)
    words = Page(render_report(Release(model=model))).text
    assert "Not measured: q." in words
    assert "Not measured: shown as even." in words


def test_misfits_are_flagged() -> None:
    """A measurement far off its noise is flagged; others are said to agree."""
    made = fitted()
    words = Page(render_report(made)).text
    assert "1 of 3 contradict their own noise" in words
    honest = replace(made, measurements=made.measurements[1:2])
    assert "The measurement agrees with the model" in Page(render_report(honest)).text


def test_every_release_states_its_misfit() -> None:
    """The misfit is the mean square of all residuals over their noise, whatever made the model."""
    made = fitted()
    squares = []
    for each in made.measurements:
        answers = each.operator(made.model.domain).apply(made.model.project(each.clique).values)
        squares += list(((answers - each.values) / each.stddev) ** 2)
    expected = f"Misfit {np.mean(squares):.2f} : the mean squared residual"
    for release in (made, replace(made, fit=None, mechanism="anything")):
        assert expected in Page(render_report(release)).text
    bare = replace(made, measurements=(), mechanism="dualquery")
    words = Page(render_report(bare)).text
    assert "no residuals can be compared with a noise" in words
    assert made.fit is not None
    assert made.fit.status.headline in words
    assert "how far the model is from what it was fitted to" in words


@pytest.mark.slow
def test_the_tree_is_drawn_whole() -> None:
    """Every clique of a tree of any size has its line, and every name is on the page."""
    made = wide(500, lambda place: place - 1)
    source = render_report(made)
    outline = source[source.index("tree outline") : source.index("The tree as a table")]
    assert outline.count("<circle") == 499
    crowd = Release(
        model=of([tuple(f"name{n:02}" for n in range(18))], {f"name{n:02}": 2 for n in range(18)})
    )
    page = render_report(crowd)
    drawn = page[page.index("tree wide") : page.index("The tree as a table")]
    assert all(f"name{n:02}" in drawn for n in range(18))
    assert "in all" not in drawn


def test_the_strongest_pair_comes_first() -> None:
    """The copy of an attribute leads its blurred copy; what is independent is left out."""
    domain = Domain({"p": 2, "copy": 2, "blur": 2, "alone": 2})
    strong, weak = np.array([[6.0, 0.0], [0.0, 6.0]]), np.array([[0.8, 0.0], [0.0, 0.8]])
    factors = [
        Factor(domain.project(("p", "copy")), strong),
        Factor(domain.project(("p", "blur")), weak),
    ]
    section = Page(render_pairs(Model.of_potentials(domain, factors, 100.0))).text
    assert section.index("p and copy") < section.index("p and blur")
    assert "alone" not in section
    assert "Very strong: knowing" in section
    assert "Never measured together" in section


def test_the_python_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page says to type runs as it stands, also with hostile names."""
    monkeypatch.chdir(tmp_path)
    for made in (fitted(), Release(model=of([(HOSTILE,)], {HOSTILE: 2}))):
        made.save(tmp_path / "release.jct")
        names: dict[str, Any] = {}
        exec(python_example(made.model, "release.jct"), names)
        assert names["records"].column_names == list(made.model.domain)


def test_the_file_is_named_with_its_checksum(tmp_path: Path) -> None:
    """With the release's file, the page states its name, and its digest changes with a byte."""
    made = fitted()
    path = made.save(tmp_path / "people.jct")
    first = render_report(made, source=path)
    assert "Release of people" in first
    path.write_bytes(path.read_bytes() + b"x")
    digests = [
        re.findall(r"[0-9a-f]{64}", page) for page in (first, render_report(made, source=path))
    ]
    assert [len(found) for found in digests] == [1, 1]
    assert digests[0] != digests[1]


@pytest.mark.parametrize("theme", [palette.LIGHT, palette.DARK])
def test_texts_stand_out(theme: dict[str, str]) -> None:
    """Every text colour has a contrast of at least 4.5 on every ground, marks of at least 3."""
    for ground in palette.GROUNDS:
        for text in palette.TEXTS:
            assert palette.contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
    assert palette.LIGHT.keys() == palette.DARK.keys()


def test_contrast_is_that_of_wcag() -> None:
    """Black on white is 21, a colour on itself 1, and the order does not matter."""
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)
    assert palette.contrast("#ffffff", "#777777") == palette.contrast("#777777", "#ffffff")
    assert palette.contrast("#123456", "#123456") == 1.0


@pytest.mark.parametrize("values", [np.array(3.5), np.arange(40.0), np.zeros((3, 30))])
def test_factors_show_in_notebooks(values: np.ndarray) -> None:
    """A factor is a small table of its first cells, and says how many more there are."""
    names = ("<b>", "q")[: values.ndim]
    factor = Factor(Domain(zip(names, values.shape, strict=True)), values)
    page = Page(factor._repr_html_())
    assert page.open == []
    shown = max(1, len(page.all("td")) - (len(page.all("tr")) - 1)) if values.ndim else 1
    assert shown <= 120
    assert (f"{values.size - shown} cells more" in page.text) == (values.size > shown)
    assert not page.all("b")


def test_structural_zeros_show_in_notebooks() -> None:
    """Minus infinity is written as such beside ordinary numbers."""
    factor = Factor(Domain({"p": 2}), [0.5, -np.inf])
    assert "−∞" in Page(factor._repr_html_()).text


def test_models_plans_and_releases_show_in_notebooks() -> None:
    """Each is whole markup that names the attributes, hostile ones as text."""
    made = hostile()
    plan = Plan.build(made.model.domain, made.model.cliques)
    for each in (plan, made.model, made):
        page = Page(each._repr_html_())
        assert page.open == []
        assert HOSTILE in page.text
        assert not page.all("script")
    assert "1,000 records over 2 attributes" in Page(made._repr_html_()).text
