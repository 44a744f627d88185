"""The nouns that commands stand below, each with what its help says of it."""

from postroom_client.cli.command import group

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
    }.items()
}
GROUPS["inbox"].add_typer(GROUPS["inbox keys"], name="keys")
