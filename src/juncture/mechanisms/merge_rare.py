"""The switch for rare values: nothing here is slow to import, so commands may list it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from juncture.errors import InvalidInput


class MergeRare(StrEnum):
    """Whether rare values share a count in tables of several columns."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"
    """In tables where that is expected to leave less error (see `rare_forecast`)."""

    @classmethod
    def parse(cls, value: str) -> Self:
        """The choice with that name.

        >>> MergeRare.parse("auto")
        <MergeRare.AUTO: 'auto'>
        """
        if value not in tuple(cls):
            raise InvalidInput(f"`merge_rare` must be on, off or auto; got {value!r}.")
        return cls(value)

    def list_facts(self) -> list[tuple[str, str]]:
        """What a plan says of it, as a name and a text; nothing where nothing is merged."""
        where = {
            MergeRare.ON: "share counts in tables of several columns",
            MergeRare.AUTO: "share counts in tables where that is expected to leave less error",
        }
        return [("rare values", where[self])] if self in where else []
