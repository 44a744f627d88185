"""Mails over 20 SMTP connections: how many a second get their 250, and how many are all done."""

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench import consumption
from bench.consumption import Use
from bench.peers import dovecot, postfix, stdlib_mail
from bench.peers.postfix import running_postfix
from bench.processes import HOST, listening, running_postroom, scratch_folder, started
from bench.results import Aim, Peer, Result, at_least_times_peer, at_most
from bench.rounds import in_turn
from bench.seeding import seed
from bench.smtp_load import SmtpLoad, SmtpReport, run_smtp_load
from bench.stream_load import StreamLoad, run_stream_load
from tests.ports import free_port

DOMAIN = "postroom.localhost"
RECIPIENT = f"bench-0-0@{DOMAIN}"
SMALL_BYTES, LARGE_BYTES, MIX = 5_000, 100_000, 0
ONE_IN = {stdlib_mail.NAME: 8, dovecot.NAME: 80}  # mails for peers that are slow: some 5 a second are indexed
MANY = 10_000_000
LOOK_SECONDS = 0.05
DONE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class InboundLoad:
    connections: int
    small_mails: int
    large_mails: int
    rounds: int
    seconds: float  # of sustained load, of 5 kB and of the mix
    large_seconds: float
    streams: int
    events: int
    events_per_second: float


LOAD = InboundLoad(
    20,
    small_mails=3_000,
    large_mails=400,
    rounds=5,
    seconds=60,
    large_seconds=10,
    streams=10,
    events=3_000,
    events_per_second=200,
)


class MailServer:
    """Somebody who takes mail: its port, the processes above all of its own, and what is still to do."""

    def __init__(
        self, name: str, port: int, *pids: int, is_done: Callable[[int], bool] = lambda count: True
    ) -> None:
        self.name, self.port, self._pids = name, port, pids
        self._is_done = is_done
        self._taken = 0

    def take(self, connections: int, count: int, size_bytes: int, seconds: float | None = None) -> "Turn":
        before, began = consumption.of_family(*self._pids), time.perf_counter()
        run = os.urandom(4).hex()
        report = run_smtp_load(
            SmtpLoad(self.port, RECIPIENT, connections, count, size_bytes, seconds=seconds, run=run)
        )
        began = max(began, time.perf_counter() - report.count / report.per_second)
        self._taken += report.count
        self._wait_until_done()
        done_seconds = time.perf_counter() - began
        consumption.settle(*self._pids)
        return Turn(report, consumption.of_family(*self._pids) - before, done_seconds)

    def _wait_until_done(self) -> None:
        end = time.monotonic() + DONE_SECONDS
        while not self._is_done(self._taken):
            if time.monotonic() > end:
                raise RuntimeError("what was taken is never done")
            time.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class Turn:
    report: SmtpReport
    use: Use
    done_seconds: float

    @property
    def per_second(self) -> float:
        return self.report.per_second

    @property
    def done_per_second(self) -> float:
        return self.report.count / self.done_seconds

    @property
    def cpu_ms(self) -> float:
        return self.use.cpu_seconds * 1000 / self.report.count

    @property
    def written_kb(self) -> float:
        return self.use.written_bytes / 1000 / self.report.count


