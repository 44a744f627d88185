"""Which sent mail a report is about: one of this inbox, by the signed path or by a Message-ID not too old."""

import pytest

from postroom.clock import DAY
from postroom.inward.bounces import find_sent
from postroom.mail.bounce import Report
from postroom.mail.return_path import BouncePath
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def put_sent(tx: Tx, inbox: Inbox) -> Message:
    message = put_mail(tx, inbox, message_id="<1@x>")
    tx.run("update messages set direction = 'outbound'")
    return message


def report(message_id: str | None) -> Report:
    return Report("bounce", (), message_id)


async def test_a_message_id_leads_to_a_mail_of_the_last_seven_days(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_sent, inbox)
    about = report("<1@x>")
    assert await db.read(find_sent, inbox, about, None, START + 7 * DAY) == message
    assert await db.read(find_sent, inbox, about, None, START + 7 * DAY + 1) is None
    assert await db.read(find_sent, inbox, report(None), None, START) is None
    other = await db.write(make_inbox, "other")
    assert await db.read(find_sent, other, about, None, START) is None


async def test_a_signed_path_leads_to_a_mail_of_the_inbox_alone(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_sent, inbox)
    path = BouncePath(message.id, 0, START // DAY)
    assert await db.read(find_sent, inbox, report(None), path, START + 30 * DAY) == message
    other = await db.write(make_inbox, "other")
    assert await db.read(find_sent, other, report("<1@x>"), path, START) is None
