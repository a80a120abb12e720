"""Measure the peer library mbi 2.0.0 (on JAX) at exact marginals plus one gradient step.

It runs in the peer's own environment (``pip install mbi==2.0.0``, which brings JAX along) and
imports nothing of ours. One iteration is: the exact marginals of the potentials on the measured
cliques, scaled to the total, then a step of constant length down the gradient of half the sum of
squared, noise-scaled errors. The potentials start at zero.

    python bench/peer.py whole problem.json       process start to the end of 50 iterations
    python bench/peer.py step problem.json        one iteration, compiled and warm
    python bench/peer.py estimator problem.json   the peer's own mirror descent, 50 iterations

A problem file is JSON: ``domain`` (name to size), ``cliques`` (lists of names), ``seed``,
``total`` and ``stddev``. The last line printed is one JSON object.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

with warnings.catch_warnings():  # the peer warns, as it is imported, of settings made in main()
    warnings.simplefilter("ignore")
    import jax
    from mbi import (
        CliqueVector,
        Domain,
        Factor,
        LinearMeasurement,
        MarkovRandomField,
        estimation,
        junction_tree,
        marginal_oracles,
    )

ITERATIONS = 50
CELLS_SHOWN = 5
BLOCKS = 7
TIMED_SECONDS = 2.0

Clique = tuple[str, ...]
Oracle = Callable[..., CliqueVector]
Step = Callable[[CliqueVector, CliqueVector], tuple[CliqueVector, jax.Array]]
Run = Callable[[CliqueVector, CliqueVector, int], tuple[CliqueVector, jax.Array]]
Report = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """What is measured, and how noisily."""

    domain: Domain
    cliques: tuple[Clique, ...]
    seed: int
    total: float
    stddev: float

    @property
    def alpha(self) -> float:
        """The constant step length."""
        return self.stddev**2 / (self.total * len(self.cliques))


def read_problem(path: Path) -> Problem:
    """Read a problem file."""
    raw = json.loads(path.read_text())
    return Problem(
        domain=Domain.fromdict(raw["domain"]),
        cliques=tuple(tuple(clique) for clique in raw["cliques"]),
        seed=int(raw["seed"]),
        total=float(raw["total"]),
        stddev=float(raw["stddev"]),
    )


def draw_measurements(problem: Problem) -> dict[Clique, np.ndarray]:
    """Draw one table a clique, in the listed order, from the problem's seed."""
    rng = np.random.default_rng(problem.seed)
    tables = {}
    for clique in problem.cliques:
        shape = problem.domain.project(clique).shape
        n_cells = int(np.prod(shape))
        values = rng.random(n_cells) * (problem.total / n_cells) * 2
        tables[clique] = values.reshape(shape)
    return tables


def as_clique_vector(problem: Problem, tables: dict[Clique, np.ndarray]) -> CliqueVector:
    """Hand the tables to the peer, in the precision JAX is set to."""
    dtype = jax.dtypes.canonicalize_dtype(float)
    host = {
        clique: Factor(problem.domain.project(clique), values.astype(dtype))
        for clique, values in tables.items()
    }
    return jax.device_put(CliqueVector(problem.domain, problem.cliques, host))


def zero_potentials(problem: Problem) -> CliqueVector:
    """Potentials to start from."""
    return CliqueVector.zeros(problem.domain, problem.cliques)


def find_oracle(problem: Problem, name: str) -> tuple[str, Oracle]:
    """Return the named exact oracle; ``default`` is the one the peer's estimators choose."""
    implicit = marginal_oracles.message_passing_implicit
    known: dict[str, Oracle] = {
        "hugin": marginal_oracles.message_passing_hugin,
        "shafer-shenoy": marginal_oracles.message_passing_shafer_shenoy,
        "implicit": implicit,
        "implicit-fused": partial(implicit, contraction=marginal_oracles.einsum_fused),
        "implicit-semistable": partial(implicit, contraction=marginal_oracles.einsum_semistable),
    }
    if name != "default":
        return name, known[name]
    chosen = marginal_oracles.default_oracle(problem.cliques, problem.domain, has_constraints=False)
    names = [key for key, oracle in known.items() if oracle is chosen]
    return (names or ["unknown"])[0], chosen


def choose_oracle(problem: Problem, options: argparse.Namespace) -> tuple[str, Oracle]:
    """Return the oracle asked for, with a junction tree of its own where that is asked for.

    Left alone, the oracle searches for an elimination order as it is traced; in a long model that
    search is much of the first iteration, and a user who knows a good order can spare it.
    """
    name, oracle = find_oracle(problem, options.oracle)
    if not options.listed_order:
        return name, oracle
    order = list(problem.domain.attributes)
    tree, _ = junction_tree.make_junction_tree(problem.domain, problem.cliques, order)
    return f"{name}, listed order", partial(oracle, jtree=tree)


