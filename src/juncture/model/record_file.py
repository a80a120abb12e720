"""Synthetic records written to a Parquet file, a chunk at a time, in constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from juncture._util.atomic_file import atomic_write
from juncture._util.watch import Watch
from juncture.model.sampling import Codes, Sampler
from juncture.tables.codebook import Codebook, Value


def write_parquet(
    path: Path,
    sampler: Sampler,
    codebook: Codebook | None,
    n: int,
    key: int,
    chunk_size: int,
    watch: Watch,
) -> None:
    """Draw records and write them, in one file or not at all."""
    book = codebook or Codebook.plain(sampler.domain)
    columns = {name: _make_column(book[name].labels) for name in sampler.domain}
    schema = pa.schema([(name, column.kind) for name, column in columns.items()])
    with atomic_write(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for first in range(0, n, chunk_size):
            codes = sampler.sample(min(chunk_size, n - first), key, first=first)
            pairs = zip(columns.values(), codes, strict=True)
            arrays = [column.array(part) for column, part in pairs]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            watch("writing records", first + codes.shape[1], n)


class _Column(NamedTuple):
    """How an attribute is written: its type, and what its codes stand for if not themselves."""

    kind: pa.DataType
    meanings: pa.Array | None = None
    indices: Codes | None = None
    """For each code its index among the meanings, below zero for a missing value."""

    def array(self, codes: Codes) -> pa.Array:
        if self.indices is None:
            return pa.array(codes).cast(self.kind)
        indices = self.indices[codes]
        return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), self.meanings)


def _make_column(labels: Sequence[Value]) -> _Column:
    if all(type(label) is int for label in labels) and labels == tuple(range(len(labels))):
        return _Column(pa.from_numpy_dtype(np.min_scalar_type(len(labels) - 1)))
    present = [label for label in labels if label is not None]
    alike = len({type(label) for label in present}) <= 1
    meanings = pa.array(present if alike else [str(label) for label in present])
    indices = np.full(len(labels), -1, dtype=np.int32)
    indices[[code for code, label in enumerate(labels) if label is not None]] = range(len(present))
    return _Column(pa.dictionary(pa.int32(), meanings.type), meanings, indices)
