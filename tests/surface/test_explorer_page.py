"""The explorer's page in a real browser, against a real server."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_server import SIZES, TOKEN, running, small_release
from juncture import Domain, Measurement, Release, estimate
from juncture.fit.replicas import ReplicaRecipe
from juncture.publish.explorer.server import create_app
from steward_release import LONG, steward_release

CHROMIUM = Path("/usr/bin/chromium")
sync_api = pytest.importorskip(
    "playwright.sync_api", reason="the page is not tried in a browser: playwright is not installed"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"the page is not tried in a browser: {CHROMIUM} is absent"
    ),
]


RELEASE = small_release()
MODEL = RELEASE.model
NAMES = list(SIZES)
ODD = NAMES[-1]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# The contrast of every visible text with what lies behind it, where it is below what is needed.
FAINT = """() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (rgb) => rgb.slice(0, 3).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba(getComputedStyle(document.body).backgroundColor);
  };
  const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest(".hidden, .skip, textarea, script")) continue;
    const [front, back] = [light(rgba(style.color)), light(behind(element))];
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    seen += 1;
    if (contrast < 4.5) faint.push(`${walker.currentNode.textContent}: ${contrast.toFixed(2)}`);
  }
  return { seen, faint };
}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the small release."""
    with running(create_app(RELEASE, token=TOKEN, name="small")) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of the page."""
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield made
        made.close()


class Visit:
    """A person at the page, and everything that the browser had to complain about."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": DESKTOP, **context})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.address, self.complaints, self.strangers = address, list[str](), list[str]()
        self.page.on("console", lambda m: self._heard(m.type, m.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._requested)
        self.page.goto(f"{address}/?token={TOKEN}")
        self.settle()

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((f"{self.address}/", "blob:", "data:")):
            self.strangers.append(request.url)

    def settle(self) -> None:
        """Wait until the answer is there."""
        self.page.wait_for_selector("#answer-body[aria-busy=false]")

    def choose(self, name: str) -> None:
        """Click an attribute, and wait for its picture."""
        with self.page.expect_response("**/api/marginal"):
            self.page.get_by_role("option", name=name).click()
        self.settle()

    def values(self, selector: str) -> list[float]:
        """The numbers behind what is drawn."""
        found = self.page.locator(selector).evaluate_all("all => all.map(e => e.dataset.value)")
        return [float(value) for value in found]

    def overflow(self) -> int:
        """By how much the page is wider than the window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    """Someone on a desktop; whatever happens, the browser must not complain."""
    made = Visit(browser, address)
    yield made
    made.context.close()
    assert made.complaints == []
    assert made.strangers == []


def test_the_token_leaves_the_address(visit: Visit) -> None:
    """After opening, neither the address bar nor a script can see the token."""
    assert TOKEN not in visit.page.url
    assert TOKEN not in visit.page.evaluate("document.cookie")


def test_without_the_token_the_page_says_what_to_do(browser: Any, address: str) -> None:
    """A browser without the token is told to open the address from the terminal."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    sync_api.expect(page.locator("#answer-body")).to_contain_text("the terminal shows")
    assert "smoker" not in page.locator("body").inner_text()
    context.close()


@pytest.mark.parametrize("name", NAMES)
def test_one_attribute_shows_its_distribution(visit: Visit, name: str) -> None:
    """Bars or columns are the model's counts, in the order of the codes."""
    visit.choose(name)
    assert visit.page.locator("#answer-title").inner_text() == name
    expected = MODEL.project((name,)).values
    assert visit.values("#answer-body [data-code]") == pytest.approx(list(expected))


def test_two_attributes_show_their_table(visit: Visit) -> None:
    """A second click makes the cross-table; what is written in the cells is rounded from it."""
    visit.choose("work")
    visit.choose(ODD)
    expected = MODEL.project(("work", ODD)).values
    assert visit.values(".heat tbody td[data-value]") == pytest.approx(list(expected.reshape(-1)))
    texts = visit.page.locator(".heat tbody td[data-value]").all_inner_texts()
    for text, count in zip(texts, expected.reshape(-1), strict=True):
        assert float(text.replace(",", "")) == pytest.approx(count, abs=0.51, rel=0.06)


