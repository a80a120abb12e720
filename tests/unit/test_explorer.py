"""The explorer's server: who may ask, what is answered, and what is refused."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from explorer_server import LEDGER, SIZES, TOKEN, dense_counts, running, small_release
from guarantees import guarantee_of
from juncture import (
    Boolean,
    Categorical,
    Codebook,
    Coding,
    Date,
    Domain,
    Factor,
    Integer,
    InvalidInput,
    Measurement,
    Model,
    Number,
    Schema,
    estimate,
)
from juncture.fit.replicas import ReplicaRecipe
from juncture.fit.summary import FitSummary, Status
from juncture.model.sql.notes import Range
from juncture.privacy.accounting import Cost, Neighbours, compose_epsilon
from juncture.privacy.budget import Budget
from juncture.privacy.guarantee import Guarantee
from juncture.publish.explorer import limits
from juncture.publish.explorer.answers import Answers
from juncture.publish.explorer.facts import describe_fit, describe_guarantee
from juncture.publish.explorer.frames import Kind
from juncture.publish.explorer.groups import group_values
from juncture.publish.explorer.guard import cookie_name
from juncture.publish.explorer.question import (
    Between,
    OneOf,
    build_sql,
    condition_sql,
    quote_identifier,
)
from juncture.publish.explorer.server import create_app, serve
from juncture.publish.explorer.worker import respond
from juncture.publish.release import Release
from juncture.tables.codebook import OUTSIDE, Special
from juncture.tables.columns import Period
from processes import started

RELEASE = small_release()
MODEL = RELEASE.model
NAMES = list(SIZES)
ODD = NAMES[-1]
Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the small release."""
    with running(create_app(RELEASE, token=TOKEN, name="small")) as url:
        yield url


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    """Someone who has the token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as made:
        yield made


def _marginal(client: httpx.Client, attributes: list[str], *conditions: object) -> Array:
    reply = client.post(
        "/api/marginal", json={"attributes": attributes, "conditions": list(conditions)}
    )
    assert reply.status_code == 200, reply.text
    found = reply.json()
    return np.array(found["cells"]).reshape(found["shape"])


# Who may ask.


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/release"),
        ("POST", "/api/marginal"),
        ("POST", "/api/sql"),
        ("GET", "/api/sample?n=1"),
        ("GET", "/api/nothing"),
    ],
)
@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer no"}, {"Cookie": "a=b"}])
def test_answers_need_the_token(
    address: str, method: str, path: str, header: dict[str, str]
) -> None:
    """Without the token, or with a wrong one, no question is answered."""
    reply = httpx.request(method, address + path, headers=header)
    assert reply.status_code == 401
    assert "token" in reply.json()["error"]


def test_the_address_with_the_token_sets_a_cookie_once(address: str) -> None:
    """Opening the address sets a strict cookie, drops the token from the address, and lets in."""
    with httpx.Client(base_url=address) as browser:
        reply = browser.get(f"/?token={TOKEN}")
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert browser.get("/").status_code == 200
        assert browser.get("/api/release").status_code == 200


def test_a_wrong_token_in_the_address_sets_nothing(address: str) -> None:
    """A wrong token in the address gives no cookie."""
    assert "set-cookie" not in httpx.get(f"{address}/?token=wrong").headers


def test_an_empty_token_is_refused() -> None:
    """An app without a secret is not made."""
    with pytest.raises(InvalidInput, match="must not be empty"):
        create_app(RELEASE, token="")


def test_servers_on_one_machine_have_cookies_of_their_own() -> None:
    """Two tokens use two cookies, because ports of a machine share them."""
    assert cookie_name("one") != cookie_name("two")


def test_the_page_holds_nothing_of_the_release(address: str) -> None:
    """Anyone without a token gets the empty page, and no name of an attribute with it."""
    files = ["", *(f"static/{p.name}" for p in _static_files())]
    for path in files:
        reply = httpx.get(f"{address}/{path}")
        assert reply.status_code == 200
        assert "smoker" not in reply.text


def _static_files() -> list[Path]:
    import juncture.publish.explorer  # noqa: PLC0415

    folder = Path(str(juncture.publish.explorer.__file__)).parent / "static"
    return sorted(folder.iterdir())


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", ""])
def test_other_names_of_this_address_are_refused(client: httpx.Client, host: str) -> None:
    """A Host header that names another machine is refused, also with the right token."""
    assert client.get("/api/release", headers={"Host": host}).status_code in (400, 421)
    assert client.get("/", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:80", "[::1]:8417"])
def test_names_of_this_machine_are_allowed(client: httpx.Client, host: str) -> None:
    """Every loopback name is allowed, with or without a port."""
    assert client.get("/api/release", headers={"Host": host}).status_code == 200


def test_other_hosts_must_be_asked_for() -> None:
    """A name or an address that is not this machine's is allowed once it was given."""
    named = create_app(RELEASE, token=TOKEN, hosts=["Lab.example"])
    anywhere = create_app(RELEASE, token=TOKEN, any_address=True)
    expected = {"lab.example": (200, 421), "192.0.2.7:8417": (421, 200)}
    for app, place in ((named, 0), (anywhere, 1)):
        with running(app) as url:
            for host, statuses in expected.items():
                assert httpx.get(url, headers={"Host": host}).status_code == statuses[place]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_may_not_ask(client: httpx.Client, site: str) -> None:
    """A request that the browser says another page made is refused, other ports included."""
    assert client.get("/api/release", headers={"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/release", "/static/app.js", "/nowhere", "/?token=x"])
