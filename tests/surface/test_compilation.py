"""The compiled routines are made once; later processes load them without the compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from juncture.engine.compiled import loader

pytestmark = pytest.mark.slow

COMPILED = "juncture.engine.compiled"
SCRIPT = """
import json, sys, numpy as np
from juncture import Domain, Plan
from juncture.engine import Propagation
from juncture.engine.vector_ops import dot
domain = Domain({"a": 2, "b": 3, "c": 4})
oracle = Propagation(Plan.build(domain, [("a", "b"), ("b", "c")]))
beliefs = oracle.marginals(np.arange(float(oracle.layout.size)))
peak = oracle.maximum(np.arange(float(oracle.layout.size)))
print(json.dumps({"compiler": "numba" in sys.modules, "record": peak.record,
                  "log_partition": beliefs.log_partition,
                  "square": dot(beliefs.marginals, beliefs.marginals)}))
"""


def fresh_process(cache: Path) -> dict[str, object]:
    """What a new process with this cache folder answers, and whether it needed the compiler."""
    environment = {**os.environ, "JUNCTURE_CACHE": str(cache)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    answers: dict[str, object] = json.loads(done.stdout)
    return answers


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the machine code in it, as a first process leaves it."""
    folder = tmp_path_factory.mktemp("cache")
    assert fresh_process(folder)["compiler"] is True
    return folder


def kept_file(cache: Path) -> Path:
    """The one file that is kept."""
    (path,) = cache.iterdir()
    return path


def test_a_later_process_does_not_import_the_compiler(cache: Path) -> None:
    """The answers are those of the process that compiled."""
    first, second = fresh_process(cache), fresh_process(cache)
    assert first["compiler"] is False
    assert first == second
    assert first["record"] == {"a": 1, "b": 2, "c": 3}


INTERRUPTED = """
import sys
from pathlib import Path
import pyarrow as pa
import juncture as jn
from juncture.engine.compiled import entry_points

def interrupt():
    raise KeyboardInterrupt

entry_points.compile_all = interrupt
folder = Path(sys.argv[1])
table = pa.table({"age": [31, 40, 57], "smokes": [True, False, True]})
schema = jn.Schema({"age": jn.Integer(low=0, high=99), "smokes": jn.Boolean()})
for mechanism in ("hdmm", "mwem"):
    try:
        jn.release(table, schema, jn.Budget(epsilon=1), ledger=folder / "new", mechanism=mechanism)
    except KeyboardInterrupt:
        print("interrupted", (folder / "new").exists())
ledger = jn.Ledger.create(folder / "old", jn.Budget(epsilon=1))
try:
    jn.Curator(jn.read_table(table, schema), ledger).measure(("age",), jn.Pure(0.5))
except KeyboardInterrupt:
    print("interrupted", ledger.spent)
"""


def test_an_interrupted_compilation_costs_nothing(tmp_path: Path) -> None:
    """Ctrl-C while the machine code is made leaves no ledger behind, and nothing spent in one."""
    environment = {**os.environ, "JUNCTURE_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["interrupted False"] * 2 + ["interrupted 0.0"]


def test_threads_may_be_the_first_to_ask(cache: Path) -> None:
    """Two threads that load the routines at once get the same ones, which stay."""
    script = """
import threading, numpy as np
from juncture import Domain, Factor, Model
domain = Domain({"a": 3, "b": 4})
def go():
    for _ in range(100):
        Model.of_potentials(domain, [Factor(domain, np.zeros((3, 4)))], 10.0).sample(10, rng=0)
threads = [threading.Thread(target=go) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    environment = {**os.environ, "JUNCTURE_CACHE": str(cache)}
    for _ in range(3):
        subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_a_user_without_a_home_can_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the package itself is enough."""

    def homeless() -> Path:
        raise RuntimeError

    for name in ("JUNCTURE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert len(list(loader.cache_folders())) == 1


@pytest.mark.parametrize("damage", ["cut", "altered", "emptied"])
def test_damaged_machine_code_is_not_loaded(
    cache: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that does not match its checksum counts as absent."""
    monkeypatch.setenv("JUNCTURE_CACHE", str(cache))
    whole = kept_file(cache).read_bytes()
    altered = bytearray(whole)
    altered[len(whole) // 2] ^= 1
    damaged = {"cut": whole[:-100], "altered": bytes(altered), "emptied": b""}[damage]
    kept_file(cache).write_bytes(damaged)
    monkeypatch.setattr("juncture.engine.compiled.entry_points.compile_all", lambda: b"made anew")
    assert loader.load_compiled() == b"made anew"
    kept_file(cache).write_bytes(whole)
    assert loader.load_compiled() == whole[:-32]


def test_the_key_depends_on_every_compiled_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever file of compiled code changes, the machine code is made anew."""
    package, key = Path(loader.__file__).parent, loader.cache_key()
    sources = {path for path in package.rglob("*.py") if "import carray" in path.read_text()}
    sources |= {path for path in package.rglob("*.py") if "from numba import" in path.read_text()}
    read = Path.read_bytes
    assert len(sources) >= 4
    for source in sources:
        monkeypatch.setattr(
            Path, "read_bytes", lambda path, s=source: read(path) + b"#" * (path == s)
        )
        assert loader.cache_key() != key, source
    monkeypatch.undo()
    assert loader.cache_key() == key


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine code is used all the same, and nothing half-written stays behind."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("JUNCTURE_CACHE", str(blocked / "below"))
    monkeypatch.setattr("juncture.engine.compiled.entry_points.compile_all", lambda: b"code")
    assert loader.load_compiled() == b"code"
    assert list(tmp_path.iterdir()) == [blocked]
