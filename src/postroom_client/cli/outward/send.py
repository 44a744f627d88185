"""postroom send, postroom reply."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Hold, Sent
    from postroom_client.transport.exchange import Call, Steps

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
ReplyAll = Annotated[
    bool, typer.Option("--reply-all", help="To everybody whom the last mail of the thread names.")
]
Forward = Annotated[
    str | None, typer.Option("--forward", metavar="MESSAGE_ID", help="Pass this message on, with its files.")
]
SendAt = Annotated[
    str | None, typer.Option("--send-at", metavar="MOMENT", help="Not before: 2026-11-14T10:05:00Z.")
]
Undo = Annotated[
    int, typer.Option("--undo", metavar="SECONDS", min=0, max=120, help="Can be cancelled for so long.")
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME:VALUE", help="A header field, X-… (repeatable)."),
]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="NAME=VALUE", help="Kept and shown, never sent (repeatable)."),
]


def send(
    desk: Desk,
    body: Body,
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Recipient (repeatable); needed unless --reply-all is given."),
    ] = None,
    subject: Annotated[
        str | None, typer.Option(help="Needed unless --thread-id or --forward is given.")
    ] = None,
    thread_id: Annotated[str | None, typer.Option(help="Reply inside this thread.")] = None,
    reply_all: ReplyAll = False,
    forward: Forward = None,
    no_quote: NoQuote = False,
    attach: Attach = None,
    cc: Cc = None,
    bcc: Bcc = None,
    body_html: BodyHtml = None,
    reply_to: ReplyTo = None,
    automated: Automated = False,
    send_at: SendAt = None,
    undo: Undo = 0,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    idempotency_key: IdempotencyKey = None,
    inbox_id: InboxId = None,
) -> None:
    """Send a mail."""
    from postroom_client.calls import calls

    if subject is None and thread_id is None and forward is None:
        raise typer.BadParameter("--subject is needed unless --thread-id or --forward is given")
    if not to and not reply_all:
        raise typer.BadParameter("--to is needed unless --reply-all is given")
    if reply_all and thread_id is None:
        raise typer.BadParameter("--reply-all answers a thread: give --thread-id")
    call = calls.send(
        desk.require_inbox_id(inbox_id),
        to=to or (),
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
        reply_all=reply_all,
        forward_of=forward,
        headers=read_pairs("--header", header, ":"),
        metadata=read_pairs("--metadata", metadata, "="),
        send_at=send_at,
        undo_seconds=undo,
        idempotency_key=idempotency_key,
    )
    _send_with_progress(desk, call)


def reply(
    desk: Desk,
    thread_id: Annotated[str, typer.Argument(help="Id of the thread, thr_…", show_default=False)],
    body: Body,
    reply_all: ReplyAll = False,
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
    from postroom_client.calls import sending

    answer = sending.reply_all if reply_all else sending.reply
    steps = answer(
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


def read_pairs(option: str, given: list[str] | None, mark: str) -> dict[str, str] | None:
    """`NAME:VALUE` or `NAME=VALUE`, each once."""
    if not given:
        return None
    pairs = [
        (name.strip(), value.strip())
        for name, found, value in (each.partition(mark) for each in given)
        if found
    ]
    if len(dict(pairs)) < len(given):
        raise typer.BadParameter(f"{option} takes NAME{mark}VALUE, each name once")
    return dict(pairs)


def _send_with_progress(desk: Desk, work: "Call[Sent] | Steps[Sent]") -> None:
    with output.progress("Sending") as on_progress:
        raw, sent = desk.carry_out(work, on_progress)
    desk.show_result(raw, sent, show_sent)


def show_sent(sent: "Sent") -> None:
    pairs = [("message", sent.id), ("thread", sent.thread_id), ("status", sent.status)]
    if sent.hold is not None:
        pairs.append(("waits", _why(sent.hold)))
    output.print_human(output.record(pairs))
    output.note(f"See what became of it: postroom messages get {sent.id}")


def _why(hold: "Hold") -> str:
    if hold.state == "held":
        if hold.reasons == ["paused"]:
            return "held: sending is paused, and it leaves when the pause ends"
        return f"held ({', '.join(hold.reasons)}): it leaves only when somebody approves it"
    return hold.state if hold.send_at is None else f"until {hold.send_at:%Y-%m-%d %H:%M:%S %Z}"
