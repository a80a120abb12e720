"""MST: single columns, a spanning tree of pairs chosen privately, and these pairs."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from juncture._util.watch import Watch
from juncture.fit.public_facts import PublicFacts
from juncture.mechanisms.mechanism import Assignment, Findings, Mechanism, Outline, refuse_useless
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.mwem_state import ModelState, find_total
from juncture.mechanisms.rare_forecast import RareTerms
from juncture.mechanisms.rare_values import Merging
from juncture.privacy.budget import Budget
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.privacy.score import MarginalError
from juncture.tables.domain import Clique, Domain

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# Every pair of its tree is measured, and the fit follows noise.
_RARE_TERMS = RareTerms(stops_at_noise=False, max_whole_cells=math.inf)


@dataclass(frozen=True)
class MST(Mechanism):
    """MST (McKenna, Miklau and Sheldon 2021), through a curator; it knows no workload.

    Every column is measured, then a spanning tree of pairs is chosen, one edge after another, by
    how far the true table of the pair is from what independent columns would have; then its pairs
    are measured. Values that are rare by their noisy counts are measured together in a pair: the
    model spreads what they have by what is known of each column.

    Privacy: a third of the budget's price each is divided equally between the columns, the choices
    and the pairs; two columns need no choice, and one no pair. Each is an event of the curator with
    its share for a price; by sequential composition all cost the budget. What is rare, and which
    edges would close a cycle, follows from earlier outcomes.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2, "work": 4}), 2)
    >>> run = MST(Budget(rho=0.9)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> [round(cost.rho, 9) for cost in run.costs]
    [0.1, 0.1, 0.1, 0.15, 0.15, 0.15, 0.15]
    """

    name: ClassVar[str] = "mst"

    budget: Budget
    _: KW_ONLY
    merge_rare: str = "auto"
    """Whether rare values share counts in pairs: "on", "off", or "auto" where that is expected to
    leave less error, which is nearly always: its fit does not stop at the noise."""
    max_steps: int = 2500
    """The most steps of each of the two fits."""

    def outline(self, assignment: Assignment) -> Outline:
        """Divide the budget. The data decides which pairs are measured, but not what they cost."""
        domain, neighbours = assignment.domain, assignment.neighbours
        merges = MergeRare.parse(self.merge_rare)
        prices, n_edges = self.prices(domain), len(domain) - 1
        stddev = refuse_useless(prices.column.cell_stddev(neighbours))
        costs = [prices.column.cost] * len(domain)
        facts = [("every single column", f"measured, each for {prices.column}")]
        if prices.choice is not None:
            costs += [prices.choice.selection_cost] * n_edges
            facts.append(("a tree of pairs", f"{n_edges} choices, each for {prices.choice}"))
        if prices.pair is not None:
            costs += [prices.pair.cost] * n_edges
            facts.append(("its pairs", f"{n_edges} measured, each for {prices.pair}"))
            facts += merges.list_facts()
            stddev = refuse_useless(prices.pair.cell_stddev(neighbours))
        return Outline(
            costs=tuple(costs),
            cell_stddev=stddev,
            max_chosen=n_edges,
            execute=self._execute,
            facts=tuple(facts),
        )

    def prices(self, domain: Domain) -> TreePrices:
        """What a column, a choice and a pair cost."""
        whole, n_edges = self.budget.price, len(domain) - 1
        if n_edges == 0:
            return TreePrices(whole, None, None)
        if n_edges == 1:
            return TreePrices(whole.share(0.25), None, whole.share(0.5))
        each = whole.share(1.0 / (3.0 * n_edges))
        return TreePrices(whole.share(1.0 / (3.0 * len(domain))), each, each)

    def _execute(self, curator: Curator, watch: Watch) -> Findings:
        domain, prices = curator.domain, self.prices(curator.domain)
        columns = curator.measure_all([Request((name,), prices.column) for name in domain])
        zeros = PublicFacts.find_constraints(curator.schema)
        total = find_total(curator, columns)
        state = ModelState(domain, total, self.max_steps, constraints=zeros)
        state.update(columns)
        edges = choose_tree(curator, state, prices.choice, watch)
        measurements = list(columns)
        merging = Merging(domain, MergeRare.parse(self.merge_rare), _RARE_TERMS)
        if prices.pair is not None:
            noise = prices.pair.noise.mean_absolute(prices.pair.cell_stddev(curator.neighbours))
            counts = {each.clique[0]: each.values for each in columns}
            merging = merging.find_rare(counts, float(np.max(columns[0].stddev)), noise)
            requests = [Request(edge, prices.pair, merging.query(edge)) for edge in edges]
            measurements += curator.measure_all(requests)
            state.update(measurements, total=find_total(curator, measurements))
        details = {"tree": [list(edge) for edge in edges], **merging.describe(measurements)}
        return Findings(state.project, state.model, measurements, state.fit, details)


class TreePrices(NamedTuple):
    """What the events of a run cost."""

    column: Price
    choice: Price | None
    pair: Price | None


def choose_tree(
    curator: Curator, state: ModelState, price: Price | None, watch: Watch
) -> list[Clique]:
    """The edges of a spanning tree of pairs that a model without pairs gets wrong.

    Each is chosen among those that join two parts; without a price, there is one at most.
    """
    pairs: list[Clique] = list(combinations(curator.domain, 2))
    if price is None:
        return pairs
    tables = dict(zip(pairs, state.project_all(pairs), strict=True))
    part, chosen = {name: name for name in curator.domain}, list[Clique]()
    n_edges = len(part) - 1
    while len(chosen) < n_edges:
        joining = {e: table for e, table in tables.items() if part[e[0]] != part[e[1]]}
        left, right = curator.select(MarginalError(joining), price)
        chosen.append((left, right))
        gone = part[right]
        part = {name: part[left] if own == gone else own for name, own in part.items()}
        watch("choosing pairs", len(chosen), n_edges)
    return chosen
