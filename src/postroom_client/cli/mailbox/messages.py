"""postroom messages raw, and how a message is shown."""

import base64
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from postroom_client.results import Message, ReceiptDecision, ReceiptDelivery

app = GROUPS["messages"]

MessageArgument = Annotated[str, typer.Argument(help="Id of the message, msg_…", show_default=False)]

RECEIPT: output.Columns = (
    "message message.id",
    "status message.status",
    "content content.content_hash",
    ("decisions", lambda receipt: ", ".join(f"{each.action} by {_who(each)}" for each in receipt.decisions)),
    ("deliveries", lambda receipt: ", ".join(_delivered(each) for each in receipt.deliveries)),
    "issued issued_at",
    "key key_id",
)


@command(app, "raw")
def raw(context: CommandContext, message_id: MessageArgument) -> None:
    """Print a message as it came (RFC 5322): its bytes when piped, escaped on a terminal."""
    from postroom_client.calls import calls

    content = context.ask(calls.get_raw_message(message_id))
    if context.wants_json:
        output.print_json(output.encode({"id": message_id, "raw": base64.b64encode(content).decode()}))
    elif output.is_terminal():
        output.print_text(content.decode(errors="replace"))
    else:
        sys.stdout.buffer.write(content)


def show_message(context: CommandContext, message: "Message") -> None:
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
        ("imported", "yes: this server did not receive it" if message.imported else ""),
        ("labels", ", ".join(message.labels)),
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
    pairs += output.origins(message.origins) if message.hold is None else []
    pairs += [
        ("attachment", f"{file.filename} ({output.size(file.size_bytes)})") for file in message.attachments
    ]
    pairs += [
        ("delivery", f"{recipient.address}: {recipient.state} {recipient.last_reply}".rstrip())
        for recipient in message.recipients
    ]
    pairs += [("bcc", ", ".join(message.bcc)), ("reply to", message.reply_to or "")]
    pairs += [("header", f"{name}: {value}") for name, value in message.headers.items()]
    pairs += [("metadata", f"{name}={value}") for name, value in message.metadata.items()]
    return [(name, value) for name, value in pairs if value]


def _verdict(message: "Message") -> str:
    """Return the verdict with its reasons."""
    if message.direction == "outbound" or message.verdict == "":
        return ""
    if message.verdict is None:
        return "not examined yet"
    why = "; ".join(f"{signal.reason} ({signal.excerpt})" for signal in message.signals)
    return f"{message.verdict}: {why}" if message.is_flagged else message.verdict


def _appointment(message: "Message") -> str:
    from postroom_client.appointments import status_line

    found = message.calendar
    if found is None:
        return ""
    answer = "a reply is expected" if found.answer_expected else ""
    when = f"{found.start} to {found.end}"
    parts = (found.summary, when, found.location, found.organizer, status_line(found), answer, found.join_url)
    return ", ".join(part for part in parts if part)


def _checks(message: "Message") -> str:
    auth = message.auth
    return "" if auth is None else f"spf {auth.spf}, dkim {auth.dkim}, dmarc {auth.dmarc}"


def _who(decision: "ReceiptDecision") -> str:
    return f"{decision.actor.name or decision.actor.id} ({decision.method})"


def _delivered(delivery: "ReceiptDelivery") -> str:
    return f"{delivery.recipient}: {delivery.state} {delivery.reply}".rstrip()


def direction(message: "Message") -> str:
    return "in" if message.direction == "inbound" else "out"


def other_side(message: "Message") -> str:
    return message.from_addr if message.direction == "inbound" else message.header_to
