"""The notebooks run in a kernel, as their readers run them; so does the progress bar."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from pages_run import ROOT

pytestmark = [
    pytest.mark.slow,
    # Of the kernel's own libraries, not of ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# What each shows at its end, or on the way.
SHOWN = {
    "notebook.ipynb": "text/html",
    "csv-to-report.ipynb": "one page that opens without a network",
    "join-two-agencies.ipynb": "largest error of a cell",
}


def run(notebook: Any, folder: Path) -> list[Any]:
    """Run all cells in a fresh kernel, in an empty folder; returns the outputs of each."""
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path) -> None:
    """Every cell runs in order, none was saved with outputs, and results show themselves."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    outputs = run(notebook, tmp_path)
    assert SHOWN[path.name] in str(outputs)
    assert sum("text/html" in str(each) for each in outputs) >= 3


BEGIN = """
import time
from juncture._util.notebook_bar import show_in_notebook
bars = show_in_notebook()
watch = bars.__enter__()
for done in range(5):
    watch("measuring <all>", done, 10)
    time.sleep(0.3)
"""


def test_a_bar_says_what_is_left_and_goes_away(tmp_path: Path) -> None:
    """While work runs, the cell shows one bar and the time to go; afterwards nothing."""
    end = "_ = bars.__exit__(None, None, None)"
    notebook = new_notebook(cells=[new_code_cell(BEGIN)])
    ((shown,),) = run(notebook, tmp_path)
    html = shown["data"]["text/html"]
    assert html.count("<progress") == 1
    assert re.search(r"measuring &lt;all&gt;: 4 of 10 done, 6 left, about \d+ s to go", html)
    (gone,) = run(new_notebook(cells=[new_code_cell(BEGIN + end)]), tmp_path)
    assert [each["data"]["text/html"] for each in gone] == ["<span></span>"]
