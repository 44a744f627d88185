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
    name: group(told)
    for name, told in {
        "inboxes": "Inboxes and their keys.",
        "inboxes keys": "Keys of one inbox.",
        "drafts": "Emails that are not sent yet.",
        "templates": "Texts with fields, for the emails of an inbox.",
        "approvals": "Sends that wait for approval.",
        "budgets": "How much an inbox or a key may send, within the server's limits.",
        "policies": "Who may write to, and be written to by, the account, a pod or an inbox.",
        "rules": "What is done with email that comes in.",
        "pods": "Tenants of the account, each with its own inboxes, domains and keys.",
        "keys": "Keys of the account and of its pods.",
        "users": "People of the account: invited, with a role, and removed.",
        "notifications": "Chats, phones and mailboxes that are notified when something waits.",
        "audit": "Who changed what, and proof that the log is complete.",
        "threads": "Threads, read and unread.",
        "contacts": "Who exchanged email with the inboxes.",
        "jobs": "Erasures of contacts: how far they are, and the second person.",
        "calendars": "Calendars, and free time.",
        "calendar-events": "Events in calendars: meetings, invitations.",
        "messages": "Messages, in and out.",
        "junk": "Say what is junk and what is not.",
        "attachments": "Attachments, and the text in them.",
        "webhook": "The webhook of the account, and its deliveries.",
        "webhooks": "More webhooks, each for some inboxes, pods and event types.",
        "suppressions": "Addresses that get no email.",
        "connections": "Mail services and external mailboxes from which email comes.",
        "domains": "Your domains, and their DNS records.",
        "profiles": "Which server, key and inbox commands use.",
        "bridge": "Pass every event to your own program, in order, at least once.",
    }.items()
}
for path, noun in GROUPS.items():
    above, _, name = path.rpartition(" ")
    GROUPS.get(above, app).add_typer(noun, name=name)
