"""Synthetic records as a stream of bytes: CSV or Parquet, a chunk at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from juncture.model.sampling import Codes, draw_key
from juncture.publish.explorer.answers import Answers
from juncture.tables.codebook import Value

_CHUNK = 20_000
FORMATS: Mapping[str, Callable[[Any, pa.Schema], Any]] = {
    "csv": csv.CSVWriter,
    "parquet": parquet.ParquetWriter,
}


def stream(answers: Answers, n: int, file_format: str, seed: int | None) -> Iterator[bytes]:
    """Independent records in the users' words; numbers and dates are drawn inside their bins."""
    key = draw_key(seed)
    random, sink = np.random.default_rng(key), _Sink()
    columns = _arrow_types(answers)
    writer = FORMATS[file_format](pa.PythonFile(sink, mode="w"), pa.schema(columns))
    for codes in answers.sample_chunks(n, key, _CHUNK):
        arrays = _arrays(answers, columns, codes, random)
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(columns)))
        yield sink.take()
    writer.close()
    yield sink.take()


def _arrow_types(answers: Answers) -> list[tuple[str, pa.DataType]]:
    schema = answers.release.schema
    if schema is not None:
        return [(name, column.arrow_type) for name, column in schema.columns.items()]
    return [(name, _label_type(answers.codebook[name].labels)) for name in answers.domain]


def _label_type(labels: Sequence[Value]) -> pa.DataType:
    """One type for all labels: texts where they are of several kinds."""
    kinds = {type(label) for label in labels if label is not None}
    known = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return known.get(kinds.pop(), pa.string()) if len(kinds) == 1 else pa.string()


def _arrays(
    answers: Answers,
    columns: Sequence[tuple[str, pa.DataType]],
    codes: Codes,
    random: np.random.Generator,
) -> list[pa.Array]:
    records = dict(zip(answers.domain, codes, strict=True))
    schema = answers.release.schema
    if schema is not None:
        values = schema.decode(records, random)
        return [pa.array(values[name], kind) for name, kind in columns]
    return [
        _decode_labels(answers.codebook[name].labels, kind, records[name]) for name, kind in columns
    ]


def _decode_labels(labels: Sequence[Value], kind: pa.DataType, codes: Any) -> pa.Array:  # noqa: ANN401
    texts = pa.types.is_string(kind)
    shown = [None if label is None else str(label) if texts else label for label in labels]
    return pa.array(shown, kind).take(pa.array(codes))


class _Sink(io.RawIOBase):
    """A file that is only written to, and emptied as it goes."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401
        chunk = bytes(data)
        self._chunks.append(chunk)
        self._length += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self._length

    def take(self) -> bytes:
        """What was written since the last time."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)
