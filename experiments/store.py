"""Results as small CSV files, a cell at a time: what is there already is not run again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from juncture._util.atomic_file import atomic_write

Row = dict[str, str]


class Store:
    """The rows of one experiment; a column named `cell` says which cell each came from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))

    def has(self, cell: Mapping[str, Any]) -> bool:
        """Whether a cell was run already."""
        return any(row["cell"] == cell_key(cell) for row in self.rows)

    def add(self, cell: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
        """Keep a cell's rows: the file is replaced in one piece."""
        key = cell_key(cell)
        self.rows = [row for row in self.rows if row["cell"] != key]
        for row in rows:
            self.rows.append({"cell": key, **{name: _text(value) for name, value in row.items()}})
        self.write()

    def sort(self, cells: Sequence[Mapping[str, Any]]) -> None:
        """Rows in the order of their cells, whatever order they came in; others come last."""
        known = {cell_key(cell): place for place, cell in enumerate(cells)}
        self.rows.sort(key=lambda row: known.get(row["cell"], len(known)))
        self.write()

    def write(self) -> None:
        """The whole file."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, names, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(self.rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as part:
            part.write(buffer.getvalue().encode())


def cell_key(cell: Mapping[str, Any]) -> str:
    """A cell in words."""
    return json.dumps(cell, sort_keys=True)


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)
