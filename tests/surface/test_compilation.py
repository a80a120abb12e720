"""The compiled routines are made once; later processes load them without the compiler."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from juncture.engine.compiled import loader, packaged, targets
from juncture.engine.compiled.build import MachineCode, compile_routines, make_object
from juncture.errors import JunctureError

pytestmark = pytest.mark.slow

COMPILE = "juncture.engine.compiled.build.compile_routines"
SCRIPT = """
import json, sys, numpy as np
from juncture import Domain, Plan
from juncture.engine import Propagation
from juncture.engine.vector_ops import dot
domain = Domain({"a": 2, "b": 3, "c": 4})
oracle = Propagation(Plan.build(domain, [("a", "b"), ("b", "c")]))
beliefs = oracle.marginals(np.arange(float(oracle.layout.size)))
peak = oracle.maximum(np.arange(float(oracle.layout.size)))
print(json.dumps({"compiler": "numba" in sys.modules, "llvm": "llvmlite" in sys.modules,
                  "record": peak.record,
                  "log_partition": beliefs.log_partition,
                  "square": dot(beliefs.marginals, beliefs.marginals)}))
"""


def fresh_process(cache: Path) -> tuple[dict[str, object], str]:
    """What a new process with this cache folder answers, and what it says beside that."""
    environment = {**os.environ, "JUNCTURE_CACHE": str(cache)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    answers: dict[str, object] = json.loads(done.stdout)
    return answers, done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the machine code in it, as a first process leaves it."""
    folder = tmp_path_factory.mktemp("cache")
    _, said = fresh_process(folder)
    assert "Juncture compiles its routines, once for this version and processor" in said
    assert "compiled in" in said
    return folder


def kept_file(cache: Path) -> Path:
    """The one file that is kept."""
    (path,) = cache.iterdir()
    return path


def test_a_later_process_does_not_import_the_compiler(cache: Path) -> None:
    """The answers are those of the process that compiled."""
    (first, said), (second, _) = fresh_process(cache), fresh_process(cache)
    assert first["compiler"] is False
    assert said == ""
    assert first == second
    assert first["record"] == {"a": 1, "b": 2, "c": 3}


INTERRUPTED = """
import sys
from pathlib import Path
import pyarrow as pa
import juncture as jn
from juncture.engine.compiled import build

def interrupt(*_):
    raise KeyboardInterrupt

build.compile_routines = interrupt
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
    monkeypatch.setattr(COMPILE, lambda *_: [MachineCode({}, (b"made anew",))])
    assert loader.load_compiled().endswith(b"\nmade anew")
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
    monkeypatch.setattr(COMPILE, lambda *_: [MachineCode({}, (b"code",))])
    assert loader.load_compiled().endswith(b"\ncode")
    assert list(tmp_path.iterdir()) == [blocked]


def test_a_compiler_that_fails_is_quoted() -> None:
    """What went wrong in the process that compiles is in the error."""
    with pytest.raises(JunctureError, match="nonsense"):
        compile_routines([targets.Target("nonsense", "nonsense")], n_units=1)


def test_without_a_compiler_the_advice_is_to_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation from a wheel on another processor says what to do."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(JunctureError, match=r"pip install 'juncture\[compile\]'"):
        loader.load_compiled()


def test_libraries_of_other_sources_or_processors_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel's libraries are opened only for the sources they were made from."""
    assert packaged.open_packaged(tmp_path) is None
    (tmp_path / packaged.LIST).write_text(packaged.describe({}))
    assert packaged.open_packaged(tmp_path) is None  # no library for any processor
    for kind in targets.find_runnable():
        (tmp_path / f"{kind}.so").write_bytes(b"not a library")
    if targets.find_runnable():
        with pytest.raises(OSError, match=targets.find_runnable()[0]):
            packaged.open_packaged(tmp_path)
    monkeypatch.setattr(packaged, "digest_sources", lambda: "others")
    assert packaged.open_packaged(tmp_path) is None


@pytest.fixture(scope="module")
def installed(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as a wheel with libraries installs it."""
    build_wheel = load_tool("build_wheel")
    folder = tmp_path_factory.mktemp("wheel")
    header, _, body = kept_file(cache).read_bytes()[:-32].partition(b"\n")
    facts = json.loads(header)
    first = facts["sizes"][0]
    code = MachineCode(facts["signatures"], (body[:first], body[first:]))
    pure = build_wheel.build_pure(folder)
    kind = targets.find_runnable()[0]
    system = f"{sys.platform}-{platform.machine()}"
    wheel = build_wheel.add_libraries(pure, folder, system, {kind: code})
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{platform.machine()}.whl")
    build_wheel.run_python("-m", "wheel", "unpack", "--dest", str(folder), str(wheel))
    (root,) = (path for path in folder.iterdir() if path.is_dir())
    return root


def load_tool(name: str) -> Any:
    """A script of the folder `tools`."""
    path = Path(__file__).parents[2] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not targets.find_runnable(), reason="wheels for this system hold no libraries")
def test_an_installed_wheel_needs_no_compiler(
    installed: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers as the sources do, without LLVM, keeps nothing, and requires no compiler."""
    expected, _ = fresh_process(cache)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    found, said = fresh_process(tmp_path / "cache")
    assert said == ""
    assert found.pop("llvm") is False
    assert expected.pop("llvm") is True
    assert found == expected
    assert not (tmp_path / "cache").exists()
    (information,) = installed.glob("*.dist-info")
    required = Distribution.at(information).requires or []
    assert [line for line in required if "numba" in line] == ['numba>=0.60; extra == "compile"']
    assert "Root-Is-Purelib: false" in (information / "WHEEL").read_text()


@pytest.mark.parametrize("system", sorted(targets.PACKAGED))
def test_machine_code_is_for_the_processor_that_was_asked_for(system: str) -> None:
    """The object file of a routine names its target's processor, whatever this machine is."""
    module = llvm.parse_assembly("define i64 @f(i64 %x) { %y = add i64 %x, 1 ret i64 %y }")
    for target in targets.PACKAGED[system].values():
        code = make_object(module, target)
        assert code[:4] == b"\x7fELF"
        assert int.from_bytes(code[18:20], "little") == {"x86": 62, "aar": 183}[target.triple[:3]]


V2, V3, V4 = (
    frozenset(words.split())
    for words in (
        "cx16 popcnt sse4_1 sse4_2 ssse3",
        "avx2 bmi1 bmi2 f16c fma movbe",
        "avx512f avx512bw avx512cd avx512dq avx512vl",
    )
)


@pytest.mark.parametrize(
    ("features", "levels"),
    [
        (frozenset(), ()),
        (V2 - {"popcnt"}, ()),
        (V2, ("x86-64-v2",)),
        (V2 | V4, ("x86-64-v2",)),
        ((V2 | V3) - {"fma"}, ("x86-64-v2",)),
        (V2 | V3 | {"sse4a"}, ("x86-64-v3", "x86-64-v2")),
        (V2 | V3 | V4, ("x86-64-v4", "x86-64-v3", "x86-64-v2")),
    ],
)
def test_a_level_counts_with_all_below_it(
    features: frozenset[str], levels: tuple[str, ...]
) -> None:
    """A processor that lacks one feature of a level has none of the higher levels."""
    assert targets.choose_levels(features) == levels
