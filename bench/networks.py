"""Ask Bayesian networks of Juncture and of pyAgrum, and print times, memory and differences.

The networks are the examples that come with pgmpy, read from its files; neither library reads
them. Each side answers in a process of its own, the sides alternating, the median of `--repeats`
rounds. `network_tasks.py` says what is asked and timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import bif
import numpy as np

HERE = Path(__file__).parent
Report = dict[str, Any]

# Networks of which every table fits into a processor's cache: here, planning is what a first
# answer costs.
SMALL = ("asia", "sachs", "child", "insurance", "alarm", "hailfinder", "hepar2", "win95pts")
LARGE = ("water", "andes", "pigs", "pathfinder")
MAX_ERROR = 1e-12
LIMIT_SECONDS = 600
FIND_EXAMPLES = """
import importlib.util, pathlib
spec = importlib.util.find_spec("pgmpy")
print(pathlib.Path(spec.origin).parent / "utils" / "example_models")
"""


class Target(NamedTuple):
    """What is taken from the reports, its unit, and how large a ratio ours / peer may be."""

    quantity: str
    label: str
    max_ratio: float
    small_only: bool = False


TARGETS = (
    Target("first", "first answer", 2.0, small_only=True),
    Target("pair", "one pair", 1.0),
    Target("evidence", "one evidence", 1.0),
    Target("peak_bytes", "memory", 3.0),
)


class Runner:
    """Runs both sides on networks, each time in a fresh process; remembers the reports."""

    def __init__(self, folder: Path, peer_python: str) -> None:
        self.folder = folder
        self.commands = {
            "ours": [sys.executable, str(HERE / "network_ours.py")],
            "peer": [peer_python, str(HERE / "network_peer.py")],
        }
        self.reports: dict[tuple[str, str], list[Report]] = {}
        done = subprocess.run(
            [peer_python, "-c", FIND_EXAMPLES], check=True, capture_output=True, text=True
        )
        self.examples = Path(done.stdout.strip())

    def convert(self, name: str) -> None:
        """Write a network where both sides find it."""
        bif.read_bif(self.examples / f"{name}.bif.gz").save(self.folder / f"{name}.npz")

    def run(self, side: str, name: str) -> None:
        """One more report of one side."""
        print(f"{name}, {side} ...", file=sys.stderr)
        answers = self.folder / f"{name}-{side}.npz"
        command = [*self.commands[side], str(self.folder / f"{name}.npz"), str(answers)]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS
        )
        report: Report = json.loads(done.stdout.strip().splitlines()[-1])
        self.reports.setdefault((side, name), []).append(report)

    def median(self, side: str, name: str, quantity: str) -> float:
        """The median of a quantity over all reports of a side."""
        return statistics.median(float(r[quantity]) for r in self.reports[side, name])

    def error(self, name: str) -> float:
        """The largest difference between the two sides' answers, which are probabilities."""
        paths = [self.folder / f"{name}-{side}.npz" for side in ("ours", "peer")]
        with np.load(paths[0]) as ours, np.load(paths[1]) as peer:
            shared = [key for key in ours.files if key in peer.files]
            return max(float(np.abs(ours[key] - peer[key]).max()) for key in shared)


def format_quantity(quantity: str, value: float) -> str:
    """A figure with its unit."""
    if quantity == "peak_bytes":
        return f"{value / 1e6:,.0f} MB"
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1e3:,.2f} ms"


def print_line(runner: Runner, name: str) -> None:
    """One network: the difference, then ours, the peer's and the ratio of every quantity."""
    error = runner.error(name)
    cells = [f"{name:<12}{error:>9.0e}{'!' if error > MAX_ERROR else ' '}"]
    for target in TARGETS:
        ours, peer = (runner.median(side, name, target.quantity) for side in ("ours", "peer"))
        counts = name in SMALL or not target.small_only
        missed = "!" if counts and ours / peer > target.max_ratio else " "
        figures = (format_quantity(target.quantity, value) for value in (ours, peer))
        cells.append(
            "".join(f"{figure:>11}" for figure in figures) + f"{ours / peer:>7.2f}{missed}"
        )
    print("".join(cells), flush=True)


def print_heads() -> None:
    """What the columns are, and the targets."""
    print("\nours, the peer's, and ours / the peer's; ! where a target is missed")
    heads = "".join(f"{target.label:>23}{'':>7}" for target in TARGETS)
    print(f"{'network':<12}{'error':>9} {heads}")
    limits = (
        f"at most {target.max_ratio:g}" + (" if small" if target.small_only else "")
        for target in TARGETS
    )
    print(f"{'':<12}{MAX_ERROR:>9.0e} " + "".join(f"{limit:>23}{'':>7}" for limit in limits))


def main() -> None:
    """Run all networks asked for and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer-python", required=True, help="the interpreter that has the peer")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--networks",
        help="names with commas between them (default: %(default)s)",
        default=",".join((*SMALL, *LARGE)),
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder), options.peer_python)
        print_heads()
        for name in options.networks.split(","):
            runner.convert(name)
            for _ in range(options.repeats):
                for side in runner.commands:
                    runner.run(side, name)
            print_line(runner, name)


if __name__ == "__main__":
    main()
