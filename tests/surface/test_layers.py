"""The import graph keeps its one direction, and nothing public reaches private data."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import juncture

PACKAGE = Path(juncture.__file__).parent
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
ROW = re.compile(r"^\| (\d+) \| (public|private|door) \| `([\w.]+)` \|", re.MULTILINE)


class Place(NamedTuple):
    """Where the architecture page puts a module."""

    layer: int
    side: str


def _documented() -> dict[str, Place]:
    rows = ROW.findall(ARCHITECTURE.read_text())
    return {_full_name(name): Place(int(layer), side) for layer, side, name in rows}


def _full_name(name: str) -> str:
    return name if name == "juncture" else f"juncture.{name}"


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PLACES = _documented()


def _imports(source: str) -> set[str]:
    """The modules of ours that are imported when the source runs (not only when it is typed)."""
    found: set[str] = set()
    for node in _running_nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {node.module}
    return {name for name in found if name.split(".")[0] == "juncture"}


def _running_nodes(tree: ast.AST) -> list[ast.AST]:
    nodes: list[ast.AST] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        nodes.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return nodes


GRAPH = {name: _imports(path.read_text()) for name, path in MODULES.items()}


def _reachable(start: str) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        fresh = GRAPH[waiting.pop()] - seen
        seen |= fresh
        waiting.extend(fresh)
    return seen


def test_the_page_lists_every_module() -> None:
    """The architecture page names the modules that exist, no more and no fewer."""
    assert PLACES.keys() == MODULES.keys()


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_down(module: str) -> None:
    """A module imports only from layers below its own."""
    above = {name for name in GRAPH[module] if PLACES[name].layer >= PLACES[module].layer}
    assert not above


@pytest.mark.parametrize(
    "module", sorted(n for n, place in PLACES.items() if place.side == "public")
)
def test_public_modules_cannot_reach_private_data(module: str) -> None:
    """No chain of imports leads from a public module to the private side."""
    private = {name for name in _reachable(module) if PLACES[name].side != "public"}
    assert not private


@pytest.mark.parametrize(
    "module", sorted(n for n, place in PLACES.items() if place.side == "public")
)
def test_public_modules_hold_no_secrets(module: str) -> None:
    """Names that begin with exact_ (private data without noise) stay on the private side."""
    tree = ast.parse(MODULES[module].read_text())
    names = {
        getattr(node, "id", getattr(node, "attr", getattr(node, "name", "")))
        for node in ast.walk(tree)
    }
    assert not {name for name in names if str(name).startswith("exact_")}


def test_the_rules_notice_a_breach() -> None:
    """The import reader sees plain, nested and from-imports, and skips those for types only."""
    source = """
import juncture.plan
from juncture.oracles import kernels
if TYPE_CHECKING:
    from juncture.factor import Factor
def late():
    from juncture.data.samples import adult_codes
"""
    expected = {"juncture.plan", "juncture.oracles.kernels", "juncture.data.samples"}
    assert _imports(source) == expected
