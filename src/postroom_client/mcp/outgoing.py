"""Results of the writing tools: the state of an email, and what happens next.

Without slots: the MCP library takes a class attribute for a default, and slots are class attributes.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from postroom_client import results
from postroom_client.mcp.results import Delimited, Moment, Notice, Total, made, written
from postroom_client.untrusted import Delimiters, cut

DRAFT_LIMIT_CHARACTERS = 5_000

ON_ITS_WAY = "It is on its way. get_message_status says when it was accepted."
FATES = {
    "sent": "The servers of all recipients have accepted it.",
    "failed": "It did not reach every recipient, and is not tried again.",
    "received": "It is a received mail.",
}
ENDED = {
    "rejected": "A person rejected it. It will not be sent; do not send it again unchanged.",
    "expired": "Nobody approved it in time. It will not be sent.",
    "cancelled": "It was cancelled. It will not be sent.",
}


@dataclass(frozen=True)
class Wait:
    """Why an email waits or waited."""

    state: Annotated[str, Field(description="held: for approval; scheduled: for its time.")]
    reasons: list[str]
    expires_at: Annotated[Moment | None, Field(description="Undecided until then, it is never sent.")]
    send_at: Annotated[Moment | None, Field(description="It is not sent before this time.")]


@dataclass(frozen=True)
class SentMail:
    message_id: str
    thread_id: str
    inbox_id: str
    status: Annotated[str, Field(description="pending: accepted; it may still be held.")]
    is_held: Annotated[bool, Field(description="true: it is sent only when a person approves it.")]
    hold: Wait | None
    what_happens_next: str


@dataclass(frozen=True)
class RecipientStatus:
    address: str
    state: Annotated[str, Field(description="pending, held, delivered, failed, cancelled or bounced.")]
    attempts: int
    last_reply: Annotated[Delimited, Field(description="What the recipient's server said last.")]


@dataclass(frozen=True)
class MessageStatus:
    notice: Notice
    message_id: str
    thread_id: str
    inbox_id: str
    direction: str
    status: Annotated[str, Field(description="pending, sent, failed or received.")]
    is_held: bool
    hold: Wait | None
    note: Annotated[
        str | None, Field(description="What the person who decided wrote, inside the delimiters.")
    ]
    recipients: list[RecipientStatus]
    what_happens_next: str


@dataclass(frozen=True)
class DraftSummary:
    notice: Notice
    draft_id: str
    version: Annotated[int, Field(description="Rises with each change; for send_draft.")]
    inbox_id: str
    thread_id: str | None
    written_by: Annotated[str, Field(description="The name of the key that wrote it, or its id.")]
    updated_at: Moment | None
    files: list[str]
    content: Delimited


@dataclass(frozen=True)
class DraftPage:
    drafts: list[DraftSummary]
    total: Total


def sent_mail(sent: results.Sent) -> SentMail:
    return made(
        SentMail,
        sent,
        message_id=sent.id,
        is_held=is_held(sent.hold),
        hold=wait(sent.hold),
        what_happens_next=next_step(sent.status, sent.hold),
    )


def message_status(message: results.Message) -> MessageStatus:
    delimiters = Delimiters()
    note = None if message.hold is None else message.hold.note
    return made(
        MessageStatus,
        message,
        notice=delimiters.notice,
        message_id=message.id,
        is_held=is_held(message.hold),
        hold=wait(message.hold),
        note=None if note is None else delimiters.wrap(note),
        recipients=[
            made(RecipientStatus, each, last_reply=delimiters.wrap(each.last_reply))
            for each in message.recipients
        ],
        what_happens_next=next_step(message.status, message.hold),
    )


def is_held(hold: results.Hold | None) -> bool:
    return hold is not None and hold.state == "held"


def wait(hold: results.Hold | None) -> Wait | None:
    return None if hold is None else made(Wait, hold)


def next_step(status: str, hold: results.Hold | None) -> str:
    """Return what happens next, in words: a model that is told does not try to do it itself."""
    if hold is not None and hold.state in ENDED:
        return ENDED[hold.state]
    if status in FATES:
        return FATES[status]
    if hold is not None and hold.state == "held":
        return held_step(hold)
    if hold is not None and hold.state == "scheduled" and hold.send_at is not None:
        return f"It is sent at {written(hold.send_at)}. Until then cancel_message stops it."
    return ON_ITS_WAY


def held_step(hold: results.Hold) -> str:
    if hold.reasons == ["paused"]:
        return "Sending is paused. It is sent when the pause ends; do not send it again."
    until = (
        "" if hold.expires_at is None else f" If nobody does by {written(hold.expires_at)}, it is never sent."
    )
    return (
        f"It is held ({', '.join(hold.reasons)}) and not sent: a person has to approve it."
        f"{_carried(hold)}{until} Do not send it again; wait_for_decision waits for it."
    )


def _carried(hold: results.Hold) -> str:
    """Return what came from somebody else, without the values: their authors are strangers."""
    if not hold.origins:
        return ""
    named = dict.fromkeys(f"{each.kind} of {each.message_id}" for each in hold.origins)
    return f" It carries what came from somebody else than its recipients: {', '.join(named)}."


def draft_alone(draft: results.Draft) -> DraftSummary:
    return draft_summary(draft, Delimiters())


def draft_page(page: results.Page[results.Draft]) -> DraftPage:
    delimiters = Delimiters()
    return DraftPage([draft_summary(draft, delimiters) for draft in page.data], page.total)


def draft_summary(draft: results.Draft, delimiters: Delimiters) -> DraftSummary:
    by = draft.created_by
    return made(
        DraftSummary,
        draft,
        notice=delimiters.notice,
        draft_id=draft.id,
        written_by="" if by is None else by.name or by.id,
        files=[file.filename for file in draft.attachments],
        content=delimiters.wrap(draft_as_text(draft)),
    )


def draft_as_text(draft: results.Draft) -> str:
    lines = [f"To: {', '.join(draft.to)}"]
    lines += [f"Cc: {', '.join(draft.cc)}"] if draft.cc else []
    lines += [f"Bcc: {', '.join(draft.bcc)}"] if draft.bcc else []
    lines += [f"Reply-To: {draft.reply_to}"] if draft.reply_to else []
    lines += [f"{name}: {value}" for name, value in draft.headers.items()]
    lines += [f"Subject: {draft.subject or ''}"]
    return "\n".join([*lines, "", cut(draft.body or "", DRAFT_LIMIT_CHARACTERS)])
