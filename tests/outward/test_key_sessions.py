"""A session opened with a key is that key: it approves nothing of the key, its makers and its children."""

import itertools
from typing import Any

import httpx2
import pytest

from postroom.clock import MINUTE
from postroom.storage.database import Tx
from tests.api.test_dashboard import do_it_now, new_link, signed_in
from tests.conftest import Server
from tests.outbound import message_of
from tests.outward.test_holds import EVERYTHING, add_key, send_as, set_rule
from tests.outward.test_reviewers import set_reviewers

pytestmark = pytest.mark.sqlite_alone

numbers = itertools.count(1)


@pytest.fixture
async def inbox_id(sender: Server) -> str:
    made = await sender.new_inbox("bob")
    await sender.resources.db.write(set_rule, "inboxes", made, "always")
    return made


@pytest.fixture
async def line(sender: Server, inbox_id: str) -> list[str]:
    """Tokens: a key, one that it made, and one that this one made."""
    db = sender.resources.db
    first = await db.write(add_key, sender, None, EVERYTHING)
    second = await db.write(add_key, sender, None, EVERYTHING, first)
    return [first, second, await db.write(add_key, sender, None, EVERYTHING, second)]


async def held_by(server: Server, token: str, inbox_id: str) -> dict[str, Any]:
    server.clock.turn(MINUTE)
    receipt = await send_as(server, token, inbox_id, f"carol{next(numbers)}@there.example")
    return await message_of(server, receipt["id"])


async def decide_on_the_page(page: httpx2.AsyncClient, message: dict[str, Any], decision: str) -> int:
    seen = {"decision": decision, "contentHash": message["hold"]["contentHash"]}
    answer = await page.post(f"/app/approvals/{message['id']}", data=seen)
    await do_it_now(page)
    return answer.status_code


async def state(server: Server, message: dict[str, Any]) -> str:
    now_it_is: str = (await message_of(server, message["id"]))["hold"]["state"]
    return now_it_is


async def key_id(server: Server, token: str) -> str:
    async with server.client(token) as api:
        own: str = (await api.get("/v1/me")).json()["keyId"]
        return own


async def test_it_approves_nothing_of_the_line_of_its_key(
    sender: Server, inbox_id: str, line: list[str]
) -> None:
    for author in line:
        message = await held_by(sender, author, inbox_id)
        for opener in line:
            async with signed_in(sender, opener) as page:
                assert await decide_on_the_page(page, message, "approve") == 403
            assert await state(sender, message) == "held"


async def test_it_approves_nothing_of_a_key_that_was_revoked_meanwhile(
    sender: Server, inbox_id: str, line: list[str]
) -> None:
    message = await held_by(sender, line[2], inbox_id)
    revoked = await sender.api.delete(f"/v1/api-keys/{await key_id(sender, line[2])}")
    assert revoked.status_code == 204
    for opener in line[:2]:
        async with signed_in(sender, opener) as page:
            assert await decide_on_the_page(page, message, "approve") == 403
    assert await state(sender, message) == "held"


async def test_it_rejects_what_a_key_that_it_made_has_sent(
    sender: Server, inbox_id: str, line: list[str]
) -> None:
    message = await held_by(sender, line[1], inbox_id)
    async with signed_in(sender, line[2]) as page:
        assert await decide_on_the_page(page, message, "reject") == 403
    async with signed_in(sender, line[0]) as page:
        assert await decide_on_the_page(page, message, "reject") == 303
    assert await state(sender, message) == "rejected"


async def test_a_key_of_another_line_and_a_person_with_a_link_approve(
    sender: Server, inbox_id: str, line: list[str]
) -> None:
    other = await sender.resources.db.write(add_key, sender, None, EVERYTHING)
    for opening in ({"key": other}, {"link": await new_link(sender)}):
        message = await held_by(sender, line[1], inbox_id)
        async with signed_in(sender, **opening) as page:
            assert await decide_on_the_page(page, message, "approve") == 303
        assert await state(sender, message) != "held"


async def test_it_stays_bound_as_its_key_is(sender: Server, line: list[str]) -> None:
    own = await key_id(sender, line[0])
    bound = {"approval": {"when": ["always"]}}
    assert (await sender.api.patch(f"/v1/api-keys/{own}", json=bound)).status_code == 200
    async with signed_in(sender, line[0]) as page:
        assert (
            await page.post(f"/app/settings/keys/{own}/approval", data={"expiresHours": "72"})
        ).status_code == 403
    shown = (await sender.api.get(f"/v1/api-keys/{own}")).json()
    assert shown["approval"]["when"] == ["always"]


@pytest.mark.both_databases
async def test_its_own_send_asks_no_reviewer_whose_mail_it_reads(sender: Server, inbox_id: str) -> None:
    await sender.new_inbox("boss")
    await sender.resources.db.write(set_reviewers, inbox_id, "boss@postroom.localhost")

    def notices(tx: Tx) -> int:
        row = tx.one("select count(*) as total from deliveries where kind = 'notice'")
        return int(row["total"]) if row else 0

    async def send_on_the_page(**opening: str) -> int:
        form = {"inboxId": inbox_id, "to": "carol@there.example", "subject": "s", "body": "b"}
        async with signed_in(sender, **opening) as page:
            sent = await page.post("/app/compose", data={**form, "once": f"once-{next(numbers)}"})
            assert sent.status_code == 303, sent.text
        return await sender.resources.db.read(notices)

    assert await send_on_the_page() == 0
    assert await send_on_the_page(link=await new_link(sender)) == 1
