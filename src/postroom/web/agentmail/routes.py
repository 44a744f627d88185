"""The routes of /v0, as the table of the interface: which keys a row takes, and the permission they need."""

from postroom.accounts.permissions import DRAFTING, MANAGING, NOTHING, READING, WRITING
from postroom.web.agentmail import (
    drafts,
    inboxes,
    messages,
    sending,
    threads,
)
from postroom.web.agentmail.setup import lists, metrics, settings, webhooks
from postroom.web.api.mailbox.messages import remove_blobs
from postroom.web.requests.request_body import read_optional
from postroom.web.routing import ACCOUNT, POD, SCOPED, Route

INBOX, POD_OF = "/v0/inboxes/{inbox_id}", "/v0/pods/{pod_id}"
MESSAGES, MESSAGE = f"{INBOX}/messages", f"{INBOX}/messages/{{message_id}}"
THREAD, FILE = "/threads/{thread_id}", "/attachments/{attachment_id}"

INBOXES = (
    Route("GET", "/v0/inboxes", inboxes.list_inboxes, SCOPED, READING),
    Route("POST", "/v0/inboxes", inboxes.create_inbox, POD, MANAGING, read=read_optional),
    Route("GET", "/v0/inboxes/search", inboxes.search_inboxes, SCOPED, READING),
    Route("GET", INBOX, inboxes.get_inbox, SCOPED, READING),
    Route("PATCH", INBOX, inboxes.change_inbox, POD, MANAGING),
    Route("DELETE", INBOX, inboxes.delete_inbox, POD, MANAGING, 204),
    Route("GET", f"{POD_OF}/inboxes", inboxes.list_pod_inboxes, POD, READING),
    Route("POST", f"{POD_OF}/inboxes", inboxes.create_pod_inbox, POD, MANAGING, read=read_optional),
    Route("GET", f"{POD_OF}/inboxes/search", inboxes.search_pod_inboxes, POD, READING),
    Route("GET", f"{POD_OF}/inboxes/{{inbox_id}}", inboxes.get_inbox, POD, READING),
    Route("PATCH", f"{POD_OF}/inboxes/{{inbox_id}}", inboxes.change_inbox, POD, MANAGING),
    Route("DELETE", f"{POD_OF}/inboxes/{{inbox_id}}", inboxes.delete_inbox, POD, MANAGING, 204),
)
MAIL = (
    Route("GET", MESSAGES, messages.list_messages, SCOPED, READING),
    Route("GET", f"{MESSAGES}/search", messages.search_messages, SCOPED, READING),
    Route("POST", f"{MESSAGES}/batch-get", messages.batch_get, SCOPED, READING),
    Route("POST", f"{MESSAGES}/batch-update", messages.batch_update, SCOPED, WRITING),
    Route("POST", f"{MESSAGES}/send", sending.send, SCOPED, WRITING, read=sending.read_mail),
    Route("GET", MESSAGE, messages.get_message, SCOPED, READING),
    Route("PATCH", MESSAGE, messages.change_labels, SCOPED, WRITING),
    Route("DELETE", MESSAGE, messages.delete_message, POD, MANAGING, 204, after=remove_blobs),
    Route("GET", f"{MESSAGE}/raw", messages.get_raw, SCOPED, READING),
    Route("GET", f"{MESSAGE}{FILE}", messages.get_message_file, SCOPED, READING),
    Route("POST", f"{MESSAGE}/reply", sending.reply, SCOPED, WRITING, read=sending.read_mail),
    Route("POST", f"{MESSAGE}/reply-all", sending.reply_all, SCOPED, WRITING, read=sending.read_mail),
    Route("POST", f"{MESSAGE}/forward", sending.forward, SCOPED, WRITING, read=sending.read_mail),
)
THREADS = (
    Route("GET", "/v0/threads", threads.list_threads, SCOPED, READING),
    Route("GET", "/v0/threads/search", threads.search_threads, SCOPED, READING),
    Route("GET", f"/v0{THREAD}", threads.get_thread, SCOPED, READING),
    Route("PATCH", f"/v0{THREAD}", threads.change_thread, SCOPED, WRITING),
    Route("DELETE", f"/v0{THREAD}", threads.delete_thread, POD, MANAGING, 204),
    Route("GET", f"/v0{THREAD}{FILE}", threads.get_thread_file, SCOPED, READING),
    Route("GET", f"{INBOX}/threads", threads.list_inbox_threads, SCOPED, READING),
    Route("GET", f"{INBOX}/threads/search", threads.search_inbox_threads, SCOPED, READING),
    Route("GET", f"{INBOX}{THREAD}", threads.get_thread, SCOPED, READING),
    Route("PATCH", f"{INBOX}{THREAD}", threads.change_thread, SCOPED, WRITING),
    Route("DELETE", f"{INBOX}{THREAD}", threads.delete_inbox_thread, POD, MANAGING, 204),
    Route("GET", f"{INBOX}{THREAD}{FILE}", threads.get_thread_file, SCOPED, READING),
    Route("GET", f"{POD_OF}/threads", threads.list_pod_threads, POD, READING),
    Route("GET", f"{POD_OF}/threads/search", threads.search_pod_threads, POD, READING),
    Route("GET", f"{POD_OF}{THREAD}", threads.get_thread, POD, READING),
    Route("PATCH", f"{POD_OF}{THREAD}", threads.change_thread, POD, WRITING),
    Route("DELETE", f"{POD_OF}{THREAD}", threads.delete_pod_thread, POD, MANAGING, 204),
    Route("GET", f"{POD_OF}{THREAD}{FILE}", threads.get_thread_file, POD, READING),
)

