"""What a new user waits for, in processor seconds: importing, compiling, drafting a schema.

    python bench/first_minute.py

Each is a process of its own, as a user would start it. On free cores, compiling takes about its
processor seconds divided by the cores, up to two; the others as long as they say, or less.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

_CSV_BYTES = 100_000_000
_ROWS = 100_000
_COMPILE = "from juncture.engine.compiled.loader import load_compiled; load_compiled()"


def main() -> None:
    """Print a line for each."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        report("start Python", [sys.executable, "-c", "pass"], cache)
        report("import juncture", [sys.executable, "-c", "import juncture"], cache)
        report("compile the routines, once", [sys.executable, "-c", _COMPILE], cache)
        table = Path(folder) / "people.csv"
        write_table(table)
        draft = [sys.executable, "-m", "juncture", "schema", "draft", str(table)]
        size = f"{table.stat().st_size / 1e6:.0f} MB"
        report(f"schema draft of {size}", [*draft, "--out", f"{folder}/d.toml"], cache)


def report(what: str, command: list[str], cache: Path) -> None:
    """Run a command, and print the seconds of all processors that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "JUNCTURE_CACHE": str(cache)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"{what:<32}{spent:8.2f} s of processors", flush=True)


def write_table(path: Path) -> None:
    """A table of ten columns: numbers, categories, dates as texts; rows repeated to the size."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, _ROWS)
    columns: dict[str, object] = {
        f"amount_{i}": rng.gamma(2, 900, _ROWS).round(2) for i in range(4)
    }
    columns |= {f"count_{i}": rng.integers(0, 90, _ROWS) for i in range(3)}
    columns |= {f"kind_{i}": rng.choice(["north", "south", "east"], _ROWS) for i in range(2)}
    part = pa.table({**columns, "day": days.astype(str)})
    with path.open("wb") as file:
        pa_csv.write_csv(part, file)
        body = pa_csv.WriteOptions(include_header=False)
        while file.tell() < _CSV_BYTES:
            pa_csv.write_csv(part, file, body)


if __name__ == "__main__":
    main()
