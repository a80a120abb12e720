"""One compiled program serves every structure and every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from juncture import Domain, Plan, Propagation
from juncture.oracles import kernels, peaks
from juncture.oracles.stamp import SOURCES, stamp_of

SCRIPT = """
import json, numpy as np
from juncture import Domain, Plan, Propagation
from juncture.oracles import kernels, peaks
domain = Domain({"a": 2, "b": 3, "c": 4})
oracle = Propagation(Plan.build(domain, [("a", "b"), ("b", "c")]))
oracle.marginals(np.zeros(oracle.layout.size))
oracle.maximum(np.zeros(oracle.layout.size))
stats = [kernels.run.stats, peaks.maximise.stats]
print(json.dumps({"hits": sum(sum(s.cache_hits.values()) for s in stats),
                  "misses": sum(sum(s.cache_misses.values()) for s in stats)}))
"""


def _fresh_process(cache: Path) -> dict[str, int]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def test_a_fresh_process_does_not_compile_again(tmp_path: Path) -> None:
    """With a warm cache, a new process loads both entry points and compiles none."""
    assert _fresh_process(tmp_path) == {"hits": 0, "misses": 2}
    assert _fresh_process(tmp_path) == {"hits": 2, "misses": 0}


def test_the_cache_notices_changes_of_every_compiled_source(tmp_path: Path) -> None:
    """Both entry points close over a stamp that changes with any of the compiled files."""
    source = tmp_path / "rows.py"
    source.write_text("one")
    before = stamp_of([source])
    source.write_text("two")
    assert stamp_of([source]) != before
    for entry in (kernels.run, peaks.maximise):
        assert [cell.cell_contents for cell in entry.py_func.__closure__] == [SOURCES]


def test_all_structures_and_inputs_share_one_compilation() -> None:
    """Other structures, read-only or integer input, and an integer total compile nothing new."""
    for cliques in ([], [("a",)], [("a", "b"), ("b", "c"), ("a", "c")]):
        oracle = Propagation(Plan.build(Domain({"a": 2, "b": 3, "c": 4}), cliques))
        potentials = np.zeros(oracle.layout.size)
        oracle.marginals(potentials)
        potentials.flags.writeable = False
        oracle.marginals(potentials, total=7)
        oracle.marginals(np.zeros(oracle.layout.size, dtype=np.int32))
        oracle.maximum(potentials)
    assert len(kernels.run.signatures) == 1
    assert len(peaks.maximise.signatures) == 1
