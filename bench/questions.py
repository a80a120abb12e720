"""What questions across cliques take: pairs asked one by one and together, and the memory.

    python bench/questions.py                     networks made at random, and a grid
    python bench/questions.py alarm.npz ...       networks that `bif.Network.save` wrote

A ratio above one says how many times faster the pairs are together. The memory is that of the model
(its plan), what `Plan` promises for a question, and the largest use while one far pair is asked of
a model that was not asked before.
"""

from __future__ import annotations

import argparse
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import bif
import numpy as np

from juncture import Domain, Factor, Model

Pair = tuple[str, str]
N_PAIRS, MAX_SINGLY, N_REPEATS = 50, 300, 5
# Some networks have too many pairs to ask about all of them.
MAX_TOGETHER = 30_000


def make_network(n: int, max_size: int, n_parents: int, window: int, seed: int) -> Model:
    """A Bayesian network in which the parents of an attribute are among the last ones before it."""
    rng = np.random.default_rng(seed)
    sizes = {f"x{i}": int(rng.integers(2, max_size + 1)) for i in range(n)}
    names, domain = list(sizes), Domain(sizes)
    factors = []
    for i, name in enumerate(names):
        near = names[max(0, i - window) : i]
        count = min(len(near), int(rng.integers(1, n_parents + 1)))
        parents = [near[int(k)] for k in rng.choice(len(near), count, replace=False)]
        scope = domain.project(domain.canonical([*parents, name]))
        factors.append(Factor(scope, rng.normal(0, 1, scope.shape)))
    return Model.of_potentials(domain, factors)


def make_grid(side: int) -> Model:
    """Binary attributes on a square grid, each joined to its neighbours."""
    rng = np.random.default_rng(0)
    domain = Domain({f"x{i}y{j}": 2 for i in range(side) for j in range(side)})
    across = [(f"x{i}y{j}", f"x{i + 1}y{j}") for i in range(side - 1) for j in range(side)]
    down = [(f"x{i}y{j}", f"x{i}y{j + 1}") for i in range(side) for j in range(side - 1)]
    scopes = [domain.project(pair) for pair in (*across, *down)]
    return Model.of_potentials(domain, [Factor(s, rng.normal(0, 0.5, s.shape)) for s in scopes])


def load_network(path: Path) -> Model:
    """The model of a stored Bayesian network."""
    network = bif.load(path)
    domain, factors = Domain(network.sizes), []
    for name, table in network.tables.items():
        scope = domain.project((*network.parents[name], name))
        with np.errstate(divide="ignore"):
            factors.append(Factor(scope, np.log(table)))
    return Model.of_potentials(domain, factors)


def list_models(paths: Sequence[Path]) -> Iterator[tuple[str, Callable[[], Model]]]:
    """Names of models with what makes them."""
    if paths:
        yield from ((path.stem, lambda path=path: load_network(path)) for path in paths)
        return
    yield "small", lambda: make_network(27, 5, 2, 8, 0)
    yield "binary", lambda: make_network(220, 2, 3, 12, 1)
    yield "large values", lambda: make_network(40, 16, 2, 6, 2)
    yield "grid 12x12", lambda: make_grid(12)
    yield "grid 20x20", lambda: make_grid(20)


def ask_singly(model: Model, pairs: Sequence[Pair]) -> None:
    """Ask about one pair after the other."""
    for pair in pairs:
        model.project(pair)


def ask_together(model: Model, pairs: Sequence[Pair]) -> None:
    """Ask about all pairs in one call."""
    for _ in model.project_many(pairs):
        pass


def forget(model: Model) -> Model:
    """The same model, with nothing kept of what was asked of it."""
    return Model(replace(model.distribution))


def measure(
    ask: Callable[[Model, Sequence[Pair]], None], model: Model, pairs: Sequence[Pair], *, cold: bool
) -> float:
    """Milliseconds a pair, the best of several rounds; a cold model has answered nothing."""
    best, spent = float("inf"), 0.0
    for _ in range(N_REPEATS):
        model = forget(model) if cold else model
        began = time.perf_counter()
        ask(model, pairs)
        best, spent = min(best, time.perf_counter() - began), spent + time.perf_counter() - began
        if spent > 3:
            break
    return 1e3 * best / len(pairs)


def measure_peak(model: Model, pair: Pair) -> tuple[int, float]:
    """The largest number of bytes in use beside the model, and the seconds, for one question."""
    fresh = forget(model)
    began = time.perf_counter()
    fresh.project(pair)
    seconds = time.perf_counter() - began
    fresh = forget(model)
    tracemalloc.start()
    fresh.project(pair)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, seconds


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("--memory-only", action="store_true", help="one far pair of each model")
    options = parser.parse_args()
    print(f"{'model':14} {'plan':>8} {'promised':>9} {'peak':>8} {'first':>8}  ", end="")
    print(f"{'50 cold: one by one, together':>31} {'50 warm':>24} {'all':>26}")
    for name, make in list_models(options.networks):
        model = make()
        names = list(model.domain)
        far = (names[0], names[-1])
        peak, seconds = measure_peak(model, far)
        plan = model.plan
        print(f"{name:14} {plan.size_bytes / 1e6:6.1f}MB {plan.tree_bytes / 1e6:7.1f}MB", end="")
        print(f" {peak / 1e6:6.1f}MB {1e3 * seconds:6.0f}ms ", end="", flush=True)
        every = list(combinations(names, 2))
        random.Random(0).shuffle(every)
        for pairs, cold in ((every[:N_PAIRS], True), (every[:N_PAIRS], False), (every, False)):
            if options.memory_only:
                break
            alone = measure(ask_singly, model, pairs[:MAX_SINGLY], cold=cold)
            together = measure(ask_together, model, pairs[:MAX_TOGETHER], cold=cold)
            print(f" {alone:8.3f} {together:8.3f} x{alone / together:5.2f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