def make_step(problem: Problem, oracle: Oracle) -> Step:
    """One iteration: (potentials, targets) to (potentials, first clique's marginal)."""
    first = problem.cliques[0]
    factor = problem.alpha / problem.stddev**2

    def step(theta: CliqueVector, y: CliqueVector) -> tuple[CliqueVector, jax.Array]:
        mu = oracle(theta, problem.total)
        return theta - factor * (mu - y), mu[first].values

    return step


def make_run(problem: Problem, oracle: Oracle, form: str) -> Run:
    """Compile-once run of many iterations, which uses up the potentials handed in.

    ``calls`` calls the compiled step again and again; ``loop`` compiles the loop as well, the way
    the peer's own estimators do. Either returns the marginal that the last iteration saw.
    """
    step = make_step(problem, oracle)
    compiled = jax.jit(step, donate_argnums=0)

    def by_calls(
        theta: CliqueVector, y: CliqueVector, count: int
    ) -> tuple[CliqueVector, jax.Array]:
        for _ in range(count):
            theta, marginal = compiled(theta, y)
        return jax.block_until_ready((theta, marginal))

    @partial(jax.jit, donate_argnums=0)
    def looped(theta: CliqueVector, y: CliqueVector, count: int) -> tuple[CliqueVector, jax.Array]:
        blank = Factor.zeros(problem.domain.project(problem.cliques[0])).values
        return jax.lax.fori_loop(0, count, lambda _, state: step(state[0], y), (theta, blank))

    def by_loop(theta: CliqueVector, y: CliqueVector, count: int) -> tuple[CliqueVector, jax.Array]:
        return jax.block_until_ready(looped(theta, y, count))

    return by_loop if form == "loop" else by_calls


def first_cells(marginal: jax.Array) -> list[float]:
    """Read the leading cells of a table."""
    return [float(cell) for cell in np.asarray(marginal).ravel()[:CELLS_SHOWN]]


def log_partition(potentials: CliqueVector) -> float:
    """Log of the sum, over all cells of the domain, of exp of the summed potentials."""
    factors = [potentials[clique] for clique in potentials.cliques]
    _, order = junction_tree.make_junction_tree(potentials.domain, potentials.cliques)
    for name in order:
        touching = [factor for factor in factors if name in factor.domain.attributes]
        factors = [factor for factor in factors if name not in factor.domain.attributes]
        lone = Factor.zeros(potentials.domain.project((name,)))
        factors.append(sum(touching, start=lone).logsumexp((name,)))
    return float(sum(float(factor) for factor in factors))


def seconds_since_start(started: float | None) -> float:
    """Seconds since this process began, or since the Unix time handed in."""
    if started is not None:
        return time.time() - started
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    born = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # 22nd field, the first two cut off
    return time.clock_gettime(time.CLOCK_BOOTTIME) - born


