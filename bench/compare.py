"""Time Juncture beside its peer on the same problems, in one run, and print the ratios.

Each figure comes from a process of its own, ours and the peer's alternating, the median of
`--repeats` rounds. Before a ratio is printed, both sides must have computed the same marginals.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from juncture.data.samples import adult_domain

HERE = Path(__file__).parent
Report = dict[str, Any]

NINE_TRIPLES = """
race capital-loss income>50K | marital-status capital-gain income>50K
race native-country income>50K | workclass sex hours-per-week
fnlwgt marital-status relationship | workclass education-num occupation
age relationship sex | occupation sex hours-per-week | occupation relationship income>50K
"""
PAPER_TRIPLES = """
occupation race capital-loss | occupation sex native-country
marital-status relationship income>50K | age education-num sex
workclass education-num occupation | marital-status occupation income>50K
race native-country income>50K | occupation capital-gain income>50K
marital-status hours-per-week income>50K | workclass race capital-gain
marital-status relationship capital-gain | workclass education-num capital-gain
education-num relationship race | fnlwgt hours-per-week income>50K
workclass sex native-country
"""


@dataclass(frozen=True)
class Line:
    """One line of the table: a problem, what is taken from its reports, the ratio to reach."""

    label: str
    problem: str
    task: str
    quantity: str
    target: float


LINES = (
    Line("1000 attributes: process start to 50 iterations", "chain-1000", "whole", "seconds", 60),
    Line("1000 attributes: one iteration", "chain-1000", "step", "seconds", 10),
    Line("1000 attributes: peak memory", "chain-1000", "whole", "peak_bytes", 6),
    Line("100 attributes: one iteration", "chain-100", "step", "seconds", 8),
    Line("Adult, nine triples: one iteration", "adult-9", "step", "seconds", 3),
    Line("Adult, the paper's 15 triples: one iteration", "adult-15", "step", "seconds", 6),
)


def problems() -> dict[str, Report]:
    """The problems by name."""
    adult = {name: size for name, size in adult_domain().items() if name != "education"}
    found = {f"chain-{n}": chain(n) for n in (100, 1000, 10_000)}
    found["adult-9"] = problem(adult, triples(NINE_TRIPLES))
    found["adult-15"] = problem(adult, triples(PAPER_TRIPLES))
    return found


def chain(n_attributes: int) -> Report:
    """Every adjacent triple of attributes with ten values."""
    names = [f"x{place}" for place in range(n_attributes)]
    cliques = [names[place : place + 3] for place in range(n_attributes - 2)]
    return problem(dict.fromkeys(names, 10), cliques)


def triples(text: str) -> list[list[str]]:
    """Cliques written as words between bars and line ends."""
    return [part.split() for line in text.strip().splitlines() for part in line.split("|")]


def problem(domain: dict[str, int], cliques: list[list[str]]) -> Report:
    """A problem file's content."""
    return {"domain": domain, "cliques": cliques, "seed": 0, "total": 50_000.0, "stddev": 10.0}


class Runner:
    """Runs one side on one problem, each time in a fresh process; remembers the reports."""

    def __init__(self, folder: Path, peer_python: str | None) -> None:
        self.folder = folder
        self.sides = {"ours": (sys.executable, HERE / "ours.py")}
        if peer_python:
            self.sides["peer"] = (peer_python, HERE / "peer.py")
        self.reports: dict[tuple[str, str, str], list[Report]] = {}
        for name, content in problems().items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    def run(self, side: str, problem: str, task: str) -> Report:
        """One more report."""
        python, script = self.sides[side]
        command = [python, str(script), task, str(self.folder / f"{problem}.json")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        report: Report = json.loads(done.stdout.strip().splitlines()[-1])
        self.reports.setdefault((side, problem, task), []).append(report)
        return report

    def median(self, side: str, line: Line) -> float:
        """The median of a line's quantity over all reports."""
        reports = self.reports[side, line.problem, line.task]
        return statistics.median(float(report[line.quantity]) for report in reports)

    def check_agreement(self, problem: str, task: str) -> None:
        """Both sides must have ended at the same marginals."""
        ours, peer = (self.reports[side, problem, task][-1] for side in ("ours", "peer"))
        pairs = zip(ours["first_marginal"], peer["first_marginal"], strict=True)
        if not all(math.isclose(a, b, rel_tol=1e-6) for a, b in pairs):
            raise SystemExit(f"{problem}: the two sides disagree; the timings mean nothing")


def shown(quantity: str, value: float) -> str:
    """A figure with its unit."""
    if quantity == "peak_bytes":
        return f"{value / 1e6:,.0f} MB"
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1e3:,.2f} ms"


def print_comparison(runner: Runner) -> None:
    """The table of ratios."""
    print(f"\n{'ratio = peer / ours':<50}{'ours':>11}{'peer':>11}{'ratio':>8}{'target':>8}")
    for line in LINES:
        ours, peer = runner.median("ours", line), runner.median("peer", line)
        figures = f"{shown(line.quantity, ours):>11}{shown(line.quantity, peer):>11}"
        verdict = "" if peer / ours >= line.target else "  missed"
        print(f"{line.label:<50}{figures}{peer / ours:>8.1f}{line.target:>8.0f}{verdict}")


def print_growth(runner: Runner) -> None:
    """One iteration of 10,000 attributes over one of 1000: linear growth gives 10."""
    large, small = Line("", "chain-10000", "step", "seconds", 12), LINES[1]
    one, other = runner.median("ours", large), runner.median("ours", small)
    verdict = "" if one / other <= large.target else "  missed"
    print(
        f"\n{'growth, 10,000 attributes over 1000':<50}{'ours':>11}{'':>11}{'ratio':>8}{'most':>8}"
    )
    label = "one iteration"
    print(f"{label:<50}{shown('seconds', one):>11}{'':>11}{one / other:>8.1f}{12:>8}{verdict}")


def main() -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer-python", help="the interpreter that has the peer")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder), options.peer_python)
        tasks = dict.fromkeys((line.problem, line.task) for line in LINES)
        runner.run("ours", "adult-9", "whole")  # compiles, where that has never been done
        for number in range(options.repeats):
            for name, task in tasks:
                for side in runner.sides:
                    print(f"round {number + 1}: {name}, {task}, {side} ...", file=sys.stderr)
                    runner.run(side, name, task)
                if "peer" in runner.sides:
                    runner.check_agreement(name, task)
            runner.run("ours", "chain-10000", "step")
    if "peer" in runner.sides:
        print_comparison(runner)
    print_growth(runner)


if __name__ == "__main__":
    main()
