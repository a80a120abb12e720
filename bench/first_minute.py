"""What a new user waits for: importing, compiling, installing, the demo, drafting a schema.

    python bench/first_minute.py                # everything; builds a wheel, fills pip's cache
    python bench/first_minute.py --only compile # one of: import, compile, draft, wheel, make

Each step is a process of its own, as a user would start it. Seconds by the clock say what a user
waits, if the machine is free; seconds of processors hardly depend on who else works there. On free
cores, compiling takes about its processor seconds divided by the cores, up to two.

`wheel` installs a wheel into an empty environment and runs the demo, `make` runs `make demo` in a
copy of the sources. Both take packages from pip's cache, which a first installation fills.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

ROOT = Path(__file__).parents[1]
_CSV_BYTES = 100_000_000
_ROWS = 100_000
_COMPILE = "from juncture.engine.compiled.loader import load_compiled; load_compiled()"
_INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
# What `make demo` says before the demo says something.
_SET_UP = "Setting up"
# Installed with every environment: not ours.
_NOT_OURS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
_N_LARGEST = 8


@dataclass(frozen=True)
class Spent:
    """What a command took."""

    clock: float
    processors: float
    first: float | None
    """Seconds by the clock to its first line, beside those of set-up."""


def main() -> None:
    """Print a line for each."""
    steps: dict[str, Callable[[Path], None]] = {
        "import": report_imports,
        "compile": report_compiling,
        "draft": report_draft,
        "wheel": report_wheel,
        "make": report_make,
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=steps, action="append")
    chosen = parser.parse_args().only or list(steps)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, {load:.1f} processes running or waiting before this one")
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="juncture-minute-") as folder:
            steps[name](Path(folder))


def report_imports(folder: Path) -> None:
    """Python alone, the package, and the first line of help."""
    report("start Python", run([sys.executable, "-c", "pass"], folder))
    report("import juncture", run([sys.executable, "-c", "import juncture"], folder))
    report("juncture --help", run([sys.executable, "-m", "juncture", "--help"], folder))


def report_compiling(folder: Path) -> None:
    """The routines of a source checkout, into an empty folder."""
    report("compile the routines, once", run([sys.executable, "-c", _COMPILE], folder))


def report_draft(folder: Path) -> None:
    """`juncture schema draft` of a large file."""
    table = folder / "people.csv"
    write_table(table)
    size = f"{table.stat().st_size / 1e6:.0f} MB"
    draft = [sys.executable, "-m", "juncture", "schema", "draft", str(table)]
    report(f"schema draft of {size}", run([*draft, "--out", f"{folder}/d.toml"], folder))


def report_wheel(folder: Path) -> None:
    """An empty environment, the wheel of this system, and the demo."""
    sys.path.insert(0, str(ROOT / "tools"))
    from build_wheel import build_wheels  # noqa: PLC0415

    wheel = build_wheels(folder / "dist", [f"{sys.platform}-{platform.machine()}"])[-1]
    report("pip's cache filled", _install(wheel, folder / "first"))
    spent = [_install(wheel, folder / "venv")]
    spent.append(run([str(folder / "venv/bin/juncture"), "demo"], folder, PYTHONPATH=""))
    report("wheel installed", spent[0])
    report("wheel: juncture demo", spent[1])
    print(f"{'wheel and demo':<32}{sum(each.clock for each in spent):8.1f} s by the clock")
    if (folder / "cache").exists():
        raise SystemExit("the demo compiled something; a wheel must not")
    print(f"{'wheel':<32}{wheel.stat().st_size / 1e6:8.1f} MB")
    sizes = measure_installed(folder / "venv")
    print(f"{'installed':<32}{sum(sizes.values()) / 1e6:8.1f} MB, of which")
    for name in sorted(sizes, key=lambda each: -sizes[each])[:_N_LARGEST]:
        print(f"  {name:<30}{sizes[name] / 1e6:8.1f} MB")


def report_make(folder: Path) -> None:
    """`make demo` in a copy of the sources that has no environment and no machine code."""
    clone = folder / "juncture"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    report("make demo", run(["make", "--no-print-directory", "demo"], clone, PYTHONPATH=""))


def _install(wheel: Path, environment: Path) -> Spent:
    """Make an environment and install a wheel there."""
    python = environment / "bin" / "python"
    made = run([sys.executable, "-m", "venv", str(environment)], environment.parent, PYTHONPATH="")
    filled = run([str(python), *_INSTALL, str(wheel)], environment.parent, PYTHONPATH="")
    return Spent(made.clock + filled.clock, made.processors + filled.processors, None)


def run(command: Sequence[str], folder: Path, **variables: str) -> Spent:
    """Run a command in a folder, with a place for machine code of its own."""
    environment = {**os.environ, "JUNCTURE_CACHE": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            list(command), cwd=folder, env=_without_empty({**environment, **variables}),
            stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        first = _time_first(process.stdout or (), started)
        if process.wait():
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()}")
    clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Spent(clock, spent, first)


def _time_first(lines: Iterable[str], started: float) -> float | None:
    """Read all lines; the seconds to the first that is about the matter itself."""
    first = None
    for line in lines:
        if first is None and line.strip() and not line.startswith(_SET_UP):
            first = time.perf_counter() - started
    return first


def _without_empty(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value}


def report(what: str, spent: Spent) -> None:
    """Print a line."""
    first = "" if spent.first is None else f", first line after {spent.first:.1f} s"
    times = f"{spent.clock:8.1f} s by the clock{spent.processors:8.2f} s of processors"
    print(f"{what:<32}{times}{first}", flush=True)


def measure_installed(environment: Path) -> dict[str, int]:
    """The bytes of each folder and file among the packages of an environment, without bytecode."""
    (packages,) = environment.glob("lib/python*/site-packages")
    sizes = dict[str, int]()
    for path in packages.rglob("*"):
        name = path.relative_to(packages).parts[0].removesuffix(".libs")
        counts = path.is_file() and path.suffix != ".pyc" and not name.startswith(_NOT_OURS)
        if counts:
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


def write_table(path: Path) -> None:
    """A table of ten columns: numbers, categories, dates as texts; rows repeated to the size."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, _ROWS)
    columns: dict[str, object] = {
        f"amount_{i}": rng.gamma(2, 900, _ROWS).round(2) for i in range(4)
    }
    columns |= {f"count_{i}": rng.integers(0, 90, _ROWS) for i in range(3)}
    columns |= {f"kind_{i}": rng.choice(["north", "south", "east"], _ROWS) for i in range(2)}
    part = pa.table({**columns, "day": days.astype(str)})
    with path.open("wb") as file:
        pa_csv.write_csv(part, file)
        body = pa_csv.WriteOptions(include_header=False)
        while file.tell() < _CSV_BYTES:
            pa_csv.write_csv(part, file, body)


if __name__ == "__main__":
    main()
