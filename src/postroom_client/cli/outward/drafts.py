"""Show drafts and templates."""

from typing import TYPE_CHECKING

from postroom_client.cli import output
from postroom_client.cli.accounts.shown import named
from postroom_client.cli.context import CommandContext

if TYPE_CHECKING:
    from postroom_client.results import Draft, Template


def show_draft(context: CommandContext, draft: "Draft") -> None:
    pairs = [
        ("id", draft.id),
        ("version", str(draft.version)),
        ("written by", named(draft.created_by)),
        ("to", ", ".join(draft.to)),
        ("cc", ", ".join(draft.cc)),
        ("bcc", ", ".join(draft.bcc)),
        ("reply to", draft.reply_to or ""),
        ("subject", draft.subject or ""),
        ("thread", draft.thread_id or ""),
        ("reply to all", "yes" if draft.reply_all else ""),
        ("forward of", draft.forward_of or ""),
        ("send at", draft.send_at or ""),
        *(("header", f"{name}: {value}") for name, value in draft.headers.items()),
        *(("metadata", f"{name}={value}") for name, value in draft.metadata.items()),
        *(("attachment", f"{file.filename} ({output.size(file.size_bytes)})") for file in draft.attachments),
    ]
    output.print_human(output.record([(name, value) for name, value in pairs if value]))
    _show_texts(draft.body or "", draft.body_html)


def show_template(context: CommandContext, template: "Template") -> None:
    output.print_fields(("id", "name", "inbox inbox_id", "fields", "subject"), template)
    _show_texts(template.body, template.body_html)


def _show_texts(body: str, body_html: str | None) -> None:
    output.print_human("")
    output.print_text(body.strip())
    if body_html:
        output.print_human("\nAnd as HTML:", "")
        output.print_text(body_html.strip())