def test_rows_and_columns_as_shares(visit: Visit) -> None:
    """Row shares of every row, and column shares of every column, add up to the whole."""
    visit.choose("work")
    visit.choose("smoker")
    table = MODEL.project(("work", "smoker")).values
    for label, axis in (("Row %", 1), ("Column %", 0)):
        visit.page.get_by_role("button", name=label).click()
        texts = visit.page.locator(".heat tbody td[data-value]").all_inner_texts()
        shown = [float(text.replace("%", "")) for text in texts]
        expected = 100 * table / table.sum(axis=axis, keepdims=True)
        assert shown == pytest.approx(list(expected.reshape(-1)), abs=0.051)


def test_a_third_attribute_slices(visit: Visit) -> None:
    """The third attribute's values are shown one at a time, or all together."""
    for name in ("work", "smoker", ODD):
        visit.choose(name)
    table = MODEL.project(("work", "smoker", ODD)).values
    cells = ".heat tbody td[data-value]"
    assert visit.values(cells) == pytest.approx(list(table.sum(axis=2).reshape(-1)))
    visit.page.get_by_role("group", name=ODD).get_by_role("button", name="1").click()
    assert visit.values(cells) == pytest.approx(list(table[:, :, 1].reshape(-1)))


def test_one_attribute_by_another_as_bars_and_lines(visit: Visit) -> None:
    """Bars side by side, stacked ones and lines have the cross-table's counts, and are clicked."""
    page, marks = visit.page, ".series [data-at]"
    visit.choose("age")
    visit.choose("smoker")
    expected = MODEL.project(("age", "smoker")).values
    for form in ("Bars", "Stacked", "Lines"):
        with page.expect_response("**/api/marginal"):
            page.get_by_role("button", name=form, exact=True).click()
        visit.settle()
        assert visit.values(marks) == pytest.approx(list(expected.reshape(-1)))
    assert page.locator(".series polyline").count() == 2
    page.get_by_role("group", name="Form").get_by_role("button", name="Stacked").click()
    visit.settle()
    page.get_by_role("button", name="Row %").click()
    heights = page.locator(".series rect").evaluate_all(
        "all => all.map(e => e.height.baseVal.value)"
    )
    shares = [heights[at] / (heights[at] + heights[at + 1]) for at in range(0, 24, 2)]
    assert shares == pytest.approx(list(expected[:, 0] / expected.sum(axis=1)), abs=1e-3)
    with page.expect_response("**/api/marginal"):
        page.locator(marks).nth(3).click()
    visit.settle()
    chips = page.locator(".chip").all_inner_texts()
    assert chips == ["age is 21\n×", "smoker is true\n×"]


def test_bars_by_another_attribute_have_whiskers(browser: Any) -> None:
    """Where replicas are kept, the interval of each count is a line over the end of its bar."""
    noisy = 100.0 + 5.0 * np.random.default_rng(1).standard_normal(10)
    measured = [Measurement(("a", "b"), noisy, stddev=5.0)]
    fit = estimate(Domain({"a": 5, "b": 2}), measured, total=1000.0)
    made = Release(model=fit.model, measurements=measured, fit=fit.summary)
    kept = made.with_replicas(ReplicaRecipe(0, 4))
    with running(create_app(kept, token=TOKEN)) as url:
        visit = Visit(browser, url)
        visit.page.evaluate("""() => { location.hash = encodeURIComponent(JSON.stringify(
            { chosen: ["a", "b"], conditions: [], form: "bars" })); }""")
        sync_api.expect(visit.page.locator(".series")).to_be_visible()
        lines, bars = (
            visit.page.locator(f".series {mark}").evaluate_all(
                "all => all.map(e => e.getBBox().height)"
            )
            for mark in (".whisker", "rect")
        )
        halves = kept.project(("a", "b"), interval=0.95).plus_minus.reshape(-1)
        counts = kept.project(("a", "b")).values.reshape(-1)
        ratio = [line / bar for line, bar in zip(lines, bars, strict=True)]
        assert ratio == pytest.approx(list(2.0 * halves / counts), rel=1e-3)
        assert visit.complaints == []
        visit.context.close()


