"""The routes of /v0, like the route table of /v1: which keys a row takes, and the permission they need."""

from collections.abc import Iterable

from msgspec.structs import replace

from postroom.accounts.permissions import DRAFTING, MANAGING, NOTHING, READING, WRITING
from postroom.operations import domains as domain_verbs
from postroom.operations import inboxes as inbox_verbs
from postroom.operations import messages as message_verbs
from postroom.operations import pods as pod_verbs
from postroom.web.agentmail import inboxes, messages, threads
from postroom.web.agentmail.setup import domains, keys, lists, metrics, organization, webhooks
from postroom.web.agentmail.writing import drafts, sending
from postroom.web.api import drafts as draft_verbs
from postroom.web.api.messages import delete_thread, remove_blobs
from postroom.web.api.webhooks import require_allowed_urls
from postroom.web.requests.request_body import read_optional
from postroom.web.routing import ACCOUNT, POD, SCOPED, Route

ALL, OF_INBOX, OF_POD = "/v0", "/v0/inboxes/{inbox_id}", "/v0/pods/{pod_id}"
MESSAGE, THREAD, DRAFT = "/messages/{message_id}", "/threads/{thread_id}", "/drafts/{draft_id}"
DOMAIN, KEY, WEBHOOK = "/domains/{domain_id}", "/api-keys/{key_id}", "/webhooks/{webhook_id}"
LIST, ENTRY = "/lists/{direction}/{type}", "/lists/{direction}/{type}/{entry}"
FILE = "/attachments/{attachment_id}"

INBOXES = (
    Route("GET", "/inboxes", inboxes.list_inboxes, SCOPED, READING),
    Route("POST", "/inboxes", inboxes.create_inbox, POD, MANAGING, read=read_optional),
    Route("GET", "/inboxes/search", inboxes.search_inboxes, SCOPED, READING),
    Route("GET", "/inboxes/{inbox_id}", inboxes.show, SCOPED, READING),
    Route("PATCH", "/inboxes/{inbox_id}", inboxes.change_inbox, POD, MANAGING),
    Route("DELETE", "/inboxes/{inbox_id}", inbox_verbs.delete_inbox, POD, MANAGING, 204),
)
MESSAGES = (
    Route("GET", "/messages", messages.list_messages, SCOPED, READING, is_kept=True),
    Route("GET", "/messages/search", messages.search_messages, SCOPED, READING),
    Route("POST", "/messages/batch-get", messages.batch_get, SCOPED, READING),
    Route("POST", "/messages/batch-update", messages.batch_update, SCOPED, WRITING),
    Route("POST", "/messages/send", sending.send, SCOPED, WRITING, read=sending.read_mail),
    Route("GET", MESSAGE, messages.get_message, SCOPED, READING),
    Route("PATCH", MESSAGE, messages.change_labels, SCOPED, WRITING),
    Route("DELETE", MESSAGE, message_verbs.delete_message, POD, MANAGING, 204, after=remove_blobs),
    Route("GET", f"{MESSAGE}/raw", messages.get_raw, SCOPED, READING),
    Route("GET", f"{MESSAGE}{FILE}", messages.get_message_file, SCOPED, READING),
    Route("POST", f"{MESSAGE}/reply", sending.reply, SCOPED, WRITING, read=sending.read_mail),
    Route("POST", f"{MESSAGE}/reply-all", sending.reply_all, SCOPED, WRITING, read=sending.read_mail),
    Route("POST", f"{MESSAGE}/forward", sending.forward, SCOPED, WRITING, read=sending.read_mail),
    Route("GET", "/events", messages.list_label_changes, SCOPED, READING, word="message_read"),
)
THREADS = (
    Route("GET", "/threads", threads.list_threads, SCOPED, READING, is_kept=True),
    Route("GET", "/threads/search", threads.search_threads, SCOPED, READING),
    Route("GET", THREAD, threads.get_thread, SCOPED, READING),
    Route("PATCH", THREAD, threads.change_thread, SCOPED, WRITING),
    Route("DELETE", THREAD, delete_thread, POD, MANAGING, 204),
    Route("GET", f"{THREAD}{FILE}", threads.get_thread_file, SCOPED, READING),
)
DRAFTS = (
    Route("GET", "/drafts", drafts.list_drafts, SCOPED, READING),
    Route("GET", DRAFT, drafts.get_draft, SCOPED, READING),
    Route("GET", f"{DRAFT}{FILE}", drafts.get_draft_file, SCOPED, READING),
)
WRITTEN_DRAFTS = (
    Route("POST", "/drafts", drafts.create_draft, SCOPED, DRAFTING, read=sending.read_mail),
    Route("PATCH", DRAFT, drafts.change_draft, SCOPED, DRAFTING, read=sending.read_mail),
    Route("DELETE", DRAFT, draft_verbs.delete_draft, SCOPED, DRAFTING, 204),
    Route("POST", f"{DRAFT}/send", drafts.send_draft, SCOPED, WRITING, read=read_optional),
)
DOMAINS = (
    Route("GET", "/domains", domains.list_domains, POD, READING),
    Route("POST", "/domains", domains.create_domain, POD, MANAGING, prepare=domains.make_dkim_key),
    Route("GET", DOMAIN, domains.get_domain, POD, READING),
    Route("PATCH", DOMAIN, domains.change_domain, POD, MANAGING),
    Route("DELETE", DOMAIN, domain_verbs.delete_domain, POD, MANAGING, 204),
    Route("POST", f"{DOMAIN}/verify", domains.verify_domain, POD, MANAGING, 204),
    Route("GET", f"{DOMAIN}/zone-file", domains.get_zone_file, POD, READING),
    Route("GET", f"{DOMAIN}/setup-link", domains.get_setup_link, POD, READING),
)
ORGANIZATION = (
    Route("GET", "/pods", organization.list_pods, POD, READING),
    Route("POST", "/pods", organization.create_pod, ACCOUNT, MANAGING, read=read_optional),
    Route("GET", "/pods/{pod_id}", organization.get_pod, POD, READING),
    Route("DELETE", "/pods/{pod_id}", pod_verbs.delete_pod, ACCOUNT, MANAGING, 204),
    Route("GET", "/organizations", organization.get_organization, ACCOUNT, READING),
    Route("GET", "/auth/me", organization.get_identity, SCOPED, NOTHING),
)
SETTINGS = (
    Route("GET", "/api-keys", keys.list_keys, ACCOUNT, READING),
    Route("POST", "/api-keys", keys.create_key, ACCOUNT, MANAGING, read=read_optional),
    Route("GET", KEY, keys.get_key, ACCOUNT, READING),
    Route("PATCH", KEY, keys.change_key, ACCOUNT, MANAGING),
    Route("DELETE", KEY, keys.delete_key, ACCOUNT, MANAGING, 204),
    Route("GET", LIST, lists.list_entries, SCOPED, READING),
    Route("POST", LIST, lists.add_entry, POD, MANAGING),
    Route("GET", ENTRY, lists.get_entry, SCOPED, READING),
    Route("DELETE", ENTRY, lists.delete_entry, POD, MANAGING, 204),
    Route("GET", "/webhooks", webhooks.list_webhooks, POD, MANAGING),
    Route("POST", "/webhooks", webhooks.create_webhook, POD, MANAGING, prepare=require_allowed_urls),
    Route("GET", WEBHOOK, webhooks.get_webhook, POD, MANAGING),
    Route("PATCH", WEBHOOK, webhooks.change_webhook, POD, MANAGING, prepare=require_allowed_urls),
    Route("DELETE", WEBHOOK, webhooks.delete_webhook, POD, MANAGING, 204),
    Route("GET", f"{WEBHOOK}/headers", webhooks.get_headers, POD, MANAGING),
    Route("PATCH", f"{WEBHOOK}/headers", webhooks.change_headers, POD, MANAGING, 204),
    Route("GET", "/metrics/events", metrics.get_events, SCOPED, READING),
    Route("GET", "/metrics/usage", metrics.get_usage, SCOPED, READING),
    Route("GET", "/metrics/rates", metrics.get_rates, SCOPED, READING),
)