DRAFT = f"{INBOX}/drafts/{{draft_id}}"
DRAFTS = (
    Route("GET", "/v0/drafts", drafts.list_all_drafts, SCOPED, READING),
    Route("GET", "/v0/drafts/{draft_id}", drafts.get_draft, SCOPED, READING),
    Route("GET", f"{POD_OF}/drafts", drafts.list_pod_drafts, POD, READING),
    Route("GET", f"{POD_OF}/drafts/{{draft_id}}", drafts.get_draft, POD, READING),
    Route("GET", f"{INBOX}/drafts", drafts.list_drafts, SCOPED, READING),
    Route("POST", f"{INBOX}/drafts", drafts.create_draft, SCOPED, DRAFTING, read=sending.read_mail),
    Route("GET", DRAFT, drafts.get_draft, SCOPED, READING),
    Route("PATCH", DRAFT, drafts.change_draft, SCOPED, DRAFTING, read=sending.read_mail),
    Route("DELETE", DRAFT, drafts.delete_draft, SCOPED, DRAFTING, 204),
    Route("POST", f"{DRAFT}/send", drafts.send_draft, SCOPED, WRITING, read=read_optional),
)
NEW_DOMAIN = settings.make_dkim_key
SETTINGS = (
    Route("GET", "/v0/pods", settings.list_pods, POD, READING),
    Route("POST", "/v0/pods", settings.create_pod, ACCOUNT, MANAGING, read=read_optional),
    Route("GET", POD_OF, settings.get_pod, POD, READING),
    Route("DELETE", POD_OF, settings.delete_pod, ACCOUNT, MANAGING, 204),
    Route("GET", "/v0/domains", settings.list_domains, POD, READING),
    Route("POST", "/v0/domains", settings.create_domain, POD, MANAGING, prepare=NEW_DOMAIN),
    Route("GET", "/v0/domains/{domain_id}", settings.get_domain, POD, READING),
    Route("PATCH", "/v0/domains/{domain_id}", settings.change_domain, POD, MANAGING),
    Route("DELETE", "/v0/domains/{domain_id}", settings.delete_domain, POD, MANAGING, 204),
    Route("POST", "/v0/domains/{domain_id}/verify", settings.verify_domain, POD, MANAGING, 204),
    Route("GET", "/v0/domains/{domain_id}/zone-file", settings.get_zone_file, POD, READING),
    Route("GET", f"{POD_OF}/domains", settings.list_pod_domains, POD, READING),
    Route("POST", f"{POD_OF}/domains", settings.create_pod_domain, POD, MANAGING, prepare=NEW_DOMAIN),
    Route("GET", f"{POD_OF}/domains/{{domain_id}}", settings.get_domain, POD, READING),
    Route("PATCH", f"{POD_OF}/domains/{{domain_id}}", settings.change_domain, POD, MANAGING),
    Route("DELETE", f"{POD_OF}/domains/{{domain_id}}", settings.delete_domain, POD, MANAGING, 204),
    Route("POST", f"{POD_OF}/domains/{{domain_id}}/verify", settings.verify_domain, POD, MANAGING, 204),
    Route("GET", f"{POD_OF}/domains/{{domain_id}}/zone-file", settings.get_zone_file, POD, READING),
    Route("GET", "/v0/api-keys", settings.list_keys, ACCOUNT, READING),
    Route("POST", "/v0/api-keys", settings.create_key, ACCOUNT, MANAGING, read=read_optional),
    Route("GET", "/v0/api-keys/{key_id}", settings.get_key, ACCOUNT, READING),
    Route("PATCH", "/v0/api-keys/{key_id}", settings.change_key, ACCOUNT, MANAGING),
    Route("DELETE", "/v0/api-keys/{key_id}", settings.delete_key, ACCOUNT, MANAGING, 204),
    Route("GET", "/v0/organizations", settings.get_organization, ACCOUNT, READING),
    Route("GET", "/v0/auth/me", settings.get_identity, SCOPED, NOTHING),
)
LISTS = (
    Route("GET", "/v0/lists/{direction}/{type}", lists.list_entries, SCOPED, READING),
    Route("POST", "/v0/lists/{direction}/{type}", lists.add_entry, POD, MANAGING),
    Route("GET", "/v0/lists/{direction}/{type}/{entry}", lists.get_entry, SCOPED, READING),
    Route("DELETE", "/v0/lists/{direction}/{type}/{entry}", lists.delete_entry, POD, MANAGING, 204),
)
WEBHOOKS = (
    Route("GET", "/v0/webhooks", webhooks.list_webhooks, ACCOUNT, MANAGING),
    Route(
        "POST",
        "/v0/webhooks",
        webhooks.create_webhook,
        ACCOUNT,
        MANAGING,
        prepare=webhooks.require_allowed_url,
    ),
    Route("GET", "/v0/webhooks/{webhook_id}", webhooks.get_webhook, ACCOUNT, MANAGING),
    Route(
        "PATCH",
        "/v0/webhooks/{webhook_id}",
        webhooks.change_webhook,
        ACCOUNT,
        MANAGING,
        prepare=webhooks.require_allowed_url,
    ),
    Route("DELETE", "/v0/webhooks/{webhook_id}", webhooks.delete_webhook, ACCOUNT, MANAGING, 204),
    Route("GET", "/v0/webhooks/{webhook_id}/headers", webhooks.get_headers, ACCOUNT, MANAGING),
    Route("PATCH", "/v0/webhooks/{webhook_id}/headers", webhooks.change_headers, ACCOUNT, MANAGING, 204),
)
METRICS = (
    Route("GET", "/v0/metrics/events", metrics.get_events, SCOPED, READING),
    Route("GET", "/v0/metrics/usage", metrics.get_usage, SCOPED, READING),
    Route("GET", "/v0/metrics/rates", metrics.get_rates, SCOPED, READING),
)