def peak_bytes() -> int:
    """Read the largest resident memory of this process until now."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def block_length(seconds: float) -> int:
    """Choose the iterations to a block, so that all blocks together take about the wanted time."""
    return max(1, round(TIMED_SECONDS / BLOCKS / seconds))


def final_state(run: Run, theta: CliqueVector, y: CliqueVector, wants_log: bool) -> Report:
    """Report where the iterations ended: the marginal of the potentials they left behind."""
    log = {"log_partition": log_partition(theta)} if wants_log else {}
    _, marginal = run(jax.tree.map(jax.numpy.copy, theta), y, 1)
    return {"first_marginal": first_cells(marginal), **log}


def measure_whole(problem: Problem, options: argparse.Namespace) -> Report:
    """Time from the start of the process to the end of the iterations, compiling and all."""
    ready = seconds_since_start(options.started)
    form = options.form or "calls"
    oracle_name, oracle = choose_oracle(problem, options)
    y = as_clique_vector(problem, draw_measurements(problem))
    run = make_run(problem, oracle, form)
    began = seconds_since_start(options.started)
    theta, _ = run(zero_potentials(problem), y, 1)
    first = seconds_since_start(options.started)
    theta, _ = run(theta, y, ITERATIONS - 1)
    seconds = seconds_since_start(options.started)
    return {
        "oracle": oracle_name,
        "form": form,
        "seconds": seconds,
        "import_seconds": ready,
        "first_iteration_seconds": first - began,
        "peak_bytes": peak_bytes(),
        **final_state(run, theta, y, options.log_partition),
    }


def measure_step(problem: Problem, options: argparse.Namespace) -> Report:
    """Time one warm iteration: the median over blocks."""
    form = options.form or "loop"
    oracle_name, oracle = choose_oracle(problem, options)
    y = as_clique_vector(problem, draw_measurements(problem))
    run = make_run(problem, oracle, form)
    theta, _ = run(zero_potentials(problem), y, ITERATIONS)
    ended = final_state(run, theta, y, options.log_partition)
    began = time.perf_counter()
    theta, _ = run(theta, y, 2)
    length = block_length((time.perf_counter() - began) / 2)
    blocks = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        theta, _ = run(theta, y, length)
        blocks.append((time.perf_counter() - began) / length)
    return {
        "oracle": oracle_name,
        "form": form,
        "seconds": statistics.median(blocks),
        "seconds_least": min(blocks),
        "seconds_most": max(blocks),
        "blocks": BLOCKS,
        "block_iterations": length,
        "peak_bytes": peak_bytes(),
        **ended,
    }


def measure_estimator(problem: Problem, options: argparse.Namespace) -> Report:
    """Time the peer's own mirror descent, with its line search or with our constant step."""
    measurements = [
        LinearMeasurement(values.ravel(), clique, problem.stddev)
        for clique, values in draw_measurements(problem).items()
    ]
    oracle_name, oracle = choose_oracle(problem, options)
    estimator = estimation.MirrorDescent(
        stepsize=problem.alpha if options.fixed_step else None,
        marginal_oracle=oracle,
    )

    def estimate(iterations: int) -> MarkovRandomField:
        model = estimator.estimate(
            problem.domain, measurements, known_total=problem.total, iters=iterations
        )
        jax.block_until_ready((model.potentials, model.marginals))
        return model

    def timed(iterations: int) -> float:
        began = time.perf_counter()
        estimate(iterations)
        return time.perf_counter() - began

    model = estimate(ITERATIONS)
    seconds, peak = seconds_since_start(options.started), peak_bytes()
    short = timed(ITERATIONS)
    # The peer runs whole rounds of 50 iterations; a longer run tells them from the fixed cost.
    rounds = min(200, max(1, round(TIMED_SECONDS / short)))
    per_iteration = (timed(ITERATIONS * (1 + rounds)) - short) / (ITERATIONS * rounds)
    log = {"log_partition": log_partition(model.potentials)} if options.log_partition else {}
    return {
        "oracle": oracle_name,
        "fixed_step": options.fixed_step,
        "seconds": seconds,
        "seconds_again": short,
        "seconds_per_iteration": per_iteration,
        "peak_bytes": peak,
        "first_marginal": first_cells(model.marginals[problem.cliques[0]].values),
        **log,
    }


TASKS: dict[str, Callable[[Problem, argparse.Namespace], Report]] = {
    "whole": measure_whole,
    "step": measure_step,
    "estimator": measure_estimator,
}
ORACLES = (
    "default",
    "hugin",
    "shafer-shenoy",
    "implicit",
    "implicit-fused",
    "implicit-semistable",
)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("problem", type=Path, help="problem file (JSON)")
    parser.add_argument("--x32", action="store_true", help="32-bit floats, JAX's own default")
    parser.add_argument("--oracle", choices=ORACLES, default="default")
    parser.add_argument(
        "--form",
        choices=("calls", "loop"),
        help="compile the step alone (whole's default) or the loop around it too (step's default)",
    )
    parser.add_argument(
        "--listed-order",
        action="store_true",
        help="eliminate in the domain's order, not in one the peer searches for (chains only!)",
    )
    parser.add_argument("--fixed-step", action="store_true", help="estimator: no line search")
    parser.add_argument("--log-partition", action="store_true", help="report it too, untimed")
    parser.add_argument(
        "--started", type=float, help="Unix time to count from, instead of the process's start"
    )
    return parser.parse_args()


def main() -> None:
    """Run one task on one problem and print its report."""
    options = parse_options()
    jax.config.update("jax_enable_x64", not options.x32)
    jax.config.update("jax_enable_compilation_cache", False)
    problem = read_problem(options.problem)
    report = {
        "task": options.task,
        "problem": options.problem.name,
        "bits": 32 if options.x32 else 64,
        "iterations": ITERATIONS,
        **TASKS[options.task](problem, options),
        "device": jax.default_backend(),
        "versions": {name: version(name) for name in ("mbi", "jax", "jaxlib", "numpy")},
        "python": platform.python_version(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
