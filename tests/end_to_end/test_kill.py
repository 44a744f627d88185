"""kill -9 during writes: what was answered is there after the restart, and nothing is half done.

POSTROOM_TEST_KILLS sets how often: 50 take half a minute.
"""

import asyncio
import itertools
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2

from postroom.accounts import accounts, keys
from postroom.clock import SystemClock
from postroom.limits import INBOXES_PER_DAY, KEYS_OF_AN_INBOX
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests.conftest import settings
from tests.end_to_end.process import Running, serving_process
from tests.plain_transport import http_client

KILLS = int(os.environ.get("POSTROOM_TEST_KILLS", "3"))
ACCOUNTS = 6
LONGEST_LIFE_ANSWERS = 100
LONGEST_AGONY_SECONDS = 0.005
SEED = 20_261_114


@dataclass(frozen=True)
class Box:
    """What an account knows of one of its inboxes."""

    display_name: str | None = None
    key_count: int = 0


Boxes = dict[str, Box]  # by address


@dataclass
class Author:
    """An account that does one thing after another, and notes what each answer promised."""

    account_id: str
    token: str
    dice: random.Random
    boxes: Boxes = field(default_factory=dict)
    hoped: Boxes = field(default_factory=dict)  # if the request on its way was carried out
    ids: dict[str, str] = field(default_factory=dict)  # of inboxes, by address
    key_ids: dict[str, tuple[str, str]] = field(default_factory=dict)  # token: address and id
    revoked: set[str] = field(default_factory=set)
    creations: int = 0
    answers: int = 0
    number: int = 0

    async def write_until_the_end(self, api: httpx2.AsyncClient, record_answer: Callable[[], None]) -> None:
        try:
            while True:
                await self._write_one(api)
                self.boxes = self.hoped
                self.answers += 1
                record_answer()
        except httpx2.TransportError:
            return

    async def _write_one(self, api: httpx2.AsyncClient) -> None:
        self.number += 1
        address = self.dice.choice([*self.boxes, None, None])
        if address is None and self.creations < INBOXES_PER_DAY:
            await self._create(api)
        elif not self.boxes:
            await self._ask(api, "GET", "/v1/me", 200)
        elif address is None or self.dice.random() < 0.5:
            await self._rename(api, address or self.dice.choice([*self.boxes]))
        elif self.dice.random() < 0.2:
            await self._delete(api, address)
        elif self.dice.random() < 0.5 or not self.key_ids:
            await self._create_key(api, address)
        else:
            await self._revoke(api, self.dice.choice([*self.key_ids]))

    async def _create(self, api: httpx2.AsyncClient) -> None:
        self.creations += 1
        name = f"{self.account_id[-8:]}-{self.number}"
        address = f"{name}@postroom.localhost"
        self.hoped = {**self.boxes, address: Box()}
        answer = await self._ask(api, "POST", "/v1/inboxes", 201, {"mailboxName": name})
        self.ids[address] = answer.json()["id"]

    async def _rename(self, api: httpx2.AsyncClient, address: str) -> None:
        name = f"number {self.number}"
        self.hoped = {**self.boxes, address: replace(self.boxes[address], display_name=name)}
        await self._ask(api, "PATCH", f"/v1/inboxes/{self.ids[address]}", 200, {"displayName": name})

    async def _delete(self, api: httpx2.AsyncClient, address: str) -> None:
        self.hoped = {other: box for other, box in self.boxes.items() if other != address}
        lost = {token for token, (of, _) in self.key_ids.items() if of == address}
        self._forget(lost)
        await self._ask(api, "DELETE", f"/v1/inboxes/{self.ids[address]}", 204)
        self.revoked |= lost

    async def _create_key(self, api: httpx2.AsyncClient, address: str) -> None:
        box = self.boxes[address]
        if box.key_count == KEYS_OF_AN_INBOX:
            return
        self.hoped = {**self.boxes, address: replace(box, key_count=box.key_count + 1)}
        path = f"/v1/inboxes/{self.ids[address]}/api-keys"
        answer = (await self._ask(api, "POST", path, 201, {"name": "k"})).json()
        self.key_ids[answer["token"]] = (address, answer["id"])

    async def _revoke(self, api: httpx2.AsyncClient, token: str) -> None:
        address, key_id = self.key_ids[token]
        box = self.boxes[address]
        self.hoped = {**self.boxes, address: replace(box, key_count=box.key_count - 1)}
        self._forget({token})
        await self._ask(api, "DELETE", f"/v1/inboxes/{self.ids[address]}/api-keys/{key_id}", 204)
        self.revoked.add(token)

    def _forget(self, tokens: set[str]) -> None:
        """Of a key whose end was asked for but not answered nothing is promised."""
        self.key_ids = {token: known for token, known in self.key_ids.items() if token not in tokens}

    async def _ask(
        self, api: httpx2.AsyncClient, method: str, path: str, status: int, body: object = None
    ) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = await api.request(method, path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer

    def compare(self, found: dict[str, tuple[str, Box]]) -> None:
        """Either the request on its way was carried out whole, or it left no trace."""
        actual = {address: box for address, (_, box) in found.items()}
        assert actual in (self.boxes, self.hoped)
        self.boxes = self.hoped = actual
        self.ids = {address: inbox_id for address, (inbox_id, _) in found.items()}

    async def try_keys(self, api: httpx2.AsyncClient) -> None:
        living = self.dice.sample([*self.key_ids], min(3, len(self.key_ids)))
        ended = self.dice.sample(sorted(self.revoked), min(3, len(self.revoked)))
        for token, status in [*((token, 200) for token in living), *((token, 401) for token in ended)]:
            answer = await api.get("/v1/me", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == status


@contextmanager
def running_server(folder: Path) -> Iterator[Running]:
    with serving_process(folder, workers=0) as running:
        try:
            yield running
        finally:
            running.kill()


def killer(server: Running, dice: random.Random) -> Callable[[], None]:
    """Counts answers, for a busy machine gives fewer in a second, and kills a moment after one of them."""
    left = itertools.count(dice.randrange(LONGEST_LIFE_ANSWERS), -1)
    agony_seconds = dice.uniform(0, LONGEST_AGONY_SECONDS)

    def record_answer() -> None:
        if next(left) == 0:
            asyncio.get_running_loop().call_later(agony_seconds, server.kill)

    return record_answer


def find_boxes(connection: sqlite3.Connection, account_id: str) -> dict[str, tuple[str, Box]]:
    rows = connection.execute(
        "select id, address, display_name, (select count(*) from keys where inbox_id = inboxes.id)"
        " from inboxes where account_id = ?",
        (account_id,),
    )
    return {address: (inbox_id, Box(name, count)) for inbox_id, address, name, count in rows}


HALF_DONE = {
    "a count that is not the number of rows": "select id from accounts where inbox_count <>"
    " (select count(*) from inboxes where account_id = accounts.id)",
    "an inbox whose creation was not counted": "select id from inboxes where id not in"
    " (select inbox_id from inbox_creations)",
    "a key without its inbox": "select id from keys where inbox_id is not null and inbox_id not in"
    " (select id from inboxes)",
}


def require_nothing_half_done(connection: sqlite3.Connection) -> None:
    for what, query in HALF_DONE.items():
        assert connection.execute(query).fetchall() == [], what


def add_author(tx: Tx, number: int, now: int) -> Author:
    account = accounts.add(tx, f"author {number}", "free", now)
    token = keys.new_token()
    keys.add(tx, account.id, None, "first key", token, now)
    return Author(account.id, token, random.Random(SEED + number))


async def make_authors(folder: Path) -> list[Author]:
    now = SystemClock().now()
    db = await open_database(settings(folder), now)
    authors = [await db.write(add_author, number, now) for number in range(ACCOUNTS)]
    await db.close()
    return authors


async def live_and_die(folder: Path, authors: list[Author], dice: random.Random) -> None:
    """Begins with what the life before has left."""
    with running_server(folder) as server:
        await require_all_that_was_answered(folder, server, authors)
        record_answer = killer(server, dice)
        async with (
            http_client(server.base_url) as api,
            asyncio.TaskGroup() as tasks,
        ):
            for author in authors:
                tasks.create_task(author.write_until_the_end(api, record_answer))


async def require_all_that_was_answered(folder: Path, server: Running, authors: list[Author]) -> None:
    with closing(sqlite3.connect(folder / "postroom.db")) as rows:
        require_nothing_half_done(rows)
        for author in authors:
            author.compare(find_boxes(rows, author.account_id))
    async with http_client(server.base_url) as api:
        for author in authors:
            await author.try_keys(api)


async def test_kills_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    folder = tmp_path / "data"
    folder.mkdir()
    authors = await make_authors(folder)
    for _ in range(KILLS):
        await live_and_die(folder, authors, dice)
    with running_server(folder) as server:
        await require_all_that_was_answered(folder, server, authors)
    assert all(author.answers for author in authors)
    with closing(sqlite3.connect(folder / "postroom.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("pragma foreign_key_check").fetchall() == []
