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
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from juncture import Domain, Plan
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
# Where the peer's fast oracle is timed too: elsewhere it only compiles for minutes.
FAST_PROBLEMS = ("chain-100", "adult-9", "adult-15")
LARGE = Line("10,000 attributes over 1000: one iteration", "chain-10000", "step", "seconds", 12)


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
    return {"domain": domain, "cliques": cliques, "seed": 0, "total": 50_000.0}


class Runner:
    """Runs one side on one problem, each time in a fresh process; remembers the reports."""

    def __init__(self, folder: Path, peer_python: str | None) -> None:
        self.folder = folder
        self.commands = {"ours": [sys.executable, str(HERE / "ours.py")]}
        if peer_python:
            self.commands["peer"] = [peer_python, str(HERE / "peer.py")]
            self.commands["fast"] = [*self.commands["peer"], "--oracle", "fast"]
        self.reports: dict[tuple[str, str, str], list[Report]] = {}
        for name, content in problems().items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    def run_all(self, problem: str, task: str) -> None:
        """One more report from every side; they must agree on the marginals."""
        for side in self.commands:
            if side != "fast" or (task == "step" and problem in FAST_PROBLEMS):
                print(f"{problem}, {task}, {side} ...", file=sys.stderr)
                self.check(self.run(side, problem, task), problem)

    def run(self, side: str, problem: str, task: str) -> Report:
        """One more report."""
        command = [*self.commands[side], task, str(self.folder / f"{problem}.json")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        report: Report = json.loads(done.stdout.strip().splitlines()[-1])
        self.reports.setdefault((side, problem, task), []).append(report)
        return report

    def check(self, report: Report, problem: str) -> None:
        """The report must have ended at the marginals of our first one for the problem."""
        ours = next(found for key, found in self.reports.items() if key[:2] == ("ours", problem))
        pairs = zip(ours[0]["first_marginal"], report["first_marginal"], strict=True)
        if not all(math.isclose(a, b, rel_tol=1e-6) for a, b in pairs):
            raise SystemExit(f"{problem}: the two sides disagree; the timings mean nothing")

    def median(self, side: str, line: Line) -> float:
        """The median of a line's quantity over all reports, or nothing where there is none."""
        reports = self.reports.get((side, line.problem, line.task), [])
        figures = [float(report[line.quantity]) for report in reports]
        return statistics.median(figures or [math.nan])


def shown(quantity: str, value: float) -> str:
    """A figure with its unit."""
    if quantity == "peak_bytes":
        return f"{value / 1e6:,.0f} MB"
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1e3:,.2f} ms"


def print_comparison(runner: Runner) -> None:
    """The table of ratios; the last column is the peer's fast oracle, not its default one."""
    heads = ("ours", "peer", "ratio", "target", "fast", "ratio")
    print(f"\n{'ratio = peer / ours':<50}" + "".join(f"{head:>11}" for head in heads))
    for line in LINES:
        ours, peer, fast = (runner.median(side, line) for side in ("ours", "peer", "fast"))
        cells = [shown(line.quantity, ours), shown(line.quantity, peer), f"{peer / ours:.1f}"]
        cells += [f"{line.target:g}" + ("" if peer / ours >= line.target else " missed")]
        cells += [shown(line.quantity, fast), f"{fast / ours:.1f}"] if math.isfinite(fast) else []
        print(f"{line.label:<50}" + "".join(f"{cell:>11}" for cell in cells))


def print_growth(runner: Runner) -> None:
    """One iteration of 10,000 attributes over one of 1000: linear growth gives 10."""
    large, small = runner.median("ours", LARGE), runner.median("ours", LINES[1])
    verdict = f"{LARGE.target:g}" + ("" if large / small <= LARGE.target else " missed")
    print(f"\n{'ratio = 10,000 attributes / 1000 attributes':<50}{'10,000':>11}{'1000':>11}")
    cells = (shown("seconds", large), shown("seconds", small), f"{large / small:.1f}", verdict)
    print(f"{LARGE.label:<50}" + "".join(f"{cell:>11}" for cell in cells))


def print_planning(repeats: int) -> None:
    """How long the search for a junction tree takes."""
    print(f"\n{'planning':<50}{'ours':>11}{'':>11}{'':>11}{'most':>11}")
    for n_attributes, most in ((1000, 0.1), (10_000, 2.0)):
        content = chain(n_attributes)
        domain, times = Domain(content["domain"]), []
        for _ in range(repeats):
            began = time.perf_counter()
            Plan.build(domain, content["cliques"])
            times.append(time.perf_counter() - began)
        taken = statistics.median(times)
        verdict = shown("seconds", most) + ("" if taken <= most else " missed")
        label = f"{n_attributes:,} attributes in overlapping triples"
        print(f"{label:<50}{shown('seconds', taken):>11}{'':>22}{verdict:>11}")
    content = problems()["adult-15"]
    plan = Plan.build(Domain(content["domain"]), content["cliques"])
    pairs = list(combinations(plan.domain, 2))
    began = time.perf_counter()
    for pair in pairs:
        plan.cells_with(pair)
    taken = (time.perf_counter() - began) / len(pairs)
    print(f"{'how large with one pair more (Adult, 15 triples)':<50}{shown('seconds', taken):>11}")


def main() -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer-python", help="the interpreter that has the peer")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder), options.peer_python)
        runner.run("ours", "adult-9", "whole")  # compiles, where that has never been done
        for _ in range(options.repeats):
            for name, task in dict.fromkeys((line.problem, line.task) for line in LINES):
                runner.run_all(name, task)
            runner.run("ours", LARGE.problem, LARGE.task)
    print_comparison(runner)
    print_growth(runner)
    print_planning(options.repeats)


if __name__ == "__main__":
    main()
