"""A process that holds a release and answers, one question after another.

The server has no model: it cannot be slow, run out of memory or crash over a question. This process
can, and then the server ends it and starts another. It reads questions from its standard input and
writes answers to its standard output; when the server is gone, so is the input, and it ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from juncture.errors import JunctureError
from juncture.publish.explorer import limits
from juncture.publish.explorer.answers import Answers
from juncture.publish.explorer.frames import Frame, Kind, read_frame
from juncture.publish.explorer.own_kinds import register_own_kinds
from juncture.publish.release import load


def main(path: str, name: str, *kinds: str) -> None:
    """Answer questions about the release of a file until the input ends."""
    register_own_kinds(kinds)
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not disturb answers
    questions = _read_ahead(sys.stdin.buffer)
    kept: dict[str, Answers] = {}

    def open_release() -> dict[str, Any]:
        kept["answers"] = Answers(load(Path(path)), name)
        return kept["answers"].facts()

    opened = respond(open_release)
    _send(sink, opened)
    if opened.kind is not Kind.ANSWER:
        return
    _limit_memory(limits.QUESTION_BYTES)
    while True:
        question = json.loads(questions.get())
        _send(sink, respond(partial(kept["answers"].ask, question)))


def respond(work: Callable[[], Mapping[str, Any]]) -> Frame:
    """The answer, or the message of one of our errors; of any other error, its name."""
    try:
        return Frame(Kind.ANSWER, json.dumps(work(), allow_nan=False).encode())
    except JunctureError as error:
        return Frame(Kind.REFUSAL, str(error).encode(errors="replace"))
    except Exception as error:
        return Frame(Kind.FAILURE, type(error).__name__.encode())


def _send(sink: BinaryIO, frame: Frame) -> None:
    sink.write(frame.to_bytes())
    sink.flush()


def _read_ahead(source: BinaryIO) -> SimpleQueue[bytes]:
    """The questions as they come; a thread of its own notices the end even during a question."""
    questions: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        while (frame := read_frame(source)) is not None:
            questions.put(frame.payload)
        os._exit(0)

    Thread(target=read, daemon=True).start()
    return questions


def _limit_memory(n_bytes: int) -> None:
    """Let this process take so much more memory than it has; where a system has no limits, none."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  (not on every system)

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        whole = pages * os.sysconf("SC_PAGE_SIZE") + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (whole, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
