"""Attack the readers: `python tests/fuzz/run.py --minutes 10 --seed 1`, or `make fuzz`.

Each input is made from the seed and its number. What fails is printed with the text that does it;
add that text to `tests/fuzz/corpus`, fix the fault, and it stays fixed.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.targets import Target, make_targets
from juncture import JunctureError
from juncture.engine.compiled.loader import load_routines

CORPUS = Path(__file__).parent / "corpus"
MAX_CPU_SECONDS, MAX_GROWTH = 20.0, 1 << 30


class TookTooLong(BaseException):
    """An input that keeps the processor busy; no reader catches this."""


def try_input(target: Target, text: str, folder: Path) -> str:
    """How a target takes an input: "accepted", "refused", or what went wrong."""
    before = _peak_bytes()
    signal.signal(signal.SIGPROF, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(text, folder)
        result = "accepted"
    except JunctureError:
        result = "refused"
    except (Exception, TookTooLong) as error:
        result = f"{type(error).__name__}: {error}\n{''.join(traceback.format_exc()[-1500:])}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    grown = _peak_bytes() - before
    return f"{grown >> 20} MB for one input" if grown > MAX_GROWTH else result


def make_input(target: Target, seed: int, index: int) -> str:
    """An input of a target, the same for the same numbers."""
    return target.make(np.random.default_rng([seed, index]))


def read_corpus(target: Target) -> dict[str, str]:
    """The inputs of a target that once failed, by the name of their file."""
    paths = sorted(CORPUS.glob(f"{target.name}-*"))
    return {path.name: path.read_bytes().decode("utf-8", "surrogatepass") for path in paths}


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise TookTooLong(f"more than {MAX_CPU_SECONDS:g} seconds of the processor")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Attack until the time is over; returns how many inputs failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--targets", default="", help="names with commas between; all by default")
    parser.add_argument("--inputs", type=int, default=None, help="so many each, not by the clock")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else int(time.time())
    results: dict[str, Counter[str]] = {}
    load_routines()
    with TemporaryDirectory() as name:
        folder = Path(name)
        targets = make_targets(folder)
        wanted = chosen.targets.split(",") if chosen.targets else [t.name for t in targets]
        targets = [target for target in targets if target.name in wanted]
        end, index, failures = time.monotonic() + 60 * chosen.minutes, 0, set[str]()
        while time.monotonic() < end and (chosen.inputs is None or index < chosen.inputs):
            for target in targets:
                text = make_input(target, seed, index)
                result = try_input(target, text, folder)
                kind = result if result in ("accepted", "refused") else "failed"
                results.setdefault(target.name, Counter())[kind] += 1
                head = f"{target.name}: {result.splitlines()[-1][:60]} {result.splitlines()[0]}"
                if kind == "failed" and head[:120] not in failures:
                    failures.add(head[:120])
                    print(f"{target.name} {index}: {result}\n    {text[:3000]!r}\n", flush=True)
            index += 1
    print(f"seed {seed}, {index} inputs for each target, {len(failures)} kinds of failure")
    for label, counts in results.items():
        listed = ", ".join(f"{n:,} {kind}" for kind, n in sorted(counts.items()))
        print(f"  {label:10} {listed}")
    return min(1, len(failures))


if __name__ == "__main__":
    sys.exit(main())
