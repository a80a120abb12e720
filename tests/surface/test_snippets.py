"""What the documentation shows runs as it is shown."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import shutil
from pathlib import Path

import pytest

import juncture
from pages_run import ROOT, blocks, commands, do_page, masked, script

MODULES = [m.name for m in pkgutil.walk_packages(juncture.__path__, "juncture.")]
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Every page with something to run, and words that it prints when that is done.
PAGES = {
    "README.md": ["valid: 3 events", "(add or remove one record), spent in 3 events"],
    "docs/quick-start.md": [
        "NOT PUBLIC",
        "Written by a person",
        "NOT PRIVATE",
        "wrote people.html",
    ],
    "docs/schema.md": ["The table agrees with the schema.", "wrote draft.toml"],
    "docs/how-to/release-a-raw-table.md": ["found     gain", "COUNT"],
    "docs/how-to/release-a-table.md": ["The ledger can pay", "error: `cost` must leave", "people"],
    "docs/how-to/join-noisy-tables.md": ["does not fit its own noise", "wrote joined.jct"],
    "docs/how-to/synthesize-a-data-frame.md": ["Synthesizer(epsilon 1", "refused: the ledger"],
    "docs/how-to/build-a-mechanism.md": ["spent 1.0", "exponential mechanism"],
    "docs/how-to/add-a-column-kind.md": ["diagnosis", "(outside)"],
    "docs/how-to/count-in-duckdb.md": ["people", "spent 0.5"],
    "docs/how-to/count-on-spark.md": ["spent 0.5"],
    "docs/how-to/protect-people-with-several-rows.md": ["tells people apart", "[1100. 1700."],
    "docs/coming-from-mbi.md": ["99.94"],
    "docs/how-it-works.md": ["closest possible", "none is below", "women who cough: 9.1"],
    "docs/guarantee.md": ["at most 73.1%", "epsilon 3", "5 records of one person: ε ="],
    "docs/estimation.md": ["junction tree", "Its largest clique is (x0, x1,"],
    "docs/inference.md": ["(2, 2, 2, 2)", "mean_wealth"],
    "docs/choosing.md": ["noise of a count"],
    "docs/intervals.md": ["smokes"],
    "docs/private-side.md": ["within the budget of epsilon 1", "every count of age, work"],
    "docs/mechanisms.md": ["hdmm, local", "hdmm, model", "mwem", "privbayes", "dual query"],
    "docs/tiers.md": ["['c', 'd', 'e']"],
}
NEEDS_JAVA = {"docs/how-to/count-on-spark.md"}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a page tells its reader to do works in order, and prints what the text promises."""
    if page in NEEDS_JAVA:
        pytest.importorskip("pyspark.sql")
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            pytest.skip("Spark needs Java 17 or later, and this machine has none")
    monkeypatch.chdir(tmp_path)
    printed = do_page((ROOT / page).read_text(), tmp_path, lambda: "".join(capsys.readouterr()))
    for words in PAGES[page]:
        assert words in printed


def test_every_page_with_something_to_run_is_run() -> None:
    """A page that shows Python or a command line is in the list above, and no other is."""
    showing = {
        str(page.relative_to(ROOT))
        for page in WRITTEN
        if any(
            block.kind in ("python", "console") or (block.kind == "sh" and any(script(block.text)))
            for block in blocks(page.read_text())
        )
    }
    assert showing == set(PAGES)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_no_command_escapes_the_runner(page: Path) -> None:
    """Commands of ours stand in console blocks with a prompt, or in sh blocks without one."""
    for block in blocks(page.read_text()):
        if block.kind == "console":
            assert block.text.startswith("$ juncture ")
            assert all(words[0] == "juncture" for words, _ in commands(block.text))
        elif block.kind == "sh":
            assert not any(line.startswith("$ ") for line in block.text.splitlines())
        elif page.name != "command-line.md":
            assert not any(
                line.startswith(("$ ", "juncture ")) for line in block.text.splitlines()
            ), block.text


def test_what_is_shown_is_held_against_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that a command does not print is noticed; other numbers are not."""
    page = "```console\n$ juncture --version\njuncture {}\n```\n"

    def printed() -> str:
        return "".join(capsys.readouterr())

    do_page(page.format("7.1.20"), tmp_path, printed)
    with pytest.raises(AssertionError, match="is not what"):
        do_page(page.format("version one"), tmp_path, printed)
    with pytest.raises(AssertionError, match="ended with 2"):
        do_page("```console\n$ juncture nonsense\n```\n", tmp_path, printed)
    for block in ("sh\njuncture --version", "python\nprint('juncture 7.1')"):
        shown = f"```{block}\n```\n\n```text\njuncture {{}}\n```\n"
        do_page(shown.format("0.8"), tmp_path, printed)
        with pytest.raises(AssertionError, match="is not what"):
            do_page(shown.format("version one"), tmp_path, printed)
    assert masked("  a  -3.5e-07 ------ 1,234 (0, 5)") == "a # -- # (#, #)"


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_hold(module: str) -> None:
    """The examples in docstrings give the results they show."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0
