"""A short tour: count, add simulated noise, plan, fit a model, and ask it.

Run it with `make demo`.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from juncture import Domain, Factor, Measurement, Plan, Propagation, estimate
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
    truth = [exact_counts(domain, codes, clique) for clique in CLIQUES]
    measurements = [measured(exact, rng) for exact in truth]
    print("\n3. The plan, made before any table exists:\n")
    plan = Plan.build(domain, CLIQUES)
    print(plan)
    candidate = ("age", "education-num")
    print(f"\n   With {candidate} as well it would have {plan.cells_with(candidate):,} cells.\n")
    show_fit(domain, truth, measurements)
    show_model(plan, rng)


def exact_counts(domain: Domain, codes: NDArray[np.uint8], clique: tuple[str, ...]) -> Factor:
    """How many records fall into each cell of the clique's table: private, without noise."""
    part = domain.project(clique)
    columns = [codes[:, domain.positions[name]] for name in clique]
    cells = np.ravel_multi_index(columns, part.shape)
    return Factor(part, np.bincount(cells, minlength=part.size).reshape(part.shape))


def measured(exact: Factor, rng: np.random.Generator) -> Measurement:
    """Add noise to the counts and print the first few of both."""
    noisy = exact + Factor.random(exact.domain, rng) * STDDEV
    pairs = zip(exact.values.ravel()[:4], noisy.values.ravel()[:4], strict=True)
    cells = "  ".join(f"{count:,.0f} -> {seen:,.1f}" for count, seen in pairs)
    print(f"   {', '.join(exact.domain):<40} {cells}  ...")
    return Measurement(exact.domain, noisy.values, stddev=STDDEV)


def show_fit(domain: Domain, truth: list[Factor], measurements: list[Measurement]) -> None:
    """Fit a model, and compare its answers with the measurements themselves."""
    print("4. The model of maximum entropy that fits the noisy counts best:\n")
    raw = [
        Factor(f.domain, m.values.reshape(f.domain.shape))
        for f, m in zip(truth, measurements, strict=True)
    ]
    print(f"   {'as measured':<22} error {error(truth, raw):8,.0f} records")
    result = estimate(domain, measurements)
    answers = [result.model.project(factor.domain) for factor in truth]
    statistics = result.statistics
    print(f"   {'from the model':<22} error {error(truth, answers):8,.0f} records")
    print(f"   {statistics.oracle_calls} steps, {statistics.seconds:.2f} s. {result.status.value}")
    print(f"   loss {statistics.loss:,.1f}, certified: none is below {statistics.lower_bound:,.1f}")
    print(f"   estimated total {result.model.total:,.0f} records\n")


def error(truth: list[Factor], answers: list[Factor]) -> float:
    """The mean over the marginals of the sum of absolute errors."""
    pairs = zip(truth, answers, strict=True)
    return float(np.mean([np.abs(a.values - b.values).sum() for a, b in pairs]))


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
    print("5. The engine alone, on random potentials:\n")
    once = " (the kernels were compiled, once for all structures)" if prepared > 2 else ""
    print(f"   exact marginals after {prepared:.2f} s{once}, and again in {again * 1e3:.2f} ms")
    print(f"   log-partition function {beliefs.log_partition:.6f}")
    print(f"   mass by sex            {np.round(table.project(('sex',)).values, 2)}")
    print(f"   most probable record   age code {peak.record['age']}, sex {peak.record['sex']}, ...")
    print(f"                          sum of potentials {peak.score:.4f}")


if __name__ == "__main__":
    main()
