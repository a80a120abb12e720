"""What questions across cliques take: pairs asked one by one and together, and the memory.

    python bench/questions.py                     networks made at random, and a grid
    python bench/questions.py alarm.npz ...       networks that `bif.Network.save` wrote

A ratio above one says how many times faster the pairs are together. The memory is that of the model
(its plan), that of the tables of all cliques, and what one far pair really needs when asked first.
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
Ask = Callable[[Model, Sequence[Pair]], Iterator[Factor]]
N_PAIRS, N_ROUNDS, MAX_SECONDS = 50, 10, 5.0


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


def ask_singly(model: Model, pairs: Sequence[Pair]) -> Iterator[Factor]:
    """Ask about one pair after the other."""
    return (model.project(pair) for pair in pairs)


def ask_together(model: Model, pairs: Sequence[Pair]) -> Iterator[Factor]:
    """Ask about all pairs in one call."""
    return model.project_many(pairs)


def forget(model: Model) -> Model:
    """The same model, with nothing kept of what was asked of it."""
    return Model(replace(model.distribution))


def measure(ask: Ask, model: Model, pairs: Sequence[Pair], *, cold: bool) -> float:
    """Milliseconds a pair, the best of some rounds; a cold model has answered nothing before.

    What takes too long is stopped: then the time is that of the pairs answered so far. A few pairs
    together are not stopped, for the first answer may have taken the work for all.
    """
    can_stop = ask is ask_singly or len(pairs) > N_PAIRS
    best, spent = float("inf"), 0.0
    while spent < MAX_SECONDS:
        asked = forget(model) if cold else model
        began, n_answered, passed = time.perf_counter(), 0, 0.0
        for _ in ask(asked, pairs):
            n_answered += 1
            passed = time.perf_counter() - began
            if can_stop and passed > MAX_SECONDS:
                break
        best, spent = min(best, passed / n_answered), spent + max(passed, MAX_SECONDS / N_ROUNDS)
    return 1e3 * best


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
    print(f"{'':46}   milliseconds a pair: one by one, together, ratio")
    print(f"{'model':14} {'plan':>6} {'tables':>7} {'peak':>6} MB {'first':>6} ms ", end="")
    print("".join(f" {title:>24}" for title in ("50 pairs, new model", "50 pairs", "all pairs")))
    for name, make in list_models(options.networks):
        model = make()
        every = list(combinations(model.domain, 2))
        mixed = random.Random(0).sample(every, len(every))
        few = mixed[:N_PAIRS]
        peak, seconds = measure_peak(model, (every[0][0], every[-1][1]))
        sizes = [model.plan.size_bytes / 1e6, model.plan.tree_bytes / 1e6, peak / 1e6]
        print(f"{name:14} {sizes[0]:6.1f} {sizes[1]:7.1f} {sizes[2]:6.1f}    ", end="")
        print(f"{1e3 * seconds:6.0f}    ", end="", flush=True)
        tasks = [(few, few, True), (few, few, False), (mixed, every, False)]
        for singly, together, cold in [] if options.memory_only else tasks:
            alone = measure(ask_singly, model, singly, cold=cold)
            joint = measure(ask_together, model, together, cold=cold)
            print(f" {alone:8.3f} {joint:8.3f} {alone / joint:6.2f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
