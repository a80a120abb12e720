"""Time Juncture beside its peer on the same problems, in one run, and print the ratios.

Each figure comes from a process of its own, ours and the peer's alternating, the median of
`--repeats` rounds. Before a ratio is printed, both sides must have computed the same marginals,
or, where they fit a model, have reached the same loss.
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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import counting_ours
import numpy as np
from adult_fits import ADULT_RECORDS, LAPLACE_STDDEV, adult_fit
from fit_problems import FitProblem, gaussian, laplace
from fit_problems import chain as chain_fit
from step_problems import NINE_TRIPLES, PAPER_TRIPLES, chain, problems, triples

from juncture import Codebook, Coding, Domain, Measurement, Plan, Release, estimate
from juncture.private.samples import adult_codes, adult_domain
from juncture.private.sources.source import CodedTable

HERE = Path(__file__).parent
Report = dict[str, Any]


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


@dataclass(frozen=True)
class FitLine:
    """One line of the table of fits; `max_repeats` is how often the peer runs at most."""

    label: str
    problem: str
    task: str
    target: float
    methods: tuple[str, ...]
    max_repeats: int = 2


# The peer's estimators, the likely best first: when first tried, the others have little longer
# than the best so far. Its dual averaging and its L-BFGS are left out: they take far longer.
METHODS = ("UniversalAcceleratedMethod", "InteriorGradient", "MirrorDescent")
FIT_LINES = (
    FitLine("Adult, nine triples: process start to 0.5 %", "fit-9", "whole", 10, METHODS),
    FitLine("Adult, nine triples: once warm", "fit-9", "warm", 3, METHODS[:2]),
    FitLine(
        "Adult, the paper's 15 triples: process start to 1 %", "fit-15", "whole", 5, METHODS[:2]
    ),
    FitLine("1000 attributes: process start to 1 %", "fit-1000", "whole", 40, METHODS[1::-1], 1),
    FitLine("Adult, 15 rounds, each to 1 %", "fit-rounds", "whole", 25, METHODS[:2], 1),
)
# How far above the optimum a fit may end.
SLACK = {"fit-9": 0.005, "fit-15": 0.01, "fit-1000": 0.01, "fit-rounds": 0.01}
PATIENCE_SECONDS = 300.0


def fit_problems() -> Iterator[tuple[str, FitProblem]]:
    """The problems by name, without their goals."""
    nine, fifteen = triples(NINE_TRIPLES), triples(PAPER_TRIPLES)
    yield "fit-9", adult_fit(nine, (9,), 10.0, gaussian)
    yield "fit-15", adult_fit(fifteen, (15,), LAPLACE_STDDEV, laplace)
    yield "fit-1000", chain_fit(1000, 10.0)
    yield "fit-rounds", adult_fit(fifteen, tuple(range(1, 16)), LAPLACE_STDDEV, laplace)


def optima(problem: FitProblem, tolerance: float) -> list[float]:
    """The least loss of every round, by a long fit of ours."""
    setting, losses = problem.setting, []
    given = [Measurement(c, table, stddev=setting.stddev) for c, table in problem.tables.items()]
    for n_measured in setting.rounds:
        found = estimate(
            Domain(setting.domain),
            given[:n_measured],
            total=setting.total,
            tolerance=tolerance,
        )
        losses.append(found.summary.loss)
    return losses


class FitRunner:
    """Fits problems on both sides, each time in a fresh process; remembers the seconds."""

    def __init__(self, folder: Path, peer_python: str | None) -> None:
        self.folder = folder
        self.peer_python = peer_python
        self.goals: dict[str, list[float]] = {}
        self.seconds: dict[tuple[str, FitLine], list[float]] = {}
        for name, problem in fit_problems():
            print(f"{name}, the optimum ...", file=sys.stderr)
            slack = SLACK[name]
            self.goals[name] = [(1 + slack) * loss for loss in optima(problem, slack / 200)]
            problem.with_goals(self.goals[name]).save(folder / f"{name}.npz")

    def run_all(self, line: FitLine, repeat: int) -> None:
        """One more fit of ours, and one of each of the peer's estimators still in the race."""
        self.run("ours", line, PATIENCE_SECONDS)
        if self.peer_python is None or repeat >= line.max_repeats:
            return
        methods = [m for m in line.methods if repeat == 0 or math.isfinite(self.median(m, line))]
        for method in methods:
            best = min(self.median(m, line) for m in line.methods)
            trial = repeat == 0 and line.task == "whole"
            self.run(method, line, min(PATIENCE_SECONDS, 1.2 * best if trial else math.inf))

    def run(self, side: str, line: FitLine, limit: float) -> None:
        """One more figure, infinite where the limit is reached."""
        print(f"{line.problem}, {line.task}, {side} ...", end=" ", file=sys.stderr, flush=True)
        command = [sys.executable, str(HERE / "fit_ours.py")]
        if side != "ours":
            command = [str(self.peer_python), str(HERE / "fit_peer.py"), "--method", side]
        command += [line.task, str(self.folder / f"{line.problem}.npz")]
        seconds = math.inf
        try:
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            pass
        else:
            report: Report = json.loads(done.stdout.strip().splitlines()[-1])
            self.check(line, report["losses"])
            seconds = float(report["seconds"])
        print(f"{seconds:.2f} s", file=sys.stderr)
        self.seconds.setdefault((side, line), []).append(seconds)

    def check(self, line: FitLine, losses: list[float]) -> None:
        """Every round must have reached its goal."""
        pairs = zip(losses, self.goals[line.problem], strict=True)
        if not all(loss <= goal * (1 + 1e-9) for loss, goal in pairs):
            raise SystemExit(f"{line.problem}: a goal was not reached; the timings mean nothing")

    def median(self, side: str, line: FitLine) -> float:
        """The median of a side's seconds, infinite where there are none."""
        return statistics.median(self.seconds.get((side, line), [math.inf]))


