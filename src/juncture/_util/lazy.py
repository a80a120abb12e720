"""Public names of a package that are imported when they are first used.

A program that needs one name of a package, or only its help text, does not wait for the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

Exports = tuple[Callable[[str], object], Callable[[], list[str]], list[str]]


def export(package: str, homes: Mapping[str, Sequence[str]]) -> Exports:
    """Make `__getattr__`, `__dir__` and `__all__` for a package.

    `homes` lists, for each module, the names that the package takes from it. A module without names
    is exported itself, under the last part of its name.

        __getattr__, __dir__, __all__ = export(__name__, {"juncture.tables.domain": ["Domain"]})
    """
    table = {name: module for module, names in homes.items() for name in names}
    modules = {module.rpartition(".")[2]: module for module, names in homes.items() if not names}
    public = sorted([*table, *modules])

    def get(name: str) -> object:
        if name in modules:
            value: object = import_module(modules[name])
        elif name in table:
            value = getattr(import_module(table[name]), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return get, list_names, public
