"""The explorer's server under load: requests a second, latency and memory, alone and attacked.

    python bench/explorer_load.py --seconds 20

A server of its own on this machine, for a third of a minute each: alone; beside one client that
asks slow questions all the time; and beside a flood of connections that never ask anything. Four
clients ask quick questions and load the page throughout. Nothing leaves 127.0.0.1.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx
import numpy as np

import juncture as jn

TOKEN, N_CLIENTS, N_SILENT = "bench", 4, 1300
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
# A thousand sums over a million cells: more than the time that a question has.
SLOW = f"SELECT {', '.join(f'SUM(LN(a * b + {i + 1}))' for i in range(1000))} FROM t"
QUICK = ("/api/sql", {"sql": "SELECT c, COUNT(*) AS n FROM t GROUP BY c"})
CHART = ("/api/marginal", {"attributes": ["c", "d"], "conditions": []})
PAGE = ("/", None)


class Phase(NamedTuple):
    """What happened in one part of the run."""

    name: str
    seconds: float
    latencies: dict[str, list[float]]
    n_failed: int
    megabytes: tuple[int, int]
    """Before and after: the server and its workers together."""


def make_release(folder: Path) -> Path:
    """A release with two wide columns and two narrow ones."""
    domain, rng = jn.Domain({"a": 1000, "b": 1000, "c": 12, "d": 30}), np.random.default_rng(0)
    pairs = [("a", "c"), ("c", "d"), ("d", "b")]
    tables = [jn.Factor.random(domain.project(pair), rng) for pair in pairs]
    model = jn.Model.of_potentials(domain, tables, 1e6)
    return jn.Release(model=model).save(folder / "load.jct")


@contextlib.contextmanager
def start_server(path: Path) -> Iterator[tuple[int, str]]:
    """A server in a process of its own: its number and its address."""
    code = "from juncture.publish.explorer.server import serve; "
    code += f"serve({str(path)!r}, port=0, token={TOKEN!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        line = next(each for each in server.stdout if "http://127.0.0.1" in each)
        try:
            yield server.pid, line.strip().split("/?")[0]
        finally:
            server.terminate()
            server.wait(30)


def measure_megabytes(pid: int) -> int:
    """The memory of a process and of those that it has started."""
    pids, total = [pid], 0
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            pids += map(int, (task / "children").read_text().split())
    for each in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return total >> 10


def ask_until(url: str, end: float, latencies: dict[str, list[float]]) -> int:
    """Ask in turn until the time is over; returns how many requests failed."""
    n_failed = 0
    with httpx.Client(base_url=url, headers=HEADERS, timeout=60) as client:
        for path, body in itertools.cycle((QUICK, CHART, PAGE)):
            began = time.perf_counter()
            if time.monotonic() > end:
                return n_failed
            try:
                reply = client.get(path) if body is None else client.post(path, json=body)
                n_failed += reply.status_code != 200
            except httpx.HTTPError:
                n_failed += 1
            latencies.setdefault(path, []).append(time.perf_counter() - began)
    return n_failed


def run_phase(
    name: str, seconds: float, pid: int, url: str, attack: Callable[[str, threading.Event], None]
) -> Phase:
    """Ask for some seconds beside an attack."""
    over, latencies, before = threading.Event(), dict[str, list[float]](), measure_megabytes(pid)
    attacker = threading.Thread(target=attack, args=(url, over))
    attacker.start()
    time.sleep(1.0)
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        failed = sum(pool.map(lambda _: ask_until(url, end, latencies), range(N_CLIENTS)))
    after = measure_megabytes(pid)
    over.set()
    attacker.join()
    return Phase(name, seconds, latencies, failed, (before, after))


def attack_not(_url: str, _over: threading.Event) -> None:
    """Do nothing."""


def attack_slowly(url: str, over: threading.Event) -> None:
    """Ask slow questions, one after another, and leave after five seconds each time."""
    while not over.is_set():
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{url}/api/sql", json={"sql": SLOW}, headers=HEADERS, timeout=5)


def attack_silently(url: str, over: threading.Event) -> None:
    """Open many connections, say nothing on them, and open those again that are closed."""
    port, silent = int(url.rsplit(":", 1)[1]), []
    for _ in range(N_SILENT):
        with contextlib.suppress(OSError):
            silent.append(socket.create_connection(("127.0.0.1", port), timeout=5))
    over.wait()
    for each in silent:
        each.close()


def report(phase: Phase) -> None:
    """Print a line for each kind of request."""
    n = sum(map(len, phase.latencies.values()))
    before, after = phase.megabytes
    print(f"{phase.name}: {n / phase.seconds:.0f} requests a second, {phase.n_failed} failed, "
          f"{before} MB before and {after} MB after")  # fmt: skip
    for path, times in phase.latencies.items():
        p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000
        print(f"    {path:14} {len(times):6,} requests, median {p50:7.1f} ms, p99 {p99:7.1f} ms")


def main() -> None:
    """Run the three phases and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    attacks = {
        "alone": attack_not,
        "beside slow questions": attack_slowly,
        f"beside {N_SILENT:,} silent connections": attack_silently,
    }
    print("The explorer under load: four clients, by the clock of this machine")
    with TemporaryDirectory() as folder, start_server(make_release(Path(folder))) as (pid, url):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        for name, attack in attacks.items():
            report(run_phase(name, seconds, pid, url, attack))


if __name__ == "__main__":
    main()
