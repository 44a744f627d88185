"""A mail program: 100,000 mails listed, one more heard of, and a connection that waits."""

import imaplib
import smtplib
import socket
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

import uvloop
from msgspec.structs import replace
from websockets.sync.client import connect

from bench.consumption import of_family, settle
from bench.invented_mails import Writer, new_mails, writer_of
from bench.processes import HOST, Server, resident_bytes, running_postroom, scratch_folder, wait_until_ready
from bench.results import Result, at_most
from bench.seeding import seed
from postroom import config
from postroom.clock import SystemClock
from postroom.mailbox import messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import NewMessage
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from postroom_mail.mime import imap_values
from tests.ports import free_port

MAILS = 100_000
STORED_TOGETHER = 1_000
MOST_SECONDS = 1
MOST_KILOBYTES = 30
KEYS = 20  # each logs in from an address of its own: a key and an address have 50 connections
CONNECTIONS_EACH = 50
TIMEOUT_SECONDS = 600
HEARD = 100
WARM_UP = 5
QUESTIONS = {
    "first listing of UID, flags and envelope": "(UID FLAGS ENVELOPE)",
    "second listing of UID, flags and envelope": "(UID FLAGS ENVELOPE)",
    "listing of sizes, dates and header fields": "(UID RFC822.SIZE INTERNALDATE FLAGS"
    " BODY.PEEK[HEADER.FIELDS (From To Cc Subject Date Message-ID References In-Reply-To)])",
}


def measure(size: int = MAILS, keys: int = KEYS, url: str = "", heard: int = HEARD) -> list[Result]:
    with scratch_folder() as folder:
        tokens = seed(folder, account_count=keys, inboxes_each=1, database_url=url)
        uvloop.run(_fill(folder, size, url))
        port = free_port()
        settings = {"POSTROOM_IMAP": f"{HOST}:{port}", "POSTROOM_DATABASE_URL": url}
        with running_postroom(folder, **settings) as server:
            wait_until_ready(server.port)
            settle(server.pid)
            return [
                *_list(server, port, tokens[0], size),
                *_hear(server, port, tokens[0], heard),
                _wait(server, port, tokens),
            ]


async def _fill(folder: Path, size: int, url: str) -> None:
    now = SystemClock().now()
    settings = config.load({"POSTROOM_DATA_DIR": str(folder), "POSTROOM_DATABASE_URL": url})
    db = await open_database(settings, now)
    writer = writer_of(7)
    try:
        inbox = await db.read(_first_inbox)
        for _ in range(0, size, STORED_TOGETHER):
            await db.write(_store, writer, inbox, min(STORED_TOGETHER, size), now)
    finally:
        await db.close()


def _first_inbox(tx: Tx) -> Inbox:
    row = tx.one("select * from inboxes where address like 'bench-0-0@%'")
    assert row is not None
    return Inbox.from_row(row)


def _store(tx: Tx, writer: Writer, inbox: Inbox, count: int, now: int) -> None:
    made = new_mails(writer, [inbox], count, now)
    threads.add_all(tx, [thread for thread, _ in made])
    messages.add_all(tx, [_with_bytes(message) for _, message in made])


def _with_bytes(message: NewMessage) -> NewMessage:
    document = message.document
    head = (
        f"Received: from mail.example by postroom.localhost;\r\n\t{formatdate()}\r\n"
        f"From: {document.from_addr}\r\nTo: {document.to_addr}\r\nSubject: {document.subject}\r\n"
        f"Date: {formatdate()}\r\nMessage-ID: <{document.id}@mail.example>\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n\r\n"
    )
    raw = f"{head}{document.body_text}\r\n".encode()
    return replace(message, raw=raw, size_bytes=len(raw), envelope=imap_values.envelope_of(head.encode()))


def _list(server: Server, port: int, token: str, size: int) -> list[Result]:
    client = _log_in(port, token, 0)
    client.select("INBOX")
    results = []
    for name, items in QUESTIONS.items():
        before = of_family(server.pid)
        answered = client.fetch("1:*", items)[1]
        used = of_family(server.pid) - before
        if len(answered) < size:
            raise RuntimeError(f"{len(answered)} of {size} mails were listed")
        aim = at_most(MOST_SECONDS) if "envelope" in name else None
        results.append(Result(f"{name}, {size:,} mails", used.cpu_seconds, "s of processor", aim))
    client.logout()
    return results


def _hear(server: Server, port: int, token: str, count: int) -> list[Result]:
    """Of mails that come one by one: how long after its 250 a program in IDLE hears of each, and a stream."""
    address = "bench-0-0@postroom.localhost"
    client = _idling(port, token, 0)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"ws://{HOST}:{server.port}/v1/ws"
    with (
        connect(url, additional_headers=headers, proxy=None) as stream,
        smtplib.SMTP(HOST, server.smtp_port) as smtp,
        ThreadPoolExecutor(2) as readers,
    ):
        stream.send('{"type":"subscribe"}')
        stream.recv()
        heard: list[tuple[float, float]] = []
        for number in range(WARM_UP + count):
            by_program = readers.submit(_until, client.readline, b"EXISTS")
            by_stream = readers.submit(_until, lambda: stream.recv(decode=False), b"message.received")
            smtp.sendmail("a@mail.example", [address], f"Subject: Heard {number}\r\n\r\nText\r\n")
            answered = time.perf_counter()
            heard.append((by_program.result() - answered, by_stream.result() - answered))
    client.shutdown()
    in_idle, on_stream = (statistics.median(each) * 1000 for each in zip(*heard[WARM_UP:], strict=True))
    return [
        Result("a mail heard of in IDLE, median behind its 250", in_idle, "ms"),
        Result("the same mail on a stream", on_stream, "ms"),
    ]


def _until(read: Callable[[], bytes], words: bytes) -> float:
    while words not in read():
        pass
    return time.perf_counter()


def _log_in(port: int, token: str, number: int) -> imaplib.IMAP4:
    client = _Client(f"127.0.{number}.1", port)
    client.login(f"bench-{number}-0@postroom.localhost", token)
    return client


class _Client(imaplib.IMAP4):
    """From an address of its own."""

    def __init__(self, source: str, port: int) -> None:
        self._source = source
        super().__init__(HOST, port, TIMEOUT_SECONDS)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout, (self._source, 0))


def _wait(server: Server, port: int, tokens: list[str]) -> Result:
    """All of them in IDLE, with INBOX selected."""
    warm = [_idling(port, token, number) for number, token in enumerate(tokens[1:], 1)]
    time.sleep(2)
    before = resident_bytes(server.pid)
    clients = [
        _idling(port, token, number)
        for number, token in enumerate(tokens[1:], 1)
        for _ in range(CONNECTIONS_EACH - 1)
    ]
    time.sleep(2)
    each = (resident_bytes(server.pid) - before) / len(clients) / 1000
    for client in (*warm, *clients):
        client.shutdown()
    return Result("a connection that waits", each, "kB", at_most(MOST_KILOBYTES))


def _idling(port: int, token: str, number: int) -> imaplib.IMAP4:
    client = _log_in(port, token, number)
    client.select("INBOX")
    client.send(b"i IDLE\r\n")
    client.readline()
    return client
