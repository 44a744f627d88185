"""Address lists that a stranger wrote are read in threads: the event loop never waits for one."""

import asyncio
from collections.abc import Iterator
from threading import current_thread, main_thread

import pytest

from postroom_mail.mime import address
from postroom_mail.mime.address import Address
from tests.conftest import Server
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone
LONG, ENCODED = 20_000, "=?utf-8?"
MANY = ",\r\n ".join(f"=?utf-8?q?N=C3=A9{number}?= <a{number}@b.example>" for number in range(1_000))


@pytest.fixture
def read_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every long list, as it came, that was read by the thread of the event loop. Stored ones are decoded."""
    found: list[str] = []
    before = address._mailboxes

    def note(value: str, is_quick: bool = True) -> Iterator[Address]:
        if len(value) > LONG and ENCODED in value and current_thread() is main_thread():
            found.append(value[:40])
        return before(value, is_quick)

    monkeypatch.setattr(address, "_mailboxes", note)
    return found


async def test_answers_to_long_lists_are_written_in_threads(
    server: Server, read_in_the_loop: list[str]
) -> None:
    api, inbox_id = server.api, await server.new_inbox("bob")
    await server.deliver(raw_mail(**{"from": MANY, "reply_to": MANY, "to": MANY, "cc": MANY}), "bob")
    async with asyncio.timeout(120):
        while not (found := (await api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]):
            await asyncio.sleep(0.02)
    message_id = found[0]["id"]
    v1, v0 = f"/v1/inboxes/{inbox_id}", f"/v0/inboxes/{inbox_id}"
    answer = {"body": "Yes", "replyToMessageId": message_id}
    asked = [
        (f"{v1}/send", answer),
        (f"{v1}/send", answer | {"replyAll": True}),
        (f"{v1}/send", {"to": "carol@b.example", "body": "See", "subject": "F", "forwardOf": message_id}),
        (f"{v1}/drafts", answer | {"replyAll": True}),
        (f"{v0}/messages/{message_id}/reply", {"text": "Yes"}),
        (f"{v0}/messages/{message_id}/reply-all", {"text": "Yes"}),
        (f"{v0}/drafts", {"in_reply_to": message_id, "text": "Yes"}),
        (f"{v0}/drafts", {"in_reply_to": message_id, "text": "Yes", "reply_all": True}),
    ]
    for number, (path, body) in enumerate(asked):
        done = await api.post(path, json=body, headers={"Idempotency-Key": str(number)})
        assert done.status_code in (200, 201, 400, 429), (path, done.text)  # too many recipients
        assert not read_in_the_loop, path
    for path in (f"{v0}/messages/{message_id}", f"{v0}/messages", f"{v0}/threads", f"{v1}/messages"):
        assert (await api.get(path)).status_code == 200
        assert not read_in_the_loop, path


async def test_redirected_email_of_many_senders_is_handed_over_in_threads(
    server: Server, read_in_the_loop: list[str]
) -> None:
    """Its From is the stranger's, and decides whether it is mail of the inbox itself."""
    inbox_id, other_id = await server.new_inbox("bob"), await server.new_inbox("carol")
    await server.deliver(raw_mail(**{"from": MANY, "subject": "From many"}), "bob")
    path = f"/v1/inboxes/{other_id}/messages"
    async with asyncio.timeout(120):
        while not (found := (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]):
            await asyncio.sleep(0.02)
        redirected = await server.api.post(
            f"/v1/messages/{found[0]['id']}/redirect",
            json={"to": "carol@postroom.localhost"},
            headers={"Idempotency-Key": "1"},
        )
        assert redirected.status_code == 200, redirected.text
        while not (await server.api.get(path)).json()["data"]:
            await asyncio.sleep(0.02)
    assert not read_in_the_loop
