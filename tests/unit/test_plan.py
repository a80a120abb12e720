"""Tests of plans: junction trees as data."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from hypothesis import given

import problems
import strategies
from juncture.engine.plan import Plan
from juncture.engine.plan_text import format_bytes, format_count
from juncture.engine.program import lower
from juncture.engine.propagation import Propagation
from juncture.engine.reference import Reference
from juncture.errors import InvalidInput, ModelTooLarge, UnknownAttribute
from juncture.tables.domain import Clique, Domain
from packing import plan_of
from problems import PROBLEMS, Problem
from strategies import examples

SOURCE = Path(__file__).parents[2] / "src"


def built(model: strategies.Model) -> Plan:
    """Give the plan of a model's cliques as they were given."""
    return Plan.build(Domain(model.sizes), model.cliques)


def chain(length: int, size: int) -> Plan:
    """Give the plan of a chain."""
    names = [f"x{i}" for i in range(length)]
    return Plan.build(Domain(dict.fromkeys(names, size)), list(pairwise(names)))


@examples(150)
@given(strategies.models((strategies.ORDINARY,)))
def test_hosts_hold_their_cliques(model: strategies.Model) -> None:
    """Every measured clique has exactly one host, and the host holds all of its attributes."""
    plan = built(model)
    hosted = [clique for node in plan.nodes for clique in node.measured]
    assert sorted(hosted) == sorted(plan.cliques)
    for clique, place in plan.hosts.items():
        assert set(clique) <= set(plan.nodes[place].clique)
        assert clique in plan.nodes[place].measured


@examples(100)
@given(strategies.models((strategies.ORDINARY,)))
def test_nodes_are_a_junction_tree(model: strategies.Model) -> None:
    """Separators are what child and parent share, and each attribute's nodes are connected."""
    plan = built(model)
    for place, node in enumerate(plan.nodes):
        assert node.clique == plan.domain.canonical(node.clique)
        if node.parent is None:
            assert node.separator == ()
        else:
            assert node.parent > place
            assert set(node.separator) == set(node.clique) & set(plan.nodes[node.parent].clique)
    for name in plan.domain:
        tops = [n for n in plan.nodes if name in n.clique and name not in n.separator]
        assert len(tops) == (name not in plan.free_attributes)


@examples(100)
@given(strategies.models((strategies.ORDINARY,)))
def test_summaries_agree_with_the_nodes(model: strategies.Model) -> None:
    """Cells, largest clique and free attributes are what the nodes and cliques say."""
    plan = built(model)
    sizes = dict(model.sizes)
    cells = [int(np.prod([sizes[name] for name in node.clique])) for node in plan.nodes]
    assert plan.cells == sum(cells)
    assert plan.domain.size_of(plan.largest_clique) == max(cells, default=1)
    mentioned = {name for clique in model.cliques for name in clique}
    assert set(plan.free_attributes) == set(sizes) - mentioned
    assert set(plan.cliques) == {plan.domain.canonical(clique) for clique in model.cliques}


@given(strategies.models((strategies.ORDINARY,)))
def test_any_iterable_will_do(model: strategies.Model) -> None:
    """Cliques given as generators of generators make the same plan."""
    again = Plan.build(Domain(model.sizes), ((name for name in c) for c in model.cliques))
    assert again.nodes == built(model).nodes


LARGE = [
    ("a", "b", "c"),
    ("c", "d", "e"),
    ("e", "f", "a"),
    ("a", "b"),
    ("d", "f"),
]
SIZES = {"a": 60, "b": 50, "c": 40, "d": 30, "e": 20, "f": 10}