def test_every_reply_is_fenced_in(address: str, path: str) -> None:
    """Every reply, refusals too, allows no foreign script, frame, guess of type or referrer."""
    headers = httpx.get(address + path).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_script_or_style_of_its_own(address: str) -> None:
    """The page loads scripts and styles from this server only, and none stands inside it."""
    text = httpx.get(address).text
    assert "style=" not in text
    assert "<style" not in text
    assert text.count("<script") == text.count('<script src="/static/') + text.count(
        '<script type="module" src="/static/'
    )


# What the release is.


def test_facts_of_the_release(client: httpx.Client) -> None:
    """The page is told of every attribute, the summed cost and the certified gap."""
    facts = client.get("/api/release").json()
    assert [(a["name"], a["size"]) for a in facts["attributes"]] == list(SIZES.items())
    kinds = [attribute["kind"] for attribute in facts["attributes"]]
    assert kinds == ["numbers", "intervals", "texts", "texts", "codes"]
    assert facts["total"] == MODEL.total
    assert facts["guarantee"] == {
        "notion": "epsilon", "symbol": "ε", "value": 0.75, "events": 2,
        "budget": None, "neighbours": None, "delta": None,
    }  # fmt: skip
    assert facts["certificate"]["gap"] == pytest.approx(0.1)
    for left, right in facts["pairs"]:
        assert MODEL.mutual_information((left,), (right,)) > 0


def described(guarantee: Guarantee | None) -> dict[str, Any] | None:
    """What the page is told of a release with this guarantee."""
    return describe_guarantee(Release(model=MODEL, guarantee=guarantee))


def test_the_guarantee_is_in_the_notion_that_all_events_have() -> None:
    """Costs add up in epsilon where every event has one, else in rho; without a ledger, nothing."""
    mixed = described(guarantee_of([*LEDGER, {**LEDGER[0], "epsilon": None}]))
    assert mixed is not None
    assert (mixed["notion"], mixed["value"]) == ("rho", 0.03125 + 0.125 + 0.03125)
    assert described(None) is None
    assert described(guarantee_of([{"event": 1}])) is None


def test_the_guarantee_says_what_the_release_says_of_budget_and_neighbours() -> None:
    """With a stated budget, the cost is in its notion: composed under its delta, or as rho."""
    budget = Budget(epsilon=1.0, delta=1e-9)
    result = described(guarantee_of(LEDGER, budget, Neighbours.REPLACE))
    assert result is not None
    costs = [Cost(epsilon=0.25, rho=0.03125), Cost(epsilon=0.5, rho=0.125)]  # of the ledger
    assert result["value"] == pytest.approx(compose_epsilon(costs, 1e-9))
    assert (result["notion"], result["delta"]) == ("delta", "1e-09")
    assert (result["budget"], result["neighbours"]) == (str(budget), str(Neighbours.REPLACE))
    concentrated = described(guarantee_of(LEDGER, Budget(rho=0.5)))
    assert concentrated is not None
    assert (concentrated["notion"], concentrated["value"]) == ("rho", 0.03125 + 0.125)


