"""Fits by pseudo-marginals, with their errors along the way: the relaxed oracle, and the peer's."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from all_pairs import Stopwatch, Table, answer_from, find_error, find_loss, list_triples
from context import Rows
from paper_data import DataSet
from relaxed import fit_relaxed

from juncture.tables.measurement import Measurement

_PEER_LIMIT_S = 280


def run_relaxed(
    data: DataSet, measured: Sequence[Measurement], total: float, steps: Sequence[int]
) -> Rows:
    """The figures of our relaxed fit after some steps."""
    points, watch = [], Stopwatch()
    for point in fit_relaxed(data.domain, measured, total):
        if point.step in steps:
            times = {"step": point.step, "wall": watch.wall, "busy": watch.busy}
            points.append((times, point.tables))
        if point.step >= max(steps):
            break
    return [{**times, **_judge(data, measured, tables, total)} for times, tables in points]


def run_peer(
    data: DataSet,
    measured: Sequence[Measurement],
    total: float,
    steps: Sequence[int],
    *,
    length: int,
    python: Path,
) -> Rows:
    """The figures of the peer's approximate fit after some steps, in a process of its own."""
    request = {
        "domain": dict(data.domain), "cliques": [m.clique for m in measured], "total": total,
        "stddev": float(measured[0].stddev.max()), "length": length, "steps": list(steps),
        "limit": _PEER_LIMIT_S,
    }  # fmt: skip
    tables = {f"table{index}": m.values for index, m in enumerate(measured)}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "problem.npz"), Path(folder, "fits.npz")
        np.savez(source, allow_pickle=False, request=json.dumps(request), **tables)
        script = Path(__file__).with_name("any_width_peer.py")
        command = [str(python), str(script), str(source), str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return [{"reason": f"failed: {done.stderr.strip().splitlines()[-1][:200]}"}]
        report = json.loads(done.stdout.splitlines()[-1])
        with np.load(target) as kept:
            fits = [
                [kept[f"{point['step']}-{index}"] for index in range(len(measured))]
                for point in report["points"]
            ]
    if not fits:
        return [{"reason": f"no step after {_PEER_LIMIT_S} s"}]
    return [
        {**point, "peak_mb": report["peak_mb"], **_judge(data, measured, fit, total)}
        for point, fit in zip(report["points"], fits, strict=True)
    ]


def _judge(
    data: DataSet, measured: Sequence[Measurement], tables: Sequence[Table], total: float
) -> dict[str, float]:
    """The loss and the errors of pseudo-marginals, which need not sum to one."""
    shares = [table / table.sum() for table in tables]
    cliques = [m.clique for m in measured]
    answer = answer_from(data.domain, dict(zip(cliques, shares, strict=True)))
    return {
        "loss": find_loss(measured, shares, total),
        "pair_error": find_error(data, cliques, answer),
        "triple_error": find_error(data, list_triples(data.domain), answer),
    }
