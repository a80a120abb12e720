"""The report in a real browser: quiet, still, within its width, and usable by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

from guarantees import guarantee_of
from juncture import Codebook, Coding, Domain, Factor, Measurement, Model, Release
from juncture.fit.summary import FitSummary, Status
from juncture.publish.report.document import write_report
from steward_release import FLAGS, LONG, steward_release

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"no browser at {CHROMIUM}: the report is not looked at"
    ),
]


SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(e => { sum += e.value; }))
    .observe({type: 'layout-shift', buffered: true});
  setTimeout(() => done(sum), 300);
})"""
TOO_WIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll, pre, .tree, svg, .skip') && e.offsetParent)
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map(e => e.outerHTML.slice(0, 120))"""
FAINT = """() => {
  const linear = c => { c /= 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; };
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b); };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255,255,255)'; };
  return [...document.querySelectorAll('p,li,a,td,th,h1,h2,h3,dt,dd,summary,code,caption,text')]
    .filter(e => e.textContent.trim()).filter(e => {
      const style = getComputedStyle(e), svg = e.tagName === 'text';
      const one = light(svg ? style.fill : style.color), other = light(ground(e));
      const a = Math.min(one, other), b = Math.max(one, other);
      return (b + .05) / (a + .05) < 4.5; }).map(e => e.outerHTML.slice(0, 120));
}"""
# Texts of drawings that are cut, each with the title that pointing at it shows.
CUT = """() => [...document.querySelectorAll('.card svg text')]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.includes('…')))
  .map(e => [e.lastChild.data, (e.querySelector('title')
    ?? e.parentElement.querySelector('title'))?.textContent ?? ''])"""
# Pairs of texts in one drawing that overlap.
OVERLAP = """() => [...document.querySelectorAll('#attributes .card svg')].flatMap(drawing => {
  const boxes = [...drawing.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], index) => boxes.slice(index + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
      && a.top < b.bottom - 3 && b.top < a.bottom - 3)
    .map(([other]) => `${one.textContent} / ${other.textContent}`));
})"""


def some_release() -> Release:
    """A release that has every part of the page, with names of every length."""
    sizes = {
        "age": 90,
        "a rather long name of an attribute, as happens": 12,
        "sex": 2,
        "x" * 200: 5,
    }
    domain, rng = Domain(sizes), np.random.default_rng(0)
    names = tuple(domain)
    pairs = [names[:2], (names[1], "sex"), ("sex", names[3])]
    factors = [Factor.random(domain.project(pair), rng) for pair in pairs]
    book = Codebook({"sex": Coding(("female", "w" * 90))})
    model = Model.of_potentials(domain, factors, 5000.0).with_codebook(book)
    measurements = [
        Measurement(pair, model.project(pair).values.reshape(-1) + 3.0, stddev=4.0)
        for pair in pairs
    ]
    ledger = [
        {"event": place + 1, "time": "2030-01-02T03:04:05+00:00",
         "what": "every count of " + "y" * 99, "mechanism": "discrete laplace",
         "parameters": {"scale": 20.0, "answers": 10},
         "epsilon": 0.05, "rho": 0.00125, "total": 0.05 * (place + 1)}
        for place in range(30)
    ]  # fmt: skip
    return Release(
        model=model, measurements=measurements, guarantee=guarantee_of(ledger),
        fit=FitSummary(
            status=Status.CERTIFIED, loss=12.5, lower_bound=12.0, oracle_calls=40, seconds=1.0
        ),
    )  # fmt: skip


def edges(locator: Locator) -> tuple[float, float]:
    """The left edge and the height of an element, zero where it is not shown."""
    box = locator.bounding_box()
    return (0.0, 0.0) if box is None else (box["x"], box["height"])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page, as a file."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(some_release(), path).as_uri()


@pytest.fixture(scope="module")
def steward_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a table of many awkward columns."""
    path = tmp_path_factory.mktemp("steward") / "report.html"
    return write_report(steward_release(), path, title="Stewards").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield running
        running.close()


