"""What intervals cost, and how wide they are beside what is proved.

    python bench/intervals.py             the time of replicas, and of answers with intervals
    python bench/intervals.py --bounds    intervals beside bounds, on marginals of adaptive releases

On Adult's columns of at most 50 values, with epsilon 1 and simulated noise: neighbouring pairs for
the times, all pairs for the bounds. Times are seconds of processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from juncture import Budget, Domain, Ledger, Neighbours, Release, Workload, estimate
from juncture.engine.particles import Particles
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.raking import Raking
from juncture.mechanisms.checked import prepare_checked
from juncture.private.samples import adult_codes, adult_domain
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable

MAX_SIZE, N_RUNS, CHECK = 50, 2, 0.05
BUDGET = Budget(epsilon=1.0, delta=1e-9)


def load_adult() -> CodedTable:
    """Adult's small columns."""
    sizes, codes = adult_domain(), adult_codes()
    kept = [i for i, (name, n) in enumerate(sizes.items()) if n <= MAX_SIZE and name != "education"]
    names = list(sizes)
    domain = Domain({names[i]: sizes[names[i]] for i in kept})
    return CodedTable(domain, {names[i]: codes[:, i].astype(np.int64) for i in kept})


def make_release(source: CodedTable, mechanism: str, seed: int, workload: Workload) -> Release:
    """A release with a check."""
    n = source.exact_n_records
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger", BUDGET, Neighbours.REPLACE)
        curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
        run = prepare_checked(mechanism, BUDGET, CHECK, workload, Neighbours.REPLACE, n)
        return run(curator).release()


def time_it(action: Callable[[], object], repeats: int = 1) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    for _ in range(repeats):
        action()
    return (time.process_time() - start) / repeats


def print_costs(source: CodedTable) -> None:
    """Replicas beside one fit, answers with intervals beside answers alone."""
    print(f"{'':8}{'one fit':>10}{'replicas':>10}{'ratio':>8}   with intervals / alone:")
    print(f"{'':36}{'pair':>8}{'column':>8}{'sql':>8}")
    workload = Workload.of_marginals(source.domain, list(pairwise(source.domain)))
    for mechanism in ("hdmm", "aim", "tiers"):
        made = make_release(source, mechanism, 0, workload)
        fit = time_it(lambda made=made: fit_again(made))  # type: ignore[misc]
        replicas = time_it(lambda made=made: made.uncertainty.replicas)  # type: ignore[misc]
        shown = "".join(f"{ratio:8.1f}" for ratio in compare_answers(made))
        print(f"{mechanism:8}{fit:10.3f}{replicas:10.3f}{replicas / fit:8.1f}{'':2}{shown}")


def fit_again(made: Release) -> None:
    """One fit to the end, as a replica has it."""
    model = made.model
    estimate(
        model.domain, made.measurements, total=model.total, plan=model.plan, oracle=model.oracle,
        solver=Raking() if isinstance(model.oracle, Particles) else Accelerated(),
    )  # fmt: skip


def compare_answers(made: Release) -> Iterator[float]:
    """How many times as long a pair, a column and SQL take with intervals."""
    pair = next(each.clique for each in made.measurements if len(each.clique) > 1)
    query = f'SELECT "{pair[0]}", COUNT(*) FROM t GROUP BY "{pair[0]}"'
    made.project(pair, interval=0.95)  # what is made once is made now
    asks: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: made.project(pair), lambda: made.project(pair, interval=0.95)),
        (lambda: made.project(pair[:1]), lambda: made.project(pair[:1], interval=0.95)),
        (lambda: made.sql(query), lambda: made.sql(query, interval=0.95)),
    ]
    for alone, with_interval in asks:
        alone()
        yield time_it(with_interval, 20) / max(time_it(alone, 20), 1e-9)


def list_bounds(source: CodedTable, mechanism: str) -> Iterator[tuple[str, list[float]]]:
    """For each marginal of the workload: its support, and what is known of it."""
    workload = Workload.all_marginals(source.domain, 2)
    for seed in range(N_RUNS):
        made = make_release(source, mechanism, seed, workload)
        n = made.model.total
        truth = source.exact_counts(made.workload)
        for bound, table in zip(made.bound_errors(), truth, strict=True):
            off = np.abs(bound.table.values - table.values)
            interval = made.project(bound.clique, interval=0.95)
            inside = (interval.lower <= table.values) & (table.values <= interval.upper)
            row = [
                float(off.sum()) / n, bound.error / n, float(off.sum() <= bound.error),
                float(np.median(off)), bound.cell_error, float(np.median(interval.half_width)),
                float(inside.mean()),
            ]  # fmt: skip
            yield str(bound.support), row


def print_bounds(source: CodedTable) -> None:
    """Medians over marginals, by mechanism and by support."""
    print("medians over marginals; errors of a marginal are sums over its cells, over all records")
    print(f"{'':18}{'marginals':>10}{'error':>9}{'bound':>9}{'held':>7}"
          f"{'cell: error':>13}{'bound':>9}{'interval':>10}{'inside':>8}")  # fmt: skip
    for mechanism in ("aim", "mwem", "tiers"):
        rows = list(list_bounds(source, mechanism))
        for support in dict.fromkeys(support for support, _ in rows):
            own = np.array([row for each, row in rows if each == support])
            error, bound, _, cell, cell_bound, width, _ = np.median(own, axis=0)
            held, inside = own[:, 2].mean(), own[:, 6].mean()
            print(f"{mechanism:8}{support:10}{len(own):10}{error:9.3f}{bound:9.3f}{held:7.1%}"
                  f"{cell:13.1f}{cell_bound:9.0f}{width:10.1f}{inside:8.1%}")  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bounds", action="store_true")
    source = load_adult()
    (print_bounds if parser.parse_args().bounds else print_costs)(source)


if __name__ == "__main__":
    main()
