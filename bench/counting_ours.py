"""Counting inside DuckDB: a large file, a full scan of it, and all of its pairs; ours alone."""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from pathlib import Path

import duckdb
import harness

from juncture.private.samples import adult_domain
from juncture.private.sources.duck import DuckDB
from juncture.tables.columns import Categorical, Integer
from juncture.tables.schema import Schema

# Attributes that hold numbers in the raw table; the others hold texts.
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def schema() -> Schema:
    """What the file's columns hold."""
    return Schema(
        {
            name: Integer(low=0, high=size - 1)
            if name in NUMBERS
            else Categorical(values=tuple(label(name, code) for code in range(size)))
            for name, size in adult_domain().items()
        }
    )


def label(name: str, code: int) -> str:
    """The text of a code."""
    return f"{name} {code}"


def main() -> None:
    """Scan the file, count its pairs, and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    listed = ", ".join(f'sum(hash("{name}"))' for name in adult_domain())
    began = time.perf_counter()
    connection.execute(f"SELECT {listed} FROM read_parquet('{options.file}')").fetchall()
    scan = time.perf_counter() - began
    connection.close()
    began = time.perf_counter()
    source = DuckDB(options.file, schema())
    encoded = time.perf_counter() - began
    tables = source.exact_counts(list(combinations(adult_domain(), 2)))
    seconds = time.perf_counter() - began
    report = {
        "scan": scan, "encoded": encoded, "seconds": seconds, "tables": len(tables),
        "records": tables[0].values.sum(), "peak_bytes": harness.peak_bytes(),
    }  # fmt: skip
    print(json.dumps(report))


if __name__ == "__main__":
    main()