def test_a_bound_below_zero_certifies_nothing() -> None:
    """A bound that any model meets, or none at all, is not shown as a certificate."""
    for bound in (-5.0, -math.inf):
        fit = FitSummary(
            status=Status.AT_NOISE, loss=1.0, lower_bound=bound, oracle_calls=1, seconds=0.0
        )
        result = describe_fit(fit)
        assert result is not None
        assert result["gap"] is None
    assert describe_fit(None) is None


# What is answered.


@pytest.mark.parametrize("n", [1, 2, 3])
def test_marginals_are_the_models(client: httpx.Client, n: int) -> None:
    """Every picture of one, two or three attributes shows the model's own marginal."""
    for attributes in itertools.permutations(NAMES, n):
        found = _marginal(client, list(attributes))
        expected = MODEL.project(attributes).values
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


CONDITIONS: list[tuple[dict[str, object], dict[str, list[float]]]] = [
    ({"attribute": "age", "codes": [4]}, {"age": [4]}),
    ({"attribute": "age", "codes": [2, 3, 4, 5]}, {"age": [2, 3, 4, 5]}),
    ({"attribute": "age", "codes": [9, 0, 2, 3, 4]}, {"age": [0, 2, 3, 4, 9]}),
    ({"attribute": "age", "low": 22, "high": 25}, {"age": [2, 3, 4, 5]}),
    ({"attribute": "age", "low": 30}, {"age": [10, 11]}),
    ({"attribute": "age", "high": 20.5}, {"age": [0]}),
    ({"attribute": "pay", "codes": [0, 1]}, {"pay": [0, 1]}),
    ({"attribute": "pay", "codes": [0, 2, 3]}, {"pay": [0, 2, 3]}),
    ({"attribute": "pay", "codes": [4]}, {"pay": [4]}),
    ({"attribute": "work", "codes": [0]}, {"work": [0]}),
    ({"attribute": "work", "codes": [2, 3]}, {"work": [2, 3]}),
    ({"attribute": "work", "codes": [1, 4]}, {"work": [1, 4]}),
    ({"attribute": "work", "codes": [4, 3]}, {"work": [3, 4]}),
    ({"attribute": "smoker", "codes": [1]}, {"smoker": [1]}),
    ({"attribute": ODD, "codes": [0, 2]}, {ODD: [0, 2]}),
]


def _brute(attributes: list[str], allowed: dict[str, list[float]]) -> Array:
    counts = dense_counts(RELEASE)
    for name, codes in allowed.items():
        weights = np.zeros(SIZES[name])
        weights[np.array(codes, dtype=int)] = 1.0
        axis = NAMES.index(name)
        counts = counts * weights.reshape([-1 if i == axis else 1 for i in range(len(NAMES))])
    letters = "".join(chr(97 + place) for place in range(len(NAMES)))
    kept = "".join(letters[NAMES.index(name)] for name in attributes)
    return np.asarray(np.einsum(f"{letters}->{kept}", counts))


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "allowed"), CONDITIONS)
@pytest.mark.parametrize("attributes", [[], ["work"], ["age", ODD], ["pay", "smoker", "work"]])
def test_conditions_are_those_of_the_whole_table(
    client: httpx.Client,
    attributes: list[str],
    condition: dict[str, object],
    allowed: dict[str, list[float]],
) -> None:
    """Counts under a condition are sums over those cells of the written-out table."""
    found = _marginal(client, attributes, condition)
    np.testing.assert_allclose(found, _brute(attributes, allowed), rtol=1e-9, atol=1e-9)


