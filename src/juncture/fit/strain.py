"""How far replicas can be trusted: random questions, answered by the measurements alone.

A plain estimate (`fit/plain_estimates.py`) is unbiased, so the mean of what a fit says less what it
says is the bias of the fit, on the real table. Replicas have a bias too, and it is smaller: they
are drawn from a model that is less sparse than the table. How many times smaller is a regression
over random questions: bias = factor x that of the replicas. What is left is strain: 1 where the
fit is as far from plain estimates as their noise says, more where it does not fit.

    replicas off by 10, 20, 30 and the fit by 16, 31, 53, each +- 5:  a factor of about 1.7
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from juncture.fit.plain_estimates import PlainEstimates
from juncture.fit.random_questions import Form, draw_rows, weigh
from juncture.fit.replicas import Replicas
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Matrix
from juncture.tables.queries.products import Kron

# Questions, and the numbers of tables that all of them may read together.
_N_QUESTIONS, _MIN_QUESTIONS, _MAX_WORK = 240, 60, 400_000_000
# Single questions that are far off say no more than so many deviations.
_MAX_OFF = 10.0
# What the factor is before anything is seen, and how sure that is: its deviation.
_USUAL_FACTOR, _USUAL_DEVIATION = 1.25, 0.5


class Strain(NamedTuple):
    """What the measurements say of the replicas of a fit; both numbers are at least 1."""

    bias_factor: float
    """How many times the replicas' bias that of the fit is."""
    spread: float
    """How far the fit is from plain estimates beyond its bias, in their deviations."""


def find_strain(replicas: Replicas, plain: PlainEstimates) -> Strain:
    """Hold a fit, and the bias of its replicas, against what was measured."""
    offs, biases = list[float](), list[float]()
    for clique, questions in _draw_questions(replicas).items():
        fitted = replicas.tables(replicas.fitted, clique)
        counted = replicas.tables(replicas.counted, clique)
        for rows in questions:
            blocks = {name: Matrix(row[None]) for name, row in zip(clique, rows, strict=True)}
            value, stddev = (float(each.item()) for each in plain.find(Kron(blocks)))
            if not math.isfinite(stddev):
                continue
            says, truths = weigh(fitted, rows), weigh(counted, rows)
            offs.append((float(says[-1]) - value) / stddev)
            biases.append(float(np.mean(says[:-1] - truths[:-1])) / stddev)
    return compare(np.array(offs), np.array(biases))


def compare(offs: Vector, biases: Vector) -> Strain:
    """The factor by which biases explain how far a fit is off, and what they leave of it.

    - `offs`: what the fit says less plain estimates, in deviations of these.
    - `biases`: the bias of replicas on the same questions, in the same units.

    >>> biases = np.array([0.5, 1.0, 1.5, 2.0])
    >>> round(compare(3.0 * biases, biases).bias_factor, 2), compare(biases, biases).spread
    (2.39, 1.0)
    """
    offs = np.clip(offs, -_MAX_OFF, _MAX_OFF)
    known = _USUAL_DEVIATION**-2.0
    factor = (float(offs @ biases) + known * _USUAL_FACTOR) / (float(biases @ biases) + known)
    factor = max(1.0, factor)
    left = offs - factor * biases
    return Strain(factor, max(1.0, math.sqrt(float(left @ left) / max(1, len(left)))))


def _draw_questions(replicas: Replicas) -> dict[Clique, list[list[Vector]]]:
    """Random questions on the measured cliques; those about all records are left out."""
    layout, recipe = replicas.layout, replicas.recipe
    rng = recipe.generator(1_000_003)
    mean_work = 2 * recipe.n_rows * layout.size / max(1, len(layout.cliques))
    n = max(_MIN_QUESTIONS, min(_N_QUESTIONS, int(_MAX_WORK / mean_work)))
    forms = tuple(Form)
    questions = dict[Clique, list[list[Vector]]]()
    for index, number in enumerate(rng.integers(len(layout.cliques), size=n)):
        clique = layout.cliques[number]
        rows = draw_rows(layout.domain.project(clique).shape, forms[index % len(forms)], rng)
        if not all(row.all() for row in rows):  # the number of records is often known
            questions.setdefault(clique, []).append(rows)
    return questions
