"""What all commands share: exit codes, printing, and files that are not overwritten by mistake.

Exit codes: 0 success; 1 a file or value is wrong; 2 the command is written wrongly; 3 the budget
does not allow it; 130 interrupted.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path
from tempfile import TemporaryFile

from juncture._util.text import reveal
from juncture.errors import InvalidInput, UnreadableFile


class UsageError(InvalidInput):
    """Options contradict each other, or one is missing."""


class ExitCode(IntEnum):
    """How a command ends."""

    OK = 0
    ERROR = 1
    USAGE = 2
    BUDGET = 3
    INTERRUPTED = 130


class Format(StrEnum):
    """How answers are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


Rows = Sequence[Sequence[object]]


def say(text: str = "") -> None:
    """Print what was asked for; no text in it commands the terminal."""
    print(reveal(text))


def note(text: str) -> None:
    """Print a remark for people, to standard error."""
    print(reveal(text), file=sys.stderr)


def error(text: str) -> None:
    """Print why a command failed, in one line, to standard error."""
    note(f"error: {' '.join(text.split())}")


def say_json(content: object) -> None:
    """Print JSON; numbers that are not finite become null."""
    # In JSON, what `say` shows as a code means the letter itself.
    say(json.dumps(_finite_or_none(content), ensure_ascii=False, indent=2, default=str))


def say_rows(columns: Sequence[str], rows: Rows, output_format: Format = Format.TABLE) -> None:
    """Print rows as a table for people, as CSV, or as JSON objects."""
    match output_format:
        case Format.JSON:
            names = make_unique(columns)
            say_json([dict(zip(names, row, strict=True)) for row in rows])
        case Format.CSV:
            _say_csv(columns, rows)
        case Format.TABLE:
            say(format_table(columns, rows))


def _say_csv(columns: Sequence[str], rows: Rows) -> None:
    """Print CSV: to a file as it is, and to a terminal as it can be shown."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_to_csv_cell(value) for value in row] for row in rows)
    text = sink.getvalue()
    sys.stdout.write(reveal(text) if sys.stdout.isatty() else text)


def make_unique(names: Sequence[str]) -> list[str]:
    """The names, with a number after each repeated one, so that all can be keys."""
    unique: list[str] = []
    for name in names:
        number, free = 2, name
        while free in unique or (free != name and free in names):
            number, free = number + 1, f"{name} ({number})"
        unique.append(free)
    return unique


def format_table(columns: Sequence[str], rows: Rows) -> str:
    """Rows as aligned columns: numbers to the right, words to the left."""
    columns = [reveal(name, one_line=True) for name in columns]
    values = [[row[i] for row in rows] for i in range(len(columns))]
    right = [all(map(_is_right_aligned, column)) for column in values]
    shown = [_format_column(column) for column in values]
    widths = [max(map(len, [n, *cells])) for n, cells in zip(columns, shown, strict=True)]
    lines = [list(columns), ["-" * width for width in widths], *zip(*shown, strict=True)]
    return "\n".join(_format_line(line, widths, right) for line in lines)


def format_pairs(items: Iterable[tuple[str, str]]) -> str:
    """Names and values, one pair per line."""
    listed = list(items)
    width = max((len(name) for name, _ in listed), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in listed)


def refuse_existing(path: Path, *, force: bool, read: Sequence[Path] = ()) -> None:
    """Refuse to overwrite a file, or to write where nothing can be, before any work is done.

    A file that the command itself reads is not replaced, even with `force`.
    """
    if path.is_dir():
        raise InvalidInput(f"`--out` must be a file; got the folder {path}. Add a file name.")
    if path.exists() and not force:
        raise InvalidInput(
            f"`--out` must be a new file; got {path}, which exists. Add --force to replace it."
        )
    refuse_same("--out", path, read)
    folder = _nearest_folder(path)
    if not folder.is_dir():
        raise InvalidInput(f"`--out` must be in a folder; got {path}, below a file.")
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InvalidInput(
            f"`--out` must be in a folder where files can be written; got {path} "
            f"({error.strerror})."
        ) from None


def refuse_same(what: str, path: Path, others: Sequence[Path]) -> None:
    """Refuse to write to a file that the same command uses for something else."""
    if any(path.absolute() == other.absolute() or _is_same_file(path, other) for other in others):
        raise InvalidInput(
            f"`{what}` must be a file of its own; got {path}, which this command uses for "
            "something else."
        )


def _is_same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def require_file(path: Path, what: str, *, or_folder: bool = False) -> None:
    """Refuse a file that does not exist."""
    if not path.exists():
        raise UnreadableFile(f"`{what}` must be an existing file; got {path}. Check the name.")
    if path.is_dir() and not or_folder:
        raise UnreadableFile(f"`{what}` must be a file; got the folder {path}. Add a file name.")


def _nearest_folder(path: Path) -> Path:
    """The nearest existing folder above a file."""
    return next(folder for folder in path.absolute().parents if folder.exists())


def _format_line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(parts).rstrip()


def _is_right_aligned(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _to_csv_cell(value: object) -> object:
    """A value for a CSV file; truth values as in SQL and in files of records."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value


def _format_column(column: Sequence[object]) -> list[str]:
    """A column as texts; all its fractions have the same number of digits."""
    numbers = [v for v in column if isinstance(v, float) and math.isfinite(v)]
    form = _number_format(max(map(abs, numbers), default=0.0))
    return [
        "NULL"
        if value is None
        else form.format(value)
        if isinstance(value, float) and math.isfinite(value)
        else reveal(str(_to_csv_cell(value)), one_line=True)
        for value in column
    ]


def _number_format(largest: float) -> str:
    """A format for numbers up to a size that makes them easy to compare."""
    if 0.01 <= largest < 1e15:
        decimals = 1 if largest >= 100 else 2 if largest >= 1 else 4
        return f"{{:,.{decimals}f}}"
    return "{:.4g}"


def _finite_or_none(content: object) -> object:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, dict):
        return {str(key): _finite_or_none(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite_or_none(value) for value in content]
    return content
