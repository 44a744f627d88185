"""Messages: a handover counts once, lists are in order, and a status changes once."""

import pytest
from msgspec import structs

from postroom.accounts.scope import Scope
from postroom.errors import NotFound
from postroom.limits import PAGE_BYTES
from postroom.mailbox import documents, message_lists, messages, raw_mails, related
from postroom.mailbox.documents import Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.queue import idempotency
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


@pytest.mark.sqlite_alone
async def test_the_same_content_is_taken_over_once_an_inbox(db: Database) -> None:
    handed = [("inb_1", "hash", START), ("inb_2", "hash", START), ("inb_1", "hash", START)]
    assert await db.write(idempotency.record_handovers, handed) == [True, True, False]
    assert await db.write(
        idempotency.record_handovers, [("inb_1", "hash", START), ("inb_1", "new", START)]
    ) == [
        False,
        True,
    ]


@pytest.mark.sqlite_alone
async def test_only_who_reaches_the_inbox_finds_its_message(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_mail, inbox)
    assert await db.read(messages.get, Scope(inbox.account_id), message.id) == message
    for scope in (Scope("acc_other"), Scope(inbox.account_id, inbox_id="inb_other")):
        with pytest.raises(NotFound):
            await db.read(messages.get, scope, message.id)
    await db.read(messages.require_visible, message.id)
    for unknown in ("msg_nonsense", "%00"):
        with pytest.raises(NotFound):
            await db.read(messages.require_visible, unknown)


@pytest.mark.sqlite_alone
async def test_an_inbox_lists_newest_first_and_a_thread_oldest_first(db: Database, inbox: Inbox) -> None:
    first = await db.write(put_mail, inbox, "1", START, message_id="<1@x>")
    others = [
        await db.write(put_mail, inbox, text, START + at, message_id=f"<{text}@x>", in_reply_to="<1@x>")
        for at, text in enumerate(("2", "3"), 1)
    ]
    ids = [message.id for message in (first, *others)]
    page, total = await db.read(message_lists.list_of_inbox, inbox.id, None, 2, 1)
    assert ([message.id for message in page.messages], total) == ([ids[1], ids[0]], 3)
    assert (await db.read(message_lists.list_of_inbox, inbox.id, messages.OUTBOUND, 10, 0))[1] == 0
    listed = await db.read(messages.list_of_thread, first.thread_id, 2, 1)
    assert [message.id for message in listed.messages] == ids[1:]
    named = await db.read(related.rfc_ids_of_thread, first.thread_id)
    assert list(named.items()) == [("<1@x>", True), ("<2@x>", True), ("<3@x>", True)]
    assert list(await db.read(related.rfc_ids_of_thread, first.thread_id, "<2@x>")) == ["<1@x>", "<2@x>"]
    last = await db.read(messages.find_last, first.thread_id)
    assert last is not None
    assert last.rfc_message_id == "<3@x>"
    assert await db.read(messages.find_last, first.thread_id, messages.OUTBOUND) is None


async def test_a_sent_mail_is_found_by_its_message_id_while_it_is_young(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_mail, inbox, message_id="<1@x>")
    assert await db.read(messages.find_outbound, inbox.id, "<1@x>", START) is None
    await db.write(lambda tx: tx.run("update messages set direction = 'outbound'"))
    found = await db.read(messages.find_outbound, inbox.id, "<1@x>", START)
    assert found == message
    assert await db.read(messages.find_outbound, inbox.id, "<1@x>", START + 1) is None
    assert await db.read(messages.find_outbound, "inb_other", "<1@x>", START) is None


@pytest.mark.sqlite_alone
async def test_a_status_is_new_once(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_mail, inbox)
    assert not await db.write(messages.set_status, message.id, messages.RECEIVED)
    assert await db.write(messages.set_status, message.id, messages.FAILED)
    assert not await db.write(messages.set_status, message.id, messages.FAILED)


@pytest.mark.sqlite_alone
async def test_a_document_takes_the_place_of_the_one_before(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_mail, inbox, "Body", subject="Kept")
    before = documents.decode(message.document)
    verdicts = Verdicts("pass", "fail", "none", "x.example")
    judged = structs.replace(before, auth=verdicts)
    await db.write(messages.set_document, judged)
    stored = await db.read(messages.find, message.id)
    assert stored is not None
    assert documents.decode(stored.document) == judged


@pytest.mark.sqlite_alone
async def test_the_bytes_of_a_mail_are_kept_with_it(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_mail, inbox, "The very bytes")
    raw = await db.read(raw_mails.get, message.id)
    assert raw.content is not None
    assert raw.content.endswith(b"\r\n\r\nThe very bytes\r\n")
    assert (raw.blob, raw.trace_bytes) == (None, 0)
    with pytest.raises(NotFound):
        await db.read(raw_mails.get, "msg_other")
    assert await db.read(raw_mails.find_used_blobs, ["none"]) == set()


async def test_rows_that_were_stored_before_bytes_were_packed_are_read_as_they_are(
    db: Database, inbox: Inbox
) -> None:
    message = await db.write(put_mail, inbox, "Good morning. " * 50)
    raw = await db.read(raw_mails.get, message.id)

    def unpack(tx: Tx) -> None:
        (row,) = tx.all(
            "select document, content, content_bytes from messages join raw_mails on message_id = id"
        )
        tx.run(
            "update messages set document = :document, document_bytes = null, kept_category = null",
            document=documents.plain(row["document"]),
        )
        content = raw_mails.plain(row["content"], row["content_bytes"])
        tx.run("update raw_mails set content = :content, content_bytes = null", content=content)

    def look(tx: Tx) -> tuple[object, ...]:
        (row,) = tx.all("select messages.category as category from messages")
        found = messages.find(tx, message.id)
        assert found is not None
        listed, _ = message_lists.list_of_inbox(tx, inbox.id, None, 20, 0)
        heads = raw_mails.heads(tx, [message.id])
        return row["category"], found, listed, heads, raw_mails.get(tx, message.id)

    packed = await db.read(look)
    await db.write(unpack)
    assert await db.read(look) == packed
    assert packed[0] == "personal"
    assert packed[-1] == raw


@pytest.mark.sqlite_alone
async def test_a_page_of_a_list_is_bounded_by_what_it_shows_not_by_what_is_stored(
    db: Database, inbox: Inbox
) -> None:
    for _ in range(6):
        await db.write(put_mail, inbox, "a" * 900_000)
    listed, total = await db.read(message_lists.list_of_inbox, inbox.id, None, 20, 0)
    assert total == 6
    assert listed.is_cut
    assert sum(len(each.stored[0]) for each in listed.messages) <= PAGE_BYTES
    assert len(listed.messages) == PAGE_BYTES // 900_000
