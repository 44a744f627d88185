"""postroom send, postroom reply."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.exchange import Call, Steps
    from postroom_client.results import Sent

Body = Annotated[str, typer.Option(help="Text or HTML; - reads it from stdin, @FILE from a file.")]
BodyHtml = Annotated[str | None, typer.Option(help="HTML, where it must differ from --body; - or @FILE.")]
Attach = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="File to attach (repeatable).", exists=True, dir_okay=False, readable=True
    ),
]
Cc = Annotated[list[str] | None, typer.Option(metavar="ADDRESS", help="Also to this address (repeatable).")]
Bcc = Annotated[
    list[str] | None, typer.Option(metavar="ADDRESS", help="Also to this address, unseen (repeatable).")
]
ReplyTo = Annotated[str | None, typer.Option(help="Where answers should go.")]
NoQuote = Annotated[bool, typer.Option("--no-quote", help="Leave out the quoted copy of the last message.")]
Automated = Annotated[bool, typer.Option("--automated", help="Say in the mail that a program sent it.")]
IdempotencyKey = Annotated[
    str | None, typer.Option(help="The same key sends only once in 24 hours; a new one by default.")
]


def send(
    desk: Desk,
    to: Annotated[list[str], typer.Option(metavar="ADDRESS", help="Recipient (repeatable).")],
    body: Body,
    subject: Annotated[str | None, typer.Option(help="Needed unless --thread-id is given.")] = None,
    thread_id: Annotated[str | None, typer.Option(help="Reply inside this thread.")] = None,
    no_quote: NoQuote = False,
    attach: Attach = None,
    cc: Cc = None,
    bcc: Bcc = None,
    body_html: BodyHtml = None,
    reply_to: ReplyTo = None,
    automated: Automated = False,
    idempotency_key: IdempotencyKey = None,
    inbox_id: InboxId = None,
) -> None:
    """Send a mail."""
    from postroom_client import sending

    if subject is None and thread_id is None:
        raise typer.BadParameter("--subject is needed unless --thread-id is given")
    call = sending.send(
        desk.require_inbox_id(inbox_id),
        to=to,
        body=read_text(body),
        subject=subject,
        cc=cc or (),
        bcc=bcc or (),
        body_html=None if body_html is None else read_text(body_html),
        thread_id=thread_id,
        include_quote=not no_quote,
        reply_to=reply_to,
        attachments=attach or (),
        automated=automated,
        idempotency_key=idempotency_key,
    )
    _send_with_progress(desk, call)


def reply(
    desk: Desk,
    thread_id: Annotated[str, typer.Argument(help="Id of the thread, thr_…", show_default=False)],
    body: Body,
    no_quote: NoQuote = False,
    attach: Attach = None,
    cc: Cc = None,
    bcc: Bcc = None,
    body_html: BodyHtml = None,
    reply_to: ReplyTo = None,
    automated: Automated = False,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Answer the last mail of a thread. It goes to whom an answer belongs; the thread is then read."""
    from postroom_client import sending

    steps = sending.reply(
        thread_id,
        read_text(body),
        cc=cc or (),
        bcc=bcc or (),
        body_html=None if body_html is None else read_text(body_html),
        include_quote=not no_quote,
        reply_to=reply_to,
        attachments=attach or (),
        automated=automated,
        idempotency_key=idempotency_key,
    )
    _send_with_progress(desk, steps)


def add_to(app: typer.Typer) -> None:
    command(app, "send")(send)
    command(app, "reply")(reply)


def read_text(value: str) -> str:
    """`-` is stdin, `@FILE` a file, and `@@` an @ that starts the text itself."""
    try:
        if value == "-":
            return sys.stdin.read()
        if value.startswith("@@"):
            return value[1:]
        return Path(value[1:]).read_text() if value.startswith("@") else value
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value} cannot be read as text: {error}") from None


def _send_with_progress(desk: Desk, work: "Call[Sent] | Steps[Sent]") -> None:
    with output.progress("Sending") as on_progress:
        raw, sent = desk.carry_out(work, on_progress)
    desk.show_result(raw, sent, _show_sent)


def _show_sent(sent: "Sent") -> None:
    pairs = [("message", sent.id), ("thread", sent.thread_id), ("status", sent.status)]
    output.print_human(output.record(pairs))
    output.note(f"See what became of it: postroom messages get {sent.id}")
