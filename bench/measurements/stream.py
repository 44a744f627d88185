"""The event stream: from the end of DATA to the frame, fan-out to many clients, memory of idle ones."""

import contextlib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvloop

from bench.processes import HOST, resident_bytes, running, scratch_folder
from bench.results import Aim, Result, at_most
from bench.seeding import seed
from bench.stream_load import StreamLoad, open_streams
from postroom import config
from postroom.assembly import open_database
from postroom.clock import SystemClock
from postroom.storage.database import Tx
from tests.ports import free_port

MOST_P99_MS = 25
LEAST_DELIVERIES_PER_SECOND = 80_000
MOST_KILOBYTES_A_CONNECTION = 30
STREAMS_OF_AN_ACCOUNT = 100


@dataclass(frozen=True, slots=True)
class Site:
    """A running server with an inbox for each of its accounts."""

    pid: int
    folder: Path
    http_port: int
    smtp_port: int
    tokens: list[str]
    addresses: list[str]

    def load(
        self, accounts: int, mails: int = 0, mails_per_second: float | None = None, seeded: int = 0
    ) -> StreamLoad:
        return StreamLoad(
            http_port=self.http_port,
            smtp_port=self.smtp_port,
            tokens=self.tokens[:accounts],
            streams_each=STREAMS_OF_AN_ACCOUNT,
            recipients=self.addresses[:accounts],
            mails=mails,
            mails_per_second=mails_per_second,
            seeded=seeded,
        )


def measure(
    accounts: int = 10, seconds: float = 10, mails_per_second: float = 200, seeded: int = 300
) -> list[Result]:
    with _running_site(accounts) as site:
        kilobytes = _kilobytes_of_a_connection(site, accounts)
        with open_streams(site.load(accounts, mails=1)) as client:
            client.report()
        with open_streams(site.load(1, int(seconds * mails_per_second), mails_per_second)) as client:
            live = client.report()
        with open_streams(site.load(accounts, seeded=seeded)) as client:
            client.start()
            uvloop.run(_repeat_last_event(site.folder, seeded))
            fan_out = client.wait()
    name = f"SMTP to {STREAMS_OF_AN_ACCOUNT} streams, {mails_per_second:g} mails/s"
    return [
        Result(f"{name}, p50", live.p50_ms, "ms"),
        Result(f"{name}, p99", live.p99_ms, "ms", at_most(MOST_P99_MS)),
        Result(
            f"fan-out to {accounts * STREAMS_OF_AN_ACCOUNT:,} streams",
            fan_out.deliveries_per_second,
            "deliveries/s",
            Aim(LEAST_DELIVERIES_PER_SECOND, is_ceiling=False),
        ),
        Result("idle stream", kilobytes, "kB", at_most(MOST_KILOBYTES_A_CONNECTION)),
    ]


def _kilobytes_of_a_connection(site: Site, accounts: int) -> float:
    """After a first round, so that what the server needs once is not counted."""
    with open_streams(site.load(1, mails=0)):
        before = resident_bytes(site.pid)
    with open_streams(site.load(accounts, mails=0)):
        grown = resident_bytes(site.pid) - before
    return grown / ((accounts - 1) * STREAMS_OF_AN_ACCOUNT) / 1000


async def _repeat_last_event(folder: Path, count: int) -> None:
    """Many events of every account at once, beside the running server: fan-out without the cost of mail."""
    db = await open_database(config.load({"POSTROOM_DATA_DIR": str(folder)}), SystemClock().now())
    try:
        await db.write(_add_copies, count)
    finally:
        await db.close()


def _add_copies(tx: Tx, count: int) -> None:
    last = tx.all(
        "select events.id from events join accounts on accounts.id = account_id"
        " where position = event_position"
    )
    for event in last:
        for number in range(1, count + 1):
            tx.run(
                "insert into events"
                " (id, account_id, position, inbox_id, kind, payload, message_id, created_at)"
                " select :copy_id, account_id, position + :number, inbox_id, kind, payload, message_id,"
                " created_at from events where id = :id",
                copy_id=f"{event['id']}-{number}",
                number=number,
                id=event["id"],
            )
    tx.run("update accounts set event_position = event_position + :count", count=count)


@contextlib.contextmanager
def _running_site(accounts: int) -> Iterator[Site]:
    http_port, smtp_port = free_port(), free_port()
    with scratch_folder() as folder:
        tokens = seed(folder, accounts, 0)
        settings = {
            "POSTROOM_DATA_DIR": str(folder),
            "POSTROOM_HTTP": f"{HOST}:{http_port}",
            "POSTROOM_SMTP": f"{HOST}:{smtp_port}",
        }
        with running("postroom", ["serve"], http_port, settings) as server:
            addresses = [
                _new_inbox(http_port, token, f"bench-{number}") for number, token in enumerate(tokens)
            ]
            yield Site(server.pid, folder, http_port, smtp_port, tokens, addresses)


def _new_inbox(port: int, token: str, name: str) -> str:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"http://{HOST}:{port}/v1/inboxes", msgspec.json.encode({"mailboxName": name}), headers
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        address: str = msgspec.json.decode(answer.read())["address"]
        return address
