"""The route table: each row names which keys a route takes, and the permission that they need."""

from typing import Any

from postroom import errors
from postroom.accounts.permissions import (
    APPROVING,
    DRAFTING,
    MANAGING,
    NOTHING,
    ON_THREADS,
    READING,
    SENDING,
    TEACHING,
    WRITING,
)
from postroom.holding_errors import OriginNotAllowed
from postroom.operations import (
    addresses,
    audit_log,
    briefing,
    connections,
    deliverability,
    domain_reports,
    domains,
    feedback,
    file_links,
    follow_ups,
    holds,
    inboxes,
    junk,
    keys,
    messages,
    notes,
    notifications,
    pods,
    policies,
    rule_imports,
    rules,
    suppressions,
    templates,
    threads,
    usage,
    webhook_list,
    webhooks,
)
from postroom.operations.people import users
from postroom.web import public
from postroom.web.api import connections as connection_checks
from postroom.web.api import decision_waiting, drafts, event_log, event_waiting, receipts, search, send
from postroom.web.api import domains as domain_checks
from postroom.web.api import junk_lessons as lessons
from postroom.web.api import messages as downloads
from postroom.web.api import rules as rule_trials
from postroom.web.api import webhooks as webhook_posts
from postroom.web.api.connections import require_allowed_relays, require_allowed_targets
from postroom.web.api.domains import make_dkim_key
from postroom.web.api.messages import remove_blobs
from postroom.web.api.webhooks import require_allowed_urls
from postroom.web.calendar_routes import calendar_rows
from postroom.web.contact_routes import CONTACT_ROWS
from postroom.web.requests.files_body import read_with_files
from postroom.web.requests.request_body import read_optional, require_idempotency_key
from postroom.web.routing import ACCOUNT, POD, PUBLIC, SCOPED, delete, get, patch, post, put

Options = dict[str, Any]  # of a row

# Options that some rows share.
WITH_FILES: Options = {"read": read_with_files}
VERSIONED: Options = {"is_versioned": True}
WITH_KEY: Options = {"header": "Idempotency-Key"}
WITH_KEY_FIRST: Options = {**WITH_KEY, "before_body": require_idempotency_key}
CHECKED: Options = {"prepare": require_allowed_urls}
REPEATABLE: Options = {"is_repeatable": True}

# Paths of what most rows are about.
INBOX = "/v1/inboxes/{inbox_id}"
MESSAGE = "/v1/messages/{message_id}"
FILE = "/v1/attachments/{message_id}/{filename}"
DRAFT = "/v1/drafts/{draft_id}"
CONNECTION = "/v1/connections/{connection_id}"
WEBHOOK = "/v1/webhooks/{webhook_id}"

