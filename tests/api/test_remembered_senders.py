"""Who sends is remembered between requests, and what he may is asked in the transaction of each send."""

import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from msgspec import structs

from postroom.accounts import accounts, keys, permissions
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import Unavailable
from postroom.mailbox import inboxes
from postroom.outward.courier import DeliveryError, WebhookAnswer
from postroom.storage.database import Tx
from postroom.web.app import App
from postroom.web.requests.authentication import CallerCache
from postroom.web.streams.hub import Hubs
from postroom.web.streams.stream import Streams
from tests.conftest import Server
from tests.doubles import post_intake
from tests.watched_database import WatchedDatabase, Work

pytestmark = pytest.mark.sqlite_alone

MAIL = {"to": "bob@example.net", "subject": "Hello", "body": "Hello"}


@pytest.fixture
async def inbox_id(server: Server) -> str:
    return await server.new_inbox("hello")


@pytest.fixture
async def agent(server: Server, inbox_id: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with a key of the inbox, which has sent before. What changes, another node changes."""
    async with new_agent(server, inbox_id) as client:
        yield client


@contextlib.asynccontextmanager
async def new_agent(server: Server, inbox_id: str) -> AsyncIterator[httpx2.AsyncClient]:
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "agent"})
    async with server.client(made.json()["token"]) as client:
        assert (await send(client, inbox_id)).status_code == 200
        yield client


async def send(
    client: httpx2.AsyncClient, inbox_id: str, key: str | None = None, **fields: Any
) -> httpx2.Response:
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    return await client.post(f"/v1/inboxes/{inbox_id}/send", json=MAIL | fields, headers=headers)


async def key_id_of(server: Server, inbox_id: str) -> str:
    listed = await server.api.get(f"/v1/inboxes/{inbox_id}/api-keys")
    key_id: str = listed.json()["data"][0]["id"]
    return key_id


async def sent_count(server: Server, inbox_id: str) -> int:
    listed = await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=outbound")
    return len(listed.json()["data"])


async def test_a_key_that_was_revoked_elsewhere_sends_nothing_more(
    server: Server, inbox_id: str, agent: httpx2.AsyncClient
) -> None:
    await server.resources.db.write(keys.remove, await key_id_of(server, inbox_id))
    assert (await send(agent, inbox_id)).status_code == 401
    assert (await send(agent, inbox_id)).status_code == 401
    assert await sent_count(server, inbox_id) == 1


async def test_a_revoked_key_hears_that_it_is_revoked_whatever_it_sends(
    server: Server, inbox_id: str
) -> None:
    """Each wrong in its own place: in the body, the order, the thread; or sent before with the same key."""
    thread_id = (await send(server.api, inbox_id, "again")).json()["threadId"]
    cases: list[dict[str, Any]] = [{"to": 7}, {"to": "nobody"}, {"threadId": "thr_none"}]
    cases += [{"threadId": thread_id}, {"key": "again"}, {"key": "again", "threadId": thread_id}]
    async with contextlib.AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(new_agent(server, inbox_id)) for _ in cases]
        await server.resources.db.write(keys.remove_all_of_inbox, inbox_id)
        for agent, case in zip(agents, cases, strict=True):
            assert (await send(agent, inbox_id, **case)).status_code == 401, case


@pytest.mark.both_databases
async def test_a_key_that_expires_sends_nothing_more(
    server: Server, inbox_id: str, agent: httpx2.AsyncClient
) -> None:
    key_id = await key_id_of(server, inbox_id)
    at = server.clock.now()

    def expire(tx: Tx) -> None:
        tx.run("update keys set expires_at = :at where id = :id", at=at, id=key_id)

    await server.resources.db.write(expire)
    assert (await send(agent, inbox_id)).status_code == 401
    assert await sent_count(server, inbox_id) == 1


@pytest.mark.both_databases
async def test_a_permission_that_was_taken_away_counts_at_once(
    server: Server, inbox_id: str, agent: httpx2.AsyncClient
) -> None:
    key_id = await key_id_of(server, inbox_id)

    def leave(*kept: str) -> Any:
        def change(tx: Tx) -> None:
            tx.run("update keys set permissions = :kept where id = :id", kept=" ".join(kept), id=key_id)

        return change

    await server.resources.db.write(leave(permissions.READ, permissions.DRAFT))
    held = await send(agent, inbox_id)
    assert held.json()["hold"]["reasons"] == ["key"]
    await server.resources.db.write(leave(permissions.READ))
    assert (await send(agent, inbox_id)).status_code == 403
    assert (await send(agent, inbox_id, to=7)).status_code == 403
    await server.resources.db.write(leave(permissions.READ, permissions.SEND))
    assert "hold" not in (await send(agent, inbox_id)).json()


async def test_an_inbox_that_is_gone_sends_nothing_and_answers_nothing_again(
    server: Server, inbox_id: str
) -> None:
    """Asked with a key of the account, which outlives the inbox."""
    await send(server.api, inbox_id, "again")
    await send(server.api, inbox_id)
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    await server.resources.db.write(inboxes.remove, Scope(account_id), inbox_id, server.clock.now())
    assert (await send(server.api, inbox_id, "again")).status_code == 404
    assert (await send(server.api, inbox_id)).status_code == 404


async def test_a_mail_bears_the_name_that_its_inbox_has_now(
    server: Server, inbox_id: str, agent: httpx2.AsyncClient
) -> None:
    def rename(tx: Tx) -> None:
        inbox = inboxes.find(tx, inbox_id)
        assert inbox is not None
        inboxes.put(tx, structs.replace(inbox, display_name="Ada"))

    await server.resources.db.write(rename)
    sent = (await send(agent, inbox_id)).json()
    message = (await agent.get(f"/v1/messages/{sent['id']}")).json()
    assert message["fromAddr"] == "Ada <hello@postroom.localhost>"
    assert b"From: Ada <hello@" in (await agent.get(f"/v1/messages/{sent['id']}/raw")).content


async def test_what_is_wrong_with_a_send_is_said_as_before(
    server: Server, inbox_id: str, agent: httpx2.AsyncClient
) -> None:
    for _ in range(2):
        wrong = await send(agent, inbox_id, to="nobody")
        assert (wrong.status_code, wrong.json()["field"]) == (400, "to")
        assert (await send(agent, inbox_id, threadId="thr_none")).status_code == 404
    without_key = await agent.post(f"/v1/inboxes/{inbox_id}/send", json=MAIL)
    assert without_key.json()["error"] == "missing_idempotency_key"
    assert (await send(agent, inbox_id)).status_code == 200


async def test_a_key_of_another_account_is_told_of_no_inbox(server: Server, inbox_id: str) -> None:
    await send(server.api, inbox_id)

    def add_stranger(tx: Tx) -> str:
        other = accounts.add(tx, "other", "free", server.clock.now())
        token = keys.new_token()
        keys.add(tx, other.id, None, "theirs", token, server.clock.now())
        return token

    async with server.client(await server.resources.db.write(add_stranger)) as stranger:
        for _ in range(2):
            assert (await send(stranger, inbox_id)).status_code == 404


LOOK_UP = "token_hash = :token_hash"


@pytest.fixture
async def inside(server: Server, work: Work) -> AsyncIterator[tuple[httpx2.AsyncClient, WatchedDatabase]]:
    """The same server by a app of its own, whose every statement is watched."""
    db = WatchedDatabase(server.resources.db, work)
    watched = structs.replace(server.resources, db=db)
    streams = Streams(watched, Hubs(watched))
    app = httpx2.ASGITransport(App(watched, NoCourier(), streams, post_intake(watched)))
    headers = {"Authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient(transport=app, base_url="http://inside", headers=headers) as client:
        yield client, db


@pytest.fixture
def work() -> Work:
    return Work()


async def test_a_second_send_is_not_looked_up(
    inside: tuple[httpx2.AsyncClient, WatchedDatabase], inbox_id: str, work: Work
) -> None:
    """What it needs to know is asked in its own transaction."""
    client, _ = inside
    assert (await send(client, inbox_id)).status_code == 200
    assert any(LOOK_UP in sql for sql in work.of)
    work.of.clear()
    assert (await send(client, inbox_id)).status_code == 200
    assert not any(LOOK_UP in sql for sql in work.of)


async def test_a_database_that_does_not_answer_is_not_asked_again(
    inside: tuple[httpx2.AsyncClient, WatchedDatabase],
    inbox_id: str,
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_answer(*_: object) -> None:
        raise Unavailable("Nothing can be stored now.", retry_after=5)

    client, db = inside
    assert (await send(client, inbox_id)).status_code == 200
    work.of.clear()
    monkeypatch.setattr(db, "write_together", no_answer)
    assert (await send(client, inbox_id)).status_code == 503
    assert not work.of


class NoCourier:
    async def post(self, url: str, body: bytes, headers: object) -> WebhookAnswer:
        raise DeliveryError("nobody is there", permanent=False)


def test_only_so_many_are_remembered_and_no_token_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.web.requests.authentication.MAX_CACHED_CALLERS", 2)
    known = CallerCache()
    caller = Caller("key_1", "acc_1", "first", "free", Scope("acc_1"))
    all_inboxes = [inboxes.Inbox(f"inb_{n}", "acc_1", f"{n}@x.example", None, 1, "pod_1") for n in range(3)]
    for inbox in all_inboxes:
        known.put("pr_secret", (caller, inbox))
    found = [known.find("pr_secret", inbox.id) for inbox in all_inboxes]
    assert found == [None, (caller, all_inboxes[1]), (caller, all_inboxes[2])]
    assert "pr_secret" not in str(vars(known))
    known.forget("pr_secret", "inb_2")
    assert known.find("pr_secret", "inb_2") is None
