"""The least loss of any table, by an interior-point method on the full table.

Nothing of the library's solvers is used: neither potentials nor an oracle nor the entropy. The
table is one vector with an entry for each record that is possible, the queries are one matrix, and
the method is Mehrotra's, with logarithmic barriers. The answer is a pair of numbers that prove
themselves, whatever the method did: the loss of a table that exists, and a lower bound from
multipliers within their limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_LIMIT = math.sqrt(2.0)
# The share of the way to the nearest bound that a step goes.
_NEARLY = 0.995


class Linear(NamedTuple):
    """Residuals `rows @ table - goal`: each squared and halved, or absolute times the root of 2."""

    rows: Array
    goal: Array
    squared: Mask
    total: float


class Bracket(NamedTuple):
    """The optimum lies between these two."""

    lower: float
    upper: float


def bracket_optimum(problem: Linear, *, accuracy: float = 1e-7, max_steps: int = 150) -> Bracket:
    """Bounds of the least loss, as near to each other as floating-point numbers allow.

    It ends when they differ by the accuracy times the loss, or times a hundredth of the number of
    residuals where the loss is smaller.
    """
    point = _first_point(problem)
    best = _prove(problem, point)
    for _ in range(max_steps):
        allowed = accuracy * max(best.upper, 0.01 * len(problem.goal))
        if best.upper - best.lower <= allowed:
            break
        try:
            point = _next_point(problem, point, 0.1 * allowed / len(point.low))
        except LinAlgError:  # the matrix is singular in floating-point numbers
            break
        now = _prove(problem, point)
        best = Bracket(max(best.lower, now.lower), min(best.upper, now.upper))
    return best


def loss_of(residual: Array, squared: Mask) -> float:
    """Half the squares, and the absolute values times the root of two."""
    r = residual[squared]
    return float(0.5 * r @ r + math.sqrt(2.0) * np.abs(residual[~squared]).sum())


@dataclass
class _Point:
    """Pairs of numbers that are not negative, and whose products go to zero together.

    `low` holds the table and, for each absolute value, the parts of its residual over and under
    zero; `high` the table's reduced costs and the distances of the multipliers from their limits.
    """

    low: Array
    high: Array
    multipliers: Array
    """One for each residual, and minus the least reduced cost as the last."""

    def moved(self, length: float, move: _Point) -> _Point:
        return _Point(
            self.low + length * move.low,
            self.high + length * move.high,
            self.multipliers + length * move.multipliers,
        )


def _first_point(problem: Linear) -> _Point:
    rows, goal, squared, total = problem
    n = rows.shape[1]
    table = np.full(n, total / n)
    residual = rows @ table - goal
    multipliers = np.where(squared, residual, 0.0)
    slope = rows.T @ multipliers
    least = float(slope.min()) - max(1.0, 0.1 * float(np.abs(slope).max()))
    kinked = residual[~squared]
    slack = np.abs(kinked) + 1.0
    over = np.maximum(kinked, 0.0) + slack
    limits = np.full(2 * len(kinked), _LIMIT)
    return _Point(
        np.concatenate([table, over, over - kinked]),
        np.concatenate([slope - least, limits]),
        np.append(multipliers, -least),
    )


def _next_point(problem: Linear, point: _Point, least: float) -> _Point:
    """A predictor, then a corrector with the same matrix; products aim at no less than the least.

    Below what is needed they would only make the matrix singular.
    """
    newton = _Newton(problem, point)
    mean = float(point.low @ point.high) / len(point.low)
    guess = newton.move(np.zeros_like(point.low))
    tried = point.moved(min(1.0, _reach(point, guess)), guess)
    centring = (float(tried.low @ tried.high) / len(point.low) / mean) ** 3
    aim = max(centring * mean, least)
    move = newton.move(np.full(len(point.low), aim) - guess.low * guess.high)
    moved = point.moved(min(1.0, _NEARLY * _reach(point, move)), move)
    cells = problem.rows.shape[1]
    moved.low[:cells] *= problem.total / moved.low[:cells].sum()
    return moved


class _Newton:
    """The linear system of a point.

    Its matrix `wide` has a column for each pair: for a cell its column of the queries and a one,
    for the part over zero of a residual a minus one in its row, for the part under it a one. Then

        wide' multipliers + offset = high       wide low - bent multipliers = right

    where bent is one for squared residuals, which are their own multipliers, and zero else. The
    step is the solution of a least-squares problem: forming its normal equations would square the
    condition number, which is large where the noise is small.
    """

    def __init__(self, problem: Linear, point: _Point) -> None:
        rows, goal, squared, total = problem
        self.cells = np.vstack([rows, np.ones(rows.shape[1])])
        self.kinked, self.point = np.flatnonzero(~squared), point
        self.bent = np.append(np.where(squared, 1.0, 0.0), 0.0)
        self.right = np.append(goal, total)
        self.offset = np.zeros(len(point.low))
        self.offset[rows.shape[1] :] = _LIMIT
        self.ratio = point.low / point.high
        of_cells, over, under = self._split(self.ratio)
        diagonal = self.bent.copy()
        diagonal[self.kinked] += over + under
        self.roots = np.sqrt(of_cells), np.sqrt(diagonal)
        tall = np.vstack([(self.cells * self.roots[0]).T, np.diag(self.roots[1])])
        self.scale = 1.0 / np.sqrt((tall**2).sum(axis=0))
        self.q, self.r = np.linalg.qr(
            np.vstack([tall * self.scale, 1e-13 * np.eye(len(self.right))])
        )

    def move(self, products: Array) -> _Point:
        """The step after which the products of the pairs are these, to first order."""
        point, ratio = self.point, self.ratio
        slack = point.high - self._adjoint(point.multipliers) - self.offset
        lack = self._apply(point.low) - self.bent * point.multipliers - self.right
        aim = products / point.high - point.low  # what ratio * d_high + d_low must be
        of_cells, over, under = self._split(aim + ratio * slack)
        lack[self.kinked] += under - over
        tall = np.concatenate([
            of_cells / self.roots[0],
            np.divide(lack, self.roots[1], out=np.zeros_like(lack), where=self.roots[1] > 0),
            np.zeros(len(lack)),
        ])  # fmt: skip
        multipliers = solve_triangular(self.r, self.q.T @ tall) * self.scale
        high = self._adjoint(multipliers) - slack
        return _Point(aim - ratio * high, high, multipliers)

    def _apply(self, low: Array) -> Array:
        table, over, under = self._split(low)
        answers = self.cells @ table
        answers[self.kinked] += under - over
        return np.asarray(answers)

    def _adjoint(self, multipliers: Array) -> Array:
        kinked = multipliers[self.kinked]
        return np.concatenate([self.cells.T @ multipliers, -kinked, kinked])

    def _split(self, pairs: Array) -> list[Array]:
        n = self.cells.shape[1]
        return np.split(pairs, [n, n + len(self.kinked)])


def _reach(point: _Point, move: _Point) -> float:
    """How far the move can go until a number would be negative."""
    reach = 1e30
    for values, change in ((point.low, move.low), (point.high, move.high)):
        falling = change < 0
        reach = min(reach, float(np.min(-values[falling] / change[falling], initial=1e30)))
    return reach


def _prove(problem: Linear, point: _Point) -> Bracket:
    """The loss of the point's table, and the bound of its multipliers, in extended precision."""
    rows, goal, squared, total = problem
    wide = rows.astype(np.longdouble)
    table = point.low[: rows.shape[1]].astype(np.longdouble)
    table *= np.longdouble(total) / table.sum()
    residual = wide @ table - goal
    bounds = []
    for tried in (point.multipliers[:-1], residual):
        u = np.where(squared, tried, np.clip(tried, -_LIMIT, _LIMIT))
        slope, bent = wide.T @ u, np.where(squared, u, 0.0)
        bounds.append(float(u @ residual - 0.5 * bent @ bent - table @ (slope - slope.min())))
    return Bracket(max(bounds), loss_of(residual, squared))
