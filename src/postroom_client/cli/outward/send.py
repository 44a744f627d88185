"""postroom send, postroom reply: both take every field of a send as an option."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.calls.operations import OPERATIONS
from postroom_client.calls.parameters import Parameter
from postroom_client.cli import options, output
from postroom_client.cli.command import register
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app

if TYPE_CHECKING:
    from postroom_client.results import Hold, Sent
    from postroom_client.transport.exchange import Call, Steps

FIELDS = {each.name: each for each in OPERATIONS["send"]}
THREAD = Parameter("thread_id", "text", "Id of the thread, thr_…, or of a message in it.", is_required=True)
TEXT = inspect.Parameter(
    "text",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None, typer.Argument(help=f"The reply, as --body. {options.READ_FROM}", show_default=False)
    ],
)
SET_BY_A_REPLY = ("inbox_id", "to", "subject", "thread_id", "forward_of")
REPLY_FIELDS = [each for each in FIELDS.values() if each.name not in SET_BY_A_REPLY]
SEND_NAMES = {
    "attachments": "attach",
    "forward_of": "forward",
    "include_quote": "no_quote",
    "undo_seconds": "undo",
}


def send(context: CommandContext, **values: Any) -> None:
    """Send an email."""
    from postroom_client.calls import calls

    fields = options.given(FIELDS.values(), values)
    if not fields.keys() & {"subject", "thread_id", "forward_of", "template"}:
        raise typer.BadParameter("--subject is needed unless --thread-id, --forward or --template is given")
    _require_text(fields)
    if not fields.keys() & {"to", "reply_all"}:
        raise typer.BadParameter("--to is needed unless --reply-all is given")
    if "reply_all" in fields and "thread_id" not in fields:
        raise typer.BadParameter("--reply-all needs --thread-id")
    fields["inbox_id"] = context.require_inbox_id(fields.get("inbox_id"))
    _send_with_progress(context, calls.send(**fields))


def reply(context: CommandContext, thread_id: str, text: str | None, **values: Any) -> None:
    """Reply to the newest email of a thread, and mark the thread as read."""
    from postroom_client.calls import calls, sending

    if text is not None and values.get("body") is not None:
        raise typer.BadParameter("the reply is given twice: as an argument and as --body")
    values["body"] = values.get("body") if text is None else text
    fields = options.given(REPLY_FIELDS, values)
    _require_text(fields)
    if thread_id.startswith("msg_"):
        thread_id = context.ask(calls.get_message(thread_id)).thread_id
    answer = sending.reply_all if fields.pop("reply_all", False) else sending.reply
    _send_with_progress(context, answer(thread_id, **fields))


def _require_text(fields: Mapping[str, Any]) -> None:
    if not fields.keys() & {"body", "template"}:
        raise typer.BadParameter("the text is missing: give --body, or --template")


def _send_with_progress(context: CommandContext, work: "Call[Sent] | Steps[Sent]") -> None:
    with output.progress("Sending") as on_progress:
        raw, sent = context.carry_out(work, on_progress)
    context.show_result(raw, sent, lambda shown: show_sent(context, shown))


def show_sent(context: CommandContext, sent: "Sent") -> None:
    pairs = [("message", sent.id), ("thread", sent.thread_id), ("status", sent.status)]
    if sent.hold is not None:
        pairs += [("waits", _why(sent.hold)), *output.origins(sent.hold.origins)]
    output.print_human(output.record(pairs))
    output.note(f"See its status: postroom messages get {sent.id}")


def _why(hold: "Hold") -> str:
    if hold.state == "held":
        if hold.reasons == ["paused"]:
            return "held: sending is paused; it is sent when the pause ends"
        return f"held ({', '.join(hold.reasons)}): it is sent only after approval"
    return hold.state if hold.send_at is None else f"until {hold.send_at:%Y-%m-%d %H:%M:%S %Z}"


register(app, "send", send, [options.option(each, SEND_NAMES, FIELDS) for each in FIELDS.values()])
answering = [options.option(each, SEND_NAMES, FIELDS) for each in REPLY_FIELDS]
register(app, "reply", reply, [options.argument(THREAD), TEXT, *answering])
