"""Mail put into inboxes: once each, counted, in its thread, with its event or its examination."""

import json

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.events import event_log
from postroom.events.event_log import EventChoice
from postroom.inward import examine, screening
from postroom.inward.addressing import PARTICIPANTS_PER_MAIL, participants
from postroom.inward.deposit import deposit, in_parts, to_each_inbox
from postroom.inward.mails import Destination
from postroom.mailbox import (
    attachments,
    correspondents,
    documents,
    message_json,
    message_lists,
    messages,
    thread_participants,
    threads,
)
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.queue.leases import LEASE
from postroom.storage.database import Database, Tx
from postroom_mail.mime.parse import parse_mail
from tests.doubles import START
from tests.raw_mails import raw_mail, raw_mail_with_files
from tests.stored import incoming, make_inbox

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


async def counts(db: Database, inbox: Inbox) -> list[int]:
    row = await db.read(lambda tx: tx.one("select * from inboxes where id = :id", id=inbox.id))
    assert row is not None
    return [row[f"{name}_count"] for name in ("inbound", "thread", "unread")]


def documents_of(tx: Tx, inbox: Inbox) -> list[Document]:
    page, _ = message_lists.list_of_inbox(tx, inbox.id, None, 100, 0)
    stored = [b"".join(documents.pieces(message.stored)) for message in reversed(page.messages)]
    return [documents.decode(document) for document in stored]


async def test_a_mail_handed_over_twice_is_stored_and_told_once(db: Database, inbox: Inbox) -> None:
    mail = incoming(inbox, raw_mail(message_id="<1@x>"))
    assert await db.write(deposit, [mail, mail]) == [[event_log.bell(inbox.account_id)], []]
    assert await db.write(deposit, [mail]) == [[]]
    assert await counts(db, inbox) == [1, 1, 1]
    assert len((await db.read(event_log.list_after, EventChoice(Scope(inbox.account_id)), 0, 10)).events) == 1


@pytest.mark.both_databases
async def test_a_mail_for_two_inboxes_is_in_both(db: Database, inbox: Inbox) -> None:
    other = await db.write(make_inbox, "other")
    mail = incoming(inbox, raw_mail())
    both = replace(mail.read.origin, destinations=(Destination(inbox.id), Destination(other.id)))
    (bells,) = await db.write(deposit, [replace(mail, read=replace(mail.read, origin=both))])
    assert bells == [event_log.bell(inbox.account_id), event_log.bell(other.account_id)]
    assert [await counts(db, each) for each in (inbox, other)] == [[1, 1, 1]] * 2


async def test_threads_are_counted_also_when_what_they_answer_is_not_here(db: Database, inbox: Inbox) -> None:
    await db.write(deposit, [incoming(inbox, raw_mail(message_id="<1@x>", in_reply_to="<gone@x>"))])
    assert await counts(db, inbox) == [1, 1, 1]
    answers = [
        incoming(inbox, raw_mail("2", message_id="<2@x>", in_reply_to="<1@x>")),
        incoming(inbox, raw_mail("3", message_id="<3@x>", references="<0@x> <2@x>")),
    ]
    await db.write(deposit, answers)
    assert await counts(db, inbox) == [3, 1, 1]
    assert len({document.thread_id for document in await db.read(documents_of, inbox)}) == 1


def test_a_mail_waits_for_the_one_it_answers(inbox_row: Inbox) -> None:
    mails = [
        incoming(inbox_row, raw_mail("1", message_id="<1@x>")),
        incoming(inbox_row, raw_mail("2", message_id="<2@x>")),
        incoming(inbox_row, raw_mail("3", message_id="<3@x>", references="<2@x>")),
    ]
    addressed = [each for number, mail in enumerate(mails) for each in to_each_inbox(mail, number)]
    assert [[each.number for each in part] for part in in_parts(addressed)] == [[0, 1], [2]]


@pytest.fixture
def inbox_row() -> Inbox:
    return Inbox("inb_1", "acc_1", "hello@postroom.localhost", None, START, "pod_1")


async def test_the_role_is_cc_only_for_whom_cc_alone_names(db: Database, inbox: Inbox) -> None:
    mine, other = inbox.address, "x@x.example"
    heads = [{"to": mine}, {"to": other, "cc": mine}, {"to": mine, "cc": mine}, {"to": other}]
    await db.write(
        deposit, [incoming(inbox, raw_mail(str(at), **head), START + at) for at, head in enumerate(heads)]
    )
    found = await db.read(documents_of, inbox)
    assert [document.delivery_role for document in found] == ["to", "cc", "to", "to"]


async def test_whoever_wrote_is_a_correspondent_and_a_participant(db: Database, inbox: Inbox) -> None:
    await db.write(deposit, [incoming(inbox, raw_mail(cc="Carol@x.example"))])
    (document,) = await db.read(documents_of, inbox)
    asked = [(inbox.id, "alice@example.com"), (inbox.id, "carol@x.example")]
    assert await db.read(correspondents.find, asked) == {(inbox.id, "alice@example.com")}
    for address in ("alice@example.com", "carol@x.example", inbox.address):
        assert await db.read(thread_participants.is_one, document.thread_id, address), address


