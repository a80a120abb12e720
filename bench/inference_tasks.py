"""What both sides of the inference comparison share: the questions and the clock.

A side fits a model to a problem of the fitting comparison, untimed, and is then asked. Every task
is timed twice: the first time is what a user waits for; the second shows what of it was compiling.
Runs in either environment and imports neither library.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Protocol

import fit_problems
import numpy as np
from fit_problems import Array, Clique, FitProblem

N_PAIRS = 20
FAR_APART = ("x50", "x950")


class Side(Protocol):
    """A fitted model of one library."""

    def marginal(self, clique: Clique) -> Array:
        """The counts of a clique that need not be measured."""

    def records(self, n: int) -> None:
        """Make synthetic records whose counts match the model's up to rounding."""


def pairs_across(problem: FitProblem) -> list[Clique]:
    """Pairs of measured attributes that no measured clique holds together."""
    cliques = [set(clique) for clique in problem.setting.cliques]
    used = [name for name in problem.setting.domain if any(name in clique for clique in cliques)]
    pairs = combinations(used, 2)
    return [pair for pair in pairs if not any(clique.issuperset(pair) for clique in cliques)]


def main(make: Callable[[FitProblem], Side]) -> None:
    """Run the tasks of one problem and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=["pairs", "small", "large", "far"])
    parser.add_argument("problem", type=Path, help="problem file")
    options = parser.parse_args()
    problem = fit_problems.load(options.problem)
    side, seconds, shown = make(problem), list[float](), list[float]()
    for _ in range(2):
        began = time.perf_counter()
        shown = _run(side, options.task, problem)
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": seconds, "shown": shown}))


def _run(side: Side, task: str, problem: FitProblem) -> list[float]:
    if task == "small":
        side.records(48_842)
        return []
    if task == "large":
        side.records(1_000_000)
        return []
    asked = [FAR_APART] if task == "far" else pairs_across(problem)[:N_PAIRS]
    tables = [side.marginal(pair) for pair in asked]
    return [float(value) for value in np.sort(tables[0].ravel())[-3:]]
