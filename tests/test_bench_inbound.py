"""The measurements of inbound mail run, with tiny sizes."""

import os
import subprocess
import sys

import pytest

from bench import consumption, mail_mix, report
from bench.measurements import inbound, inbound_postgres, message_list, nodes
from bench.measurements.inbound import InboundLoad
from bench.measurements.inbound_postgres import PostgresLoad
from bench.measurements.message_list import ListLoad
from bench.measurements.nodes import NodesLoad
from bench.peers import dovecot, postfix, stdlib_mail
from bench.processes import scratch_folder
from bench.smtp_load import SmtpLoad, compose, run_smtp_load
from postroom.inward.mails import Arrival, Origin
from postroom.inward.receive import read_mail
from tests.ports import free_port
from tests.unhurried_postgres import usual_limits
from tests.warm_bench import one_client as one_client
from tests.warm_bench import warm_servers as warm_servers

pytestmark = pytest.mark.usefixtures("one_client", "warm_servers")


@pytest.mark.share
def test_inbound_gives_the_rates_to_the_250_and_until_all_is_done_the_costs_and_the_events() -> None:
    load = InboundLoad(
        2,
        small_mails=10,
        large_mails=4,
        rounds=1,
        seconds=0.2,
        large_seconds=0.1,
        streams=1,
        events=10,
        events_per_second=100,
    )
    results = {result.name: result for result in inbound.measure(load)}
    assert list(results)[:5] == [
        "5 kB, to the 250",
        "5 kB, all done",
        "100 kB, to the 250",
        "100 kB, all done",
        "mix, all done",
    ]
    assert results.keys() >= {
        "written for 5 kB",
        "kept for 5 kB",
        "processor for a mail of the mix",
        "event p50 at 100/s",
        "event p99 at 100/s",
    }
    rates = [result for result in results.values() if result.unit == "mails/s"]
    assert all(result.value > 0 for result in rates)
    peers = {result.peer.name for result in rates if result.peer is not None}
    assert peers >= {stdlib_mail.NAME}
    assert (postfix.NAME in peers) is postfix.can_run()
    assert (dovecot.NAME in peers) is dovecot.can_run()


def test_the_mix_is_what_it_says_and_the_same_each_time() -> None:
    mails, again = (
        [mail_mix.compose("run", number, "a@b.example", 0) for number in range(mail_mix.SAMPLES)]
        for _ in range(2)
    )
    assert mails == again
    assert not any(b"\r\n." in mail[:-5] for mail in mails)
    read = [
        read_mail(Arrival(Origin((), b"", "192.0.2.1", "x", "a@example.com"), mail[:-3])) for mail in mails
    ]
    assert sum(bool(each.mail.body_html) for each in read) == 60
    assert sum(file.filename == "table.csv" for each in read for file in each.attachments) == 10
    assert sum(each.report is not None for each in read) == 5
    assert all(
        5_000 < len(mail) < 45_000 for mail, each in zip(mails, read, strict=True) if each.mail.body_html
    )


@pytest.mark.share
def test_a_list_of_messages_is_compared_with_stored_json() -> None:
    [result] = message_list.measure(ListLoad(connections=2, requests=10, rounds=1))
    assert result.peer is not None
    assert result.value > 0 < result.peer.value


@pytest.mark.share
def test_the_cost_of_a_mail_on_postgresql_is_measured(postgres_url: str) -> None:
    with scratch_folder() as folder:
        results = inbound_postgres.measure_at(postgres_url, folder, PostgresLoad(2, warm_up=2, mails=10))
    assert [result.unit for result in results] == ["mails/s", "ms", "kB", "kB"]
    assert results[1].value > 0 < results[3].value


@pytest.mark.share
def test_the_cost_of_a_mail_is_measured_for_every_number_of_nodes(postgres_url: str) -> None:
    load = NodesLoad(connections=2, warm_up=2, mails=10, most_nodes=1, freezes=1)
    with usual_limits(), scratch_folder() as folder:
        results = {result.name: result.value for result in nodes.measure_at(postgres_url, folder, load)}
    assert results["1 node: processor time of a mail, database"] >= 0
    assert results["a frozen node: writes that need its row"] > 0


def test_the_use_of_a_process_counts_its_children() -> None:
    before = consumption.of_family(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert consumption.of_family(os.getpid()).cpu_seconds > before.cpu_seconds


def test_a_busy_machine_is_told_of() -> None:
    assert report.warnings(0.01) == []
    assert "50%" in report.warnings(0.5)[0]
    assert "optimisation" in report.python().lower()


def test_the_mails_of_a_run_have_their_size_and_differ() -> None:
    load = SmtpLoad(free_port(), "a@b.example", 1, 2, 5_000)
    mails = [compose(load, number) for number in range(2)]
    assert mails[0] != mails[1]
    assert all(4_900 < len(mail) <= 5_010 for mail in mails)


@pytest.mark.needs("root", "postfix")
def test_the_peer_keeps_what_it_took() -> None:
    with scratch_folder() as folder:
        with postfix.running_postfix(folder / "postfix", "b.example") as port:
            run_smtp_load(SmtpLoad(port, "a@b.example", 2, 6, 2_000))
        held = [path for path in (folder / "postfix" / "queue" / "hold").rglob("*") if path.is_file()]
    assert len(held) == 6
