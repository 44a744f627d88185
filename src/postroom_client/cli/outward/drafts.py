"""postroom drafts …"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, Limit, Offset, command, group
from postroom_client.cli.desk import Desk
from postroom_client.cli.outward.send import (
    Attach,
    Bcc,
    Cc,
    Forward,
    HeaderOption,
    IdempotencyKey,
    MetadataOption,
    ReplyAll,
    ReplyTo,
    SendAt,
    Undo,
    read_pairs,
    read_text,
    show_sent,
)

if TYPE_CHECKING:
    from postroom_client.results import Draft, Page

app = group("Mails that are not sent yet.")

DraftArgument = Annotated[str, typer.Argument(help="Id of the draft, drf_…", show_default=False)]
To = Annotated[list[str] | None, typer.Option(metavar="ADDRESS", help="Recipient (repeatable).")]
Subject = Annotated[str | None, typer.Option(help="The subject.")]
Body = Annotated[str | None, typer.Option(help="Text or HTML; - reads it from stdin, @FILE from a file.")]
ThreadId = Annotated[str | None, typer.Option(help="Reply inside this thread.")]
FILE = Annotated[
    list[Path],
    typer.Argument(help="Files to attach.", exists=True, dir_okay=False, readable=True, show_default=False),
]


@command(app, "create")
def create(
    desk: Desk,
    to: To = None,
    subject: Subject = None,
    body: Body = None,
    thread_id: ThreadId = None,
    reply_all: ReplyAll = False,
    forward: Forward = None,
    attach: Attach = None,
    cc: Cc = None,
    bcc: Bcc = None,
    reply_to: ReplyTo = None,
    send_at: SendAt = None,
    undo: Undo = 0,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    inbox_id: InboxId = None,
) -> None:
    """Begin a mail; any field may still be missing."""
    from postroom_client.calls import calls

    fields = _given(
        to=to,
        subject=subject,
        body=None if body is None else read_text(body),
        thread_id=thread_id,
        reply_all=reply_all or None,
        forward_of=forward,
        attachments=attach,
        cc=cc,
        bcc=bcc,
        reply_to=reply_to,
        send_at=send_at,
        undo_seconds=undo or None,
        headers=read_pairs("--header", header, ":"),
        metadata=read_pairs("--metadata", metadata, "="),
    )
    desk.show(calls.create_draft(desk.require_inbox_id(inbox_id), **fields), _show)


@command(app, "list")
def list_all(desk: Desk, limit: Limit = 50, offset: Offset = 0, inbox_id: InboxId = None) -> None:
    """List the drafts of an inbox, newest first."""
    from postroom_client.calls import calls

    listing = calls.list_drafts(desk.require_inbox_id(inbox_id), limit=limit, offset=offset)
    desk.show(listing, _show_page)


@command(app, "show")
def show(desk: Desk, draft_id: DraftArgument) -> None:
    """Show a draft."""
    from postroom_client.calls import calls

    desk.show(calls.get_draft(draft_id), _show)


@command(app, "change")
def change(
    desk: Desk,
    draft_id: DraftArgument,
    to: To = None,
    subject: Subject = None,
    body: Body = None,
    cc: Cc = None,
    bcc: Bcc = None,
    reply_to: ReplyTo = None,
    send_at: SendAt = None,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
) -> None:
    """Change what is given of a draft."""
    from postroom_client.calls import calls

    fields = _given(
        to=to,
        subject=subject,
        body=None if body is None else read_text(body),
        cc=cc,
        bcc=bcc,
        reply_to=reply_to,
        send_at=send_at,
        headers=read_pairs("--header", header, ":"),
        metadata=read_pairs("--metadata", metadata, "="),
    )
    desk.show(calls.update_draft(draft_id, **fields), _show)


@command(app, "attach")
def attach_files(desk: Desk, draft_id: DraftArgument, files: FILE) -> None:
    """Attach files to a draft."""
    from postroom_client.calls import calls

    desk.show(calls.add_draft_files(draft_id, files), _show)


@command(app, "detach")
def detach(
    desk: Desk,
    draft_id: DraftArgument,
    filename: Annotated[str, typer.Argument(help="As the draft shows it.", show_default=False)],
) -> None:
    """Take a file off a draft."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_draft_file(draft_id, filename))
    desk.done({"id": draft_id, "filename": filename, "deleted": True}, f"{filename} is off the draft.")


@command(app, "send")
def send(desk: Desk, draft_id: DraftArgument, idempotency_key: IdempotencyKey = None) -> None:
    """Send a draft, which is then gone."""
    from postroom_client.calls import calls

    desk.show(calls.send_draft(draft_id, idempotency_key=idempotency_key), show_sent)


@command(app, "delete")
def delete(desk: Desk, draft_id: DraftArgument) -> None:
    """Throw a draft away."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_draft(draft_id))
    desk.done({"id": draft_id, "deleted": True}, f"{draft_id} is gone.")


def _given(**fields: Any) -> Any:
    return {name: value for name, value in fields.items() if value is not None}


def _show(draft: "Draft") -> None:
    by = "" if draft.created_by is None else draft.created_by.name or draft.created_by.id
    pairs = [
        ("id", draft.id),
        ("written by", by),
        ("to", ", ".join(draft.to)),
        ("cc", ", ".join(draft.cc)),
        ("bcc", ", ".join(draft.bcc)),
        ("subject", draft.subject or ""),
        ("thread", draft.thread_id or ""),
        ("reply to all", "yes" if draft.reply_all else ""),
        ("forward of", draft.forward_of or ""),
        ("send at", draft.send_at or ""),
        *(("header", f"{name}: {value}") for name, value in draft.headers.items()),
        *(("metadata", f"{name}={value}") for name, value in draft.metadata.items()),
        *(("attachment", f"{file.filename} ({output.size(file.size_bytes)})") for file in draft.attachments),
    ]
    output.print_human(output.record([(name, value) for name, value in pairs if value]), "")
    output.print_text((draft.body or "").strip())


def _show_page(page: "Page[Draft]") -> None:
    if not page.data:
        output.note(
            "No draft here. Begin one: postroom drafts create --to ADDRESS --subject TEXT --body TEXT"
        )
        return
    rows = [
        (draft.id, output.ago(draft.updated_at), ", ".join(draft.to), draft.subject or "")
        for draft in page.data
    ]
    output.print_human(output.table(("ID", "CHANGED", "TO", "SUBJECT"), rows))
    output.note_rest(page)
