"""The rooms of the package keep their order, and nothing public reaches private data."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import juncture

PACKAGE = Path(juncture.__file__).parent
ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
ROW = re.compile(r"^\| (\d) \| ((?:`[\w./]+`(?:, )?)+) \|", re.MULTILINE)
FILE = re.compile(r"[\w/]+\.py\b")
HALL = {"juncture", "juncture.__main__"}
MAY_SEE_PRIVATE_DATA = {"private", "workflow", "cli"}


def _ranks() -> dict[str, int]:
    """The rank of each room, as the architecture page says it."""
    rows = ROW.findall(ARCHITECTURE.read_text())
    names = [(int(rank), name) for rank, cell in rows for name in re.findall(r"`([^`]+)`", cell)]
    return {name.rstrip("/").removesuffix(".py"): rank for rank, name in names}


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
RANKS = _ranks()


def _imports(source: str) -> set[str]:
    """The modules of ours that are imported when the source runs (not only when it is typed)."""
    names: set[str] = set()
    for node in _running_nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & MODULES.keys()) or {node.module}
    return {name for name in names if name.split(".")[0] == "juncture"}


def _running_nodes(tree: ast.AST) -> list[ast.AST]:
    nodes: list[ast.AST] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        nodes.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return nodes


GRAPH = {name: _imports(path.read_text()) for name, path in MODULES.items()}


def _room(module: str) -> str:
    return module.split(".")[1]


def _breaches(module: str) -> set[str]:
    """What a module imports from other rooms without being allowed to."""
    others = {name for name in GRAPH[module] - HALL if _room(name) != _room(module)}
    return {name for name in others if RANKS[_room(name)] >= RANKS[_room(module)]}


def test_the_package_root_holds_nothing_but_rooms() -> None:
    """Every entry of the package is a room of the architecture page, or one of the four others."""
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    rooms = {entry for entry in entries if (PACKAGE / entry).is_dir()}
    assert entries - rooms == {"__init__.py", "__main__.py", "errors.py", "py.typed"}
    assert rooms | {"errors"} == RANKS.keys()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_on_the_map_exists(page: str) -> None:
    """A file that a page for contributors names is where the page says that it is."""
    folders = [ROOT / name for name in ("src", "tests", "tools", "bench", "experiments")]
    names = {path.name for folder in folders for path in folder.rglob("*.py")}
    for file in FILE.findall((ROOT / page).read_text()):
        whole = (ROOT / file).exists() or (PACKAGE / file).exists()
        assert whole if "/" in file else file in names, file


def test_rooms_import_only_rooms_below_them() -> None:
    """A room imports rooms of lower rank, and none of its own rank."""
    breaches = {module: _breaches(module) for module in MODULES.keys() - HALL}
    assert not {module: names for module, names in breaches.items() if names}


def test_no_import_goes_round_in_a_circle() -> None:
    """The modules can be put in an order in which each imports only those before it."""
    inner = {module: GRAPH[module] - HALL for module in MODULES.keys() - HALL}
    try:
        TopologicalSorter(inner).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {error.args[1]}")


def test_only_the_trust_boundary_and_what_runs_it_see_private_data() -> None:
    """Nobody but the private room, the workflows and the commands imports the private room."""
    seers = {module for module in MODULES.keys() - HALL
             if any(_room(name) == "private" for name in GRAPH[module] - HALL)}  # fmt: skip
    assert {_room(module) for module in seers} <= MAY_SEE_PRIVATE_DATA


def test_exact_numbers_stay_with_those_who_may_see_them() -> None:
    """Names that begin with exact_ (private data without noise) do not occur in public rooms."""
    for module in MODULES.keys() - HALL:
        if _room(module) not in MAY_SEE_PRIVATE_DATA:
            tree = ast.parse(MODULES[module].read_text())
            names = {
                str(getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))))
                for node in ast.walk(tree)
            }
            assert not {name for name in names if name.startswith("exact_")}, module


def test_the_rules_notice_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, nested and from-imports are seen, those for types only are not, and ranks count."""
    source = """
import juncture.engine.plan
from juncture.engine.compiled import messages
if TYPE_CHECKING:
    from juncture.tables.factor import Factor
def late():
    from juncture.private.samples import adult_codes
"""
    seen = {"juncture.engine.plan", "juncture.engine.compiled.messages", "juncture.private.samples"}
    assert _imports(source) == seen
    monkeypatch.setitem(GRAPH, "juncture.engine.broken", _imports(source))
    assert _breaches("juncture.engine.broken") == {"juncture.private.samples"}
