"""Workloads: which tasks they have, and what their weights are."""

from __future__ import annotations

import pytest

from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.workload import Workload


def test_the_papers_workload() -> None:
    """The first triples, prefixes where sizes are 100 or 101, and the number of queries."""
    domain = Domain({"p": 100, "q": 3, "r": 101, "s": 4, "t": 5, "u": 2, "v": 2})
    workload = Workload.paper_triples(domain, 10_000)
    assert len(workload.tasks) == 15
    assert workload.cliques == Workload.paper_triples(domain, 10_000).cliques
    for task in workload.tasks:
        for name, each in zip(task.clique, task.blocks, strict=True):
            assert isinstance(each, Prefix if name in ("p", "r") else Identity)
    with pytest.raises(InvalidInput, match="sets of 3 attributes that are small enough"):
        Workload.paper_triples(Domain({"a": 2, "b": 2, "c": 2}), 100)
