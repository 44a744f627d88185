"""Approvals: a list of held email with the details needed to decide; and past decisions."""

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from postroom import limits
from postroom.accounts import keys
from postroom.accounts.rules.approval import Approval
from postroom.accounts.scope import Scope
from postroom.fields import Offset, ScopeFilter
from postroom.mailbox import correspondents, inboxes, message_json, messages, raw_mails
from postroom.mailbox import holds as stored_holds
from postroom.mailbox.holds import Hold
from postroom.mailbox.message_json import ShownMessage
from postroom.operations import holds, pods, policies
from postroom.operations import inboxes as inbox_operations
from postroom.operations.holds import Approve, Reject
from postroom.outward.holding import findings, origin_ends
from postroom.processes import pools
from postroom.queue import deliveries
from postroom.resources import Resources
from postroom.web.call import Tx
from postroom.web.dashboard import delayed_operations, undo
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.forms import own_path
from postroom.web.dashboard.page_context import PageContext, go, plain
from postroom.web.dashboard.pages.compose import copy_as_draft
from postroom_mail.mime.address import mailbox_of, normalize, parse_list
from postroom_mail.writing.content_view import ContentView, view

PATH = "/app/approvals"
ROWS = 50
BESIDE = 5  # messages of the thread shown next to a held email
NAMED = 2  # recipients in a row of the list
LONGEST_LIST = 20_000
RISKS = {1: "Suspicious email in its thread", 2: "Malicious email in its thread", 3: "Canary token found"}
COMMON = {
    "always": "All sends",
    "strangers": "New recipients",
    "attachments": "Attachments",
    "links": "Links",
}
WORDS = {
    "always": "every send waits for approval",
    "strangers": "a recipient never wrote to this inbox",
    "attachments": "it carries files",
    "links": "it contains a link or a network address",
    "risk": "the thread has a message that was judged suspicious",
    "overPerDay": "the inbox has sent more today than its rule allows without approval",
    "canary": "it contains the canary token that only this inbox's agent reads: it may have been tricked",
    "origin": "it carries values that came from others than its recipients",
    "key": "the key that sent it may only draft",
    "key_revoked": "the key that sent it was revoked since",
    "paused": "sending is paused",
}


class DecisionForm(Struct, rename="camel", frozen=True):
    decision: Literal["approve", "reject"]
    content_hash: str
    note: str = ""
    confirmed: str = ""  # the seal of the findings that the person was shown, and sent on despite of
    next: str = ""  # the message to go on with
    back: str = PATH


class TrustForm(Struct, frozen=True):
    address: str
    back: str = PATH


class CommonRuleForm(Struct, frozen=True):
    when: Literal["always", "strangers", "attachments", "links"]
    back: str = PATH


class Rejections(Struct, frozen=True):
    ids: list[str] = []
    note: str = ""
    back: str = PATH


class StateQuery(Struct, rename="camel", frozen=True):
    state: Literal["held", "scheduled", "approved", "rejected", "expired", "cancelled", "released"] = "held"
    inbox_id: str = ""
    pod_id: str = ""
    key: str = ""  # of the agent that sent it
    to: str = ""  # one of its recipients
    message: str = ""
    offset: Offset = 0


class Outline(Struct, rename="camel", frozen=True):
    """What the list shows of a message."""

    header_to: str = ""
    cc: list[str] = []
    subject: str = ""


class HeldRow(Struct, frozen=True):
    hold: Hold
    outline: Outline

    @property
    def reasons(self) -> str:
        return in_words(self.hold.reasons)

    @property
    def risk(self) -> str:
        return RISKS.get(self.hold.risk, "")

    @property
    def recipients(self) -> str:
        """Addresses, since anybody can choose a name."""
        written = parse_list(self.outline.header_to[:LONGEST_LIST])
        others = [*self.outline.cc, *self.hold.bcc]
        first = [each.address for each in written][:NAMED] or [mailbox_of(each) for each in others[:NAMED]]
        more = len(written) + len(others) - len(first)
        return ", ".join(first) + (f" and {more} more" if more else "")