def print_fits(runner: FitRunner) -> None:
    """The table of fits, each beside the peer's best estimator."""
    heads = ("ours", "peer", "ratio", "target")
    print(f"\n{'ratio = peer / ours':<52}" + "".join(f"{head:>11}" for head in heads))
    for line in FIT_LINES:
        ours = runner.median("ours", line)
        method = min(line.methods, key=lambda method: runner.median(method, line))
        peer, sign = runner.median(method, line), ""
        if math.isinf(peer):
            peer, sign, method = PATIENCE_SECONDS, ">", "none in time"
        cells = [shown("seconds", ours), sign + shown("seconds", peer)]
        cells += [f"{sign}{peer / ours:.1f}"]
        cells += [f"{line.target:g}" + ("" if peer / ours >= line.target else " missed")]
        cells, method = (cells, method) if runner.peer_python else (cells[:1], "")
        print(f"{line.label:<52}" + "".join(f"{cell:>11}" for cell in cells) + f"  {method}")


def compare_oracles(folder: Path, options: argparse.Namespace) -> None:
    """The tables of single iterations."""
    runner = Runner(folder, options.peer_python)
    runner.run("ours", "adult-9", "whole")  # compiles, where that has never been done
    for _ in range(options.repeats):
        for name, task in dict.fromkeys((line.problem, line.task) for line in LINES):
            runner.run_all(name, task)
        runner.run("ours", LARGE.problem, LARGE.task)
    print_comparison(runner)
    print_growth(runner)
    print_planning(options.repeats)


def compare_fits(folder: Path, options: argparse.Namespace) -> None:
    """The table of fits."""
    runner = FitRunner(folder, options.peer_python)
    for repeat in range(options.repeats):
        for line in FIT_LINES:
            runner.run_all(line, repeat)
    print_fits(runner)


