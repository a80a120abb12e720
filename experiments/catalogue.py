"""All experiments, in the order of the page."""

from __future__ import annotations

import ablation
import adaptive
import any_width
import any_width_times
import data_sets
import grid
import interval_coverage
import learning
import losses
import scaling
import stopping
import sweep
import unseen

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        data_sets,
        grid,
        sweep,
        scaling,
        losses,
        stopping,
        any_width,
        any_width_times,
        adaptive,
        learning,
        ablation,
        unseen,
        interval_coverage,
    )
}
