"""A send is stored whole or not at all: message, thread, recipients and the key, in one transaction."""

import msgspec
import pytest
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.rules import limits
from postroom.accounts.rules.limits import Budget
from postroom.accounts.scope import Scope
from postroom.errors import (
    ColdOutreachLimit,
    FeatureRequiresPaidPlan,
    IdempotencyKeyReused,
    RecipientSuppressed,
)
from postroom.mailbox import message_lists, messages, thread_participants, threads
from postroom.mailbox.inboxes import Inbox
from postroom.outward.holding.judgement import Unjudged, judge
from postroom.outward.send import to_composed_mail
from postroom.outward.send_stages import Context, RuleFacts, Submission, new_message_id
from postroom.outward.submit import submit
from postroom.queue import deliveries, suppressions
from postroom.queue.idempotency import hash_request
from postroom.storage.database import Database, Tx
from postroom_mail.mime.address import Address
from postroom_mail.writing.compose import is_message_id
from tests.doubles import START
from tests.outward.test_holds import set_rule
from tests.outward.test_together import submission
from tests.stored import make_inbox, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def sending(inbox: Inbox, key: str = "k", **changes: object) -> Submission:
    made = submission(inbox, key, START)
    order = replace(made.order, **changes)
    return replace(made, order=order, composed=to_composed_mail(order, made.around, START))


async def sent_id(db: Database, asked: Submission) -> str:
    (answer,) = await db.write(submit, [asked])
    message_id: str = msgspec.json.decode(answer.content)["id"]
    return message_id


@pytest.mark.sqlite_alone
async def test_every_recipient_is_there_once_in_the_order_of_the_heads(db: Database, inbox: Inbox) -> None:
    to = (Address("", "B@x.example"), Address("", "a@x.example"))
    asked = sending(inbox, to=to, cc=(Address("", "b@X.example"),), bcc=(Address("", "c@x.example"),))
    found = await db.read(deliveries.list_of_message, await sent_id(db, asked))
    assert [(each.position, each.target, each.lane) for each in found] == [
        (0, "b@x.example", "x.example"),
        (1, "a@x.example", "x.example"),
        (2, "c@x.example", "x.example"),
    ]
    assert {(each.state, each.due_at) for each in found} == {(deliveries.PENDING, START)}


@pytest.mark.sqlite_alone
async def test_a_repeated_key_gives_the_first_answer_and_stores_nothing(db: Database, inbox: Inbox) -> None:
    asked = sending(inbox, request_hash=hash_request(b"this"))
    first, second = await db.write(submit, [asked, asked])
    assert (first.is_replay, second.is_replay) == (False, True)
    assert first.content == second.content
    assert (await db.read(message_lists.list_of_inbox, inbox.id, None, 10, 0))[1] == 1
    with pytest.raises(IdempotencyKeyReused):
        await db.write(submit, [sending(inbox, request_hash=hash_request(b"other"))])


@pytest.mark.sqlite_alone
async def test_a_send_that_is_refused_leaves_its_key_free(db: Database, inbox: Inbox) -> None:
    await db.write(suppressions.add, inbox.account_id, "p@example.com", suppressions.MANUAL, START)
    with pytest.raises(RecipientSuppressed):
        await db.write(submit, [sending(inbox)])
    assert (await db.read(message_lists.list_of_inbox, inbox.id, None, 10, 0))[1] == 0
    await db.write(suppressions.remove, inbox.account_id, "p@example.com")
    (answer,) = await db.write(submit, [sending(inbox)])
    assert not answer.is_replay


@pytest.mark.sqlite_alone
async def test_a_new_thread_is_read_and_an_answer_marks_its_thread_read(db: Database, inbox: Inbox) -> None:
    scope = Scope(inbox.account_id)
    message = await db.read(messages.find, await sent_id(db, sending(inbox)))
    assert message is not None
    assert (await db.read(threads.get, scope, message.thread_id)).is_read
    came = await db.write(put_mail, inbox, "In", START)
    thread = await db.read(threads.get, scope, came.thread_id)
    asked = sending(inbox, "answer")
    await db.write(submit, [replace(asked, around=Context(inbox, thread=thread))])
    grown = await db.read(threads.get, scope, thread.id)
    assert (grown.is_read, grown.message_count) == (True, 2)
    assert await db.read(thread_participants.is_one, thread.id, "p@example.com")
    assert (await db.read(threads.list_of_inbox, inbox.id, None, 10, 0))[1] == 2


