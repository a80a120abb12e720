"""The section on the structure of the model."""

from __future__ import annotations

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.engine.plan import Plan
from juncture.model.model import Model
from juncture.publish.report.tree_drawing import count_roots, draw_tree
from juncture.publish.report.words import format_large, join_names
from juncture.tables.schema import Schema


def render_structure(model: Model, schema: Schema | None = None) -> Markup:
    """The junction tree in words and as a drawing, and what was known beforehand."""
    plan = model.plan
    drawing = draw_tree(plan) if plan.has_tree else None
    known = None if schema is None else _render_facts(schema)
    return join([tag("p", _describe(plan)), _render_free_note(model), known, drawing])


def _render_facts(schema: Schema) -> Markup | None:
    """The rules and known totals that the model holds."""
    lines = [join(["Never ", tag("code", rule.never), "."]) for rule in schema.rules]
    lines += [
        join([f"{known.total:,g} records by {join_names(known.columns)}, exactly."])
        for known in schema.known
    ]
    if not lines:
        return None
    words = (
        "Known beforehand, and held by every answer and every synthetic record, as far as the "
        "model’s cells go:"
    )
    return join([tag("p", words), tag("ul", [tag("li", line) for line in lines])])


def _describe(plan: Plan) -> str:
    size = format_large(plan.domain.size)
    if not plan.has_tree:
        return (
            f"The full table would have {size} cells, and the "
            f"{count_noun(len(plan.cliques), 'measured clique')} tie its attributes together. The "
            "model is made of weighted records instead of tables, drawn at potentials on "
            f"these cliques with {format_large(plan.cells)} cells in total. Any "
            "attribute may depend on any other; answers are sums over the records."
        )
    if len(plan.nodes) == 1:
        return (
            "The model is one table on the attributes in the box, with "
            f"{count_noun(plan.cells, 'cell')}; any of them may depend on any other."
        )
    n_parts = count_roots(plan)
    apart = (
        ""
        if n_parts <= 1
        else f" It falls into {count_noun(n_parts, 'part')}, which are independent of each other."
    )
    return (
        f"The full table would have {size} cells. The model never forms it: it is a tree of "
        f"{count_noun(len(plan.nodes), 'smaller table')} with {format_large(plan.cells)} cells in "
        f"total, the cliques of a junction tree.{apart} Each box, or line, is a clique. Names "
        "in bold appear there first; the others are shared with the clique above, and only through "
        "them do the attributes above and below depend on each other."
    )


def _render_free_note(model: Model) -> Markup | None:
    names = model.unmeasured
    if not names:
        return None
    return tag(
        "p",
        tag("strong", f"Not measured: {join_names(names)}."),
        " The model knows nothing about these attributes: it takes all their values to be equally "
        "likely, whatever the values of the others.",
        class_="note",
    )
