"""The type of the `rng` that public functions take."""

from __future__ import annotations

import numpy as np

Random = np.random.Generator | int | None
"""A generator, the seed of one, or None for a fresh one that cannot be repeated."""
