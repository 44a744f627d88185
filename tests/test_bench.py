"""Every measurement runs, with tiny sizes: what it measures depends on the machine and is not judged here."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import catalogue, hostile_shapes, invented_mails, processes, report
from bench.__main__ import main
from bench.measurements import (
    deposit_costs,
    growth,
    imap,
    importing,
    index_costs,
    mailboxes,
    many_inboxes,
    memory,
    pauses,
    search,
    send_costs,
    sending,
    start,
)
from bench.measurements.search import SearchLoad
from bench.measurements.sending import SendLoad
from bench.results import Peer, Result, at_least_times_peer, at_most
from bench.rounds import alternate, compare
from tests.conftest import new_postgres_database
from tests.postgres_databases import MIGRATED
from tests.warm_bench import migrated_databases as migrated_databases
from tests.warm_bench import warm_servers as warm_servers

pytestmark = pytest.mark.usefixtures("migrated_databases")


@pytest.mark.share
@pytest.mark.usefixtures("warm_servers")
def test_start_is_measured_and_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SCRATCH", tmp_path)
    assert [result.unit for result in start.measure(rounds=1)] == ["s", "s"]
    assert list(tmp_path.iterdir()) == []


ENDED = """
import pathlib, sys
from bench import __main__, catalogue, processes
processes.SCRATCH = pathlib.Path(sys.argv[1])
def measure():
    with processes.scratch_folder():
        print("measuring", flush=True)
        sys.stdin.read()
catalogue.get = lambda name, size: catalogue.Measurement(name, "It waits.", measure)
__main__.main(["start"])
"""


def test_a_run_that_is_ended_leaves_no_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"measuring\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.terminate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.share
@pytest.mark.usefixtures("warm_servers")
def test_memory_is_that_of_a_server_that_answered() -> None:
    resident, *idle = memory.measure(requests=20, idle_seconds=0)
    assert resident.value > 1
    assert [each.unit for each in idle] == ["% of a core", "kB"]


@pytest.mark.share
@pytest.mark.usefixtures("warm_servers")
def test_sends_are_compared_with_a_bare_endpoint() -> None:
    few, many, *delivered = sending.measure(SendLoad(connections=2, sends=20, rounds=1, deliveries=10))
    for each in (few, many):
        assert each.peer is not None
        assert each.value > 0 < each.peer.value
    units = ["mails/s", "ms", "ms", "", f"of {os.cpu_count()}"] if sending.SMTP_SINK else []
    assert [result.unit for result in delivered] == units


@pytest.mark.share
def test_what_a_deposit_costs_is_measured_for_each_kind_of_mail() -> None:
    results = {result.name: result.value for result in deposit_costs.measure(200_000)}
    assert len(results) == 9
    assert all(value > 0 for name, value in results.items() if name.endswith("kept"))


def test_what_a_send_costs_is_told_tree_by_tree() -> None:
    results = {result.name: result.value for result in send_costs.measure(40)}
    assert results["processor of the writer, 16 a commit"] > 0
    pages = sum(value for name, value in results.items() if name.startswith("pages of "))
    written = results["written to the log, 16 a commit"]
    assert written == pytest.approx(pages * 4.12)
    assert 0 < results["written to the log, 100 a commit"] < written


def test_what_many_inboxes_cost_is_measured_beside_one() -> None:
    results = many_inboxes.measure(60)
    deposits = 2 * 2 * len(many_inboxes.TOGETHER)
    asked, log, trees = ["µs", "µs"], ["µs", "kB"], results[deposits + 4 :]
    assert [result.unit for result in results[: deposits + 4]] == ["µs", "kB"] * (deposits // 2) + asked + log
    assert "one more each: pages of messages" in {result.name for result in trees}
    assert all(result.value > 0 for result in results if result.unit == "kB")


@pytest.mark.share
def test_growth_is_measured_on_both_databases_with_plans(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(growth, "running_postgres", lambda: contextlib.nullcontext(postgres_url))
    monkeypatch.setattr(growth, "TOGETHER", 1)
    monkeypatch.setattr(growth, "ROUNDS", 2)
    monkeypatch.setattr(growth, "WARM_UP", 0)
    with new_postgres_database(MIGRATED) as another:
        monkeypatch.setattr(growth, "_databases", lambda url: (url, another))
        results = growth.measure(50)
    assert len(results) == 2 * len(growth.HOT)
    assert all(result.peer is not None and result.value > 0 < result.peer.value for result in results)
    plans = capsys.readouterr().err
    assert "SQLite: list of messages: select" in plans
    assert "    SEARCH messages USING INDEX messages_by_inbox (inbox_id=?)" in plans


def test_what_the_index_costs_is_measured_for_each_kind_of_mail() -> None:
    results = index_costs.measure(20_000)
    assert [result.name for result in results[2::3]] == [
        "5 kB: kept",
        "100 kB: kept",
        "5 kB with accents: kept",
    ]
    assert all(result.value > 0 for result in results[2::3])


@pytest.mark.share
def test_search_is_measured_on_both_databases(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "running_postgres", lambda: contextlib.nullcontext(postgres_url))
    monkeypatch.setattr(search, "VOCABULARY", "a small one")
    monkeypatch.setattr(invented_mails, "WORDS", 4_000)
    monkeypatch.setattr(invented_mails, "WORDS_OF_BOOK", 10_000)
    results = search.measure(120, SearchLoad(mails=120, inboxes=3, questions=4))
    assert [result.unit for result in results] == ["µs/mail", "bytes/mail", "ms", "ms", "ms"] * 2
    assert {result.name.partition(":")[0] for result in results} == {"SQLite", "PostgreSQL"}
    assert all(result.value > 0 for result in results)


@pytest.mark.share
def test_what_an_import_costs_is_measured_and_a_second_one_brings_nothing() -> None:
    units = [result.unit for result in importing.measure(size=20, kinds=importing.KINDS[:1])]
    assert units == ["mails/s", "ms/mail", "mails/s"]


@pytest.mark.share
@pytest.mark.usefixtures("warm_servers")
def test_what_mailboxes_elsewhere_cost_is_measured() -> None:
    results = mailboxes.measure(size=3, idle_seconds=0)
    assert [result.unit for result in results] == ["kB", "s", "% of a core", "kB/s", "s", "ms"]


@pytest.mark.share
@pytest.mark.usefixtures("warm_servers")
def test_a_mail_program_is_measured() -> None:
    results = imap.measure(50, keys=2, heard=2)
    assert [result.unit for result in results] == ["s of processor"] * 3 + ["ms"] * 2 + ["kB"]
    assert "50 mails" in results[0].name


def test_another_size_is_for_those_that_have_one() -> None:
    assert catalogue.get("search", 500).measure is not search.measure
    assert catalogue.get("start", 500).measure is catalogue.get("start").measure


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


@pytest.mark.share
def test_pauses_are_measured_under_hostile_shapes() -> None:
    results = pauses.measure(seconds=0.05, most_shapes=3)
    assert [result.unit for result in results[:3]] == ["", "ms", "ms"]
    assert results[0].value == 3
    assert hostile_shapes.count() >= 60