def test_few_records_have_no_percentages(browser: Any) -> None:
    """A line is broken at a row of almost no records, whose points are faint, and it says why."""
    counts = [90.0, 10.0, 80.0, 20.0, 0.01, 0.02, 30.0, 70.0, 10.0, 90.0]
    measured = [Measurement(("a", "b"), counts, stddev=0.001)]
    fit = estimate(Domain({"a": 5, "b": 2}), measured, total=400.0)
    with running(create_app(Release(model=fit.model, measurements=measured), token=TOKEN)) as url:
        visit = Visit(browser, url)
        asked = {"chosen": ["a", "b"], "conditions": [], "form": "lines", "measure": "row"}
        visit.page.evaluate(
            "asked => { location.hash = encodeURIComponent(asked); }", json.dumps(asked)
        )
        sync_api.expect(visit.page.locator(".series")).to_be_visible()
        lines = visit.page.locator(".series polyline").evaluate_all(
            "all => all.map(e => e.points.numberOfItems)"
        )
        assert lines == [2, 2, 2, 2]
        few = visit.page.locator(".series .few")
        assert [each.get_attribute("data-at") for each in few.all()] == ["2,0", "2,1"]
        assert "fewer than 0.1 % of the records" in visit.page.locator("#answer-body").inner_text()
        visit.context.close()


def test_values_in_groups_are_asked_for_and_clicked(visit: Visit) -> None:
    """Fewer values are ranges or the largest; a bar of several values is a condition on them."""
    visit.choose("age")
    with visit.page.expect_response("**/api/marginal"):
        visit.page.get_by_label("Values", exact=True).select_option("5")
    visit.settle()
    bars = visit.page.locator("#answer-body [data-code]")
    ages = MODEL.project(("age",)).values
    labels = visit.page.locator(".bars .label").all_inner_texts()
    assert labels == ["20 to 24", "25 to 29", "30 to 31"]
    parts = [ages[:5].sum(), ages[5:10].sum(), ages[10:].sum()]
    assert visit.values("#answer-body [data-code]") == pytest.approx(parts)
    assert "age is shown in 3 ranges of its 12 values" in visit.page.locator(".notes").inner_text()
    with visit.page.expect_response("**/api/marginal"):
        bars.nth(1).click()
    visit.settle()
    assert visit.page.locator(".chip").all_inner_texts() == ["age 25 to 29\n×"]


def test_sorting_percentages_and_their_link(browser: Any, address: str) -> None:
    """Values sort by label or count, percentages are in the table, and a link keeps it all."""
    visit = Visit(browser, address)
    page, label = visit.page, ".bars .label"
    visit.choose("work")
    counts = list(MODEL.project(("work",)).values)
    page.get_by_role("button", name="Largest").click()
    assert visit.values("#answer-body [data-code]")[:3] == sorted(counts[:3], reverse=True)
    page.get_by_role("button", name="A–Z").click()
    assert page.locator(label).all_inner_texts()[:3] == ["<b>bold</b>", "it's mine", "none"]
    visit.choose("age")
    with page.expect_response("**/api/marginal"):
        page.get_by_role("button", name="Bars", exact=True).click()
    visit.settle()
    page.get_by_role("button", name="Column %").click()
    link, drawn = page.url, visit.values(".series [data-at]")
    with page.expect_response("**/api/marginal"):
        page.get_by_role("button", name="Table").click()
    visit.settle()
    assert page.locator(".rows th").all_inner_texts() == ["work", "age", "count", "Column %"]
    shown = visit.values(".rows td:nth-child(4)")
    assert sum(shown) == pytest.approx(100.0 * SIZES["age"])
    visit.page.reload()
    visit.settle()
    assert visit.values(".rows td:nth-child(4)") == pytest.approx(shown)
    page.evaluate("link => { location.hash = new URL(link).hash; }", link)
    sync_api.expect(page.locator(".series")).to_be_visible()
    assert visit.values(".series [data-at]") == pytest.approx(drawn)
    pressed = page.locator("#controls [aria-pressed=true]").all_inner_texts()
    assert pressed == ["Chart", "Bars", "Column %", "A–Z"]
    assert visit.complaints == []
    visit.context.close()


