"""Every way by which a message comes in: each hands over many, and says which of them the server took."""

import asyncio
import imaplib
import smtplib
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from postroom.inward.extraction_pool import ExtractionPool
from postroom.mailbox import inboxes
from postroom.transfer import mbox
from postroom_mail.mime.parse import parse_mail
from tests.adversary.hostile import SENDER, Hostile
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


def _submit(smtp: smtplib.SMTP, sender: str, recipient: str, raw: bytes) -> bool:
    assert smtp.mail(sender)[0] == 250
    assert smtp.rcpt(recipient)[0] == 250
    code, words = smtp.data(raw)
    assert code == 250 or 500 <= code < 600, words
    return code == 250


async def by_post(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As a mail service posts them."""
    shown = await connect(server, "raw", signingKey=KEY)
    taken = set()
    for mail in mails:
        post = provider_posts.raw(KEY, mail.raw, server.clock.now() // 1000, _address(name))
        answer = await post_to(server, shown["url"], post)
        assert answer.status_code in (200, 202, 204, 400), answer.text
        if answer.status_code < 300:
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