@dataclass(frozen=True)
class AskedLine:
    """A question to a fitted model, and the ratio to reach; no target where none is set."""

    label: str
    problem: str
    task: str
    target: float


ASKED_LINES = (
    AskedLine("Adult: 20 two-attribute marginals across cliques", "fit-9", "pairs", 100),
    AskedLine("Adult: 48,842 synthetic records", "fit-9", "small", 50),
    AskedLine("Adult: 1,000,000 synthetic records", "fit-9", "large", 20),
    AskedLine("1000 attributes: a pair 900 apart", "fit-1000", "far", 0),
)
ASKED_LIMIT = 400.0


def compare_answers(folder: Path, options: argparse.Namespace) -> None:
    """The table of questions to fitted models; first times, with second times in brackets."""
    for name, made in fit_problems():
        if name in {line.problem for line in ASKED_LINES}:
            made.save(folder / f"{name}.npz")
    print(f"\n{'first time asked (again)':<52}" + f"{'ours':>24}{'peer':>24}{'ratio':>9}  target")
    for line in ASKED_LINES:
        ours = asked(["inference_ours.py"], sys.executable, line, folder, options.repeats)
        cells = f"{line.label:<52}{both(ours):>24}"
        if options.peer_python:
            peer = asked(["inference_peer.py"], options.peer_python, line, folder, 1)
            ratio = peer[0] / ours[0]
            missed = "" if ratio >= line.target else " missed"
            cells += f"{both(peer):>24}{ratio:>9.0f}  {line.target or '':}{missed}"
        print(cells, flush=True)
    print_sharing()
    print_streaming(folder)


def print_streaming(folder: Path) -> None:
    """Ten million records to Parquet: what they take, beside a small file."""
    command = [sys.executable, str(HERE / "stream_ours.py"), str(folder / "fit-9.npz")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    for report in json.loads(done.stdout.strip().splitlines()[-1]):
        label = f"ours alone: {report['records']:,} records to Parquet"
        cells = f"{shown('seconds', report['seconds']):>24}"
        cells += f"{shown('peak_bytes', report['bytes']):>24}"
        print(f"{label:<52}{cells}  peak memory {shown('peak_bytes', report['peak_bytes'])}")


def asked(
    script: list[str], python: str, line: AskedLine, folder: Path, repeats: int
) -> tuple[float, float]:
    """First and second time of a question, in fresh processes."""
    command = [python, str(HERE / script[0]), line.task, str(folder / f"{line.problem}.npz")]
    found = []
    for _ in range(repeats):
        print(f"{line.problem}, {line.task}, {script[0]} ...", file=sys.stderr)
        try:
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, timeout=ASKED_LIMIT
            )
        except subprocess.TimeoutExpired:
            return math.inf, math.inf
        except subprocess.CalledProcessError:
            return math.nan, math.nan
        found.append(json.loads(done.stdout.strip().splitlines()[-1])["seconds"])
    return statistics.median(f[0] for f in found), statistics.median(f[1] for f in found)


def both(seconds: tuple[float, float]) -> str:
    """First and second time."""
    return f"{shown('seconds', seconds[0])} ({shown('seconds', seconds[1])})"


def print_sharing() -> None:
    """All pairs of Adult at once, beside asking one by one."""
    nine = adult_fit(triples(NINE_TRIPLES), (9,), 10.0, gaussian)
    given = [Measurement(c, t, stddev=10.0) for c, t in nine.tables.items()]
    model = estimate(Domain(adult_domain()), given, total=ADULT_RECORDS).model
    pairs = list(combinations(model.domain, 2))
    list(model.project_many(pairs))
    times: dict[str, list[float]] = {"singly": [], "at once": []}
    for _ in range(15):
        began = time.perf_counter()
        singly = [model.project(pair) for pair in pairs]
        middle = time.perf_counter()
        together = list(model.project_many(pairs))
        times["singly"].append(middle - began)
        times["at once"].append(time.perf_counter() - middle)
        if not all(
            np.allclose(a.values, b.values, atol=1e-6)
            for a, b in zip(singly, together, strict=True)
        ):
            raise SystemExit("pairs asked at once are not those asked singly")
    one, all_ = statistics.median(times["singly"]), statistics.median(times["at once"])
    label = f"ours alone: all {len(pairs)} pairs, singly over at once"
    cells = f"{shown('seconds', one):>24}{shown('seconds', all_):>24}{one / all_:>9.1f}  3"
    print(f"{label:<52}{cells}" + ("" if one / all_ >= 3 else " missed"))


