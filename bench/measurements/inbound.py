"""Mails a second over 20 SMTP connections, each parsed, threaded, stored and announced before its 250."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.peers import postfix
from bench.peers.postfix import running_postfix
from bench.processes import CHECKOUT, HOST, free_port, scratch_folder, wait_until_healthy
from bench.results import Result, at_least_times_peer, at_most
from bench.rounds import alternate, compare
from bench.seeding import seed
from bench.smtp_load import SmtpLoad, SmtpReport, run_smtp_load

DOMAIN = "postroom.localhost"
RECIPIENT = f"bench-0-0@{DOMAIN}"
SMALL_BYTES, LARGE_BYTES = 5_000, 100_000


@dataclass(frozen=True, slots=True)
class InboundLoad:
    connections: int
    small_mails: int
    large_mails: int
    rounds: int
    paced_mails: int
    paced_per_second: float


LOAD = InboundLoad(
    20, small_mails=6_000, large_mails=1_000, rounds=5, paced_mails=3_000, paced_per_second=300
)


def measure(load: InboundLoad = LOAD) -> list[Result]:
    with scratch_folder() as folder, receiving_postroom(folder) as ours, _postfix_if_there(folder) as peer:
        return [
            _compare("inbound mails of 5 kB", ours, peer, load, load.small_mails, SMALL_BYTES, 2.0),
            _compare("inbound mails of 100 kB", ours, peer, load, load.large_mails, LARGE_BYTES, None),
            _paced(ours, load),
        ]


@contextlib.contextmanager
def receiving_postroom(folder: Path) -> Iterator[int]:
    """Gives the SMTP port of a server with one inbox."""
    seed(folder / "postroom", account_count=1, inboxes_each=1)
    http_port, smtp_port = free_port(), free_port()
    settings = {
        "POSTROOM_DATA_DIR": str(folder / "postroom"),
        "POSTROOM_HTTP": f"{HOST}:{http_port}",
        "POSTROOM_SMTP": f"{HOST}:{smtp_port}",
    }
    with (folder / "postroom.log").open("w") as log:  # a line a mail, as in production
        process = subprocess.Popen(
            [sys.executable, "-m", "postroom", "serve"],
            cwd=CHECKOUT,
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        wait_until_healthy(process, http_port)
        yield smtp_port
    finally:
        process.terminate()
        process.wait()


def can_run_postfix() -> bool:
    return postfix.COMMAND is not None and os.geteuid() == 0


@contextlib.contextmanager
def _postfix_if_there(folder: Path) -> Iterator[int | None]:
    if not can_run_postfix():
        yield None
        return
    with running_postfix(folder / "postfix", DOMAIN) as port:
        yield port


def _compare(
    name: str, ours: int, peer: int | None, load: InboundLoad, count: int, size_bytes: int, aim: float | None
) -> Result:
    def run(port: int) -> SmtpReport:
        return run_smtp_load(
            SmtpLoad(port, RECIPIENT, load.connections, count, size_bytes, run=os.urandom(4).hex())
        )

    if peer is None:
        return Result(name, median(run(ours).per_second for _ in range(load.rounds)), "mails/s")
    port = peer
    rates = compare(
        alternate(load.rounds, lambda: run(ours), lambda: run(port)), lambda report: report.per_second
    )
    wanted = None if aim is None else at_least_times_peer(aim)
    return Result(name, rates.value, "mails/s", wanted, rates.peer(postfix.NAME))


def _paced(ours: int, load: InboundLoad) -> Result:
    report = run_smtp_load(
        SmtpLoad(
            ours,
            RECIPIENT,
            load.connections,
            load.paced_mails,
            SMALL_BYTES,
            load.paced_per_second,
            run=os.urandom(4).hex(),
        )
    )
    return Result(f"p99 until 250 at {load.paced_per_second:g} mails/s", report.p99_ms, "ms", at_most(50))
