"""What a page reads lies within the scope and the permissions of whoever looks at it."""

from collections.abc import Callable

import pytest

from postroom.accounts import accounts, pods, sessions
from postroom.accounts.actors import THE_SERVER
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.rules import pauses
from postroom.accounts.scope import Scope
from postroom.errors import Forbidden, NotFound, Unauthorized
from postroom.events import event_log, webhooks
from postroom.mailbox import holds, inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.operations import notifications
from postroom.operations.people import sign_in
from postroom.outward.notices import system_emails
from postroom.queue import delayed_actions
from postroom.queue.delayed_actions import DelayedAction
from postroom.storage.database import Database, Tx
from postroom.web.dashboard import delayed_operations, live, page_context
from postroom.web.dashboard.agents import agents
from postroom.web.dashboard.operator import accounts as account_page
from postroom.web.dashboard.operator import health, queue
from postroom.web.dashboard.page_context import PageContext
from postroom.web.dashboard.pages import approvals
from postroom.web.dashboard.pages import event_log as log_page
from postroom.web.dashboard.pages.approvals import StateQuery
from postroom.web.dashboard.pages.event_log import EventFilter
from postroom.web.dashboard.settings import audit_targets
from postroom.web.dashboard.settings import users as people_page
from tests.dashboard.contexts import CONFIG, context_of, put_held
from tests.doubles import START
from tests.operations.callers import make_caller, make_user
from tests.refusals import refuses
from tests.stored import make_inbox, put_delivery, put_mail


@pytest.fixture
async def places(db: Database) -> tuple[Inbox, Inbox]:
    """An inbox in the default pod of the first account, and one in a pod of its own."""

    def make(tx: Tx) -> tuple[Inbox, Inbox]:
        account_id = accounts.add(tx, "first", "free", START).id
        pod = pods.add(tx, account_id, None, "tenant", START)
        common = inboxes.add(tx, account_id, "common", None, None, CONFIG.domain, START)
        return common, inboxes.add(tx, account_id, "own", None, None, CONFIG.domain, START + 1, pod.id)

    return await db.write(make)


def whole(tx: Tx, inbox: Inbox, *asked: str) -> Caller:
    return make_caller(tx, Scope(inbox.account_id), *asked)


def of_pod(tx: Tx, inbox: Inbox) -> Caller:
    return make_caller(tx, Scope(inbox.account_id, inbox.pod_id))


