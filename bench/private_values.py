"""What finding private values costs where there are very many: processor seconds and memory.

    python bench/private_values.py                   10 million distinct values in 20 million rows
    python bench/private_values.py --values 1000000 --rows 2000000

A column of texts is made from a seed, once: half the rows have one of a hundred frequent values,
the others one of very many. The release is a process of its own, and its memory is all of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import juncture as jn
from juncture.tables.columns import OpenCategorical

BUDGET = jn.Budget(epsilon=1.0, delta=1e-9)


def main() -> None:
    """Make the table, release it, and print a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--values", type=int, default=10_000_000)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(release(options.read)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cities.parquet")
        n_distinct = write_cities(path, options.rows, options.values)
        command = [sys.executable, __file__, "--read", str(path)]
        found = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    print(
        f"{options.rows:,} rows, {n_distinct:,} distinct values: {found['found']} found   "
        f"{found['cpu']:.1f} s of processor   {found['seconds']:.1f} s   "
        f"{found['megabytes']:,.0f} MB at most"
    )


def write_cities(path: Path, n_rows: int, n_values: int) -> int:
    """Every rare value once or more, and frequent ones beside them; how many there are."""
    with duckdb.connect(config={"memory_limit": "2GB", "threads": "2"}) as connection:
        connection.execute("SELECT setseed(0.5)").fetchall()
        connection.execute(
            f"COPY (SELECT CASE WHEN i < {n_values} THEN 'city number ' || i ELSE 'large city ' || "
            f"CAST(floor(100 * pow(random(), 2)) AS INTEGER) END AS city, "
            f"CAST(floor(5 * random()) AS INTEGER) AS size FROM range({n_rows}) t(i)) "
            f"TO '{path}' (FORMAT parquet)"
        ).fetchall()
    return min(n_values, n_rows) + (100 if n_rows > n_values else 0)


def release(path: str) -> dict[str, float]:
    """Release the table under a schema with private values; what it took."""
    schema = jn.Schema(
        {"city": OpenCategorical(max_values=1_000), "size": jn.Integer(low=0, high=4)}
    )
    start, before = time.perf_counter(), _cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        made = jn.release(path, schema, BUDGET, ledger=Path(folder, "cities.ledger"))
    return {
        "found": made.found[0].n_found,
        "cpu": _cpu_seconds() - before,
        "seconds": time.perf_counter() - start,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
