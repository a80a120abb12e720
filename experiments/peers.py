"""The peer's side of adaptive mechanisms: dpsynth's AIM, MST and SWIFT, on JAX.

Runs in an environment of its own, where dpsynth is installed. Reads a table of codes and a workload
from a file, runs one mechanism, and writes its synthetic records and its model's tables of the
cliques asked for to another; prints, as JSON, the seconds and the memory that the mechanism took.
What it compiles counts, what the tables take does not.

dpsynth's AIM chooses as if its score were monotonic, which doubles the exponent. The score is a
distance: a record more raises some candidates' and lowers others'. Such a run can cost 1.27 times
what it is charged, so here the choice is made with the exponent that the charge pays for.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

with warnings.catch_warnings():  # it warns of settings that are its own defaults
    warnings.simplefilter("ignore")
    import mbi
    from dpsynth import __version__
    from dpsynth import discrete_mechanisms as peer
    from dpsynth.discrete_mechanisms import common

CONFIGS: dict[str, Callable[[list[tuple[str, ...]]], Any]] = {
    "aim": lambda workload: peer.AIMConfig(workload=workload),
    "mst": lambda _: peer.MSTConfig(),  # it takes no workload
    "swift": lambda workload: peer.SWIFTConfig(workload=workload),
}
# Tables that are asked for at once: each is compiled on its own.
_CHUNK = 50


def main() -> None:
    """Run the mechanism, and keep its records and tables."""
    source, target = sys.argv[1:3]
    with np.load(source) as arrays:
        request, codes = json.loads(str(arrays["request"])), arrays["codes"]
    names = list(request["domain"])
    domain = mbi.Domain.fromdict(request["domain"])
    data = mbi.Dataset(dict(zip(names, codes.T, strict=True)), domain)
    repair_choice()
    config = CONFIGS[request["mechanism"]]([tuple(each) for each in request["workload"]])
    # By the same rho as every other mechanism: its own search for it fails for SWIFT.
    ready = peer.DiscreteConfig(mechanism=config).configure(zcdp_rho=request["rho"])
    began, busy = time.perf_counter(), time.process_time()
    result = ready(np.random.default_rng(request["seed"]), data)
    report = {
        "wall": time.perf_counter() - began,
        "busy": time.process_time() - busy,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "measured": len(result.measurements),
        "version": __version__,
    }
    records = result.synthetic_data.to_dict()
    kept = {"records": np.array([np.asarray(records[name]) for name in names]).T}
    asked = [tuple(clique) for clique in request["asked"]]
    for first in range(0, len(asked), _CHUNK):
        chunk = asked[first : first + _CHUNK]
        tables = mbi.marginal_oracles.bulk_variable_elimination(
            result.model.potentials, chunk, total=result.model.total
        )
        for index, clique in enumerate(chunk, first):
            kept[f"table{index}"] = np.asarray(tables[clique].values)
    np.savez(target, allow_pickle=False, **kept)
    print(json.dumps(report))


def repair_choice() -> None:
    """Have every choice made with the exponent of a score that is not monotonic."""
    original = common.exponential_mechanism

    def choose(
        scores: Any,  # noqa: ANN401
        epsilon: float,
        sensitivity: float,
        rng: np.random.Generator,
        monotonic: bool = False,  # noqa: ARG001
    ) -> int:
        return int(original(scores, epsilon, sensitivity, rng, monotonic=False))

    common.exponential_mechanism = choose


if __name__ == "__main__":
    main()
