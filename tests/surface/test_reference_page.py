"""The reference of the public names says what the docstrings say."""

from __future__ import annotations

import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "build_reference.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    """The names of the tool that writes the page."""
    return runpy.run_path(str(TOOL))


def test_the_page_is_fresh(tool: dict[str, Any]) -> None:
    """The page is what the docstrings and signatures give now."""
    assert tool["PAGE"].read_text() == tool["page"](), "Run tools/build_reference.py."


def test_every_public_name_has_a_place(tool: dict[str, Any]) -> None:
    """The groups of the page hold every public name once, and nothing else."""
    grouped = [name for names in tool["GROUPS"].values() for name in names]
    assert sorted(grouped) == import_module("juncture").__all__


def test_the_page_is_for_people(tool: dict[str, Any]) -> None:
    """No address in memory, no unnamed function and no empty sentence stands on the page."""
    page = tool["page"]()
    assert " 0x" not in page
    assert "<lambda>" not in page
    assert "<factory>" not in page
    assert "<class" not in page
    assert ": \n" not in page
    assert "estimate(\n    domain: Domain," in page
    assert "- `project(attributes, interval=..., population=...)`: The marginal on any" in page


def test_signatures_are_broken_where_they_are_long(tool: dict[str, Any]) -> None:
    """A short signature is one line, a long one has a line for each argument."""

    def short(one: int, *, two: str = "x") -> bool:
        """Nothing."""
        return str(one) == two

    def long(
        first: dict[str, tuple[int, int, int]],
        **options: dict[str, tuple[int, int, int]] | list[int],
    ) -> None:
        """Nothing."""

    signature_of = tool["signature_of"]
    assert signature_of("short", short) == "short(one: int, *, two: str = 'x') -> bool"
    assert signature_of("long", long).count("\n") == 3
