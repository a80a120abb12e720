"""Noisy marginals that another system measured, read from its files.

A table (CSV or Parquet) is one marginal: a column for each attribute, a column `value`, perhaps a
column `stddev`, and a row for every cell. A JSON document lists several: {"measurements":
[{"clique": ["age", "sex"], "values": [...], "stddev": 10.0, "noise": "laplace"}]}, values in the
order of the cells, the last attribute running fastest.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput, JunctureError, UnreadableFile
from juncture.tables.codebook import Codebook, Coding
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement, Noise

_VALUE, _STDDEV = "value", "stddev"
_KINDS = (".csv", ".parquet", ".json")
Column = Sequence[Any]


@dataclass(frozen=True)
class Reading:
    """How to read what a file leaves open."""

    domain: Domain
    codebook: Codebook
    stddev: float | None = None
    """Of the noise, where a file does not say it."""
    noise: str = Noise.GAUSSIAN
    """The kind of noise, where a file does not say it."""


def read_domain(path: str | Path) -> tuple[Domain, Codebook]:
    """A domain in JSON: for each attribute the number of its values, or a list of them."""
    content = _json(Path(path))
    if not isinstance(content, dict) or not content:
        raise UnreadableFile(
            f'`path` must hold a JSON object such as {{"age": 85, "sex": ["f", "m"]}}; got '
            f"{type(content).__name__} in {path}. Give each attribute a size or its values."
        )
    sizes = {n: len(v) if isinstance(v, list) else v for n, v in content.items()}
    listed = {n: Coding(tuple(v)) for n, v in content.items() if isinstance(v, list)}
    domain = Domain(sizes)
    return domain, Codebook(listed).checked(domain)


def read_measurements(paths: Iterable[str | Path], reading: Reading) -> list[Measurement]:
    """The measurements of all files, in order."""
    found = []
    for path in map(Path, paths):
        try:
            found += _of_file(path, reading)
        except UnreadableFile:
            raise
        except JunctureError as error:
            raise InvalidInput(f"{path}: {error}") from None
    return found


def _of_file(path: Path, reading: Reading) -> list[Measurement]:
    kind = path.suffix.lower()
    if kind not in _KINDS:
        raise UnreadableFile(
            f"`path` must end in {', '.join(_KINDS)}; got {path}. Convert the file."
        )
    if kind == ".json":
        return _of_document(path, _json(path), reading)
    table = _csv(path) if kind == ".csv" else _parquet(path)
    return [_of_table(table, reading)]


def _of_document(path: Path, content: Any, reading: Reading) -> list[Measurement]:  # noqa: ANN401
    listed = content.get("measurements") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not listed:
        raise UnreadableFile(
            f'`path` must hold {{"measurements": [...]}}; got another document in {path}. List '
            "measurements with clique, values and stddev."
        )
    return [_of_entry(place, entry, reading) for place, entry in enumerate(listed, start=1)]


def _of_entry(place: int, entry: Any, reading: Reading) -> Measurement:  # noqa: ANN401
    try:
        clique, values = entry["clique"], np.asarray(entry["values"], dtype=np.float64)
        stddev = entry.get("stddev", reading.stddev)
        scales = None if stddev is None else np.asarray(stddev, dtype=np.float64)
    except (TypeError, KeyError, ValueError, AttributeError):
        raise InvalidInput(
            f"`measurements` must have clique, values and stddev; got entry {place} without, or "
            "with something else than names and numbers in them. Write them out."
        ) from None
    return _checked(clique, values, scales, entry.get("noise", reading.noise), reading.domain)


def _checked(
    clique: Sequence[str],
    values: NDArray[np.float64],
    stddev: NDArray[np.float64] | None,
    noise: str,
    domain: Domain,
) -> Measurement:
    if stddev is None:
        raise InvalidInput(
            "`stddev` must be known; got no column or entry of that name. Add it, or give one "
            "standard deviation for all files."
        )
    if stddev.size > 1:
        stddev = stddev.reshape(-1)
    measurement = Measurement(clique, values, stddev=stddev, noise=noise)
    measurement.operator(domain)
    return measurement


def _of_table(table: Mapping[str, Column], reading: Reading) -> Measurement:
    names = [name for name in table if name not in (_VALUE, _STDDEV)]
    if _VALUE not in table:
        raise InvalidInput(
            f"`table` must have a column {_VALUE!r}; got {', '.join(table) or 'none'}. Name the "
            "column of noisy counts so."
        )
    part = reading.domain.project(names)
    cells = _cells(part, reading.codebook, table)
    values = np.empty(part.size)
    values[cells] = _numbers(table, _VALUE)
    stddev = None if reading.stddev is None else np.asarray(reading.stddev)
    if _STDDEV in table:
        stddev = np.empty(part.size)
        stddev[cells] = _numbers(table, _STDDEV)
    return _checked(names, values, stddev, reading.noise, reading.domain)


def _cells(part: Domain, book: Codebook, table: Mapping[str, Column]) -> NDArray[np.int64]:
    """The place of each row among the cells: every cell once."""
    codes = [_codes(name, book[name], table[name]) for name in part]
    n_rows = len(table[_VALUE])
    flat = (
        np.ravel_multi_index(codes, part.shape).astype(np.int64)
        if codes
        else np.zeros(n_rows, dtype=np.int64)
    )
    distinct = len(np.unique(flat))
    if distinct != part.size or n_rows != part.size:
        raise InvalidInput(
            f"`table` must have one row for each of the {part.size} cells; got {n_rows} rows for "
            f"{distinct} cells. Add the missing cells, also those near zero, and remove "
            "repeated ones."
        )
    return flat


def _codes(name: str, coding: Coding, column: Column) -> NDArray[np.int64]:
    known = {_text(label): code for code, label in enumerate(coding.labels)}
    for value in dict.fromkeys(column):
        if _text(value) not in known:
            known[_text(value)] = _code(name, coding, value)
    return np.array([known[_text(value)] for value in column], dtype=np.int64)


def _code(name: str, coding: Coding, value: object) -> int:
    """The code of a value that is not written as its label: a number inside an interval, say."""
    plain = _plain(value) if isinstance(value, str) else value
    try:
        return int(coding.matching(plain).argmax())
    except InvalidInput as error:
        raise InvalidInput(f"Column {name!r}: {error}") from None


def _text(value: object) -> str:
    """A value as a CSV file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _plain(text: str) -> object:
    """The number or the truth value that a text stands for, else itself."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _numbers(table: Mapping[str, Column], name: str) -> NDArray[np.float64]:
    try:
        return np.array([float(value) for value in table[name]])
    except (TypeError, ValueError):
        raise InvalidInput(
            f"`{name}` must be a number in every row; got something else. Fill it in."
        ) from None


def _csv(path: Path) -> dict[str, Column]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, *rows = list(csv.reader(file)) or [[]]
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    except (ValueError, csv.Error) as error:
        raise _unreadable(path, f"no table in UTF-8 with a line of names ({error})") from None
    if not names:
        raise _unreadable(path, "no line of names")
    uneven = [line for line, row in enumerate(rows, start=2) if len(row) != len(names)]
    if uneven or len(set(names)) != len(names):
        where = f"line {uneven[0]} has another number of values" if uneven else "names twice"
        raise _unreadable(path, where)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _parquet(path: Path) -> dict[str, Column]:
    import pyarrow as pa  # noqa: PLC0415  slow to import
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            found: dict[str, Column] = parquet.read_table(file).to_pydict()
            return found
    except OSError as error:
        raise _unreadable(path, error.strerror or "no Parquet file") from None
    except pa.ArrowException:
        raise _unreadable(path, "no Parquet file") from None


def _json(path: Path) -> Any:  # noqa: ANN401
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"no proper JSON ({error})") from None


def _unreadable(path: Path, reason: str) -> UnreadableFile:
    return UnreadableFile(f"`path` must be a file that can be read; got {path}: {reason}. Mend it.")
