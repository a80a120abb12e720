"""Check what would be published: `make release-check`.

Builds the wheels, then installs the one for this system into an empty environment of every Python
from 3.11 to 3.14 that is found, without a compiler, and there runs the demo and the README as its
readers would, in an empty folder. Also holds the version against the changelog. Prints the seconds
of each step.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from build_wheel import build_wheels

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# What the README uses beside the package.
EXTRA = ("pandas",)
README = """
import io, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
sys.path.insert(0, {tests!r})
from pages_run import do_page
said = io.StringIO()
def printed():
    text = said.getvalue()
    said.seek(0)
    said.truncate()
    return text
with redirect_stdout(said), redirect_stderr(said):
    shown = do_page(Path({page!r}).read_text(), Path.cwd(), printed)
assert "numba" not in sys.modules and "llvmlite" not in sys.modules
print(len(shown.splitlines()), "lines printed")
"""


def main() -> None:
    """Check everything; the first thing that fails ends it with an error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--wheel", type=Path, help="check this wheel instead of building")
    parser.add_argument("--python", action="append", help="only these versions, such as 3.12")
    chosen = parser.parse_args()
    version = check_version()
    wheel = chosen.wheel or _build()
    if f"-{version}-" not in wheel.name:
        raise SystemExit(f"{wheel.name} is not of version {version}")
    pythons = dict(find_pythons(chosen.python or VERSIONS))
    for name in chosen.python or VERSIONS:
        if name in pythons:
            check_install(wheel, pythons[name], name)
        else:
            print(f"Python {name}: not found on this machine, not checked")
    if not pythons:
        raise SystemExit("no Python was found to check with")


def check_version() -> str:
    """The version, which must be that of the changelog's first part."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = str(project["project"]["version"])
    found = re.search(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found is None or found[1] != version:
        raise SystemExit(f"CHANGELOG.md must begin with {version}, the version in pyproject.toml")
    print(f"version {version}, as in the changelog")
    return version


def find_pythons(versions: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The interpreters of these versions that run: where pyenv keeps them, or on the path."""
    for version in versions:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        found = next(iter(map(str, kept)), None) or shutil.which(f"python{version}")
        if found and subprocess.run([found, "-c", ""], check=False).returncode == 0:
            yield version, Path(found)


def check_install(wheel: Path, python: Path, name: str) -> None:
    """Install a wheel into an empty environment, and do there what readers do."""
    with tempfile.TemporaryDirectory(prefix="juncture-check-") as scratch:
        folder = Path(scratch)
        _time(f"Python {name}: environment", [str(python), "-m", "venv", str(folder / "venv")])
        inside = folder / "venv" / "bin"
        pip = [str(inside / "python"), "-m", "pip", "install", "--quiet"]
        options = ["--disable-pip-version-check", "--no-compile"]
        _time(f"Python {name}: install", [*pip, *options, str(wheel)])
        cache = folder / "cache"
        _time(f"Python {name}: demo", [str(inside / "juncture"), "demo"], folder, cache)
        if cache.exists():
            raise SystemExit("the demo compiled something; a wheel must not")
        _time(f"Python {name}: install for the README", [*pip, *options, *EXTRA])
        program = README.format(tests=str(ROOT / "tests"), page=str(ROOT / "README.md"))
        empty = folder / "readme"
        empty.mkdir()
        _time(f"Python {name}: README", [str(inside / "python"), "-c", program], empty, cache)


def _build() -> Path:
    started = time.perf_counter()
    system = f"{sys.platform}-{platform.machine()}"
    wheel = build_wheels(ROOT / "dist", [system])[-1]
    print(f"built {wheel.name}: {time.perf_counter() - started:.0f} s")
    return wheel


def _time(
    what: str, command: Sequence[str], folder: Path | None = None, cache: Path | None = None
) -> None:
    """Run a command far from this checkout, and print how long it took."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if cache is not None:
        environment["JUNCTURE_CACHE"] = str(cache)
    started = time.perf_counter()
    done = subprocess.run(
        list(command), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{done.stdout}{done.stderr}")
    print(f"{what}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
