"""Write docs/reference.md: public names with their signatures and what they are for.

It reads the names of `juncture` and of the modules listed here. Run it after changing one of them;
a test compares the page with what it would be.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import juncture

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
WIDTH = 96
_INTRODUCTION = """\
# Public names

Made from the docstrings by `tools/build_reference.py`: change those, not this page.

The names of the first parts are those of `juncture` itself: after `import juncture as jn` they are
`jn.release`, `jn.Budget` and so on, and those of its three namespaces `jn.queries.Prefix`,
`jn.solvers.Accelerated`, `jn.mechanisms.HDMM`. The parts after them name the module to import from.
The full docstring of each name, which also proves what a mechanism costs, is shown by `help(...)`.
"""
GROUPS = {
    "From a private table to a release": (
        "release", "Synthesizer", "read_table", "TableFile", "Release", "load", "write_report",
    ),
    "Privacy": ("Budget", "Pure", "ZCDP", "Neighbours", "Guarantee", "Ledger", "Curator"),
    "What is asked for": ("Workload", "queries"),
    "How sure an answer is": (
        "IntervalAnswer", "Basis", "ReplicaRecipe", "MarginalBound", "Support",
    ),
    "Mechanisms": ("mechanisms",),
    "From measurements to a model": (
        "Measurement", "estimate", "Estimate", "Status", "FitSummary", "Model", "solvers",
    ),
    "Domains and tables": ("Domain", "Factor", "Codebook", "Coding", "Plan"),
    "Schemas": ("Schema", "Person", "Rule", "Known", "read_schema"),
    "Column kinds": ("Categorical", "Boolean", "Integer", "Number", "Date"),
    "Errors": (
        "JunctureError", "InvalidInput", "UnknownAttribute", "ModelTooLarge", "ImpossibleModel",
        "BudgetExceeded", "NotPublic", "UnreadableFile",
    ),
}  # fmt: skip
"""The names of `juncture` by what they are for; a namespace stands for the names in it."""
# Members of these all have the methods of their family, which few people call.
_FAMILIES = frozenset({"Column kinds", "queries", "solvers"})
MODULES = {
    "Options of mechanisms": (
        "mechanisms.hdmm",
        "mechanisms.strategy",
        "mechanisms.mwem",
        "mechanisms.registry",
        "privacy.dependence",
        "tables.workload",
    ),
    "The private side": (
        "private.sources.source",
        "private.sources.duck",
        "private.sources.spark",
        "private.samples",
        "private.simulated",
        "privacy.request",
        "privacy.score",
        "privacy.accounting",
        "privacy.ledger",
        "privacy.guarantee",
    ),
    "Column kinds of your own": (
        "tables.columns.base",
        "tables.columns.sql",
        "tables.columns.display",
        "tables.columns.summary",
    ),
    "The engine": ("tables.layout", "engine.oracle", "engine.propagation"),
    "For people": (
        "tables.records",
        "model.sql.answer",
        "publish.noisy_tables",
        "publish.records",
        "publish.comparison",
        "fit.misfit",
    ),
}
# What is public in a module but is a type or a helper of its own.
_ASIDE = frozenset(
    {
        "AnyTable",
        "ArrowTable",
        "BoundScore",
        "Prices",
        "SeededSampler",
        "Setting",
        "check_same_domain",
        "choose_delta",
        "counting_operator",
        "describe_query",
        "divide_budget",
        "extract_row",
        "optimise_product",
        "optimise_union",
        "read_entries",
        "redact_error",
        "refuse_overspending",
        "refuse_unknown_format",
        "table_domain",
    }
)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


def page() -> str:
    """The whole page."""
    parts, seen = [_INTRODUCTION], set[int]()
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names:
            value = getattr(juncture, name)
            if isinstance(value, ModuleType):
                parts += _namespace(name, value, seen)
            else:
                seen.add(id(value))
                parts.append(entry(name, value, brief=title in _FAMILIES))
    for title, names in MODULES.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _module(import_module(f"juncture.{name}"), seen)
    return "\n".join(parts)


def _namespace(name: str, module: ModuleType, seen: set[int]) -> Iterator[str]:
    """The names that a namespace gives away; where they are defined does not matter."""
    yield f"### jn.{name}\n\n{_first_line(module)}\n"
    for each in module.__all__:
        value = getattr(module, each)
        seen.add(id(value))
        if inspect.isclass(value) or inspect.isfunction(value):  # not the name of a type
            yield entry(each, value, level=4, brief=name in _FAMILIES)


def _module(module: ModuleType, seen: set[int]) -> Iterator[str]:
    """What a module defines, less what stands on the page already."""
    yield f"### {module.__name__}\n\n{_first_line(module)}\n"
    for name, value in own_names(module).items():
        if id(value) not in seen:
            yield entry(name, value, level=4)


def own_names(module: ModuleType) -> dict[str, Any]:
    """The public classes and functions that a module defines, as they stand in it."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and name not in _ASIDE
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


