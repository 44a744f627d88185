"""Mails put into an inbox on SQLite, 100 at once, without the index: processor, bytes written, bytes kept."""

import os
from pathlib import Path

import uvloop

from bench import consumption
from bench.measurements.search import add_inboxes, opened
from bench.processes import scratch_folder
from bench.results import Result
from bench.smtp_load import SmtpLoad, compose
from postroom.clock import SystemClock
from postroom.inward.deposit import deposit
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.mailbox.inboxes import Inbox
from postroom.storage.data_folder import DATABASE_NAME

BYTES = 15_000_000  # of mail of each kind
TOGETHER = 100
KINDS = {"5 kB": 5_000, "100 kB": 100_000, "mix": 0}
USUAL_BYTES = 15_000  # of a mail of the mix
END = b".\r\n"
PEER = "127.0.0.1"


def measure(size: int = BYTES) -> list[Result]:
    return [
        result
        for name, length in KINDS.items()
        for result in uvloop.run(_measure(name, length, max(1, size // (length or USUAL_BYTES))))
    ]


async def _measure(name: str, length: int, count: int) -> list[Result]:
    with scratch_folder() as folder:
        async with opened(folder, "") as db:
            (inbox,) = await db.write(add_inboxes, 1, SystemClock().now())
            mails = [_accepted(inbox, length, number) for number in range(count)]
            kept, before = _kept(folder), consumption.of_family(os.getpid())
            for start in range(0, count, TOGETHER):
                await db.write(deposit, mails[start : start + TOGETHER])
        use = consumption.of_family(os.getpid()) - before
        kept = _kept(folder) - kept
    return [
        Result(f"{name}: processor", use.cpu_seconds * 1000 / count, "ms"),
        Result(f"{name}: written", use.written_bytes / 1000 / count, "kB"),
        Result(f"{name}: kept", kept / 1000 / count, "kB"),
    ]


def _kept(folder: Path) -> int:
    return (folder / DATABASE_NAME).stat().st_size


def _accepted(inbox: Inbox, length: int, number: int) -> AcceptedMail:
    raw = compose(SmtpLoad(0, inbox.address, 1, number, length), number).removesuffix(END)
    trace = b"Received: from bench.example by postroom.localhost;\r\n\tMon, 1 Jan 2026 00:00:00 +0000\r\n"
    arrival = Arrival(
        Origin((Destination(inbox.id),), trace, PEER, "bench.example", "sender@example.com"), raw
    )
    return AcceptedMail(read_mail(arrival), "http://localhost", SystemClock().now())