def test_clicking_a_bar_makes_a_condition(visit: Visit) -> None:
    """A bar becomes a condition, the numbers follow at once, and removing it undoes it."""
    visit.choose("work")
    with visit.page.expect_response("**/api/marginal"):
        visit.page.locator(".bars button", has_text="it's mine").click()
    visit.settle()
    visit.choose("work")  # out of the picture again
    visit.choose("age")
    given = MODEL.condition({"work": "it's mine"}).project(("age",)).values
    assert visit.values("#answer-body [data-code]") == pytest.approx(list(given))
    assert "work = 'it''s mine'" in visit.page.locator("#editor").input_value()
    with visit.page.expect_response("**/api/marginal"):
        visit.page.get_by_role("button", name="Remove: work is it's mine").click()
    visit.settle()
    everyone = MODEL.project(("age",)).values
    assert visit.values("#answer-body [data-code]") == pytest.approx(list(everyone))


def test_records_say_that_conditions_apply(visit: Visit) -> None:
    """The dialog of synthetic records tells of conditions where there are some, and only there."""
    told = visit.page.locator("#records-conditions")
    visit.page.get_by_role("button", name="Synthetic records").click()
    assert not told.is_visible()
    visit.page.locator("#records-cancel").click()
    visit.choose("work")
    with visit.page.expect_response("**/api/marginal"):
        visit.page.locator(".bars button", has_text="it's mine").click()
    visit.settle()
    visit.page.get_by_role("button", name="Synthetic records").click()
    assert told.is_visible()
    assert "all of these records meet them" in " ".join(told.inner_text().split())


def test_clicking_a_cell_makes_two_conditions(visit: Visit) -> None:
    """A cell of a cross-table becomes a condition on each of its attributes."""
    visit.choose("work")
    visit.choose("smoker")
    with visit.page.expect_response("**/api/marginal"):
        visit.page.locator(".heat tbody tr").nth(1).locator("td").nth(1).click()
    visit.settle()
    assert visit.page.locator(".chip").all_inner_texts() == ["work is none\n×", "smoker is true\n×"]


def test_dragging_over_columns_makes_a_range(visit: Visit) -> None:
    """Columns that were dragged over become one condition."""
    visit.choose("age")
    columns = visit.page.locator(".columns button")
    first, last = columns.nth(2).bounding_box(), columns.nth(6).bounding_box()
    visit.page.mouse.move(first["x"] + 3, first["y"] + 50)
    visit.page.mouse.down()
    visit.page.mouse.move(last["x"] + 3, last["y"] + 60, steps=5)
    with visit.page.expect_response("**/api/marginal"):
        visit.page.mouse.up()
    visit.settle()
    assert "age BETWEEN 22 AND 26" in visit.page.locator("#editor").input_value()


def test_a_range_by_its_ends(visit: Visit) -> None:
    """The dialog takes the ends of a range, and refuses one that ends before it begins."""
    page = visit.page
    page.get_by_role("button", name="Add condition").click()
    page.get_by_label("Attribute", exact=True).select_option("pay")
    page.get_by_label("From", exact=True).fill("20")
    page.get_by_label("To", exact=True).fill("5")
    page.get_by_role("button", name="Apply").click()
    sync_api.expect(page.locator("#condition-problem")).to_be_visible()
    page.get_by_label("To", exact=True).fill("50")
    with page.expect_response("**/api/marginal"):
        page.get_by_role("button", name="Apply").click()
    visit.settle()
    count = MODEL.project(("pay",)).values[2]
    shown = page.locator("#matching").inner_text()
    assert shown.startswith(f"{count:,.0f} of 5,000 records")


def test_sql_with_completion(visit: Visit) -> None:
    """Columns and values are completed by keys, and Ctrl+Enter answers what the model answers."""
    page, editor = visit.page, visit.page.locator("#editor")
    editor.fill("")
    editor.press_sequentially("SELECT smo")
    sync_api.expect(page.get_by_role("listbox", name="Completions")).to_be_visible()
    assert editor.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    editor.press_sequentially(", COUNT(*) AS n FROM t WHERE work = ")
    page.keyboard.press("Control+Space")
    page.keyboard.press("ArrowDown")
    active = editor.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").inner_text().startswith("'none'")
    page.keyboard.press("Tab")
    editor.press_sequentially(" AND odd")
    page.keyboard.press("Enter")
    editor.press_sequentially(" < 2 GROUP BY s")
    page.keyboard.press("Escape")
    sync_api.expect(page.get_by_role("listbox", name="Completions")).to_be_hidden()
    editor.press_sequentially("moker")
    page.keyboard.press("Escape")
    query = editor.input_value()
    quoted = ODD.replace('"', '""')
    assert query == (
        f"SELECT smoker, COUNT(*) AS n FROM t WHERE work = 'none' AND \"{quoted}\" < 2 "
        "GROUP BY smoker"
    )
    with page.expect_response("**/api/sql"):
        page.keyboard.press("Control+Enter")
    sync_api.expect(page.locator("#answer-title")).to_have_text("Your query")
    shown = [json.loads(v) for v in page.locator(".rows td").evaluate_all(
        "all => all.map(e => e.dataset.value)"
    )]  # fmt: skip
    expected = [value for row in MODEL.sql(query).rows for value in row]
    assert shown == pytest.approx(expected)


