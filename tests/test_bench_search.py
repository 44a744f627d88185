"""The measurement of search runs, with tiny sizes, on both databases."""

import pytest

from bench import catalogue
from bench.measurements import search
from bench.measurements.search import SearchLoad
from tests.warm_bench import warm_servers as warm_servers

LOAD = SearchLoad(
    mails=120,
    inboxes=3,
    questions=4,
    intake_mails=40,
    mails_by_the_job=20,
    intake_rounds=1,
    paced_mails=20,
    paced_per_second=100,
)


@pytest.mark.usefixtures("warm_servers")
def test_search_is_measured_on_both_databases_and_beside_intake() -> None:
    results = search.measure(120, LOAD)
    assert [result.unit for result in results[:2]] == ["µs/mail", "bytes/mail"]
    assert {result.name.partition(":")[0] for result in results[:-2]} == {"SQLite", "PostgreSQL"}
    assert results[-2].unit == "s"
    assert all(result.value > 0 for result in results if result.unit != "s")
    assert results[-1].peer is not None


def test_another_size_is_for_those_that_have_one() -> None:
    assert catalogue.get("search", 500).measure is not search.measure
    assert catalogue.get("start", 500).measure is catalogue.get("start").measure
