"""Time per iteration as attributes are added: a chain of triples, ten values each.

Ours is the paper's Algorithm 2 on the junction tree; the peer's is its mirror descent. The two
ways on the full table take memory that grows tenfold with each attribute.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from context import Cell, Context, Experiment, Rows

from juncture.errors import ModelTooLarge
from juncture.fit.estimation import estimate
from juncture.fit.solvers.dual_averaging import DualAveraging
from juncture.mechanisms.least_squares import full_least_squares
from juncture.mechanisms.multiplicative_weights import MultiplicativeWeights, refuse_large
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement

SIZE, N_RECORDS, STEPS = 10, 10_000, 25
OURS, PEER, WEIGHTS, LSMR = "juncture", "mbi 2.0.0", "multiplicative weights", "LSMR"
ATTRIBUTES = (3, 5, 7, 10, 30, 100, 300, 1000, 3000, 10_000)
# Beyond these, tables do not fit, or waiting is over.
MOST = {OURS: 10_000, PEER: 10_000, WEIGHTS: 10, LSMR: 10}
# One measurement is solved by LSMR in one step, and few in few: there would be nothing to time.
LEAST, LSMR_STEPS = {LSMR: 5}, 2
PEER_STEPS, PEER_LIMIT_S = 150, 150


def cells(context: Context) -> list[Cell]:
    """One for each method and number of attributes."""
    methods = [OURS, WEIGHTS, LSMR] + ([PEER] if context.peer_python else [])
    sizes = (3, 5) if context.quick else ATTRIBUTES
    return [
        {"method": method, "attributes": n}
        for method in methods
        for n in sizes
        if LEAST.get(method, 0) <= n <= MOST[method]
    ]


def run(cell: Cell, context: Context) -> Rows:
    """Time an iteration, and what comes before the first."""
    if cell["method"] == PEER:
        return [{**cell, **_peer(cell["attributes"], context)}]
    domain = Domain({f"x{i}": SIZE for i in range(cell["attributes"])})
    rng, measured = np.random.default_rng(0), []
    for i in range(len(domain) - 2):
        counts = rng.multinomial(N_RECORDS, np.full(SIZE**3, SIZE**-3.0)).astype(float)
        measured.append(Measurement((f"x{i}", f"x{i + 1}", f"x{i + 2}"), counts, stddev=1.0))
    work = {OURS: _ours, WEIGHTS: _weights, LSMR: _lsmr}[cell["method"]]
    try:
        steps = LSMR_STEPS if cell["method"] == LSMR else STEPS
        return [{**cell, **_timed(work(domain, measured), steps)}]
    except ModelTooLarge as reason:
        return [{**cell, "reason": str(reason)}]


def _timed(work: Callable[[int], None], steps: int) -> dict[str, float]:
    """From runs of few and of more steps; the least of three each, as other work only adds."""
    work(1)
    short, long = (min(_seconds(work, n) for _ in range(3)) for n in (1, 1 + steps))
    return {"seconds": max(long - short, 0.0) / steps, "before": short}


def _seconds(work: Callable[[int], None], steps: int) -> float:
    began = time.perf_counter()
    work(steps)
    return time.perf_counter() - began


def _ours(domain: Domain, measured: list[Measurement]) -> Callable[[int], None]:
    def work(steps: int) -> None:
        estimate(
            domain, measured, total=float(N_RECORDS), solver=DualAveraging(report_every=10**9),
            max_steps=steps, tolerance=0.0,
        )  # fmt: skip

    return work


def _weights(domain: Domain, measured: list[Measurement]) -> Callable[[int], None]:
    refuse_large(domain, tuple(domain))

    def work(steps: int) -> None:
        MultiplicativeWeights(domain, float(N_RECORDS), factored=False).fit(measured, steps)

    return work


def _lsmr(domain: Domain, measured: list[Measurement]) -> Callable[[int], None]:
    refuse_large(domain, tuple(domain))

    def work(steps: int) -> None:
        full_least_squares(domain, measured, max_steps=steps)

    return work


def _peer(n_attributes: int, context: Context) -> dict[str, object]:
    script = Path(__file__).with_name("scaling_peer.py")
    numbers = [str(n) for n in (n_attributes, SIZE, N_RECORDS, PEER_STEPS)]
    command = [str(context.peer_python), str(script), *numbers]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PEER_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"reason": f"not done after {PEER_LIMIT_S} s"}
    if done.returncode != 0:
        return {"reason": f"failed: {done.stderr.strip().splitlines()[-1][:200]}"}
    found = json.loads(done.stdout.splitlines()[-1])
    return {"seconds": found["seconds"], "before": found["before"]}


EXPERIMENT = Experiment("scaling", "Time per iteration as attributes are added", cells, run, True)
