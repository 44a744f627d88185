"""The program, and the groups of its commands, each with its help text."""

import typer

from postroom_client.cli.command import group
from postroom_client.cli.words.help_text import EPILOG, SectionedHelp

app = typer.Typer(
    name="postroom",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: loading Rich for it would double the time to start
    cls=SectionedHelp,
    epilog=EPILOG,
)

GROUPS = {
    name: group(help)
    for name, help in {
        "inboxes": "Inboxes and their keys.",
        "inboxes keys": "Keys of one inbox.",
        "drafts": "Emails that are not sent yet.",
        "templates": "Emails with fields to fill in.",
        "approvals": "Sends that wait for approval.",
        "budgets": "Sending limits of an inbox or a key, within the server's.",
        "policies": "Allowed and blocked addresses of the account, a pod or an inbox.",
        "rules": "Rules for incoming email.",
        "settings": "Settings of the account.",
        "pods": "Tenants of the account, each with its own inboxes, domains and keys.",
        "keys": "Keys of the account and of its pods.",
        "users": "People of the account, and their roles.",
        "notifications": "Chats, phones and mailboxes that are notified when something waits.",
        "audit": "Who changed what, and proof that the log is complete.",
        "threads": "Threads, read and unread.",
        "contacts": "People who exchanged email with the inboxes.",
        "jobs": "Erasures of contacts: their progress, and a second person's approval.",
        "calendars": "Calendars, and free time.",
        "calendar-events": "Events in calendars: meetings, invitations.",
        "messages": "Messages, in and out.",
        "junk": "Mark messages as junk or not, and teach the filter.",
        "attachments": "Attachments, and the text in them.",
        "webhook": "The webhook of the account, and its deliveries.",
        "webhooks": "More webhooks, each for some inboxes, pods and event types.",
        "suppressions": "Addresses that get no email.",
        "connections": "Mail services and external mailboxes from which email comes.",
        "domains": "Your domains, and their DNS records.",
        "profiles": "Servers, keys and default inboxes that commands use.",
        "bridge": "Pass every event to your own program, in order, at least once.",
    }.items()
}
for path, noun in GROUPS.items():
    above, _, name = path.rpartition(" ")
    GROUPS.get(above, app).add_typer(noun, name=name)