def in_words(reasons: Sequence[str]) -> str:
    said = "; ".join(WORDS.get(reason, reason) for reason in reasons)
    return said[:1].upper() + said[1:]


class HeldList(Struct, frozen=True):
    rows: list[HeldRow]
    total: int
    agents: dict[str, str] = {}  # names of keys
    addresses: dict[str, str] = {}  # of inboxes

    def after(self, message_id: str) -> str:
        """Return the one to show next: the following one, else the one before."""
        ids = [row.hold.message_id for row in self.rows]
        if message_id not in ids:
            return ids[0] if ids else ""
        at = ids.index(message_id)
        return next(iter([*ids[at + 1 :], *reversed(ids[:at])]), "")


async def show_approvals(
    context: PageContext, query: StateQuery, form: DecisionForm | None = None
) -> Response:
    """Show the list, and the details of one email. `form` is an approval that needs a second click."""
    found = await context.read(read_waiting, context, query)
    chosen = query.message or (found.rows[0].hold.message_id if found.rows else "")
    card = await context.read(read_card, context, chosen) if chosen else None
    if card is not None:
        card["shown"] = await look_at(context.call.resources, chosen, card["bcc"])
        card["strangers"] = strangers_of(card["shown"], card["known"])
    return await context.show(
        "approvals.html",
        "approvals",
        200 if form is None else 409,
        title="Approvals",
        found=found,
        card=card,
        next=found.after(chosen),
        query=query,
        in_words=in_words,
        limit=ROWS,
        form=form,
        common=COMMON,
    )


def read_waiting(tx: Tx, context: PageContext, query: StateQuery) -> HeldList:
    """Return the held emails. Those held only by a pause are on the page of drafts: they need no decision."""
    scope = inboxes.narrow(tx, context.call.scope, query.inbox_id or None, query.pod_id or None)
    if scope is None:
        return HeldList([], 0)
    asked_for = {"key_id": query.key, "recipient": normalize(query.to)}
    if query.state == stored_holds.HELD:
        waiting = replace(context.waiting_for_me(tx), **asked_for)
        found, total = stored_holds.list_waiting(tx, scope, ROWS, query.offset, waiting)
    else:
        choice = replace(stored_holds.ALL, **asked_for)
        found, total = stored_holds.list_within(tx, scope, query.state, ROWS, query.offset, choice)
    written = {
        each.id: each.document for each in messages.list_outlines(tx, [hold.message_id for hold in found])
    }
    rows = [
        HeldRow(hold, msgspec.json.decode(written[hold.message_id], type=Outline))
        for hold in found
        if hold.message_id in written
    ]
    asked = keys.find(tx, context.call.account_id, query.key) if query.key else None
    named = {hold.key_id for hold in found}
    if asked is not None and context.call.scope.includes(
        Scope(asked.account_id, asked.pod_id, asked.inbox_id)
    ):
        named.add(asked.id)  # any other name would be shown across pods
    agents = keys.names_of(tx, context.call.account_id, named - {""})
    return HeldList(rows, total, agents, inboxes.addresses_of(tx, sorted({hold.inbox_id for hold in found})))


def read_card(tx: Tx, context: PageContext, message_id: str) -> dict[str, Any] | None:
    """Return the details of one that waits or was decided; None if it was never held."""
    message = messages.get(tx, context.call.scope, message_id)
    hold = stored_holds.find(tx, message.id)
    if hold is None:
        return None
    [shown] = plain(holds.show(tx, [hold], context.call.links()))
    card = complete_one(tx, context, shown["message"], shown["hold"])
    return card | {"alike": count_alike(tx, context, hold, card["addresses"]), "key_id": hold.key_id}


