"""Fills an inbox with any number of messages, one thread each, by one statement a table."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from postroom.mailbox import inboxes
from postroom.mailbox.documents import Document, Verdicts
from postroom.storage.database import Tx
from postroom.storage.engines.postgres import PostgresTx
from postroom.storage.engines.postgres_connections import PostgresConnections

T = TypeVar("T")

NUMBERS = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)"


def fill(tx: Tx, account_id: str, name: str, domain: str, count: int, now: int) -> str:
    """Gives the inbox. Its moments lie a millisecond apart and end now."""
    inbox = inboxes.add(tx, account_id, name, None, None, domain, now)
    values = {"count": count, "inbox_id": inbox.id, "start": now - count}
    tx.run(
        "insert into threads (id, account_id, pod_id, inbox_id, subject, is_read, message_count,"
        f" last_message_at, created_at) {NUMBERS} select 'thr_' || :inbox_id || (100000000 + n), :account_id,"
        " :pod_id, :inbox_id, 'Hello', n % 2, 1, :start + n, :start + n from numbers",
        account_id=account_id,
        pod_id=inbox.pod_id,
        **values,
    )
    tx.run(
        "insert into messages (id, inbox_id, thread_id, direction, status, rfc_message_id, from_address,"
        f" has_attachments, document, created_at) {NUMBERS} select 'msg_' || :inbox_id || (100000000 + n),"
        " :inbox_id, 'thr_' || :inbox_id || (100000000 + n), 'inbound', 'received', '<' || n || '@x>',"
        " 'alice@example.com', 0, :document, :start + n from numbers",
        document=msgspec.json.encode(document(inbox.id, inbox.address)),
        **values,
    )
    tx.run(
        "insert into events (id, account_id, position, pod_id, inbox_id, message_id, kind, text_files,"
        f" payload, created_at) {NUMBERS} select 'evt_' || :inbox_id || (100000000 + n), :inbox_id, n,"
        " :pod_id, :inbox_id, '', 'message.received', '', :payload, :start + n from numbers",
        pod_id=inbox.pod_id,
        payload=b"{}",
        **values,
    )
    tx.run(
        "update inboxes set thread_count = :count, unread_count = :unread, inbound_count = :count"
        " where id = :id",
        count=count,
        unread=count // 2,
        id=inbox.id,
    )
    return inbox.id


async def write_at_leisure(
    write: Callable[..., Awaitable[T]], database_url: str, work: Callable[..., T], *given: object
) -> T:
    """On PostgreSQL without the limits of a server, which so large a write exceeds on a busy machine."""
    if not database_url:
        return await write(work, *given)
    return await asyncio.to_thread(_write_without_limits, database_url, work, *given)


def _write_without_limits(database_url: str, work: Callable[..., T], *given: object) -> T:
    connections = PostgresConnections(database_url)
    connection = connections.open()
    try:
        connection.execute("begin")
        made = work(PostgresTx(connection), *given)
        connection.execute("commit")
        return made
    finally:
        connections.close(connection)


def document(inbox_id: str, address: str) -> Document:
    return Document(
        id=f"msg_{'0' * 32}",
        thread_id=f"thr_{'0' * 32}",
        inbox_id=inbox_id,
        direction="inbound",
        from_addr="Alice <alice@example.com>",
        to_addr=address,
        header_to=address,
        delivery_role="to",
        cc=[],
        subject="Hello",
        body_text="Some words, as most mails have a few of them.\n" * 4,
        body_html="",
        created_at="2026-11-14T10:00:00.000Z",
        rfc_message_id="<1@example.com>",
        reply_text="Some words, as most mails have a few of them.\n" * 4,
        auth=Verdicts("none", "none", "none", "example.com"),
        automated=False,
        new_participant=False,
        codes=[],
        links=[],
    )