def test_several_conditions_all_hold(client: httpx.Client) -> None:
    """Conditions on different attributes are joined by AND."""
    chosen = [{"attribute": "work", "codes": [0, 3]}, {"attribute": "smoker", "codes": [0]}]
    found = _marginal(client, ["age", "pay"], *chosen)
    expected = _brute(["age", "pay"], {"work": [0, 3], "smoker": [0]})
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_range_counts_its_share_of_an_interval(client: httpx.Client) -> None:
    """A range that cuts an interval counts in proportion, as SQL does everywhere."""
    found = _marginal(client, [], {"attribute": "pay", "low": 5, "high": 20})
    pay = MODEL.project(("pay",)).values
    assert float(found) == pytest.approx(0.5 * pay[0] + pay[1])


@pytest.mark.parametrize("attributes", [[], ["age"], ["work", ODD], ["smoker", "pay", "work"]])
def test_the_query_shown_is_the_query_run(client: httpx.Client, attributes: list[str]) -> None:
    """Running the SQL that comes with a picture gives the picture's numbers."""
    condition = {"attribute": "work", "codes": [0, 2, 3, 4]}
    asked = {"attributes": attributes, "conditions": [condition]}
    picture = client.post("/api/marginal", json=asked).json()
    answer = client.post("/api/sql", json={"sql": picture["sql"]}).json()
    assert answer["columns"] == picture["columns"]
    shown = sorted(cell for cell in picture["cells"] if cell > 1e-6)
    np.testing.assert_allclose(sorted(row[-1] for row in answer["rows"]), shown, rtol=1e-9)


@pytest.mark.parametrize(
    ("attributes", "condition"),
    [
        (["age", "pay"], None),
        (["age", "work"], None),
        (["work"], {"attribute": "pay", "low": 5.0, "high": 33.0}),
        (["pay"], {"attribute": "pay", "low": 5.0, "high": 33.0}),
        (["pay"], {"attribute": "age", "codes": [1, 2]}),
    ],
)
def test_pictures_tell_what_they_rest_on(
    client: httpx.Client, attributes: list[str], condition: dict[str, Any] | None
) -> None:
    """A picture has the notes of its own query, and the ranges that SQL gives count and mean."""
    asked = {"attributes": attributes, "conditions": [condition] if condition else []}
    found = client.post("/api/marginal", json=asked).json()
    where = found["sql"].partition("WHERE")[2].partition("GROUP BY")[0] or "TRUE"
    notes = {str(note) for note in MODEL.sql(found["sql"]).notes}
    assert notes <= set(found["notes"])
    assert len(set(found["notes"])) == len(found["notes"])
    mean = ", AVG(pay) AS mean" if attributes == ["pay"] else ""
    answer = MODEL.sql(f"SELECT COUNT(*) AS n{mean} FROM t WHERE {where}")
    ranges = answer.ranges[0] if answer.ranges else (None, None)
    assert found["count_range"] == _ends(ranges[0])
    if attributes == ["pay"]:
        assert found["mean"]["value"] == pytest.approx(answer.rows[0][1])
        assert found["mean"]["range"] == _ends(ranges[1])
        assert found["mean"]["range"] is not None
    else:
        assert found["mean"] is None


def _ends(span: Range | None) -> list[float] | None:
    if span is None or span.high - span.low < 1e-9 * span.high:
        return None
    return [span.low, span.high]


def test_means_of_negative_bins_have_a_range() -> None:
    """Where SQL knows no range, the counts of the bins give it."""
    coding = Coding(((-10.0, 0.0), (0.0, 30.0)))
    model = Model.of_potentials(Domain({"x": 2}), [], total=100.0)
    answers = Answers(Release(model=model.with_codebook(Codebook({"x": coding}))))
    assert answers.marginal(["x"], [])["mean"] == {"value": 5.0, "range": [-5.0, 15.0]}


def test_sql_answers_without_intervals_say_why() -> None:
    """Where replicas are kept, a count of columns that were never measured together says so."""
    measured = [
        Measurement((name,), counts, stddev=1.0)
        for name, counts in (("a", [60.0, 40.0]), ("b", [30.0, 70.0]))
    ]
    fit = estimate(Domain({"a": 2, "b": 2}), measured)
    made = Release(model=fit.model, measurements=measured, fit=fit.summary)
    answers = Answers(made.with_replicas(ReplicaRecipe(0, 4)))
    assert "without an interval" in answers.sql("SELECT COUNT(*) FROM t WHERE a = b")["notes"][-1]
    assert answers.sql("SELECT COUNT(*) FROM t WHERE a = 0")["notes"] == []