@pytest.mark.parametrize(
    "cliques",
    [LARGE[:1], LARGE[:3], LARGE, list(combinations("cdef", 3)), [("a", "b"), ("c", "d", "e")]],
    ids=str,
)
@pytest.mark.parametrize("spread", [0.0, 5000.0])
def test_predicted_bytes_are_what_is_allocated(cliques: list[Clique], spread: float) -> None:
    """An oracle takes the predicted bytes to within 3 %, less the exponents it did not need."""
    plan = Plan.build(Domain(SIZES), cliques)
    Propagation(plan, threads=1).marginals(np.zeros(plan.layout.size))
    tracemalloc.start()
    oracle = Propagation(plan, threads=1)
    potentials = np.linspace(0.0, spread, oracle.layout.size)
    beliefs = oracle.marginals(potentials)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert beliefs.marginals.nbytes == potentials.nbytes
    exponents = 8 * (lower(plan, threads=1).workspace_cells + plan.layout.size)
    expected = plan.size_bytes - (0 if oracle.repeated else exponents)
    assert expected == pytest.approx(peak, rel=0.03)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_predicted_bytes_are_counted_cell_by_cell(problem: Problem) -> None:
    """Potentials, and twice marginals and workspace, hold as many numbers as predicted."""
    plan = plan_of(problem.sizes, problem.potentials)
    n_potentials = sum(map(plan.domain.size_of, plan.cliques))
    workspace = lower(plan, threads=1).workspace_cells - 1  # one cell holds the number one
    assert 8 * (2 * workspace + 3 * n_potentials) == plan.size_bytes


def test_operations_grow_with_the_tables() -> None:
    """Doubling all sizes of a chain quadruples the operations, roughly."""
    ratio = chain(20, 40).operations / chain(20, 20).operations
    assert ratio == pytest.approx(4.0, rel=0.1)


def pairs_of(n_attributes: int, size: int) -> tuple[Domain, list[Clique]]:
    """Give all pairs of so many attributes: one clique holds them all."""
    domain = Domain({f"x{i}": size for i in range(n_attributes)})
    return domain, list(combinations(domain, 2))


def test_too_large_before_anything_is_allocated() -> None:
    """A plan beyond the memory limit is refused having allocated next to nothing."""
    domain, cliques = pairs_of(12, 10)
    tracemalloc.start()
    with pytest.raises(ModelTooLarge, match=r"must give a model within 100 MB; got one of"):
        Plan.build(domain, cliques, memory_limit=100_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_the_largest_clique_is_named() -> None:
    """The message of a refusal names the largest clique and its number of cells."""
    domain = Domain({"age": 100, "sex": 2, "zip": 1000, "job": 50})
    with pytest.raises(ModelTooLarge, match=r"clique is \(age, zip, job\) with 5,000,000 c"):
        Plan.build(domain, [("job", "age", "zip"), ("sex", "age")], memory_limit=1_000_000)


def test_too_large_is_a_memory_error() -> None:
    """Code that catches MemoryError catches a plan that is too large."""
    with pytest.raises(MemoryError, match="raise `memory_limit`"):
        Plan.build(Domain({"a": 1000}), [("a",)], memory_limit=1000)


def test_the_limit_is_inclusive() -> None:
    """A plan may use exactly the memory limit, and not a byte more."""
    plan = Plan.build(Domain(SIZES), LARGE)
    again = Plan.build(Domain(SIZES), LARGE, memory_limit=plan.size_bytes)
    assert again.nodes == plan.nodes
    with pytest.raises(ModelTooLarge, match="Leave out a clique"):
        Plan.build(Domain(SIZES), LARGE, memory_limit=plan.size_bytes - 1)


def test_extend_heeds_the_limit() -> None:
    """Extending beyond the memory limit is refused, and the message states that limit."""
    plan = chain(4, 100)
    with pytest.raises(ModelTooLarge, match=r"must give a model within 1.0 MB"):
        plan.extend(("x0", "x1", "x2"), memory_limit=1_000_000)


def test_by_default_the_machine_is_the_limit() -> None:
    """Without a limit, no plan needs more than the machine's memory."""
    domain, cliques = pairs_of(15, 10)
    with pytest.raises(ModelTooLarge, match="must give a model within"):
        Plan.build(domain, cliques)


@pytest.mark.parametrize("n_attributes", [250, 1100])
def test_beyond_sixty_four_bits(n_attributes: int) -> None:
    """Domains of 2**250 and 2**1100 cells are planned, printed and solved as others."""
    domain = Domain({f"x{i}": 2 for i in range(n_attributes)})
    plan = Plan.build(domain, list(pairwise(domain)))
    assert plan.cells == 4 * (n_attributes - 1)
    assert "cells in the full table" in str(plan)
    log_partition = Propagation(plan).marginals(np.zeros(plan.cells)).log_partition
    assert log_partition == pytest.approx(n_attributes * np.log(2), rel=1e-13)


def test_cliques_beyond_sixty_four_bits() -> None:
    """A clique of 2**80 cells is foretold exactly and refused."""
    plan = chain(80, 2)
    assert plan.cells_with(plan.domain) == 2**80
    with pytest.raises(ModelTooLarge, match="must give a model within"):
        plan.extend(plan.domain)


def test_brute_force_refuses_large_domains() -> None:
    """The reference refuses a domain beyond any floating-point number in plain words."""
    with pytest.raises(InvalidInput, match="must have at most 10,000,000 cells"):
        Reference(chain(1100, 2))


def test_attributes_of_astronomic_size() -> None:
    """A cycle of attributes with 10**200 values is too large, not an arithmetic error."""
    domain = Domain(dict.fromkeys("abcd", 10**200))
    with pytest.raises(ModelTooLarge, match="must give a model within"):
        Plan.build(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])


