"""A SELECT as a syntax tree: parsed, and refused where it uses what is not understood here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlglot
from sqlglot import exp

from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.sql.like import LinearDuckDB

Expr = Any
"""A node of the parser's syntax tree."""
Value = Any
"""What DuckDB may give."""
MAX_NODES = 20_000
"""The nodes of a syntax tree, with everything that its names stand for."""

SUMS = (exp.Count, exp.CountIf, exp.Sum, exp.Avg)
SPREADS = (exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop)
PAIRS = (
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
    exp.RegrSlope,
    exp.RegrIntercept,
    exp.RegrR2,
    exp.RegrCount,
)
RANKS = (
    exp.Min,
    exp.Max,
    exp.Median,
    exp.Mode,
    exp.Quantile,
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.WithinGroup,
)
AGGREGATES = (*SUMS, *SPREADS, *PAIRS, *RANKS)

_WINDOWS = (
    exp.Window,
    exp.WindowSpec,
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.PercentRank,
    exp.CumeDist,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.Grouping,
)
_CLAUSES = (
    exp.Select,
    exp.From,
    exp.Table,
    exp.TableAlias,
    exp.Where,
    exp.Group,
    exp.Having,
    exp.Qualify,
    exp.Order,
    exp.Ordered,
    exp.Limit,
    exp.Offset,
    exp.Alias,
    exp.Star,
    exp.Rollup,
    exp.Cube,
    exp.GroupingSets,
    exp.Distinct,
    exp.Subquery,
    exp.With,
    exp.CTE,
    exp.Filter,
)
_SCALARS = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Paren, exp.Tuple),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Is, exp.Like, exp.ILike, exp.Escape),
    *(exp.RegexpLike, exp.RegexpFullMatch, exp.SimilarTo, exp.Case, exp.If, exp.Coalesce),
    *(exp.Nullif, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Column),
    *(exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Var, exp.Abs, exp.Round, exp.Floor),
    *(exp.Ceil, exp.Trunc, exp.Sign, exp.Pow, exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Greatest),
    *(exp.Least, exp.Lower, exp.Upper, exp.Substring, exp.Left, exp.Right, exp.Length, exp.Trim),
    *(exp.Contains, exp.StartsWith, exp.StrPosition, exp.SplitPart, exp.DPipe, exp.Concat),
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso),
    *(exp.DayOfYear, exp.Dayname, exp.Monthname, exp.Extract, exp.TimestampTrunc),
    *(exp.DateTrunc, exp.DateDiff, exp.TimeToStr, exp.LastDay, exp.Interval),
)
_KNOWN_NODES = frozenset((*AGGREGATES, *_WINDOWS, *_CLAUSES, *_SCALARS))
_KNOWN_CLAUSES = frozenset(
    {"with_", "distinct", "expressions", "from_", "where", "group", "having", "qualify", "order"}
    | {"limit", "offset"}
)
_KNOWN_FUNCTIONS = frozenset({"date_part", "datepart"})
_REASONS: dict[type[Any], str] = {
    exp.Join: "Joins have no answer here: a model is one table.",
    exp.TableSample: "A sample of a model is drawn by sample().",
    exp.SetOperation: "Ask one question at a time.",
    exp.Exists: "Use IN, or compare with a count.",
}
_TYPES = frozenset(
    (
        *exp.DataType.TEXT_TYPES,
        *exp.DataType.INTEGER_TYPES,
        *exp.DataType.REAL_TYPES,
        exp.DataType.Type.BOOLEAN,
        exp.DataType.Type.DATE,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPNTZ,
    )
)


