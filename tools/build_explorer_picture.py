"""Take the documentation's picture of the explorer: needs Chromium and the packages of the tests.

    python tools/build_explorer_picture.py

A release of the demo is served, and its page photographed in a real browser. Noise differs from run
to run, and so does the picture, a little.
"""

from __future__ import annotations

import json
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright

from juncture.publish.explorer.server import create_app
from juncture.workflow.demo import Demo

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "explorer.png"
_CHROMIUM = "/usr/bin/chromium"
_TOKEN = "of-a-picture-that-nobody-needs-to-guess"
_COLOURS = 256
_SHOWN = {
    "chosen": ["age", "marital-status"],
    "conditions": [],
    "form": "lines",
    "measure": "row",
    "detail": 20,
}


def main() -> None:
    """Make a release, serve it, take its picture."""
    sys.path.insert(0, str(ROOT / "tests"))
    from explorer_server import running  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(Path(folder) / "demo")
        release = demo.release(demo.open_curator(demo.begin()))
        with running(create_app(release, token=_TOKEN, name="adult")) as address:
            taken = Image.open(BytesIO(photograph(address))).convert("RGB")
    # A palette: a third of the bytes, and no difference to be seen.
    taken.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE).save(PICTURE, optimize=True)
    print(f"wrote {PICTURE}: {PICTURE.stat().st_size / 1e3:.0f} kB")


def photograph(address: str) -> bytes:
    """The page with a chart, as a PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto(f"{address}/?token={_TOKEN}")
        page.wait_for_selector("#answer-body[aria-busy=false]")
        page.goto(f"{address}/#{quote(json.dumps(_SHOWN))}")
        page.wait_for_selector(".series")
        taken = page.screenshot()
        browser.close()
    return taken


if __name__ == "__main__":
    main()
