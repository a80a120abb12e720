"""The public names are few, listed, documented and real, at the top and in every room."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import juncture

PACKAGES = (
    "juncture",
    "juncture.engine",
    "juncture.fit.solvers",
    "juncture.mechanisms",
    "juncture.privacy",
    "juncture.tables.queries",
)
PRACTITIONERS = ("Budget", "Curator", "Ledger", "Workload", "read_table", "release")
NAMESPACES = {"mechanisms": "MWEM", "queries": "Prefix", "solvers": "Accelerated"}


def _typed_imports(package: str) -> dict[str, str]:
    """What a type checker reads: for each name the module that it comes from."""
    tree = ast.parse(Path(str(import_module(package).__file__)).read_text())
    return {
        str(alias.asname): f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("juncture")
        for alias in node.names
        if alias.asname and not alias.asname.startswith("_")
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_comes_from_where_the_type_checker_finds_it(package: str) -> None:
    """The names that exist when the package runs are those that a type checker sees."""
    module, typed = import_module(package), _typed_imports(package)
    assert sorted(typed) == module.__all__
    for name, home in typed.items():
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            assert value.__name__ == home
        else:
            parent, _, own = home.rpartition(".")
            assert value is getattr(import_module(parent), own)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_documented(package: str) -> None:
    """A public name has a docstring of its own, and so do its public methods."""
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        assert value.__doc__ or not (inspect.isclass(value) or inspect.isfunction(value)), name
        if inspect.isclass(value):
            for member, method in inspect.getmembers(value, inspect.isfunction):
                inherited = member not in vars(value)
                assert member.startswith("_") or inherited or method.__doc__, member


def test_the_path_of_practitioners_is_at_the_top() -> None:
    """From a table and a budget to a release, no other import is needed."""
    assert set(PRACTITIONERS) <= set(dir(juncture))
    for namespace, name in NAMESPACES.items():
        assert hasattr(getattr(juncture, namespace), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_that_nobody_has_used_are_listed_too(package: str) -> None:
    """Completion in a notebook shows every public name, and an unknown one is refused."""
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="no attribute 'Modle'"):
        module.Modle  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    """A program that only wants to say how it is called does not wait for NumPy."""
    script = "import sys, juncture; print('numpy' in sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