def test_sql_answers_tell_what_they_rest_on(client: httpx.Client) -> None:
    """Notes and ranges come with the rows; where nothing is open, there are none."""
    query = "SELECT smoker, AVG(pay) AS m, COUNT(*) AS n FROM t WHERE pay < 15 GROUP BY smoker"
    found, expected = client.post("/api/sql", json={"sql": query}).json(), MODEL.sql(query)
    assert found["notes"] == [str(note) for note in expected.notes]
    assert len(found["notes"]) >= 2
    assert found["ranges"] == [[_ends(each) for each in row] for row in expected.ranges]
    assert found["ranges"][0][1] is not None
    plain = client.post("/api/sql", json={"sql": "SELECT COUNT(*) FROM t"}).json()
    assert (plain["notes"], plain["ranges"]) == ([], [])


def test_sql_answers_are_the_models(client: httpx.Client) -> None:
    """SQL through the server gives what the model's own sql gives."""
    query = "SELECT work, COUNT(*) AS n, AVG(age) AS mean FROM t WHERE pay < 15 GROUP BY work"
    found = client.post("/api/sql", json={"sql": query}).json()
    expected = MODEL.sql(query)
    assert found["columns"] == list(expected.columns)
    assert found["rows"] == [list(row) for row in expected.rows]


def test_questions_at_the_same_time(client: httpx.Client) -> None:
    """Many questions at once get the answers that each gets alone."""
    pairs = [list(pair) for pair in itertools.permutations(NAMES, 2)]
    alone = [_marginal(client, pair) for pair in pairs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda pair: _marginal(client, pair), pairs))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


# What is refused.


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT wrk, COUNT(*) FROM t GROUP BY wrk", "'wrk'"),
        ("SELECT * FROM t", "A model has no records"),
        ("DELETE FROM t", "one SELECT"),
        ("SELECT COUNT(*) FROM t WHERE work = 'nobody'", "it's mine"),
        ("", "one SELECT"),
    ],
)
def test_errors_of_sql_are_told(client: httpx.Client, query: str, words: str) -> None:
    """A query that has no answer gets a 400 with our own message."""
    reply = client.post("/api/sql", json={"sql": query})
    assert reply.status_code == 400
    assert words in reply.json()["error"]


def test_other_errors_show_no_detail() -> None:
    """Of what goes wrong inside, the server learns the kind, and the client nothing."""

    def work() -> dict[str, Any]:
        raise ZeroDivisionError("of the inside")

    assert respond(work) == (Kind.FAILURE, b"ZeroDivisionError")


@pytest.mark.parametrize(
    "body",
    [
        {"attributes": ["nobody"]},
        {"attributes": ["age", "age"]},
        {"attributes": NAMES[:4]},
        {"attributes": "age"},
        {"attributes": [], "conditions": [{"attribute": "age", "codes": [99]}]},
        {"attributes": [], "conditions": [{"attribute": "age", "codes": []}]},
        {"attributes": [], "conditions": [{"attribute": "age"}]},
        {"attributes": [], "conditions": [{"attribute": "nobody", "codes": [0]}]},
        {"attributes": [], "conditions": [{"attribute": "work", "low": 3}]},
        {"attributes": ["age"], "max_values": [1]},
        {"attributes": ["age"], "max_values": 4},
        {"attributes": [], "more": 1},
        [1],
    ],
)
def test_impossible_questions_are_refused(client: httpx.Client, body: object) -> None:
    """A question that is none gets a 400 with a reason."""
    reply = client.post("/api/marginal", json=body)
    assert reply.status_code == 400
    assert len(reply.json()["error"]) > 20


def test_long_requests_are_refused(client: httpx.Client) -> None:
    """A body over the limit is refused, whether its length is told beforehand or not."""
    long = b'{"sql": "' + b" " * limits.MAX_BYTES + b'"}'
    assert client.post("/api/sql", content=long).status_code == 413
    in_parts = (long[place : place + 9000] for place in range(0, len(long), 9000))
    assert client.post("/api/sql", content=in_parts).status_code == 413


