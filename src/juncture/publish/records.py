"""Synthetic records as a file of CSV or Parquet, a chunk at a time.

The records are those that `Release.synthesize` or `Release.sample` gives for the same seed,
decoded: neither the format nor the size of the chunks changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv, parquet

from juncture._util.atomic_file import atomic_write
from juncture._util.randomness import Random
from juncture._util.watch import Watch, ignore_progress
from juncture.errors import InvalidInput
from juncture.model.sampling import check_count, draw_key
from juncture.tables.arrow import RecordDecoder
from juncture.tables.records import Codes

if TYPE_CHECKING:
    from juncture.publish.release import Release

# How many records of a file are made at a time; each chunk is a row group of a Parquet file.
_CHUNK = 250_000


class Method(StrEnum):
    """How synthetic records are made from a model."""

    SYNTHESIZE = "synthesize"
    """Counts are close to the model's; all codes are in memory at once."""
    SAMPLE = "sample"
    """Records are independent draws, in constant memory; counts differ by chance."""


class FileFormat(StrEnum):
    """The file formats for records."""

    CSV = "csv"
    PARQUET = "parquet"

    @classmethod
    def of(cls, path: Path) -> FileFormat:
        """The format that a file's name ends in."""
        suffix = path.suffix.lower().removeprefix(".")
        if suffix not in list(cls):
            known = " or ".join(f".{each}" for each in cls)
            raise InvalidInput(f"`path` must end in {known}; got {path}.")
        return cls(suffix)


def write_records(
    release: Release,
    path: str | Path,
    n: int | None = None,
    *,
    rng: Random = None,
    method: str = Method.SYNTHESIZE,
    watch: Watch = ignore_progress,
    chunk_size: int = _CHUNK,
) -> int:
    """Write synthetic records to a .csv or .parquet file, and return how many.

    - `path`: the file; it appears once it is complete, and not at all if something goes wrong.
    - `n`: how many; by default the model's total, rounded.
    - `rng`: a seed or a generator; the same seed gives the same records.
    - `method`: "synthesize" for records whose counts are close to the model's: see
      `Model.synthesize`. "sample" for independent draws, as a
      simulation needs them; any number of these takes the same memory.
    - `watch`: called with what is done, the records written so far, and all.

    With a schema, values are those that the table itself could have: numbers and dates are drawn
    inside their bins. Without one, they are the codebook's names, or codes.
    """
    target, chosen = Path(path), _parse_method(method)
    file_format = FileFormat.of(target)
    count = check_count(round(release.model.total) if n is None else n)
    if check_count(chunk_size) == 0:
        raise InvalidInput("`chunk_size` must be at least 1; got 0. It is a number of records.")
    key = draw_key(rng)
    decoder = _make_decoder(release, key, file_format)
    chunks = _draw_chunks(release, count, key, chosen, chunk_size)
    with atomic_write(target) as file, _open_writer(file_format, file, decoder.schema) as writer:
        done = 0
        watch("writing records", done, count)
        for codes in chunks:
            writer.write_table(_decode(release, decoder, codes))
            done += codes.shape[1]
            watch("writing records", done, count)
    return count


def _parse_method(method: str) -> Method:
    try:
        return Method(method)
    except ValueError:
        raise InvalidInput(
            f"`method` must be one of {', '.join(Method)}; got {method!r}."
        ) from None


def _make_decoder(release: Release, key: int, file_format: FileFormat) -> RecordDecoder:
    return RecordDecoder(
        release.model.domain,
        release.model.codebook,
        release.schema,
        seed=key,
        keep_dictionaries=file_format is FileFormat.PARQUET,
    )


def _open_writer(file_format: FileFormat, file: Any, schema: pa.Schema) -> Any:  # noqa: ANN401
    if file_format is FileFormat.CSV:
        return csv.CSVWriter(file, schema)
    # Without Arrow's own schema, a reader sees plain texts, not the dictionaries that they are in.
    return parquet.ParquetWriter(file, schema, store_schema=False)


def _draw_chunks(
    release: Release, count: int, key: int, method: Method, chunk_size: int
) -> Iterator[Codes]:
    """The codes of some records at a time, a row for each attribute."""
    sampler, starts = release.model.sampler, range(0, count, chunk_size)
    if method is Method.SYNTHESIZE:  # rounding considers all records together
        codes = sampler.synthesize(count, key)
        return (codes[:, first : first + chunk_size] for first in starts)
    draw = partial(sampler.sample, key=key)
    return (draw(min(chunk_size, count - first), first=first) for first in starts)


def _decode(release: Release, decoder: RecordDecoder, codes: Codes) -> pa.Table:
    return decoder.decode(dict(zip(release.model.domain, codes, strict=True)))
