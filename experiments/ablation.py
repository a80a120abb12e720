"""What each part of Tiers is worth: the mechanism without one part at a time, at the same seeds.

The error is that of all triples, from the model. A part is taken out by a setting of the mechanism
where there is one, else by putting another function in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from adaptive import build_workload, choose_small
from all_pairs import find_error
from context import Cell, Context, Experiment, Rows
from paper_data import TOY, DataSet, has_aim_coding, make_source, read_codes
from rivals import DELTA, run_mechanism

from juncture.errors import ModelTooLarge
from juncture.mechanisms import tier_choice, tier_rounds, tier_run, tier_state
from juncture.mechanisms.tiers import Tiers
from juncture.model.model import Model
from juncture.privacy.budget import Budget
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.workload import Workload

N_SEEDS = 5
EPSILON = 1.0
WHOLE = "the whole"


def _divide_equally(needs: Mapping[Clique, float]) -> dict[Clique, float]:
    return dict.fromkeys(needs, 1.0 / len(needs))


def _take_all(
    run: tier_run.TierRun,  # noqa: ARG001
    tables: Mapping[Clique, Vector],
    model: Model,  # noqa: ARG001
) -> list[Clique]:
    return list(tables)


def _take_no_group(chooser: tier_choice.TierChooser, *_: object) -> list[Clique]:  # noqa: ARG001
    return []


def _lose_nothing(chooser: tier_choice.TierChooser, *_: object) -> float:  # noqa: ARG001
    return 0.0


# All pairs that are worth an even share of everything, by the columns alone.
_ONE_ROUND: dict[str, Any] = {"_FIRST_PART": 0.5, "_GROWTH": 1e9, "_PER_COLUMN": 1e9}

Patch = Callable[[], AbstractContextManager[object]]
# What takes a part out, and settings of the mechanism.
VARIANTS: dict[str, tuple[Patch, dict[str, object]]] = {
    WHOLE: (nullcontext, {}),
    "no choice: all pairs": (lambda: patch.object(tier_run.TierRun, "choose_pairs", _take_all), {}),
    "no triples": (nullcontext, {}),
    "equal shares": (lambda: patch.object(tier_run, "divide_by_need", _divide_equally), {}),
    "whole tables, no contrasts": (
        lambda: patch.object(tier_state.TierState, "by_contrasts", False),
        {},
    ),
    "columns are counted again": (
        lambda: patch.object(tier_state.TierState, "is_contrasted", lambda *_: False),
        {},
    ),
    "one round": (lambda: patch.multiple(tier_rounds, **_ONE_ROUND), {}),
    "all noise is allowed for": (lambda: patch.object(tier_rounds, "PAIR_LIFT", 2.0), {}),
    "no penalty for noise": (lambda: patch.object(tier_run, "_TRIPLE_PENALTY", 0.0), {}),
    "no penalty for choices' noise": (lambda: patch.object(tier_run, "_TRIPLE_LIFT", 0.0), {}),
    "no groups": (
        lambda: patch.object(tier_choice.TierChooser, "choose_group", _take_no_group),
        {},
    ),
    "groups take from others for nothing": (
        lambda: patch.object(tier_choice.TierChooser, "expect_dilution", _lose_nothing),
        {},
    ),
    "tree only": (nullcontext, {"oracle": "exact"}),
    "records only": (nullcontext, {"oracle": "records"}),
    "half of single columns' share": (nullcontext, {"single_share": 0.04}),
    "twice their share": (nullcontext, {"single_share": 0.16}),
}
_PAIRS_ALONE = "no triples"


def cells(context: Context) -> list[Cell]:
    """One for each table, variant and seed."""
    coded = ("titanic-aim", "adult-aim") if has_aim_coding(context.folder) else ("adult",)
    return [
        {"data": name, "variant": variant, "seed": seed}
        for name in ((TOY,) if context.quick else (*coded, "flags", "parities"))
        for variant in VARIANTS
        for seed in range(1 if context.quick else N_SEEDS)
    ]


def run(cell: Cell, context: Context) -> Rows:
    """One run of a variant; one that cannot run says why."""
    domain, codes = read_codes(cell["data"], context.folder)
    triples = build_workload(domain, 3)
    asked = choose_small(domain, triples.cliques)
    workload = Workload.all_marginals(domain, 2) if cell["variant"] == _PAIRS_ALONE else triples
    change, settings = VARIANTS[cell["variant"]]
    mechanism = Tiers(Budget(epsilon=EPSILON, delta=DELTA), **settings)  # type: ignore[arg-type]
    try:
        with change():
            made = run_mechanism(mechanism, codes, workload, cell["seed"])
    except ModelTooLarge as reason:
        return [{**cell, "reason": str(reason)}]
    data = DataSet(cell["data"], make_source(domain, codes), triples)
    return [
        {
            **cell,
            "error": find_error(data, asked, made.answer),
            "measured": made.measured,
            "busy": made.busy,
            "peak_mb": made.peak_mb,
        }
    ]


EXPERIMENT = Experiment("ablation", "What each part of Tiers is worth", cells, run)
