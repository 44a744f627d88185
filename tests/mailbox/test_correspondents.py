"""Correspondents: who has written, and who is trusted: nobody whose mail failed DMARC."""

import pytest

from postroom.inward import examine
from postroom.inward.deposit import deposit
from postroom.inward.examine import Examined
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.inward.screening import Screening
from postroom.mailbox import correspondents, message_lists, messages
from postroom.mailbox.correspondents import KnownSince
from postroom.mailbox.documents import Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.raw_mails import raw_mail
from tests.stored import make_inbox

pytestmark = pytest.mark.sqlite_alone

PUBLIC = "8.8.8.8"  # of which SPF has something to say; nobody is asked here


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def put_unexamined(tx: Tx, inbox: Inbox) -> Message:
    arrival = Arrival(
        Origin((Destination(inbox.id),), b"", PUBLIC, "x", "alice@example.com"), raw_mail("Hello")
    )
    deposit(tx, [AcceptedMail(read_mail(arrival), "http://x", START)])
    listed, _ = message_lists.list_of_inbox(tx, inbox.id, None, 1, 0)
    found = messages.find(tx, listed.messages[0].id)
    assert found is not None
    return found


@pytest.mark.parametrize(("dmarc", "is_trusted"), [("fail", False), ("pass", True), ("none", True)])
async def test_only_whose_mail_did_not_fail_dmarc_is_trusted(
    db: Database, inbox: Inbox, dmarc: str, is_trusted: bool
) -> None:
    asked = [(inbox.id, "alice@example.com")]
    message = await db.write(put_unexamined, inbox)
    assert await db.read(correspondents.find, asked, only_trusted=True) == set()
    found = Examined(Verdicts("none", "none", dmarc, "example.com"), [], Screening("clean", []))
    await db.write(examine.finish, message, found, "mark", "http://x", START)
    assert await db.read(correspondents.find, asked) == set(asked)
    assert await db.read(correspondents.find, asked, only_trusted=True) == (
        set(asked) if is_trusted else set()
    )
    assert bool(await db.read(correspondents.list_trusted, inbox.id, "")) == is_trusted


async def test_namesakes_are_those_who_bear_the_name_and_no_others(db: Database, inbox: Inbox) -> None:
    def know(tx: Tx) -> None:
        for address, name in (("ann@x.example", "ann"), ("ann@y.example", "ann"), ("ben@x.example", "ben")):
            correspondents.add(tx, [(inbox.id, address, True)], START)
            correspondents.record_name(tx, inbox.id, address, name, is_proven=True)

    await db.write(know)
    namesakes = await db.read(correspondents.find_namesakes, inbox.id, "ann")
    assert namesakes == ["ann@x.example", "ann@y.example"]


@pytest.mark.both_databases
async def test_since_when_somebody_writes_and_is_proven_is_kept_from_the_first_time(
    db: Database, inbox: Inbox
) -> None:
    def know(tx: Tx) -> None:
        for moment in (START, START + 1):
            correspondents.add(tx, [(inbox.id, "ann@x.example", True)], moment)
        for moment in (START + 2, START + 3):
            correspondents.mark_verified(tx, inbox.id, "ann@x.example", moment)
        correspondents.add(tx, [(inbox.id, "ben@x.example", False)], START + 4)

    await db.write(know)
    asked = ["ann@x.example", "ben@x.example", "cy@x.example"]
    assert await db.read(correspondents.list_known, inbox.id, asked) == {
        "ann@x.example": KnownSince(START, START + 2),
        "ben@x.example": KnownSince(START + 4, None),
    }


async def test_who_resembles_somebody_is_not_compared_with_himself(db: Database, inbox: Inbox) -> None:
    def know(tx: Tx) -> None:
        people = (("ann@x.example", True), ("ben@x.example", True), ("eve@x.example", False))
        correspondents.add(tx, [(inbox.id, *each) for each in people], START)

    await db.write(know)
    assert await db.read(correspondents.list_trusted, inbox.id, "") == ("ann@x.example", "ben@x.example")
    assert await db.read(correspondents.list_trusted, inbox.id, "", "ann@x.example") == ("ben@x.example",)


async def test_one_genuine_mail_makes_trusted_and_a_later_forgery_takes_nothing(
    db: Database, inbox: Inbox
) -> None:
    pair = (inbox.id, "ann@x.example")
    for is_genuine, is_news in ((False, True), (False, False), (True, True), (True, False), (False, False)):
        news = await db.write(correspondents.add, [(*pair, is_genuine)], START)
        assert news == ({pair} if is_news else set())
    assert await db.read(correspondents.find, [pair], only_trusted=True) == {pair}


async def test_a_name_belongs_to_the_first_and_to_whoever_is_proven(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        people = [("ann@x.example", True), ("imitator@y.example", True), ("forger@z.example", False)]
        correspondents.add(tx, [(inbox.id, *each) for each in people], START)
        for address, _ in people:
            correspondents.record_name(tx, inbox.id, address, "ann", is_proven=False)
        assert correspondents.find_namesakes(tx, inbox.id, "ann") == ["ann@x.example"]
        correspondents.record_name(tx, inbox.id, "imitator@y.example", "ann", is_proven=True)
        assert len(correspondents.find_namesakes(tx, inbox.id, "ann")) == 2
        correspondents.add(tx, [(inbox.id, "forger@z.example", True)], START)
        assert len(correspondents.find_namesakes(tx, inbox.id, "ann")) == 2

    await db.write(run)


@pytest.mark.both_databases
async def test_who_is_called_wanted_is_no_junk_sender_any_more_and_nobody_changes_nobody(
    db: Database, inbox: Inbox
) -> None:
    """A mail client may call only emails wanted that cannot be taught, as sent ones."""

    def called(tx: Tx, wanted: list[str]) -> list[tuple[int, ...]]:
        correspondents.call_wanted(tx, inbox.id, wanted)
        return tx.tuples("select junk from correspondents where inbox_id = :id", id=inbox.id)

    await db.write(correspondents.call_junk, inbox.id, ["a@x.example"], START)
    assert await db.write(called, []) == [(correspondents.CALLED_JUNK,)]
    assert await db.write(called, ["a@x.example"]) == [(0,)]
