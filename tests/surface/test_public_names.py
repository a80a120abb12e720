"""The public names are few, listed, documented and real."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import juncture


def test_the_list_equals_reality() -> None:
    """Everything public in the package is in __all__, sorted, and nothing else is."""
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
