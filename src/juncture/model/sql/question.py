"""A SELECT over the model's table, taken apart: groups, conditions, aggregates and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.aggregates import Aggregate, read_aggregate
from juncture.model.sql.attributes import Interval, has_outside
from juncture.model.sql.dates import read_period_names
from juncture.model.sql.engine import Engine
from juncture.model.sql.intervals import Constants, Use, plan_intervals
from juncture.model.sql.outside import OUTSIDE_PREFIX, mark_outside
from juncture.model.sql.scope import Flat
from juncture.model.sql.syntax import (
    AGGREGATES,
    Expr,
    Value,
    clause_expressions,
    conjuncts,
    find_aggregates,
    reject_aggregates,
    write,
)
from juncture.tables.codebook import Codebook

_MAX_SETS = 256


class Question:
    """What a SELECT groups by, adds up and gives out."""

    def __init__(self, flat: Flat, codebook: Codebook, engine: Engine) -> None:
        self.codebook, self.engine, self.titles = codebook, engine, flat.titles
        tree = read_period_names(flat.tree, codebook)
        _check_values(tree, codebook)
        self.tree = mark_outside(
            tree, {n for n in self.attributes(tree) if has_outside(codebook[n])}
        )
        self.outputs = [output.unalias() for output in self.tree.expressions]
        where = self.tree.args.get("where")
        self.conditions = tuple(conjuncts(where.this)) if where else ()
        self.keys: list[Expr] = []
        self.sets = self._read_groups()
        for node in (*self.keys, *self.conditions):
            reject_aggregates(node, "WHERE and GROUP BY", "SELECT or HAVING")
        clauses = ("having", "qualify")
        self.late = [
            *self.outputs,
            *(self.tree.args[clause].this for clause in clauses if self.tree.args.get(clause)),
            *(self.resolve(each.this) for each in clause_expressions(self.tree, "order")),
        ]
        self.aggregates = self._read_aggregates()
        if not self.keys and not self.aggregates and not self.tree.args.get("group"):
            raise InvalidInput(
                "`sql` must ask for counts, sums or other aggregates; got records. A model has no "
                "records of its own: add COUNT(*) and GROUP BY, or draw synthetic ones with "
                "sample()."
            )
        self.intervals = self._plan_intervals()

    def attributes(self, node: Expr) -> list[str]:
        """The attributes of an expression, each once."""
        columns = (c.name.removeprefix(OUTSIDE_PREFIX) for c in node.find_all(exp.Column))
        return list(dict.fromkeys(name for name in columns if name in self.codebook.domain))

    def attributes_of_all(self, nodes: Iterable[Expr]) -> list[str]:
        """The attributes of several expressions, each once."""
        return list(dict.fromkeys(name for node in nodes for name in self.attributes(node)))

    @property
    def parts(self) -> list[Expr]:
        """All expressions over attributes: groups, conditions, and what aggregates are about."""
        return [use.node for use in self._uses()]

    def key_index(self, node: Expr) -> int | None:
        """Which group expression this is, if any."""
        return self._key_texts.get(write(node.unnest()))

    # Groups.

    def _read_groups(self) -> list[tuple[int, ...]] | None:
        """The keys of each grouping set; None where all keys make up one."""
        group = self.tree.args.get("group")
        self._key_texts: dict[str, int] = {}
        if group is None or group.args.get("all"):
            is_grouped = group is not None or self.tree.args.get("distinct")
            if is_grouped and (group is not None or not self._has_aggregates()):
                for output in self.outputs:
                    if not any(find_aggregates(output)) and self.attributes(output):
                        self._add_key(output)
            return None
        return self._read_grouping_sets(group)

    def _read_grouping_sets(self, group: Expr) -> list[tuple[int, ...]] | None:
        parts = [self._read_sets(node) for node in group.expressions]
        for kind in ("rollup", "cube", "grouping_sets"):  # where the parser keeps them apart
            parts += [self._read_sets(node) for node in group.args.get(kind) or ()]
        n_sets = 1
        for part in parts:
            n_sets *= len(part)
        if n_sets > _MAX_SETS:
            raise InvalidInput(f"`sql` must have at most {_MAX_SETS} grouping sets; got {n_sets}.")
        listed = [sum(choice, ()) for choice in product(*parts)]
        sets = [tuple(dict.fromkeys(each)) for each in listed]
        if len(sets) > 1 and sets != listed:
            raise InvalidInput(
                f"`sql` must name each column once in a grouping set; got {group.sql().strip()}."
            )
        return None if len(sets) == 1 and len(sets[0]) == len(self.keys) else sets

    def _has_aggregates(self) -> bool:
        return any(output.find(*AGGREGATES, exp.Window) for output in self.outputs)

    def _read_sets(self, node: Expr) -> list[tuple[int, ...]]:
        """The sets of keys that one part of GROUP BY stands for."""
        parts = [self._read_tuple(each) for each in node.expressions]
        if isinstance(node, exp.Rollup):
            return [sum(parts[:n], ()) for n in range(len(parts), -1, -1)]
        if isinstance(node, exp.Cube):
            subsets = product((True, False), repeat=min(len(parts), 9))
            return [
                sum((p for p, taken in zip(parts, s, strict=True) if taken), ()) for s in subsets
            ]
        if isinstance(node, exp.GroupingSets):
            return [each for inner in node.expressions for each in self._read_sets(inner)]
        return [self._read_tuple(node)]

    def _read_tuple(self, node: Expr) -> tuple[int, ...]:
        parts = node.expressions if isinstance(node, exp.Tuple) else [node]
        return tuple(self._add_key(self.resolve(part)) for part in parts)

    def _add_key(self, node: Expr) -> int:
        plain = node.unnest()
        text = write(plain)
        if text not in self._key_texts:
            self._key_texts[text] = len(self.keys)
            self.keys.append(plain)
        return self._key_texts[text]

    def resolve(self, node: Expr) -> Expr:
        """What a position in the list of outputs stands for."""
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(str(node.this)) if str(node.this).isdigit() else 0
            if not 1 <= position <= len(self.outputs):
                raise InvalidInput(
                    f"`sql` must give positions from 1 to {len(self.outputs)}; got {node.sql()}. "
                    "Name the column instead."
                )
            return self.outputs[position - 1]
        return node

    # Aggregates.

    def _read_aggregates(self) -> dict[str, Aggregate]:
        aggregates: dict[str, Aggregate] = {}
        for part in self.late:
            for node in find_aggregates(part):
                text = write(node)
                if text not in aggregates:
                    aggregates[text] = read_aggregate(node, self.conditions)
        return aggregates

    def _uses(self) -> Iterator[Use]:
        for node in (*self.keys, *self.conditions):
            yield Use(node)
        for aggregate in self.aggregates.values():
            for condition in aggregate.conditions[len(self.conditions) :]:
                yield Use(condition)
            for argument in aggregate.arguments:
                yield Use(argument, aggregate.node)

    def _plan_intervals(self) -> dict[str, Interval]:
        uses = list(self._uses())
        names = self.attributes_of_all(use.node for use in uses)
        codings = {n: self.codebook[n] for n in names if self.codebook[n].has_intervals}
        return plan_intervals(uses, codings, Constants(self.to_number, self._to_day))

    def to_number(self, node: Expr) -> float | None:
        """The number that an expression without columns stands for."""
        value = self.evaluate(f"TRY_CAST({write(node)} AS DOUBLE)")
        return None if value is None else float(value)

    def _to_day(self, node: Expr) -> float | None:
        """The day, counted from 1970-01-01, that an expression without columns stands for."""
        value = self.evaluate(f"epoch(TRY_CAST({write(node)} AS TIMESTAMP)) / 86400.0")
        return None if value is None else float(value)

    def evaluate(self, text: str) -> Value:
        """The value of an expression without columns."""
        return self.engine.evaluate_constant(text)


def _check_values(tree: Expr, codebook: Codebook) -> None:
    """A value that no code stands for is a slip, not an empty answer."""
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In):
        others = node.expressions if isinstance(node, exp.In) else [node.expression]
        for other in others:
            pairs = [(node.this, other)]
            if isinstance(node.this, exp.Tuple) and isinstance(other, exp.Tuple):
                pairs = list(zip(node.this.expressions, other.expressions, strict=False))
            for column, value in pairs:
                if isinstance(column, exp.Column) and column.name in codebook.domain:
                    _check_value(codebook, column.name, value)


def _check_value(codebook: Codebook, name: str, node: Expr) -> None:
    if codebook[name].period is not None:
        return
    if isinstance(node, exp.Boolean):
        codebook[name].match_exact(bool(node.this))
    elif isinstance(node, exp.Literal) and node.is_string:
        codebook[name].match_exact(str(node.this))
    elif isinstance(node, exp.Literal | exp.Neg) and isinstance(node.unnest(), exp.Expression):
        literal = node.this if isinstance(node, exp.Neg) else node
        if isinstance(literal, exp.Literal) and not literal.is_string:
            number = -float(literal.this) if isinstance(node, exp.Neg) else float(literal.this)
            coding = codebook[name]
            if coding.whole and number.is_integer() and coding.has_intervals:
                coding.match(number)
            else:
                coding.match_exact(number)
