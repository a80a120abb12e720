"""The peer's side of the scaling experiment: mbi 2.0.0, on JAX, in an environment of its own.

Prints, as JSON, the seconds of an iteration once everything is compiled, and of everything before.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np

with warnings.catch_warnings():  # the peer warns, as it is imported, of the setting made below
    warnings.simplefilter("ignore")
    import jax
    import mbi

jax.config.update("jax_enable_x64", True)


def main() -> None:
    """A chain of triples, measured, and fitted by mirror descent."""
    n_attributes, size, n_records, steps = (int(text) for text in sys.argv[1:5])
    domain = mbi.Domain.fromdict({f"x{i}": size for i in range(n_attributes)})
    rng = np.random.default_rng(0)
    measured = []
    for i in range(n_attributes - 2):
        counts = rng.multinomial(n_records, np.full(size**3, size**-3.0)).astype(float)
        measured.append(mbi.LinearMeasurement(counts, (f"x{i}", f"x{i + 1}", f"x{i + 2}"), 1.0))
    began, shown = time.perf_counter(), []

    def note(marginals: object) -> None:
        jax.block_until_ready(marginals)
        shown.append(time.perf_counter())

    mbi.estimation.MirrorDescent().estimate(
        domain, measured, known_total=float(n_records), iters=steps, callback_fn=note
    )
    each = (shown[-1] - shown[0]) / (len(shown) - 1) / (steps / len(shown))
    print(json.dumps({"seconds": each, "before": shown[0] - began, "shown": len(shown)}))


if __name__ == "__main__":
    main()
