"""What every experiment is told: where the data lie, and how much to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper_data import TOY, available

Cell = dict[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Context:
    """The user's choices."""

    folder: Path | None = None
    """Of the data sets that do not ship with the package."""
    quick: bool = False
    """Few trials on a small table that is made on the spot."""
    peer_python: Path | None = None
    """The interpreter of an environment with the peer, where there is one."""
    dpsynth_python: Path | None = None
    """The interpreter of an environment with dpsynth, where there is one."""

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data sets to use."""
        return (TOY,) if self.quick else available(self.folder)

    @property
    def main_data(self) -> str:
        """The data set of experiments on one alone: Adult."""
        return TOY if self.quick else "adult"

    @property
    def n_trials(self) -> int:
        """Of each figure."""
        return 1 if self.quick else 5


@dataclass(frozen=True)
class Experiment:
    """Cells to run, each in a process of its own, and how."""

    name: str
    title: str
    cells: Callable[[Context], list[Cell]]
    run: Callable[[Cell, Context], Rows]
    alone: bool = False
    """Whether its figures are times, so that cells must not run side by side."""
