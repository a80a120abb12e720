"""Columns of values that are found privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from juncture.errors import InvalidInput
from juncture.tables.columns.base import Outside, TomlTable, call_with_entries
from juncture.tables.columns.categorical import Categorical
from juncture.tables.columns.open import PRIVATE, Open

_MAX_VALUES = 100
_LARGEST_MAX_VALUES = 10_000


@dataclass(frozen=True, kw_only=True)
class OpenCategorical(Open, Categorical):
    """Texts that become known only where enough records have them.

        [columns.city]
        kind = "categorical"
        values = "private"
        max_values = 100     # optional

    All other values share the code of values outside the list. It needs a budget with a delta.

    >>> OpenCategorical(missing=True).coding.labels
    (None, '(outside)')
    """

    values: tuple[str, ...] = field(init=False, default=(), repr=False)
    max_values: int = _MAX_VALUES
    outside: Outside = Outside.CODE

    def __post_init__(self) -> None:
        object.__setattr__(self, "outside", Outside.CODE)  # the code that all values share
        super().__post_init__()
        if type(self.max_values) is not int or not 1 <= self.max_values <= _LARGEST_MAX_VALUES:
            raise InvalidInput(
                f"`max_values` must be a whole number from 1 to {_LARGEST_MAX_VALUES:,}; got "
                f"{self.max_values!r}. Leave it out for {_MAX_VALUES}."
            )

    @property
    def widest(self) -> Categorical:
        """As many values as there may be."""
        names = tuple(f"value {index + 1}" for index in range(self.max_values))
        return Categorical(values=names, **self._common())

    def with_values(self, values: Sequence[str]) -> Categorical:
        """The column with the values that were found."""
        return Categorical(values=tuple(values), **self._common())

    @classmethod
    def private(cls, max_values: int = _MAX_VALUES, missing: bool = False) -> Self:
        """The column that the entries of a schema file describe."""
        return cls(max_values=max_values, missing=missing)

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column without a list of values."""
        entries = {key: value for key, value in entries.items() if key != "values"}
        if entries.pop("outside", Outside.CODE) is not Outside.CODE:
            raise InvalidInput(
                '`outside` must be "code", or left out, where values are private; got another. '
                "Values that are not found share that code."
            )
        return call_with_entries(cls.private, entries)

    def to_toml(self) -> TomlTable:
        """That the values are private."""
        most = {"max_values": self.max_values} if self.max_values != _MAX_VALUES else {}
        return {"values": PRIVATE, **most}