async def test_what_waits_is_listed_within_reach_without_pauses_and_what_is_on_its_way_out(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, own = places

    def subjects(tx: Tx, caller: Caller, **asked: str) -> tuple[list[str], int]:
        found = approvals.read_waiting(tx, context_of(db, caller), StateQuery(**asked))  # type: ignore[arg-type]
        return [row.outline.subject for row in found.rows], found.total

    def run(tx: Tx) -> None:
        put_held(tx, common, "One")
        two = put_held(tx, own, "Two", key_id="key_2")
        put_held(tx, own, "Paused", reasons=(holds.PAUSED,))
        account, tenant = whole(tx, common), of_pod(tx, own)
        assert subjects(tx, account) == (["One", "Two"], 2)
        assert subjects(tx, account, key="key_2") == (["Two"], 1)
        assert subjects(tx, tenant) == (["Two"], 1)
        assert subjects(tx, tenant, inbox_id=common.id) == ([], 0)
        with refuses(NotFound):
            approvals.read_card(tx, context_of(db, of_pod(tx, common)), two.id)
        assert page_context.read_layout(tx, context_of(db, account)).held == 2
        assert page_context.read_layout(tx, context_of(db, tenant)).held == 1
        action = DelayedAction("dly_1", own.account_id, "ses_1", "x", "[]", (two.id,), "", "", START)
        delayed_actions.add(tx, action)
        assert subjects(tx, account) == (["One"], 1)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_card_tells_who_else_gets_it_and_counts_the_others_alone(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, _ = places

    def run(tx: Tx) -> None:
        first = put_held(tx, common, "One")
        others = [put_held(tx, common, word) for word in ("Two", "Three")]
        put_held(tx, common, "Another agent's", key_id="key_2")
        for message in (first, others[0]):
            put_delivery(tx, message, "bob@there.example")
        card = approvals.read_card(tx, context_of(db, whole(tx, common)), first.id)
        assert card is not None
        assert card["bcc"] == ("secret@there.example",)
        assert card["alike"] == {"by_agent": 2, "to_person": 1, "person": "bob@there.example"}

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_the_frame_is_of_the_pod_that_is_chosen_and_tells_of_a_pause(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, own = places

    def run(tx: Tx) -> None:
        account, tenant = whole(tx, common), of_pod(tx, own)
        frame = page_context.read_layout(tx, context_of(db, account, f"podId={own.pod_id}"))
        assert ([each.id for each in frame.inboxes], frame.inbox_total) == ([own.id], 1)
        assert (frame.pod_id, len(frame.pods), frame.pause) == (own.pod_id, 2, None)
        assert frame.is_operator
        pauses.add(tx, own.account_id, own.pod_id, THE_SERVER, START)
        frame = page_context.read_layout(tx, context_of(db, tenant, f"podId={common.pod_id}"))
        assert ([each.id for each in frame.inboxes], frame.pods) == ([own.id], [])
        assert frame.pause is not None
        assert (frame.own_pod, frame.is_operator) == ("tenant", False)
        second = make_inbox(tx, "other")
        frame = page_context.read_layout(tx, context_of(db, whole(tx, second)))
        assert (frame.pods, frame.is_operator) == ([], False)  # with one pod there is nothing to choose
        _, alone = make_user(tx, own.account_id, "ann", users.VIEWER, own.pod_id)
        _, several = make_user(tx, own.account_id, "ben", users.VIEWER, own.pod_id, common.pod_id)
        assert page_context.list_own_pods(tx, context_of(db, alone)) == []
        assert len(page_context.list_own_pods(tx, context_of(db, several))) == 2

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_events_are_of_what_is_reached_and_posted_again_by_who_manages(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, own = places

    def run(tx: Tx) -> None:
        message = put_mail(tx, common)
        webhooks.put(tx, own.account_id, own.account_id, "https://example.com/hook", None, None, START)
        account, tenant = context_of(db, whole(tx, common)), context_of(db, of_pod(tx, own))
        [event] = log_page.list_events(tx, account, EventFilter(message=message.id))
        assert log_page.get_event(tx, account, event.id).id == event.id
        assert log_page.list_events(tx, tenant, EventFilter()) == []
        with refuses(NotFound):
            log_page.get_event(tx, tenant, event.id)
        with refuses(NotFound):
            log_page.list_events(tx, tenant, EventFilter(message=message.id))
        assert len(log_page.read_targets(tx, account)) == 1
        assert log_page.read_targets(tx, tenant) == []
        assert log_page.read_targets(tx, context_of(db, whole(tx, common, "read", "send"))) == []

    await db.write(run)


PAGES: tuple[Callable[[Tx, PageContext], object], ...] = (
    account_page.read_accounts,
    lambda tx, context: health.read_overview(tx, context, START),
    queue.read_queue,
    queue.read_waiting,
    lambda tx, context: queue.read_providers(tx, context, "7"),
    lambda tx, context: queue.read_destinations(tx, context, "7"),
    lambda tx, context: queue.read_behind(tx, context, queue.BehindQuery("there.example")),
)


@pytest.mark.sqlite_alone
async def test_pages_of_the_operator_are_read_by_nobody_else(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, own = places

    def run(tx: Tx) -> None:
        second = make_inbox(tx, "other", now=START + 5)
        put_held(tx, second, "Of another account")
        operator = context_of(db, whole(tx, common))
        for read in PAGES:
            for caller in (whole(tx, second), of_pod(tx, own), whole(tx, common, "read")):
                with refuses(Forbidden):
                    read(tx, context_of(db, caller))
        assert queue.read_queue(tx, operator)[1] == 1  # of all accounts

    await db.write(run)


async def test_letters_that_make_an_owner_are_shown_to_owners_alone(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    account_id = places[0].account_id

    def run(tx: Tx) -> None:
        owner, as_owner = make_user(tx, account_id, "olga", users.OWNER)
        viewer, _ = make_user(tx, account_id, "vera", users.VIEWER)
        _, admin = make_user(tx, account_id, "ann", users.ADMIN)
        for user in (owner, viewer):
            system_emails.add(tx, account_id, user.id, user.email, "Sign in", "link", START)
        tx.run("update letters set state = 'captured'")
        by_admin = make_caller(tx, Scope(account_id), creator=admin)
        for caller, number in ((as_owner, 2), (admin, 1), (by_admin, 1)):
            shown, _ = people_page.read_beside(tx, context_of(db, caller))
            assert len(shown) == number
        roles = [people_page.offered_roles(context_of(db, caller)) for caller in (as_owner, admin)]
        assert [users.OWNER in offered for offered in roles] == [True, False]

    await db.write(run)


async def test_somebody_works_in_one_of_the_own_pods_alone(db: Database, places: tuple[Inbox, Inbox]) -> None:
    common, own = places

    def run(tx: Tx) -> None:
        _, person = make_user(tx, own.account_id, "ann", users.VIEWER, own.pod_id)
        with refuses(NotFound):
            sign_in.choose_pod(tx, person, common.pod_id, START)
        sign_in.choose_pod(tx, person, own.pod_id, START)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_the_audit_names_nothing_of_others_and_leads_nobody_to_closed_pages(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    _, own = places

    def run(tx: Tx) -> None:
        other = make_inbox(tx, "other")
        for account_id in (own.account_id, other.account_id):
            webhooks.put(tx, account_id, account_id, f"https://{account_id}.example", None, None, START)
        caller = whole(tx, own)
        scope, narrow = Scope(own.account_id), Scope(own.account_id, own.pod_id)
        assert audit_targets.of_webhook(tx, scope, own.account_id) is not None
        assert audit_targets.of_webhook(tx, scope, other.account_id) is None
        assert audit_targets.of_account(tx, scope, other.account_id) is None
        line = {"target": caller.key_id, "before": None, "after": {"name": "made up"}}
        [seen] = audit_targets.describe(tx, scope, [line])
        [hidden] = audit_targets.describe(tx, narrow, [line])
        assert (seen.path, hidden.path) == (f"/app/settings/keys/{caller.key_id}", "")
        gone = {"target": "key_gone", "before": {"name": "old"}, "after": {"name": "new"}}
        assert audit_targets.describe(tx, scope, [gone])[0].label == "new"

    await db.write(run)


async def test_an_agent_has_its_own_holds_and_who_was_seen_last_is_first(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, _ = places

    def run(tx: Tx) -> None:
        first, second = whole(tx, common), whole(tx, common)
        put_held(tx, common, "One", key_id=second.key_id)
        tx.run("update keys set last_used_at = :now where id = :id", now=START, id=second.key_id)
        found, more = agents.read_agents(tx, context_of(db, first), 0)
        assert [(agent.key.id, agent.held) for agent in found] == [(second.key_id, 1), (first.key_id, 0)]
        assert not more

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_page_hears_of_its_own_places_and_only_where_it_may_read(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    common, own = places

    def run(tx: Tx) -> None:
        put_mail(tx, common)
        event_id = event_log.last_id(tx, Scope(common.account_id))
        assert event_id is not None
        event = event_log.find(tx, event_id)
        assert event is not None
        tokens = {}
        for name, caller in (
            ("whole", whole(tx, common)),
            ("pod", of_pod(tx, own)),
            ("blind", whole(tx, common, "send", "manage")),
        ):
            grant = sessions.SignInGrant(caller.account_id, caller.key_id, is_operator=False, by_key=True)
            tokens[name] = sessions.new_token()
            sessions.add(tx, grant, "", sessions.SignInOrigin("", ""), tokens[name], START)
        seen, known = live.admit(tx, tokens["whole"], event_id, START)
        assert (seen.wants(event), known) == (True, event.position)
        narrow, _ = live.admit(tx, tokens["pod"], "", START)
        assert not narrow.wants(event)
        with refuses(Forbidden):
            live.admit(tx, tokens["blind"], "", START)
        for token in ("", "unknown"):
            with refuses(Unauthorized):
                live.admit(tx, token, "", START)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_one_who_is_told_is_removed_and_the_others_of_the_same_kind_stay(
    db: Database, places: tuple[Inbox, Inbox]
) -> None:
    def run(tx: Tx) -> None:
        caller = whole(tx, places[0])
        addresses = [f"{name}@elsewhere.example" for name in ("ann", "ben")]
        targets = [notifications.TargetBody("email", address, ["held"]) for address in addresses]
        body = notifications.NotificationsBody(targets)
        notifications.put_notifications(tx, caller, body, CONFIG, START)
        delayed_operations.remove_target(tx, caller, "email", addresses[0], CONFIG, START)
        left = notifications.get_notifications(tx, caller).targets
        assert [each.target for each in left] == addresses[1:]

    await db.write(run)
