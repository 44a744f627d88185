"""Every measurement runs, with tiny sizes: what it measures depends on the machine and is not judged here."""

import json

import pytest

from bench import catalogue, hostile_shapes, report
from bench.__main__ import main
from bench.insert_load import InsertLoad
from bench.measurements import group_commit, group_commit_postgres, memory, pauses, rest, start
from bench.measurements.rest import RestLoad
from bench.results import Peer, Result, at_least_times_peer, at_most
from bench.rounds import alternate, compare
from tests.warm_bench import warm_servers as warm_servers

TINY_INSERTS = InsertLoad(callers=4, seconds=0.05, rounds=1)


def test_start_is_measured_on_a_new_and_an_existing_folder() -> None:
    assert [result.unit for result in start.measure(rounds=1)] == ["s", "s"]


@pytest.mark.usefixtures("warm_servers")
def test_memory_is_that_of_a_server_that_answered() -> None:
    (result,) = memory.measure(requests=20, idle_seconds=0)
    assert result.value > 1


def test_group_commit_is_compared_with_one_commit_a_call_on_sqlite() -> None:
    (result,) = group_commit.measure(TINY_INSERTS)
    assert result.peer is not None
    assert result.value > 0 < result.peer.value


def test_group_commit_is_compared_with_one_commit_a_call_on_postgresql(postgres_url: str) -> None:
    (result,) = group_commit_postgres.measure_at(postgres_url, TINY_INSERTS)
    assert result.peer is not None
    assert result.value > 0 < result.peer.value


@pytest.mark.usefixtures("warm_servers")
def test_rest_gives_rate_and_times_of_both_servers() -> None:
    results = rest.measure(RestLoad(connections=2, requests=40, rounds=1))
    assert [result.unit for result in results] == ["requests/s", "ms", "ms"] * 2
    assert all(result.peer is not None for result in results)


def test_every_measurement_says_in_one_line_what_it_measures() -> None:
    for name in catalogue.names():
        assert catalogue.get(name).description.endswith(".")


def test_the_command_lists_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == catalogue.names()


def test_the_command_refuses_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["speed"])
    assert "no measurement is called speed" in capsys.readouterr().err


def test_who_goes_first_changes_from_round_to_round() -> None:
    order: list[str] = []
    alternate(2, lambda: order.append("ours"), lambda: order.append("peer"))
    assert order == ["ours", "peer", "peer", "ours"]


def test_the_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    comparison = compare([(10.0, 1.0), (10.0, 5.0), (40.0, 10.0)], float)
    assert comparison.peer("slow") == Peer("slow", 5.0, 4.0)
    assert comparison.value == 10.0


@pytest.mark.parametrize(
    ("result", "is_met"),
    [
        (Result("start", 1.0, "s", at_most(1)), True),
        (Result("start", 1.1, "s", at_most(1)), False),
        (Result("rate", 50, "/s", at_least_times_peer(5), Peer("slow", 10, 5.0)), True),
        (Result("rate", 50, "/s", at_least_times_peer(5), Peer("slow", 10, 4.9)), False),
        (Result("rate", 50, "/s", at_least_times_peer(5)), False),
        (Result("rate", 50, "/s"), None),
    ],
)
def test_an_aim_is_met_or_not(result: Result, is_met: bool | None) -> None:
    assert result.is_met is is_met


def test_the_table_and_the_json_show_value_aim_and_peer() -> None:
    results = [
        Result("start", 0.512, "s", at_most(1)),
        Result("rate", 31_234.5, "/s", at_least_times_peer(5), Peer("slow", 10_000, 3.12)),
    ]
    heading, first, second = report.table(results).splitlines()
    assert heading.startswith("measurement")
    assert first.split() == ["start", "0.512", "s", "<=", "1", "yes"]
    assert second.split() == ["rate", "31,234", "/s", ">=", "5", "x", "peer", "NO", "slow", "10,000", "3.12"]
    assert json.loads(report.as_json(results, 0.5))["results"][1] == {
        "name": "rate",
        "value": 31_234.5,
        "unit": "/s",
        "aim": ">= 5 x peer",
        "met": False,
        "peer": {"name": "slow", "value": 10_000, "ratio": 3.12},
    }


def test_pauses_are_measured_under_hostile_shapes() -> None:
    results = pauses.measure(seconds=0.05, most_shapes=3)
    assert [result.unit for result in results[:3]] == ["", "ms", "ms"]
    assert results[0].value == 3
    assert hostile_shapes.count() >= 60