def within(place: str) -> tuple[Route, ...]:
    """What is there of a pod and of an inbox alike."""
    scope = SCOPED if place == INBOX else POD
    entries, entry = (
        f"{place}/lists/{{direction}}/{{type}}",
        f"{place}/lists/{{direction}}/{{type}}/{{entry}}",
    )
    webhook = f"{place}/webhooks/{{webhook_id}}"
    allowed = webhooks.require_allowed_url
    return (
        Route("GET", f"{place}/api-keys", settings.list_keys_within, ACCOUNT, READING),
        Route("POST", f"{place}/api-keys", settings.create_key_within, ACCOUNT, MANAGING, read=read_optional),
        Route("GET", f"{place}/api-keys/{{key_id}}", settings.get_key_within, ACCOUNT, READING),
        Route("DELETE", f"{place}/api-keys/{{key_id}}", settings.delete_key_within, ACCOUNT, MANAGING, 204),
        Route("GET", entries, lists.list_entries_within, scope, READING),
        Route("POST", entries, lists.add_entry_within, POD, MANAGING),
        Route("GET", entry, lists.get_entry_within, scope, READING),
        Route("DELETE", entry, lists.delete_entry_within, POD, MANAGING, 204),
        Route("GET", f"{place}/webhooks", webhooks.list_webhooks_within, ACCOUNT, MANAGING),
        Route(
            "POST",
            f"{place}/webhooks",
            webhooks.create_webhook_within,
            ACCOUNT,
            MANAGING,
            prepare=allowed,
        ),
        Route("GET", webhook, webhooks.get_webhook_within, ACCOUNT, MANAGING),
        Route("PATCH", webhook, webhooks.change_webhook_within, ACCOUNT, MANAGING, prepare=allowed),
        Route("DELETE", webhook, webhooks.delete_webhook_within, ACCOUNT, MANAGING, 204),
        Route("GET", f"{webhook}/headers", webhooks.get_headers_within, ACCOUNT, MANAGING),
        Route("PATCH", f"{webhook}/headers", webhooks.change_headers_within, ACCOUNT, MANAGING, 204),
        Route("GET", f"{place}/metrics/events", metrics.get_events_within, scope, READING),
        Route("GET", f"{place}/metrics/usage", metrics.get_usage_within, scope, READING),
        Route("GET", f"{place}/metrics/rates", metrics.get_rates_within, scope, READING),
    )


ROUTES = (
    *INBOXES,
    *MAIL,
    *THREADS,
    *DRAFTS,
    *SETTINGS,
    *LISTS,
    *WEBHOOKS,
    *METRICS,
    *within(INBOX),
    *within(POD_OF),
)
