"""A real explorer server on a free port, and the small release that its tests ask about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep

import numpy as np
import uvicorn
from fastapi import FastAPI
from numpy.typing import NDArray

from guarantees import guarantee_of
from juncture import Codebook, Coding, Domain, Factor, Model, Release
from juncture.fit.summary import FitSummary, Status
from juncture.publish.explorer.server import make_config, open_socket
from juncture.tables.codebook import OUTSIDE

TOKEN = "open-sesame"
SIZES = {"age": 12, "pay": 5, "work": 5, "smoker": 2, 'odd "name" <b>': 3}
CODEBOOK = Codebook(
    {
        "age": Coding((*range(20, 32),)),
        "pay": Coding(((0.0, 10.0), (10.0, 20.0), (20.0, 50.0), None, OUTSIDE)),
        "work": Coding(("it's mine", "none", "<b>bold</b>", None, OUTSIDE)),
        "smoker": Coding((False, True)),
    }
)
LEDGER = [
    {"event": 1, "what": "a count", "epsilon": 0.25, "rho": 0.03125, "total": 0.25},
    {"event": 2, "what": "a count", "epsilon": 0.5, "rho": 0.125, "total": 0.75},
]


def small_release() -> Release:
    """Numbers, intervals, texts, truth values, plain codes; missing and outside; odd names."""
    rng, domain = np.random.default_rng(3), Domain(SIZES)
    pairs = [("age", "pay"), ("pay", "work"), ("work", "smoker"), ("smoker", 'odd "name" <b>')]
    potentials = [Factor.random(domain.project(pair), rng) for pair in pairs]
    model = Model.of_potentials(domain, potentials, total=5000.0).with_codebook(CODEBOOK)
    fit = FitSummary(status=Status.STALLED, loss=10.0, lower_bound=9.0, oracle_calls=3, seconds=0.1)
    return Release(model=model, guarantee=guarantee_of(LEDGER), fit=fit)


def dense_counts(release: Release) -> NDArray[np.float64]:
    """The expected number of records in every cell of the whole table, by writing it out."""
    model = release.model
    names = list(model.domain)
    scores = np.zeros(model.domain.shape)
    for clique in model.cliques:
        table = model.layout.view(model.potentials, clique)
        letters = [chr(97 + names.index(name)) for name in clique]
        shape = [model.domain[n] if n in clique else 1 for n in names]
        ordered = np.einsum(f"{''.join(letters)}->{''.join(sorted(letters))}", table)
        scores += ordered.reshape(shape)
    weights = np.exp(scores - scores.max())
    return np.asarray(model.total * weights / weights.sum())


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """The address of a server that runs in a thread, and is shut down at the end."""
    server = uvicorn.Server(make_config(app))
    with open_socket("127.0.0.1", 0) as listening:
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            began = monotonic()
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                assert monotonic() - began < 120
                sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive()