def entry(name: str, value: Any, level: int = 3, *, brief: bool = False) -> str:  # noqa: ANN401
    """A name: its signature, its first sentence, and its members."""
    heading = f"{'#' * level} {name}\n"
    signature = "" if _is_plain(value) else f"\n```text\n{signature_of(name, value)}\n```\n"
    listed = "".join(f"- {line}\n" for line in ([] if brief else _members(value)))
    return f"{heading}{signature}\n{_first_line(value)}\n" + (f"\n{listed}" if listed else "")


def _is_plain(value: Any) -> bool:  # noqa: ANN401
    """Whether nobody calls it: an error, a choice, a protocol."""
    if not inspect.isclass(value):
        return False
    return issubclass(value, Exception | Enum) or bool(getattr(value, "_is_protocol", False))


def signature_of(name: str, value: Any) -> str:  # noqa: ANN401
    """How it is called, broken into lines where it is long."""
    signature = inspect.signature(value)
    shown = list(_parameters(value, signature))
    gives = "" if inspect.isclass(value) else f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){gives}"
    if len(line) <= WIDTH:
        return line
    inside = textwrap.indent(",\n".join(shown), "    ")
    return f"{name}(\n{inside},\n){gives}"


def _parameters(value: Any, signature: inspect.Signature) -> Iterator[str]:  # noqa: ANN401
    made = _made_defaults(value)
    named_only = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named_only:
            named_only = True
            yield "*"
        text = f"{_stars(parameter)}{parameter.name}: {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {made.get(parameter.name) or _default(parameter.default)}"
        yield text


def _stars(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return "*"
    return "**" if parameter.kind is parameter.VAR_KEYWORD else ""


def _made_defaults(value: Any) -> dict[str, str]:  # noqa: ANN401
    """Defaults of a dataclass that are made anew each time."""
    if not (inspect.isclass(value) and is_dataclass(value)):
        return {}
    factories = {field.name: field.default_factory for field in fields(value)}
    return {n: _made(f) for n, f in factories.items() if f is not MISSING}


def _made(factory: Any) -> str:  # noqa: ANN401
    return "..." if factory.__name__ == "<lambda>" else f"{factory.__name__}()"


def _type(annotation: Any) -> str:  # noqa: ANN401
    if annotation is inspect.Parameter.empty:
        return "None"
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__name__", annotation))


def _default(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isfunction(value) or inspect.isclass(value):
        return str(value.__name__)
    return repr(value)


def _members(value: Any) -> Iterator[str]:  # noqa: ANN401
    """The public methods and properties of a class, or the members of a choice."""
    if not inspect.isclass(value):
        return
    if issubclass(value, Enum):
        yield from (f"`{member.name}`" for member in value)
        return
    for name, member in _inherited(value).items():
        is_value = isinstance(member, property) or _is_cached(member)
        called = "" if is_value else f"({', '.join(_argument_names(_plain(member)))})"
        yield f"`{name}{called}`: {_member_line(value, name)}"


def _member_line(cls: type, name: str) -> str:
    """What a member is for: where it only refers to that of an ancestor, the ancestor's words."""
    docs = [_first_line(_plain(vars(each)[name])) for each in cls.__mro__ if name in vars(each)]
    return next((doc for doc in docs if doc and not doc.startswith("See `")), docs[0])


def _argument_names(function: Any) -> Iterator[str]:  # noqa: ANN401
    """What a method is given, itself left out; a default shows that it may be left out too."""
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        optional = parameter.default is not parameter.empty
        yield f"{_stars(parameter)}{parameter.name}{'=...' if optional else ''}"


def _inherited(cls: type) -> dict[str, Any]:
    """What a class and its ancestors of ours define, ancestors first."""
    found: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        if not each.__module__.startswith("juncture."):
            continue
        for name, member in vars(each).items():
            is_shown = callable(_plain(member)) or isinstance(member, property)
            if is_shown and not name.startswith("_") and getattr(_plain(member), "__doc__", None):
                found[name] = member
    return found


def _is_cached(member: Any) -> bool:  # noqa: ANN401
    return hasattr(member, "attrname")


def _plain(member: Any) -> Any:  # noqa: ANN401
    """The function behind a class method or a cached property."""
    return getattr(member, "__func__", getattr(member, "func", member))


def _first_line(value: Any) -> str:  # noqa: ANN401
    """The first line of a docstring."""
    return (inspect.getdoc(value) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
