"""PrivBayes: a Bayesian network chosen and measured privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture._util.randomness import Random
from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import needs_tree
from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.problem import Solver
from juncture.mechanisms.counted_records import CountedRecords
from juncture.mechanisms.hdmm import Estimation
from juncture.mechanisms.mechanism import (
    Assignment,
    Findings,
    Mechanism,
    Outline,
    refuse_useless,
    require_n_records,
)
from juncture.mechanisms.parent_sets import find_parent_sets
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.dependence import Dependence
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.privacy.score import DependenceScore
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator


class Link(NamedTuple):
    """An attribute and its parents: the attributes that it depends on."""

    child: str
    parents: Clique


@dataclass(frozen=True)
class PrivBayes(Mechanism):
    """Choose for each attribute its parents among the attributes before it, then measure.

    Privacy (replaced records; the number of records n is public). The first attribute is the first
    of the domain: it depends on nothing. Each of the d - 1 choices is an exponential mechanism on
    a score of dependence, which moves by at most what `Dependence.sensitivity` proves, and costs an
    equal part of `structure_share` of the budget's price. The d joint tables share the rest
    equally, each measured through the curator. Sequential composition gives the budget.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 1)
    >>> mechanism = PrivBayes(Budget(epsilon=1.0))
    >>> run = mechanism.prepare(workload, Neighbours.REPLACE, n_records=1000)
    >>> [round(cost.epsilon, 2) for cost in run.costs]
    [0.3, 0.35, 0.35]
    """

    name: ClassVar[str] = "privbayes"

    budget: Budget
    _: KW_ONLY
    structure_share: float = 0.3
    """The share of the price that is spent on choosing parents; 0.3 is the authors' value."""
    usefulness: float = 4.0
    """Joint tables have few enough cells that their average count is at least this many times the
    noise scale; 4 is the authors' value."""
    dependence: Dependence = Dependence.DISTANCE
    """The score of choices."""
    estimation: Estimation = Estimation.MODEL
    """`MODEL` fits a graphical model to the joint tables. `LOCAL` is the original: conditional
    tables with negative counts set to zero, and answers from records drawn from them."""
    n_samples: int | None = None
    """The number of records of the original form; by default the number of records in the table."""
    rng: Random = None
    """The randomness of those records, which is post-processing."""
    max_parent_sets: int = 4_000
    """The most candidates in one choice, of all attributes together. If there are more, that many
    are taken at random without looking at data: wide tables of small attributes have millions.
    Most of them are those of the choice before, whose tables were counted already."""
    max_model_cells: int = 10_000_000
    """The most cells of the model's junction tree: parents that would exceed it are dropped. With
    records for an oracle, none are."""
    solver: Solver = field(default_factory=EarlyStopping)
    """The solver that fits the model; the default stops when only noise is left to fit."""
    max_steps: int = 5000
    """The most steps of that solver."""
    oracle: OracleFactory | str = "exact"
    """What computes the model's marginals: "exact", "records" for parents of any tree-width, or
    "auto"."""

    def outline(self, assignment: Assignment) -> Outline:
        """Divide the budget. The workload does not influence what is measured."""
        needs_tree(self.oracle)  # refuses an unknown name
        if not 0.0 < self.structure_share < 1.0:
            raise InvalidInput(
                f"`structure_share` must lie between 0 and 1; got {self.structure_share}."
            )
        n_public, d = require_n_records(self.name, assignment), len(assignment.domain)
        choice, table = self.prices(d)
        stddev = refuse_useless(table.cell_stddev(assignment.neighbours))
        cells = max(1, int(self.cell_limit(d, n_public)))
        return Outline(
            n_records=n_public,
            costs=(choice.selection_cost,) * (d - 1) + (table.cost,) * d,
            execute=lambda curator, watch: self._execute(curator, n_public, watch),
            facts=(
                ("choices", f"{d - 1}: the parents of every attribute but the first"),
                ("a choice costs", str(choice)),
                ("joint tables", f"{d}, of at most {cells:,} cells each"),
                ("a joint table costs", str(table)),
                ("noise on a measured cell", f"standard deviation {stddev:.3g}"),
                ("the workload", "does not influence what is measured"),
            ),
        )

    def _execute(self, curator: Curator, n_records: int, watch: Watch) -> Findings:
        """Choose the network, measure its tables, and estimate."""
        domain = curator.domain
        network = self._choose_network(curator, n_records, watch)
        price = self.prices(len(network))[1]
        measurements = curator.measure_all(
            [Request((*link.parents, link.child), price) for link in network]
        )
        details = {"network": [f"{c} | {', '.join(p)}" for c, p in network]}
        if self.estimation is Estimation.LOCAL:
            records = self._sample(domain, network, measurements, n_records)
            columns = dict(zip(domain, records, strict=True))
            sampled = CountedRecords(domain, columns, n_records / len(records[0]))
            return Findings(sampled.project, measurements=measurements, details=details)
        fit = estimate(
            domain, measurements, total=float(n_records), solver=self.solver,
            max_steps=self.max_steps, oracle=self.oracle, watch=watch,
        )  # fmt: skip
        return Findings(fit.model.project, fit.model, measurements, fit.summary, details)

    def prices(self, n_attributes: int) -> tuple[Price, Price]:
        """What one choice of parents and one joint table cost."""
        whole = self.budget.price
        choice = whole.share(self.structure_share / max(1, n_attributes - 1))
        return choice, whole.share((1.0 - self.structure_share) / n_attributes)

    def _choose_network(self, curator: Curator, n_records: int, watch: Watch) -> list[Link]:
        """The links of all attributes, in an order in which parents come before children."""
        domain = curator.domain
        names = tuple(domain)
        limit = self.cell_limit(len(names), n_records)
        network = [Link(names[0], ())]
        price, known = self.prices(len(names))[0], dict[str, list[Clique]]()
        while len(network) < len(names):
            placed = tuple(link.child for link in network)
            children = [name for name in names if name not in placed]
            max_sets = max(1, self.max_parent_sets // len(children))
            known = {
                child: find_parent_sets(
                    domain, placed, limit / domain[child], max_sets=max_sets, seed=len(placed),
                    known=known.get(child, ()),
                )
                for child in children
            }  # fmt: skip
            candidates = [Link(child, parents) for child in children for parents in known[child]]
            chosen = curator.select(DependenceScore(candidates, self.dependence), price)
            network.append(self._drop_parents(domain, network, Link(*chosen)))
            watch("choosing parents", len(network), len(names))
        return network

    def _drop_parents(self, domain: Domain, network: Sequence[Link], chosen: Link) -> Link:
        """Drop the parents that would make the model too large, which is post-processing."""
        if self.estimation is Estimation.LOCAL or not needs_tree(self.oracle):
            return chosen
        unlimited = 2**62
        plan = Plan.build(domain, [(*p, c) for c, p in network], memory_limit=unlimited)
        parents = chosen.parents

        def cells(kept: Clique) -> int:
            return plan.cells_with((*kept, chosen.child))

        while parents and cells(parents) > self.max_model_cells:
            fewer = [tuple(name for name in parents if name != left) for left in parents]
            parents = min(fewer, key=cells)
        return Link(chosen.child, parents)

    def cell_limit(self, d: int, n_records: int) -> float:
        """The most cells of a table with an average count of `usefulness` times its noise scale."""
        scale = self.prices(d)[1].cell_scale(Neighbours.REPLACE)
        return n_records / (scale * self.usefulness)

    def _sample(
        self,
        domain: Domain,
        network: Sequence[Link],
        measurements: Sequence[Measurement],
        n_records: int,
    ) -> NDArray[np.int64]:
        """Records drawn attribute after attribute, a row for each attribute."""
        rng = np.random.default_rng(self.rng)
        n = self.n_samples or n_records
        records = np.zeros((len(domain), n), dtype=np.int64)
        for link, measurement in zip(network, measurements, strict=True):
            size = domain[link.child]
            joint = np.maximum(measurement.values.reshape(-1, size), 0.0)
            mass = joint.sum(axis=1, keepdims=True)
            even = np.full_like(joint, 1.0 / size)
            chances = np.divide(joint, mass, out=even, where=mass > 0)
            rows = np.zeros(n, dtype=np.int64)
            for name in link.parents:
                rows = rows * domain[name] + records[domain.positions[name]]
            ends = np.cumsum(chances, axis=1)[rows]
            drawn = (rng.random((n, 1)) * ends[:, -1:] >= ends).sum(axis=1)
            records[domain.positions[link.child]] = np.minimum(drawn, size - 1)
        return records
