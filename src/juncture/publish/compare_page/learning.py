"""What a classifier learns from synthetic records, beside what it learns from real ones."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from juncture.errors import JunctureError
from juncture.publish.compare_page.facts import Lesson, Score
from juncture.tables.domain import Domain

Codes = Mapping[str, NDArray[np.int32]]

MAX_RECORDS = 50_000
"""No more records than this are trained on, and none beyond as many are tested on."""
_MAX_VALUES = 20


NO_LEARNER = (
    "A classifier needs scikit-learn, which is not installed: `pip install 'juncture[compare]'`."
)
"""Why no classifier is tried, where there is none."""


def can_teach() -> bool:
    """Whether there is a classifier to teach."""
    return find_spec("sklearn") is not None


def choose_target(domain: Domain, strengths: Mapping[str, float]) -> str | None:
    """The column of a few values that depends most on the others; None if there is none."""
    fitting = [name for name, size in domain.items() if 2 <= size <= _MAX_VALUES]
    return max(fitting, key=lambda name: strengths.get(name, 0.0), default=None)


def teach(target: str, real: Codes, synthetic: Codes, *, seed: int = 0) -> Lesson:
    """Train on half of the real records and on as many synthetic ones; test on the other half."""
    order = np.random.default_rng(seed).permutation(len(real[target]))[: 2 * MAX_RECORDS]
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    drawn = np.arange(min(len(train), len(synthetic[target])))
    truth = real[target][test]
    common = int(np.bincount(real[target][train]).argmax())
    guesses = {
        "synthetic records": _predict(target, synthetic, drawn, real, test, seed),
        "real records": _predict(target, real, train, real, test, seed),
        "nothing (always the most frequent value)": np.full(len(test), common),
    }
    scores = [Score(name, *_judge(truth, guess)) for name, guess in guesses.items()]
    return Lesson(target, scores, len(test))


def _predict(
    target: str,
    given: Codes,
    rows: NDArray[np.int64],
    asked: Codes,
    tested: NDArray[np.int64],
    seed: int,
) -> NDArray[np.int32]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as missing:
        raise JunctureError(
            "The comparison by a classifier needs scikit-learn, which is not installed. Install it "
            "with `pip install 'juncture[compare]'`."
        ) from missing
    names = [name for name in given if name != target]
    wanted = given[target][rows]
    if len(np.unique(wanted)) < 2:  # nothing to learn: all records have one value
        return np.full(len(tested), wanted[0], dtype=np.int32)
    model = HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=seed)
    model.fit(np.stack([given[name][rows] for name in names], axis=1), wanted)
    guessed = model.predict(np.stack([asked[name][tested] for name in names], axis=1))
    return np.asarray(guessed, dtype=np.int32)


def _judge(truth: NDArray[np.int32], guess: NDArray[np.int32]) -> tuple[float, float]:
    """The share that is told right: of all records, and averaged over the values."""
    right = truth == guess
    by_value = [float(right[truth == value].mean()) for value in np.unique(truth)]
    return float(right.mean()), float(np.mean(by_value))
