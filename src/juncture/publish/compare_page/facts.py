"""What the page shows, as plain data: nothing here can reach a private table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from juncture.publish.comparison import Association, Difference
from juncture.tables.codebook import Codebook
from juncture.tables.layout import Vector


@dataclass(frozen=True)
class ColumnCounts:
    """The counts of one column: in the table, with or without noise, and in the release."""

    name: str
    truth: Vector
    released: Vector


@dataclass(frozen=True)
class Score:
    """How well a classifier predicts values of real records that it has not seen."""

    trained_on: str
    accuracy: float
    balanced: float
    """The mean, over the values, of the share of records of a value that are told right."""


@dataclass(frozen=True)
class Lesson:
    """What synthetic records teach a classifier, beside what real ones do."""

    target: str
    scores: Sequence[Score]
    n_tested: int


@dataclass(frozen=True)
class Comparison:
    """A release held against its table."""

    codebook: Codebook
    columns: Sequence[ColumnCounts]
    differences: Sequence[Difference]
    associations: Sequence[Association] = ()
    lesson: Lesson | None = None
    no_lesson: str = ""
    """Why there is no lesson, where there is none."""
    guarantee: str | None = None
    """What the table's counts cost, if they have noise; None if they are exact, and private."""

    @property
    def singles(self) -> list[Difference]:
        """The differences of single columns."""
        return [each for each in self.differences if len(each.clique) == 1]

    @property
    def pairs(self) -> list[Difference]:
        """The differences of pairs of columns."""
        return [each for each in self.differences if len(each.clique) == 2]
