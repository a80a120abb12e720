"""From entry points to machine code: divided into units, each made by a process of its own.

Only the processes that this starts import the compiler. `python -m juncture.engine.compiled.build`
is such a process: it reads a `Job` from its standard input and writes the machine code to its
standard output.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

from juncture.engine.compiled.targets import Target
from juncture.errors import JunctureError

if TYPE_CHECKING:
    from juncture.engine.compiled.entry_points import EntryPoint

_OPTIMISATION = 3
# More units than this take longer together than they save: each imports the compiler.
_MAX_UNITS = 4


@dataclass(frozen=True)
class Job:
    """One of several units of the routines, to be compiled for some processors."""

    unit: int
    n_units: int
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class MachineCode:
    """All routines for one processor: their signatures by name, and the object files of units."""

    signatures: dict[str, str]
    objects: tuple[bytes, ...]


def count_units() -> int:
    """Into how many units to divide the routines on this machine: one for each core, up to four."""
    return max(1, min(_MAX_UNITS, os.cpu_count() or 1))


def compile_routines(targets: Sequence[Target], n_units: int | None = None) -> list[MachineCode]:
    """Compile all routines for each of these processors, a process for each unit at once."""
    n = count_units() if n_units is None else n_units
    processes = list[subprocess.Popen[bytes]]()
    try:
        for unit in range(n):
            processes.append(_start(Job(unit, n, tuple(targets))))
        units = [_finish(process, len(targets)) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    names = {name: letters for unit in units for name, letters in unit.signatures.items()}
    return [
        MachineCode(names, tuple(unit.objects[index] for unit in units))
        for index in range(len(targets))
    ]


def _start(job: Job) -> subprocess.Popen[bytes]:
    """A process that has its job and works on it."""
    path = os.pathsep.join(os.path.abspath(folder or ".") for folder in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    if process.stdin:
        process.stdin.write(json.dumps(asdict(job)).encode())
        process.stdin.close()
        process.stdin = None
    return process


def _finish(process: subprocess.Popen[bytes], n_targets: int) -> MachineCode:
    """What a process has made: a unit, with an object file for each target."""
    output, complaints = process.communicate()
    if process.returncode:
        raise JunctureError(
            "The compiled routines could not be made. The compiler said: "
            + complaints.decode(errors="replace").strip()[-2000:]
        )
    header, _, body = output.partition(b"\n")
    facts = json.loads(header)
    objects, at = list[bytes](), 0
    for size in facts["sizes"]:
        objects.append(body[at : at + size])
        at += size
    if len(objects) != n_targets or at != len(body):
        raise JunctureError("The compiled routines came back incomplete. Try again.")
    return MachineCode(facts["signatures"], tuple(objects))


def divide(entry_points: Sequence[EntryPoint], n_units: int) -> list[list[EntryPoint]]:
    """Units of about the same work: the largest entry points first, each to the lightest unit."""
    units: list[list[EntryPoint]] = [[] for _ in range(n_units)]
    loads = [0.0] * n_units
    for entry_point in sorted(entry_points, key=lambda e: e.work, reverse=True):
        lightest = loads.index(min(loads))
        units[lightest].append(entry_point)
        loads[lightest] += entry_point.work
    return units


def compile_unit(job: Job) -> MachineCode:
    """Compile one unit in this process: a translation, then an object file for each target."""
    from juncture.engine.compiled.entry_points import (  # noqa: PLC0415  (imports the compiler)
        ENTRY_POINTS,
        translate_unit,
    )

    unit = divide(ENTRY_POINTS, job.n_units)[job.unit]
    module = translate_unit(unit)
    return MachineCode(
        {entry_point.name: entry_point.signature for entry_point in unit},
        tuple(make_object(module, target) for target in job.targets),
    )


def make_object(module: llvm.ModuleRef, target: Target) -> bytes:
    """Optimise a copy of the module for a processor, and turn it into an object file."""
    _know_all_processors()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=_OPTIMISATION, reloc="pic", codemodel="small"
    )
    copy = module.clone()
    copy.triple, copy.data_layout = target.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISATION)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(copy, passes)
    return bytes(machine.emit_object(copy))


@cache
def _know_all_processors() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def main() -> None:
    """Do the job on the standard input."""
    # The compiler makes millions of objects and keeps most: looking for garbage took a tenth.
    gc.disable()
    given = json.load(sys.stdin.buffer)
    targets = tuple(Target(**target) for target in given["targets"])
    made = compile_unit(Job(given["unit"], given["n_units"], targets))
    header = {"signatures": made.signatures, "sizes": [len(o) for o in made.objects]}
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + b"".join(made.objects))


if __name__ == "__main__":
    main()
