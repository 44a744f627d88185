"""Lists read outlines of large messages, never their documents; whatever changes a document changes both."""

import os

import pytest
from msgspec import structs

from postroom.accounts.scope import Scope
from postroom.mailbox import documents, messages
from postroom.mailbox.documents import LARGE_BYTES
from postroom.mailbox.messages import Message
from postroom.storage.database import Database, Tx
from postroom.upkeep import deletion
from tests.doubles import START
from tests.stored import make_inbox, put_mail

WORDS = "Hello there. " * (2 * LARGE_BYTES // 13)


def noise() -> str:
    """Text that compression does not make small."""
    return "\n".join(os.urandom(30).hex() for _ in range(4 * LARGE_BYTES // 60))


def outlines(tx: Tx) -> int:
    row = tx.one("select count(*) as number from message_outlines")
    assert row is not None
    return int(row["number"])


def lose_document(tx: Tx, message: Message) -> None:
    """Whoever reads the document fails from here on; its length stays as it was."""
    row = tx.one("select length(document) as size from messages where id = :id", id=message.id)
    assert row is not None
    tx.run("update messages set document = :none where id = :id", none=b"?" * row["size"], id=message.id)


@pytest.mark.sqlite_alone
async def test_a_list_reads_no_large_document(db: Database) -> None:
    def play(tx: Tx) -> None:
        inbox = make_inbox(tx)
        for text in (WORDS, noise()):
            message = put_mail(tx, inbox, text, subject="Large")
            whole = documents.decode(message.document)
            lose_document(tx, message)
            found = [
                *messages.list_outlines(tx, [message.id]),
                messages.list_last(tx, [message.thread_id])[message.thread_id],
                messages.get_outline(tx, inbox.scope, message.id),
            ]
            for outline in found:
                shown = documents.decode(outline.document)
                assert (shown.subject, shown.from_addr) == ("Large", whole.from_addr)
                assert shown.body_text == whole.body_text[:1000]
                assert shown.reply_text == whole.reply_text[:1000]
                assert len(outline.document) < LARGE_BYTES
            size, none = documents.list_sizes(tx, [message.id, "msg_none"])
            assert (size > LARGE_BYTES, none) == (True, 0)

    await db.write(play)


@pytest.mark.sqlite_alone
async def test_a_small_document_is_its_own_outline(db: Database) -> None:
    def play(tx: Tx) -> None:
        message = put_mail(tx, make_inbox(tx), "Short")
        (outline,) = messages.list_outlines(tx, [message.id])
        assert outline == message
        assert outlines(tx) == 0

    await db.write(play)


@pytest.mark.sqlite_alone
async def test_an_outline_follows_its_document_and_goes_with_it(db: Database) -> None:
    def play(tx: Tx) -> None:
        inbox = make_inbox(tx)
        message = put_mail(tx, inbox, WORDS)
        judged = documents.decode(message.document)
        messages.set_document(tx, structs.replace(judged, verdict="malicious"))
        (outline,) = messages.list_outlines(tx, [message.id])
        assert documents.decode(outline.document).verdict == "malicious"
        messages.set_document(tx, structs.replace(judged, body_text="", reply_text=""))
        assert outlines(tx) == 0
        messages.set_document(tx, judged)
        assert outlines(tx) == 1
        deletion.remove_message(tx, Scope(inbox.account_id), message.id, START)
        assert outlines(tx) == 0

    await db.write(play)


async def test_messages_from_before_get_their_outlines_one_by_one(db: Database) -> None:
    def play(tx: Tx) -> None:
        inbox = make_inbox(tx)
        old = [put_mail(tx, inbox, text) for text in (WORDS, noise())]
        tx.run("delete from message_outlines")
        for message_id in [*(message.id for message in old), "msg_deleted_meanwhile"]:
            tx.run("insert into outlines_due (message_id) values (:id)", id=message_id)
        assert messages.list_outlines(tx, [message.id for message in old]) == old
        steps = 0
        while documents.add_due_outline(tx):
            steps += 1
        assert (steps, outlines(tx)) == (3, 2)
        after = [each.document for each in messages.list_outlines(tx, [message.id for message in old])]
        assert all(len(document) < LARGE_BYTES for document in after)
        for message in old:
            lose_document(tx, message)
        assert [each.document for each in messages.list_outlines(tx, [each.id for each in old])] == after

    await db.write(play)


async def test_many_recipients_are_cut_at_a_whole_one(db: Database) -> None:
    def play(tx: Tx) -> None:
        many = ", ".join(f"someone{number}@example.com" for number in range(5_000))
        message = put_mail(tx, make_inbox(tx), "Hello", to=many)
        (outline,) = messages.list_outlines(tx, [message.id])
        shown = documents.decode(outline.document).header_to
        assert len(shown) < 5_100
        assert shown.endswith("@example.com")

    await db.write(play)
