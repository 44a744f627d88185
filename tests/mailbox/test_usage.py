"""Usage: each day begins at midnight, and what is kept is known for every day."""

import pytest

from postroom.accounts import accounts, pods
from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR, start_of_day
from postroom.mailbox import inboxes, messages, usage
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.usage import RECEIVED, STORED_BYTES, HourCount, UsageGrowth
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import SERVICE, make_inbox, put_mail

TODAY = start_of_day(START)
NUMBER = TODAY // DAY


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def grow(inbox: Inbox, counter: str, by: int, now: int) -> UsageGrowth:
    return UsageGrowth(inbox.id, inbox.account_id, inbox.pod_id, counter, by, now)


def store(tx: Tx, inbox: Inbox, by: int, now: int) -> None:
    inboxes.count(tx, inbox.id, stored_bytes=by)
    usage.count_all(tx, [grow(inbox, STORED_BYTES, by, now), grow(inbox, RECEIVED, 1, now)])


def shown(tx: Tx, scope: Scope, group_by: str, first: int, last: int) -> list[tuple[int | str, int, int]]:
    found = usage.list_groups(tx, scope, group_by, first, last)
    return [(each.group, each.counts[RECEIVED], each.counts[STORED_BYTES]) for each in found]


async def test_a_day_begins_at_midnight_and_knows_what_was_kept_at_its_end(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        for now, size in ((TODAY - 1, 1), (TODAY, 10), (TODAY + DAY - 1, 100), (TODAY + DAY, 1000)):
            store(tx, inbox, size, now)
        days = (NUMBER - 1, NUMBER, NUMBER + 1)
        scope = Scope(inbox.account_id)
        kept = list(zip(days, (1, 2, 1), (1, 111, 1111), strict=True))
        assert shown(tx, scope, "day", days[0], days[2]) == kept
        assert shown(tx, scope, "day", days[0], days[1]) == kept[:2]
        assert shown(tx, scope, "inbox", days[1], days[1]) == [(inbox.id, 2, 111)]
        assert shown(tx, scope, "pod", days[0], days[2]) == [(inbox.pod_id, 4, 1111)]
        assert accounts.get(tx, inbox.account_id).stored_bytes == 1111

    await db.write(run)


async def test_usage_is_of_what_is_reached(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        pod = pods.add(tx, inbox.account_id, None, "tenant", START)
        own = inboxes.add(tx, inbox.account_id, "own", None, None, SERVICE, START, pod.id)
        store(tx, inbox, 1, START)
        store(tx, own, 10, START)
        for scope, size in (
            (Scope(inbox.account_id), 11),
            (Scope(inbox.account_id, pod.id), 10),
            (inbox.scope, 1),
            (make_inbox(tx, "other").scope, 0),
        ):
            assert shown(tx, scope, "day", NUMBER, NUMBER)[0][2] == size, scope

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_what_a_deleted_inbox_kept_is_given_back(db: Database, inbox: Inbox) -> None:
    await db.write(store, inbox, 10, START)
    await db.write(inboxes.remove, Scope(inbox.account_id), inbox.id, START)
    assert (await db.read(accounts.get, inbox.account_id)).stored_bytes == 0
    [pod] = (await db.read(pods.list_within, Scope(inbox.account_id), 10, 0))[0]
    assert await db.read(inboxes.list_within, Scope(inbox.account_id, pod.id), 10, 0) == ([], 0)


@pytest.mark.sqlite_alone
async def test_mails_by_hour_count_what_was_let_in_or_has_left(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        put_mail(tx, inbox)
        waiting, kept_out = (put_mail(tx, inbox, subject=word) for word in ("waits", "kept out"))
        messages.set_status(tx, waiting.id, messages.PENDING)
        tx.run("update messages set direction = 'blocked' where id = :id", id=kept_out.id)
        put_mail(tx, inbox, now=START + HOUR)
        hour = START // HOUR
        assert sorted(usage.count_by_hour(tx, [inbox.id], START), key=lambda each: each.hour) == [
            HourCount(inbox.id, hour, messages.RECEIVED, 1),
            HourCount(inbox.id, hour + 1, messages.RECEIVED, 1),
        ]

    await db.write(run)
