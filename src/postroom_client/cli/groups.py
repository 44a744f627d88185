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
        "inbox": "Inboxes and their keys.",
        "inbox keys": "Keys that reach one inbox alone.",
        "drafts": "Mails that are not sent yet.",
        "templates": "Texts with fields, that mails of an inbox are written from.",
        "approvals": "Sends that wait for a person to decide.",
        "budget": "How much an inbox or a key may send: never more than the service allows.",
        "policy": "Who may write, and who may be written to: of the account, a pod or an inbox.",
        "pods": "Tenants of the account, each with inboxes, domains and keys of its own.",
        "keys": "Keys of the account and of its pods.",
        "users": "People of the account: invited, with a role, and removed.",
        "notifications": "Who is told outside of the pages that something waits.",
        "threads": "Threads, and what of them is unread.",
        "messages": "Messages, in and out.",
        "attachments": "Attachments, and the text in them.",
        "webhook": "The webhook of the account, and its deliveries.",
        "webhooks": "Several webhooks, each for some inboxes, pods and kinds of events.",
        "suppressions": "Addresses that no mail goes to.",
        "connections": "Mail services and mailboxes elsewhere that mail comes from.",
        "domains": "Domains of your own, and their DNS records.",
        "profiles": "Which server, key and inbox commands use.",
        "bridge": "Hand every event to a program of yours, in order, at least once.",
    }.items()
}
for path, noun in GROUPS.items():
    above, _, name = path.rpartition(" ")
    GROUPS.get(above, app).add_typer(noun, name=name)
