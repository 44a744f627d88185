"""Processor time of the first page of much: `python -m tests.first_pages [rows]`, a million unless told."""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from postroom.storage.database import Tx
from tests.api.test_dashboard import new_link
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.filled_inbox import NUMBERS, fill
from tests.plain_transport import http_client

ROWS = 1_000_000
ASKED = 50


def put_audit(tx: Tx, account_id: str, count: int, now: int) -> None:
    tx.run(
        "insert into audit (id, account_id, actor_type, actor_id, actor_name, address, action, target, count,"
        f" created_at) {NUMBERS} select 'aud_' || n, :account, 'key', 'key_' || (n % 7), 'agent', '',"
        " 'x.changed', 'somebody@example.com', 1, :now - n from numbers",
        account=account_id,
        count=count,
        now=now,
    )
    tx.run("analyze audit")  # as both databases do by themselves when so many rows are new


async def measure(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(settings(Path(folder)), FakeClock()) as server:
            await fill_up(server, rows)
            await tell(server)


async def fill_up(server: Server, rows: int) -> None:
    db, now = server.resources.db, server.clock.now()
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    await db.write(fill, account_id, "large", "postroom.localhost", rows, now)
    await db.write(put_audit, account_id, rows, now)


async def tell(server: Server) -> None:
    """Of server and client together, since they are one process here: the server's own is less."""
    inbox_id = (await server.api.get("/v1/inboxes")).json()["data"][0]["id"]
    own = {"Origin": server.base_url, "Accept": "text/html"}
    async with http_client(server.base_url, own) as page:
        await page.post("/app/sign-in", data={"link": await new_link(server), "name": "Ann"})
        for client, path in (
            (server.api, f"/v1/inboxes/{inbox_id}/messages"),
            (server.api, "/v1/audit"),
            (page, "/app/mail"),
            (page, "/app/settings/audit"),
        ):
            taken = [await one(server, client, path) for _ in range(ASKED)]
            print(f"{path.replace(inbox_id, '{inbox_id}')}: {statistics.median(taken):.1f} ms of processor")


async def one(server: Server, client: httpx2.AsyncClient, path: str) -> float:
    server.clock.turn(1000)
    before = time.process_time()
    answer = await client.get(path)
    assert answer.status_code == 200, (path, answer.text)
    return (time.process_time() - before) * 1000


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS))
