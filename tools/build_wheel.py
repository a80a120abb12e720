"""Build wheels with the compiled routines inside, and print how large they are: `make wheel`.

One wheel for each system in `juncture.engine.compiled.targets.PACKAGED`: shared libraries for its
kinds of processor, made from one translation of the routines. Such a wheel needs no compiler, so
the compiler is moved from what it requires to its extra `compile`. The pure wheel, for all other
systems, compiles at first use.

Zig links the libraries, for this processor and others, against glibc 2.17: that is what the tags
of the wheels say.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

from juncture.engine.compiled.build import MachineCode, compile_routines
from juncture.engine.compiled.packaged import LIST, describe
from juncture.engine.compiled.targets import PACKAGED, Target

ROOT = Path(__file__).parents[1]
LIBRARIES = "juncture/engine/compiled/libraries"
GLIBC = (2, 17)


def build_wheels(folder: Path, systems: Sequence[str]) -> list[Path]:
    """The pure wheel, then one with libraries for each of these systems, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [(system, kind) for system in systems for kind in PACKAGED[system]]
    codes = compile_routines([PACKAGED[system][kind] for system, kind in kinds])
    made = dict(zip(kinds, codes, strict=True))
    with TemporaryDirectory() as scratch:
        pure = build_pure(Path(scratch))
        wheels = [Path(pure.rename(folder / pure.name))]
        for system in systems:
            mine = {kind: made[system, kind] for kind in PACKAGED[system]}
            wheels.append(add_libraries(wheels[0], folder, system, mine))
    return wheels


def build_pure(folder: Path) -> Path:
    """The wheel without libraries."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    run_python("-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def add_libraries(pure: Path, folder: Path, system: str, codes: dict[str, MachineCode]) -> Path:
    """A wheel for one system: the pure one and its libraries, without the compiler."""
    with TemporaryDirectory() as scratch:
        run_python("-m", "wheel", "unpack", "--dest", scratch, str(pure))
        (root,) = Path(scratch).iterdir()
        libraries = root / LIBRARIES
        libraries.mkdir()
        for kind, code in codes.items():
            link(code, PACKAGED[system][kind], libraries / f"{kind}.so")
        signatures = next(iter(codes.values())).signatures
        (libraries / LIST).write_text(describe(signatures), encoding="utf-8")
        (information,) = root.glob("*.dist-info")
        _rewrite(information / "METADATA", _make_compiler_optional)
        _rewrite(information / "WHEEL", lambda text: _tag_for(text, system))
        run_python("-m", "wheel", "pack", "--dest-dir", str(folder), str(root))
    return folder / pure.name.replace("py3-none-any", f"py3-none-{_platform_of(system)}")


def link(code: MachineCode, target: Target, path: Path) -> None:
    """Link the object files of all units into a shared library."""
    architecture = target.triple.partition("-")[0]
    glibc = ".".join(map(str, GLIBC))
    with TemporaryDirectory() as scratch:
        parts = [Path(scratch) / f"unit-{unit}.o" for unit in range(len(code.objects))]
        for part, content in zip(parts, code.objects, strict=True):
            part.write_bytes(content)
        run_python(
            *("-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu.{glibc}", "-shared"),
            *("-s", "-o", str(path), *map(str, parts), "-lm"),
        )


def _tag_for(wheel: str, system: str) -> str:
    """The text of WHEEL for one system."""
    text = wheel.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    return re.sub(r"(?m)^Tag: .*$", f"Tag: py3-none-{_platform_of(system)}", text)


def _platform_of(system: str) -> str:
    return f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{system.partition('-')[2]}"


def _make_compiler_optional(metadata: str) -> str:
    """The text of METADATA without the compiler among what is required."""
    return re.sub(r"(?m)^Requires-Dist: numba[^;\n]*\n", "", metadata)


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def run_python(*arguments: str) -> None:
    """Run Python; what it says is shown only if it fails."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def find_required(wheel: Path) -> list[str]:
    """The names of all packages that installing a wheel installs, by those installed here."""
    with TemporaryDirectory() as scratch:
        run_python("-m", "wheel", "unpack", "--dest", scratch, str(wheel))
        (information,) = Path(scratch).glob("*/*.dist-info")
        waiting = list(Distribution.at(information).requires or [])
    found = dict[str, None]()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and name not in found:
            found[name] = None
            waiting += distribution(name).requires or []
    return sorted(found)


def measure(names: Iterable[str]) -> dict[str, int]:
    """The bytes that each package takes here, compiled Python files among them."""
    sizes = dict[str, int]()
    for name in names:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        paths = (Path(str(file.locate())) for file in files)
        sizes[name] = sum(path.stat().st_size for path in paths if path.is_file())
    return sizes


def time_import() -> float:
    """The processor seconds of a process that imports the package, beyond one that does not."""
    program = "import resource; {}; print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)"

    def seconds(statement: str) -> float:
        command = [sys.executable, "-c", program.format(statement)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout)

    return min(seconds("import juncture") for _ in range(5)) - min(
        seconds("pass") for _ in range(5)
    )


def describe_sizes(wheels: Sequence[Path]) -> str:
    """Each wheel with its size, and what is installed with the last, which needs no compiler."""
    lines = [f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB" for wheel in wheels]
    sizes = measure(find_required(wheels[-1]))
    largest = sorted(sizes, key=lambda name: -sizes[name])[:6]
    lines.append(f"installed with it: {sum(sizes.values()) / 1e6:.0f} MB, of which")
    lines += [f"  {name:<16}{sizes[name] / 1e6:6.0f} MB" for name in largest]
    lines.append(f"`import juncture` takes {time_import():.2f} s of processor time")
    return "\n".join(lines)


def main() -> None:
    """Build wheels for all systems, or those that are named."""
    parser = argparse.ArgumentParser(description="Build wheels with the compiled routines inside.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--system", action="append", choices=sorted(PACKAGED))
    chosen = parser.parse_args()
    print(describe_sizes(build_wheels(chosen.out, chosen.system or list(PACKAGED))))


if __name__ == "__main__":
    main()
