"""The peer's side of fits without a tree: mbi 2.0.0's approximate oracle, on JAX.

Runs in an environment of its own. Reads measurements from a file, fits them by the peer's mirror
descent with convex generalised belief propagation, and writes its pseudo-marginals after some
steps to another; prints, as JSON, the seconds until each. The times count from the call of the
peer's estimator, so they hold what it compiles.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

with warnings.catch_warnings():  # the peer warns, as it is imported, of the setting made below
    warnings.simplefilter("ignore")
    import jax
    import mbi
    from mbi.approximate_oracles import ApproxMirrorDescent

jax.config.update("jax_enable_x64", True)


class TimeIsUp(Exception):
    """The limit of time is reached."""


def main() -> None:
    """Fit, and keep what is shown after each of the steps asked for."""
    source, target = sys.argv[1:3]
    with np.load(source) as arrays:
        request = json.loads(str(arrays["request"]))
        noisy = [arrays[f"table{index}"] for index in range(len(request["cliques"]))]
    domain, stddev = mbi.Domain.fromdict(request["domain"]), request["stddev"]
    cliques = [tuple(clique) for clique in request["cliques"]]
    measured = [
        mbi.LinearMeasurement(table, clique, stddev)
        for clique, table in zip(cliques, noisy, strict=True)
    ]
    # A natural length: at 1, a residual of one standard deviation moves a potential by stddev / n.
    length = request["length"] * stddev**2 / request["total"]
    began, busy = time.perf_counter(), time.process_time()
    points: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    steps = 0

    def note(marginals: Any) -> None:  # noqa: ANN401
        nonlocal steps
        steps += 1
        wall = time.perf_counter() - began
        if steps in request["steps"]:
            jax.block_until_ready(marginals)
            wall = time.perf_counter() - began
            points.append({"step": steps, "wall": wall, "busy": time.process_time() - busy})
            for index, clique in enumerate(cliques):
                kept[f"{steps}-{index}"] = np.asarray(marginals[clique].values)
        if wall > request["limit"]:
            raise TimeIsUp

    with suppress(TimeIsUp):
        ApproxMirrorDescent(stepsize=length).estimate(
            domain, measured, known_total=request["total"], iters=max(request["steps"]),
            callback_fn=note,
        )  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    np.savez(target, **kept)
    print(json.dumps({"points": points, "peak_mb": peak}))


if __name__ == "__main__":
    main()
