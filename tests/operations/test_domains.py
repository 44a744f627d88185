"""Domains: what is recorded of them, for which pod, and what goes with one."""

from contextlib import closing
from pathlib import Path

import pytest

from postroom.accounts import accounts, domains, pods
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import ApiError, BadRequest, Forbidden, InvalidDomain, NotFound
from postroom.mailbox import inboxes
from postroom.operations import domains as verbs
from postroom.operations.domains import DomainChange, NewDomain
from postroom.queue import deliveries
from postroom.queue.providers import warm_ups
from postroom.storage.database import Database, Tx, insert, update
from tests.conftest import settings
from tests.doubles import START
from tests.mail.keys import signing_key
from tests.operations.callers import ADDRESS, make_caller, recorded
from tests.refusals import refuses
from tests.stored import put_delivery, put_mail

CONFIG = settings(Path("nowhere"))
NAME = "mail.example.com"
RELAY = "smtps://user:secret@relay.example"


def make_first(tx: Tx) -> tuple[Caller, str]:
    """A key of the first account, and a pod of it."""
    account = accounts.add(tx, "first", "free", START)
    return make_caller(tx, Scope(account.id)), pods.add(tx, account.id, None, "tenant", START).id


def add(tx: Tx, caller: Caller, pod_id: str | None = None) -> domains.Domain:
    shown = verbs.create_domain(tx, caller, NewDomain(NAME, pod_id), signing_key(), CONFIG, START)
    return domains.get(tx, caller.scope, shown.id)


async def test_what_is_done_to_a_domain_is_in_the_log_of_its_pod_without_passwords(db: Database) -> None:
    caller, pod_id = await db.write(make_first)

    def run(tx: Tx) -> str:
        domain = add(tx, caller, pod_id)
        verbs.mark_verified(tx, caller, domain, START)
        for change in (DomainChange(RELAY), DomainChange(warm_up=True), DomainChange(warm_up=False)):
            verbs.change_domain(tx, caller, domain.id, change, CONFIG, START)
        verbs.rotate_dkim(tx, caller, domain.id, signing_key(), CONFIG, START)
        verbs.delete_domain(tx, caller, domain.id, START)
        return domain.id

    domain_id = await db.write(run)
    done = ("added", "verified", "changed", "warm_up_begun", "warm_up_ended", "dkim_rotated", "removed")
    assert await db.read(recorded, caller.account_id) == [
        (f"domain.{word}", domain_id, ADDRESS, pod_id, None) for word in done
    ]
    log = str(await db.read(lambda tx: [row["after"] for row in tx.all("select after from audit")]))
    assert "relay.example" in log
    assert "secret" not in log


async def test_with_a_domain_go_its_warm_up_and_what_was_reported_of_it(db: Database) -> None:
    caller, _ = await db.write(make_first)

    def run(tx: Tx) -> None:
        domain = verbs.mark_verified(tx, caller, add(tx, caller), START)
        verbs.change_domain(tx, caller, domain.id, DomainChange(warm_up=True), CONFIG, START)
        names = dict.fromkeys(("kind", "report_hash", "reporter", "source", "spf", "dkim", "disposition"), "")
        numbers = dict.fromkeys(("position", "day", "count", "received_at"), 1)
        insert(tx, "domain_reports", owner=caller.account_id, domain=NAME, **names, **numbers)
        verbs.delete_domain(tx, caller, domain.id, START)
        assert not warm_ups.is_on(tx, NAME, caller.account_id)
        assert tx.all("select 1 as one from domain_reports") == []

    await db.write(run)


async def test_a_warm_up_is_of_a_proved_domain_and_its_end_wakes_what_waits(db: Database) -> None:
    caller, _ = await db.write(make_first)
    domain = await db.write(add, caller)
    with pytest.raises(BadRequest):
        await db.write(verbs.set_warm_up, caller, domain, True, START)

    def begin(tx: Tx) -> domains.Domain:
        verified = verbs.mark_verified(tx, caller, domain, START)
        verbs.set_warm_up(tx, caller, verified, True, START)
        return verified

    verified = await db.write(begin)
    assert (await db.read(verbs.get_domain, caller, domain.id, CONFIG, START)).warm_up
    with closing(db.listen(deliveries.BELL)) as subscription:
        await db.write(put_waiting, caller)
        await db.write(verbs.set_warm_up, caller, verified, False, START)
        assert await subscription.wait(120)


def put_waiting(tx: Tx, caller: Caller) -> None:
    """A mail of the domain that waits for tomorrow."""
    inbox = inboxes.add(tx, caller.account_id, "bob", NAME, None, CONFIG.domain, START)
    delivery_id = put_delivery(tx, put_mail(tx, inbox), due_at=START + DAY)
    update(tx, "deliveries", delivery_id, waits_for=warm_ups.WAITS_FOR)


@pytest.mark.sqlite_alone
async def test_the_servers_own_domain_is_for_who_runs_the_server(db: Database) -> None:
    owner, pod_id = await db.write(make_first)

    def run(tx: Tx) -> None:
        other = make_caller(tx, Scope(accounts.add(tx, "second", "free", START + 1).id))
        own, warm = domains.SERVICE_ID, DomainChange(warm_up=True)
        with refuses(Forbidden):
            verbs.change_domain(tx, other, own, warm, CONFIG, START)
        with refuses(Forbidden):
            verbs.require_rotatable(tx, other, own, CONFIG)
        verbs.change_domain(tx, owner, own, warm, CONFIG, START)
        for relay in (RELAY, None):
            with refuses(BadRequest):
                verbs.change_domain(tx, owner, own, DomainChange(relay), CONFIG, START)
        with refuses(NotFound):
            verbs.get_domain(tx, make_caller(tx, Scope(owner.account_id, pod_id)), own, CONFIG, START)
        with refuses(ApiError):
            verbs.delete_domain(tx, owner, own, START)
        with refuses(InvalidDomain):
            verbs.read_name(NewDomain(CONFIG.domain.upper()), CONFIG)

    await db.write(run)
    [line] = await db.read(recorded, owner.account_id)
    assert line == ("domain.warm_up_begun", domains.SERVICE_ID, ADDRESS, None, None)
