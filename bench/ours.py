"""Measure Juncture at exact marginals plus one gradient step: the same work as `peer.py`.

python bench/ours.py whole problem.json    process start to the end of 50 iterations
python bench/ours.py step problem.json     one iteration, compiled and warm
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from juncture import Domain, Layout, Plan, Propagation
from juncture.layout import Vector

ITERATIONS = 50
CELLS_SHOWN = 5
BLOCKS = 7
TIMED_SECONDS = 2.0

Report = dict[str, Any]


class Descent:
    """Gradient descent on the potentials with a constant step, from zero."""

    def __init__(self, problem: Report) -> None:
        domain = Domain(problem["domain"])
        self.cliques = [tuple(clique) for clique in problem["cliques"]]
        self.total = float(problem["total"])
        self.oracle = Propagation(Plan.build(domain, self.cliques))
        self.layout = self.oracle.layout
        self.targets = targets(self.layout, self.cliques, problem)
        self.potentials = self.layout.zeros()
        self.marginals = np.empty(self.layout.size)
        self.rate = 1.0 / (self.total * len(self.cliques))
        self.log_partition = 0.0

    def run(self, iterations: int) -> None:
        """Marginals, then a step down the gradient, so many times."""
        for _ in range(iterations):
            beliefs = self.oracle.marginals(self.potentials, self.total, out=self.marginals)
            gradient = np.subtract(beliefs.marginals, self.targets, out=self.marginals)
            gradient *= self.rate
            self.potentials -= gradient

    def state(self) -> Report:
        """Where the iterations ended: the marginal of the potentials they left behind."""
        beliefs = self.oracle.marginals(self.potentials, self.total)
        table = self.layout.factor(beliefs.marginals, self.cliques[0]).values
        return {
            "first_marginal": [float(cell) for cell in table.ravel()[:CELLS_SHOWN]],
            "log_partition": beliefs.log_partition,
        }


def targets(layout: Layout, cliques: list[tuple[str, ...]], problem: Report) -> Vector:
    """One table a clique, in the listed order and axes, from the problem's seed."""
    rng = np.random.default_rng(problem["seed"])
    vector = layout.zeros()
    for clique in cliques:
        domain = layout.domain.project(clique)
        values = rng.random(domain.size) * (problem["total"] / domain.size) * 2
        order = [domain.positions[name] for name in layout.domain.canonical(clique)]
        layout.view(vector, clique)[...] = values.reshape(domain.shape).transpose(order)
    return vector


def seconds_since_start() -> float:
    """Seconds since this process began."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    born = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # 22nd field, the first two cut off
    return time.clock_gettime(time.CLOCK_BOOTTIME) - born


def peak_bytes() -> int:
    """The largest resident memory of this process until now."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure_whole(problem: Report) -> Report:
    """Time from the start of the process to the end of the iterations."""
    imported = seconds_since_start()
    descent = Descent(problem)
    planned = seconds_since_start()
    descent.run(ITERATIONS)
    seconds = seconds_since_start()
    return {
        "seconds": seconds,
        "import_seconds": imported,
        "plan_seconds": planned - imported,
        "peak_bytes": peak_bytes(),
        **descent.state(),
    }


def measure_step(problem: Report) -> Report:
    """Time one warm iteration: the median over blocks."""
    descent = Descent(problem)
    descent.run(ITERATIONS)
    ended = descent.state()
    began = time.perf_counter()
    descent.run(3)
    length = max(1, round(TIMED_SECONDS / BLOCKS / ((time.perf_counter() - began) / 3)))
    blocks = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        descent.run(length)
        blocks.append((time.perf_counter() - began) / length)
    return {
        "seconds": statistics.median(blocks),
        "seconds_least": min(blocks),
        "seconds_most": max(blocks),
        "peak_bytes": peak_bytes(),
        **ended,
    }


def main() -> None:
    """Run one task and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=["whole", "step"])
    parser.add_argument("problem", type=Path, help="problem file (JSON)")
    options = parser.parse_args()
    problem = json.loads(options.problem.read_text())
    report = (measure_whole if options.task == "whole" else measure_step)(problem)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
