"""Approvals: what waits and why, with all that it takes to decide; and what was decided, by whom."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import ApiError
from postroom.fields import Offset
from postroom.mail.address import normalize, parse_list
from postroom.mail.parse import parse_mail
from postroom.mail.writing.content_view import ContentView, view
from postroom.mailbox import correspondents, documents, inboxes, message_json, messages, raw_mails
from postroom.mailbox import holds as stored_holds
from postroom.mailbox.message_json import Told
from postroom.operations import holds
from postroom.operations.holds import Approve, HeldMessage, Reject
from postroom.processes import pools
from postroom.queue import deliveries
from postroom.web.api.outward import drafts as api_drafts
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.values import plain
from postroom.web.interface.bodies.draft_body import DraftBody
from postroom.web.interface.bodies.uploads import SentFile

PATH = "/app/approvals"
CARDS = 20
BESIDE = 5  # messages of the thread that are shown beside what waits
WORDS = {
    "always": "every send of this inbox waits for a person",
    "strangers": "somebody among the recipients never wrote to this inbox",
    "attachments": "it carries files",
    "links": "it contains a link or a network address",
    "risk": "the thread holds a message that was judged suspicious",
    "overPerDay": "the inbox has sent more than its rule allows without a look today",
    "canary": "it holds the token that only the agent of this inbox reads: somebody made it tell",
    "key": "the key that sent it may only draft",
    "key_revoked": "the key that sent it was revoked since",
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
    pod_id: str = ""
    offset: Offset = 0


async def show_approvals(desk: Desk, query: StateQuery) -> Response:
    found, total = await desk.call.resources.db.read(read_waiting, desk, query)
    cards = await desk.call.resources.db.read(complete, desk, plain(found))
    for card in cards:
        card["shown"] = await look_at(desk, card["message"]["id"], card["bcc"])
        card["strangers"] = strangers_of(card["shown"], card["known"])
    return await desk.show(
        "approvals.html",
        "approvals",
        title="Approvals",
        cards=cards,
        total=total,
        query=query,
        words=WORDS,
        limit=CARDS,
    )


def read_waiting(tx: Tx, desk: Desk, query: StateQuery) -> tuple[list[HeldMessage], int]:
    """What only a pause holds is on the page of drafts: nobody has to decide about it."""
    reach = inboxes.narrow(tx, desk.call.reach, query.inbox_id or None, query.pod_id or None)
    if reach is None:
        return [], 0
    also = stored_holds.FOR_A_PERSON if query.state == stored_holds.HELD else stored_holds.EITHER
    found, total = stored_holds.list_within(tx, reach, query.state, CARDS, query.offset, also)
    return holds.show(tx, found, desk.call.links()), total


def complete(tx: Tx, desk: Desk, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [complete_one(tx, desk, each["message"], each["hold"]) for each in found]


def complete_one(tx: Tx, desk: Desk, message: dict[str, Any], hold: dict[str, Any]) -> dict[str, Any]:
    """Who of them wrote here before, and the thread that it stands in."""
    addresses = [each.target for each in deliveries.list_of_message(tx, message["id"])]
    known = correspondents.find(
        tx, [(message["inboxId"], address) for address in addresses], only_trusted=True
    )
    kept = stored_holds.find(tx, message["id"])
    last = messages.list_of_thread(tx, message["threadId"], BESIDE + 1, 0, "desc").messages
    thread = [each for each in decode(tx, desk, last) if each["id"] != message["id"]]
    return {
        "message": message,
        "hold": hold,
        "bcc": () if kept is None else kept.bcc,
        "known": {address for _, address in known},
        "thread": thread[BESIDE - 1 :: -1],
    }


async def look_at(desk: Desk, message_id: str, bcc: Sequence[str]) -> ContentView | None:
    """Read from the very bytes that wait, as its hash was and will be. None: the store has lost them."""
    try:
        raw = await raw_mails.read(desk.call.resources, message_id, with_trace=False)
    except FileNotFoundError:
        return None
    return await pools.READING.run(view, raw, bcc)


def strangers_of(shown: ContentView | None, known: set[str]) -> list[str]:
    """Recipients who never wrote to this inbox."""
    if shown is None:
        return []
    return [each for each in shown.recipients if normalize(parse_list(each)[0].address) not in known]


def decode(tx: Tx, desk: Desk, found: Sequence[Told]) -> list[dict[str, Any]]:
    shown = message_json.to_json(tx, found, desk.call.links())
    return [msgspec.json.decode(each) for each in shown]


async def decide(desk: Desk, message_id: str, body: Decision) -> Response:
    note = body.note.strip()[:1000] or None
    if body.decision == "approve":
        answer = await desk.run(
            holds.approve_message, message_id=message_id, body=Approve(body.content_hash, note)
        )
        return go(PATH, told_of(msgspec.json.decode(answer)["hold"]))
    await desk.run(holds.reject_message, message_id=message_id, body=Reject(note))
    return go(PATH, "Rejected. It will not leave.")


def told_of(hold: dict[str, Any]) -> str:
    missing = hold["approvalsNeeded"] - len(hold["approvedBy"])
    if hold["state"] == "held" and missing > 0:
        return f"Your approval counts. {missing} more must come from other people."
    return "Approved. It is on its way."


async def approve_several(desk: Desk, body: Decisions) -> Response:
    """Each with the hash of what was shown, so that none is approved unseen. One refusal stops no other."""
    done, refused = 0, []
    for pair in body.seen[:CARDS]:
        message_id, _, content_hash = pair.partition(" ")
        try:
            await desk.run(holds.approve_message, message_id=message_id, body=Approve(content_hash, None))
            done += 1
        except ApiError as error:
            refused.append(error.message)
    return go(PATH, " ".join([f"{done} approved.", *refused]))


async def edit(desk: Desk, message_id: str) -> Response:
    """The same as a draft of one's own. What waits goes on waiting until somebody decides."""
    resources = desk.call.resources
    message = await resources.db.read(messages.get, desk.call.reach, message_id)
    written = documents.decode(message.document)
    raw = await raw_mails.read(resources, message.id, with_trace=False)
    files = (await pools.READING.run(parse_mail, raw)).attachments
    body = DraftBody(
        to=written.header_to or None,
        cc=written.cc or None,
        subject=written.subject or None,
        body=written.body_text or None,
        thread_id=message.thread_id,
        include_quote=False,  # the text has the quote already
        attachments=[SentFile(file.filename, file.content, file.content_type) for file in files],
    )
    made = await api_drafts.create_draft(desk.call, message.inbox_id, body)
    return go(f"/app/drafts/{made.id}", "This is yours now. Reject the one that waits when yours has gone.")
