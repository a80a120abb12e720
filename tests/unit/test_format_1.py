"""Release files of format 1 open, and say what they said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from juncture import Budget, Neighbours, Status, load
from juncture.publish.format_1 import upgrade
from juncture.publish.report.document import render_report

FILES = Path(__file__).parents[1] / "files"


def test_a_release_under_epsilon_and_delta() -> None:
    """Budget, neighbours, events, fit, mechanism, workload and labels come out typed."""
    made = load(FILES / "format-1-hdmm.jct")
    assert made.guarantee is not None
    assert made.guarantee.budget == Budget(epsilon=1.0, delta=1e-9)
    assert made.guarantee.neighbours == Neighbours.ADD_OR_REMOVE
    assert [entry.number for entry in made.guarantee.events] == [1, 2, 3, 4, 5, 6]
    statement = made.guarantee.state(made.model.total)
    assert statement.epsilon == pytest.approx(1.0)
    assert statement.delta == 1e-9
    assert made.fit is not None
    assert (made.fit.status, made.fit.oracle_calls) == (Status.AT_NOISE, 33)
    assert made.mechanism == "hdmm"
    assert list(made.workload)[:2] == [("sex", "age"), ("sex", "smoker")]
    rows = made.model.sql("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex ORDER BY sex").rows
    assert [(label, round(float(count or 0), 3)) for label, count in rows] == [
        ("(outside)", 28.332),
        ("f", 195.698),
        ("m", 190.97),
    ]
    assert "(ε, δ) = (1, 10" in render_report(made).replace("<", " <")


def test_a_release_that_does_not_say_how_its_fit_ended() -> None:
    """What format 1 left out stays unknown; the rest is there."""
    made = load(FILES / "format-1-mwem.jct")
    assert made.guarantee is not None
    assert (made.fit, made.mechanism, dict(made.details)) == (None, "mwem", {"rounds": 4})
    assert made.guarantee.budget == Budget(epsilon=2.0)
    assert made.guarantee.neighbours == Neighbours.REPLACE
    assert made.guarantee.epsilon == pytest.approx(2.0)


def test_a_release_without_a_ledger() -> None:
    """No guarantee is made up."""
    made = load(FILES / "format-1-plain.jct")
    assert made.guarantee is None
    assert made.fit is not None
    assert (made.mechanism, made.workload, dict(made.details)) == (None, (), {})


@pytest.mark.parametrize("name", ["hdmm", "mwem", "plain"])
def test_saved_again_it_is_format_2(name: str, tmp_path: Path) -> None:
    """An old file becomes a new one without losing anything."""
    old = load(FILES / f"format-1-{name}.jct")
    new = load(old.save(tmp_path / "new.jct"))
    assert new.guarantee == old.guarantee
    assert new.fit == old.fit
    assert (new.mechanism, new.workload) == (old.mechanism, old.workload)
    assert new.model.marginals.tobytes() == old.model.marginals.tobytes()


@pytest.mark.parametrize(
    "text", ["delta nan", "delta 5", "epsilon 1, delta x", 7, None, "", "epsilon 1,delta 1", "much"]
)
def test_a_budget_that_is_none_stays_unknown(text: object) -> None:
    """Only what format 1 itself wrote counts as a budget."""
    document = {"statistics": {"budget": text}, "ledger": [], "domain": [], "version": 1}
    upgraded = upgrade(json.loads(json.dumps(document)))
    assert upgraded["guarantee"]["budget"] is None


def test_names_with_commas_leave_the_workload_unknown() -> None:
    """Format 1 put commas between names: where a name has one, nothing is guessed."""
    document = {
        "statistics": {"workload": ["a, b", "c"]},
        "ledger": None,
        "domain": [["a, b", 2], ["c", 3]],
        "version": 1,
    }
    assert upgrade(document)["workload"] == []
