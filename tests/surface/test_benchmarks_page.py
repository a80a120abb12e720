"""The pages of figures are written by their tools from what is kept, and say how to repeat it."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script of the folder `tools`, with its neighbours."""
    monkeypatch.syspath_prepend(str(TOOLS))
    module = __import__(name)
    monkeypatch.delitem(sys.modules, name)
    return module


def test_the_page_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is what its tool gives now; each table has a command, and each peer its rows."""
    tool = load("build_benchmarks", monkeypatch)
    page = tool.render_page()
    assert tool.PAGE.read_text() == page, "Run tools/build_benchmarks.py."
    sections = page.split("\n## ")[1:]
    assert all("    .venv/bin/python " in section for section in sections)
    assert all(peer in page for peer in ("mbi 2.0.0", "dpsynth mst", "asia"))


def test_figures_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of a fit to 300 attributes is on the page as its row has it."""
    tool = load("build_benchmarks", monkeypatch)
    rows = {(r["method"], r["attributes"]): r for r in tool.read_rows("scaling")}
    step = 1000 * float(rows["juncture", "300"]["seconds"])
    assert f"| {step:.3g}\u00a0ms |" in tool.render_page()


def test_the_coverage_of_intervals_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table on the page of intervals is that of the kept rows."""
    tool = load("build_coverage", monkeypatch)
    page = tool.PART.page.read_text()
    fresh = tool.PART.replace(page, tool.render_table(tool.read_rows("coverage")))
    assert fresh == page, "Run tools/build_coverage.py."
    rows = [
        r for r in tool.read_rows("coverage") if (r["basis"], r["data"]) == ("measured", "adult")
    ]
    share = 100 * sum(int(r["inside"]) for r in rows) / sum(int(r["answers"]) for r in rows)
    assert f"| measured | adult | {len(rows)} | {share:.1f} |" in page


def test_the_tables_of_tiers_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables on its page are those of the kept rows."""
    tool = load("build_tiers", monkeypatch)
    page = tool.PART.page.read_text()
    assert tool.PART.replace(page, tool.render_tables()) == page, "Run tools/build_tiers.py."
    rows = {
        (r["mechanism"], r["seed"]): float(r["error"])
        for r in tool.read_rows("adaptive")
        if (r["data"], r["k"], r["epsilon"]) == ("titanic-aim", "3", "0.3") and r["error"]
    }
    seeds = [seed for mechanism, seed in rows if mechanism == "tiers"]
    ratio = sum(rows["tiers", seed] / rows["aim", seed] for seed in seeds) / len(seeds)
    assert f"| titanic-aim, triples | {ratio:.2f} ({len(seeds)}) |" in page


def test_pictures_of_choices_are_fresh_and_to_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are what the tool draws; the bounds are those of the page on the guarantee."""
    tool = load("build_choice_pictures", monkeypatch)
    for name, content in tool.pictures().items():
        assert (tool.FOLDER / name).read_text() == content, "Run tools/build_choice_pictures.py."
        ElementTree.fromstring(content)
    assert tool.bound_belief(1.0) == pytest.approx(math.e / (1 + math.e))
    assert tool.laplace_stddev(3) < tool.gaussian_stddev(3)
    assert tool.laplace_stddev(60) > tool.gaussian_stddev(60)
    errors = tool.mean_errors()
    assert all(errors["tiers"][e] == min(by[e] for by in errors.values()) for e in errors["tiers"])


def test_the_version_is_that_of_the_changelog(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `make release-check` holds first holds at all times; interpreters are found by name."""
    tool = load("release_check", monkeypatch)
    assert tool.check_version().count(".") == 2
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert [name for name, _ in tool.find_pythons([own, "3.99"])] in ([own], [])
