"""Drafts: changed by who has seen the newest, sent at their moment, found by who reaches them."""

import pytest

from postroom.accounts import pods
from postroom.accounts.actors import THE_SERVER
from postroom.accounts.scope import Scope
from postroom.errors import DraftChanged, NotFound
from postroom.fields import Span
from postroom.mailbox import drafts, inboxes
from postroom.mailbox.drafts import KeptDraft
from postroom.mailbox.folders import uid_map
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import SERVICE, make_inbox


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def add(tx: Tx, inbox: Inbox, now: int = START) -> KeptDraft:
    return drafts.add(tx, inbox.id, b"{}", [], THE_SERVER, now)


@pytest.mark.sqlite_alone
async def test_of_two_who_saw_one_version_the_second_changes_nothing(db: Database, inbox: Inbox) -> None:
    draft = await db.write(add, inbox)
    changed = await db.write(drafts.get_for_change, inbox.scope, draft.id, START + 1, 1)
    assert (changed.version, changed.updated_at) == (2, START + 1)
    with pytest.raises(DraftChanged):
        await db.write(drafts.get_for_change, inbox.scope, draft.id, START + 2, 1)
    kept = await db.read(drafts.get, inbox.scope, draft.id)
    assert (kept.version, kept.updated_at) == (2, START + 1)


async def test_a_draft_that_changed_is_a_new_mail_for_mail_programs(db: Database, inbox: Inbox) -> None:
    def uid(tx: Tx) -> int:
        [row] = tx.all("select uid from folder_mails where folder = 'drafts'")
        return int(row["uid"])

    await db.write(uid_map.open_inbox, inbox.id, START)
    draft = await db.write(add, inbox)
    before = await db.read(uid)
    await db.write(drafts.get_for_change, inbox.scope, draft.id, START)
    assert await db.read(uid) > before


async def test_only_who_reaches_the_inbox_finds_its_drafts(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        pod = pods.add(tx, account_id, None, "tenant", START)
        own = inboxes.add(tx, account_id, "own", None, None, SERVICE, START, pod.id)
        draft = add(tx, own)
        common = add(tx, inbox)
        span = Span(10)
        for scope, found in (
            (Scope(account_id), {draft.id, common.id}),
            (Scope(account_id, pod.id), {draft.id}),
            (own.scope, {draft.id}),
            (Scope(account_id, inbox.pod_id, own.id), set()),
            (Scope(account_id, inbox.pod_id), {common.id}),
            (make_inbox(tx, "other").scope, set()),
        ):
            assert {each.id for each in drafts.list_span(tx, scope, span).items} == found, scope
            assert (drafts.find(tx, scope, draft.id) is not None) == (draft.id in found), scope
        drafts.name(tx, draft.id, "named", ["one"])
        assert drafts.find_by_client_id(tx, inbox.id, "named") is None
        assert drafts.find_by_client_id(tx, own.id, "named") == drafts.get(tx, own.scope, draft.id)

    await db.write(run)
    with pytest.raises(NotFound):
        await db.read(drafts.get, inbox.scope, "dft_unknown")


async def test_a_draft_is_due_at_its_moment_until_it_fails_or_is_taken_off(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        draft = add(tx, inbox)
        drafts.put_on_clock(tx, draft.id, START + 5, "key_1")
        assert drafts.list_due(tx, 10, START + 4) == []
        [due] = drafts.list_due(tx, 10, START + 5)
        assert (due.id, due.due_for) == (draft.id, "key_1")
        changed = drafts.get_for_change(tx, inbox.scope, draft.id, START + 5)
        drafts.record_failure(tx, due, "of a version that is no more")
        assert drafts.list_due(tx, 10, START + 5) == [changed]
        drafts.record_failure(tx, changed, "no")
        assert drafts.list_due(tx, 10, START + 5) == []
        drafts.put_on_clock(tx, draft.id, START + 6, "key_2")
        assert [each.failure for each in drafts.list_due(tx, 10, START + 6)] == [None]
        drafts.put_on_clock(tx, draft.id, None, "key_2")
        kept = drafts.get(tx, inbox.scope, draft.id)
        assert (kept.due_at, kept.due_for) == (None, None)

    await db.write(run)
