"""The JSON of a message: what changes of it is told as it is now."""

import msgspec
import pytest

from postroom.limits import PAGE_BYTES
from postroom.mailbox import attachments, documents, inboxes, message_json, message_lists, messages
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import BLOCKED, SENT, Message
from postroom.storage.database import Database, Tx, insert
from tests.doubles import START
from tests.stored import make_inbox, put_mail

LINKS = Links("http://x", START, b"secret")
FILE = Attachment("a.txt", 0, "text/plain", 1)


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def read(tx: Tx, message: Message) -> dict[str, object]:
    found = messages.find(tx, message.id)
    assert found is not None
    shown: dict[str, object] = msgspec.json.decode(message_json.to_json(tx, [found], LINKS)[0])
    return shown


@pytest.mark.sqlite_alone
async def test_what_was_captured_and_whether_files_are_read_is_told(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        message = put_mail(tx, inbox)
        assert "captured" not in read(tx, message)
        messages.mark_captured(tx, message.id)
        assert read(tx, message)["captured"] is True
        attachments.add_all(tx, [(message.id, FILE)])
        tx.run("update messages set has_attachments = 1 where id = :id", id=message.id)
        assert read(tx, message)["attachmentsRead"] is False
        messages.set_status(tx, message.id, SENT)  # files that are sent are not read
        assert read(tx, message)["attachmentsRead"] is True

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_page_has_at_least_one_message_however_large(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        for word in ("one", "two"):
            message = put_mail(tx, inbox, subject=word)
            document = documents.decode(message.document)
            large = msgspec.structs.replace(document, body_text="x" * PAGE_BYTES)
            messages.set_document(tx, large)
        found, total = message_lists.list_of_inbox(tx, inbox.id, None, 10, 0)
        shown, is_cut = message_json.to_page(tx, found, LINKS)
        assert (len(msgspec.json.decode(b"".join((b"[", *shown, b"]")))), is_cut, total) == (1, True, 2)

    await db.write(run)


async def test_what_was_kept_out_is_listed_and_counted_where_it_is_asked_for(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        put_mail(tx, inbox)
        kept_out = put_mail(tx, inbox, subject="kept out", now=START + 1)
        tx.run("update messages set direction = 'blocked' where id = :id", id=kept_out.id)
        inboxes.count(tx, inbox.id, inbound=-1, blocked=1)
        for direction, including, number in (
            (None, None, 1),
            (None, BLOCKED, 2),
            ("inbound", BLOCKED, 2),
            ("outbound", BLOCKED, 0),
        ):
            found, total = message_lists.list_of_inbox(tx, inbox.id, direction, 10, 0, including)
            assert (len(found.messages), total) == (number, number), (direction, including)
        blank = dict.fromkeys(("peer_ip", "helo", "mail_from"), "")
        insert(tx, "examinations", message_id=kept_out.id, due_at=START, **blank)
        found, _ = message_lists.list_of_inbox(tx, inbox.id, None, 10, 0, BLOCKED)
        assert len(found.messages) == 1  # what is not judged yet is in no list

    await db.write(run)
