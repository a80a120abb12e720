"""What both sides of the fitting comparison share: the problems, the loss, the clock.

A problem is noisy counts of cliques, to be fitted in one round or in several, each of which
measures more cliques than the one before. A round is over when the loss of the marginals, half
the sum of squared residuals over the variance, is at or below the round's goal. Runs in either
environment and imports neither library.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import harness
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Clique = tuple[str, ...]
Marginal = Callable[[Clique], Array]

CHAIN_SIZE = 10
CHAIN_RECORDS = 50_000
# How many of the chain's values are copied from the attribute before.
CHAIN_COPIED = 0.5


@dataclass(frozen=True)
class Setting:
    """All of a problem but the noisy counts."""

    domain: dict[str, int]
    cliques: tuple[Clique, ...]
    stddev: float
    total: float
    rounds: tuple[int, ...]
    """How many of the cliques are measured in each round."""
    goals: tuple[float, ...] = ()
    """The loss to reach in each round."""


@dataclass(frozen=True)
class FitProblem:
    """A setting with the noisy counts of its cliques, one after the other."""

    setting: Setting
    values: Array

    @cached_property
    def tables(self) -> dict[Clique, Array]:
        """The noisy counts of each clique as a flat table."""
        domain, cliques = self.setting.domain, self.setting.cliques
        sizes = [int(np.prod([domain[name] for name in clique])) for clique in cliques]
        return dict(zip(cliques, np.split(self.values, np.cumsum(sizes)[:-1]), strict=True))

    def measured(self, place: int) -> dict[Clique, Array]:
        """What is known in the round at that place."""
        cliques = self.setting.cliques[: self.setting.rounds[place]]
        return {clique: self.tables[clique] for clique in cliques}

    def loss(self, place: int, marginal: Marginal) -> float:
        """The loss of marginals in the round at that place."""
        errors = (marginal(c).ravel() - table for c, table in self.measured(place).items())
        return sum(float(e @ e) for e in errors) / (2 * self.setting.stddev**2)

    def reached(self, place: int, loss: float) -> bool:
        """Whether that loss ends the round at that place."""
        return loss <= self.setting.goals[place]

    def with_goals(self, goals: Sequence[float]) -> FitProblem:
        """The same with the losses to reach."""
        return FitProblem(replace(self.setting, goals=tuple(goals)), self.values)

    def save(self, path: Path) -> None:
        """Write a problem file."""
        np.savez(path, setting=np.array(json.dumps(asdict(self.setting))), values=self.values)


def load(path: Path) -> FitProblem:
    """Read a problem file."""
    with np.load(path, allow_pickle=False) as archive:
        raw: dict[str, Any] = json.loads(str(archive["setting"]))
        values: Array = archive["values"]
    lists = {name: tuple(raw[name]) for name in ("rounds", "goals")}
    cliques = tuple(tuple(clique) for clique in raw["cliques"])
    return FitProblem(Setting(**{**raw, **lists, "cliques": cliques}), values)


def counts(
    columns: Mapping[str, NDArray[np.int64]], domain: Mapping[str, int], clique: Sequence[str]
) -> Array:
    """How many records each cell of a clique holds, as a flat table."""
    shape = tuple(domain[name] for name in clique)
    cells = np.ravel_multi_index(tuple(columns[name] for name in clique), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).astype(np.float64)


def gaussian(exact: Array, stddev: float) -> Array:
    """The counts with Gaussian noise."""
    return exact + np.random.default_rng(0).normal(0.0, stddev, len(exact))


def laplace(exact: Array, stddev: float) -> Array:
    """The counts with Laplace noise."""
    return exact + np.random.default_rng(0).laplace(0.0, stddev / np.sqrt(2), len(exact))


def chain(n_attributes: int, stddev: float, size: int = CHAIN_SIZE) -> FitProblem:
    """Every adjacent triple of a Markov chain whose values are copied or drawn anew."""
    names = [f"x{place}" for place in range(n_attributes)]
    domain = dict.fromkeys(names, size)
    columns = dict(zip(names, _chain_columns(n_attributes, size), strict=True))
    cliques = tuple(tuple(names[place : place + 3]) for place in range(n_attributes - 2))
    exact = np.concatenate([counts(columns, domain, clique) for clique in cliques])
    setting = Setting(domain, cliques, stddev, float(CHAIN_RECORDS), (len(cliques),))
    return FitProblem(setting, gaussian(exact, stddev))


def _chain_columns(n_attributes: int, size: int) -> list[NDArray[np.int64]]:
    """The records of the chain, an attribute at a time."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(size, size=CHAIN_RECORDS)]
    for _ in range(n_attributes - 1):
        # The lower of two draws, so that the values are not equally likely.
        fresh = rng.integers(size, size=(2, CHAIN_RECORDS)).min(axis=0)
        copied = rng.random(CHAIN_RECORDS) < CHAIN_COPIED
        columns.append(np.where(copied, columns[-1], fresh))
    return columns


class Fit(Protocol):
    """One side's way to fit a problem."""

    def run(self) -> list[Marginal]:
        """Fit all rounds to their goals; for each the way to ask for a marginal."""


def main(make: Callable[[FitProblem, str], Fit], methods: tuple[str, ...]) -> None:
    """Fit one problem and print one JSON object: seconds and the losses reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=["whole", "warm"])
    parser.add_argument("problem", type=Path, help="problem file")
    parser.add_argument("--method", choices=methods, default=methods[0])
    options = parser.parse_args()
    problem = load(options.problem)
    fit = make(problem, options.method)
    outcomes = fit.run()
    seconds = harness.seconds_since_start()
    if options.task == "warm":
        began = time.perf_counter()
        outcomes = fit.run()
        seconds = time.perf_counter() - began
    losses = [problem.loss(place, marginal) for place, marginal in enumerate(outcomes)]
    print(json.dumps({"seconds": seconds, "losses": losses}))
