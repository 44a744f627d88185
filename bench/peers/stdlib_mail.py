"""The same work from known parts: aiosmtpd takes a mail, the stdlib reads it, SQLite commits it, then 250."""

import asyncio
import email
import email.policy
import sqlite3
import sys
from email.message import EmailMessage
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

NAME = "aiosmtpd + email + SQLite, a commit a mail"
SCHEMA = """
create table messages (id integer primary key, sender text, recipient text, subject text, rfc_message_id text,
    body_text text, raw blob);
create index messages_by_rfc_id on messages (rfc_message_id);
"""


class Storing:
    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.executescript(SCHEMA)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        raw = envelope.content
        assert isinstance(raw, bytes)
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        body = mail.get_body(("plain", "html"))
        text = body.get_content() if isinstance(body, EmailMessage) else ""
        row = (
            str(mail["from"]),
            envelope.rcpt_tos[0],
            str(mail["subject"]),
            str(mail["message-id"]),
            text,
            raw,
        )
        self._connection.execute(
            "insert into messages (sender, recipient, subject, rfc_message_id, body_text, raw)"
            " values (?, ?, ?, ?, ?, ?)",
            row,
        )
        return "250 OK"


def main() -> None:
    path, host, port = sys.argv[1:]
    controller = Controller(Storing(Path(path)), hostname=host, port=int(port), data_size_limit=40_000_000)
    controller.start()
    asyncio.new_event_loop().run_forever()


if __name__ == "__main__":
    main()
