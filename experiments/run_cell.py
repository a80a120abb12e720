"""One cell of an experiment, in a process of its own: its rows as JSON, with peak memory."""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from pathlib import Path


def main() -> None:
    """Read what to run from the command line; the last line of output is the answer."""
    request = json.loads(sys.argv[1])
    if request["processor"] is not None and hasattr(os, "sched_setaffinity"):
        mine = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {mine[request["processor"] % len(mine)]})
    # Imported only now, when the libraries see how many processors they may use.
    from catalogue import EXPERIMENTS  # noqa: PLC0415
    from context import Context  # noqa: PLC0415

    context = Context(
        folder=Path(request["folder"]) if request["folder"] else None,
        quick=request["quick"],
        peer_python=Path(request["peer_python"]) if request["peer_python"] else None,
        dpsynth_python=Path(request["dpsynth_python"]) if request["dpsynth_python"] else None,
    )
    experiment = EXPERIMENTS[request["experiment"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = experiment.run(request["cell"], context)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # A row may know better: the peak of another process, or before errors were computed.
    print(json.dumps([{**row, "peak_mb": row.get("peak_mb", round(peak))} for row in rows]))


if __name__ == "__main__":
    main()
