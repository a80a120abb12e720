"""The engine on a card: is it right, and how fast is it? One command does both.

    python bench/gpu.py                         # checks and timings; needs a card and CuPy
    python bench/gpu.py --peer-python PYTHON    # beside mbi, with JAX on the same card

First the marginals of all named small problems and of 200 random ones are held against those of
the processor, and kernels against each other in single precision. Then seconds are printed: of one
oracle call, of one iteration (a call, and a step of gradient descent, as in compare.py), of many
questions to one model, of whole fits to 1 % of their loss, and from the start of a process to its
50th iteration, with an empty cache of compiled kernels and with a filled one. The memory limit is
what the least number of bytes takes: potentials read on the way up and down, marginals written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import fit_problems
import harness
import numpy as np
from step_problems import problems

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

ADULT_15 = "adult-15"
PARTS = ("check", "starts", "steps", "draws", "questions", "fits")


def overlapping_triples(n_attributes: int, size: int) -> harness.Problem:
    """Attributes of so many values, every three neighbours a clique."""
    names = [f"x{index}" for index in range(n_attributes)]
    cliques = tuple(tuple(names[index : index + 3]) for index in range(n_attributes - 2))
    return harness.Problem(dict.fromkeys(names, size), cliques, 0, 1e6)


def adult_problem() -> harness.Problem:
    """The paper's 15 triples of Adult."""
    raw = problems()[ADULT_15]
    return harness.Problem(**{**raw, "cliques": tuple(map(tuple, raw["cliques"]))})


def check() -> None:
    """Hold the card against the processor."""
    import packing  # noqa: PLC0415 - of the tests
    from juncture import Domain, Plan  # noqa: PLC0415
    from juncture.engine import Propagation  # noqa: PLC0415
    from problems import PROBLEMS  # noqa: PLC0415

    worst = 0.0
    for problem in PROBLEMS:
        plan = Plan.build(Domain(problem.sizes), problem.cliques)
        vector = packing.pack(plan.layout, problem.potentials)
        worst = max(worst, compare_once(plan, vector, Propagation(plan)))
    print(f"{len(PROBLEMS)} named problems: largest relative difference {worst:.1e}")
    rng, done, worst = np.random.default_rng(0), 0, 0.0
    while done < 200:
        plan, vector = random_problem(rng)
        try:
            worst = max(worst, compare_once(plan, vector, Propagation(plan)))
        except ArithmeticError:
            continue
        done += 1
    print(f"{done} random problems: largest relative difference {worst:.1e}")


def compare_once(plan: Any, vector: Any, reference: Any) -> float:  # noqa: ANN401
    """The largest relative difference of a marginal, a score or log Z, beyond 1e-90."""
    from juncture.engine.gpu.propagation import GpuPropagation  # noqa: PLC0415

    beliefs = reference.marginals(vector, 100.0)
    oracle = GpuPropagation(plan)
    found = oracle.marginals(vector, 100.0)
    scale = np.maximum(np.abs(beliefs.marginals), 1e-90)
    parts = [np.abs(found.marginals - beliefs.marginals) / scale, np.zeros(1)]
    log_gap = abs(found.log_partition - beliefs.log_partition)
    score = reference.maximum(vector).score
    score_gap = abs(oracle.maximum_score(oracle.put(vector)) - score)
    gaps = [log_gap / max(1.0, abs(beliefs.log_partition)), score_gap / max(1.0, abs(score))]
    return float(max(float(np.concatenate(parts).max()), *gaps))


def random_problem(rng: np.random.Generator) -> Any:  # noqa: ANN401
    """A plan of random cliques, and potentials with a few structural zeros."""
    from juncture import Domain, Plan  # noqa: PLC0415

    names = [f"x{index}" for index in range(int(rng.integers(3, 9)))]
    domain = Domain({name: int(rng.integers(1, 9)) for name in names})
    cliques = [
        tuple(rng.choice(names, int(rng.integers(1, 4)), replace=False))
        for _ in range(int(rng.integers(1, 9)))
    ]
    plan = Plan.build(domain, cliques)
    vector = rng.normal(size=plan.layout.size) * rng.choice([1.0, 5.0, 200.0])
    vector[rng.random(len(vector)) < 0.03] = -np.inf
    return plan, vector


def measure_bandwidth() -> float:
    """The bytes a second of a copy on the card, read and written."""
    import cupy  # noqa: PLC0415 - only where there is a card

    source, target = (cupy.zeros(1 << 28) for _ in range(2))
    stream = cupy.cuda.get_current_stream()
    cupy.copyto(target, source)
    stream.synchronize()
    began = time.perf_counter()
    for _ in range(10):
        cupy.copyto(target, source)
    stream.synchronize()
    return float(10 * 2 * source.nbytes / (time.perf_counter() - began))


