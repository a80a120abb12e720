"""The charts of a report: what is drawn, in which order, how high, and how pale."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from juncture import Codebook, Coding, Date, Domain, Measurement
from juncture.publish.count_noise import CountNoise
from juncture.publish.report.axis import choose_ticks, format_compact
from juncture.publish.report.charts import draw_distribution
from juncture.publish.report.groups import group_adjacent, group_values
from juncture.publish.report.heat_map import draw_heat_map
from juncture.publish.report.means import describe_mean, find_mean
from juncture.publish.report.words import Labels, shorten_all
from juncture.tables.codebook import OUTSIDE
from report_page import Page, of


@pytest.mark.parametrize(
    "coding",
    [
        Coding(((0.0, 10.0), (10.0, 50.0), None), means=(2.0, None, None)),
        Coding((0, (0.0, 10.0), (10.0, 1000.0), OUTSIDE)),
        Coding(((0.0, 5.0), 5, (6.0, 20.0)), whole=True),
        Coding((3, 4, 9, None)),
    ],
)
def test_means_have_the_range_of_sql(coding: Coding) -> None:
    """The mean under a chart, and what bins leave of it open, are those that AVG has."""
    domain = Domain({"x": coding.size})
    model = of([("x",)], domain).with_codebook(Codebook({"x": coding}))
    mean = find_mean(coding, model.one_way("x"))
    answer = model.sql("SELECT AVG(x) AS mean FROM t")
    assert mean is not None
    assert mean.value == pytest.approx(answer.rows[0][0])
    expected = answer.ranges[0][0] if answer.ranges else None
    assert (mean.bins is None) == (expected is None)
    if mean.bins is not None and expected is not None:
        assert (mean.bins.low, mean.bins.high) == pytest.approx((expected.low, expected.high))
    noise = CountNoise(domain, [Measurement(("x",), np.zeros(coding.size), stddev=5.0)])
    words = describe_mean("x", coding, model.one_way("x"), noise)
    assert words is not None
    assert " ±" in words
    assert ("between" in words) == (expected is not None)


def test_the_noise_of_a_mean_is_seen_in_draws() -> None:
    """Means of counts with fresh noise scatter as much as the page says."""
    coding, rng = Coding((1, 2, 5, 10, None)), np.random.default_rng(1)
    counts = np.array([500.0, 800.0, 300.0, 400.0, 100.0])
    domain = Domain({"x": 5})
    noise = CountNoise(domain, [Measurement(("x",), counts, stddev=20.0)])
    mean = find_mean(coding, counts)
    assert mean is not None
    draws = counts + 20.0 * rng.standard_normal((4000, 5))
    means = draws[:, :4] @ [1.0, 2.0, 5.0, 10.0] / draws[:, :4].sum(axis=1)
    assert noise.stddev_of_sum("x", mean.weights) == pytest.approx(means.std(), rel=0.05)


def test_texts_have_no_mean() -> None:
    """Categories, dates and truth values have no mean, nor has what nobody has."""
    assert find_mean(Coding(("a", "b")), np.ones(2)) is None
    assert find_mean(Coding((True, False)), np.ones(2)) is None
    assert find_mean(Coding((1, 2)), np.zeros(2)) is None


def test_labels_can_be_told_apart() -> None:
    """However labels are cut, different ones stay different, and fit; short ones stay whole."""
    ends = [f"the same long beginning of every label, number {n}" for n in range(40)]
    middles = [f"the same long beginning, {n}, and then the same long end" for n in range(40)]
    wide = [f"東京都千代田区丸の内{n}丁目" for n in range(9)]
    for width in (12, 14, 15):
        for names in (ends, middles, wide, ends + middles, ["short", "shorter"]):
            shown = shorten_all(names, width)
            assert len(set(shown)) == len(names)
            assert max(map(len, shown)) <= width
    assert shorten_all(["short", "also short"], 14) == ["short", "also short"]
    assert shorten_all([ends[0]] * 2, 14)[0] == shorten_all([ends[0]] * 2, 14)[1]


def test_many_categories_come_by_size() -> None:
    """Beyond sixteen, the largest fifteen come first by size, then the others, then missing."""
    rng = np.random.default_rng(5)
    coding = Coding((*(f"value {n:02}" for n in range(40)), None, OUTSIDE))
    masses = rng.random(42)
    groups = group_values(Labels(coding), masses, 16)
    sizes = [float(masses[list(group.codes)].sum()) for group in groups]
    assert sizes[:15] == sorted(masses[:40], reverse=True)[:15]
    assert groups[15].label == "25 others"
    assert sizes[15] == pytest.approx(np.sort(masses[:40])[:25].sum())
    assert [(group.label, group.apart) for group in groups[16:]] == [
        ("(missing)", True), ("(outside)", True),
    ]  # fmt: skip
    assert sorted(code for group in groups for code in group.codes) == list(range(42))
    numbers = group_values(Labels(Coding(tuple(range(40)))), masses[:40], 50)
    assert [group.codes for group in numbers] == [(code,) for code in range(40)]


def test_unequal_bins_are_densities() -> None:
    """The area of a column is its share, so a bin ten times as wide is a tenth as high."""
    coding = Coding((0, (0.0, 10.0), (10.0, 110.0), (110.0, 130.0), None))
    drawn = Page(draw_distribution("x", Labels(coding), np.array([9.0, 20.0, 20.0, 8.0, 3.0])))
    bars = [each for each in drawn.all("rect") if each.get("class") == "bar"]
    columns = bars[:3]
    areas = [float(each["height"] or 0) * _slot(drawn, index) for index, each in enumerate(columns)]
    np.testing.assert_allclose(np.array(areas) / areas[0], [1.0, 1.0, 0.4], rtol=0.01)
    # The single number and the missing are no part of the axis: they have bars of their own.
    assert [float(each["width"] or 0) for each in bars[3:]] == pytest.approx(
        [125 * 9 / 60, 125 * 3 / 60], abs=0.01
    )
    assert "share per 10" in drawn.text


def _slot(page: Page, index: int) -> float:
    """The width of a column, with the gap beside it."""
    hits = [each for each in page.all("rect") if each.get("class") == "hit"]
    return float(hits[index]["width"] or 0)


def test_equal_bins_are_shares() -> None:
    """Months and equal intervals are drawn by share: nothing is said of densities."""
    months = Date(low=dt.date(2024, 1, 1), high=dt.date(2025, 12, 31)).coding
    for coding in (months, Coding.of_bins(list(range(0, 210, 10)))):
        drawn = Page(draw_distribution("x", Labels(coding), np.ones(coding.size)))
        assert "share per" not in drawn.text
        heights = {each["height"] for each in drawn.all("rect") if each.get("class") == "bar"}
        assert len(heights) == 1


def test_what_may_be_noise_is_pale() -> None:
    """Values below twice their noise are pale in the chart and in the table, others are not."""
    counts = np.array([500.0, 41.0, 39.0, 3.0])
    labels = Labels(Coding(tuple("abcd")))
    drawn = Page(draw_distribution("x", labels, counts, np.full(4, 20.0)))
    kinds = [each.get("class") for each in drawn.all("g")]
    assert kinds == [None, None, "pale", "pale"]


def test_rows_of_noise_are_pale_in_heat_maps() -> None:
    """A row whose sum, or every cell, could be noise is pale, however strong its shares are."""
    labels = Labels(Coding(("a", "b", "c"))), Labels(Coding(("x", "y")))
    table = np.array([[300.0, 200.0], [25.0, 1.0], [35.0, 30.0]])
    drawn = Page(
        draw_heat_map(
            ("rows", labels[0]), ("columns", labels[1]), table,
            stddevs=np.full((3, 2), 20.0), row_stddevs=np.full(3, 28.0),
        )
    )  # fmt: skip
    assert [each.get("class") for each in drawn.all("g")] == [None, "pale", "pale"]
    unknown = Page(draw_heat_map(("rows", labels[0]), ("columns", labels[1]), table))
    assert [each.get("class") for each in unknown.all("g")] == [None, None, None]


def test_ticks_are_round_numbers() -> None:
    """Whole numbers are named at round ones, intervals at round edges, texts evenly."""
    years = Labels(Coding((*range(17, 91), None, OUTSIDE)))
    assert [tick.label for tick in choose_ticks(years)] == ["20", "40", "60", "80"]
    bins = Labels(Coding.of_bins(list(range(250, 10_251, 500))))
    assert [(t.at, t.label) for t in choose_ticks(bins)] == [
        (3.5, "2000"), (7.5, "4000"), (11.5, "6000"), (15.5, "8000"), (19.5, "10k"),
    ]  # fmt: skip
    assert len(choose_ticks(Labels(Coding(tuple(f"value {n}" for n in range(100)))))) <= 6
    assert [format_compact(n) for n in (950.0, 9000.0, 12_500.0, 1.2e6, 3e9)] == [
        "950", "9000", "12.5k", "1.2M", "3G",
    ]  # fmt: skip


def test_groups_of_values_cover_all() -> None:
    """Adjacent values are merged into at most so many groups, which have every value once."""
    for size in (1, 23, 24, 25, 1000):
        groups = group_adjacent(Labels(Coding(tuple(range(size)))), range(size), 24)
        assert [code for group in groups for code in group.codes] == list(range(size))
        assert len(groups) <= 24
    merged = group_adjacent(Labels(Coding(("p", "q", "r"))), [0, 1, 2], 2)
    assert [(group.label, group.codes) for group in merged] == [("p", (0,)), ("q to r", (1, 2))]
    bins = group_adjacent(Labels(Coding.of_bins([0, 1, 2.5, 4, 9])), range(4), 2)
    assert [group.label for group in bins] == ["[0, 2.5)", "[2.5, 9)"]