NEW_INBOX = (
    errors.InvalidMailboxName,
    errors.InvalidDomain,
    errors.AddressTaken,
    errors.AddressIsAnInbox,
    errors.InvalidWebhookUrl,
    errors.CatchAllTaken,
)
NEW_ALIAS = (
    errors.InvalidMailboxName,
    errors.InvalidDomain,
    errors.AddressTaken,
    errors.AddressIsAnInbox,
    errors.AliasLimitReached,
)
NEW_KEY = (errors.ApiKeyLimitReached, errors.AddressIsAnInbox)
OLD_KEY = (errors.LastKey, errors.AddressIsAnInbox)
RULES = (errors.AddressIsAnInbox,)  # reviewers in `approval`
OLD_POD = (errors.DefaultPod, errors.PodNotEmpty, errors.PodHasDomains)
LISTED_WEBHOOK = (errors.InvalidWebhookUrl, errors.WebhookLimitReached)
URL = (errors.InvalidWebhookUrl,)
CHANGED_INBOX = (*URL, *RULES, errors.CatchAllTaken)
HELD = (errors.LegalHold,)
NO_WEBHOOK = (errors.NoWebhookUrl,)
WITHHELD = (errors.Infected,)
DOWNLOAD = (errors.InvalidSignature, *WITHHELD)
PREVIEW = (errors.NoPreview, *WITHHELD)
TEXT = (errors.NoText,)
MISSING = (errors.NotFound,)
SEND = (
    errors.Infected,
    errors.MissingIdempotencyKey,
    errors.FeatureRequiresPaidPlan,
    errors.IdempotencyKeyReused,
    errors.RecipientNotAllowed,
    OriginNotAllowed,
    errors.RecipientSuppressed,
    errors.ColdOutreachLimit,
    errors.LoopDetected,
)
ANSWER = (*SEND, errors.NotAnInvitation)
REDIRECT = (*SEND, errors.NotRedirectable)
NEW_UPLOAD = (errors.UploadLimitReached,)
NEW_DRAFT = (errors.DraftLimitReached, *WITHHELD)
CHANGE_DRAFT = (errors.DraftChanged,)
SEND_DRAFT = (*SEND, errors.DraftChanged, errors.PayloadTooLarge)
OLD_TEMPLATE = (errors.TemplateExists,)
NEW_TEMPLATE = (*MISSING, *OLD_TEMPLATE, errors.TemplateLimitReached)
TEST_LISTED = (errors.WebhookFailed,)
TEST = (errors.NoWebhookUrl, errors.WebhookFailed)
AGAIN = (errors.NothingToDo, errors.RecipientNotAllowed, errors.RecipientSuppressed)
CANCEL = (errors.NothingToDo,)
APPROVE = (errors.NotHeld, errors.ContentChanged)
REJECT = (errors.NotHeld,)
NEW_DOMAIN = (errors.InvalidDomain, errors.DomainTaken)
TAKEN = (errors.DomainTaken,)
NEW_USER = (errors.UserExists, errors.AddressIsAnInbox)
OLD_USER = (errors.LastOwner,)
TARGET = (errors.InvalidTarget,)
NEW_POD = (errors.ClientIdTaken, errors.InvalidTarget, errors.AddressIsAnInbox)
NEW_CONNECTION = (errors.InvalidTarget, errors.ConnectionLimitReached, errors.AddressIsAnInbox)

