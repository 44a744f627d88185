"""Whoever imitates the account's own people is told, whether the email is examined or not."""

from typing import Any

import pytest

from tests.conftest import Server
from tests.raw_mails import raw_mail, raw_mail_with_files

CEO = "Dana Whitfield <dana.ceo@mail.example>"


async def signals_of(server: Server, raw: bytes, after: str | None = None) -> tuple[str, set[str], str]:
    await server.deliver(raw, "hello", sender="dana.ceo@mail.example")
    event: dict[str, Any] = await server.next_event(after)
    message = event["message"]
    return message["verdict"], {each["name"] for each in message["signals"]}, event["event_id"]


@pytest.mark.sqlite_alone
async def test_a_stranger_with_the_name_of_a_user_or_an_inbox_is_told(server: Server) -> None:
    await server.new_inbox("hello")
    owner = {"email": "dana@elsewhere.example", "name": "Dana Whitfield", "role": "viewer"}
    made = await server.api.post("/v1/users", json=owner)
    assert made.status_code == 201, made.text
    inbox = {"mailboxName": "orders", "displayName": "Nora Lindqvist"}
    assert (await server.api.post("/v1/inboxes", json=inbox)).status_code == 201
    raw = raw_mail("Are you there?", **{"from": CEO}, message_id="<1@x>")
    verdict, names, first = await signals_of(server, raw)
    assert (verdict, names) == ("suspicious", {"poses_as_colleague"})
    other = "Nora Lindqvist <nora@mail.example>"
    raw = raw_mail_with_files(("a.txt", "text/plain", b"Hello"), sender=other, message_id="<2@x>")
    verdict, names, second = await signals_of(server, raw, first)
    assert (verdict, names) == ("suspicious", {"poses_as_colleague"}), "an examined email as well"
    raw = raw_mail("Hello", **{"from": "Somebody Else <else@mail.example>"}, message_id="<3@x>")
    assert (await signals_of(server, raw, second))[:2] == ("clean", set())
