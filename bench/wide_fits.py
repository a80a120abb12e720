"""Fit all pairs of Adult without a junction tree: records beside the peer's approximate oracle.

Runs cells of the experiments `any_width` and `any_width_times`, each in a process of its own, and
prints their figures; keeps nothing. Adult ships with the package; other tables come from a folder
that you name (`adult-aim`, `titanic-aim`, `loans`, `stroke`). Errors are mean total variation
distances to the truth. Seconds are those of all processors together.

    python bench/wide_fits.py --peer-python PYTHON
    python bench/wide_fits.py --data FOLDER --table titanic-aim --seeds 2
    python bench/wide_fits.py --scaling       random tables: records, pairs and attributes halved
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RUN_CELL = Path(__file__).parents[1] / "experiments" / "run_cell.py"
RECORDS = (
    "records, stopped at the noise",
    "20,000 records, stopped at the noise",
    "records, to convergence",
)
PSEUDO = ("relaxed, our own", "mbi 2.0.0, approximate, step 1")
# Attributes, pairs and records: the first, then one of them halved.
SHAPES = (
    (100, 1000, 1_000_000),
    (50, 1000, 1_000_000),
    (100, 500, 1_000_000),
    (100, 1000, 500_000),
)
Report = dict[str, Any]


def main() -> None:
    """Print lines as they are done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer-python", help="of an environment with the peer")
    parser.add_argument("--data", type=Path, help="the folder of tables that do not ship")
    parser.add_argument("--table", default="adult")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--scaling", action="store_true", help="random tables of several shapes")
    options = parser.parse_args()
    if options.scaling:
        print_scaling(options)
        return
    print_pairs(options)
    if options.table == "adult":
        print_beside_exact(options)


def print_pairs(options: argparse.Namespace) -> None:
    """All pairs of a table, by every method."""
    print(f"\n{'all pairs, no tree: ' + options.table:<50}{'triples':>11}{'pairs':>11}", end="")
    print(f"{'seconds':>11}{'memory':>11}")
    methods = (*RECORDS, *(PSEUDO if options.peer_python else PSEUDO[:1]))
    for seed in range(options.seeds):
        for method in methods:
            cell = {"part": "pairs", "data": options.table, "method": method, "seed": seed}
            for row in run_cell("any_width", cell, options):
                steps = f", {row['step']} steps" if "step" in row else ""
                print_line(f"{method}{steps}", row, ("triple_error", "pair_error"))


def print_beside_exact(options: argparse.Namespace) -> None:
    """Adult's triples, where the exact oracle runs too."""
    print(f"\n{'Adult, beside exact fits':<50}{'triples':>11}{'distance':>11}", end="")
    print(f"{'seconds':>11}{'memory':>11}   (distance to the exact marginals, beside the noise)")
    for problem in ("nine triples", "fifteen triples"):
        cell = {"part": "exact", "data": "adult", "problem": problem, "seed": 0}
        for row in run_cell("any_width", cell, options):
            print_line(f"{problem}: {row['method']}", row, ("triple_error", "distance"))


def print_line(label: str, row: Report, columns: tuple[str, str]) -> None:
    """A row's figures, or why it has none."""
    if "reason" in row:
        print(f"{label:<50} {row['reason']}", flush=True)
        return
    figures = "".join(f"{row[column]:>11.4f}" for column in columns)
    print(f"{label:<50}{figures}{row['busy']:>9.1f} s{row['peak_mb']:>8,} MB", flush=True)


def print_scaling(options: argparse.Namespace) -> None:
    """Random pairs of random tables: how time and memory grow."""
    for attributes, pairs, records in SHAPES:
        for threads in (1, 2):
            cell = {
                "part": "shapes", "attributes": attributes, "pairs": pairs, "records": records,
                "threads": threads,
            }  # fmt: skip
            (row,) = run_cell("any_width_times", cell, options)
            each = 1e9 * row["busy"] / row["calls"] / pairs / records
            print(
                f"{attributes} attributes, {pairs} pairs, {records:,} records, {threads} threads: "
                f"{row['wall']:.1f} s ({row['busy']:.1f} s of processors), {row['calls']} passes, "
                f"{each:.2f} ns for each pass, pair and record, {row['peak_mb']:,} MB, "
                f"{row['status']}",
                flush=True,
            )


def run_cell(experiment: str, cell: Report, options: argparse.Namespace) -> list[Report]:
    """The rows of one cell."""
    request = {
        "experiment": experiment, "cell": cell, "quick": False, "processor": None,
        "folder": str(options.data) if options.data else None,
        "peer_python": options.peer_python,
    }  # fmt: skip
    command = [sys.executable, str(RUN_CELL), json.dumps(request)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[Report] = json.loads(done.stdout.splitlines()[-1])
    return rows


if __name__ == "__main__":
    main()
