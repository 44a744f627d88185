"""postroom approvals …: what waits for a person, shown as it will leave, and the decision."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, OfInbox, OfPod, command, group
from postroom_client.cli.desk import Desk
from postroom_client.cli.mailbox.messages import MessageArgument, show_message

if TYPE_CHECKING:
    from postroom_client.results import Approval, Hold, Message, Page

app = group("Sends that wait for a person to decide.")

Note = Annotated[str | None, typer.Option(help="Why; kept, and shown in the event.")]
State = Literal["held", "scheduled", "approved", "released", "rejected", "expired", "cancelled"]

WHY = {
    "always": "every send of this sender waits",
    "strangers": "somebody who never wrote to this inbox is a recipient",
    "attachments": "it carries files",
    "links": "it holds links",
    "risk": "the thread holds a message that was found suspicious",
    "overPerDay": "the inbox has sent its share of the day",
    "key": "the key may write, but not send",
    "paused": "sending is paused; it goes when the pause ends",
}


@command(app, "list")
def list_all(
    desk: Desk,
    state: Annotated[State, typer.Option(help="Those in this state.")] = "held",
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """List what waits for a decision, oldest first."""
    from postroom_client.calls import calls

    listing = calls.list_approvals(state=state, inbox_id=inbox_id, pod_id=pod_id, limit=limit, offset=offset)
    desk.show(listing, _show_page)


@command(app, "show")
def show(desk: Desk, message_id: MessageArgument) -> None:
    """Show all of what will be sent, and why it was held."""
    from postroom_client.calls import calls

    raw, message = desk.carry_out(calls.get_message(message_id), None)
    desk.show_result(raw, message, lambda shown: _show_whole(desk, shown))


@command(app, "approve")
def approve(
    desk: Desk,
    message_id: MessageArgument,
    content_hash: Annotated[
        str | None, typer.Option(help="Of the content that was seen; without it you are shown it, and asked.")
    ] = None,
    note: Note = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let a held message go."""
    from postroom_client.calls import calls

    seen = content_hash or _look(desk, message_id, yes=yes)
    desk.show(calls.approve_message(message_id, seen, note=note), _show_decided)


@command(app, "reject")
def reject(desk: Desk, message_id: MessageArgument, note: Note = None) -> None:
    """Refuse a held message, for good."""
    from postroom_client.calls import calls

    desk.show(calls.reject_message(message_id, note=note), _show_decided)


def _look(desk: Desk, message_id: str, *, yes: bool) -> str:
    """The hash of the content, once a person has seen it and said yes."""
    from postroom_client.calls import calls
    from postroom_client.errors import NotHeld

    message = desk.ask(calls.get_message(message_id))
    if message.hold is None:
        raise NotHeld("This message does not wait for a decision.")
    if not yes and output.can_ask():
        _show_whole(desk, message)
    output.confirm(f"Send this to {len(message.recipients)} recipient(s)?", yes=yes)
    return message.hold.content_hash


def _show_whole(desk: Desk, message: "Message") -> None:
    """Nothing of a mail moves the cursor, hides or reorders what is read: every part is escaped."""
    if message.hold is not None:
        output.print_human(output.record(_hold_lines(message.hold)), "")
    show_message(message)
    if own := _own_headers(desk, message):
        output.print_human("", output.record(own))
    if message.body_html:
        output.print_human("", "As HTML:")
        output.print_text(message.body_html.strip())


def _hold_lines(hold: "Hold") -> list[tuple[str, str]]:
    lines = [("state", hold.state)]
    lines += [("why", f"{reason}: {WHY[reason]}" if reason in WHY else reason) for reason in hold.reasons]
    lines += [("expires", f"{hold.expires_at:%Y-%m-%d %H:%M %Z}")] if hold.expires_at else []
    lines += [("send at", f"{hold.send_at:%Y-%m-%d %H:%M %Z}")] if hold.send_at else []
    lines += [("decided by", hold.decided_by.name or hold.decided_by.id)] if hold.decided_by else []
    lines += [("note", hold.note)] if hold.note else []
    return [*lines, ("content hash", hold.content_hash)]


def _own_headers(desk: Desk, message: "Message") -> list[tuple[str, str]]:
    """What the sender added, and where answers go: both stand in the mail alone."""
    from email import message_from_bytes

    from postroom_client.calls import calls

    raw = desk.ask(calls.get_raw_message(message.id))
    head = message_from_bytes(raw.partition(b"\r\n\r\n")[0])
    return [
        (name, _decoded(str(value)))
        for name, value in head.items()
        if name.lower().startswith(("x-", "reply-to"))
    ]


def _decoded(value: str) -> str:
    from email.errors import HeaderParseError
    from email.header import decode_header, make_header

    try:
        return str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, ValueError):
        return value


def _show_decided(message: "Message") -> None:
    state = "" if message.hold is None else message.hold.state
    pairs = [("message", message.id), ("status", message.status), ("decision", state)]
    output.print_human(output.record(pairs))


def _show_page(page: "Page[Approval]") -> None:
    if not page.data:
        output.note("Nothing here waits for a decision.")
        return
    output.print_human(
        output.table(("ID", "STATE", "WHY", "SINCE", "TO", "SUBJECT"), [_row(each) for each in page.data])
    )
    output.note_rest(page)
    output.note("See one whole: postroom approvals show MESSAGE_ID")


def _row(item: "Approval") -> output.Row:
    message, hold = item.message, item.hold
    why = ", ".join(hold.reasons)
    return message.id, hold.state, why, output.ago(message.created_at), message.header_to, message.subject
