"""A mail client sends: by the rules of every send, and answered in words."""

import asyncio
import base64
import smtplib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.raw_mails import raw_mail
from tests.stored import SERVICE

# Mail programs submit on the other loop: tests/imap/test_mail_clients.py and test_listeners.py.
pytestmark = pytest.mark.asyncio(loop_factories=["uvloop"])

OWN = "agent@postroom.localhost"


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, SUBMISSION="127.0.0.1:0", PLAN="developer")
    async with running_server(config, clock) as running:
        yield running


async def send(
    server: Server, raw: bytes, *recipients: str, token: str | None = None, sender: str = OWN
) -> tuple[int, str]:
    """The answer to the mail."""

    def hand_over() -> tuple[int, str]:
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port, timeout=120) as smtp:
            smtp.login(OWN, token or server.token)
            smtp.mail(sender)
            for recipient in recipients:
                assert smtp.rcpt(recipient)[0] == 250
            code, words = smtp.data(raw)
            return code, words.decode()

    return await asyncio.to_thread(hand_over)


async def sent(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    path = f"/v1/inboxes/{inbox_id}/messages"
    found: list[dict[str, Any]] = (await server.api.get(path, params={"direction": "outbound"})).json()[
        "data"
    ]
    return found


def mail(text: str = "Hello", **fields: str) -> bytes:
    given = {"from": f"The Agent <{OWN}>", "to": "Bob <bob@example.com>", "message_id": "<1@program>"}
    return raw_mail(text, date="Mon, 16 Nov 2026 10:00:00 +0000", **given | fields)


@pytest.mark.sqlite_alone
async def test_an_email_is_stored_as_it_was_composed_and_without_bcc(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    raw = mail("Hello\r\n> quoted", cc="carol@example.com", bcc="dave@example.com", x_mailer="Program 1")
    code, words = await send(server, raw, "bob@example.com", "carol@example.com", "dave@example.com")
    assert (code, words.split(" msg_")[0]) == (250, "2.0.0 Accepted as")
    (message,) = await sent(server, inbox_id)
    assert message["rfcMessageId"] == "<1@program>"
    assert message["bcc"] == ["dave@example.com"]
    shown = (await server.api.get(f"/v1/messages/{message['id']}")).json()
    assert [each["address"] for each in shown["recipients"]] == [
        "bob@example.com",
        "carol@example.com",
        "dave@example.com",
    ]
    stored = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
    assert stored == (
        b"From: The Agent <agent@postroom.localhost>\r\nTo: Bob <bob@example.com>\r\n"
        b"Cc: carol@example.com\r\nSubject: Hi\r\n"
        b"Date: Mon, 16 Nov 2026 10:00:00 +0000\r\nMessage-ID: <1@program>\r\n"
        b"X-Mailer: Program 1\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: 7bit\r\n\r\nHello\r\n> quoted\r\n"
    )


@pytest.mark.sqlite_alone
async def test_a_mail_client_sends_in_the_name_of_an_alias_until_it_is_deleted(server: Server) -> None:
    inbox_id, alias = await server.new_inbox("agent"), "billing@postroom.localhost"
    raw = mail(**{"from": f"Billing <{alias}>"})
    before = await send(server, raw, "bob@example.com", sender=alias)
    assert before[0] == 550
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/aliases", json={"address": alias})
    assert made.status_code == 201, made.text
    assert (await send(server, raw, "bob@example.com", sender=alias))[0] == 250
    (message,) = await sent(server, inbox_id)
    assert message["fromAddr"] == f"Billing <{alias}>"

    def log_in() -> None:
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port, timeout=120) as smtp:
            smtp.login(alias, server.token)

    await asyncio.to_thread(log_in)
    await server.api.delete(f"/v1/inboxes/{inbox_id}/aliases/{alias}")
    again = mail(**{"from": f"Billing <{alias}>", "message_id": "<2@program>"})
    assert (await send(server, again, "bob@example.com", sender=alias))[0] == 550


@pytest.mark.sqlite_alone
async def test_a_program_that_tries_again_sends_once(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    first = await send(server, mail(), "bob@example.com")
    assert await send(server, mail(), "bob@example.com") == first
    assert len(await sent(server, inbox_id)) == 1
    code, words = await send(server, mail("Other words"), "bob@example.com")
    assert code == 550
    assert words.startswith("5.7.1 idempotency_key_reused: ")


@pytest.mark.sqlite_alone
async def test_an_answer_joins_the_thread_that_it_names(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.deliver(raw_mail("Question", message_id="<q@x>", subject="Topic"), "agent")
    await send(server, mail("Answer", subject="Re: Topic", in_reply_to="<q@x>"), "alice@example.com")
    (thread,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
    assert (thread["subject"], thread["messageCount"], thread["isRead"]) == ("Topic", 2, True)


@pytest.mark.sqlite_alone
async def test_what_a_rule_refuses_is_refused_here_in_its_words(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.api.post("/v1/suppressions", json={"address": "bob@example.com"})
    for raw, recipient, sender, words in (
        (mail(), "bob@example.com", OWN, "5.7.1 recipient_suppressed: "),
        (mail(**{"from": "boss@example.com"}), "c@example.com", OWN, "5.7.1 forbidden: From must be "),
        (mail(), "c@example.com", "boss@example.com", "5.7.1 forbidden: The sender of the envelope "),
        (mail(x_smtpapi="{}"), "c@example.com", OWN, "5.7.1 bad_request: X-Smtpapi controls a relay"),
    ):
        code, answer = await send(server, raw, recipient, sender=sender)
        assert code == 550
        assert answer.lower().startswith(words.lower()), answer
    assert await sent(server, inbox_id) == []


@pytest.mark.sqlite_alone
async def test_what_needs_approval_is_held_and_said_so(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    asked = {"name": "drafter", "permissions": ["read", "draft"]}
    made = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=asked)).json()
    code, words = await send(server, mail(), "bob@example.com", token=made["token"])
    assert code == 250
    assert words.startswith("2.0.0 held: ")
    (message,) = await sent(server, inbox_id)
    assert message["hold"]["state"] == "held"


@pytest.mark.sqlite_alone
async def test_what_was_approved_by_its_hash_is_what_arrives_byte_for_byte(server: Server) -> None:
    inbox_id, other_id = await server.new_inbox("agent"), await server.new_inbox("other")
    asked = {"name": "drafter", "permissions": ["read", "draft"]}
    made = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=asked)).json()
    raw = mail("Hello\r\n> quoted  \r\n\tand odd", to=f"other@{SERVICE}", x_odd="a;  b")
    await send(server, raw, f"other@{SERVICE}", token=made["token"])
    (message,) = await sent(server, inbox_id)
    path = f"/v1/messages/{message['id']}/approve"
    assert (await server.api.post(path, json={"contentHash": "0" * 64})).status_code == 409
    approved = await server.api.post(path, json={"contentHash": message["hold"]["contentHash"]})
    assert approved.status_code == 200, approved.text
    listed = f"/v1/inboxes/{other_id}/messages"
    async with asyncio.timeout(120):
        while not (found := (await server.api.get(listed)).json()["data"]):
            await asyncio.sleep(0.02)
    arrived = (await server.api.get(f"/v1/messages/{found[0]['id']}/raw")).content
    stored = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
    assert arrived.endswith(stored)
    fields = (
        arrived.removesuffix(stored).replace(b"\r\n\t", b"").replace(b"\r\n ", b"").decode().split("\r\n")
    )
    assert {field.partition(":")[0] for field in fields if field} <= {"DKIM-Signature", "Received"}


@pytest.mark.sqlite_alone
async def test_a_revoked_key_ends_its_session(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    keys = f"/v1/inboxes/{inbox_id}/api-keys"
    made = (await server.api.post(keys, json={"name": "program"})).json()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.submission_port)
    word = base64.b64encode(f"\0{OWN}\0{made['token']}".encode())
    writer.write(b"EHLO x\r\nAUTH PLAIN " + word + b"\r\n")
    async with asyncio.timeout(120):
        await reader.readuntil(b"235 ")
        await server.api.delete(f"{keys}/{made['id']}")
        assert b"421 4.7.0 The key was revoked" in await reader.read()
    writer.close()


@pytest.mark.sqlite_alone
async def test_what_is_too_much_for_now_may_be_tried_again(server: Server) -> None:
    await server.new_inbox("agent")
    for number in range(10):
        assert (await send(server, mail(message_id=f"<{number}@p>"), "bob@example.com"))[0] == 250
    code, words = await send(server, mail(message_id="<more@p>"), "bob@example.com")
    assert code == 450
    assert words.startswith("4.7.1 rate_limit_exceeded: ")


@pytest.mark.sqlite_alone
async def test_only_who_may_write_logs_in_and_tls_may_be_started(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    asked = {"name": "reader", "permissions": ["read"]}
    reader = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=asked)).json()["token"]
    for token in (reader, "pr_wrong"):
        with pytest.raises(smtplib.SMTPAuthenticationError):
            await send(server, mail(), "bob@example.com", token=token)

    def over_tls() -> None:
        assert server.submission_port is not None
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with smtplib.SMTP("127.0.0.1", server.submission_port, timeout=120) as smtp:
            smtp.starttls(context=context)
            smtp.login(OWN, server.token)
            smtp.sendmail(OWN, ["bob@example.com"], mail())

    await asyncio.to_thread(over_tls)
    assert len(await sent(server, inbox_id)) == 1


@pytest.mark.sqlite_alone
async def test_a_recipient_that_a_policy_refuses_is_named_and_recorded(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    rule = {"direction": "outbound", "type": "block", "value": "example.com"}
    assert (await server.api.post("/v1/policy/rules", json=rule)).status_code == 201
    code, words = await send(server, mail(), "bob@example.com", "c@fine.example")
    assert code == 550
    assert words.startswith("5.7.1 recipient_not_allowed: ")
    assert await sent(server, inbox_id) == []
    (record,) = (await server.api.get("/v1/policy/audit")).json()["data"]
    assert (record["action"], record["direction"]) == ("refused", "outbound")
    logged = (await server.api.get("/v1/audit")).json()["data"]
    assert [each["target"] for each in logged if each["action"] == "refused"] == ["submission"]
