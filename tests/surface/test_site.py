"""The documentation builds as a site that asks the network for nothing, and looks right."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from juncture.publish.report.palette import DARK, LIGHT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
LOOKED_AT = (
    "index",
    "quick-start",
    "how-it-works",
    "guarantee",
    "reference",
    "how-to/release-a-raw-table",
    "how-to/release-a-table",
)
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]*)\"|<link[^>]*\shref=\"([^\"]*)\""
)
SEARCH = {"All search scripts loaded, building Lunr index...", "Lunr index built, search ready"}
needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"no browser at {CHROMIUM}: the site is not looked at"
)
TOO_WIDE = """() => [...document.querySelectorAll('[role=main] *')]
  .filter(e => !e.closest('pre, table') && e.offsetParent)
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map(e => e.outerHTML.slice(0, 120))"""
FAINT = """() => {
  const linear = c => { c /= 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; };
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b); };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255,255,255)'; };
  return [...document.querySelectorAll('p,li,a,td,th,h1,h2,h3,h4,code,pre span')]
    .filter(e => e.textContent.trim() && e.offsetParent && !e.classList.contains('disabled'))
    .filter(e => { const one = light(getComputedStyle(e).color), other = light(ground(e));
      const a = Math.min(one, other), b = Math.max(one, other);
      return (b + .05) / (a + .05) < 4.5; }).map(e => e.outerHTML.slice(0, 120));
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a dead link would end that."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        """Says nothing about requests."""

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield running
        running.close()


def test_every_page_is_on_the_site_and_loads_nothing_from_elsewhere(site: Path) -> None:
    """Each page of docs/ becomes one of the site's, whose parts all come from the site itself."""
    for page in (ROOT / "docs").rglob("*.md"):
        made = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        parts = [one or other for one, other in LOADED.findall(made.read_text())]
        assert len(parts) > 5
        assert [part for part in parts if ":" in part or part.startswith("//")] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", sheet.read_text()), sheet


def test_the_site_has_the_colours_of_the_report() -> None:
    """The style sheet repeats the palette, whose contrast another test checks."""
    style = (ROOT / "docs" / "style.css").read_text()
    for colours, theme in (
        (LIGHT, ':root, [data-bs-theme="light"]'),
        (DARK, '[data-bs-theme="dark"]'),
    ):
        block = style.split(f"{theme} {{", 1)[1].split("}", 1)[0]
        stated = dict(re.findall(r"--([\w-]+): (#\w+);", block))
        assert stated == {name: colours[name] for name in stated}
        assert len(stated) == 8


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_are_quiet_and_fit(
    browser: Browser, address: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """No message, no request to elsewhere, no sideways scrolling, no faint text."""
    # Colours that are still on their way from light to dark would be judged half-way.
    page = browser.new_page(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for name in LOOKED_AT:
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate(FAINT) == []
        assert page.locator("html").get_attribute("data-bs-theme") == scheme
    assert set(said) - SEARCH == set()
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    page.close()


@needs_browser
def test_search_and_the_choice_of_colours_work(browser: Browser, address: str) -> None:
    """A word finds its page without a network, and a chosen mode stays on the next page."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    with page.expect_console_message(lambda message: "search ready" in message.text):
        page.goto(f"{address}/index.html")
    page.get_by_role("link", name="Search").click()
    page.locator("#mkdocs-search-query").press_sequentially("polytope")
    page.locator("#mkdocs-search-results a", has_text="Noisy tables").first.wait_for()
    page.goto(f"{address}/index.html")
    page.locator("#theme-menu").click()
    page.locator("[data-bs-theme-value=dark]").click()
    page.goto(f"{address}/glossary.html")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"
    page.close()


@needs_browser
def test_pages_open_from_the_file_system(browser: Browser, site: Path) -> None:
    """Without a server there is no search, and no error either."""
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "index.html").as_uri())
    assert said == []
    assert not page.get_by_role("link", name="Search").is_visible()
    assert page.locator("img").evaluate("image => image.naturalWidth") > 0
    page.close()