def test_refusals_are_short() -> None:
    """The message about a clique of four hundred attributes fits on a screen."""
    domain = Domain({f"x{i}": 10 for i in range(400)})
    with pytest.raises(ModelTooLarge, match="must give a model within") as caught:
        Plan.build(domain, [domain])
    assert len(str(caught.value)) < 1000


def test_bad_cliques_are_refused() -> None:
    """Unknown names, repetitions and bare text among the cliques are refused."""
    domain = Domain({"a": 2, "b": 3})
    with pytest.raises(UnknownAttribute, match="got 'z'"):
        Plan.build(domain, [("a", "z")])
    with pytest.raises(InvalidInput, match="must name each attribute once"):
        Plan.build(domain, [("a", "a")])
    with pytest.raises(InvalidInput, match=r"Write \('ab',\)"):
        Plan.build(domain, ["ab"])
    with pytest.raises(InvalidInput, match=r"Write \('a',\)"):
        Plan.build(domain, [("b",)]).extend("a")


def test_eight_hundred_attributes_are_planned() -> None:
    """A chain of eight hundred attributes gives a tree of all its pairs."""
    assert len(chain(800, 3).nodes) == 799


def test_hopeless_cliques_are_refused() -> None:
    """All pairs of 26 attributes, 325 tables in one clique, are refused."""
    domain, cliques = pairs_of(26, 10)
    with pytest.raises(ModelTooLarge, match="must give a model within"):
        Plan.build(domain, cliques)


