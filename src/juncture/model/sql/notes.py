"""What an answer rests on besides the data: columns never measured together, numbers in bins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from juncture._util.text import list_names
from juncture.tables.domain import Clique


@dataclass(frozen=True)
class NotMeasured:
    """A column that no measurement is about: its values count as equally frequent."""

    column: str

    def __str__(self) -> str:
        return f"{self.column} was never measured: all its values are taken as equally frequent."


@dataclass(frozen=True)
class NeverTogether:
    """Columns of which no measurement counts all together."""

    columns: tuple[str, ...]
    independent: bool = False
    """Whether nothing links them: the answer takes them as independent."""

    def __str__(self) -> str:
        names = list_names(self.columns)
        if self.independent:
            return f"{names} were never measured together, and are taken as independent."
        return (
            f"{names} were never measured together: how they go together is inferred from what "
            "was measured with each."
        )


@dataclass(frozen=True)
class InBins:
    """A column whose numbers are known by their bin, where the answer needs more than that."""

    column: str
    is_cut: bool
    """Whether a condition or group divides a bin; otherwise its numbers are added up."""
    is_day: bool = False

    def __str__(self) -> str:
        unit = "periods" if self.is_day else "bins"
        if self.is_cut:
            return (
                f"{self.column} is known by its {unit} only, and the question divides some of "
                f"them: the records of each are taken as spread over it."
            )
        return f"{self.column} is known by its {unit} only: sums take the likely mean of each."


Note = NotMeasured | NeverTogether | InBins


@dataclass(frozen=True)
class Range:
    """The least and the largest value of an answer, wherever in their bins the numbers lie."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"between {self.low:,.6g} and {self.high:,.6g}"


def find_dependence_notes(attributes: Sequence[str], cliques: Iterable[Clique]) -> list[Note]:
    """What was never measured, and never measured together, of the attributes of a question."""
    measured = [frozenset(clique) for clique in cliques if clique]
    known = frozenset().union(*measured)
    notes: list[Note] = [NotMeasured(name) for name in attributes if name not in known]
    names = [name for name in attributes if name in known]
    if any(clique.issuperset(names) for clique in measured):
        return notes
    part = _find_parts(measured)
    apart = [
        pair for pair in combinations(names, 2) if not any(c.issuperset(pair) for c in measured)
    ]
    notes += [NeverTogether(pair, part[pair[0]] != part[pair[1]]) for pair in apart]
    return notes if apart else [*notes, NeverTogether(tuple(names))]


def _find_parts(cliques: Sequence[frozenset[str]]) -> dict[str, str]:
    """For each measured attribute, the name of one that it is linked to: the same for a part."""
    parts: dict[str, set[str]] = {}
    for clique in cliques:
        joined = set(clique).union(*(parts[name] for name in clique if name in parts))
        parts |= dict.fromkeys(joined, joined)
    return {name: min(part) for name, part in parts.items()}
