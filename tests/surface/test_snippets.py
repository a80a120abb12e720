"""What the documentation shows runs as it is shown."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import juncture

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(juncture.__path__, "juncture.")]


PAGES = {
    "README.md": ["junction tree", "Its largest clique is (x0, x1,"],
    "docs/inference.md": ["(2, 2, 2, 2)", "mean_wealth"],
    "docs/private-side.md": ["within the budget of epsilon 1", "every count of age, work"],
    "docs/mechanisms.md": ["hdmm, local", "hdmm, model", "mwem", "privbayes", "dual query"],
}


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run in order, and print what the text promises."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert blocks
    for words in PAGES[page]:
        assert words in printed


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_hold(module: str) -> None:
    """The examples in docstrings give the results they show."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0
