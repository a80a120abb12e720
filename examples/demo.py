"""A short tour: count, add simulated noise, plan, fit a model, and ask it.

Run it with `make demo`.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from juncture import (
    Accelerated,
    Domain,
    Factor,
    Measurement,
    Model,
    Plan,
    Proximal,
    Relay,
    estimate,
)
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
    model = show_fit(domain, truth, measurements)
    show_answers(domain, codes, model)
    show_records(model)


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


def show_fit(domain: Domain, truth: list[Factor], measurements: list[Measurement]) -> Model:
    """Fit a model, and compare its answers with the measurements themselves."""
    print("4. The model of maximum entropy that fits the noisy counts best:\n")
    raw = [
        Factor(f.domain, m.values.reshape(f.domain.shape))
        for f, m in zip(truth, measurements, strict=True)
    ]
    print(f"   {'as measured':<22} error {error(truth, raw):8,.0f} records")
    result = estimate(domain, measurements, solver=Relay(Accelerated(), Proximal()))
    answers = [result.model.project(factor.domain) for factor in truth]
    statistics = result.statistics
    print(f"   {'from the model':<22} error {error(truth, answers):8,.0f} records")
    print(f"   {statistics.oracle_calls} steps, {statistics.seconds:.2f} s. {result.status.value}")
    print(f"   loss {statistics.loss:,.1f}, certified: none is below {statistics.lower_bound:,.1f}")
    print(f"   estimated total {result.model.total:,.0f} records\n")
    return result.model


def error(truth: list[Factor], answers: list[Factor]) -> float:
    """The mean over the marginals of the sum of absolute errors."""
    pairs = zip(truth, answers, strict=True)
    return float(np.mean([np.abs(a.values - b.values).sum() for a, b in pairs]))


def show_answers(domain: Domain, codes: NDArray[np.uint8], model: Model) -> None:
    """Questions about attributes that were never measured together, beside the truth."""
    print("5. Asked about attributes that were never measured together:\n")
    columns = dict(zip(domain, codes.T, strict=True))
    for name in ("education-num", "hours-per-week"):
        means = model.conditional_mean(name, given=("income>50K",))
        true = [columns[name][columns["income>50K"] == value].mean() for value in (0, 1)]
        answer = " and ".join(f"{mean:.2f}" for mean in means)
        truth = " and ".join(f"{mean:.2f}" for mean in true)
        print(f"   mean code of {name} without and with a high income: {answer} (true {truth})")
    question = (
        'SELECT sex, COUNT(*) AS people, AVG("hours-per-week") AS hours FROM adult '
        'WHERE age < 20 AND "income>50K" = 1 GROUP BY sex'
    )
    print(f"\n   {question}\n")
    print("   " + str(model.sql(question)).replace("\n", "\n   "))
    for sex in (0, 1):
        chosen = (columns["age"] < 20) & (columns["income>50K"] == 1) & (columns["sex"] == sex)
        print(
            f"   true, sex {sex}: {chosen.sum():,}, {columns['hours-per-week'][chosen].mean():.2f}"
        )


def show_records(model: Model) -> None:
    """Synthetic records, and how well their counts match the model's."""
    began = time.perf_counter()
    records = model.synthesize(rng=0)
    seconds = time.perf_counter() - began
    n = len(records["age"])
    print(f"\n6. {n:,} synthetic records in {seconds * 1e3:.0f} ms; the first three:\n")
    for name in list(records)[:6]:
        print(f"   {name:<16}" + "".join(f"{code:>6}" for code in records[name][:3]))
    clique = ("occupation", "relationship", "income>50K")
    expected = model.project(clique)
    found = np.zeros(expected.values.shape)
    np.add.at(found, tuple(records[name] for name in clique), 1)
    worst = np.abs(found - expected.values).max()
    print(f"   ...\n   {', '.join(clique)}: no count is off by more than {worst:.1f}")


if __name__ == "__main__":
    main()
