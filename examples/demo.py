"""A short tour: count, add simulated noise, plan, and ask a model for exact marginals.

Run it with `make demo`. Nothing is fitted yet: the model at the end has random potentials.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from juncture import Domain, Factor, Plan, Propagation
from juncture.data.samples import adult_codes, adult_domain

CLIQUES = [
    ("race", "sex", "income>50K"),
    ("workclass", "sex", "hours-per-week"),
    ("education-num", "occupation"),
    ("occupation", "relationship", "income>50K"),
    ("age", "relationship", "sex"),
]
STDDEV = 10.0


def main() -> None:
    """Walk through the library as it stands."""
    domain, codes, rng = Domain(adult_domain()), adult_codes(), np.random.default_rng(0)
    print(f"1. The table: {len(codes):,} records of Adult, {len(domain)} attributes.\n")
    print(f"2. Measured: {len(CLIQUES)} marginals, simulated Gaussian noise of {STDDEV:g} a cell.")
    for clique in CLIQUES:
        show_measurement(exact_counts(domain, codes, clique), rng)
    print("\n3. The plan, made before any table exists:\n")
    plan = Plan.build(domain, CLIQUES)
    print(plan)
    candidate = ("age", "education-num")
    print(f"\n   With {candidate} as well it would have {plan.cells_with(candidate):,} cells.\n")
    show_model(plan, rng)


def exact_counts(domain: Domain, codes: NDArray[np.uint8], clique: tuple[str, ...]) -> Factor:
    """How many records fall into each cell of the clique's table: private, without noise."""
    part = domain.project(clique)
    columns = [codes[:, domain.positions[name]] for name in clique]
    cells = np.ravel_multi_index(columns, part.shape)
    return Factor(part, np.bincount(cells, minlength=part.size).reshape(part.shape))


def show_measurement(exact: Factor, rng: np.random.Generator) -> None:
    """Add noise to the counts and print the first few of both."""
    noisy = exact + Factor.random(exact.domain, rng) * STDDEV
    pairs = zip(exact.values.ravel()[:4], noisy.values.ravel()[:4], strict=True)
    cells = "  ".join(f"{count:,.0f} -> {seen:,.1f}" for count, seen in pairs)
    print(f"   {', '.join(exact.domain):<40} {cells}  ...")


def show_model(plan: Plan, rng: np.random.Generator) -> None:
    """Exact marginals, log-partition function and best record of random potentials."""
    began = time.perf_counter()
    oracle = Propagation(plan)
    potentials = rng.standard_normal(oracle.layout.size)
    beliefs = oracle.marginals(potentials, total=48_842)
    prepared = time.perf_counter() - began
    began = time.perf_counter()
    oracle.marginals(potentials, total=48_842)
    again = time.perf_counter() - began
    table = oracle.layout.factor(beliefs.marginals, ("race", "sex", "income>50K"))
    peak = oracle.maximum(potentials)
    print("4. A model with random potentials on those cliques:\n")
    once = " (the kernels were compiled, once for all structures)" if prepared > 2 else ""
    print(f"   exact marginals after {prepared:.2f} s{once}, and again in {again * 1e3:.2f} ms")
    print(f"   log-partition function {beliefs.log_partition:.6f}")
    print(f"   mass by sex            {np.round(table.project(('sex',)).values, 2)}")
    print(f"   most probable record   age code {peak.record['age']}, sex {peak.record['sex']}, ...")
    print(f"                          sum of potentials {peak.score:.4f}")


if __name__ == "__main__":
    main()
