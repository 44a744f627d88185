"""Every way by which a message comes in: each hands over many, and says which of them the server took."""

import asyncio
import contextlib
import imaplib
import json
import smtplib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from postroom.external_mailboxes.providers.post import Post
from postroom.inward.extraction_pool import ExtractionPool
from postroom.mailbox import inboxes
from postroom.transfer import mbox
from postroom_mail.mime.parse import parse_mail
from tests.adversary.hostile import SENDER, Hostile, mark_of
from tests.adversary.orders import order
from tests.conftest import Server
from tests.connections import provider_posts
from tests.connections.dovecot import PASSWORD, running_dovecot
from tests.connections.test_posts import connect, post_to
from tests.imap.live import log_in, ok
from tests.transfer.test_export_and_import import bring_in

WayIn = Callable[[Server, str, Sequence[Hostile]], Awaitable[set[int]]]
KEY = "a key of the service"
ELSEWHERE = "agent@elsewhere.example"


async def by_smtp(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As another mail server hands them over. A refusal (5xx) is an answer too."""

    def hand_over() -> set[int]:
        with smtplib.SMTP("127.0.0.1", server.smtp_port, timeout=120) as smtp:
            smtp.ehlo()
            return {mail.number for mail in mails if _submit(smtp, SENDER, _address(name), mail.raw)}

    return await asyncio.to_thread(hand_over)


async def by_alias(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As another mail server hands them over to another address of the inbox, and to both."""
    alias = {"address": _address(f"alias-of-{name}")}
    made = await server.api.post(f"/v1/inboxes/{_address(name)}/aliases", json=alias)
    assert made.status_code == 201, made.text

    def hand_over() -> set[int]:
        with smtplib.SMTP("127.0.0.1", server.smtp_port, timeout=120) as smtp:
            smtp.ehlo()
            return {
                mail.number
                for mail in mails
                if _submit(smtp, SENDER, alias["address"], mail.raw, *[_address(name)] * (mail.number % 2))
            }

    return await asyncio.to_thread(hand_over)


def _submit(smtp: smtplib.SMTP, sender: str, recipient: str, raw: bytes, *others: str) -> bool:
    assert smtp.mail(sender)[0] == 250
    for each in (recipient, *others):
        assert smtp.rcpt(each)[0] == 250
    code, words = smtp.data(raw)
    assert code == 250 or 500 <= code < 600, words
    return code == 250


async def by_post(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As one's own program posts them."""
    shown = await connect(server, "raw", signingKey=KEY)

    def made(mail: Hostile) -> Post:
        return provider_posts.raw(KEY, mail.raw, server.clock.now() // 1000, _address(name))

    return await _post_all(server, shown, mails, made)


async def by_mailgun(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    shown = await connect(server, "mailgun", signingKey=KEY)

    def made(mail: Hostile) -> Post:
        token = f"{mail.number:050}"
        return provider_posts.mailgun(KEY, mail.raw, server.clock.now() // 1000, token, _address(name))

    return await _post_all(server, shown, mails, made)


async def by_sendgrid(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    shown = await connect(server, "sendgrid", signingKey=provider_posts.sendgrid_public_key())

    def made(mail: Hostile) -> Post:
        post = provider_posts.sendgrid(mail.raw, _address(name))
        return provider_posts.sign_for_sendgrid(post, server.clock.now() // 1000)

    return await _post_all(server, shown, mails, made)


async def by_postmark(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As text in JSON: bytes that are no UTF-8 were lost at Postmark."""
    shown = await connect(server, "postmark", signingKey=KEY)

    def made(mail: Hostile) -> Post:
        return provider_posts.postmark(mail.raw, _address(name), KEY, f"id-{mail.number}")

    return await _post_all(server, shown, [mail for mail in mails if _is_utf8(mail.raw)], made)


def _is_utf8(raw: bytes) -> bool:
    return raw.decode("utf-8", "replace").encode() == raw


async def by_ses(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    shown = await connect(server, "ses", signingKey=provider_posts.sns_certificate().decode())

    def made(mail: Hostile) -> Post:
        received = provider_posts.ses_received(mail.raw, _address(name))
        now = server.clock.now() // 1000
        return provider_posts.sns(received, seconds=now, MessageId=f"id-{mail.number}")

    return await _post_all(server, shown, mails, made)


async def by_resend(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """Resend posts an id, and gives the bytes when it is asked. They name their recipient themselves."""
    inbox = await server.resources.db.read(inboxes.find_by_address, _address(name))
    assert inbox is not None
    async with _running_resend({f"e{mail.number}": mail.raw for mail in mails}) as api_url:
        settings = {"apiKey": "re_1", "apiUrl": api_url, "signingKey": provider_posts.RESEND_SECRET}
        shown = await connect(server, "resend", inboxId=inbox.id, **settings)

        def made(mail: Hostile) -> Post:
            event = provider_posts.resend_received(f"e{mail.number}")
            now, post_id = server.clock.now() // 1000, f"msg_{mail.number}"
            return provider_posts.resend(event, provider_posts.RESEND_SECRET, now, post_id)

        return await _post_all(server, shown, mails, made)


@contextlib.asynccontextmanager
async def _running_resend(mails: dict[str, bytes]) -> AsyncIterator[str]:
    """Resend's interface on loopback."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        folder, _, email_id = head.split()[1].rpartition("/")
        answer = mails[email_id]
        if folder == "/emails/receiving":
            answer = json.dumps({"id": email_id, "raw": {"download_url": f"{url}/raw/{email_id}"}}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(answer))
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield url
    finally:
        listening.close()


async def _post_all(
    server: Server, shown: dict[str, Any], mails: Sequence[Hostile], made: Callable[[Hostile], Post]
) -> set[int]:
    taken = set()
    for mail in mails:
        answer = await post_to(server, shown["url"], made(mail))
        assert answer.status_code in (200, 202, 204, 400), answer.text
        if answer.status_code < 300:
            taken.add(mail.number)
    return taken


async def by_redirect_inside(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As another inbox of the server passes them on. Harmful ones are refused."""
    relay = f"relay-of-{name}"
    relay_id = await server.new_inbox(relay)
    received = await by_smtp(server, relay, mails)
    await until_listed(server, relay_id, len(received))
    taken = set()
    for message_id, raw in await _raws_of(server, relay_id):
        body, key = {"to": _address(name)}, {"Idempotency-Key": message_id}
        answer = await server.api.post(f"/v1/messages/{message_id}/redirect", json=body, headers=key)
        assert answer.status_code in (200, 403, 409, 422), answer.text
        if answer.status_code == 200:
            taken |= {number for number in received if mark_of(number) in raw}
    return taken


async def _raws_of(server: Server, inbox_id: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    total = 1
    while len(found) < total:
        query = {"limit": "100", "offset": str(len(found))}
        page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
        total = page["total"]
        for each in page["data"]:
            raw = await server.api.get(f"/v1/messages/{each['id']}/raw")
            found.append((each["id"], raw.content))
    return found


async def by_send_inside(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As another inbox of the server writes them: hostile fields, of the same numbers."""
    writer_id = await server.new_inbox(f"writer-to-{name}")
    taken = set()
    for mail in mails:
        fields = order(mail.number).fields
        headers = {"X-Adversary": str(mail.number), **fields.get("headers", {})}
        body = {**fields, "to": _address(name), "cc": [], "bcc": [], "headers": headers}
        key = {"Idempotency-Key": str(mail.number)}
        answer = await server.api.post(f"/v1/inboxes/{writer_id}/send", json=body, headers=key)
        assert answer.status_code in (200, 400, 422), answer.text
        if answer.status_code == 200:
            taken.add(mail.number)
    return taken


async def by_append(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As a mail client files them into the inbox."""

    def append() -> set[int]:
        client = log_in(server, name)
        try:
            return {mail.number for mail in mails if _append(client, mail.raw)}
        finally:
            client.logout()

    return await asyncio.to_thread(append)


def _append(client: imaplib.IMAP4, raw: bytes) -> bool:
    word, _ = client.append("INBOX", "", "", raw)
    if word == "OK":
        return True
    ok(client.noop())
    return False


def _address(name: str) -> str:
    return f"{name}@postroom.localhost"


async def by_import(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As the operator brings an old mailbox in."""
    folder = Path(tempfile.mkdtemp(dir=server.resources.config.data_dir))
    (folder / "cur").mkdir()
    for mail in mails:
        (folder / "cur" / f"{mail.number}.mail").write_bytes(mail.raw)
    inbox = await server.resources.db.read(inboxes.find_by_address, _address(name))
    assert inbox is not None
    filed = mbox.list_maildir(folder, server.clock.now())
    extractor = ExtractionPool()
    try:
        await bring_in(server, extractor, inbox, filed)
    finally:
        await extractor.close()
    return _first_of_each_id(filed)


def _first_of_each_id(filed: Sequence[mbox.FiledMail]) -> set[int]:
    """An import leaves out what it has already, by Message-ID, so that it can be repeated."""
    seen: set[str] = set()
    taken = set()
    for mail in filed:
        message_id = parse_mail(mbox.read(mail)).message_id
        if message_id not in seen:
            taken.add(int(mail.path.stem))
        seen |= {message_id} - {""}
    return taken


async def by_connection(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As they lie in a mailbox elsewhere, at Dovecot, which is connected to the inbox."""
    async with running_dovecot() as dovecot:
        await dovecot.put(ELSEWHERE, *(mail.raw for mail in mails if b"\0" not in mail.raw))
        inbox = await server.resources.db.read(inboxes.find_by_address, _address(name))
        assert inbox is not None
        body = {
            "kind": "imap",
            "host": "127.0.0.1",
            "port": dovecot.port,
            "username": ELSEWHERE,
            "password": PASSWORD,
            "inboxId": inbox.id,
            "since": "2020-01-01",
        }
        answer = await server.api.post("/v1/connections", json=body)
        assert answer.status_code == 201, answer.text
        taken = {mail.number for mail in mails if b"\0" not in mail.raw}
        await until_listed(server, inbox.id, len(taken))
    return taken


async def until_listed(server: Server, inbox_id: str, count: int) -> None:
    async with asyncio.timeout(120):
        path = f"/v1/inboxes/{inbox_id}/messages?limit=1"
        while (await server.api.get(path)).json()["total"] < count:
            await asyncio.sleep(0.05)
