"""kill -9 while a mailbox elsewhere is read, which Postfix fills and Dovecot shows: each mail is here once.

POSTROOM_TEST_MAILBOX_MAILS and POSTROOM_TEST_MAILBOX_KILLS say how many mails and how often.
"""

import asyncio
import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from postroom.resources import Tx
from postroom.storage.opening import open_database
from tests.conftest import api_client, settings
from tests.connections.dovecot import PASSWORD, Dovecot, running_dovecot
from tests.connections.test_mailboxes import USER
from tests.doubles import START
from tests.end_to_end.process import TOKEN, Running, serving_process
from tests.end_to_end.test_postfix import open_folder, running_postfix
from tests.programs import path_of
from tests.waiting import until

MAILS = int(os.environ.get("POSTROOM_TEST_MAILBOX_MAILS", "40"))
KILLS = int(os.environ.get("POSTROOM_TEST_MAILBOX_KILLS", "2"))
LONGEST_LIFE_SECONDS = 0.3
PATIENCE_SECONDS = 300 + MAILS // 5
NO_LIMITS = {"REQUESTS_PER_MINUTE": "0"}
_MESSAGE_ID = re.compile(rb"^message-id:[ \t]*(<[^>\r\n]+>)", re.IGNORECASE | re.MULTILINE)


def hand_in(port: int, count: int) -> None:
    """To Postfix, by its own load generator: each has a Message-ID of its own."""
    command = [path_of("smtp-source"), "-s", "4", "-m", str(count), "-l", "2000"]
    addresses = ["-f", "ada@example.org", "-t", USER, f"127.0.0.1:{port}"]
    subprocess.run([*command, *addresses], check=True, timeout=PATIENCE_SECONDS)


async def connect(server: Running, dovecot: Dovecot, after: str) -> None:
    async with api_client(f"http://127.0.0.1:{server.http_port}", TOKEN) as api:
        inbox = await api.post("/v1/inboxes", json={"mailboxName": "hello"})
        body = {"kind": "imap", "host": "127.0.0.1", "port": dovecot.port, "username": USER}
        more = {"password": PASSWORD, "inboxId": inbox.json()["id"], "since": "2020-01-01", "after": after}
        assert (await api.post("/v1/connections", json=body | more)).status_code == 201


async def until_there(server: Running, count: int) -> int:
    """So many at least; gives how many there are."""
    async with (
        api_client(f"http://127.0.0.1:{server.http_port}", TOKEN) as api,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        (inbox,) = (await api.get("/v1/inboxes")).json()["data"]
        while True:
            total: int = (await api.get(f"/v1/inboxes/{inbox['id']}/messages?limit=1")).json()["total"]
            if total >= count:
                return total
            await asyncio.sleep(0.05)


def look(tx: Tx) -> tuple[Counter[str], Counter[str], int]:
    """How often each Message-ID is there, how often it was told, and how many are still examined."""
    named = {row["id"]: row["rfc_message_id"] for row in tx.all("select id, rfc_message_id from messages")}
    told = tx.all("select message_id from events where kind = 'message.received'")
    waiting = len(tx.all("select message_id from examinations"))
    return Counter(named.values()), Counter(named[row["message_id"]] for row in told), waiting


async def look_until_examined(folder: Path, database_url: str) -> tuple[Counter[str], Counter[str]]:
    db = await open_database(settings(folder, DATABASE_URL=database_url), START)
    try:

        async def examined() -> tuple[Counter[str], Counter[str]] | None:
            found, told, waiting = await db.read(look)
            return None if waiting else (found, told)

        return await until(examined)
    finally:
        await db.close()


def message_ids(mails: list[Path]) -> Counter[str]:
    found: list[Any] = [_MESSAGE_ID.search(path.read_bytes()) for path in mails]
    return Counter(match[1].decode() for match in found)


@pytest.mark.share(2)
@pytest.mark.needs("dovecot", "root", "postfix", "smtp-source")
async def test_mail_of_a_mailbox_elsewhere_is_neither_lost_nor_doubled_by_kills(
    database_url: str, tmp_path: Path
) -> None:
    """It stays there on one engine, and is moved away on the other."""
    folder, chance, there = tmp_path / "data", random.Random(30), 0
    after, place = ("move:Done", ".Done") if database_url else ("leave", "")
    with open_folder() as queue:
        async with (
            running_dovecot() as dovecot,
            running_postfix(path_of("postfix"), queue, 9, dovecot.of_postfix(USER)) as port,
        ):
            await asyncio.to_thread(hand_in, port, MAILS // 2)
            for number in range(KILLS):
                with serving_process(folder, database_url, more=NO_LIMITS) as server:
                    if number == 0:
                        await connect(server, dovecot, after)
                    elif number == 1:
                        await asyncio.to_thread(hand_in, port, MAILS - MAILS // 2)
                    there = await until_there(server, min(there + 1, MAILS))
                    await asyncio.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
                    (server.kill_all if number % 2 else server.kill)()
            with serving_process(folder, database_url, more=NO_LIMITS) as server:
                assert await until_there(server, MAILS) == MAILS
                found, told = await look_until_examined(folder, database_url)
                await until(lambda: len(dovecot.mails_of(USER, place)) >= MAILS)
            elsewhere = message_ids(dovecot.mails_of(USER, place))
    assert set(found.values()) == set(told.values()) == {1}
    assert found == told == elsewhere
    assert len(found) == MAILS
