"""Tiers beside AIM on public tables that were named before any was run; see `public_tables`."""

from __future__ import annotations

from adaptive import EPSILONS
from adaptive import EXPERIMENT as ADAPTIVE
from context import Cell, Context, Experiment
from other_tables import list_others
from paper_data import TOY
from public_tables import PACKAGES
from rivals import OURS, REFERENCE

N_SEEDS = 5


def cells(context: Context) -> list[Cell]:
    """One for each table that is there, size of marginals, epsilon, mechanism and seed."""
    there = (TOY,) if context.quick else [n for n in PACKAGES if n in list_others(context.folder)]
    return [
        {"data": name, "k": k, "epsilon": epsilon, "mechanism": mechanism, "seed": seed}
        for name in there
        for k in (2, 3)
        for epsilon in ((1.0,) if context.quick else EPSILONS)
        for mechanism in (OURS[0], REFERENCE)
        for seed in range(1 if context.quick else N_SEEDS)
    ]


EXPERIMENT = Experiment("unseen", "Tiers on public tables", cells, ADAPTIVE.run)