@pytest.mark.parametrize("query", ["n=0", "n=1000001", "n=x", "n=5&format=exe", "n=5&seed=-1", ""])
def test_impossible_samples_are_refused(client: httpx.Client, query: str) -> None:
    """Too many records, none, or an unknown format are refused with a reason."""
    reply = client.get(f"/api/sample?{query}")
    assert reply.status_code == 400
    assert "must be" in reply.json()["error"]


def test_attributes_with_many_values_are_answered_in_groups() -> None:
    """Charts that would be too large come in ranges; large answers to SQL are refused."""
    domain = Domain({"a": 300, "b": 300, "wide": limits.MAX_CELLS + 1})
    flat = [Factor(domain.project((name,)), np.zeros(size)) for name, size in domain.items()]
    model = Model.of_potentials(domain, flat, 9.0)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with (
        running(create_app(Release(model=model), token=TOKEN)) as url,
        httpx.Client(base_url=url, headers=headers, timeout=60) as client,
    ):
        for names in (["a", "b"], ["wide"], ["wide", "a", "b"]):
            reply = client.post("/api/marginal", json={"attributes": names})
            assert reply.status_code == 200, reply.text
            found = reply.json()
            assert found["count"] == pytest.approx(9.0)
            assert math.prod(found["shape"]) == len(found["cells"]) <= limits.MAX_CELLS
            assert "ranges of its" in " ".join(found["notes"])
        same = {"sql": "SELECT a, b, COUNT(*) FROM t GROUP BY 1, 2"}
        also = {"sql": "SELECT Wide, COUNT(*) FROM t GROUP BY 1"}
        for body in (same, also):
            reply = client.post("/api/sql", json=body)
            assert reply.status_code == 400
            assert "must" in reply.json()["error"]
        below = client.post("/api/sql", json={"sql": "SELECT COUNT(*) FROM t WHERE wide < 4"})
        assert below.json()["rows"][0][0] == pytest.approx(9.0 * 4 / domain["wide"])


@pytest.mark.parametrize("conditions", [[], [{"attribute": "smoker", "codes": [1]}]])
@pytest.mark.parametrize("names", [["age", "work"], ["work"], [ODD, "age", "pay"]])
def test_groups_add_up_the_cells_of_their_values(
    client: httpx.Client, names: list[str], conditions: list[dict[str, Any]]
) -> None:
    """Each value is in one group, and a group counts what its values count; so does its query."""
    wanted = {"age": 4, "work": 4, "pay": 4, ODD: 2}
    body = {"attributes": names, "conditions": conditions}
    reply = client.post("/api/marginal", json=body | {"max_values": [wanted[n] for n in names]})
    found = reply.json()
    expected = _marginal(client, names, *conditions)
    for number, (name, axis) in enumerate(zip(names, found["axes"], strict=True)):
        codes = [value["codes"] for value in axis["values"]]
        assert sorted(itertools.chain(*codes)) == list(range(SIZES[name]))
        assert len(codes) <= wanted[name]
        parts = [expected.take(each, axis=number).sum(axis=number) for each in codes]
        expected = np.stack(parts, axis=number)
    assert np.array(found["cells"]).reshape(found["shape"]) == pytest.approx(expected)
    labels = [[value["label"] for value in axis["values"]] for axis in found["axes"]]
    told = dict(zip(itertools.product(*labels), expected.reshape(-1), strict=True))
    for *keys, count in MODEL.sql(found["sql"]).rows:
        assert count == pytest.approx(told[tuple(keys)])


def test_the_largest_values_are_shown() -> None:
    """Without an order, the largest are kept, with all others as one; what is special stays."""
    coding = Coding(("a", "b", "others", "d", "e", None, OUTSIDE))
    groups = group_values(coding, 5, np.array([1.0, 9.0, 2.0, 8.0, 3.0, 50.0, 0.0]))
    assert [(g.label, g.codes) for g in groups] == [
        ("b", (1,)), ("d", (3,)), ("others", (0, 2, 4)), ("missing", (5,)), ("outside", (6,)),
    ]  # fmt: skip
    few = group_values(coding, 7, np.ones(7))
    assert [g.codes for g in few] == [(code,) for code in range(7)]


