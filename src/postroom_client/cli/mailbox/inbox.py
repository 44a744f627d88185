"""postroom inboxes use, the default inbox, and how inboxes are shown."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from postroom_client.results import Inbox, Page

app = GROUPS["inboxes"]

InboxArgument = Annotated[str, typer.Argument(help="The inbox: id, address or name.", show_default=False)]


@command(app, "use")
def use(context: CommandContext, inbox_id: InboxArgument) -> None:
    """Make an inbox the default of this profile."""
    from postroom_client.calls import calls

    inbox = context.show(calls.get_inbox(inbox_id), lambda found: show_inbox(context, found))
    make_default(context, inbox.id)


def make_default(context: CommandContext, inbox_id: str | None) -> None:
    """Store the default inbox, if the command used the server and key of the profile."""
    from postroom_client import profiles

    if not context.is_from_profile:
        return
    known = profiles.load()
    profile = known.find(context.settings.profile)
    assert profile is not None
    changed = profiles.Profile(profile.base_url, profile.api_key, inbox_id)
    profiles.save(known.with_profile(context.settings.profile, changed, make_current=False))
    output.note("There is no default inbox now." if inbox_id is None else f"{inbox_id} is the default inbox.")


def show_inbox(context: CommandContext, inbox: "Inbox") -> None:
    pairs = [
        ("id", inbox.id),
        ("address", inbox.address),
        ("name", inbox.display_name or ""),
        ("created", output.ago(inbox.created_at)),
    ]
    if inbox.catch_all or inbox.subdomains:
        pairs.append(("takes also", "every address" if inbox.catch_all else "its name at all subdomains"))
    pairs += [(name, value) for name, value in _settings(inbox) if value]
    if inbox.legal_hold:
        pairs.append(("legal hold", "yes"))
    if inbox.webhook_url:
        pairs.append(("webhook", inbox.webhook_url))
    if inbox.webhook_secret:
        pairs.append(("webhook secret", f"{inbox.webhook_secret}   (shown only once: save it)"))
    output.print_human(output.record(pairs))


def _settings(inbox: "Inbox") -> "Iterator[tuple[str, str | None]]":
    """Yield what is set for the inbox itself; the levels above count for the rest."""
    yield "origin guard", inbox.origin_guard
    if (said := inbox.disclosure) is not None:
        yield "disclosure", said.text or ("header" if said.header else "none")
    yield "junk", inbox.junk.action if inbox.junk else None
    yield "retention", f"{inbox.retention_days} days" if inbox.retention_days else None


def use_first(context: CommandContext, inbox: "Inbox", values: "Mapping[str, Any]") -> None:
    """Make the inbox the default if it is the first."""
    if values["default"] or not context.settings.inbox_id:
        make_default(context, inbox.id)


def forget_default(context: CommandContext, nothing: None, values: "Mapping[str, Any]") -> None:
    if context.settings.inbox_id == values["inbox_id"]:
        make_default(context, None)


def show_inboxes(context: CommandContext, page: "Page[Inbox]") -> None:
    if not page.data:
        output.note("No inbox yet. Create one: postroom inboxes create NAME")
        return
    default = ("", lambda inbox: "default" if inbox.id == context.settings.inbox_id else "")
    output.print_table(("id", "address", "name display_name", "created created_at", default), page.data)
    output.mention_rest(page)
