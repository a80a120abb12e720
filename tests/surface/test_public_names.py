"""The public names are few, listed, documented and real."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import juncture


def test_the_list_equals_reality() -> None:
    """Everything public in the package is in __all__, sorted, and nothing else is."""
    for name in juncture.__all__:
        getattr(juncture, name)  # names are imported when they are first used
    real = {
        name
        for name, value in vars(juncture).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert real == set(juncture.__all__)
    assert juncture.__all__ == sorted(juncture.__all__)


@pytest.mark.parametrize("name", juncture.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    """A public name has a docstring of its own, and so do its public methods."""
    value = getattr(juncture, name)
    assert value.__doc__
    for member, method in inspect.getmembers(value, inspect.isfunction):
        inherited = member not in vars(value)
        assert member.startswith("_") or inherited or method.__doc__, member


def test_a_name_comes_from_where_the_type_checker_finds_it() -> None:
    """The table of homes says the same as the imports that only a type checker reads."""
    tree = ast.parse(Path(juncture.__file__).read_text())
    typed = {
        alias.name: str(node.module).removeprefix("juncture.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("juncture.")
        for alias in node.names
    }
    assert typed == juncture._HOMES


def test_names_that_nobody_has_used_are_listed_too() -> None:
    """Completion in a notebook shows every public name, and an unknown one is refused."""
    assert set(juncture.__all__) <= set(dir(juncture))
    with pytest.raises(AttributeError, match="no attribute 'Modle'"):
        juncture.Modle  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    """A program that only wants to say how it is called does not wait for NumPy."""
    script = "import sys, juncture; print('numpy' in sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
