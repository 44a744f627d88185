"""The front office: the first page of a large inbox, and mail coming in while fifty pages are open."""

import contextlib
import http.client
import itertools
import os
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvloop
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from bench.measurements.large_inbox import FilledInbox, fill_folder
from bench.processes import HOST, Server, running_postroom, scratch_folder
from bench.results import Aim, Result, at_most
from bench.rounds import alternate, compare
from bench.smtp_load import SmtpLoad, run_smtp_load

MOST_CPU_MS = 15
MOST_TIMES_SMALL = Aim(1.5, is_ceiling=True, is_ratio=True)
MOST_BYTES = 20_000
MOST_SLOWER = Aim(1.05, is_ceiling=True, is_ratio=True)
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class PageLoad:
    large: int
    small: int
    requests: int  # a session may make 1,000 a minute
    rounds: int
    open_pages: int
    mails: int
    mails_per_second: float


LOAD = PageLoad(1_000_000, 1_000, requests=100, rounds=3, open_pages=50, mails=2_000, mails_per_second=200)


def measure(load: PageLoad = LOAD) -> list[Result]:
    with scratch_folder() as folder:
        large, small = uvloop.run(fill_folder(folder, (load.large, load.small)))
        with running_postroom(folder) as server:
            return [*_measure_pages(server, large, small, load), *_measure_mail(server, small, load)]


def _measure_pages(server: Server, large: FilledInbox, small: FilledInbox, load: PageLoad) -> list[Result]:
    visits = Visit(server, large), Visit(server, small)
    rounds = alternate(
        load.rounds,
        lambda: visits[0].cpu_ms(load.requests),
        lambda: visits[1].cpu_ms(load.requests),
    )
    times = compare(rounds, lambda cpu_ms: cpu_ms)
    name = f"first page of {load.large:,} in the front office"
    peer = times.peer(f"{load.small:,} messages")
    return [
        Result(f"{name}, CPU", times.value, "ms", at_most(MOST_CPU_MS), peer),
        Result(f"{name}, beside the small", times.value, "ms", MOST_TIMES_SMALL, peer),
        Result(f"{name}, packed", visits[0].get()[1], "bytes", at_most(MOST_BYTES)),
    ]


class Visit:
    """A person who is signed in, and reads the first page of an inbox."""

    def __init__(self, server: Server, inbox: FilledInbox) -> None:
        self._server = server
        self._path = f"/app/mail?inboxId={inbox.id}"
        self.cookie = _sign_in(server, inbox.token)

    def get(self, path: str = "") -> tuple[int, int]:
        """Status and bytes."""
        connection = http.client.HTTPConnection(HOST, self._server.port)
        headers = {"Cookie": self.cookie, "Accept-Encoding": "gzip", "Sec-Fetch-Site": "same-origin"}
        connection.request("GET", path or self._path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, len(body)

    def cpu_ms(self, requests: int) -> float:
        before = _cpu_seconds(self._server.pid)
        for _ in range(requests):
            status, _ = self.get()
            assert status == 200, status
        return (_cpu_seconds(self._server.pid) - before) * 1000 / requests


def _sign_in(server: Server, token: str) -> str:
    connection = http.client.HTTPConnection(HOST, server.port)
    headers = {
        "Origin": f"http://{HOST}:{server.port}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    connection.request("POST", "/app/sign-in", urllib.parse.urlencode({"key": token}), headers)
    answer = connection.getresponse()
    assert answer.status == 303, answer.read()
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    connection.close()
    return cookie


def _cpu_seconds(pid: int) -> float:
    """Of the process alone, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


@dataclass(frozen=True, slots=True)
class TakenIn:
    p50_ms: float
    cpu_ms: float  # of the server itself, a mail


def _measure_mail(server: Server, inbox: FilledInbox, load: PageLoad) -> list[Result]:
    """With pages that ask for what they hear of, and without."""
    runs = itertools.count()
    rounds = alternate(
        load.rounds,
        lambda: _take_in(server, inbox, load, load.open_pages, next(runs)),
        lambda: _take_in(server, inbox, load, 0, next(runs)),
    )
    name = f"mail in at {load.mails_per_second:g}/s with {load.open_pages} live pages"
    times = compare(rounds, lambda taken: taken.p50_ms)
    cpu = compare(rounds, lambda taken: taken.cpu_ms)
    return [
        Result(f"{name}, p50", times.value, "ms", MOST_SLOWER, times.peer("no page open")),
        Result(f"{name}, CPU a mail", cpu.value, "ms", None, cpu.peer("no page open")),
    ]


def _take_in(server: Server, inbox: FilledInbox, load: PageLoad, pages: int, run: int) -> TakenIn:
    mails = SmtpLoad(
        port=server.smtp_port,
        recipient=inbox.address,
        connections=20,
        count=load.mails,
        size_bytes=5_000,
        per_second=load.mails_per_second,
        run=str(run),
    )
    with contextlib.ExitStack() as stack:
        for _ in range(pages):
            stack.enter_context(_open_page(server, Visit(server, inbox)))
        before = _cpu_seconds(server.pid)
        report = run_smtp_load(mails)
        return TakenIn(report.p50_ms, (_cpu_seconds(server.pid) - before) * 1000 / load.mails)


@contextlib.contextmanager
def _open_page(server: Server, visit: Visit) -> Iterator[None]:
    """As the script of a page does: what it hears of makes it ask for the rail and for its rows."""
    live = connect(
        f"ws://{HOST}:{server.port}/app/live",
        origin=Origin(f"http://{HOST}:{server.port}"),
        additional_headers={"Cookie": visit.cookie},
        compression=None,
    )
    reader = threading.Thread(target=_follow, args=(live, visit), daemon=True)
    reader.start()
    try:
        yield
    finally:
        live.close()
        reader.join()


def _follow(live: ClientConnection, visit: Visit) -> None:
    for _ in live:
        visit.get("/app/rail?here=mail")
        visit.get()
