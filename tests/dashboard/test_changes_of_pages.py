"""What a page changes is within the rights of whoever asks for it, tried first, counted and told."""

import csv

import pytest
from starlette.responses import Response

from postroom import ids
from postroom.accounts import accounts, audit
from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.clock import HOUR
from postroom.errors import Forbidden, NotFound
from postroom.fields import ScopeFilter
from postroom.mailbox import holds
from postroom.mailbox.inboxes import Inbox
from postroom.operations import holds as hold_verbs
from postroom.operations.holds import Reject
from postroom.storage.database import Database, Tx
from postroom.web.api import messages as requests
from postroom.web.dashboard import undo
from postroom.web.dashboard.operator import health, queue
from postroom.web.dashboard.pages import approvals
from postroom.web.dashboard.pages.approvals import TrustForm
from postroom.web.dashboard.settings import audit as audit_page
from postroom.web.dashboard.settings import rules
from postroom.web.dashboard.settings.audit import AuditLogQuery
from postroom.web.dashboard.settings.rules import PolicyQuery
from tests.dashboard.contexts import context_of, put_held
from tests.doubles import START
from tests.operations.callers import make_caller, recorded
from tests.stored import make_inbox, make_inbox_in_a_pod, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    """In a pod of the first account, which runs the server."""
    return await db.write(lambda tx: make_inbox_in_a_pod(tx, accounts.add(tx, "first", "free", START).id))


@pytest.fixture
async def caller(db: Database, inbox: Inbox) -> Caller:
    return await db.write(lambda tx: make_caller(tx, Scope(inbox.account_id)))


def rows_of(sheet: Response) -> list[list[str]]:
    """Without the head."""
    return list(csv.reader(bytes(sheet.body).decode().splitlines()))[1:]


@pytest.mark.sqlite_alone
async def test_trust_is_given_for_the_inbox_of_the_mail_alone_by_who_reaches_it(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    form = TrustForm("carol@there.example")
    own = await db.write(put_held, inbox, "Own")
    stranger = await db.write(make_inbox, "stranger")
    other = await db.write(put_held, stranger, "Of another account")
    for hidden in (other.id, ids.new(ids.MESSAGE, START)):  # nothing tells which of them is there
        with pytest.raises(NotFound, match="No such message"):
            await approvals.trust(context_of(db, caller), hidden, form)
    few = await db.write(lambda tx: make_caller(tx, Scope(inbox.account_id), "read", "approve"))
    with pytest.raises(Forbidden):
        await approvals.trust(context_of(db, few), own.id, form)
    await approvals.trust(context_of(db, caller), own.id, form)
    places = (inbox.scope, Scope(inbox.account_id), Scope(inbox.account_id, inbox.pod_id), stranger.scope)
    found = [
        [each.value for each in (await db.read(policy.get, place, "outbound")).rules] for place in places
    ]
    assert found == [[form.address], [], [], []]


async def test_what_would_be_refused_is_refused_at_once_and_a_trial_leaves_nothing(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    held = await db.write(put_held, inbox, "Waits")
    other = await db.write(lambda tx: put_held(tx, make_inbox(tx, "stranger"), "Of another account"))
    reader = await db.write(lambda tx: make_caller(tx, Scope(inbox.account_id), "read"))
    for who, message, error in ((reader, held, Forbidden), (caller, other, NotFound)):
        for verb, named in (
            (hold_verbs.reject_message, {"message_id": message.id, "body": Reject(None)}),
            (requests.delete_thread, {"thread_id": message.thread_id}),
        ):
            with pytest.raises(error):
                await undo.delay(context_of(db, who), verb, "/app", "", **named)

    def left(tx: Tx) -> tuple[int, str]:
        hold = holds.find(tx, held.id)
        assert hold is not None
        return len(tx.all("select 1 as one from delayed_actions")), hold.state

    assert await db.read(left) == (0, holds.HELD)
    named = {"message_id": held.id, "body": Reject(None)}
    await undo.delay(context_of(db, caller), hold_verbs.reject_message, "/app", "", **named)
    assert await db.read(left) == (1, holds.HELD)
    assert await db.read(recorded, inbox.account_id) == []


@pytest.mark.sqlite_alone
async def test_only_mails_that_were_cancelled_are_counted(db: Database, inbox: Inbox, caller: Caller) -> None:
    mails = [await db.write(put_held, inbox, word) for word in ("One", "Two")]
    found = [(inbox.account_id, each.id) for each in (*mails, mails[0])]
    assert await queue.cancel_all(context_of(db, caller), found) == 2
    assert await queue.cancel_all(context_of(db, caller), found) == 0


async def test_the_audit_is_of_the_actor_and_the_action_that_are_asked_for(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def act(tx: Tx) -> Caller:
        other = make_caller(tx, Scope(inbox.account_id))
        for who, action in ((caller, "pod.created"), (caller, "pod.changed"), (other, "pod.created")):
            audit.record_by(tx, who, action, "pod_1", START)
        return other

    other = await db.write(act)

    async def asked(actor: str = "", action: str = "") -> list[tuple[str, str]]:
        query = AuditLogQuery(action=action, actor=actor)
        sheet = await audit_page.export(context_of(db, caller), query)
        return sorted((row[2], row[4]) for row in rows_of(sheet))

    own = [(caller.key_id, "pod.changed"), (caller.key_id, "pod.created")]
    assert await asked() == sorted([*own, (other.key_id, "pod.created")])
    assert await asked(actor=caller.key_id) == own
    assert await asked(actor=other.key_id) == [(other.key_id, "pod.created")]
    assert await asked(actor=caller.key_id, action="pod.created") == own[1:]


@pytest.mark.sqlite_alone
async def test_hours_are_written_down_from_the_oldest_to_this_one(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    for hours_ago in (3, 3, 0):
        await db.write(put_mail, inbox, now=START - hours_ago * HOUR)
    rows = rows_of(await health.export(context_of(db, caller)))
    assert [int(row[0]) for row in rows] == list(range(23, -1, -1))
    assert {row[0]: row[1] for row in rows if row[1] != "0"} == {"3": "2", "0": "1"}


@pytest.mark.sqlite_alone
async def test_above_an_inbox_are_its_pod_and_the_account_as_far_as_they_are_reached(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    tenant = await db.write(lambda tx: make_caller(tx, Scope(inbox.account_id, inbox.pod_id)))

    async def above(who: Caller, **query: str) -> list[ScopeFilter]:
        found = await rules.levels_above(context_of(db, who), PolicyQuery(**query))
        return [at for _, at in found]

    everything, pod = ScopeFilter(), ScopeFilter(None, inbox.pod_id)
    for who in (caller, tenant):
        assert await above(who) == []
        assert await above(who, pod_id=inbox.pod_id) == [everything]
    assert await above(caller, inbox_id=inbox.id) == [everything, pod]
    assert await above(tenant, inbox_id=inbox.id) == [everything]
