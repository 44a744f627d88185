"""The table of plain commands about the outside: webhooks, connections, domains and addresses."""

from postroom_client.cli.accounts import shown
from postroom_client.cli.plain.rows import Plain

CONNECTION_OPTIONS = tuple(
    (
        "provider inbox_id pod_id signing_key host port username password address folder since after"
        " plus_addresses api_url"
    ).split()
)
CONNECTION = (
    "id",
    "kind",
    "provider",
    "state",
    "last_error",
    "last mail last_mail_at",
    "inbox inbox_id",
    "url",
)
LISTED_WEBHOOK = (
    "id",
    "url",
    "events event_types",
    "inboxes inbox_ids",
    "pods pod_ids",
    "on enabled",
    "secret",
)

OUTSIDE = (
    Plain(
        "webhooks create",
        "create_webhook",
        "Post events to one more URL; its secret is shown once.",
        fields=LISTED_WEBHOOK,
    ),
    Plain(
        "webhooks list",
        "list_webhooks",
        "List the webhooks, oldest first.",
        columns=("id", "url", "events event_types", "on enabled"),
        empty="None yet. Add one: postroom webhooks create URL",
    ),
    Plain("webhooks get", "get_listed_webhook", "Show a webhook.", fields=LISTED_WEBHOOK),
    Plain("webhooks update", "update_webhook", "Change a webhook.", fields=LISTED_WEBHOOK),
    Plain(
        "webhooks rotate",
        "rotate_listed_webhook_secret",
        "Create a new secret; the old one stays valid for 24 hours.",
        fields=("secret",),
    ),
    Plain(
        "webhooks test",
        "test_listed_webhook",
        "Post a signed test event now.",
        fields=("status", "milliseconds"),
    ),
    Plain(
        "webhooks delete",
        "delete_listed_webhook",
        "Remove a webhook.",
        confirm="Remove the webhook {webhook_id}?",
        done="{webhook_id} is removed.",
    ),
    Plain(
        "webhook set",
        "set_webhook",
        "Post events to a URL. An inbox's own webhook: postroom inboxes update --webhook-url.",
        show=shown.show_webhook,
        then=shown.keep_secret,
    ),
    Plain(
        "webhook get",
        "get_webhook",
        "Show where events are posted.",
        show=shown.show_webhook,
        missing="No webhook is set. Set one: postroom webhook set URL",
    ),
    Plain(
        "webhook deliveries",
        "list_webhook_deliveries",
        "List what was posted, newest first.",
        columns=(
            "id",
            "event event_id",
            "state",
            ("attempts", shown.attempts),
            ("last", shown.last_answer),
            "when created_at",
        ),
        empty="Nothing posted yet. Try it: postroom webhook test",
    ),
    Plain("webhook delete", "delete_webhook", "Stop posting events.", done="Events are no longer posted."),
    Plain(
        "suppressions list",
        "list_suppressions",
        "List the suppressed addresses, newest first.",
        columns=("address", "type", "since created_at"),
        empty="No address is suppressed. Add one: postroom suppressions create ADDRESS",
    ),
    Plain(
        "suppressions create",
        "add_suppression",
        "Never send to an address again.",
        fields=("address", "type"),
    ),
    Plain(
        "suppressions delete",
        "delete_suppression",
        "Remove an address from the list.",
        done="{address} is removed from the list.",
    ),
    Plain(
        "domains create",
        "add_domain",
        "Add a domain and show the DNS records to set.",
        show=shown.show_domain,
    ),
    Plain(
        "domains list",
        "list_domains",
        "List the domains, newest first.",
        columns=("id", "domain", "status", "created created_at"),
        empty="No domain yet. Add one: postroom domains create NAME",
    ),
    Plain(
        "domains update",
        "update_domain",
        "Set the relay of a domain, or its warm-up.",
        show=shown.show_domain,
    ),
    Plain("domains get", "get_domain", "Show a domain and its DNS records.", show=shown.show_domain),
    Plain(
        "domains verify",
        "verify_domain",
        "Look the records up in DNS. Exits with 1 when the domain is not verified.",
        show=shown.show_domain,
        then=shown.require_verified,
    ),
    Plain(
        "domains rotate-dkim",
        "rotate_dkim",
        "Create new DKIM keys; they sign once their records are found.",
        show=shown.show_domain,
    ),
    Plain(
        "domains health",
        "get_domain_health",
        "Check a domain's records and whether others reach the server. Exits with 1 if something is wrong.",
        show=shown.show_health,
        then=shown.require_healthy,
    ),
    Plain(
        "domains reports",
        "get_domain_reports",
        "Show what other servers reported: email that claims to be from a domain, by source, and encryption.",
        show=shown.show_reports,
        names={"first": "from", "last": "to"},
    ),
    Plain(
        "domains deliverability",
        "get_deliverability",
        "Show delivery results by receiving provider, and the progress of warm-ups.",
        show=shown.show_deliverability,
    ),
    Plain(
        "domains delete",
        "delete_domain",
        "Delete a domain that no inbox uses.",
        confirm="Delete {domain_id}?",
        done="{domain_id} is deleted.",
    ),
    Plain(
        "connections create",
        "create_connection",
        "Connect a mailbox (imap) or a mail service (http); the URL to post to is shown once.",
        fields=CONNECTION,
        options=CONNECTION_OPTIONS,
    ),
    Plain(
        "connections list",
        "list_connections",
        "List the connections, newest first.",
        columns=("id", "kind", "provider", "state", "last mail last_mail_at", "last_error"),
        empty="No connections yet. Create one: postroom connections create imap --help",
    ),
    Plain("connections get", "get_connection", "Show a connection and its state.", fields=CONNECTION),
    Plain(
        "connections update",
        "update_connection",
        "Change the keys of a connection, or what happens to email there.",
        fields=CONNECTION,
        options=("signing_key", "password", "folder", "after", "plus_addresses", "api_url"),
    ),
    Plain(
        "connections test",
        "test_connection",
        "Try a connection. Exits with 1 when it does not work.",
        fields=("ok", "error"),
        then=shown.require_connected,
    ),
    Plain(
        "connections delete",
        "delete_connection",
        "Delete a connection; email received through it stays.",
        confirm="Delete {connection_id}?",
        done="{connection_id} is deleted.",
    ),
)
