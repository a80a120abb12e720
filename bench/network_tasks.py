"""What both sides of the comparison on networks share: the questions and the clock.

A side gets a network as arrays, makes its own objects of it, untimed, and is asked: for the
posterior of one variable (the first answer), for joint tables of pairs, for the posterior of a
variable given a value of another. A small network is asked first, so that loading code is not part
of the first answer. Times are of the processor, because machines are shared. Runs in either
environment and imports neither library.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import bif
import numpy as np
from bif import Array, Network
from harness import peak_bytes

N_PAIRS = 30
N_EVIDENCE = 20
# No side is asked for more once it has taken this long.
PATIENCE_SECONDS = 20.0
Pair = tuple[str, str]
T = TypeVar("T")


class Question(NamedTuple):
    """The posterior of a variable given the value of another."""

    asked: str
    given: str
    code: int


class Side(Protocol):
    """A network in one library, before any inference."""

    def posterior(self, name: str) -> Array:
        """The probabilities of a variable; the first answer begins here."""

    def joint(self, pair: Pair) -> Array:
        """The joint table of two variables, an axis each."""

    def posterior_given(self, question: Question) -> Array:
        """The probabilities of a variable given the value of another."""


def choose_pairs(network: Network) -> list[Pair]:
    """Pairs of variables anywhere in the network, whose tables are not too large."""
    rng, names = np.random.default_rng(0), list(network.sizes)
    pairs = (tuple(names[i] for i in rng.choice(len(names), 2, replace=False)) for _ in range(1000))
    small = [(a, b) for a, b in pairs if network.sizes[a] * network.sizes[b] <= 10_000]
    return list(dict.fromkeys(small))[:N_PAIRS]


def choose_evidence(network: Network) -> list[Question]:
    """Values that a record drawn from the network has, so that none is impossible."""
    rng, names = np.random.default_rng(1), list(network.sizes)
    record = draw_record(network, rng)
    chosen = [rng.choice(len(names), 2, replace=False) for _ in range(N_EVIDENCE)]
    return [Question(names[a], names[b], record[names[b]]) for a, b in chosen]


def draw_record(network: Network, rng: np.random.Generator) -> dict[str, int]:
    """One record, each variable given its parents."""
    record: dict[str, int] = {}
    waiting = list(network.sizes)
    for name in waiting:  # grows while it is walked
        parents = network.parents[name]
        if all(parent in record for parent in parents):
            row = network.tables[name][tuple(record[parent] for parent in parents)]
            record[name] = int(rng.choice(len(row), p=row / row.sum()))
        else:
            waiting.append(name)
    return record


def tiny() -> Network:
    """A network with a ring, to load all code with: also the search for a junction tree."""
    arcs = {"a": "", "b": "a", "c": "a", "d": "b", "e": "c", "f": "de"}
    parents = {name: tuple(given) for name, given in arcs.items()}
    tables = {name: np.full((3,) * (len(given) + 1), 1 / 3) for name, given in parents.items()}
    return Network(dict.fromkeys(parents, 3), parents, tables)


def time_each(ask: Callable[[T], Array], questions: list[T]) -> tuple[float, list[Array]]:
    """The seconds for one question, and all answers; stops when patience is at an end."""
    answers, spent = list[Array](), 0.0
    for question in questions:
        began = time.process_time()
        answers.append(ask(question))
        spent += time.process_time() - began
        if spent > PATIENCE_SECONDS:
            break
    return spent / len(answers), answers


def main(make: Callable[[Network], Side]) -> None:
    """Ask one network, write all answers to a file and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("network", type=Path, help="network (NPZ)")
    parser.add_argument("answers", type=Path, help="where the answers go (NPZ)")
    options = parser.parse_args()
    warm = make(tiny())
    warm.posterior("f")
    warm.joint(("a", "f"))
    warm.posterior_given(Question("f", "a", 0))
    network = bif.load(options.network)
    side, names = make(network), list(network.sizes)
    first, posteriors = time_each(side.posterior, names[-1:])
    posteriors += time_each(side.posterior, names[:-1])[1]
    pairs = choose_pairs(network)
    time_each(side.joint, pairs[:1])
    pair, joints = time_each(side.joint, pairs[1:])
    evidence, conditionals = time_each(side.posterior_given, choose_evidence(network))
    named = {"posterior": posteriors, "joint": joints, "given": conditionals}
    arrays = {f"{kind} {i}": a for kind, all_ in named.items() for i, a in enumerate(all_)}
    np.savez(options.answers, allow_pickle=False, **arrays)
    report = {"first": first, "pair": pair, "evidence": evidence, "peak_bytes": peak_bytes()}
    print(json.dumps(report))
