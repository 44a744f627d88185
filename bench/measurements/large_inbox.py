"""The first page of an inbox with 1,000,000 messages, beside that of one with 1,000 on the same server."""

from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench.http_load import Load, LoadReport, get_request, run_load
from bench.processes import Server, running_postroom, scratch_folder
from bench.results import Aim, Result
from bench.rounds import alternate, compare
from postroom import config
from postroom.accounts import accounts, keys
from postroom.assembly import open_database
from postroom.clock import SystemClock
from postroom.storage.database import Tx
from tests.filled_inbox import fill

NAME = "1,000 messages"
LISTS = ("messages", "threads", "threads?is_read=false")
MOST_TIMES_PEER = Aim(1.3, is_ceiling=True, is_ratio=True)


@dataclass(frozen=True, slots=True)
class LargeInboxLoad:
    large: int
    small: int
    requests: int  # each of the two accounts may make 1,000 a minute
    rounds: int


@dataclass(frozen=True, slots=True)
class FilledInbox:
    id: str
    token: str
    address: str


LOAD = LargeInboxLoad(large=1_000_000, small=1_000, requests=90, rounds=3)


def measure(load: LargeInboxLoad = LOAD) -> list[Result]:
    with scratch_folder() as folder:
        large, small = uvloop.run(fill_folder(folder, (load.large, load.small)))
        with running_postroom(folder) as server:
            return [_compare(name, server, large, small, load) for name in LISTS]


async def fill_folder(folder: Path, counts: tuple[int, int]) -> list[FilledInbox]:
    now = SystemClock().now()
    settings = config.load({"POSTROOM_DATA_DIR": str(folder)})
    db = await open_database(settings, now)
    try:
        return [await db.write(_add_inbox, settings.domain, count, now) for count in counts]
    finally:
        await db.close()


def _add_inbox(tx: Tx, domain: str, count: int, now: int) -> FilledInbox:
    account = accounts.add(tx, f"bench {count}", "developer", now)
    token = keys.new_token()
    keys.add(tx, account.id, None, "bench", token, now)
    name = f"bench-{count}"
    return FilledInbox(fill(tx, account.id, name, domain, count, now), token, f"{name}@{domain}")


def _compare(
    name: str, server: Server, large: FilledInbox, small: FilledInbox, load: LargeInboxLoad
) -> Result:
    def run(inbox: FilledInbox) -> LoadReport:
        request = get_request(f"/v1/inboxes/{inbox.id}/{name}", inbox.token)
        return run_load(Load(server.port, [request], connections=1, count=load.requests))

    times = compare(
        alternate(load.rounds, lambda: run(large), lambda: run(small)), lambda report: report.p50_ms
    )
    title = f"first page of {load.large:,} ({name})"
    return Result(title, times.value, "ms", MOST_TIMES_PEER, times.peer(NAME))