def run_side(
    python: str, script: str, *arguments: str, **environment: str
) -> dict[str, Any] | None:
    """One side's report, or None if it failed."""
    command = [python, str(HERE / script), *arguments]
    setting = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **environment}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=setting, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"  {script} {' '.join(arguments[:1])}: not done after 300 s")
        return None
    if done.returncode:
        print(f"  {script} failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    report: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def show(label: str, report: dict[str, Any] | None, field: str = "seconds") -> float | None:
    """Print the seconds of a report."""
    if report is None:
        return None
    seconds = float(report[field])
    text = f"{1e3 * seconds:9.3f} ms" if seconds < 1 else f"{seconds:9.2f} s "
    print(f"  {label:<58}{text}", flush=True)
    return seconds


def time_steps(
    name: str, problem: harness.Problem, folder: Path, options: argparse.Namespace
) -> None:
    """One iteration on the card, on the processor and, if asked for, of the peer."""
    path = folder / "problem.json"
    path.write_text(
        json.dumps({**vars(problem), "cliques": [list(clique) for clique in problem.cliques]})
    )
    cells = sum(int(np.prod([problem.domain[n] for n in c])) for c in problem.cliques)
    print(f"{name}: {cells:,} cells")
    ours = sys.executable
    limit = 3 * 8 * cells / options.bandwidth
    print(f"  {'memory limit of a call':<58}{1e3 * limit:9.3f} ms")
    show("card: one call", run_side(ours, "gpu_ours.py", "step", str(path), "--oracle", "calls"))
    show("card: one iteration", run_side(ours, "gpu_ours.py", "step", str(path)))
    single = run_side(ours, "gpu_ours.py", "step", str(path), "--oracle", "single")
    show("card, single precision: one iteration", single)
    if not options.no_cpu:
        show("processor: one iteration", run_side(ours, "ours.py", "step", str(path)))
    if options.peer_python and name in options.peer_problems:
        show("mbi: one iteration", run_side(options.peer_python, "peer.py", "step", str(path)))
        report = run_side(options.peer_python, "peer.py", "whole", str(path))
        show("mbi: from the start of the process to its first step", report, "first_seconds")
        show("mbi: from the start of the process to its 50th", report)


def time_starts(problem: harness.Problem, folder: Path) -> None:
    """From the start of a process to its 50th iteration, with an empty and a filled cache."""
    path = folder / "problem.json"
    path.write_text(
        json.dumps({**vars(problem), "cliques": [list(clique) for clique in problem.cliques]})
    )
    cache = str(folder / "cupy-cache")
    for label in ("empty", "filled"):
        report = run_side(sys.executable, "gpu_ours.py", "whole", str(path), CUPY_CACHE_DIR=cache)
        show(f"card: from the start to the first step, {label} cache", report, "first_seconds")
        show(f"card: from the start to the 50th iteration, {label} cache", report)
        show("  of which imports", report, "import_seconds")


def list_fits() -> dict[str, fit_problems.FitProblem]:
    """The problems of whole fits."""
    from adult_fits import LAPLACE_STDDEV, adult_fit  # noqa: PLC0415

    fifteen = [list(clique) for clique in problems()[ADULT_15]["cliques"]]
    return {
        "20 million": fit_problems.chain(22, 20.0, size=100),
        "Adult, 15 triples": adult_fit(fifteen, (15,), LAPLACE_STDDEV, fit_problems.laplace),
        # With the noise of the first one, nothing but noise would be seen in so many cells.
        "200 million": fit_problems.chain(22, 0.1, size=215),
    }


def time_fit(
    name: str, problem: fit_problems.FitProblem, folder: Path, options: argparse.Namespace
) -> None:
    """A whole fit to 1 % of the least loss, processes and compilation included."""
    from juncture import Domain, Measurement, estimate  # noqa: PLC0415

    setting = problem.setting
    measurements = [
        Measurement(clique, table, stddev=setting.stddev)
        for clique, table in problem.tables.items()
    ]
    began = time.perf_counter()
    best = estimate(
        Domain(setting.domain), measurements, total=setting.total, oracle="gpu", tolerance=2e-3
    )
    seconds = time.perf_counter() - began
    print(f"{name}: a fit to 0.2 %: {best.summary} in {seconds:.1f} s")
    path = folder / "fit.npz"
    problem.with_goals([1.01 * best.summary.loss]).save(path)
    del best, measurements
    ours = run_side(sys.executable, "fit_ours.py", "whole", str(path), "--method", "gpu")
    show("card: from the start of the process to 1 % of the least loss", ours)
    warm = run_side(sys.executable, "fit_ours.py", "warm", str(path), "--method", "gpu")
    show("card: the same, once warm", warm)
    if not options.no_cpu:
        here = run_side(sys.executable, "fit_ours.py", "whole", str(path))
        show("processor: from the start", here)
    if options.peer_python and name in options.peer_problems:
        for method in options.peer_methods:
            peer = run_side(
                options.peer_python, "fit_peer.py", "whole", str(path), "--method", method
            )
            show(f"mbi, {method}: from the start", peer)


def time_questions() -> None:
    """Many marginals of large models, by tables on the card and on the processor."""
    from juncture import Domain, Factor  # noqa: PLC0415
    from juncture.engine.propagation import Propagation  # noqa: PLC0415
    from juncture.model import card_tree  # noqa: PLC0415
    from juncture.model.distribution import make_distribution  # noqa: PLC0415

    for name, problem, size in (
        ("20 million", overlapping_triples(22, 100), 2),
        ("Adult, 15 triples", adult_problem(), 3),
    ):
        domain, rng = Domain(problem.domain), np.random.default_rng(0)
        factors = []
        for clique in problem.cliques:
            sizes = domain.project(clique)
            factors.append(Factor(sizes, rng.normal(size=tuple(sizes.values()))))
        asked = [domain.project(clique) for clique in combinations(problem.domain, size)]
        answers = []
        for label, worth_it in (("card", card_tree.WORTH_A_CARD), ("processor", 10**18)):
            card_tree.WORTH_A_CARD, kept = worth_it, card_tree.WORTH_A_CARD
            distribution = make_distribution(domain, factors, Propagation)
            next(distribution.project_many(asked))  # the tables of the tree are not timed
            for state in ("first", "again"):
                began = time.perf_counter()
                answers.append([table.values for table in distribution.project_many(asked)])
                seconds = time.perf_counter() - began
                text = f"{label}: {len(asked)} marginals of {size} attributes, {state}"
                show(f"{name}, {text}", {"seconds": seconds})
            card_tree.WORTH_A_CARD = kept
        gaps = [np.abs(x - y).max() for x, y in zip(answers[0], answers[-1], strict=True)]
        print(f"  largest difference of a probability: {max(gaps):.1e}")


def time_draws() -> None:
    """Records of a chain of 15 attributes of ten values, on the card and on the processor."""
    from juncture import Domain, Measurement, estimate  # noqa: PLC0415
    from juncture.model import card_sampling, sampling  # noqa: PLC0415

    names = [f"x{index}" for index in range(15)]
    domain, rng = Domain(dict.fromkeys(names, 10)), np.random.default_rng(0)
    cliques = [tuple(names[index : index + 2]) for index in range(14)]
    tables = [Measurement(c, 1000 * rng.random(100), stddev=1.0) for c in cliques]
    sampler = estimate(domain, tables).model.distribution.sampler
    assert isinstance(sampler, sampling.Sampler)
    for n in (1_000_000, 100_000_000):
        began = time.perf_counter()
        drawn = sampler.sample(n, 1)
        seconds = time.perf_counter() - began
        show(f"card: {n:,} records of 15 attributes", {"seconds": seconds})
        if n == 1_000_000:
            card_sampling.WORTH_A_CARD, kept = 10**18, card_sampling.WORTH_A_CARD
            other = sampling.Sampler(sampler.tree)
            began = time.perf_counter()
            same = np.array_equal(other.sample(n, 1), drawn)
            seconds = time.perf_counter() - began
            show(f"processor: {n:,} records", {"seconds": seconds})
            print(f"  the same records: {same}")
            card_sampling.WORTH_A_CARD = kept


def main() -> None:
    """Check, then time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer-python", help="a Python that has mbi and JAX on the card")
    parser.add_argument("--peer-problems", nargs="*", default=["20 million"])
    parser.add_argument("--peer-methods", nargs="*", default=["UniversalAcceleratedMethod"])
    parser.add_argument("--parts", nargs="*", default=PARTS)
    parser.add_argument("--no-cpu", action="store_true", help="leave the processor out")
    options = parser.parse_args()
    from juncture.engine.gpu.card import Card  # noqa: PLC0415

    print(f"Card: {Card().name}")
    options.bandwidth = measure_bandwidth()
    print(f"A copy moves {options.bandwidth / 1e12:.2f} TB/s.")
    if "check" in options.parts:
        check()
    with tempfile.TemporaryDirectory() as name:
        folder, triples = Path(name), overlapping_triples(22, 100)
        if "starts" in options.parts:
            time_starts(triples, folder)
        if "steps" in options.parts:
            time_steps("20 million", triples, folder, options)
            time_steps("Adult, 15 triples", adult_problem(), folder, options)
            time_steps("200 million", overlapping_triples(22, 215), folder, options)
        if "draws" in options.parts:
            time_draws()
        if "questions" in options.parts:
            time_questions()
        if "fits" in options.parts:
            for fit_name, problem in list_fits().items():
                time_fit(fit_name, problem, folder, options)


if __name__ == "__main__":
    main()