def test_errors_of_sql_are_shown(browser: Any, address: str) -> None:
    """A query without an answer shows the server's message, and the next one takes it away."""
    visit = Visit(browser, address)
    editor = visit.page.locator("#editor")
    editor.fill("SELECT wrk, COUNT(*) FROM t GROUP BY wrk")
    editor.press("Control+Enter")
    sync_api.expect(visit.page.get_by_role("alert")).to_contain_text("got 'wrk'")
    editor.fill("SELECT COUNT(*) AS n FROM t")
    editor.press("Control+Enter")
    sync_api.expect(visit.page.locator(".rows")).to_contain_text("5000")
    sync_api.expect(visit.page.locator("#problem")).to_be_hidden()
    visit.context.close()


def test_downloads_of_the_answer(visit: Visit) -> None:
    """The downloaded CSV and JSON hold every cell of the picture."""
    visit.choose("work")
    visit.choose("pay")
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Download as CSV").click()
    rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert rows[0] == ["work", "pay", "count"]
    expected = list(MODEL.project(("work", "pay")).values.reshape(-1))
    assert [float(row[2]) for row in rows[1:]] == pytest.approx(expected)
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Download as JSON").click()
    found = json.loads(Path(waiting.value.path()).read_text())
    assert [row[2] for row in found["rows"]] == pytest.approx(expected)
    assert "GROUP BY work, pay" in found["sql"]


def test_downloads_of_synthetic_records(visit: Visit) -> None:
    """The dialog downloads as many records as asked for."""
    visit.page.get_by_role("button", name="Synthetic records").click()
    visit.page.get_by_label("How many").fill("321")
    visit.page.get_by_label("Seed").fill("5")
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Download", exact=True).click()
    rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert (rows[0], len(rows)) == (NAMES, 322)
    assert waiting.value.suggested_filename == "small-synthetic-321.csv"


def test_everything_by_keys(visit: Visit) -> None:
    """Search, choose, move in a picture, condition and remove, with the keyboard alone."""
    page = visit.page
    page.keyboard.press("/")
    page.keyboard.type("ag")
    page.keyboard.press("ArrowDown")
    with page.expect_response("**/api/marginal"):
        page.keyboard.press("Enter")
    visit.settle()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.columns') !== null"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    with page.expect_response("**/api/marginal"):
        page.keyboard.press("Enter")
    visit.settle()
    assert "age BETWEEN 21 AND 23" in page.locator("#editor").input_value()
    assert "records" in page.locator("#live").inner_text()
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')?.startsWith('Remove')"):
            break
    with page.expect_response("**/api/marginal"):
        page.keyboard.press("Enter")
    visit.settle()
    assert "WHERE" not in page.locator("#editor").input_value()


