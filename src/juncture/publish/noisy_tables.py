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
from juncture.tables.foreign import refuse_foreign
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise

_VALUE, _STDDEV = "value", "stddev"
_KINDS = (".csv", ".parquet", ".json")
Column = Sequence[Any]


@dataclass(frozen=True)
class ReadOptions:
    """What the files refer to, and what holds where a file does not state it."""

    domain: Domain
    codebook: Codebook
    stddev: float | None = None
    """The standard deviation of the noise, where a file does not state it."""
    noise: str | Noise = Noise.GAUSSIAN
    """The kind of noise, where a file does not state it."""


def read_domain(path: str | Path) -> tuple[Domain, Codebook]:
    """A domain in JSON: for each attribute the number of its values, or a list of them."""
    content = _read_json(Path(path))
    if not isinstance(content, dict) or not content:
        raise UnreadableFile(
            f'`path` must contain a JSON object such as {{"age": 85, "sex": ["f", "m"]}}; got '
            f"{type(content).__name__} in {path}. Give each attribute a size or its values."
        )
    with refuse_foreign("path", path, "Give each attribute a size, or a list of plain values."):
        sizes = {n: len(v) if isinstance(v, list) else v for n, v in content.items()}
        listed = {n: Coding(tuple(v)) for n, v in content.items() if isinstance(v, list)}
        domain = Domain(sizes)
        return domain, Codebook(listed).bind(domain)


def read_measurements(paths: Iterable[str | Path], options: ReadOptions) -> list[Measurement]:
    """The measurements of all files, in order."""
    measurements = []
    for path in map(Path, paths):
        try:
            with refuse_foreign("path", path, "Each marginal needs names, numbers and a stddev."):
                measurements += _read_file(path, options)
        except UnreadableFile:
            raise
        except JunctureError as error:
            raise InvalidInput(f"{path}: {error}") from None
    return measurements


def _read_file(path: Path, options: ReadOptions) -> list[Measurement]:
    kind = path.suffix.lower()
    if kind not in _KINDS:
        raise UnreadableFile(f"`path` must end in {', '.join(_KINDS)}; got {path}.")
    if kind == ".json":
        return _parse_document(path, _read_json(path), options)
    table = _read_csv(path) if kind == ".csv" else _read_parquet(path)
    return [_parse_table(table, options)]


def _parse_document(path: Path, content: Any, options: ReadOptions) -> list[Measurement]:  # noqa: ANN401
    listed = content.get("measurements") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not listed:
        raise UnreadableFile(
            f'`path` must contain {{"measurements": [...]}}; got another document in {path}. Each '
            "measurement needs clique, values and stddev."
        )
    return [_parse_entry(number, entry, options) for number, entry in enumerate(listed, start=1)]


def _parse_entry(number: int, entry: Any, options: ReadOptions) -> Measurement:  # noqa: ANN401
    try:
        clique, values = entry["clique"], np.asarray(entry["values"], dtype=np.float64)
        stddev = entry.get("stddev", options.stddev)
        scales = None if stddev is None else np.asarray(stddev, dtype=np.float64)
    except (TypeError, KeyError, ValueError, AttributeError):
        raise InvalidInput(
            f"`measurements` must have clique, values and stddev, with names and numbers in them; "
            f"got something else in entry {number}."
        ) from None
    return _make_measurement(
        clique, values, scales, entry.get("noise", options.noise), options.domain
    )


def _make_measurement(
    clique: Sequence[str],
    values: NDArray[np.float64],
    stddev: NDArray[np.float64] | None,
    noise: str | Noise,
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


def _parse_table(table: Mapping[str, Column], options: ReadOptions) -> Measurement:
    names = [name for name in table if name not in (_VALUE, _STDDEV)]
    if _VALUE not in table:
        raise InvalidInput(
            f"`table` must have a column {_VALUE!r} with the noisy counts; got "
            f"{', '.join(table) or 'none'}."
        )
    subdomain = options.domain.project(names)
    cells = _cell_indices(subdomain, options.codebook, table)
    values = np.empty(subdomain.size)
    values[cells] = _parse_numbers(table, _VALUE)
    stddev = None if options.stddev is None else np.asarray(options.stddev)
    if _STDDEV in table:
        stddev = np.empty(subdomain.size)
        stddev[cells] = _parse_numbers(table, _STDDEV)
    return _make_measurement(names, values, stddev, options.noise, options.domain)


def _cell_indices(
    subdomain: Domain, book: Codebook, table: Mapping[str, Column]
) -> NDArray[np.int64]:
    """The index of each row's cell; every cell must be there once."""
    codes = [_encode_column(name, book[name], table[name]) for name in subdomain]
    n_rows = len(table[_VALUE])
    flat = (
        np.ravel_multi_index(codes, subdomain.shape).astype(np.int64)
        if codes
        else np.zeros(n_rows, dtype=np.int64)
    )
    distinct = len(np.unique(flat))
    if distinct != subdomain.size or n_rows != subdomain.size:
        raise InvalidInput(
            f"`table` must have one row for each of the {subdomain.size} cells; got {n_rows} rows "
            f"for {distinct} cells. Add the missing cells, even those near zero, and remove "
            "repeated ones."
        )
    return flat


def _encode_column(name: str, coding: Coding, column: Column) -> NDArray[np.int64]:
    known = {_to_text(label): code for code, label in enumerate(coding.labels)}
    for value in dict.fromkeys(column):
        if _to_text(value) not in known:
            known[_to_text(value)] = _encode_value(name, coding, value)
    return np.array([known[_to_text(value)] for value in column], dtype=np.int64)


def _encode_value(name: str, coding: Coding, value: object) -> int:
    """The code of a value that is not written as its label: a number inside an interval, say."""
    plain = _parse_plain(value) if isinstance(value, str) else value
    try:
        return int(coding.match(plain).argmax())
    except InvalidInput as error:
        raise InvalidInput(f"Column {name!r}: {error}") from None


def _to_text(value: object) -> str:
    """A value as a CSV file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _parse_plain(text: str) -> object:
    """The number or truth value that a text stands for, else the text itself."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _parse_numbers(table: Mapping[str, Column], name: str) -> NDArray[np.float64]:
    try:
        return np.array([float(value) for value in table[name]])
    except (TypeError, ValueError):
        raise InvalidInput(f"`{name}` must be a number in every row; got something else.") from None


def _read_csv(path: Path) -> dict[str, Column]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, *rows = list(csv.reader(file)) or [[]]
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    except (ValueError, csv.Error) as error:
        raise _unreadable(path, f"not a UTF-8 table with a line of names ({error})") from None
    if not names:
        raise _unreadable(path, "no line of names")
    uneven = [line for line, row in enumerate(rows, start=2) if len(row) != len(names)]
    if uneven or len(set(names)) != len(names):
        where = (
            f"line {uneven[0]} has another number of values" if uneven else "a name occurs twice"
        )
        raise _unreadable(path, where)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _read_parquet(path: Path) -> dict[str, Column]:
    import pyarrow as pa  # noqa: PLC0415  slow to import
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            columns: dict[str, Column] = parquet.read_table(file).to_pydict()
            return columns
    except OSError as error:
        raise _unreadable(path, error.strerror or "not a Parquet file") from None
    except pa.ArrowException:
        raise _unreadable(path, "not a Parquet file") from None


def _read_json(path: Path) -> Any:  # noqa: ANN401
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"not valid JSON ({error})") from None


def _unreadable(path: Path, reason: str) -> UnreadableFile:
    return UnreadableFile(f"`path` must be a file that can be read; got {path}: {reason}.")
