"""The measurement of search runs, with tiny sizes, on both databases."""

from bench import catalogue
from bench.measurements import search
from bench.measurements.search import SearchLoad


def test_search_is_measured_on_both_databases_and_beside_intake() -> None:
    results = search.measure(120, SearchLoad(120, 3, questions=4, intake_mails=40))
    assert [result.unit for result in results[:2]] == ["µs/mail", "bytes/mail"]
    assert {result.name.partition(":")[0] for result in results[:-1]} == {"SQLite", "PostgreSQL"}
    assert all(result.value > 0 for result in results)
    assert results[-1].peer is not None


def test_another_size_is_for_those_that_have_one() -> None:
    assert catalogue.get("search", 500).measure is not search.measure
    assert catalogue.get("start", 500).measure is catalogue.get("start").measure
