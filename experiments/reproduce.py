"""The paper's tables and figures, and what goes beyond them.

python experiments/reproduce.py                       all experiments, then the page
python experiments/reproduce.py grid sweep            some of them
python experiments/reproduce.py --data FOLDER         the paper's other data sets too
python experiments/reproduce.py --quick --out FOLDER  a short run on a small table
python experiments/reproduce.py adaptive --only data=adult-aim --only seed=0     some cells alone

What was run before is not run again: delete a file of results to have it made anew. Ctrl-C loses
no more than the cell that is running. Seeds are fixed; noise is simulated, so nothing here is a
release.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import Any

from catalogue import EXPERIMENTS
from context import Cell, Context, Experiment, Rows
from page import write_page
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from store import Store

HERE = Path(__file__).parent


def main() -> None:
    """Run what is missing, then write the plots and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--data", type=Path, default=os.environ.get("JUNCTURE_DATA") or None)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer-python", type=Path, default=None)
    parser.add_argument("--dpsynth-python", type=Path, default=None)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME=VALUE", help="cells with this value"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="cells to run side by side (times: always one)"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page from what is kept")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"unknown experiment {', '.join(unknown)}; choose of {', '.join(EXPERIMENTS)}")
    if options.quick and options.out == HERE:
        parser.error("a quick run needs --out FOLDER, to keep apart from the real results")
    folder = Path(options.data) if options.data else None
    context = Context(
        folder=folder,
        quick=options.quick,
        peer_python=options.peer_python,
        dpsynth_python=options.dpsynth_python,
    )
    only = dict(each.split("=", 1) for each in options.only)
    chosen = [EXPERIMENTS[name] for name in options.names or EXPERIMENTS]
    if not options.page_only:
        for experiment in chosen:
            complete(experiment, context, options.out, max(1, options.jobs), only)
    print(f"wrote {write_page(options.out)}")


def complete(
    experiment: Experiment, context: Context, out: Path, jobs: int, only: dict[str, str]
) -> None:
    """Run the cells that are missing; each is kept as soon as it is done."""
    store = Store(out / "results" / f"{experiment.name}.csv")
    missing = [
        cell
        for cell in experiment.cells(context)
        if not store.has(cell) and all(str(cell.get(name)) == value for name, value in only.items())
    ]
    console = Console()
    columns = (
        TextColumn("{task.description:<60.60}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task(experiment.title, total=len(missing))
        with ThreadPoolExecutor(1 if experiment.alone else jobs) as pool:
            free = Queue[int]()
            for place in range(jobs):
                free.put(place)
            shared = None if experiment.alone or jobs == 1 else free
            going = {pool.submit(ran, experiment, cell, context, shared): cell for cell in missing}
            try:
                for done in as_completed(going):
                    store.add(going[done], done.result())
                    words = ", ".join(str(value) for value in going[done].values())
                    bars.update(bar, advance=1, description=f"{experiment.name}: {words}")
            finally:
                pool.shutdown(cancel_futures=True)
    store.sort(experiment.cells(context))


def ran(
    experiment: Experiment, cell: Cell, context: Context, free: Queue[int] | None = None
) -> Rows:
    """A cell's rows, from a process of its own, so that its memory is its own.

    Cells that run side by side have a processor each: threads that wait for each other across
    processes would make all of them slow.
    """
    request: dict[str, Any] = {
        "experiment": experiment.name,
        "cell": cell,
        "folder": str(context.folder) if context.folder else None,
        "quick": context.quick,
        "peer_python": str(context.peer_python) if context.peer_python else None,
        "dpsynth_python": str(context.dpsynth_python) if context.dpsynth_python else None,
    }
    place = free.get() if free else None
    request["processor"] = place
    command = [sys.executable, str(HERE / "run_cell.py"), json.dumps(request)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    finally:
        if free and place is not None:
            free.put(place)
    if done.returncode != 0:
        raise SystemExit(f"the cell {cell} of {experiment.name} failed: see above")
    rows: Rows = json.loads(done.stdout.splitlines()[-1])
    return rows


if __name__ == "__main__":
    main()
