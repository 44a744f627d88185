"""postroom messages …"""

import base64
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, Limit, Offset, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Message, Page

app = group("Messages, in and out.")

MessageArgument = Annotated[str, typer.Argument(help="Id of the message, msg_…", show_default=False)]


@command(app, "list")
def list_all(
    desk: Desk,
    direction: Annotated[
        Literal["inbound", "outbound"] | None, typer.Option(help="Only these; both by default.")
    ] = None,
    blocked: Annotated[bool, typer.Option("--blocked", help="Also what a policy stopped.")] = False,
    limit: Limit = 50,
    offset: Offset = 0,
    inbox_id: InboxId = None,
) -> None:
    """List the messages of an inbox across its threads, newest first."""
    from postroom_client.calls import calls

    listing = calls.list_messages(
        desk.require_inbox_id(inbox_id),
        direction=direction,
        include_blocked=blocked,
        limit=limit,
        offset=offset,
    )
    desk.show(listing, _show_messages)


@command(app, "get")
def get(desk: Desk, message_id: MessageArgument) -> None:
    """Show a message."""
    from postroom_client.calls import calls

    desk.show(calls.get_message(message_id), show_message)


@command(app, "raw")
def raw(desk: Desk, message_id: MessageArgument) -> None:
    """Print a message as it came (RFC 5322): its bytes when piped, escaped on a terminal."""
    from postroom_client.calls import calls

    content = desk.ask(calls.get_raw_message(message_id))
    if desk.wants_json:
        output.print_json(output.encode({"id": message_id, "raw": base64.b64encode(content).decode()}))
    elif output.is_terminal():
        output.print_text(content.decode(errors="replace"))
    else:
        sys.stdout.buffer.write(content)


@command(app, "retry")
def retry(desk: Desk, message_id: MessageArgument) -> None:
    """Deliver again, now."""
    from postroom_client.calls import calls

    desk.show(calls.retry_message(message_id), show_message)


@command(app, "cancel")
def cancel(desk: Desk, message_id: MessageArgument) -> None:
    """Give up the deliveries that still wait."""
    from postroom_client.calls import calls

    desk.show(calls.cancel_message(message_id), show_message)


@command(app, "reschedule")
def reschedule(
    desk: Desk,
    message_id: MessageArgument,
    send_at: Annotated[str, typer.Argument(metavar="MOMENT", help="2026-11-14T10:05:00Z.")],
) -> None:
    """Give a scheduled message another moment."""
    from postroom_client.calls import calls

    desk.show(calls.reschedule_message(message_id, send_at), show_message)


@command(app, "release")
def release(desk: Desk, message_id: MessageArgument) -> None:
    """Let in what a policy stopped, as if it came now."""
    from postroom_client.calls import calls

    desk.show(calls.release_message(message_id), show_message)


@command(app, "delete")
def delete(
    desk: Desk,
    message_id: MessageArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a message; what has not left never does."""
    from postroom_client.calls import calls

    output.confirm(f"Delete {message_id}?", yes=yes)
    desk.ask(calls.delete_message(message_id))
    desk.done({"id": message_id, "deleted": True}, f"{message_id} is deleted.")


def show_message(message: "Message") -> None:
    output.print_human(output.record(_head(message)), "")
    output.print_text(message.body_text.strip())


def _head(message: "Message") -> list[tuple[str, str]]:
    pairs = [
        ("id", message.id),
        ("thread", message.thread_id),
        ("from", message.from_addr),
        ("to", message.header_to or message.to_addr),
        ("cc", ", ".join(message.cc)),
        ("subject", message.subject),
        ("when", output.ago(message.created_at)),
        ("status", message.status),
        ("hold", "" if message.hold is None else message.hold.state),
        ("sender checks", _checks(message)),
        ("kind", message.category or ""),
        ("verdict", _verdict(message)),
        ("codes", ", ".join(message.codes)),
    ]
    pairs += [
        (link.purpose, link.url) for link in message.link_details if link.purpose in ("verify", "signin")
    ]
    pairs += [("appointment", _appointment(message))]
    pairs += [
        ("attachment", f"{file.filename} ({output.size(file.size_bytes)})") for file in message.attachments
    ]
    pairs += [
        ("delivery", f"{recipient.address}: {recipient.state} {recipient.last_reply}".rstrip())
        for recipient in message.recipients
    ]
    pairs += [("metadata", f"{name}={value}") for name, value in message.metadata.items()]
    return [(name, value) for name, value in pairs if value]


def _verdict(message: "Message") -> str:
    """What speaks against it, with the words that do."""
    if message.direction == "outbound" or message.verdict == "":
        return ""
    if message.verdict is None:
        return "not examined yet"
    why = "; ".join(f"{signal.reason} ({signal.excerpt})" for signal in message.signals)
    return f"{message.verdict}: {why}" if message.is_flagged else message.verdict


def _appointment(message: "Message") -> str:
    found = message.calendar
    if found is None:
        return ""
    answer = "an answer is expected" if found.answer_expected else ""
    parts = (found.summary, f"{found.start} to {found.end}", found.location, found.organizer, answer)
    return ", ".join(part for part in parts if part)


def _checks(message: "Message") -> str:
    auth = message.auth
    return "" if auth is None else f"spf {auth.spf}, dkim {auth.dkim}, dmarc {auth.dmarc}"


def _show_messages(page: "Page[Message]") -> None:
    if not page.data:
        output.note("No message here. Send one: postroom send --to ADDRESS --subject TEXT --body TEXT")
        return
    rows = [_row(message) for message in page.data]
    output.print_human(output.table(("ID", "", "STATUS", "WHEN", "WITH", "SUBJECT"), rows))
    output.note_rest(page)


def _row(message: "Message") -> output.Row:
    is_inbound = message.direction == "inbound"
    other = message.from_addr if is_inbound else message.header_to
    arrow = "in" if is_inbound else "out"
    return message.id, arrow, message.status, output.ago(message.created_at), other, message.subject
