"""Mails over 20 SMTP connections, each read, stored and announced before its 250: how many a second."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import consumption
from bench.consumption import Use
from bench.peers import postfix, stdlib_mail
from bench.peers.postfix import running_postfix
from bench.processes import HOST, listening, running_postroom, scratch_folder, started
from bench.results import Peer, Result, at_least_times_peer, at_most
from bench.rounds import in_turn
from bench.seeding import seed
from bench.smtp_load import SmtpLoad, SmtpReport, run_smtp_load
from tests.ports import free_port

DOMAIN = "postroom.localhost"
RECIPIENT = f"bench-0-0@{DOMAIN}"
SMALL_BYTES, LARGE_BYTES = 5_000, 100_000
MAILS_OF_A_SLOW_PEER = 8  # it gets one in so many


@dataclass(frozen=True, slots=True)
class InboundLoad:
    connections: int
    small_mails: int
    large_mails: int
    rounds: int
    paced_mails: int
    paced_per_second: float


LOAD = InboundLoad(20, small_mails=3_000, large_mails=400, rounds=5, paced_mails=1_500, paced_per_second=300)


class MailServer:
    """Somebody who takes mail: its port, and the process above all of its processes."""

    def __init__(self, name: str, port: int, pid: int) -> None:
        self.name, self.port, self.pid = name, port, pid

    def take(self, connections: int, count: int, size_bytes: int) -> "Turn":
        before = consumption.of_family(self.pid)
        report = run_smtp_load(
            SmtpLoad(self.port, RECIPIENT, connections, count, size_bytes, run=os.urandom(4).hex())
        )
        consumption.settle(self.pid)
        return Turn(report, consumption.of_family(self.pid) - before, count)


@dataclass(frozen=True, slots=True)
class Turn:
    report: SmtpReport
    use: Use
    count: int

    @property
    def per_second(self) -> float:
        return self.report.per_second

    @property
    def cpu_ms(self) -> float:
        return self.use.cpu_seconds * 1000 / self.count

    @property
    def written_kb(self) -> float:
        return self.use.written_bytes / 1000 / self.count


def measure(load: InboundLoad = LOAD) -> list[Result]:
    with scratch_folder() as folder, contextlib.ExitStack() as stack:
        database = folder / "postroom" / "postroom.db"
        ours = stack.enter_context(receiving_postroom(folder))
        peers = [*stack.enter_context(_postfix_if_there(folder)), stack.enter_context(_stdlib(folder))]
        before = database.stat().st_size
        small = _turns(load, [ours, *peers], load.small_mails, SMALL_BYTES)
        kept_kb = (database.stat().st_size - before) / 1000 / (load.rounds * load.small_mails)
        large = _turns(load, [ours, *peers[:-1]], load.large_mails, LARGE_BYTES)
        return [
            *_rates("inbound mails of 5 kB", small, {postfix.NAME: 1.2, stdlib_mail.NAME: 12}),
            *_rates("inbound mails of 100 kB", large, {postfix.NAME: 0.75}),
            *_costs("of a mail of 5 kB", small),
            *_costs("of a mail of 100 kB", large),
            Result("kept in the database of a mail of 5 kB", kept_kb, "kB", at_most(12)),
            _paced(ours, load),
        ]


@contextlib.contextmanager
def receiving_postroom(folder: Path) -> Iterator[MailServer]:
    seed(folder / "postroom", account_count=1, inboxes_each=1)
    with running_postroom(folder / "postroom") as server:
        yield MailServer("postroom", server.smtp_port, server.pid)


def can_run_postfix() -> bool:
    return postfix.COMMAND is not None and os.geteuid() == 0


@contextlib.contextmanager
def _postfix_if_there(folder: Path) -> Iterator[list[MailServer]]:
    if not can_run_postfix():
        yield []
        return
    with running_postfix(folder / "postfix", DOMAIN) as port:
        yield [MailServer(postfix.NAME, port, postfix.master_pid(folder / "postfix"))]


@contextlib.contextmanager
def _stdlib(folder: Path) -> Iterator[MailServer]:
    port = free_port()
    with started("bench.peers.stdlib_mail", [str(folder / "stdlib.db"), HOST, str(port)]) as process:
        listening(process, port)
        yield MailServer(stdlib_mail.NAME, port, process.pid)


def _turns(
    load: InboundLoad, servers: list[MailServer], count: int, size_bytes: int
) -> dict[str, list[Turn]]:
    def mails(server: MailServer) -> int:
        is_slow = server.name == stdlib_mail.NAME
        return max(1, count // MAILS_OF_A_SLOW_PEER) if is_slow else count

    return in_turn(
        load.rounds,
        {
            server.name: lambda server=server: server.take(load.connections, mails(server), size_bytes)  # type: ignore[misc]
            for server in servers
        },
    )


def _rates(name: str, turns: dict[str, list[Turn]], aims: dict[str, float]) -> list[Result]:
    ours = [turn.per_second for turn in turns["postroom"]]
    if len(turns) == 1:
        return [Result(name, median(ours), "mails/s")]
    return [
        Result(
            name,
            median(ours),
            "mails/s",
            at_least_times_peer(aims[peer]),
            _peer(peer, ours, [turn.per_second for turn in found]),
        )
        for peer, found in turns.items()
        if peer != "postroom"
    ]


def _costs(of_what: str, turns: dict[str, list[Turn]]) -> list[Result]:
    cpu = [turn.cpu_ms for turn in turns["postroom"]]
    written = [turn.written_kb for turn in turns["postroom"]]
    found = turns.get(postfix.NAME)
    return [
        Result(
            f"processor time {of_what}",
            median(cpu),
            "ms",
            peer=_peer(postfix.NAME, cpu, [turn.cpu_ms for turn in found]) if found else None,
        ),
        Result(
            f"written to disk {of_what}",
            median(written),
            "kB",
            at_most(40) if of_what.endswith(" 5 kB") else None,
            _peer(postfix.NAME, written, [turn.written_kb for turn in found]) if found else None,
        ),
    ]


def _peer(name: str, ours: list[float], peers: list[float]) -> Peer:
    """The ratio is taken within each round, where both met the same state of the machine."""
    return Peer(
        name, median(peers), median(our / max(peer, 1e-9) for our, peer in zip(ours, peers, strict=True))
    )


def _paced(ours: MailServer, load: InboundLoad) -> Result:
    report = run_smtp_load(
        SmtpLoad(
            ours.port,
            RECIPIENT,
            load.connections,
            load.paced_mails,
            SMALL_BYTES,
            load.paced_per_second,
            run=os.urandom(4).hex(),
        )
    )
    return Result(f"p99 until 250 at {load.paced_per_second:g} mails/s", report.p99_ms, "ms", at_most(50))
