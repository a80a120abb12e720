"""What the names in a SELECT stand for: attributes, or aliases of its outputs."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.scalar import Expr
from juncture.model.sql.syntax import ALIAS, clause_expressions
from juncture.tables.domain import Domain


def find_aliases(tree: exp.Select) -> dict[str, Expr]:
    """The outputs that have an alias, by the alias in lower case."""
    return {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}


def resolve_columns(tree: exp.Select, domain: Domain) -> None:
    """Give every column the exact name of its attribute, and mark the aliases among them.

    In ORDER BY an alias comes before an attribute of the same name, elsewhere after it.
    """
    ordered = {id(each.this) for each in clause_expressions(tree, "order")}
    aliases, known = find_aliases(tree), {name.lower() for name in domain}
    for column in list(tree.find_all(exp.Column)):
        lower = column.name.lower()
        first = id(column) in ordered and not column.table
        if lower in aliases and (first or lower not in known):
            column.set("this", exp.to_identifier(lower, quoted=False))
            column.set("table", exp.to_identifier(ALIAS))
            continue
        alike = [name for name in domain if name.lower() == lower]
        exact = column.name in domain or len(alike) != 1
        name = domain.project([column.name if exact else alike[0]]).attributes[0]
        column.replace(exp.column(exp.to_identifier(name, quoted=True)))


def attributes_in(node: Expr) -> set[str]:
    """The attributes that an expression mentions, aliases aside."""
    columns = node.find_all(exp.Column)
    return {column.name for column in columns if column.table != ALIAS}


def group_by_attribute(nodes: Iterable[Expr], domain: Domain, clause: str) -> dict[str, list[Expr]]:
    """Expressions by the one attribute that each is about; refuses those about several."""
    by_attribute: dict[str, list[Expr]] = {}
    for node in nodes:
        names = attributes_in(node)
        if len(names) != 1 or not names.issubset(domain):
            about = ", ".join(sorted(names)) or "no attribute"
            raise InvalidInput(
                f"`sql` must have one attribute in each part of {clause}; got {node.sql()}, "
                f"about {about}. Conditions on several attributes may be joined by AND only."
            )
        by_attribute.setdefault(names.pop(), []).append(node)
    return by_attribute
