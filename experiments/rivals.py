"""Mechanisms that are held against each other: ours by their names, and dpsynth's."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from all_pairs import Stopwatch, Table, find_peak_mb
from context import Context
from numpy.typing import NDArray
from paper_data import make_source

from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.registry import make_mechanism, offers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.tables.domain import Clique
from juncture.tables.workload import Workload

DELTA = 1e-6
# The one that others are set beside.
REFERENCE = "aim"
OURS = ("tiers", "aim", "mst", "mwem", "direct")
_PEER = "dpsynth "
PEERS = (f"{_PEER}aim", f"{_PEER}mst", f"{_PEER}swift")
# A peer that is not done by then is stopped, and its row says so.
PEER_LIMIT_S = 3600


class Synthesis(NamedTuple):
    """What a mechanism made of a table."""

    records: NDArray[np.integer]
    """Synthetic ones, as many as the table's: a row of codes for each."""
    answer: Callable[[Clique], Table]
    """The model's table of a clique, where it was asked for."""
    busy: float
    """Seconds of all processors, until the records are there."""
    wall: float
    """Seconds by the clock."""
    peak_mb: int
    measured: int
    """How many measurements were made."""
    draw: Callable[[int], NDArray[np.integer]] | None = None
    """As many other records as one likes; a peer gives those alone that it made."""


class NotDone(Exception):
    """A peer could not run to its end; the message says why."""


def list_mechanisms(context: Context) -> list[str]:
    """Ours that are offered, and dpsynth's where it is installed."""
    ours = [name for name in OURS if name in offers()]
    return [*ours, *(PEERS if context.dpsynth_python else ())]


def synthesize(
    mechanism: str,
    codes: NDArray[np.integer],
    workload: Workload,
    epsilon: float,
    *,
    seed: int,
    context: Context,
    asked: Sequence[Clique] = (),
) -> Synthesis:
    """Run a mechanism on records that are added or removed, and draw as many synthetic ones.

    - `asked`: the cliques whose tables are wanted of a peer's model.
    """
    budget = Budget(epsilon=epsilon, delta=DELTA)
    if mechanism in PEERS:
        assert context.dpsynth_python is not None
        name = mechanism.removeprefix(_PEER)
        return _run_peer(name, codes, workload, budget, seed, context.dpsynth_python, asked)
    return run_mechanism(make_mechanism(mechanism, budget), codes, workload, seed)


def run_mechanism(
    mechanism: Mechanism, codes: NDArray[np.integer], workload: Workload, seed: int
) -> Synthesis:
    """Run one of ours with simulated noise, and draw as many records as there are."""
    source = make_source(workload.domain, codes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger"
        ledger = Ledger.create(file, mechanism.budget, Neighbours.ADD_OR_REMOVE)
        curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
        watch = Stopwatch()
        result = mechanism.run(curator, workload)
    model = result.model
    assert model is not None

    def draw(n: int) -> NDArray[np.integer]:
        drawn = model.synthesize(n, rng=seed)
        return np.array([drawn[name] for name in workload.domain]).T

    return Synthesis(
        records=draw(len(codes)),
        answer=lambda clique: np.asarray(model.project(clique).values),
        busy=watch.busy,
        wall=watch.wall,
        peak_mb=find_peak_mb(),
        measured=len(result.measurements),
        draw=draw,
    )


def _run_peer(
    name: str,
    codes: NDArray[np.integer],
    workload: Workload,
    budget: Budget,
    seed: int,
    python: Path,
    asked: Sequence[Clique],
) -> Synthesis:
    """In a process of its own; see `peers.py`."""
    request = {
        "domain": dict(workload.domain), "mechanism": name, "workload": workload.cliques,
        "rho": find_rho(budget), "seed": seed, "asked": list(asked),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        problem, made = Path(folder, "problem.npz"), Path(folder, "made.npz")
        np.savez(problem, allow_pickle=False, request=json.dumps(request), codes=codes)
        script = Path(__file__).with_name("peers.py")
        command = [str(python), str(script), str(problem), str(made)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=PEER_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            raise NotDone(f"not done after {PEER_LIMIT_S:,} s") from None
        if done.returncode != 0:
            last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
            raise NotDone(f"failed: {last[:200]}")
        report = json.loads(done.stdout.splitlines()[-1])
        with np.load(made) as kept:
            records = kept["records"]
            tables = {clique: kept[f"table{index}"] for index, clique in enumerate(asked)}
    return Synthesis(
        records=records,
        answer=tables.__getitem__,
        busy=report["busy"],
        wall=report["wall"],
        peak_mb=report["peak_mb"],
        measured=report["measured"],
    )


def find_rho(budget: Budget) -> float:
    """What the budget buys in zero-concentrated privacy: the same for all."""
    return float(budget.price.cost.rho)
