"""PrivBayes: its scores and parent sets by brute force, and its limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chain_table import WORKLOAD, table
from juncture.errors import InvalidInput
from juncture.mechanisms.parent_sets import find_parent_sets
from juncture.mechanisms.privbayes import PrivBayes
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.dependence import Dependence
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.workload import Workload


def test_sensitivities_of_dependence_by_brute_force() -> None:
    """Over all tables of a few records and all their neighbours, in four shapes."""
    from itertools import combinations_with_replacement  # noqa: PLC0415

    for shape, n in (((2, 2), 6), ((2, 3), 5), ((3, 3), 4), ((3, 2), 5)):
        domain = Domain(dict(zip("xy", shape, strict=True)))
        cells = list(np.ndindex(*shape))
        kinds = [by for by in Dependence if by is not Dependence.FIT or shape[1] == 2]
        moved = dict.fromkeys(kinds, 0.0)
        for rest in combinations_with_replacement(cells, n - 1):
            base = np.zeros(shape)
            for cell in rest:
                base[cell] += 1
            found: dict[Dependence, list[float]] = {by: [] for by in kinds}
            for cell in cells:
                table = base.copy()
                table[cell] += 1
                for by in kinds:
                    found[by].append(by.score(Factor(domain, table), n))
            for by, values in found.items():
                moved[by] = max(moved[by], max(values) - min(values))
        for by, most in moved.items():
            assert 0.99 < most <= by.sensitivity(n) + 1e-9


def test_the_fit_to_a_deciding_set_by_brute_force() -> None:
    """Over all ways to give each value of the set one of the two values."""
    from itertools import product  # noqa: PLC0415

    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = int(rng.integers(1, 7))
        counts = rng.integers(0, 9, (rows, 2)).astype(float)
        n = int(counts.sum())
        best = min(
            sum(
                max(n / 2 - sum(counts[i, v] for i in range(rows) if given[i] == v), 0.0)
                for v in (0, 1)
            )
            for given in product((0, 1), repeat=rows)
        )
        factor = Factor(Domain({"x": rows, "y": 2}), counts)
        assert Dependence.FIT.score(factor, n) == pytest.approx(-best)


def test_privbayes_keeps_its_model_within_the_limit(tmp_path: Path) -> None:
    """Parents that would make the tree larger are let go; what is spent stays the same."""
    cells = {}
    for most in (60, 10_000_000):
        ledger = Ledger.create(tmp_path / f"{most}", Budget(epsilon=1e6), Neighbours.REPLACE)
        curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(0))
        outcome = PrivBayes(Budget(epsilon=1e6), max_model_cells=most).run(curator, WORKLOAD)
        assert outcome.model is not None
        assert ledger.spent == pytest.approx(1e6)
        cells[most] = outcome.model.plan.cells
    assert cells[60] <= 60 < cells[10_000_000]


def test_privbayes_by_fit_is_for_attributes_of_two_values(tmp_path: Path) -> None:
    """On a chain of such it finds the chain; on others it is refused before anything is paid."""
    domain = Domain(dict.fromkeys("abc", 2))
    rng = np.random.default_rng(0)
    columns = {"a": rng.integers(0, 2, 4000)}
    for before, name in ("ab", "bc"):
        columns[name] = np.where(rng.random(4000) < 0.9, columns[before], 1 - columns[before])
    ledger = Ledger.create(tmp_path / "binary", Budget(epsilon=5000.0), Neighbours.REPLACE)
    curator = SimulatedCurator(CodedTable(domain, columns), ledger, rng=rng)
    mechanism = PrivBayes(Budget(epsilon=50.0), dependence=Dependence.FIT, usefulness=4000.0)
    outcome = mechanism.run(curator, Workload.all_marginals(domain, 2))
    assert outcome.details["network"] == ["a | ", "b | a", "c | b"]
    other = Ledger.create(tmp_path / "other", Budget(epsilon=50.0), Neighbours.REPLACE)
    with pytest.raises(InvalidInput, match="two values"):
        mechanism.run(SimulatedCurator(table(), other, rng=rng), WORKLOAD)
    assert other.spent == 0


def test_maximal_parent_sets_by_brute_force() -> None:
    """Every set that fits and cannot be enlarged, and no other; each once."""
    from itertools import combinations  # noqa: PLC0415

    rng = np.random.default_rng(0)
    for _ in range(60):
        sizes = rng.integers(1, 6, rng.integers(1, 7)).tolist()
        domain = Domain({f"x{i}": size for i, size in enumerate(sizes)})
        names, limit = tuple(domain), float(rng.choice([0.5, 1.0, 2.5, 6.0, 12.0, 30.0, 1e4]))
        fitting = [
            set(each)
            for k in range(len(names) + 1)
            for each in combinations(names, k)
            if domain.size_of(each) <= limit
        ]
        maximal = [each for each in fitting if not any(each < other for other in fitting)]
        expected = sorted(domain.canonical(each) for each in maximal) or [()]
        assert sorted(find_parent_sets(domain, names, limit)) == expected
        few = find_parent_sets(domain, names, limit, max_sets=2)
        assert len(few) == min(2, len(expected))
        assert set(few) <= set(expected)


def test_parent_sets_of_a_wide_table_are_thinned_at_once() -> None:
    """Of millions of sets, as many as asked for, all maximal, the same each time."""
    domain = Domain({f"x{i}": 2 for i in range(100)})
    found = find_parent_sets(domain, tuple(domain), 40.0, max_sets=50)
    assert len(set(found)) == 50
    assert all(len(each) == 5 for each in found)
    assert found == find_parent_sets(domain, tuple(domain), 40.0, max_sets=50)
    assert found != find_parent_sets(domain, tuple(domain), 40.0, max_sets=50, seed=1)


def test_parent_sets_of_an_earlier_choice_are_taken_again() -> None:
    """Most are sets that were taken before, whose tables were counted; the others are fresh."""
    domain = Domain({f"x{i}": 2 for i in range(100)})
    names = tuple(domain)
    before = find_parent_sets(domain, names[:60], 40.0, max_sets=40)
    found = find_parent_sets(domain, names, 40.0, max_sets=40, seed=1, known=before)
    again = [each for each in found if each in set(before)]
    assert again == before[-34:]  # 0.85 of 40
    assert len(found) == len(set(found)) == 40
    assert any(set(each) - set(names[:60]) for each in found)
