"""The measurements of inbound mail and of large inboxes run, with tiny sizes."""

import pytest

from bench.measurements import inbound, large_inbox
from bench.measurements.inbound import InboundLoad
from bench.measurements.large_inbox import LargeInboxLoad
from bench.peers import postfix
from bench.processes import free_port, scratch_folder
from bench.smtp_load import SmtpLoad, compose, run_smtp_load


def test_inbound_gives_the_rates_of_both_sizes_and_the_time_at_a_pace() -> None:
    load = InboundLoad(2, small_mails=10, large_mails=4, rounds=1, paced_mails=10, paced_per_second=100)
    small, large, paced = inbound.measure(load)
    assert (small.unit, large.unit, paced.unit) == ("mails/s", "mails/s", "ms")
    assert small.value > 0 < large.value
    assert (small.peer is not None) is inbound.can_run_postfix()


def test_a_large_inbox_is_compared_with_a_small_one() -> None:
    results = large_inbox.measure(LargeInboxLoad(large=300, small=30, requests=5, rounds=1))
    assert [result.peer is not None and result.value > 0 for result in results] == [True, True, True]


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
