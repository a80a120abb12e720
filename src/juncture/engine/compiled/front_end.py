"""From Python to LLVM's language: what the compiler makes of the entry points, not yet optimised.

Left to itself, the compiler optimises and makes machine code of every routine, then does so again
for each routine that calls it. Here it only translates. All routines are then linked, optimised
and turned into machine code together, once (`build`), and for any processor: nothing in what it
translates depends on this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import llvmlite.binding as llvm
from numba import cfunc
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.registry import cpu_target

from juncture.errors import JunctureError

PREFIX = "juncture_"
# The routines hold no Python object and no array of the compiler's own: there is nothing to count.
_COUNTS_NOTHING = "".join(
    f"define void @{name}(ptr %counted) alwaysinline {{ ret void }}\n"
    for name in ("NRT_incref", "NRT_decref")
)
# Functions of the C library that machine code may call.
_C_LIBRARY = {"abort", "ceil", "exp", "floor", "fmod", "log", "log1p", "memcpy", "memset", "pow"}


class _Translation(JITCodeLibrary):
    """A routine in LLVM's language, and the routines that it calls."""

    def _optimize_functions(self, module: llvm.ModuleRef) -> None:
        """Optimise nothing: that comes later, for all routines together."""

    def finalize(self) -> None:
        """Take this for complete, though nothing is linked: that comes later, too."""
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """Nobody calls a routine here."""
        return 0

    def collect(self, found: dict[_Translation, None]) -> None:
        """Add this and everything that it calls to an ordered set."""
        if self not in found:
            found[self] = None
            for other in self._linking_libraries:
                other.collect(found)

    @property
    def module(self) -> llvm.ModuleRef:
        """What was translated."""
        return self._final_module


class _Translator(JITCPUCodegen):
    """The compiler's back end, which here makes no machine code."""

    _library_class = _Translation

    def set_env(self, _name: str, _environment: object) -> None:
        """Nothing is in memory that an environment could be written to."""


def translate(entry_points: Iterable[tuple[Callable[..., Any], Any]]) -> llvm.ModuleRef:
    """One module with these functions, of their signatures, and all that they call.

    Their names have a prefix; everything else can be seen from nowhere else. This turns the
    compiler of the whole process into one that makes no machine code: use a process of its own.
    """
    context = cpu_target.target_context
    context._internal_codegen = _Translator("juncture")
    # What the compiler asks for here need not be translated; the rest is in `_COUNTS_NOTHING`.
    context.incref = context.decref = _count_nothing
    compiled = {f.__name__: cfunc(s, error_model="numpy")(f) for f, s in entry_points}
    found: dict[_Translation, None] = {}
    for routine in compiled.values():
        routine._library.collect(found)
    whole = llvm.parse_assembly(_COUNTS_NOTHING)
    for translation in found:
        if "NRT_incref" not in _defined_names(translation.module):
            whole.link_in(translation.module)
    for name, routine in compiled.items():
        whole.get_function(routine.native_name).name = PREFIX + name
    whole.link_in(llvm.parse_assembly(_abort_stubs(_missing_names(whole))))
    for value in (*whole.functions, *whole.global_variables):
        if not value.is_declaration and not value.name.startswith(PREFIX):
            value.linkage = "internal"
    return whole


def _count_nothing(_builder: object, _type: object, _value: object) -> None:
    """Write no instruction that counts who refers to a value."""


def _defined_names(module: llvm.ModuleRef) -> set[str]:
    return {function.name for function in module.functions if not function.is_declaration}


def _missing_names(module: llvm.ModuleRef) -> list[str]:
    """The functions that the module calls and that neither it nor the C library has."""
    declared = (function.name for function in module.functions if function.is_declaration)
    return [name for name in declared if not name.startswith("llvm.") and name not in _C_LIBRARY]


def _abort_stubs(names: list[str]) -> str:
    """Definitions for what the compiler would call if a routine raised, which none does."""
    unexpected = [n for n in names if not n.startswith(("numba_", "NRT_", "Py")) or "alloc" in n]
    if unexpected:
        raise JunctureError(
            f"The compiled routines need {', '.join(unexpected)}, which is not available to them. "
            "Set NUMBA_DISABLE_INTEL_SVML=1 and try again, or report it."
        )
    stubs = "".join(
        f"define void @{name}() {{ call void @abort() unreachable }}\n" for name in names
    )
    return f"declare void @abort()\n{stubs}"
