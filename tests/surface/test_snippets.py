"""What the documentation shows runs as it is shown."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import juncture

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(juncture.__path__, "juncture.")]


def test_readme_snippets_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of the README run in order, and print what the text promises."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert len(blocks) == 4
    assert "junction tree" in printed
    assert "Its largest clique is (x0, x1," in printed


def test_the_inference_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks run in order, and print what the text promises."""
    page = (ROOT / "docs" / "inference.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "(2, 2, 2, 2)" in printed
    assert f"{2**20} 1000" in printed or f"{2**20} 999.99" in printed
    assert "mean_wealth" in printed


def test_the_page_of_the_private_side_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks run in order, and print what the text promises."""
    page = (ROOT / "docs" / "private-side.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "within the budget of epsilon 1" in printed
    assert "every count of age, work" in printed


def test_the_page_of_the_mechanisms_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Every mechanism spends its budget and prints its error."""
    page = (ROOT / "docs" / "mechanisms.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert capsys.readouterr().out.count("spent") == 5


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_hold(module: str) -> None:
    """The examples in docstrings give the results they show."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_demo_runs() -> None:
    """The demo ends well and shows the plan and the model."""
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "junction tree" in done.stdout
    assert "synthetic records" in done.stdout
    assert "certified" in done.stdout
