"""Answers from synthetic records, each of which stands for several real ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor


class CountedRecords:
    """Columns of codes, counted on demand; each record counts `weight` times."""

    def __init__(
        self, domain: Domain, columns: Mapping[str, NDArray[np.int64]], weight: float
    ) -> None:
        self._domain, self._columns, self._weight = domain, columns, weight

    def project(self, clique: Clique) -> Factor:
        """The estimated counts of a clique."""
        subdomain = self._domain.project(clique)
        counts = np.zeros(subdomain.shape)
        np.add.at(counts, tuple(self._columns[name] for name in subdomain), self._weight)
        return Factor(subdomain, counts)
