"""Which sent mail a report is about: one of the account by proof, one of this inbox by a Message-ID."""

import pytest

from postroom.accounts import accounts
from postroom.clock import DAY
from postroom.inward.attribute import About
from postroom.inward.bounces import SentMail, find_sent
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.storage.database import Database, Tx
from postroom_mail.reports.report import Report
from tests.doubles import START
from tests.stored import make_inbox, put_mail

pytestmark = pytest.mark.sqlite_alone


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
    assert await db.read(find_sent, inbox, about, None, START + 7 * DAY) == SentMail(message, inbox)
    assert await db.read(find_sent, inbox, about, None, START + 7 * DAY + 1) is None
    assert await db.read(find_sent, inbox, report(None), None, START) is None
    other = await db.write(make_inbox, "other")
    assert await db.read(find_sent, other, about, None, START) is None


async def test_proof_leads_to_a_mail_of_the_same_account_alone(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_sent, inbox)
    about = About(message.id, 0)
    sent = SentMail(message, inbox)
    assert await db.read(find_sent, inbox, report(None), about, START + 30 * DAY) == sent
    other = await db.write(make_inbox, "other", inbox.account_id)
    assert await db.read(find_sent, other, report(None), about, START) == sent
    account = await db.write(accounts.add, "strangers", "free", START)
    foreign = await db.write(make_inbox, "foreign", account.id)
    assert await db.read(find_sent, foreign, report("<1@x>"), about, START) is None


async def test_a_message_id_proves_nothing_for_a_complaint(db: Database, inbox: Inbox) -> None:
    await db.write(put_sent, inbox)
    complaint = Report("complaint", (), "<1@x>")
    assert await db.read(find_sent, inbox, complaint, None, START) is None
