"""What limiting the rows of each person costs: processor seconds and memory, ours alone.

A table of visits is made from a seed, once; each reading is a process of its own. What Spark's own
process takes counts too; its memory is Java's, which is used up to its limit before it is cleared.

    python bench/persons.py                          5 million rows of 1 million persons, in DuckDB
    python bench/persons.py --engine spark           the same in Spark
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from juncture.private.sources.read import read_table
from juncture.tables.columns import Categorical, Integer
from juncture.tables.person import Person
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WARDS = ("surgery", "children", "eyes", "heart", "skin")


def main() -> None:
    """Read the table with and without a limit, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--max-rows", type=int, default=4)
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.engine, options.read[0], int(options.read[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "visits.parquet")
        write_visits(path, options.rows, options.persons)
        print(f"{options.rows:,} rows of {options.persons:,} persons, in {options.engine}")
        for limit in (0, options.max_rows):
            command = [sys.executable, __file__, "--engine", options.engine]
            command += ["--read", str(path), str(limit)]
            found = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
            words = f"at most {limit} rows of each person" if limit else "all rows"
            print(
                f"  {words:32} {found['counted']:>10,} counted   {found['cpu']:6.1f} s of processor"
                f"   {found['seconds']:6.1f} s   {found['megabytes']:6,.0f} MB at most"
            )


def write_visits(path: Path, n_rows: int, n_persons: int) -> None:
    """Visits of persons, some of whom come often; persons are called by texts."""
    with duckdb.connect(config={"memory_limit": "1GB", "threads": "2"}) as connection:
        connection.execute("SELECT setseed(0.5)").fetchall()
        wards = ", ".join(f"'{ward}'" for ward in _WARDS)
        connection.execute(
            f"COPY (SELECT 'patient ' || CAST(floor({n_persons} * pow(random(), 1.3)) AS BIGINT) "
            f"AS patient, CAST(floor(100 * random()) AS INTEGER) AS age, "
            f"list_element([{wards}], 1 + CAST(floor(5 * random()) AS INTEGER)) AS ward, "
            f"CAST(floor(31 * random()) AS INTEGER) AS days, "
            f"CAST(floor(12 * random()) AS INTEGER) AS month FROM range({n_rows})) "
            f"TO '{path}' (FORMAT parquet)"
        ).fetchall()


def read(engine: str, path: str, limit: int) -> dict[str, float]:
    """Read the table and count a few tables of it; what it took."""
    schema = Schema(
        {
            "age": Integer(low=0, high=99),
            "ward": Categorical(values=_WARDS),
            "days": Integer(low=0, high=30),
            "month": Integer(low=0, high=11),
        },
        person=Person("patient", limit) if limit else None,
    )
    table: DataFrame | str = open_in_spark(path) if engine == "spark" else path
    start, before = time.perf_counter(), _cpu_seconds()
    source = read_table(table, schema)
    source.exact_counts([("age", "ward"), ("days", "month")])
    return {
        "counted": source.exact_n_records,
        "cpu": _cpu_seconds() - before,
        "seconds": time.perf_counter() - start,
        "megabytes": _peak_megabytes(),
    }


def open_in_spark(path: str) -> DataFrame:
    """The table in a local session; its memory is Java's, with a limit of 2 GB."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    return session.read.parquet(path)


def _list_processes() -> list[Path]:
    """This process, and those that it started, by their folders in /proc."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parents[int(folder.name)] = int(_read_stat(folder)[1])
    found, waiting = list[int](), [os.getpid()]
    while waiting:
        found.append(waiting.pop())
        waiting += [child for child, parent in parents.items() if parent == found[-1]]
    return [Path("/proc", str(process)) for process in found]


def _read_stat(folder: Path) -> list[str]:
    """What /proc says of a process after its name: state, parent and so on."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _cpu_seconds() -> float:
    ticks = [sum(map(int, _read_stat(each)[11:13])) for each in _list_processes()]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def _peak_megabytes() -> float:
    """The sum of the largest memory that each process had."""
    lines = [
        line
        for each in _list_processes()
        for line in (each / "status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return sum(int(line.split()[1]) for line in lines) / 1024


if __name__ == "__main__":
    main()
