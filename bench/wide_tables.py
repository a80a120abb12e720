"""How long wide tables take from CSV to a release, and in how much memory: ours alone.

The tables are made from a seed, with a few kinds of people so that columns depend on each other.
Each command runs in a process of its own, as a user would run it.

    python bench/wide_tables.py                       every shape, planned and released
    python bench/wide_tables.py --shape wide --mechanism all          each mechanism in turn
    python bench/wide_tables.py --mechanism privbayes --shape census
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from juncture.mechanisms.registry import offers
from juncture.tables.columns import Categorical, Column, Integer
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import schema_toml

SEED = 20
_N_KINDS = 12
_FEW_VALUES = 10


@dataclass(frozen=True)
class Shape:
    """How large a table is."""

    n_columns: int
    n_records: int
    max_values: int
    """The most values of a column; the fewest are two."""


SHAPES = {
    "insurance": Shape(86, 5_822, 10),
    "census": Shape(41, 199_523, 50),
    "wide": Shape(100, 200_000, 20),
    "million": Shape(100, 1_000_000, 20),
}
ALL = "all"


def main() -> None:
    """Plan and release every shape, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    parser.add_argument(
        "--mechanism", action="append", help="by default, what juncture chooses; or all, in turn"
    )
    parser.add_argument("--only", choices=["plan", "release"])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-6", help="0 for a pure epsilon")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of each command")
    parser.add_argument("--write", type=Path, help="write the tables to this folder, and no more")
    options = parser.parse_args()
    names = options.shape or list(SHAPES)
    if options.write:
        for name in names:
            write_table(options.write, SHAPES[name])
        return
    head = f"{'table':<30} {'command':<8} {'asked for':<11}"
    print(f"{head} {'seconds':>8} {'processor':>10} {'memory':>12}  mechanism")
    for name in names:
        shape = SHAPES[name]
        with tempfile.TemporaryDirectory() as folder:
            # In a process of its own: the memory of this one would count as that of its children.
            write = [sys.executable, __file__, "--write", folder, "--shape", name]
            subprocess.run(write, check=True)
            data, schema = Path(folder, "table.csv"), Path(folder, "table.toml")
            for mechanism in _list_mechanisms(options.mechanism):
                for command in [options.only] if options.only else ["plan", "release"]:
                    arguments = _arguments(command, data, schema, mechanism, options)
                    arguments += ["--records", str(shape.n_records)] if command == "plan" else []
                    spent = run_command(arguments, options.limit)
                    what = f"{name} {shape.n_columns} x {shape.n_records:,}"
                    print(f"{what:<30} {command:<8} {mechanism or '':<11} {spent}", flush=True)


def _list_mechanisms(named: list[str] | None) -> list[str | None]:
    if named == [ALL]:
        return list(offers())
    return [*named] if named else [None]


def write_table(folder: Path, shape: Shape) -> None:
    """Write a CSV file of that shape and its schema."""
    rng = np.random.default_rng(SEED)
    kinds = rng.integers(0, _N_KINDS, shape.n_records)
    columns, raw = dict[str, Column](), dict[str, pa.Array]()
    for index in range(shape.n_columns):
        # Most columns have few values, as in real tables.
        n_values = int(2 + (shape.max_values - 1) * rng.random() ** 2)
        chances = rng.dirichlet(np.full(n_values, 0.5), size=_N_KINDS).cumsum(axis=1)
        draws = rng.random(shape.n_records)[:, None] * chances[kinds, -1:]
        codes = (draws >= chances[kinds]).sum(axis=1)
        name = f"column {index + 1}"
        if n_values <= _FEW_VALUES:
            values = [f"value {value + 1}" for value in range(n_values)]
            columns[name] = Categorical(values=tuple(values))
            raw[name] = pa.array(values).take(pa.array(codes))
        else:
            columns[name] = Integer(low=0, high=n_values - 1)
            raw[name] = pa.array(codes)
    pa_csv.write_csv(pa.table(raw), folder / "table.csv")
    (folder / "table.toml").write_text(schema_toml(Schema(columns)), encoding="utf-8")


def _arguments(
    command: str, data: Path, schema: Path, mechanism: str | None, options: argparse.Namespace
) -> list[str]:
    arguments = [command, "--schema", str(schema), "--epsilon", options.epsilon, "--json"]
    if float(options.delta) > 0.0:
        arguments += ["--delta", options.delta]
    if mechanism:
        arguments += ["--mechanism", mechanism]
    if mechanism in ("privbayes", "dualquery"):
        arguments += ["--neighbours", "replace"]
    if command == "release":
        made, ledger = (data.with_name(f"{mechanism}{end}") for end in (".jct", ".ledger"))
        return [*arguments, str(data), "--out", str(made), "--ledger", str(ledger)]
    return arguments


class Spent(NamedTuple):
    """What one command took."""

    seconds: float
    processor: float
    """The seconds of all its threads together: on a busy machine, what to compare."""
    peak: int
    """The largest resident memory, in bytes."""
    outcome: str
    """The mechanism that it used, or why it ended."""

    def __str__(self) -> str:
        memory = f"{self.peak / 2**20:8.0f} MiB"
        return f"{self.seconds:8.1f} {self.processor:8.1f} s {memory}  {self.outcome}"


def run_command(arguments: list[str], limit: float) -> Spent:
    """What a command takes in a process of its own; one that takes too long is stopped."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "juncture", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    watchdog = threading.Timer(limit, process.kill)
    watchdog.start()
    assert process.stdout is not None
    assert process.stderr is not None
    # Errors fit into the pipe: nothing is drawn where nobody looks.
    output, words = process.stdout.read(), process.stderr.read().split("\n")
    _, status, used = os.wait4(process.pid, 0)
    watchdog.cancel()
    seconds = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024
    processor = used.ru_utime + used.ru_stime
    if status == 0:
        outcome = json.loads(output)["mechanism"]
    else:
        said = " ".join(line.strip() for line in words if line.strip())
        outcome = f"stopped: {said[-120:] or f'after {limit:g} s'}"
    return Spent(seconds, processor, used.ru_maxrss * unit, outcome)


if __name__ == "__main__":
    main()