@pytest.mark.sqlite_alone
async def test_on_the_free_plan_answers_go_to_an_own_inbox(db: Database, inbox: Inbox) -> None:
    other = await db.write(make_inbox, "other")

    def asked(plan: str, reply_to: str) -> Submission:
        caller = Caller("key_1", inbox.account_id, "x", plan, Scope(inbox.account_id))  # type: ignore[arg-type]
        return replace(sending(inbox, f"{plan} {reply_to}", reply_to=reply_to), caller=caller)

    for foreign in ("me@elsewhere.example", other.address):
        with pytest.raises(FeatureRequiresPaidPlan):
            await db.write(submit, [asked("free", foreign)])
    await db.write(submit, [asked("free", inbox.address), asked("developer", "me@elsewhere.example")])


async def test_who_wrote_to_the_inbox_is_no_stranger(db: Database, inbox: Inbox) -> None:
    await db.write(put_mail, inbox)
    to = (Address("", "alice@example.com"), Address("", "stranger@x.example"))
    await sent_id(db, sending(inbox, to=to))
    rows = await db.read(lambda tx: tx.all("select target, is_cold from deliveries order by position"))
    assert [(row["target"], row["is_cold"]) for row in rows] == [
        ("alice@example.com", 0),
        ("stranger@x.example", 1),
    ]


async def test_the_cold_budget_of_an_inbox_holds_however_old_the_inbox_is(db: Database, inbox: Inbox) -> None:
    """The service's own limit ends after 30 days; a limit that somebody has set does not."""

    def grow_old(tx: Tx, budget: Budget | None) -> None:
        tx.run(
            "update inboxes set created_at = :then, limits = :limits where id = :id",
            then=START - limits.COLD_LIMIT_ENDS_AFTER - 1,
            limits=limits.encode(budget),
            id=inbox.id,
        )

    strangers = tuple(Address("", f"p{number}@x.example") for number in range(2))
    await db.write(grow_old, Budget(cold_per_day=1))
    with pytest.raises(ColdOutreachLimit):
        await sent_id(db, sending(inbox, to=strangers))
    await sent_id(db, sending(inbox, to=strangers[:1]))
    with pytest.raises(ColdOutreachLimit):
        await sent_id(db, sending(inbox, key="another", to=strangers[1:]))
    await db.write(grow_old, None)
    await sent_id(db, sending(inbox, key="another", to=strangers[1:]))


@pytest.mark.sqlite_alone
async def test_a_send_that_a_rule_asks_about_is_not_read_inside_its_transaction(
    db: Database, inbox: Inbox
) -> None:
    """It comes back unread, with nothing stored; read outside, it is held for what was found."""
    await db.write(set_rule, "accounts", inbox.account_id, "links")
    asked = sending(inbox, body="Pay at https://evil.example/x")
    with pytest.raises(Unjudged):
        await db.write(submit, [asked])
    assert (await db.read(message_lists.list_of_inbox, inbox.id, None, 10, 0))[1] == 0
    judgement = judge(asked.order, asked.around, asked.composed)
    (answer,) = await db.write(submit, [replace(asked, judgement=judgement)])
    hold = msgspec.json.decode(answer.content)["hold"]
    assert (hold["reasons"], hold["contentHash"]) == (["links"], judgement.content_hash)


async def test_what_was_read_outside_is_what_the_transaction_goes_by(db: Database, inbox: Inbox) -> None:
    await db.write(set_rule, "accounts", inbox.account_id, "links")
    found = RuleFacts(content_hash="0" * 64, has_links=False, has_links_with_quote=True)
    (answer,) = await db.write(submit, [replace(sending(inbox), judgement=found)])
    assert "hold" not in msgspec.json.decode(answer.content)
    later = replace(sending(inbox, "later", undo_seconds=60), judgement=found)
    (answer,) = await db.write(submit, [later])
    assert msgspec.json.decode(answer.content)["hold"]["contentHash"] == found.content_hash


def test_message_ids_are_in_the_order_of_their_moments_and_never_the_same() -> None:
    first, second, later = [new_message_id("agent@postroom.example", START + ms) for ms in (0, 0, 1)]
    assert first != second
    assert max(first, second) < later
    assert all(map(is_message_id, (first, second, later)))