def count_alike(tx: Tx, context: PageContext, hold: Hold, addresses: list[str]) -> dict[str, Any]:
    """Return how many others wait from the same agent, or to the same person."""
    scope, first = context.call.scope, addresses[0] if addresses else ""
    is_waiting = int(hold.state == stored_holds.HELD)
    by_agent, to_person = (
        stored_holds.count_within(tx, scope, stored_holds.HELD, choice=choice) - is_waiting if given else 0
        for given, choice in (
            (hold.key_id, replace(stored_holds.FOR_A_PERSON, key_id=hold.key_id)),
            (first, replace(stored_holds.FOR_A_PERSON, recipient=first)),
        )
    )
    return {"by_agent": by_agent, "to_person": to_person, "person": first}


def complete_one(
    tx: Tx, context: PageContext, message: dict[str, Any], hold: dict[str, Any]
) -> dict[str, Any]:
    """Return which recipients wrote here before, and the thread of the email."""
    addresses = [each.target for each in deliveries.list_of_message(tx, message["id"])]
    known = correspondents.find(
        tx, [(message["inboxId"], address) for address in addresses], only_trusted=True
    )
    kept = stored_holds.find(tx, message["id"])
    last = messages.list_of_thread(tx, message["threadId"], BESIDE + 1, 0, "desc").messages
    thread = [each for each in decode(tx, context, last) if each["id"] != message["id"]]
    return {
        "message": message,
        "hold": hold,
        "bcc": () if kept is None else kept.bcc,
        "known": {address for _, address in known},
        "addresses": addresses,
        "thread": thread[BESIDE - 1 :: -1],
        "inbox": inboxes.addresses_of(tx, [message["inboxId"]]).get(message["inboxId"], ""),
        "origins": () if kept is None else origin_ends.find(tx, kept),
        "findings": None if kept is None else findings.find(tx, kept, message["threadId"]),
    }


async def look_at(resources: Resources, message_id: str, bcc: Sequence[str]) -> ContentView | None:
    """Read from the stored bytes, like its hash. None if they are lost."""
    try:
        raw = await raw_mails.read(resources, message_id, with_trace=False)
    except FileNotFoundError:
        return None
    return await pools.READING.run(view, raw, bcc)


def strangers_of(shown: ContentView | None, known: set[str]) -> list[str]:
    """Return the recipients who never wrote to this inbox."""
    if shown is None:
        return []
    return [each for each in shown.recipients if normalize(parse_list(each)[0].address) not in known]


def decode(tx: Tx, context: PageContext, found: Sequence[ShownMessage]) -> list[dict[str, Any]]:
    shown = message_json.to_json(tx, found, context.call.links())
    return [msgspec.json.decode(each) for each in shown]


async def decide(context: PageContext, message_id: str, body: DecisionForm) -> Response:
    note = body.note.strip()[: limits.NOTE_CHARACTERS] or None
    if body.decision == "reject":
        said = f"Rejected in {undo.SECONDS} seconds. It will not be sent."
        wanted = {"message_id": message_id, "body": Reject(note)}
        return await undo.delay(context, holds.reject_message, on_to(body.back, body.next), said, **wanted)
    if not await context.read(is_confirmed, context, message_id, body.confirmed):
        return await show_approvals(context, query_of(body.back, message_id), body)
    asked = [{"message_id": message_id, "body": Approve(body.content_hash, note)}]
    answer = await undo.try_out(context.call, delayed_operations.ROUTES[holds.approve_message], asked[0])
    said = notice_of(msgspec.json.decode(answer)["hold"])
    return await undo.keep(context, holds.approve_message, asked, on_to(body.back, body.next), said)


def is_confirmed(tx: Tx, context: PageContext, message_id: str, confirmed: str) -> bool:
    """Return whether the person was shown what speaks against it now: a page from before does not count."""
    message = messages.get(tx, context.call.scope, message_id)
    hold = stored_holds.find(tx, message.id)
    waits = hold is not None and hold.state == stored_holds.HELD
    found = findings.find(tx, hold, message.thread_id) if hold is not None and waits else None
    return found is None or found.seal == confirmed


