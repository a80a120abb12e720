"""What a private choice proves of the candidates that it left.

A mechanism that chooses what the model gets most wrong leaves evidence behind: had another
candidate been far worse than the chosen one, it would have been chosen. McKenna, Mullins, Sheldon
and Miklau (AIM, 2022) make one-sided bounds of it; here they hold for each candidate, at any level.

The setting. Scores are s(r) = w(r) (E(r) - p(r)), where E(r) is how far the table of candidate r
was from the true one in L1, w and p are weights and penalties without data. One of k candidates is
chosen with noise of scale b = 2 x sensitivity / epsilon, and its table is then measured.

1. The choice. For a fixed r, s(r) <= s(chosen) + b ln(k / a) with probability 1 - a. For the
   exponential mechanism: the chance of one candidate with s <= s(r) - b x is at most exp(-x) times
   that of r, so of all of them at most k exp(-x), which is a for x = ln(k / a). For the maximum of
   scores with exponential noise X of scale b: s(chosen) + X(chosen) >= s(r), and all of k such
   numbers are below b ln(k / a) with probability 1 - a.
2. The chosen one. Its noisy table y is known, so D, the distance of y from the table that was
   scored. D is a sum of |x + z| over n cells, where the |x| add up to E = E(chosen) and z is noise
   that was drawn after the choice. Each has a mean of at least |x|, since |.| is convex and z has
   mean zero. So D falls short of E by t only by chance. Gaussian noise of deviation d: the sum is a
   function of z that moves by at most sqrt(n) times the distance between two z, so the chance is at
   most exp(-t^2 / (2 n d^2)) (Gaussian concentration). Laplace noise of scale c: with
   V = |x + z| - |x|, |V| <= |z| and E[V] >= 0, and exp(v) <= 1 + v + v^2 exp(|v|) / 2, so
   E[exp(-g V)] <= 1 + g^2 E[z^2 exp(g |z|)] / 2
   = 1 + g^2 c^2 / (1 - g c)^3; so the chance is at most exp(n g^2 c^2 / (1 - g c)^3 - g t) for
   every g below 1 / c, and the best g is looked for.
3. Afterwards the model changes. By the triangle inequality, the released table is off by at most
   what the scored one was, plus the distance between them, which is known.

Each of 1 and 2 gets half of what may go wrong. Where a choice ended because a floor was drawn, the
floor is the chosen one: its score is known, and nothing goes to 2. The number of candidates that
were drawn from before, and which could be drawn at all, are public. Noise on whole numbers is taken
for its continuous form. Scores above 2^31 count as that; no bound is given there.

All of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise, find_noise
from juncture.tables.queries.blocks import Identity

# Scores count as at most this, and are rounded by less than the slack.
_MAX_SCORE, _SLACK = 2.0**31, 2.0**-16


class Chosen(NamedTuple):
    """What is known about the candidate that was chosen last."""

    weight: float
    penalty: float
    distance: float
    """Between its noisy table and the one that was scored."""
    noise: Noise
    stddev: float
    n_cells: int

    def bound_score(self, chance: float) -> float:
        """What its score is below, but for a chance."""
        more = bound_shortfall(self.noise, self.stddev, self.n_cells, chance)
        return self.weight * (self.distance + more - self.penalty)


def bound_shortfall(noise: Noise, stddev: float, n_cells: int, chance: float) -> float:
    """How far the distance of a noisy table may fall short of the true one, but for a chance.

    >>> round(bound_shortfall(Noise.GAUSSIAN, 2.0, 25, math.exp(-2.0)), 6)
    20.0
    """
    if noise is Noise.GAUSSIAN:
        return stddev * math.sqrt(2.0 * n_cells * math.log(1.0 / chance))
    scale = stddev / noise.stddev(1.0)
    steps = np.linspace(1e-4, 0.9, 400) / scale
    grown = n_cells * (steps * scale) ** 2 / (1.0 - steps * scale) ** 3
    return float(np.min((math.log(1.0 / chance) + grown) / steps))


@dataclass(frozen=True, eq=False)
class SelectionProof:
    """What a choice proves of the candidates that it left, for the released model.

    >>> proof = SelectionProof((("a", "b"),), np.array([12.0]), np.ones(1), 5.0, 10, floor=0.0)
    >>> round(proof.bound(("a", "b"), 0.95), 2)
    38.49
    >>> proof.bound(("a",), 0.95) == proof.bound(("a", "b"), 0.95), proof.bound(("c",), 0.95)
    (True, None)
    """

    cliques: tuple[Clique, ...]
    """The candidates that were not chosen, and that no measurement holds."""
    offsets: Vector
    """Of each: its penalty, and how far the released table is from the one that was scored."""
    weights: Vector
    scale: float
    """Of the noise of the choice: twice the sensitivity over epsilon."""
    n_candidates: int
    chosen: Chosen | None = None
    floor: float = 0.0
    """The score that was chosen, where no candidate was."""

    def __post_init__(self) -> None:
        shape = (len(self.cliques),)
        numbers = (self.offsets.sum(), self.scale, self.floor)
        valid = self.offsets.shape == self.weights.shape == shape and np.isfinite(numbers).all()
        if not (valid and (self.weights > 0.0).all() and self.scale > 0.0 < self.n_candidates):
            raise InvalidInput(
                "`proofs` must have a finite offset and a positive weight for each clique, and a "
                "positive scale; got others. Make the release again."
            )

    def bound(self, attributes: Iterable[str], level: float) -> float | None:
        """What the error of a marginal is below, in L1; None where nothing is proved.

        A sum of cells is off by no more than the cells are together: a set of columns has the
        bound of each candidate that holds it.
        """
        asked = set(attributes)
        indices = [i for i, clique in enumerate(self.cliques) if asked.issubset(clique)]
        if not indices:
            return None
        chance = 1.0 - level
        if self.chosen is None:
            top = self.floor
        else:
            chance /= 2.0
            top = self.chosen.bound_score(chance)
        top += self.scale * math.log(self.n_candidates / chance) + _SLACK
        if top >= _MAX_SCORE:
            return None
        return float(min(max(0.0, self.offsets[i] + top / self.weights[i]) for i in indices))

    def to_json(self) -> dict[str, Any]:
        """The proof as plain data."""
        own = self.chosen
        return {
            "cliques": [list(clique) for clique in self.cliques],
            "offsets": [float(each) for each in self.offsets],
            "weights": [float(each) for each in self.weights],
            "scale": self.scale,
            "n_candidates": self.n_candidates,
            "chosen": None if own is None else {**own._asdict(), "noise": str(own.noise)},
            "floor": self.floor,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> SelectionProof:
        """The proof that `to_json` wrote."""
        chosen = entry["chosen"]
        return cls(
            tuple(tuple(str(name) for name in clique) for clique in entry["cliques"]),
            np.array(entry["offsets"], dtype=np.float64),
            np.array(entry["weights"], dtype=np.float64),
            float(entry["scale"]),
            int(entry["n_candidates"]),
            None if chosen is None else Chosen(**{**chosen, "noise": find_noise(chosen["noise"])}),
            float(entry["floor"]),
        )


def read_proofs(entries: Iterable[Mapping[str, Any]]) -> tuple[SelectionProof, ...]:
    """The proofs of a release, as `to_json` wrote them.

    Releases of an earlier state may have one of distances that were told with noise of a standard
    deviation. It is left out: what it bounded is not bounded then, and all else is read.
    """
    return tuple(SelectionProof.from_json(each) for each in entries if not each.get("stddev"))


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice that a mechanism made, until the model that is released is known."""

    tables: Mapping[Clique, Vector | Factor]
    """What was scored: the table of each candidate that could be chosen."""
    penalties: Mapping[Clique, float]
    weights: Mapping[Clique, float] | None
    """None where all weigh 1."""
    scale: float
    n_candidates: int
    chosen: Clique | None
    """The last one that was chosen; None where a floor of 0 was."""
    left_out: frozenset[Clique] = field(default_factory=frozenset)
    """Chosen before, so no longer among the candidates."""

    def prove(
        self,
        measurements: Sequence[Measurement],
        project_many: Callable[[Sequence[Clique]], Iterable[Factor]],
        unmeasured: Collection[str] = (),
    ) -> SelectionProof | None:
        """What it proves, given all that was measured and the released tables.

        Nothing is said about columns that were not measured at all.
        """
        chosen = None if self.chosen is None else self._describe(self.chosen, measurements)
        held = [frozenset(each.clique) for each in measurements]
        open_ones = [
            clique
            for clique in self.tables
            if clique not in self.left_out
            and clique != self.chosen
            and not any(name in unmeasured for name in clique)
            and not any(each.issuperset(clique) for each in held)
        ]
        if not open_ones or (self.chosen is not None and chosen is None):
            return None
        offsets = [
            self.penalties[clique] + _measure_distance(self.tables[clique], table.values)
            for clique, table in zip(open_ones, project_many(open_ones), strict=True)
        ]
        weights = [1.0 if self.weights is None else self.weights[clique] for clique in open_ones]
        return SelectionProof(
            tuple(open_ones), np.array(offsets), np.array(weights), self.scale, self.n_candidates,
            chosen,
        )  # fmt: skip

    def _describe(self, clique: Clique, measurements: Sequence[Measurement]) -> Chosen | None:
        """What the measurement of the chosen clique that came after the choice says."""
        own = [
            each
            for each in measurements
            if each.clique == clique and isinstance(each.query, Identity) and each.stddev.ndim == 0
        ]
        if not own:
            return None
        last = own[-1]  # earlier ones are in what was scored
        return Chosen(
            1.0 if self.weights is None else self.weights[clique],
            self.penalties[clique],
            _measure_distance(self.tables[clique], last.values),
            last.noise,
            float(last.stddev),
            last.n_rows,
        )


def _measure_distance(table: Vector | Factor, other: Vector) -> float:
    own = table.values if isinstance(table, Factor) else table
    return float(np.abs(own.reshape(-1) - other.reshape(-1)).sum())
