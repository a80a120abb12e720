"""Synthetic records in the user's own values, to CSV or Parquet, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from juncture._util.atomic_file import atomic_write
from juncture._util.randomness import Random
from juncture._util.watch import Watch, ignore_progress
from juncture.errors import InvalidInput
from juncture.model.sampling import Records, check_count
from juncture.publish.release import Release
from juncture.tables.codebook import Codebook, Value

_WRITERS = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter}
_CHUNK = 100_000


def write_records(
    release: Release,
    path: str | Path,
    n: int | None = None,
    *,
    rng: Random = None,
    matched: bool = False,
    watch: Watch = ignore_progress,
) -> int:
    """Write synthetic records, as many as the model's total unless said; gives their number.

    With a schema, values are what the table itself would hold: numbers and dates inside their bins.
    Without one, they are what the codebook calls them, or codes. Independent draws; `matched`
    records instead have counts that match the model's up to rounding.
    """
    target = Path(path)
    refuse_unknown_format(target)
    count = check_count(round(release.model.total) if n is None else n)
    random = np.random.default_rng(rng)
    kinds = pa.schema(_arrow_types(release))
    writer = _WRITERS[target.suffix.lower()]
    with atomic_write(target) as file, writer(file, kinds) as out:
        done = 0
        watch("writing records", 0, count)
        for codes in _chunks(release, count, random, matched):
            out.write_table(_to_table(release, codes, kinds, random))
            done += len(next(iter(codes.values()), ()))
            watch("writing records", done, count)
    return count


def refuse_unknown_format(path: Path) -> None:
    """A file must be of a kind that can be written."""
    if path.suffix.lower() not in _WRITERS:
        raise InvalidInput(
            f"`path` must end in {' or '.join(_WRITERS)}; got {path}. Choose one of the two."
        )


def _chunks(
    release: Release, count: int, random: np.random.Generator, matched: bool
) -> Iterator[Records]:
    if matched:  # rounding looks at all records together
        yield release.model.synthesize(count, rng=random)
        return
    for first in range(0, count, _CHUNK):
        yield release.model.sample(min(_CHUNK, count - first), rng=random)


def _to_table(
    release: Release, codes: Records, kinds: pa.Schema, random: np.random.Generator
) -> pa.Table:
    columns: dict[str, Any] = (
        _decode_labels(release, codes)
        if release.schema is None
        else dict(release.schema.decode(codes, random))
    )
    arrays = [pa.array(columns[field.name], type=field.type) for field in kinds]
    return pa.Table.from_arrays(arrays, schema=kinds)


def _decode_labels(release: Release, codes: Records) -> dict[str, list[Any]]:
    book = release.model.codebook or Codebook.plain(release.model.domain)
    decoded = {}
    for name, column in codes.items():
        labels = book[name].labels
        if _label_type(labels) == pa.string():
            labels = tuple(None if label is None else str(label) for label in labels)
        decoded[name] = [labels[code] for code in column]
    return decoded


def _arrow_types(release: Release) -> list[tuple[str, pa.DataType]]:
    if release.schema is not None:
        return [(name, column.arrow_type) for name, column in release.schema.columns.items()]
    book = release.model.codebook or Codebook.plain(release.model.domain)
    return [(name, _label_type(book[name].labels)) for name in release.model.domain]


def _label_type(labels: Sequence[Value]) -> pa.DataType:
    """The type of what codes are called: text where they differ in kind."""
    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    types = {type(label) for label in labels} - {type(None)}
    return kinds.get(types.pop(), pa.string()) if len(types) == 1 else pa.string()
