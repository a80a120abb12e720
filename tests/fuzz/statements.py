"""Random statements of SQL: most are right, and some ask for what no model can answer."""

from __future__ import annotations

from fuzz.mutations import Rng, choose

_COLUMNS = [["a", "b", "c", "free", "nobody"], ["age", "pay", "since", "city", "ok", '"Age"']]
_LITERALS = ["0", "1", "-3", "1e300", "1e-300", "NULL", "TRUE", "'x'", "''", "'2020-05-01'", "'%'"]
_LITERALS += ["DATE '2020-01-01'", "INTERVAL 1 DAY", "2147483648", "9223372036854775807", "0.1"]
_BINARY = ["+", "-", "*", "/", "//", "%", "=", "<>", "<", ">=", "AND", "OR", "||", "LIKE", "ILIKE"]
_BINARY += ["IS DISTINCT FROM", "SIMILAR TO", "^", "**"]
_CALLS = ["ABS({})", "FLOOR({})", "LN({})", "SQRT({})", "CAST({} AS INT)", "TRY_CAST({} AS DATE)"]
_CALLS += ["LENGTH({})", "UPPER({})", "YEAR({})", "ROUND({}, 2)", "NOT {}", "-{}", "({})"]
_CALLS += ["COALESCE({}, 1)", "date_trunc('month', {})", "CASE WHEN {} THEN 1 ELSE 2 END"]
_CALLS += ["{} IS NULL", "{} IN (1, 2)", "{} BETWEEN 1 AND 3", "regexp_matches({}, '(a*)*b')"]
_CALLS += ["strftime({}, '%Y')", "EXTRACT(year FROM {})", "SUBSTRING({}, 1, 2)", "LEFT({}, -1)"]
_AGGREGATES = ["COUNT(*)", "COUNT({})", "SUM({})", "AVG({})", "MIN({})", "MAX({})", "MEDIAN({})"]
_AGGREGATES += ["STDDEV({})", "VAR_POP({})", "CORR({}, {})", "QUANTILE_DISC({}, 0.3)", "MODE({})"]
_AGGREGATES += ["COUNT(*) FILTER (WHERE {})", "SUM({}) OVER ()", "RANK() OVER (ORDER BY COUNT(*))"]
_AGGREGATES += ["COUNT(DISTINCT {})", "COUNTIF({})", "REGR_SLOPE({}, {})", "PERCENT_RANK() OVER ()"]
_GROUPS = ["GROUP BY {}", "GROUP BY ALL", "GROUP BY ROLLUP ({})", "GROUP BY CUBE ({})", ""]


def make_statement(rng: Rng, table: int) -> str:
    """A SELECT about one of two tables."""
    keys = [_expression(rng, table, 1) for _ in range(int(rng.integers(0, 3)))]
    sums = [_fill(rng, table, choose(rng, _AGGREGATES)) for _ in range(int(rng.integers(0, 3)))]
    text = f"SELECT {', '.join([*keys, *sums]) or '*'} FROM {_source(rng, table)}"
    if rng.random() < 0.5:
        text += f" WHERE {_expression(rng, table, 2)}"
    if keys and rng.random() < 0.9:
        text += " " + choose(rng, _GROUPS).format(", ".join(keys))
    if rng.random() < 0.2:
        text += f" HAVING {_fill(rng, table, choose(rng, _AGGREGATES))} > 1"
    if rng.random() < 0.3:
        text += f" ORDER BY {choose(rng, ['1', '2 DESC', 'ALL', 'COUNT(*)'])}"
    return text + (f" LIMIT {choose(rng, ['0', '3', '-1', 'x'])}" if rng.random() < 0.2 else "")


def _source(rng: Rng, table: int) -> str:
    if rng.random() < 0.8:
        return "t"
    if rng.random() < 0.5:
        return f"({make_statement(rng, table)}) AS q"
    return f"(SELECT * FROM t WHERE {_expression(rng, table, 1)})"


def _expression(rng: Rng, table: int, depth: int) -> str:
    if depth == 0 or rng.random() < 0.6:
        columns = _COLUMNS[table]
        return str(choose(rng, choose(rng, [columns, columns, columns, columns, _LITERALS])))
    if rng.random() < 0.5:
        return _fill(rng, table, choose(rng, _CALLS), depth - 1)
    left, right = (_expression(rng, table, depth - 1) for _ in range(2))
    return f"{left} {choose(rng, _BINARY)} {right}"


def _fill(rng: Rng, table: int, form: str, depth: int = 1) -> str:
    n = form.count("{}")
    return form.format(*(_expression(rng, table, depth) for _ in range(n)))