def test_days_become_months_and_then_years() -> None:
    """Ranges of dates are those of the calendar, where they are few enough."""
    column = Date(low=dt.date(2023, 11, 20), high=dt.date(2025, 2, 3), period=Period.DAY)
    months, years = (group_values(column.coding, n, None) for n in (20, 5))
    assert [g.label for g in months][:3] == ["2023-11", "2023-12", "2024-01"]
    assert [(g.label, len(g.codes)) for g in years] == [("2023", 42), ("2024", 366), ("2025", 34)]


# Synthetic records.


def _people() -> Release:
    schema = Schema(
        {
            "age": Integer(low=17, high=30),
            "pay": Number(edges=(0.0, 10.0, 100.0), missing=True),
            "since": Date(low=dt.date(2020, 1, 1), high=dt.date(2021, 12, 31)),
            "work": Categorical(values=("a", "b"), missing=True),
            "ok": Boolean(),
        }
    )
    rng = np.random.default_rng(0)
    tables = [
        Factor.random(schema.domain.project(pair), rng)
        for pair in itertools.pairwise(schema.domain)
    ]
    return Release(model=Model.of_potentials(schema.domain, tables, 100.0), schema=schema)


@pytest.mark.parametrize("release", [RELEASE, _people()], ids=["codebook", "schema"])
def test_synthetic_records_come_as_asked(release: Release) -> None:
    """CSV and Parquet hold as many records as asked, the same for the same seed."""
    n = 45_000  # several chunks, the last one short
    with running(create_app(release, token=TOKEN)) as url:
        asked = f"{url}/api/sample?n={n}&seed=7&format="
        headers = {"Authorization": f"Bearer {TOKEN}"}
        text = httpx.get(f"{asked}csv", headers=headers, timeout=60)
        binary = httpx.get(f"{asked}parquet", headers=headers, timeout=60)
    assert "attachment" in text.headers["content-disposition"]
    table = pyarrow.parquet.read_table(io.BytesIO(binary.content))
    texts = pyarrow.csv.read_csv(io.BytesIO(text.content))
    assert (table.num_rows, texts.num_rows) == (n, n)
    assert table.column_names == texts.column_names == list(release.model.domain)
    first = next(iter(release.model.domain))
    assert table.column(first).to_pylist() == texts.column(first).to_pylist()


def test_synthetic_records_follow_the_model(client: httpx.Client) -> None:
    """Counts of a large download are what the model expects, up to rounding."""
    n = 100_000
    reply = client.get(f"/api/sample?n={n}&format=parquet&seed=1")
    work = pyarrow.parquet.read_table(io.BytesIO(reply.content)).column("work").to_pylist()
    labels = ["it's mine", "none", "<b>bold</b>", None, "(outside)"]
    share = MODEL.project(("work",)).values / MODEL.total
    for label, chance in zip(labels, share, strict=True):
        assert abs(work.count(label) - n * chance) <= 3


def test_synthetic_records_meet_the_conditions(client: httpx.Client) -> None:
    """Of a download under conditions every record meets them; a divided bin is refused."""
    conditions: list[dict[str, Any]] = [
        {"attribute": "work", "codes": [0, 3]},
        {"attribute": "age", "low": 22, "high": 25},
        {"attribute": "pay", "low": 0, "high": 20},
    ]
    asked: dict[str, str | int] = {
        "n": 20_000,
        "format": "parquet",
        "seed": 1,
        "conditions": json.dumps(conditions),
    }
    reply = client.get("/api/sample", params=asked)
    assert reply.status_code == 200, reply.text
    table = pyarrow.parquet.read_table(io.BytesIO(reply.content))
    assert set(table.column("work").to_pylist()) == {"it's mine", None}
    ages = table.column("age").to_pylist()
    assert set(ages) == {22, 23, 24, 25}
    expected = _brute(["age"], {"work": [0, 3], "age": [2, 3, 4, 5], "pay": [0, 1]})[2:6]
    found = np.bincount(ages, minlength=26)[22:]
    np.testing.assert_allclose(found, 20_000 * expected / expected.sum(), atol=3)
    conditions[-1]["high"] = 15
    for text in (json.dumps(conditions), "[1]", "{", '[{"attribute": "nobody", "codes": [0]}]'):
        refused = client.get("/api/sample", params={"n": 5, "conditions": text})
        assert refused.status_code == 400
        assert "must" in refused.json()["error"]


