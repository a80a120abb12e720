"""How public functions take their randomness."""

from __future__ import annotations

import numpy as np

Random = np.random.Generator | int | None
"""A generator, the seed of one, or None for one that nobody can repeat."""
