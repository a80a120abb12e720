"""What a table's columns may hold, as public knowledge: the domain, and what its codes stand for.

A schema is written by a person, in TOML or in Python, from what is known without looking at the
data. A draft made from a data file is marked as such, and nothing is released under it until a
person has confirmed in the file that the domains are public knowledge.

Codes count the regular values first, then, where they exist, one code for missing values and one
for values outside the domain. The kinds of columns are in `juncture.tables.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput, NotPublic
from juncture.tables.codebook import Codebook
from juncture.tables.columns import Column, Open, OpenBins
from juncture.tables.domain import Domain
from juncture.tables.known import Known
from juncture.tables.person import Person
from juncture.tables.rules import MAX_RULES, Broken, Rule, Zeros, find_zeros


@dataclass(frozen=True)
class Schema:
    """All columns of a table in order, and whether their domains are public knowledge.

    - `columns`: what each column may hold, by name.
    - `drafted`, `confirmed`: only set for a schema that was made from data.
    - `person`: whose rows there are, where a person may have several.
    - `rules`: which combinations of values no record has.
    - `known`: tables of counts that are public.

    >>> from juncture.tables.columns import Boolean, Integer
    >>> schema = Schema({"age": Integer(low=17, high=90), "member": Boolean(missing=True)})
    >>> schema.domain
    Domain({'age': 74, 'member': 3})
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    drafted: bool = False
    """Whether it was made by looking at private data."""
    confirmed: bool = False
    """Whether a person has confirmed that the domains of a draft are public knowledge."""
    person: Person | None = None
    """Which column says whose row it is, and how many rows of a person count."""
    rules: tuple[Rule, ...] = ()
    """What no record does."""
    known: tuple[Known, ...] = ()
    """Counts that are public knowledge, and that a model holds exactly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "known", tuple(self.known))
        if not self.columns:
            raise InvalidInput("`columns` must not be empty; got none.")
        unknown = [n for k in self.known for n in k.columns if n in self.open_columns]
        if unknown:
            raise InvalidInput(
                "`known` must be about columns whose bins and values are public; got "
                f"{unknown[0]}, where they are private."
            )
        if len(self.rules) > MAX_RULES:
            raise InvalidInput(
                f"`rules` must be at most {MAX_RULES}; got {len(self.rules)}. Join some by OR."
            )
        if self.person is not None and self.person.column in self.columns:
            raise InvalidInput(
                f"`person` must name a column that is not among the schema's columns; got "
                f"{self.person.column!r}. Remove [columns.{self.person.column}]: what tells people "
                "apart is never released."
            )

    def __repr__(self) -> str:
        kind = "" if self.is_public else "; a draft, not confirmed as public"
        count = count_noun(len(self.columns), "column")
        return f"Schema({count}: {list_names(self.columns)}{kind})"

    @cached_property
    def domain(self) -> Domain:
        """The attributes, each with its number of codes."""
        return Domain({name: column.coding.size for name, column in self.columns.items()})

    @cached_property
    def codebook(self) -> Codebook:
        """What the codes stand for."""
        return Codebook({name: column.coding for name, column in self.columns.items()})

    @cached_property
    def open_columns(self) -> dict[str, Open]:
        """The columns whose bins or values are still to be found privately."""
        return {name: each for name, each in self.columns.items() if isinstance(each, Open)}

    @cached_property
    def widest(self) -> Schema:
        """The schema with as many codes as its open columns may get: for planning, without data."""
        widest = {name: column.widest for name, column in self.open_columns.items()}
        return replace(self, columns={**self.columns, **widest}) if widest else self

    @property
    def is_public(self) -> bool:
        """Whether something may be released under this schema."""
        return not self.drafted or self.confirmed

    @cached_property
    def zeros(self) -> tuple[Zeros, ...]:
        """The cells that each rule excludes; refuses a rule that cells cannot decide."""
        found = tuple(find_zeros(rule, self.codebook) for rule in self.rules)
        for each in found:
            self._refuse_private_values(each)
        return found

    def _refuse_private_values(self, zeros: Zeros) -> None:
        """Refuse a rule about values that nobody knows yet."""
        for name in zeros.clique:
            column = self.open_columns.get(name)
            if column is not None and not isinstance(column, OpenBins):
                raise InvalidInput(
                    f"`never` must be about columns whose values are public; got "
                    f"{zeros.rule.never!r}, and the values of {name} are private. List them."
                )

    @property
    def sets_rows_aside(self) -> bool:
        """Whether rows that break some rule are counted in no table."""
        return any(rule.broken is Broken.SET_ASIDE for rule in self.rules)

    @property
    def used_columns(self) -> tuple[str, ...]:
        """The columns of a table that are read."""
        return (*self.columns, *(() if self.person is None else (self.person.column,)))

    def refuse_draft(self, argument: str, path: str | Path | None = None) -> None:
        """Raise `NotPublic` unless something may be released under this schema.

        The error names the argument that the schema was given as, and its file where there is one.
        """
        if not self.is_public:
            raise NotPublic.of_draft(argument, path)

    def decode(
        self, records: Mapping[str, NDArray[np.int32]], rng: np.random.Generator | int | None = None
    ) -> dict[str, list[Any]]:
        """Records of codes as records of values; numbers and dates are drawn inside their bins."""
        random = np.random.default_rng(rng)
        return {name: self.columns[name].decode(codes, random) for name, codes in records.items()}
