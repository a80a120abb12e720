"""The entry point of the command line, which turns every way of ending into an exit code.

The commands are imported inside a function, so that Ctrl-C is caught from the first moment on.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any, NamedTuple

from juncture.cli.console import ExitCode, UsageError, error, note
from juncture.errors import BudgetExceeded, JunctureError

# For this long after Ctrl-C, another one does not disturb the clean-up.
_CLEANING_SECONDS = 1.0
# The exit code that shells report for a process that was asked to end.
_TERMINATED = 128 + signal.SIGTERM
# How systems say that a file cannot grow: a full disk, a quota, a limit of the process.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command line and end the process."""
    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # everything is done: do not interrupt the exit
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; a failure prints one line first."""
    debug, rest = _split_debug(arguments)
    with _catch_interrupts() as interrupted, warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = lambda message, *_where, **_more: note(f"warning: {message}")
        try:
            from juncture.cli.app import PROGRAM, app

            code = app(rest, prog_name=PROGRAM, standalone_mode=False)
            sys.stdout.flush()
            code = code if isinstance(code, int) else int(ExitCode.OK)
            for interrupt in interrupted:  # the parser may have turned it into an exit code
                _print_notes(interrupt.error)
        except BaseException as problem:
            code = _handle_failure(problem, rest, debug=debug)
        if interrupted or code == ExitCode.INTERRUPTED:
            _advise_resuming(rest)
            error("interrupted. No file was left half written.")
            code = ExitCode.INTERRUPTED
    return int(code)


def _handle_failure(problem: BaseException, arguments: Sequence[str], *, debug: bool) -> int:
    """The exit code of a failure, after printing what it was."""
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else ExitCode.OK
    if debug:
        import traceback

        traceback.print_exception(problem)
    _print_notes(problem)
    if isinstance(problem, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(problem, BrokenPipeError):  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    if _is_misuse(problem):
        return _report_misuse(problem)
    error(_describe_failure(problem, arguments))
    if isinstance(problem, UsageError):
        return ExitCode.USAGE
    return ExitCode.BUDGET if isinstance(problem, BudgetExceeded) else ExitCode.ERROR


def _print_notes(problem: BaseException) -> None:
    """Print the notes of an error, even where the parser has wrapped it in its own."""
    step: BaseException | None = problem
    while step is not None:
        for remark in getattr(step, "__notes__", ()):
            note(remark)
        step = step.__cause__


def _advise_resuming(arguments: Sequence[str]) -> None:
    """Print the command that goes on, where a release was interrupted after paying."""
    if not arguments or arguments[0] != "release":
        return
    from juncture.private.journal import journal_path

    joined = dict(word.split("=", 1) for word in arguments if word.startswith("--out="))
    spaced = dict(pairwise(arguments))
    out = joined.get("--out") or spaced.get("--out") or spaced.get("-o")
    if out and journal_path(out).exists():
        words = [*(word for word in arguments if word != "--resume"), "--resume"]
        note(f"to go on with what was paid for: juncture {shlex.join(words)}")


def _describe_failure(problem: BaseException, arguments: Sequence[str]) -> str:
    if isinstance(problem, JunctureError):
        from typer.main import get_command

        from juncture.cli.app import app
        from juncture.cli.option_names import name_options

        return name_options(str(problem), get_command(app), arguments)
    if isinstance(problem, OSError):
        advice = "Make room on the disk" if problem.errno in _NO_ROOM else "Check the path"
        return f"{problem.filename or 'a file'}: {problem.strerror or problem}. {advice}."
    # Without its message: that of an unforeseen error may quote private values.
    return (
        f"an unexpected {type(problem).__name__}. Run the command again with --debug for the "
        "trace, check it for private values, and report it."
    )


def _is_misuse(problem: BaseException) -> bool:
    from juncture.cli.app import USAGE

    return isinstance(problem, USAGE)


def _report_misuse(problem: BaseException) -> int:
    """Print one line about a command that was written wrongly; the help for an empty one."""
    context = getattr(problem, "ctx", None)
    message = str(getattr(problem, "format_message", lambda: problem)())
    if type(problem).__name__ == "NoArgsIsHelpError":
        note(message)
        return ExitCode.USAGE
    path = "juncture" if context is None else context.command_path
    error(f"{message.rstrip('.')}. See '{path} --help'.")
    return ExitCode.USAGE


def _split_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether --debug is among the arguments, and the other arguments. What follows -- is data."""
    args = list(arguments)
    end = args.index("--") if "--" in args else len(args)
    kept = [a for a in args[:end] if a != "--debug"] + args[end:]
    return len(kept) < len(args), kept


class _Interrupt(NamedTuple):
    """A Ctrl-C: when it came, and the error that it became."""

    time: float
    error: KeyboardInterrupt


@contextmanager
def _catch_interrupts() -> Iterator[list[_Interrupt]]:
    """Remember Ctrl-C: an engine that it stops may report it as an error of its own."""
    seen: list[_Interrupt] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def remember(_number: int, _frame: FrameType | None) -> None:
        if seen and time.monotonic() < seen[-1].time + _CLEANING_SECONDS:
            return
        seen.append(_Interrupt(time.monotonic(), KeyboardInterrupt()))
        raise seen[-1].error

    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)  # like Ctrl-C: open files are cleaned up

    before, hook = signal.signal(signal.SIGINT, remember), sys.unraisablehook
    earlier = signal.signal(signal.SIGTERM, end)
    sys.unraisablehook = _ignore_interrupts(hook)
    try:
        yield seen
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, earlier)
        signal.signal(signal.SIGINT, before)


def _ignore_interrupts(hook: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A hook that is silent about Ctrl-C in code whose errors cannot be caught."""

    def show(unraisable: Any) -> None:  # noqa: ANN401
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            hook(unraisable)

    return show


if __name__ == "__main__":
    main()
