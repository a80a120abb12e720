"""What both sides of the comparison share: the problem, the work, the clock.

One iteration is: the exact marginals of the potentials on the measured cliques, scaled to the
total, then a step of constant length down the gradient of half the sum of squared, noise-scaled
errors. The potentials start at zero. Runs in either environment and imports neither library.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

ITERATIONS = 50
CELLS_SHOWN = 5
BLOCKS = 7
TIMED_SECONDS = 2.0

Clique = tuple[str, ...]
Report = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """What is measured, and how large the step is."""

    domain: dict[str, int]
    cliques: tuple[Clique, ...]
    seed: int
    total: float

    @property
    def rate(self) -> float:
        """The step length over the variance of the noise."""
        return 1.0 / (self.total * len(self.cliques))

    def targets(self) -> dict[Clique, NDArray[np.float64]]:
        """One table a clique, in the listed order of cliques and axes, from the seed."""
        rng = np.random.default_rng(self.seed)
        tables = {}
        for clique in self.cliques:
            shape = tuple(self.domain[name] for name in clique)
            n_cells = int(np.prod(shape))
            values = rng.random(n_cells) * (self.total / n_cells) * 2
            tables[clique] = values.reshape(shape)
        return tables


class Descent(Protocol):
    """One side's gradient descent on one problem."""

    def run(self, iterations: int) -> None:
        """So many iterations, to their very end."""

    def first_marginal(self) -> NDArray[np.float64]:
        """The marginal of the first clique at the present potentials."""


def main(make: Callable[[Problem, argparse.Namespace], Descent], oracles: tuple[str, ...]) -> None:
    """Run one task on one problem and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=["whole", "step"])
    parser.add_argument("problem", type=Path, help="problem file (JSON)")
    parser.add_argument("--oracle", choices=oracles, default=oracles[0])
    options = parser.parse_args()
    raw = json.loads(options.problem.read_text())
    problem = Problem(**{**raw, "cliques": tuple(tuple(clique) for clique in raw["cliques"])})
    imported = seconds_since_start()
    descent = make(problem, options)
    descent.run(1)
    first = seconds_since_start()
    descent.run(ITERATIONS - 1)
    report = {
        "import_seconds": imported,
        "first_seconds": first,
        "seconds": seconds_since_start(),
        "peak_bytes": peak_bytes(),
        "first_marginal": [float(x) for x in descent.first_marginal().ravel()[:CELLS_SHOWN]],
    }
    if options.task == "step":
        report["seconds"] = seconds_of_one(descent)
    print(json.dumps(report))


def seconds_of_one(descent: Descent) -> float:
    """The seconds of one warm iteration: the median over blocks of them."""
    began = time.perf_counter()
    descent.run(3)
    length = max(1, round(TIMED_SECONDS / BLOCKS / ((time.perf_counter() - began) / 3)))
    blocks = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        descent.run(length)
        blocks.append((time.perf_counter() - began) / length)
    return statistics.median(blocks)


def seconds_since_start() -> float:
    """Seconds since this process began."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    born = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # 22nd field, the first two cut off
    return time.clock_gettime(time.CLOCK_BOOTTIME) - born


def peak_bytes() -> int:
    """The largest resident memory of this process until now."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
