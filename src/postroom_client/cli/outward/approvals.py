"""postroom approvals get, approve: show a held message as it will leave, and decide it."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.mailbox.messages import MessageArgument, show_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postroom_client.results import Approval, Hold, Message, Page

app = GROUPS["approvals"]

Note = Annotated[str | None, typer.Option(help="Why; saved, and shown in the event.")]

# Only an email that is redirected has this field. It keeps its bytes, also what is shown nowhere else.
_RESENT = re.compile(rb"^resent-message-id:", re.IGNORECASE | re.MULTILINE)
_ENCODED_LINE = re.compile(rb"^[A-Za-z0-9+/=]{60,}+(?:\r\n|\Z)", re.MULTILINE)
_OMITTED = b"[encoded lines]\r\n"
_REPEATED = re.compile(rb"(?:\[encoded lines\]\r\n){2,}+")

WHY = {
    "always": "every send waits for approval",
    "strangers": "a recipient never wrote to this inbox",
    "attachments": "it carries files",
    "links": "it contains links",
    "risk": "the thread has a message that was judged suspicious",
    "overPerDay": "the inbox is over its daily count",
    "canary": "it contains the canary token that only this inbox's agent reads",
    "key": "the key may write, but not send",
    "key_revoked": "the key that sent it was revoked since",
    "origin": "it carries what came from somebody else than its recipients",
    "paused": "sending is paused; it is sent when the pause ends",
}


@command(app, "get")
def show(context: CommandContext, message_id: MessageArgument) -> None:
    """Show everything that will be sent, and why it was held."""
    from postroom_client.calls import calls

    raw, message = context.carry_out(calls.get_message(message_id), None)
    context.show_result(raw, message, lambda shown: _show_whole(context, shown))


@command(app, "approve")
def approve(
    context: CommandContext,
    message_id: MessageArgument,
    content_hash: Annotated[
        str | None,
        typer.Option(help="Hash of the content you saw; without it you are shown the email and asked."),
    ] = None,
    note: Note = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Approve a held message; it is sent once it has all approvals."""
    from postroom_client.calls import calls

    seen = content_hash or _look(context, message_id, yes=yes)
    call = calls.approve_message(message_id, seen, note=note)
    context.show(call, lambda message: show_decided(context, message))


def _look(context: CommandContext, message_id: str, *, yes: bool) -> str:
    """Return the hash of the content, once a person has seen and confirmed it."""
    from postroom_client.calls import calls
    from postroom_client.errors import NotHeld

    message = context.ask(calls.get_message(message_id))
    if message.hold is None:
        raise NotHeld("This message is not waiting for a decision.")
    if not yes and output.can_ask():
        _show_whole(context, message)
    output.confirm(f"Send this to {len(message.recipients)} recipient(s)?", yes=yes)
    return message.hold.content_hash


def _show_whole(context: CommandContext, message: "Message") -> None:
    """Print every part, escaped: no text of an email moves the cursor, hides or reorders anything."""
    from postroom_client.calls import calls

    if message.hold is not None:
        output.print_human(output.record(_hold_lines(message.hold)), "")
    show_message(context, message)
    raw = context.ask(calls.get_raw_message(message.id))
    if own := _own_headers(raw):
        output.print_human("", output.record(own))
    if message.body_html:
        output.print_human("", "As HTML:")
        output.print_text(message.body_html.strip())
    if _RESENT.search(raw.partition(b"\r\n\r\n")[0]):
        output.print_human("", "It is redirected as it came:")
        shown = _REPEATED.sub(_OMITTED, _ENCODED_LINE.sub(_OMITTED, raw))
        output.print_text(shown.decode("utf-8", "replace").strip())
        for kind, text in _encoded_texts(raw):
            output.print_human("", f"It also has this text ({kind}):")
            output.print_text(text.strip())


def _hold_lines(hold: "Hold") -> list[tuple[str, str]]:
    lines = [("state", hold.state)]
    lines += [("why", f"{reason}: {WHY[reason]}" if reason in WHY else reason) for reason in hold.reasons]
    lines += output.origins(hold.origins)
    lines += [("expires", f"{hold.expires_at:%Y-%m-%d %H:%M %Z}")] if hold.expires_at else []
    lines += [("send at", f"{hold.send_at:%Y-%m-%d %H:%M %Z}")] if hold.send_at else []
    lines += [("decided by", hold.decided_by.name or hold.decided_by.id)] if hold.decided_by else []
    lines += [("note", hold.note)] if hold.note else []
    return [*lines, ("content hash", hold.content_hash)]


def _own_headers(raw: bytes) -> list[tuple[str, str]]:
    """Return the headers that only the source has: what it answers, Reply-To, and those of the sender."""
    from email import message_from_bytes

    head = message_from_bytes(raw.partition(b"\r\n\r\n")[0])
    return [
        (name, _decoded(str(value)))
        for name, value in head.items()
        if name.lower().startswith(("x-", "reply-to", "in-reply-to", "references"))
    ]


def _encoded_texts(raw: bytes) -> list[tuple[str, str]]:
    """Return type and text of each part that is encoded in the source."""
    from email import message_from_bytes

    parts = [part for part in message_from_bytes(raw).walk() if part.get_content_maintype() == "text"]
    found = [(part, part.get_payload(decode=True)) for part in parts]
    return [
        (part.get_content_type(), _text(content, part.get_content_charset()))
        for part, content in found
        if isinstance(content, bytes) and (part["Content-Transfer-Encoding"] or _ENCODED_LINE.search(content))
    ]


def _text(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _decoded(value: str) -> str:
    from email.errors import HeaderParseError
    from email.header import decode_header, make_header

    try:
        return str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, ValueError):
        return value


def show_decided(context: CommandContext, message: "Message") -> None:
    state = "" if message.hold is None else message.hold.state
    pairs = [("message", message.id), ("status", message.status), ("decision", state)]
    output.print_human(output.record(pairs))


def say_how_to_see_one(context: CommandContext, page: "Page[Approval]", values: "Mapping[str, Any]") -> None:
    if page.data and not context.is_json:
        output.note("Show one in full: postroom approvals get MESSAGE_ID")