def compare_counting(folder: Path, options: argparse.Namespace) -> None:
    """All pairs of Adult from memory beside the peer, and of a large file from DuckDB."""
    sizes, codes = adult_domain(), adult_codes().astype(np.int64)
    columns = dict(zip(sizes, codes.T, strict=True))
    pairs, seconds = list(combinations(sizes, 2)), []
    source = CodedTable(Domain(sizes), columns)
    for _ in range(2 * options.repeats + 1):
        began = time.perf_counter()
        source.exact_counts(pairs)
        seconds.append(time.perf_counter() - began)
    ours = statistics.median(seconds)
    line = f"{'Adult: all 105 pairs from memory':<52}{shown('seconds', ours):>11}"
    if options.peer_python:
        np.savez(folder / "codes.npz", sizes=np.array(list(sizes.values())), **columns)
        command = [options.peer_python, str(HERE / "counting_peer.py"), str(folder / "codes.npz")]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        peer = float(json.loads(done.stdout.strip().splitlines()[-1])["seconds"])
        missed = "" if peer / ours >= 20 else " missed"
        line += f"{shown('seconds', peer):>11}{peer / ours:>11.1f}{20:>11}{missed}"
    print(
        f"\n{'ratio = peer / ours':<52}{'ours':>11}{'peer':>11}{'ratio':>11}{'target':>11}\n{line}"
    )
    print_duck(folder)


def print_duck(folder: Path) -> None:
    """Ten million rows of texts and numbers in Parquet: all pairs, beside one full scan."""
    nine = adult_fit(triples(NINE_TRIPLES), (9,), 10.0, gaussian)
    given = [Measurement(c, t, stddev=10.0) for c, t in nine.tables.items()]
    model = estimate(Domain(adult_domain()), given, total=ADULT_RECORDS).model
    texts = {
        name: Coding(tuple(counting_ours.label(name, code) for code in range(size)))
        for name, size in adult_domain().items()
        if name not in counting_ours.NUMBERS
    }
    path = folder / "large.parquet"
    release = Release(model=model.with_codebook(Codebook(texts)))
    release.write_records(path, 10_000_000, rng=0, method="sample")
    command = [sys.executable, str(HERE / "counting_ours.py"), str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: Report = json.loads(done.stdout.strip().splitlines()[-1])
    times = report["seconds"] / report["scan"]
    print(
        f"ours alone: {report['records']:,.0f} rows in DuckDB, one scan "
        f"{shown('seconds', report['scan'])}, encoded {shown('seconds', report['encoded'])}, all "
        f"{report['tables']} pairs {shown('seconds', report['seconds'])}: {times:.1f} scans (at "
        f"most 8{'' if times <= 8 else ': missed'}), peak memory "
        f"{shown('peak_bytes', report['peak_bytes'])} (at most 1 GB)"
    )


def main() -> None:
    """Run everything asked for and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer-python", help="the interpreter that has the peer")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--only", choices=["oracle", "fit", "inference", "counting", "all"], default="all"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only in ("oracle", "all"):
            compare_oracles(Path(folder), options)
        if options.only in ("fit", "all"):
            compare_fits(Path(folder), options)
        if options.only in ("inference", "all"):
            compare_answers(Path(folder), options)
        if options.only in ("counting", "all"):
            compare_counting(Path(folder), options)


if __name__ == "__main__":
    main()