def measure(load: InboundLoad = LOAD, size: int | None = None) -> list[Result]:
    """With a size, so many seconds of sustained load."""
    if size is not None:
        load = replace(load, seconds=size, large_seconds=size, rounds=min(load.rounds, 1 + size // 10))
    with scratch_folder() as folder, contextlib.ExitStack() as stack:
        data = folder / "postroom"
        (token,) = seed(data, account_count=1, inboxes_each=1)
        server = stack.enter_context(running_postroom(data))
        ours = MailServer(
            "postroom", server.smtp_port, server.pid, is_done=lambda count: is_all_done(data, count)
        )
        queueing = stack.enter_context(_postfix_if_there(folder))
        peers = [*queueing, *stack.enter_context(_dovecot_if_there(folder))]
        script = stack.enter_context(_stdlib(folder))
        small = _turns(load, [ours, *peers, script], load.small_mails, SMALL_BYTES)
        before = _kept_bytes(data)
        small_long = ours.take(load.connections, MANY, SMALL_BYTES, load.seconds)
        kept_kb = (_kept_bytes(data) - before) / 1000 / small_long.report.count
        large = _turns(load, [ours, *queueing], load.large_mails, LARGE_BYTES)
        large_long = ours.take(load.connections, MANY, LARGE_BYTES, load.large_seconds)
        mix = _turns(replace(load, rounds=1), peers, load.small_mails, MIX)
        mix_long = ours.take(load.connections, MANY, MIX, load.seconds)
        events = run_stream_load(
            StreamLoad(
                server.port,
                server.smtp_port,
                token,
                load.streams,
                RECIPIENT,
                load.events,
                load.events_per_second,
            )
        )
    at_pace = f"at {load.events_per_second:g}/s"
    return [
        _rate("5 kB, to the 250", _rates(small["postroom"]), small, at_least_times_peer(2.0)),
        _rate("5 kB, all done", [small_long.done_per_second], small, at_least_times_peer(0.75)),
        _rate("100 kB, to the 250", _rates(large["postroom"]), large, at_least_times_peer(1.0)),
        _rate("100 kB, all done", [large_long.done_per_second], large, at_least_times_peer(0.3)),
        _rate("mix, all done", [mix_long.done_per_second], mix),
        _cost("written for 5 kB", small_long.written_kb, "kB", _of_postfix(small, "written_kb"), at_most(30)),
        Result("kept for 5 kB", kept_kb, "kB", at_most(11)),
        _cost(
            "processor for a mail of the mix", mix_long.cpu_ms, "ms", _of_postfix(mix, "cpu_ms"), at_most(3.5)
        ),
        _cost("processor for 5 kB", small_long.cpu_ms, "ms", _of_postfix(small, "cpu_ms"), at_most(1.25)),
        _cost("processor for 100 kB", large_long.cpu_ms, "ms", _of_postfix(large, "cpu_ms"), at_most(7)),
        Result(f"event p50 {at_pace}", events.p50_ms, "ms", at_most(5)),
        Result(f"event p99 {at_pace}", events.p99_ms, "ms", at_most(10)),
        *_beside_dovecot("5 kB, all done, beside Dovecot", small_long, small),
        *_beside_dovecot("mix, all done, beside Dovecot", mix_long, mix),
        _rate("5 kB, to the 250, of a script", _rates(small["postroom"]), small, peer=stdlib_mail.NAME),
    ]


def is_all_done(data: Path, count: int) -> bool:
    """Whether so many mails are in the inbox, examined, and in the search index."""
    with closing(sqlite3.connect(f"file:{data}/postroom.db?mode=ro", uri=True)) as rows:
        rows.execute("attach database ? as search", (f"file:{data}/search.db?mode=ro",))
        (found, examined, changed, indexed) = rows.execute(
            "select (select sum(inbound_count) from inboxes),"
            " (select count(*) from examinations), (select max(number) from search_changes),"
            " (select reached from search_state)"
        ).fetchone()
    return found >= count and not examined and (changed or 0) <= indexed


def _kept_bytes(data: Path) -> int:
    return sum((data / name).stat().st_size for name in ("postroom.db", "search.db"))


@contextlib.contextmanager
def _postfix_if_there(folder: Path) -> Iterator[list[MailServer]]:
    if not postfix.can_run():
        yield []
        return
    with running_postfix(folder / "postfix", DOMAIN) as port:
        yield [MailServer(postfix.NAME, port, postfix.master_pid(folder / "postfix"))]


@contextlib.contextmanager
def _dovecot_if_there(folder: Path) -> Iterator[list[MailServer]]:
    if not dovecot.can_run():
        print(
            f"{dovecot.NAME}: left out, needs Postfix, dovecot-lmtpd and dovecot-fts-xapian", file=sys.stderr
        )
        yield []
        return
    with dovecot.running(folder / "dovecot", DOMAIN) as running:
        yield [MailServer(dovecot.NAME, running.port, *running.pids, is_done=running.is_done)]


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
        return max(1, count // ONE_IN.get(server.name, 1))

    runs = {
        server.name: lambda server=server: server.take(load.connections, mails(server), size_bytes)
        for server in servers
    }
    return in_turn(load.rounds, runs) if runs else {}


def _rates(turns: list[Turn]) -> list[float]:
    return [turn.per_second for turn in turns]


def _rate(
    name: str,
    ours: list[float],
    turns: dict[str, list[Turn]],
    aim: Aim | None = None,
    peer: str = postfix.NAME,
) -> Result:
    """A peer that only queues is done with its 250."""
    found = _rates(turns.get(peer, []))
    return Result(name, median(ours), "mails/s", aim if found else None, _peer(peer, ours, found))


def _beside_dovecot(name: str, ours: Turn, turns: dict[str, list[Turn]]) -> list[Result]:
    """The same work, done by others: stored, and in an index."""
    found = [turn.done_per_second for turn in turns.get(dovecot.NAME, [])]
    peer = _peer(dovecot.NAME, [ours.done_per_second], found)
    return [] if peer is None else [Result(name, ours.done_per_second, "mails/s", peer=peer)]


def _cost(name: str, value: float, unit: str, of_peer: list[float], aim: Aim | None = None) -> Result:
    return Result(name, value, unit, aim, _peer(postfix.NAME, [value], of_peer))


def _of_postfix(turns: dict[str, list[Turn]], what: str) -> list[float]:
    return [getattr(turn, what) for turn in turns.get(postfix.NAME, [])]


def _peer(name: str, ours: list[float], peers: list[float]) -> Peer | None:
    """The ratio is taken within each round, where both met the same state of the machine."""
    if not peers:
        return None
    if len(ours) != len(peers):
        ours = [median(ours)] * len(peers)
    ratios = [our / max(peer, 1e-9) for our, peer in zip(ours, peers, strict=True)]
    return Peer(name, median(peers), median(ratios))