def test_the_participants_of_a_mail_are_bounded() -> None:
    mail = parse_mail(raw_mail(to=", ".join(f"p{number}@x.example" for number in range(300))))
    assert len(participants(mail)) == PARTICIPANTS_PER_MAIL + 1


async def test_a_mail_to_be_examined_is_told_when_that_is_done(db: Database, inbox: Inbox) -> None:
    plain = incoming(inbox, raw_mail())
    mail = replace(plain, read=replace(plain.read, needs_examination=True))
    assert await db.write(deposit, [mail]) == [[examine.BELL]]
    wanted = EventChoice(Scope(inbox.account_id))
    assert (await db.read(event_log.list_after, wanted, 0, 10)).events == []
    assert await db.write(examine.claim_due, [], 10, START - 1) == []
    (work,) = await db.write(examine.claim_due, [], 10, START)
    assert await db.write(examine.claim_due, [], 10, START + LEASE - 1) == []
    await db.write(examine.renew, [work], START + 5)
    assert await db.write(examine.claim_due, [], 10, START + LEASE) == []
    assert len(await db.write(examine.claim_due, [], 10, START + 5 + LEASE)) == 1
    message = await db.read(messages.find, work.message_id)
    assert message is not None
    found = examine.Examined(None, [], screening.Screening("clean", []))
    assert await db.write(examine.finish, message, found, "mark", "http://x", START) == [
        event_log.bell(inbox.account_id)
    ]
    assert await db.write(examine.finish, message, found, "mark", "http://x", START) == []
    assert len((await db.read(event_log.list_after, wanted, 0, 10)).events) == 1


HIDDEN = "\u200b\u202e\U000e0069\U000e0067\u2066\u00ad"


async def test_subject_names_and_file_names_lose_what_shows_nothing_and_keep_it_beside(
    db: Database, inbox: Inbox
) -> None:
    raw = raw_mail(
        f"words{HIDDEN}",
        subject=f"Inv{HIDDEN}oice",
        **{"from": f"Ad{HIDDEN}a <a\u200bda@example.com>", "to": f"B{HIDDEN}ob <hello@postroom.localhost>"},
        cc=f"Car{HIDDEN}ol <carol@example.com>, dan@example.com",
        mime_version="1.0",
        content_type="text/plain; charset=utf-8",
    )
    await db.write(deposit, [incoming(inbox, raw)])
    [document] = await db.read(documents_of, inbox)
    assert (document.subject, document.subject_raw) == ("Invoice", f"Inv{HIDDEN}oice")
    assert document.from_addr == "Ada <a\u200bda@example.com>"  # whom an answer would go to is not changed
    assert document.from_addr_raw == f"Ad{HIDDEN}a <a\u200bda@example.com>"
    assert (document.header_to, document.header_to_raw) == (
        "Bob <hello@postroom.localhost>",
        f"B{HIDDEN}ob <hello@postroom.localhost>",
    )
    assert document.cc == ["Carol <carol@example.com>", "dan@example.com"]
    assert document.cc_raw == [f"Car{HIDDEN}ol <carol@example.com>", "dan@example.com"]
    assert document.reply_text.strip() == document.body_text.strip() == "words"
    page, _ = await db.read(threads.list_of_inbox, inbox.id, None, 10, 0)
    assert [thread.subject for thread in page] == ["Invoice"]


async def test_a_mail_with_nothing_hidden_is_kept_once(db: Database, inbox: Inbox) -> None:
    await db.write(deposit, [incoming(inbox, raw_mail(subject="Grüße, میخواهم", cc="Zoë <zoe@example.com>"))])
    [document] = await db.read(documents_of, inbox)
    assert {document.subject_raw, document.from_addr_raw, document.header_to_raw, document.cc_raw} == {UNSET}


async def test_a_file_keeps_the_name_it_was_given_beside_the_one_it_is_shown_by(
    db: Database, inbox: Inbox
) -> None:
    raw = raw_mail_with_files((f"re{HIDDEN}port.txt", "text/plain", b"a"), ("plain.txt", "text/plain", b"b"))
    await db.write(deposit, [incoming(inbox, raw)])
    [document] = await db.read(documents_of, inbox)
    found = await db.read(attachments.list_of_messages, [document.id])
    assert [(file.filename, file.filename_raw) for file in found[document.id]] == [
        ("report.txt", f"re{HIDDEN}port.txt"),
        ("plain.txt", None),
    ]
    links = Links("http://here", START, b"secret")
    message = await db.read(messages.find, document.id)
    assert message is not None
    [shown] = await db.read(message_json.to_json, [message], links)
    assert [file.get("filenameRaw") for file in json.loads(shown)["attachments"]] == [
        f"re{HIDDEN}port.txt",
        None,
    ]
