"""What callers decide is in the log of the place where it happened, with what was before and after."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from postroom.accounts.actors import THE_SERVER
from postroom.accounts.keys import Caller
from postroom.accounts.rules import pauses
from postroom.accounts.scope import Scope
from postroom.errors import AddressIsAnInbox, BadRequest, Forbidden, NotFound
from postroom.events import webhooks
from postroom.mailbox import inboxes, messages
from postroom.mailbox.inboxes import Inbox
from postroom.operations import (
    holds,
    keys,
    notifications,
    policies,
    suppressions,
    threads,
)
from postroom.operations import inboxes as inbox_verbs
from postroom.operations import messages as message_verbs
from postroom.operations import pods as pod_verbs
from postroom.queue import suppressions as stored_suppressions
from postroom.storage.database import Database, Tx
from tests.conftest import settings
from tests.doubles import START
from tests.operations.callers import ADDRESS, Recorded, make_caller, recorded
from tests.refusals import refuses
from tests.stored import make_inbox, make_inbox_in_a_pod, put_mail

CONFIG = settings(Path("nowhere"))


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    """In a pod, which is not the whole account."""
    return await db.write(lambda tx: make_inbox_in_a_pod(tx, make_inbox(tx, "first").account_id))


@pytest.fixture
async def caller(db: Database, inbox: Inbox) -> Caller:
    return await db.write(lambda tx: make_caller(tx, Scope(inbox.account_id)))


def changes(tx: Tx) -> list[tuple[str, Any, Any]]:
    """What each line says was before and after, oldest first."""
    rows = tx.all("select action, before, after from audit order by id")
    return [
        (row["action"], *(each and msgspec.json.decode(each) for each in (row["before"], row["after"])))
        for row in rows
    ]


def at(place: Scope, *lines: tuple[str, str]) -> list[Recorded]:
    return [(action, target, ADDRESS, place.pod_id, place.inbox_id) for action, target in lines]


@pytest.mark.sqlite_alone
async def test_what_is_done_to_a_key_is_recorded_where_it_reaches(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> str:
        made = keys.create_inbox_key(tx, caller, inbox.scope, keys.NewKey("one"), CONFIG, START)
        key_id = str(made.id)  # type: ignore[attr-defined]
        keys.change_api_key(tx, caller, key_id, keys.KeyChange("two"), CONFIG, START)
        keys.delete_api_key(tx, caller, key_id, START)
        return key_id

    key_id = await db.write(run)
    assert await db.read(recorded, inbox.account_id) == at(
        inbox.scope, *((f"key.{done}", key_id) for done in ("created", "changed", "revoked"))
    )
    names = [
        (before and before["name"], after and after["name"]) for _, before, after in await db.read(changes)
    ]
    assert names == [(None, "one"), ("one", "two"), ("two", None)]


async def test_what_is_done_to_a_pod_is_recorded_within_it_without_passwords(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> str:
        relay = "smtps://user:secret@relay.example"
        pod_id = pod_verbs.create_pod(tx, caller, pod_verbs.NewPod(name="one", outbound=relay), START).id
        pod_verbs.change_pod(tx, caller, pod_id, pod_verbs.PodChange(name="two"), START)
        pod_verbs.delete_pod(tx, caller, pod_id, START)
        return pod_id

    pod_id = await db.write(run)
    place = Scope(inbox.account_id, pod_id)
    assert await db.read(recorded, inbox.account_id) == at(
        place, *((f"pod.{done}", pod_id) for done in ("created", "changed", "deleted"))
    )
    found = await db.read(changes)
    names = [(before and before["name"], after and after["name"]) for _, before, after in found]
    assert names == [(None, "one"), ("one", "two"), ("two", None)]
    assert "relay.example" in str(found)
    assert "secret" not in str(found)


@pytest.mark.sqlite_alone
async def test_a_change_of_the_account_is_recorded_and_searches_make_sense(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    change = pod_verbs.AccountChange(name="renamed")
    before = (await db.read(pod_verbs.get_account, caller)).name
    await db.write(pod_verbs.change_account, caller, change, START)
    [(action, was, shown)] = await db.read(changes)
    assert (action, was["name"], shown["name"]) == ("account.changed", before, "renamed")
    twice = [pod_verbs.SavedSearch("same", "one"), pod_verbs.SavedSearch("same", "two")]
    for wrong in (twice, [pod_verbs.SavedSearch("wrong", "is:nothing-known")]):
        with refuses(BadRequest):
            await db.write(
                pod_verbs.change_account, caller, pod_verbs.AccountChange(saved_searches=wrong), START
            )


async def test_what_is_done_to_an_inbox_is_recorded_within_it_without_secrets(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> tuple[str, str]:
        new = inbox_verbs.NewInbox(
            "bob", pod_id=inbox.pod_id, webhook_url="https://example.com/hook", canary=True
        )
        made = inbox_verbs.create_inbox(tx, caller, new, CONFIG, START)
        stored = inboxes.get(tx, caller.scope, made.id)
        change = inbox_verbs.InboxChange(display_name="Bob", canary=True)
        inbox_verbs.change_inbox(tx, caller, stored, change, CONFIG, START)
        assert inboxes.get(tx, caller.scope, made.id).canary == stored.canary  # the agent has read it
        none = inbox_verbs.InboxChange(webhook_url=None)
        inbox_verbs.change_inbox(tx, caller, inboxes.get(tx, caller.scope, made.id), none, CONFIG, START)
        assert webhooks.find(tx, made.id) is None
        inbox_verbs.delete_inbox(tx, caller, made.id, START)
        assert made.webhook_secret is not UNSET
        return made.id, made.webhook_secret

    inbox_id, secret = await db.write(run)
    place = Scope(inbox.account_id, inbox.pod_id, inbox_id)
    assert await db.read(recorded, inbox.account_id) == at(
        place, *((f"inbox.{done}", inbox_id) for done in ("created", "changed", "changed", "deleted"))
    )
    found = await db.read(changes)
    names = [(before and before["displayName"], after and after["displayName"]) for _, before, after in found]
    assert names == [(None, None), (None, "Bob"), ("Bob", "Bob"), ("Bob", None)]
    assert secret not in str(found)


@pytest.mark.sqlite_alone
async def test_a_rule_is_of_its_level_and_each_change_of_a_policy_is_recorded(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> None:
        rule = policies.NewRule("block", "evil.example", "inbound")
        made = policies.add_policy_rule(tx, caller, inbox.scope, rule, START)
        with refuses(NotFound):  # it is of the inbox
            policies.delete_policy_rule(tx, caller, Scope(inbox.account_id, inbox.pod_id), made.id, START)
        policies.delete_policy_rule(tx, caller, inbox.scope, made.id, START)
        mode = policies.ModeChange("allowlist", "outbound")
        policies.put_policy_mode(tx, caller, inbox.scope, mode, START)

    await db.write(run)
    done = ("policy.rule_added", "policy.rule_removed", "policy.changed")
    assert await db.read(recorded, inbox.account_id) == at(inbox.scope, *((word, inbox.id) for word in done))
    _, was, shown = (await db.read(changes))[-1]
    assert (was["outbound"]["mode"], shown["outbound"]["mode"]) == ("inherit", "allowlist")


async def test_a_pause_is_recorded_where_it_holds(db: Database, inbox: Inbox, caller: Caller) -> None:
    await db.write(holds.put_pause, caller, inbox.scope, CONFIG, START)
    assert (await db.read(holds.get_pause, inbox.scope)).by == caller.actor
    await db.write(holds.delete_pause, caller, inbox.scope, START)
    assert await db.read(recorded, inbox.account_id) == at(
        inbox.scope, ("pause.begun", inbox.id), ("pause.ended", inbox.id)
    )


async def test_after_a_pause_that_the_server_began_an_inbox_is_counted_anew(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def reactivated_at(tx: Tx) -> object:
        row = tx.one("select reactivated_at from inboxes where id = :id", id=inbox.id)
        return row and row["reactivated_at"]

    for reason, moment in ((None, 0), ("complaints", START + 2)):
        await db.write(pauses.add, inbox.account_id, inbox.id, THE_SERVER, START, reason)
        await db.write(holds.delete_pause, caller, inbox.scope, START + 2)
        assert await db.read(reactivated_at) == moment


@pytest.mark.sqlite_alone
async def test_mail_that_is_deleted_is_recorded_within_its_inbox(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    message = await db.write(put_mail, inbox, subject="One")
    other = await db.write(put_mail, inbox, subject="Two")
    await db.write(message_verbs.delete_message, caller, message.id, START)
    _, is_gone = await db.write(threads.delete_some_of_thread, caller, other.thread_id, START)
    assert is_gone
    assert await db.read(messages.find, message.id) is None
    assert await db.read(recorded, inbox.account_id) == at(
        inbox.scope, ("message.deleted", message.id), ("thread.deleted", other.thread_id)
    )


@pytest.mark.sqlite_alone
async def test_an_address_is_suppressed_and_taken_off_however_it_is_written(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> None:
        new = suppressions.NewSuppression("Ann@Example.COM")
        assert suppressions.add_suppression(tx, caller, new, START).address == "ann@example.com"
        suppressions.delete_suppression(tx, caller, "ANN@example.com", START)
        assert stored_suppressions.list_of_account(tx, inbox.account_id, 10, 0) == ([], 0)
        suppressions.add_suppressions(tx, caller, ["a@example.com", "b@example.com"], START)

    await db.write(run)
    assert await db.read(recorded, inbox.account_id) == at(
        caller.scope,
        ("suppression.added", "ann@example.com"),
        ("suppression.removed", "ann@example.com"),
        ("suppression.added", "2 addresses of a file"),
    )


@pytest.mark.sqlite_alone
async def test_who_is_told_is_recorded_and_is_no_inbox_of_the_server(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def put(tx: Tx, address: str) -> notifications.Notifications:
        target = notifications.TargetBody("email", address, ["held", "held"])
        body = notifications.NotificationsBody([target])
        return notifications.put_notifications(tx, caller, body, CONFIG, START)

    assert (await db.write(put, "Ann@elsewhere.example")).targets[0].on == ["held"]
    with pytest.raises(AddressIsAnInbox):
        await db.write(put, inbox.address)
    [(action, was, shown)] = await db.read(changes)
    assert (action, was["targets"], len(shown["targets"])) == ("notifications.set", [], 1)


@pytest.mark.sqlite_alone
async def test_trust_is_given_by_who_reaches_the_account_and_is_bound_by_nothing(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    trust = policies.NewRule("trust", "friend.example", "outbound")
    given = policies.GivenPolicy("none", [policies.GivenRule("trust", "friend.example")])

    def run(tx: Tx) -> None:
        bound = msgspec.structs.replace(caller, approval='{"when":["always"]}')
        narrow = make_caller(tx, Scope(inbox.account_id, inbox.pod_id))
        for who in (bound, narrow):
            with refuses(Forbidden):
                policies.add_policy_rule(tx, who, inbox.scope, trust, START)
            with refuses(Forbidden):
                policies.put_policy(tx, who, inbox.scope, policies.PolicyChange(outbound=given), START)
        policies.add_policy_rule(tx, caller, inbox.scope, trust, START)

    await db.write(run)