# By the last of these words in a path: the noun of its permission.
NOUNS = {
    "inboxes": "inbox",
    "messages": "message",
    "threads": "message",
    "drafts": "draft",
    "domains": "domain",
    "pods": "pod",
    "api-keys": "api_key",
    "lists": "list_entry",
    "webhooks": "webhook",
    "metrics": "metrics",
    "organizations": "",
    "auth": "",
}
CHANGES = {"GET": "read", "POST": "create", "PATCH": "update", "DELETE": "delete"}
# Where a path ends in a verb.
VERBS = {
    "batch-get": "read",
    "batch-update": "update",
    "verify": "update",
    "send": "send",
    "reply": "send",
    "reply-all": "send",
    "forward": "send",
}


def word_of(route: Route) -> str:
    """Return the /v0 permission that a key needs."""
    noun = [NOUNS[segment] for segment in route.segments if segment in NOUNS][-1]
    return noun and f"{noun}_{VERBS.get(route.segments[-1], CHANGES[route.method])}"


def at(place: str, rows: Iterable[Route]) -> list[Route]:
    """Return the same rows below another path. Those of a pod are not for keys of one inbox."""
    narrower = {SCOPED: POD} if place == OF_POD else {}
    below = [
        replace(row, path=f"{place}{row.path}", scope=narrower.get(row.scope, row.scope)) for row in rows
    ]
    return [replace(row, word=row.word or word_of(row)) for row in below]


ROUTES = (
    *at(ALL, (*INBOXES, *THREADS, *DRAFTS, *DOMAINS, *ORGANIZATION, *SETTINGS)),
    *at(OF_INBOX, (*MESSAGES, *THREADS, *DRAFTS, *WRITTEN_DRAFTS, *SETTINGS)),
    *at(OF_POD, (*INBOXES, *THREADS, *DRAFTS, *DOMAINS, *SETTINGS)),
)