def query_of(back: str, message_id: str) -> StateQuery:
    """Return the query of the list that a form came from, with this one open."""
    kept = dict(parse_qsl(own_path(back).partition("?")[2]))
    try:
        return replace(msgspec.convert(kept, StateQuery, strict=False), message=message_id)
    except msgspec.ValidationError:
        return StateQuery(message=message_id)


def on_to(back: str, message_id: str) -> str:
    """Return the address of the same list, with this one open."""
    path, _, query = own_path(back).partition("?")
    kept = {name: value for name, value in parse_qsl(query) if name not in ("message", "offset")}
    return link(path, **kept, message=message_id)


def notice_of(hold: dict[str, Any]) -> str:
    missing = hold["approvalsNeeded"] - len(hold["approvedBy"])
    if hold["state"] == "held" and missing > 0:
        return f"Your approval counts in {undo.SECONDS} seconds. Approvals needed from others: {missing}."
    return f"Approved. It is sent in {undo.SECONDS} seconds."


async def reject_several(context: PageContext, body: Rejections) -> Response:
    """Reject several emails; one failure does not stop the others.

    There is no approving in bulk: an approver must see the email.
    """
    note = Reject(body.note.strip()[: limits.NOTE_CHARACTERS] or None)
    asked = [{"message_id": message_id, "body": note} for message_id in body.ids[:ROWS]]
    trial = await undo.try_all(context, holds.reject_message, asked)
    said = " ".join([f"{len(trial.asked)} rejected in {undo.SECONDS} seconds.", *trial.refused])
    return await undo.keep(context, holds.reject_message, trial.asked, own_path(body.back), said)


async def add_rule(context: PageContext, body: CommonRuleForm) -> Response:
    """Add a rule to the inbox or pod that the list is about, else to all that the person may see."""
    call, when = context.call, body.when
    query = query_of(body.back, "")
    pod_id = query.pod_id or call.caller.pod_id
    if query.inbox_id:
        inbox = await context.run(inbox_operations.get_inbox, inbox_id=query.inbox_id)
        change = inbox_operations.InboxChange(approval=with_rule(inbox.approval, when))
        await context.run(inbox_operations.change_inbox, inbox_id=inbox.id, body=change)
    elif pod_id:
        pod = await context.run(pods.get_pod, pod_id=pod_id)
        await context.run(
            pods.change_pod, pod_id=pod.id, body=pods.PodChange(approval=with_rule(pod.approval, when))
        )
    else:
        account = await context.run(pods.get_account)
        change_account = pods.AccountChange(approval=with_rule(account.approval, when))
        await context.run(pods.change_account, body=change_account)
    return go(own_path(body.back), f"Rule set: {COMMON[body.when].lower()}. Matching sends now wait here.")


def with_rule(known: Approval | None, word: str) -> Approval:
    rules = known or Approval()
    return rules if word in rules.when else replace(rules, when=[*rules.when, word])


async def trust(context: PageContext, message_id: str, body: TrustForm) -> Response:
    """Adds a rule for future mail. Held mail goes on waiting."""
    message = await context.read(messages.get, context.call.scope, message_id)
    rule = policies.NewRule(type="trust", value=body.address, direction="outbound")
    await context.run(policies.add_policy_rule, query=ScopeFilter(inbox_id=message.inbox_id), body=rule)
    said = (
        f"Email from this inbox to {body.address} alone is no longer held. This one still needs a decision."
    )
    return go(on_to(body.back, message_id), said)


async def edit(context: PageContext, message_id: str) -> Response:
    """Copies it to a draft. Held mail goes on waiting."""
    draft_id = await copy_as_draft(context, message_id)
    return go(f"/app/drafts/{draft_id}", "This is your own draft. Reject the held email once yours is sent.")