# Questions as SQL.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("age", "age"),
        ("select", '"select"'),
        ("current_date", '"current_date"'),
        ("a b", '"a b"'),
        ("group", '"group"'),
        ("Order", '"Order"'),
        ('say "hi"', '"say ""hi"""'),
        ("1st", '"1st"'),
        ("naïve", '"naïve"'),
    ],
)
def test_names_are_quoted_where_they_must_be(name: str, expected: str) -> None:
    """Names that SQL would read otherwise stand in quotes, all others as they are."""
    assert quote_identifier(name) == expected


HOSTILE = [
    '"; DROP TABLE x; --',
    "<script>",
    "it's",
    "sél ect",
    "\\",
    "count",
    "ORDER",
    "*",
    "?",
    "a.b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_values_are_only_names_and_values(name: str) -> None:
    """An attribute and a value of any name are counted like every other."""
    domain = Domain({name: 2, "other": 2})
    book = Codebook({name: Coding((name, "else"))}).bind(domain)
    potentials = Factor(domain, np.log(np.array([[1.0, 2.0], [3.0, 4.0]])))
    model = Model.of_potentials(domain, [potentials], 10.0).with_codebook(book)
    query = build_sql(book, [name, "other"], [OneOf(name, (0,))])
    counts = [row[-1] for row in model.sql(query).rows]
    assert counts == pytest.approx([1.0, 2.0])


def test_values_of_several_kinds_can_be_chosen() -> None:
    """Where some values are texts and some numbers, each can still be asked for."""
    domain = Domain({"x": 3})
    book = Codebook({"x": Coding(("low", 5, 6))}).bind(domain)
    table = Factor(domain, np.log(np.array([1.0, 2.0, 3.0])))
    model = Model.of_potentials(domain, [table], 6.0).with_codebook(book)
    for code, count in enumerate((1.0, 2.0, 3.0)):
        query = build_sql(book, [], [OneOf("x", (code,))])
        assert model.sql(query).rows[0][0] == pytest.approx(count)


def test_conditions_are_short() -> None:
    """Numbers in a row become a range, and so do intervals that touch; one value is an equals."""
    numbers, bins = Coding((1, 2, 3, 4, 9)), Coding.of_bins([0, 1, 2.5, 4])
    assert condition_sql(OneOf("x", (1, 2, 3, 4)), numbers) == "x BETWEEN 2 AND 9"
    assert condition_sql(OneOf("x", (4,)), numbers) == "x = 9"
    assert condition_sql(OneOf("x", (0, 1)), bins) == "x >= 0 AND x < 2.5"
    assert condition_sql(Between("x", None, 2.0), bins) == "x <= 2"


def test_codes_that_sql_cannot_tell_apart_are_refused() -> None:
    """One of two codes outside the domain cannot be asked for alone."""
    with pytest.raises(InvalidInput, match="cannot tell them apart"):
        condition_sql(OneOf("x", (1,)), Coding(("a", OUTSIDE, Special("other"))))


# The whole thing.


@pytest.mark.slow
def test_serve_prints_an_address_that_answers(tmp_path: Path) -> None:
    """`serve` prints the address with a token, answers there, and ends quietly on Ctrl-C."""
    path = small_release().save(tmp_path / "small.jct")
    code = f"from juncture.publish.explorer.server import serve; serve({str(path)!r}, port=0)"
    command = [sys.executable, "-W", "error", "-c", code]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = next(line.strip() for line in process.stdout if "http://127.0.0.1" in line)
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(url).status_code == 200
            facts = browser.get(url.split("?")[0] + "api/release").json()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
    assert facts["name"] == "small"


def test_a_port_that_is_taken_is_refused(address: str, tmp_path: Path) -> None:
    """A port that another server holds is refused with what to do."""
    path = small_release().save(tmp_path / "small.jct")
    with pytest.raises(InvalidInput, match="Use another port"):
        serve(path, port=int(address.rsplit(":", 1)[1]))
