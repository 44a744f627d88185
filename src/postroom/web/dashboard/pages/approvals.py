"""Approvals: what waits and why, with all that it takes to decide; and what was decided, by whom."""

from typing import Any, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.mail.links import link_details
from postroom.mailbox import documents, inboxes, message_json, messages
from postroom.outward import reviewers
from postroom.queue import deliveries
from postroom.web.api import approvals as api
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.values import plain
from postroom.web.interface.body import ApprovalQuery, Approve, Reject

PATH = "/app/approvals"
BESIDE = 5  # messages of the thread that are shown beside what waits
WORDS = {
    "always": "every send of this inbox waits for a person",
    "strangers": "somebody among the recipients never wrote to this inbox",
    "attachments": "it carries files",
    "links": "it names a place of the network",
    "risk": "the thread holds a message that was judged suspicious",
    "overPerDay": "the inbox has sent more than its rule allows without a look today",
    "key": "the key that sent it may only draft",
    "paused": "sending is paused",
}


class Decision(Struct, rename="camel", frozen=True):
    decision: Literal["approve", "reject"]
    content_hash: str
    note: str = ""


class Decisions(Struct, rename="camel", frozen=True):
    seen: list[str] = []  # message id and content hash, joined by a space


class StateQuery(Struct, rename="camel", frozen=True):
    state: Literal["held", "scheduled", "approved", "rejected", "expired", "cancelled", "released"] = "held"
    inbox_id: str = ""
    offset: int = 0


async def show_approvals(desk: Desk, query: StateQuery) -> Response:
    asked = ApprovalQuery(query.state, query.inbox_id or None, None, 20, max(query.offset, 0))
    page = plain(await api.list_approvals(desk.call, asked))
    cards = await desk.call.resources.db.read(complete, desk, page["data"])
    return await desk.show(
        "approvals.html",
        "approvals",
        title="Approvals",
        cards=cards,
        total=page["total"],
        query=query,
        words=WORDS,
    )


def complete(tx: Tx, desk: Desk, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [complete_one(tx, desk, each["message"], each["hold"]) for each in found]


def complete_one(tx: Tx, desk: Desk, message: dict[str, Any], hold: dict[str, Any]) -> dict[str, Any]:
    """Who would get it, where its links lead, and the thread that it stands in."""
    addresses = [each.target for each in deliveries.list_of_message(tx, message["id"])]
    known = inboxes.find_correspondents(
        tx, [(message["inboxId"], address) for address in addresses], only_trusted=True
    )
    found = messages.find(tx, message["id"])
    assert found is not None
    stored = documents.decode(found.document)
    before = messages.list_of_thread(tx, message["threadId"], BESIDE + 1, 0).messages
    thread = [
        plain_message for plain_message in decode(tx, desk, before) if plain_message["id"] != message["id"]
    ]
    return {
        "message": message,
        "hold": hold,
        "recipients": [(address, (message["inboxId"], address) in known) for address in addresses],
        "links": [link.url for link in link_details(message["bodyText"], message["bodyHtml"])],
        "thread": thread[:BESIDE],
        "other": reviewers.other_words(stored),
    }


def decode(tx: Tx, desk: Desk, found: list[messages.Message]) -> list[dict[str, Any]]:
    shown = message_json.to_json(tx, found, desk.call.links(tx))
    return [msgspec.json.decode(each) for each in shown]


async def decide(desk: Desk, message_id: str, body: Decision) -> Response:
    note = body.note.strip()[:1000] or None
    if body.decision == "approve":
        await api.approve_message(desk.call, message_id, Approve(body.content_hash, note))
        return go(PATH, "Approved. It is on its way.")
    await api.reject_message(desk.call, message_id, Reject(note))
    return go(PATH, "Rejected. It will not leave.")


async def approve_several(desk: Desk, body: Decisions) -> Response:
    """Each with the hash of what was shown, so that none is approved unseen."""
    for pair in body.seen:
        message_id, _, content_hash = pair.partition(" ")
        await api.approve_message(desk.call, message_id, Approve(content_hash, None))
    return go(PATH, f"{len(body.seen)} approved.")
