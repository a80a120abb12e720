"""What tests ask of a model that has a junction tree."""

from __future__ import annotations

from juncture import Model
from juncture.model.distribution import Distribution
from juncture.model.questions import Questions


def questions_of(model: Model) -> Questions:
    """What answers questions to an exact model."""
    assert isinstance(model.distribution, Distribution)
    return model.distribution.questions