def test_dark_and_light(browser: Any, address: str) -> None:
    """The page follows the system, and the button changes it and is remembered."""
    visit = Visit(browser, address, color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = visit.page.evaluate(colour)
    visit.page.get_by_role("button", name="Switch between light and dark").click()
    light = visit.page.evaluate(colour)
    assert light != dark
    visit.page.reload()
    assert visit.page.evaluate(colour) == light
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("chosen", [[], ["age"], ["work", "pay"]])
def test_all_text_can_be_read(browser: Any, address: str, scheme: str, chosen: list[str]) -> None:
    """Every text has a contrast of 4.5 at least with what lies behind it."""
    visit = Visit(browser, address, color_scheme=scheme)
    for name in chosen:
        visit.choose(name)
    found = visit.page.evaluate(FAINT)
    assert found["seen"] > 20
    assert found["faint"] == []
    visit.context.close()


def test_a_phone(browser: Any, address: str) -> None:
    """At 390 pixels attributes unfold, everything works, and nothing is wider than the window."""
    visit = Visit(browser, address, viewport=PHONE, has_touch=True)
    assert visit.overflow() <= 0
    for name in ("work", "pay", ODD):
        visit.page.locator("#fold").tap()
        visit.choose(name)
        assert visit.overflow() <= 0
        # The answer is what people want to see now, not the list above it.
        assert not visit.page.locator("#attributes").is_visible()
        top = visit.page.locator("#answer-title").bounding_box()
        assert top["y"] < PHONE["height"]
    for button, dialog in (("About", "About this release"), ("Synthetic records", "Synthetic")):
        visit.page.get_by_role("button", name=button).first.tap()
        assert visit.page.get_by_role("dialog").filter(has_text=dialog).is_visible()
        assert visit.overflow() <= 0
        visit.page.keyboard.press("Escape")
    visit.page.locator("#editor").fill(
        "SELECT work, pay, age, COUNT(*) AS n FROM t GROUP BY 1, 2, 3"
    )
    visit.page.locator("#run").tap()
    sync_api.expect(visit.page.locator("#answer-title")).to_have_text("Your query")
    assert visit.overflow() <= 0
    assert visit.complaints == []
    visit.context.close()


def test_reloading_keeps_the_picture(visit: Visit) -> None:
    """The picture and its conditions are in the address, so that reloading shows them again."""
    visit.choose(ODD)
    with visit.page.expect_response("**/api/marginal"):
        visit.page.locator(".bars button").first.click()
    visit.settle()
    before = visit.page.locator("#editor").input_value()
    visit.page.reload()
    visit.settle()
    assert visit.page.locator("#editor").input_value() == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_link_reopens_the_answer(browser: Any, address: str, scheme: str) -> None:
    """The address of a query or a sliced table, opened elsewhere or pasted, asks the same again."""
    visit = Visit(browser, address, color_scheme=scheme)
    query = "SELECT work, AVG(pay) AS m FROM t WHERE pay < 15 GROUP BY work"
    visit.page.locator("#editor").fill(query)
    visit.page.locator("#editor").press("Control+Enter")
    sync_api.expect(visit.page.locator("#answer-title")).to_have_text("Your query")
    asked = visit.page.url
    shown = visit.page.locator(".rows td").all_inner_texts()
    assert TOKEN not in asked
    for name in ("work", "smoker", ODD):
        visit.choose(name)
    visit.page.get_by_role("group", name=ODD).get_by_role("button", name="1").click()
    sliced, cells = visit.page.url, visit.values(".heat tbody td[data-value]")
    visit.page.get_by_role("button", name="Table").click()
    tabled = visit.page.url
    visit.context.close()
    assert len({asked, sliced, tabled}) == 3

    other = Visit(browser, address)
    # The first address has the token too, as a link in the terminal would.
    other.page.goto(asked.replace("/#", f"/?token={TOKEN}#"))
    sync_api.expect(other.page.locator("#answer-title")).to_have_text("Your query")
    assert other.page.locator(".rows td").all_inner_texts() == shown
    assert other.page.locator("#editor").input_value() == query
    sync_api.expect(other.page.locator("#run")).to_be_enabled()
    other.page.evaluate("link => { location.hash = new URL(link).hash; }", sliced)
    sync_api.expect(other.page.locator(".heat")).to_be_visible()
    assert other.values(".heat tbody td[data-value]") == pytest.approx(cells)
    other.page.evaluate("link => { location.hash = new URL(link).hash; }", tabled)
    sync_api.expect(other.page.locator(".rows")).to_be_visible()
    assert other.complaints == []
    other.context.close()


def test_a_link_with_a_mistake_says_so(browser: Any, address: str) -> None:
    """A query in a link that cannot be answered is shown with its error, over the first page."""
    visit = Visit(browser, address)
    visit.page.evaluate("""() => { location.hash = encodeURIComponent(JSON.stringify(
        { chosen: [], conditions: [], sql: "SELECT wrk FROM t GROUP BY wrk" })); }""")
    sync_api.expect(visit.page.get_by_role("alert")).to_contain_text("got 'wrk'")
    assert visit.page.locator("#editor").input_value() == "SELECT wrk FROM t GROUP BY wrk"
    sync_api.expect(visit.page.locator("#answer-title")).to_have_text("What would you like to see?")
    visit.context.close()


def test_a_link_can_be_copied(browser: Any, address: str) -> None:
    """The button puts the address of the answer on the clipboard."""
    allowed = ["clipboard-read", "clipboard-write"]
    visit = Visit(browser, address, permissions=allowed)
    visit.choose("work")
    visit.page.get_by_role("button", name="Copy link").click()
    sync_api.expect(visit.page.get_by_role("button", name="Link copied")).to_be_visible()
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    visit.context.close()


def test_answers_tell_what_they_rest_on(visit: Visit) -> None:
    """Under each answer stand its notes; means and counts of wide bins have their range."""
    page, notes = visit.page, visit.page.locator(".notes")
    visit.choose("pay")
    mean = page.locator(".summary").inner_text()
    expected = MODEL.sql("SELECT AVG(pay) FROM t").ranges[0][0]
    assert expected is not None
    assert f"({expected.low:.2f} to {expected.high:.2f})" in mean
    assert "pay is known by its bins only" in notes.inner_text()
    visit.choose("pay")
    visit.choose("age")
    assert notes.count() == 0
    visit.choose("smoker")
    assert "were never measured together: how they go together is inferred" in notes.inner_text()
    query = "SELECT smoker, AVG(pay) AS m, COUNT(*) AS n FROM t WHERE pay < 15 GROUP BY smoker"
    page.locator("#editor").fill(query)
    page.locator("#editor").press("Control+Enter")
    sync_api.expect(page.locator("#answer-title")).to_have_text("Your query")
    answer = MODEL.sql(query)
    assert notes.locator("li").all_inner_texts() == [str(note) for note in answer.notes]
    shown = page.locator(".rows tbody tr").first.locator(".range").all_inner_texts()
    known = [each for each in answer.ranges[0] if each is not None]
    assert len(shown) == len(known) == 2
    low, high = (float(part.replace(",", "")) for part in shown[1].split(" to "))
    assert (low, high) == pytest.approx((known[1].low, known[1].high), rel=0.01)


def test_conditions_that_divide_bins_have_a_range(visit: Visit) -> None:
    """The number of matching records is followed by what it can be."""
    page = visit.page
    page.get_by_role("button", name="Add condition").click()
    page.get_by_label("Attribute", exact=True).select_option("pay")
    page.get_by_label("From", exact=True).fill("15")
    with page.expect_response("**/api/marginal"):
        page.get_by_role("button", name="Apply").click()
    visit.settle()
    span = MODEL.sql("SELECT COUNT(*) FROM t WHERE pay >= 15").ranges[0][0]
    assert span is not None
    assert f"({span.low:,.1f} to {span.high:,.1f})" in page.locator("#matching").inner_text()


@pytest.fixture(scope="module")
def steward_address() -> Iterator[str]:
    """A server of a release with many awkward columns."""
    with running(create_app(steward_release(), token=TOKEN, name="steward")) as url:
        yield url


@pytest.mark.parametrize("window", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_wide_tables_say_that_they_scroll(
    browser: Any, steward_address: str, window: dict[str, int], scheme: str
) -> None:
    """A hint stands over a table while there is more to its side, and over no other."""
    visit = Visit(browser, steward_address, viewport=window, color_scheme=scheme)
    hint = visit.page.locator(".scroll-hint")
    for name in ("group", "unit"):
        if window is PHONE:
            visit.page.locator("#fold").click()
        visit.choose(name)
    sync_api.expect(hint).to_be_visible()
    heads = visit.page.locator(".heat thead th")
    shown = heads.all_inner_texts()
    assert len(set(shown)) == len(shown) == 44
    cut = heads.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length")
    assert cut == 0
    assert LONG in (heads.nth(1).get_attribute("title") or "")
    assert "more-right" in (visit.page.locator(".scroll-frame").get_attribute("class") or "")
    assert visit.overflow() <= 0
    assert visit.page.evaluate(FAINT)["faint"] == []
    visit.page.locator(".scroll").evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    sync_api.expect(visit.page.locator(".scroll-frame.more-left")).to_have_count(1)
    sync_api.expect(visit.page.locator(".scroll-frame.more-right")).to_have_count(0)
    visit.page.locator("#editor").fill("SELECT COUNT(*) AS n FROM t")
    visit.page.locator("#editor").press("Control+Enter")
    sync_api.expect(visit.page.locator(".rows")).to_be_visible()
    sync_api.expect(hint).to_be_hidden()
    assert visit.complaints == []
    visit.context.close()


def test_independence_and_even_columns_are_told(browser: Any, steward_address: str) -> None:
    """What nothing links is taken as independent, and what was not measured as even: it says so."""
    visit = Visit(browser, steward_address)
    visit.choose("unit")
    visit.choose("born")
    notes = visit.page.locator(".notes")
    assert "unit, born were never measured together, and are taken as independent." in (
        notes.inner_text()
    )
    visit.choose("unit")
    visit.choose("eye colour")
    assert "eye colour was never measured" in notes.inner_text()
    even = "not counted: shown as even"
    item = visit.page.get_by_role("option", name="eye colour")
    assert even in item.inner_text()
    assert visit.page.locator("#answer-title .even").inner_text() == even
    with visit.page.expect_response("**/api/marginal"):
        visit.page.locator(".heat thead th").nth(1).click()
    visit.settle()
    assert visit.page.get_by_role("button", name="Table").count() == 1
    visit.page.get_by_role("button", name="Table").click()
    assert visit.page.locator(".rows th .even").all_inner_texts() == [even]
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Download as JSON").click()
    assert json.loads(waiting.value.path().read_text())["not_counted"] == ["eye colour"]
    visit.page.get_by_role("button", name="Add condition").click()
    names = visit.page.get_by_label("Attribute", exact=True).locator("option").all_inner_texts()
    assert [name for name in names if even in name] == [f"eye colour ({even})"]
    visit.page.locator("#condition-cancel").click()
    visit.page.get_by_role("button", name="Synthetic records").click()
    assert "Not counted: eye colour." in visit.page.locator("#records-dialog").inner_text()
    visit.page.locator("#records-cancel").click()
    visit.page.get_by_role("button", name="About").click()
    assert "eye colour: no measurement" in visit.page.locator("#about-facts").inner_text()
    visit.context.close()


@pytest.mark.parametrize("window", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_of_two_fit_and_can_be_read(
    browser: Any, steward_address: str, window: dict[str, int], scheme: str
) -> None:
    """Bars of many values stay inside the page, in different colours, with legible names."""
    visit = Visit(browser, steward_address, viewport=window, color_scheme=scheme)
    visit.page.evaluate("""() => { location.hash = encodeURIComponent(JSON.stringify(
        { chosen: ["unit", "income"], conditions: [], form: "stacked", measure: "row" })); }""")
    sync_api.expect(visit.page.locator(".series")).to_be_visible()
    assert visit.overflow() <= 0
    found = visit.page.evaluate(FAINT)
    assert (found["faint"], found["seen"] > 40) == ([], True)
    colours = visit.page.locator(".swatch").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(colours)) == len(colours) == 8
    assert visit.complaints == []
    visit.context.close()


def test_names_are_never_markup(visit: Visit) -> None:
    """Names and values that look like markup make no elements."""
    visit.choose("work")
    visit.choose(ODD)
    visit.page.locator("#editor").fill("SELECT work, COUNT(*) AS n FROM t GROUP BY work")
    visit.page.locator("#editor").press("Control+Enter")
    sync_api.expect(visit.page.locator(".rows")).to_contain_text("<b>bold</b>")
    texts = visit.page.locator("main b").all_inner_texts()
    assert not any("bold" in text for text in texts)


def test_nothing_moves_while_loading(browser: Any, address: str) -> None:
    """Opening the page shifts nothing that was already drawn."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.add_init_script(
        "window.shifted = 0; new PerformanceObserver((list) => { for (const e of list.getEntries())"
        " window.shifted += e.value; }).observe({ type: 'layout-shift', buffered: true });"
    )
    page.goto(f"{address}/?token={TOKEN}")
    page.wait_for_selector("#answer-body[aria-busy=false]")
    page.wait_for_timeout(300)
    assert page.evaluate("window.shifted") < 0.02
    context.close()