def network(n_attributes: int) -> tuple[Domain, list[Clique]]:
    """Give the cliques of a network in which every attribute depends on three others."""
    domain = Domain({f"x{i}": 2 + i % 3 for i in range(n_attributes)})
    near = [(i, i * 7 // 8, i * 3 // 4, i // 2) for i in range(n_attributes)]
    return domain, [tuple(f"x{j}" for j in sorted({*scope})) for scope in near]


def count_calls(function: Callable[[], object]) -> int:
    """Give the number of calls of Python functions, and of resumed generators, that it makes."""
    calls = 0

    def watch(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


def test_small_models_take_few_calls() -> None:
    """Planning takes at most 130 calls an attribute, and making an oracle of the plan 130 more.

    For small models these calls are all that a first answer costs.
    """
    domain, cliques = network(40)
    plan = Plan.build(domain, cliques)
    Propagation(plan)
    assert count_calls(lambda: Plan.build(domain, cliques)) <= 130 * len(domain)
    assert count_calls(lambda: Propagation(plan)) <= 130 * len(domain)


def test_a_negative_memory_limit_is_refused() -> None:
    """A limit below zero is a mistake, not a small limit."""
    with pytest.raises(InvalidInput, match="`memory_limit` must be a number of bytes; got -5"):
        Plan.build(Domain({"a": 2}), [("a",)], memory_limit=-5)


PEOPLE = Domain({"age": 85, "sex": 2, "race": 5, "income": 2, "hours": 99, "country": 42})
MEASURED = [
    ("age", "sex"),
    ("sex", "income"),
    ("income", "race"),
    ("race", "sex"),
    ("income", "age"),
    ("hours",),
]
PRINTED = """\
Plan for 6 attributes (7,068,600 cells in the full table), 6 measured cliques
  junction tree   3 cliques in 2 parts, 459 cells, the largest clique 340
  one oracle call 23.0 kB, 3,389 operations
  questions       28.0 kB for the tables of all cliques
  unmeasured      country (uniform, independent)
  age, sex, income               340 cells, hosts 2 measured cliques
  └─ sex, race, income            20 cells, joined over sex, income, hosts 3 measured cliques
  hours                           99 cells"""


def test_print() -> None:
    """A plan prints as a headline, its sizes and costs, and a drawing of its tree."""
    assert str(Plan.build(PEOPLE, MEASURED)) == PRINTED


BRANCHES = """\
  x, y, z                   8 cells, measures nothing
  ├─ a, x, y                8 cells, joined over x, y
  │  └─ a, e, f             8 cells, joined over a
  │     └─ f, g             4 cells, joined over f
  ├─ c, x, z                8 cells, joined over x, z
  │  └─ c, d                4 cells, joined over c
  └─ b, y, z                8 cells, joined over y, z"""


def test_print_branches() -> None:
    """Branches are drawn with their joints, and a node that hosts nothing says so."""
    cliques = problems.cliques("axy byz cxz cd aef fg")
    text = str(Plan.build(Domain(dict.fromkeys("abcdefgxyz", 2)), cliques))
    assert "\n".join(text.splitlines()[4:]) == BRANCHES


def test_print_nothing() -> None:
    """A plan without cliques has no drawing."""
    assert str(Plan.build(Domain({"a": 2}), [])).splitlines() == [
        "Plan for 1 attribute (2 cells in the full table), 0 measured cliques",
        "  junction tree   0 cliques in 0 parts, 0 cells, the largest clique 0",
        "  one oracle call 0 bytes, 0 operations",
        "  unmeasured      a (uniform, independent)",
    ]


def test_print_one_cell() -> None:
    """One of anything is written in the singular."""
    assert "1 cells" not in str(Plan.build(Domain({"a": 1}), [("a",)]))


def test_print_is_bounded() -> None:
    """Plans of hundreds of cliques print on one screen and say how many are left out."""
    lines = str(chain(300, 3)).splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 100
    shown = sum("cells, joined" in line or line.endswith("9 cells") for line in lines)
    assert lines[-1] == f"  … and {299 - shown} cliques more"


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_every_problem_prints(problem: Problem) -> None:
    """Every plan's text starts with its number of attributes and has no trailing blanks."""
    lines = str(plan_of(problem.sizes, problem.potentials)).splitlines()
    assert lines[0].startswith(f"Plan for {len(problem.sizes)} attribute")
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_960, "100 kB"),
        (123_456_789, "123 MB"),
        (999_999, "1.0 MB"),
        (5 * 10**12, "5.0 TB"),
    ],
)
def test_readable_bytes(size_bytes: int, text: str) -> None:
    """Bytes are shown with three figures or fewer and a unit that suits them."""
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (1234, "1,234"),
        (999_999_999, "999,999,999"),
        (10**9, "1.0e9"),
        (2_500_000_000, "2.5e9"),
        (9_990_000_000, "1.0e10"),
        (10**400, "1.0e400"),
        (7 * 10**400, "7.0e400"),
    ],
)
def test_readable_counts(count: int, text: str) -> None:
    """Counts are exact while short, and powers of ten beyond, however large."""
    assert format_count(count) == text


SCRIPT = """
import numpy as np
from juncture.tables.domain import Domain
from juncture.engine.plan import Plan
from juncture.engine.program import lower
from juncture.engine.propagation import Propagation
names = ["age", "sex", "race", "job", "city", "hours", "income", "zip", "kids"]
domain = Domain({name: 2 + place % 4 for place, name in enumerate(names)})
cliques = [(names[i], names[(i * i + 3) % 9]) for i in range(9) if i != (i * i + 3) % 9]
plan = Plan.build(domain, cliques).extend(("zip", "age", "job"))
oracle = Propagation(plan, threads=2)
beliefs = oracle.marginals(np.sin(np.arange(oracle.layout.size)))
print(plan)
print(plan.nodes, plan.contraction.axes, plan.buckets)
print([plan.cells_with((one, other)) for one in names for other in names if one != other])
print(beliefs.marginals.tobytes().hex(), beliefs.log_partition.hex())
"""


def output(hash_seed: str) -> str:
    """Give what the script prints under a hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_hash_seeds_do_not_matter() -> None:
    """Plans, predictions and marginals are the same bytes under any hash seed."""
    first = output("0")
    assert "Plan for 9 attributes" in first
    assert output("1") == first
    assert output("4242") == first
