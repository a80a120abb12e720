"""The reference page of the command line says what the commands say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "build_cli_page.py"


@pytest.mark.parametrize("columns", ["40", "250"])
def test_the_page_is_fresh(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is what --help gives now, whatever the width of the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    tool = runpy.run_path(str(TOOL))
    page = tool["PAGE"].read_text()
    assert page == tool["page"](), "Run tools/build_cli_page.py."
    assert max(map(len, page.splitlines())) <= 100


def test_the_page_has_every_command() -> None:
    """Every command has a section of its own."""
    tool = runpy.run_path(str(TOOL))
    page = tool["PAGE"].read_text()
    for path in tool["command_paths"]():
        assert f"\n## {' '.join(('juncture', *path))}\n" in page