def parse(sql: str) -> exp.Select:
    """The syntax tree of one SELECT that uses only what is understood here."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="duckdb") if tree is not None]
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        reason = (str(error).splitlines() or ["it cannot be read"])[0].rstrip(".")
        raise InvalidInput(f"`sql` must be one SELECT; got an error: {reason}.") from None
    if len(trees) != 1:
        number = f"{len(trees)} statements" if trees else "nothing"
        raise InvalidInput(f"`sql` must be one SELECT; got {number}. Ask one question at a time.")
    (tree,) = trees
    if not isinstance(tree, exp.Select):
        raise InvalidInput(
            "`sql` must be one SELECT; got another kind of statement. A model only answers."
        )
    for n_nodes, node in enumerate(tree.walk(), start=1):
        limit_nodes(n_nodes)
        _check_node(node)
    return tree


def count_nodes(node: Expr) -> int:
    """The nodes of an expression."""
    return sum(1 for _ in node.walk())


def limit_nodes(n_nodes: int) -> None:
    """Refuse a question that is too long, or would be with its names written out."""
    if n_nodes > MAX_NODES:
        raise ModelTooLarge(
            f"`sql` must have at most {MAX_NODES:,} parts, with what its names stand for written "
            f"out; got {n_nodes:,} or more. Ask several questions, or compare with ranges."
        )


def _check_node(node: Expr) -> None:
    if isinstance(node, exp.Select):
        for clause, value in node.args.items():
            if value and clause not in _KNOWN_CLAUSES:
                reason = _REASONS[exp.Join] if clause in ("joins", "laterals") else "Leave it out."
                raise InvalidInput(
                    f"`sql` must be about one table; got {clause.strip('_')}. {reason}"
                )
    known = type(node) in _KNOWN_NODES or (
        isinstance(node, exp.Anonymous) and node.name.lower() in _KNOWN_FUNCTIONS
    )
    is_other = (isinstance(node, exp.Between) and node.args.get("symmetric")) or (
        isinstance(node, exp.Distinct) and node.args.get("on")
    )
    if not known or is_other:
        reasons = (reason for kind, reason in _REASONS.items() if isinstance(node, kind))
        advice = next(reasons, "docs/inference.md lists what is.")
        raise InvalidInput(
            f"`sql` must use expressions that are understood here; got {_quote(node)}. {advice}"
        )
    if isinstance(node, exp.DataType) and node.this not in _TYPES:
        raise InvalidInput(
            f"`sql` must cast to a number, a text, a truth value or a date; got {node.sql()}. "
            "Leave it out."
        )


def _quote(node: Expr) -> str:
    text = str(node.sql("duckdb"))
    return text if len(text) <= 80 else f"{text[:77]}..."


def write(node: Expr) -> str:
    """An expression as text for DuckDB: the only way in which one is made."""
    return str(node.sql(LinearDuckDB))


def clause_expressions(tree: exp.Select, clause: str) -> list[Any]:
    """The expressions of a clause; none where it is absent."""
    node = tree.args.get(clause)
    return list(node.expressions) if node else []


def conjuncts(node: Expr) -> list[Expr]:
    """The conditions that AND joins."""
    parts, waiting = [], [node]
    while waiting:
        plain = waiting.pop().unnest()
        if isinstance(plain, exp.And):
            waiting += [plain.right, plain.left]
        else:
            parts.append(plain)
    return parts


def is_windowed(node: Expr) -> bool:
    """Whether a function is applied to the rows of a window, not to records."""
    parent = node.parent
    if isinstance(parent, exp.Filter):
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and node.arg_key == "this"


def find_aggregates(node: Expr) -> Iterator[Expr]:
    """The aggregates of an expression, with their FILTER; not those over windows of rows."""

    def is_aggregate(part: Expr) -> bool:
        return isinstance(part, (*AGGREGATES, exp.Filter)) and not is_windowed(part)

    for part in node.walk(prune=is_aggregate):
        if is_aggregate(part):
            yield part


def reject_aggregates(node: Expr, clause: str, better: str) -> None:
    """Counts, sums and averages have their places."""
    if node.find(*AGGREGATES, exp.Window):
        raise InvalidInput(
            f"`sql` must have no aggregates in {clause}; got {node.sql()}. Use {better}."
        )


def title(output: Expr) -> str:
    """What a column of the answer is called: its alias, its attribute, or how it was written."""
    if isinstance(output, exp.Alias | exp.Column):
        return str(output.alias_or_name)
    plain = output.copy()
    for name in plain.find_all(exp.Identifier):
        name.set("quoted", False)
    return str(plain.sql())