@pytest.mark.parametrize("release", ["address", "steward_address"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_quiet_and_fits(
    browser: Browser,
    request: pytest.FixtureRequest,
    release: str,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    """No message, no request but the file, no sideways scrolling, no shift, no faint text."""
    address: str = request.getfixturevalue(release)
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    assert page.evaluate(SHIFTS) == 0
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [address]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(FAINT) == []
    page.close()


def test_the_page_is_used_by_keyboard(browser: Browser, address: str) -> None:
    """The first stop skips to the report, and a folded part opens with the Enter key."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.inner_text() == "Skip to the report"
    assert edges(focused)[0] > 0
    page.keyboard.press("Enter")
    page.wait_for_url("**#report")
    folded = page.locator("#ledger details")
    folded.locator("summary").focus()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert not folded.locator("table").is_visible()
    page.keyboard.press("Enter")
    assert folded.locator("table").is_visible()
    assert outline == "solid"
    page.close()


@pytest.mark.parametrize(("width", "shown"), [(390, "narrow"), (1280, "wide")])
def test_one_drawing_of_the_tree_is_shown(
    browser: Browser, address: str, width: int, shown: str
) -> None:
    """Boxes where there is room, an outline where there is not, never both or none."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(address)
    visible = [kind for kind in ("narrow", "wide") if page.locator(f".tree.{kind}").is_visible()]
    assert visible == [shown]
    page.close()


def test_folded_parts_are_printed(browser: Browser, address: str) -> None:
    """On paper the ledger stands in full, though nobody opened it."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(address)
    row = page.locator("#ledger tbody tr").last
    assert not row.is_visible()
    page.emulate_media(media="print")
    assert edges(row)[1] > 0
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_that_are_cut_differ_and_show_in_full(
    browser: Browser, steward_address: str, width: int
) -> None:
    """Cut labels of a chart all differ, and pointing at one shows the whole text."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(steward_address)
    cut = page.evaluate(CUT)
    assert len(cut) >= 15
    for shown, title in cut:
        assert LONG in title
        assert title.split(":")[0].endswith(shown[-7:])
    bars = page.locator("#attributes .card").first.locator("svg text.end").all_text_contents()
    assert len(bars) == len(set(bars)) == 18
    assert page.evaluate(OVERLAP) == []
    page.close()


def test_labels_are_printed_in_full(browser: Browser, steward_address: str) -> None:
    """On paper, where nobody can point, a list says what cut labels stand for."""
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.goto(steward_address)
    entry = page.locator("#attributes dd", has_text=LONG).first
    assert not entry.is_visible()
    page.emulate_media(media="print")
    assert edges(entry)[1] > 0
    assert page.locator("#pairs dd", has_text=LONG).count() >= 15
    page.close()


def test_the_tree_is_whole(browser: Browser, steward_address: str, address: str) -> None:
    """An outline shows all its lines without scrolling, and on paper boxes fit its width."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(steward_address)
    tree = page.locator(".tree.outline")
    assert tree.evaluate("e => e.scrollHeight - e.clientHeight") <= 1
    assert all(name in (tree.text_content() or "") for name in FLAGS)
    page.set_viewport_size({"width": 660, "height": 900})
    page.goto(address)
    page.emulate_media(media="print")
    shown = page.locator(".tree:visible svg").bounding_box()
    assert shown is not None
    assert shown["x"] + shown["width"] <= 660
    page.close()


def test_the_page_says_how_far_numbers_are_off(browser: Browser, steward_address: str) -> None:
    """Counts have their noise, means their range, and what was not measured says so."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(steward_address)

    def card(name: str) -> str:
        heading = page.get_by_role("heading", name=name, exact=True)
        return page.locator("figure", has=heading).inner_text()

    assert "Noise of a count: ±12 records." in card("born")
    assert "wherever in their bins the numbers lie" in card("income")
    assert "Not measured: shown as even." in card("eye colour")
    assert "Mean" not in card("unit")
    assert page.locator("#attributes g.pale").count() > 5
    assert "Misfit" in page.locator("#fit").inner_text()
    page.close()
