"""Whatever a stranger wrote is read, or refused by an error of ours: never anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.run import make_input, read_corpus, try_input
from fuzz.targets import Target, make_targets
from juncture.engine.compiled.loader import load_routines

SEED = 20
NAMES = [
    "release", "schema", "ledger", "csv", "parquet", "sql", "noisy", "domain", "estimate",
]  # fmt: skip


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    """All targets by name."""
    load_routines()  # where they must be compiled, no input is to blame for the time
    return {each.name: each for each in make_targets(tmp_path_factory.mktemp("examples"))}


def test_there_are_two_thousand_inputs(targets: dict[str, Target]) -> None:
    """Every target has its share of them."""
    assert list(targets) == NAMES
    assert sum(target.n_inputs for target in targets.values()) >= 2000


@pytest.mark.parametrize("name", NAMES)
def test_damaged_input_is_refused_clearly(
    targets: dict[str, Target], name: str, tmp_path: Path
) -> None:
    """No input ends in another's exception, takes long, or fills the memory; some are accepted."""
    target, results = targets[name], set()
    for index in range(target.n_inputs):
        text = make_input(target, SEED, index)
        result = try_input(target, text, tmp_path)
        assert result in ("accepted", "refused"), (name, SEED, index, text[:2000])
        results.add(result)
    assert "refused" in results


@pytest.mark.parametrize("name", NAMES)
def test_what_once_failed_stays_fixed(
    targets: dict[str, Target], name: str, tmp_path: Path
) -> None:
    """The corpus is read, or refused clearly."""
    for file, text in read_corpus(targets[name]).items():
        assert try_input(targets[name], text, tmp_path) in ("accepted", "refused"), file


def run_checked(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program with machine code that checks every index, and ends at a wrong one."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1],
    )  # fmt: skip


@pytest.mark.slow
def test_compiled_code_reads_and_writes_inside_its_arrays() -> None:
    """With every index checked, the corpus and some hundred releases run to their end."""
    code = """
from pathlib import Path
from tempfile import TemporaryDirectory
from fuzz.run import make_input, read_corpus, try_input
from fuzz.targets import make_targets
from juncture.engine.compiled.loader import load_routines
load_routines()  # where they must be compiled, no input is to blame for the time
with TemporaryDirectory() as name:
    folder = Path(name)
    for target in make_targets(folder):
        texts = list(read_corpus(target).values())
        if target.name in ("release", "estimate"):
            texts += [make_input(target, 21, index) for index in range(target.n_inputs // 3)]
        for text in texts:
            assert try_input(target, text, folder) in ("accepted", "refused"), text
print("done")
"""
    finished = run_checked(code)
    assert (finished.returncode, finished.stdout) == (0, "done\n"), finished.stderr


@pytest.mark.slow
def test_checked_code_notices_an_index_outside() -> None:
    """A cell beyond a table ends the process: the test above can fail."""
    code = """
import numpy as np
from juncture.engine.compiled.loader import pointer, routine
codes, members = np.full((1, 3), {code}, dtype=np.int32), np.zeros(2, dtype=np.int64)
known, strides = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
routine("count_rows")(
    pointer(codes), 1, 3, pointer(known), pointer(strides), 1, pointer(members), 2
)
print("done")
"""
    assert run_checked(code.format(code=1)).stdout == "done\n"
    assert run_checked(code.format(code=7)).returncode < 0