ROUTES = (
    get("/v1/me", keys.who_am_i, SCOPED, NOTHING),
    post("/v1/inboxes", inboxes.create_inbox, POD, MANAGING, 201, NEW_INBOX, **CHECKED, **REPEATABLE),
    get("/v1/inboxes", inboxes.list_inboxes, SCOPED, READING),
    get(INBOX, inboxes.get_inbox, SCOPED, READING),
    patch(INBOX, inboxes.change_inbox, POD, MANAGING, 200, CHANGED_INBOX, **CHECKED),
    delete(INBOX, inboxes.delete_inbox, POD, MANAGING, 204, HELD),
    post(f"{INBOX}/aliases", addresses.create_alias, POD, MANAGING, 201, NEW_ALIAS),
    get(f"{INBOX}/aliases", addresses.list_aliases, SCOPED, READING),
    delete(f"{INBOX}/aliases/{{address}}", addresses.delete_alias, POD, MANAGING, 204),
    post(f"{INBOX}/webhook/test", webhook_posts.test_inbox_webhook, POD, MANAGING, 200, TEST),
    post(f"{INBOX}/webhook/rotate-secret", webhooks.rotate_inbox_secret, POD, MANAGING, 200, NO_WEBHOOK),
    post(f"{INBOX}/api-keys", keys.create_inbox_key, ACCOUNT, MANAGING, 201, NEW_KEY),
    get(f"{INBOX}/api-keys", keys.list_inbox_keys, ACCOUNT, READING),
    delete(f"{INBOX}/api-keys/{{key_id}}", keys.delete_inbox_key, ACCOUNT, MANAGING, 204),
    get("/v1/account", pods.get_account, ACCOUNT, READING),
    patch("/v1/account", pods.change_account, ACCOUNT, MANAGING, 200, RULES),
    post("/v1/api-keys", keys.create_api_key, ACCOUNT, MANAGING, 201, NEW_KEY),
    get("/v1/api-keys", keys.list_api_keys, ACCOUNT, READING),
    get("/v1/api-keys/{key_id}", keys.get_api_key, ACCOUNT, READING),
    patch("/v1/api-keys/{key_id}", keys.change_api_key, ACCOUNT, MANAGING, 200, OLD_KEY),
    delete("/v1/api-keys/{key_id}", keys.delete_api_key, ACCOUNT, MANAGING, 204, OLD_KEY),
    post("/v1/pods", pods.create_pod, ACCOUNT, MANAGING, 201, NEW_POD, prepare=require_allowed_relays),
    get("/v1/pods", pods.list_pods, POD, READING),
    get("/v1/pods/{pod_id}", pods.get_pod, POD, READING),
    patch(
        "/v1/pods/{pod_id}", pods.change_pod, ACCOUNT, MANAGING, 200, NEW_POD, prepare=require_allowed_relays
    ),
    delete("/v1/pods/{pod_id}", pods.delete_pod, ACCOUNT, MANAGING, 204, OLD_POD),
    post("/v1/pods/{pod_id}/api-keys", keys.create_pod_key, ACCOUNT, MANAGING, 201, NEW_KEY),
    get("/v1/pods/{pod_id}/api-keys", keys.list_pod_keys, ACCOUNT, READING),
    delete("/v1/pods/{pod_id}/api-keys/{key_id}", keys.delete_pod_key, ACCOUNT, MANAGING, 204),
    post("/v1/users", users.create_user, ACCOUNT, MANAGING, 201, NEW_USER),
    get("/v1/users", users.list_users, ACCOUNT, MANAGING),
    get("/v1/users/{user_id}", users.get_user, ACCOUNT, MANAGING),
    patch("/v1/users/{user_id}", users.change_user, ACCOUNT, MANAGING, 200, OLD_USER),
    delete("/v1/users/{user_id}", users.delete_user, ACCOUNT, MANAGING, 204, OLD_USER),
    post("/v1/users/{user_id}/invite", users.invite_user, ACCOUNT, MANAGING, 202, RULES),
    get("/v1/notifications", notifications.get_notifications, ACCOUNT, MANAGING),
    put(
        "/v1/notifications",
        notifications.put_notifications,
        ACCOUNT,
        MANAGING,
        200,
        (*URL, *RULES),
        **CHECKED,
    ),
    post("/v1/feedback", feedback.give_feedback, SCOPED, NOTHING, 201),
    get(f"{INBOX}/threads", threads.list_threads, SCOPED, READING, is_kept=True),
    get(f"{INBOX}/messages", messages.list_inbox_messages, SCOPED, READING, is_kept=True),
    get("/v1/threads", threads.list_all_threads, SCOPED, READING, is_kept=True),
    get("/v1/search", search.search_messages, SCOPED, READING),
    get("/v1/usage", usage.get_usage, SCOPED, READING, seconds=10.0),
    get("/v1/threads/{thread_id}", threads.get_thread, SCOPED, READING),
    patch("/v1/threads/{thread_id}", threads.change_thread, SCOPED, ON_THREADS),
    delete("/v1/threads/{thread_id}", downloads.delete_thread, POD, MANAGING, 204, HELD),
    post("/v1/threads/{thread_id}/notes", notes.create_note, SCOPED, READING, 201),
    get("/v1/threads/{thread_id}/notes", notes.list_notes, SCOPED, READING),
    delete("/v1/threads/{thread_id}/notes/{note_id}", notes.delete_note, SCOPED, READING, 204, HELD),
    *CONTACT_ROWS,
    get("/v1/threads/{thread_id}/follow-ups", follow_ups.list_follow_ups, SCOPED, READING),
    delete(
        "/v1/threads/{thread_id}/follow-ups/{follow_up_id}",
        follow_ups.delete_follow_up,
        SCOPED,
        WRITING,
        204,
        CANCEL,
    ),
    get("/v1/threads/{thread_id}/messages", threads.list_thread_messages, SCOPED, READING),
    get(MESSAGE, decision_waiting.get_message, SCOPED, READING),
    delete(MESSAGE, messages.delete_message, POD, MANAGING, 204, HELD, after=remove_blobs),
    get(f"{MESSAGE}/raw", downloads.get_raw_message, SCOPED, READING),
    get(f"{MESSAGE}/receipt", receipts.get_receipt, SCOPED, READING),
    get(FILE, downloads.get_attachment, SCOPED, READING, 200, DOWNLOAD, also=(302,)),
    get(f"{FILE}/text", messages.get_attachment_text, SCOPED, READING, 200, TEXT),
    post(f"{FILE}/link", file_links.create_download_link, SCOPED, READING, 201, WITHHELD),
    get(f"{FILE}/preview", downloads.get_attachment_preview, SCOPED, READING, 200, PREVIEW),
    *calendar_rows(SEND),
    get("/v1/events", event_log.list_events, SCOPED, READING, 200, MISSING),
    post(
        f"{INBOX}/send",
        send.send_message,
        SCOPED,
        WRITING,
        200,
        SEND,
        **WITH_FILES,
        **WITH_KEY_FIRST,
        proves=True,
    ),
    post("/v1/uploads", file_links.create_upload, SCOPED, WRITING, 201, NEW_UPLOAD),
    post(
        f"{INBOX}/drafts", drafts.create_draft, SCOPED, DRAFTING, 201, NEW_DRAFT, **WITH_FILES, **REPEATABLE
    ),
    get(f"{INBOX}/drafts", drafts.list_drafts, SCOPED, READING),
    get(DRAFT, drafts.get_draft, SCOPED, READING),
    patch(DRAFT, drafts.change_draft, SCOPED, DRAFTING, 200, CHANGE_DRAFT, **VERSIONED, **WITH_FILES),
    delete(DRAFT, drafts.delete_draft, SCOPED, DRAFTING, 204, CHANGE_DRAFT, **VERSIONED),
    post(
        f"{DRAFT}/attachments",
        drafts.add_draft_files,
        SCOPED,
        DRAFTING,
        201,
        CHANGE_DRAFT,
        **VERSIONED,
        **WITH_FILES,
    ),
    delete(
        f"{DRAFT}/attachments/{{filename}}",
        drafts.delete_draft_file,
        SCOPED,
        DRAFTING,
        204,
        CHANGE_DRAFT,
        **VERSIONED,
    ),
    post(
        f"{DRAFT}/send",
        drafts.send_draft,
        SCOPED,
        WRITING,
        200,
        SEND_DRAFT,
        **WITH_KEY,
        read=read_optional,
        **VERSIONED,
        answers_gone=True,
    ),
    post("/v1/templates", templates.create_template, POD, MANAGING, 201, NEW_TEMPLATE, **REPEATABLE),
    get("/v1/templates", templates.list_templates, SCOPED, READING),
    get("/v1/templates/{template_id}", templates.get_template, SCOPED, READING),
    patch("/v1/templates/{template_id}", templates.change_template, POD, MANAGING, 200, OLD_TEMPLATE),
    delete("/v1/templates/{template_id}", templates.delete_template, POD, MANAGING, 204),
    post(
        f"{MESSAGE}/calendar/respond",
        send.respond_to_invitation,
        SCOPED,
        WRITING,
        200,
        ANSWER,
        **WITH_KEY_FIRST,
    ),
    post(f"{MESSAGE}/redirect", send.redirect_message, SCOPED, WRITING, 200, REDIRECT, **WITH_KEY_FIRST),
    post(f"{MESSAGE}/retry", messages.retry_message, SCOPED, SENDING, 200, AGAIN),
    post(f"{MESSAGE}/cancel", messages.cancel_message, SCOPED, WRITING, 200, CANCEL),
    patch(MESSAGE, messages.change_message, SCOPED, WRITING, 200, CANCEL),
    post(f"{MESSAGE}/approve", holds.approve_message, POD, APPROVING, 200, APPROVE),
    post(f"{MESSAGE}/reject", holds.reject_message, POD, APPROVING, 200, REJECT),
    get("/v1/approvals", holds.list_approvals, SCOPED, READING),
    get("/v1/pause", holds.get_pause, SCOPED, READING, 200, MISSING),
    put("/v1/pause", holds.put_pause, POD, MANAGING, 200, MISSING),
    delete("/v1/pause", holds.delete_pause, POD, MANAGING, 200, MISSING),
    get(f"{INBOX}/limits", holds.get_inbox_limits, SCOPED, READING),
    get("/v1/suppressions", suppressions.list_suppressions, ACCOUNT, READING),
    post("/v1/suppressions", suppressions.add_suppression, ACCOUNT, MANAGING, 201),
    delete("/v1/suppressions/{address}", suppressions.delete_suppression, ACCOUNT, MANAGING, 204),
    get("/v1/domains", domains.list_domains, POD, READING),
    post("/v1/domains", domains.create_domain, POD, MANAGING, 201, NEW_DOMAIN, prepare=make_dkim_key),
    get("/v1/domains/{domain_id}", domains.get_domain, POD, READING),
    patch(
        "/v1/domains/{domain_id}",
        domains.change_domain,
        POD,
        MANAGING,
        200,
        TARGET,
        prepare=require_allowed_relays,
    ),
    get("/v1/domains/{domain_id}/health", domain_checks.get_domain_health, POD, READING),
    get("/v1/domains/{domain_id}/reports", domain_reports.get_domain_reports, POD, READING),
    delete("/v1/domains/{domain_id}", domains.delete_domain, POD, MANAGING, 204, TAKEN),
    post("/v1/domains/{domain_id}/verify", domain_checks.verify_domain, POD, MANAGING, 200, TAKEN),
    post("/v1/domains/{domain_id}/rotate-dkim", domain_checks.rotate_dkim, POD, MANAGING, 200, CANCEL),
    get("/v1/deliverability", deliverability.get_deliverability, POD, READING),
    get("/v1/connections", connections.list_connections, POD, READING),
    post(
        "/v1/connections",
        connections.create_connection,
        POD,
        MANAGING,
        201,
        NEW_CONNECTION,
        prepare=require_allowed_targets,
    ),
    get(CONNECTION, connections.get_connection, POD, READING),
    patch(
        CONNECTION, connections.change_connection, POD, MANAGING, 200, TARGET, prepare=require_allowed_targets
    ),
    delete(CONNECTION, connections.delete_connection, POD, MANAGING, 204),
    post(f"{CONNECTION}/test", connection_checks.test_connection, POD, MANAGING),
    get(f"{INBOX}/wait", event_waiting.wait_for_message, SCOPED, READING, 200, (), also=(204,)),
    get("/v1/webhook", webhooks.get_webhook, ACCOUNT, READING, 200, MISSING),
    put("/v1/webhook", webhooks.put_webhook, ACCOUNT, MANAGING, 200, URL, **CHECKED),
    delete("/v1/webhook", webhooks.delete_webhook, ACCOUNT, MANAGING, 204, MISSING),
    post("/v1/webhook/test", webhook_posts.test_webhook, ACCOUNT, MANAGING, 200, TEST),
    post("/v1/webhook/rotate-secret", webhooks.rotate_webhook_secret, ACCOUNT, MANAGING, 200, MISSING),
    post(
        "/v1/webhooks",
        webhook_list.create_webhook,
        POD,
        MANAGING,
        201,
        LISTED_WEBHOOK,
        **CHECKED,
        **REPEATABLE,
    ),
    get("/v1/webhooks", webhook_list.list_webhooks, POD, READING),
    get(WEBHOOK, webhook_list.get_listed_webhook, POD, READING),
    patch(WEBHOOK, webhook_list.change_webhook, POD, MANAGING, 200, URL, **CHECKED),
    delete(WEBHOOK, webhook_list.delete_listed_webhook, POD, MANAGING, 204),
    post(f"{WEBHOOK}/test", webhook_posts.test_listed_webhook, POD, MANAGING, 200, TEST_LISTED),
    post(f"{WEBHOOK}/rotate-secret", webhook_list.rotate_listed_webhook_secret, POD, MANAGING),
    get("/v1/webhook/deliveries", webhooks.list_webhook_deliveries, ACCOUNT, READING),
    post("/v1/webhook/deliveries/retry", webhook_posts.retry_failed_deliveries, ACCOUNT, MANAGING),
    post("/v1/webhook/deliveries/{delivery_id}/retry", webhooks.retry_webhook_delivery, ACCOUNT, MANAGING),
    post(f"{MESSAGE}/junk", junk.mark_junk, SCOPED, TEACHING, 200, (*CANCEL, *HELD)),
    post(f"{MESSAGE}/not-junk", junk.mark_not_junk, SCOPED, TEACHING, 200, CANCEL),
    post("/v1/junk/examples", lessons.teach_junk_filter, ACCOUNT, MANAGING, 200),
    get("/v1/junk", junk.get_junk_examples, SCOPED, READING),
    delete("/v1/junk", junk.reset_junk_filter, ACCOUNT, MANAGING, 204),
    post(f"{MESSAGE}/release", messages.release_message, POD, MANAGING, 200, CANCEL),
    get("/v1/policy", policies.get_policy, SCOPED, READING, 200, MISSING),
    put("/v1/policy", policies.put_policy, POD, MANAGING, 200, MISSING),
    put("/v1/policy/mode", policies.put_policy_mode, POD, MANAGING, 200, MISSING),
    post("/v1/policy/rules", policies.add_policy_rule, POD, MANAGING, 201, MISSING),
    delete("/v1/policy/rules/{rule_id}", policies.delete_policy_rule, POD, MANAGING, 204),
    get("/v1/policy/audit", policies.list_policy_audit, SCOPED, READING, 200, MISSING),
    get("/v1/rules", rules.list_rules, SCOPED, READING, 200, MISSING),
    post("/v1/rules", rules.create_rule, POD, MANAGING, 201, MISSING),
    post("/v1/rules/import", rule_imports.import_rules, POD, MANAGING, 200, MISSING),
    get("/v1/briefing", briefing.get_briefing, SCOPED, READING, 200, MISSING, seconds=10.0),
    post("/v1/rules/test", rule_trials.try_rule, SCOPED, READING),
    get("/v1/rules/{rule_id}", rules.get_rule, SCOPED, READING),
    patch("/v1/rules/{rule_id}", rules.change_rule, POD, MANAGING),
    delete("/v1/rules/{rule_id}", rules.delete_rule, POD, MANAGING, 204),
    get("/v1/audit", audit_log.list_audit, POD, MANAGING, 200, MISSING),
    get("/v1/audit/head", audit_log.get_audit_head, ACCOUNT, MANAGING),
    get("/health", public.health, PUBLIC, NOTHING),
    get("/ready", public.ready, PUBLIC, NOTHING, 200, (errors.Unavailable,)),
    get("/.well-known/oauth-protected-resource", public.describe_mcp, PUBLIC, NOTHING),
    get("/.well-known/oauth-protected-resource/mcp", public.describe_mcp_below, PUBLIC, NOTHING),
    get("/.well-known/mta-sts.txt", public.mta_sts_policy, PUBLIC, NOTHING),
    get(public.AUTOCONFIG, public.autoconfig, PUBLIC, NOTHING, 200, MISSING),
    get("/.well-known/postroom-keys.json", public.list_signing_keys, PUBLIC, NOTHING),
    get("/metrics", public.metrics, PUBLIC, NOTHING),
    get("/openapi.json", public.openapi, PUBLIC, NOTHING),
    get("/llms.txt", public.llms, PUBLIC, NOTHING),
    get("/docs", public.docs, PUBLIC, NOTHING),
    get("/docs/{group}", public.docs_of_group, PUBLIC, NOTHING),
)

ROUTE_OF = {route.operation: route for route in ROUTES}
