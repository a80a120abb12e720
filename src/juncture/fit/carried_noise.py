"""The noise of single columns that an answer across them carries.

Where columns were never measured together, the model multiplies: the share of records that a count
of several columns has is about the product of the shares that each column has alone. Each of these
has noise of a known deviation, so the product p q has

    variance of p q  =  (p^2 + s^2) (q^2 + t^2) - p^2 q^2

for deviations s of p and t of q, whatever the table. It is that of a rare value beside a common one
too, of which the model may show nothing at all: p is zero then, and s q is left.

    10,000 records, noise of 100 on the count of a rare value (s = 1 %), beside half of the records
       10,000 x 0.01 x 0.5 = 50 records, though the model says that there are none

How far an answer may be off is not as many times that root as a normal number's would be: where
both shares are hidden by noise, s t is left, and shares that are twice s and twice t are four times
the product. So it is asked for with deviations that are as large as the level wants. A fit has a
bias too, where noise in empty values becomes records. It shows where the model is further than one
deviation from what was measured of a column: what lies beyond is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from juncture.fit.basis import is_constant
from juncture.fit.plain_estimates import PlainEstimates
from juncture.model.model import Model
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Identity, Matrix
from juncture.tables.queries.products import Kron

# The entries of a matrix of rows that are moved by a constant.
_MAX_MOVED = 1 << 22


@dataclass(frozen=True, eq=False)
class CarriedNoise:
    """What answers of one model carry of the noise of its columns."""

    model: Model
    plain: PlainEstimates

    def find(self, question: Kron, times: float = 1.0) -> Vector:
        """How far the noise moves every answer of a question, an axis for each attribute.

        - `times`: how many deviations the noise of each column is taken to be.
        """
        squares = sure = np.ones(())
        for name, block in question.blocks.items():
            share = self.model.answer(Kron({name: block})).reshape(-1) / self.model.total
            noise = self._find_noise(name, block, times) / self.model.total
            squares = np.multiply.outer(squares, share**2 + noise**2)
            sure = np.multiply.outer(sure, share**2)
        return self.model.total * np.sqrt(np.maximum(squares - sure, 0.0))

    def _find_noise(self, name: str, block: Block, times: float) -> Vector:
        """How far answers about one column may be off; zero where nothing was measured of it."""
        size = self.model.domain[name]
        if is_constant(block, size):
            return np.zeros(block.n_rows(size))
        for asked in (*_move(name, block, size), Kron({name: block})):
            value, stddev = self.plain.find(asked)
            if np.isfinite(stddev).all():
                break
        gap = np.abs(self.model.answer(asked).reshape(-1) - value)
        return np.nan_to_num(times * stddev + np.maximum(gap - stddev, 0.0))


def _move(name: str, block: Block, size: int) -> list[Kron]:
    """The same question less its mean over all values, unless it is too large or one value each.

    The number of records is nearly known, so the rest of a column tells as much as a part: nothing
    is lost, and the noise is least.
    """
    n_rows = block.n_rows(size)
    if isinstance(block, Identity) or n_rows * size > _MAX_MOVED:
        return []
    rows = block.adjoint(np.eye(n_rows), size)
    return [Kron({name: Matrix(rows - rows.mean(axis=1, keepdims=True))})]
