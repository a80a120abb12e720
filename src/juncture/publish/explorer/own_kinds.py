"""Kinds of columns that are not built in, made known to the processes that answer.

A process of its own knows the kinds of the package. One that a person has written is handed on by
the file of its module and its name there; a kind without a file, as in a notebook, cannot be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location

from juncture.tables.columns import column_kinds, register_column_kind

_SEPARATOR = "::"


def list_own_kinds() -> list[str]:
    """The file and the name of every class that is known and not built in."""
    found = []
    for kind in column_kinds().values():
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if not kind.__module__.startswith("juncture.") and file and "<" not in kind.__qualname__:
            found.append(f"{file}{_SEPARATOR}{kind.__qualname__}")
    return found


def register_own_kinds(kinds: Iterable[str]) -> None:
    """Import the modules that `list_own_kinds` has named, and make their classes known."""
    for each in kinds:
        file, _, name = each.partition(_SEPARATOR)
        spec = spec_from_file_location("juncture_own_kinds", file)
        if spec is None or spec.loader is None:
            continue
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        register_column_kind(getattr(module, name))
