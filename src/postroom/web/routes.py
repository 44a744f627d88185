"""The route table: a row names which keys a route takes, and the permission that they need."""

from postroom import errors
from postroom.accounts.permissions import APPROVING, DRAFTING, MANAGING, NOTHING, READING, SENDING, WRITING
from postroom.operations import (
    audit_log,
    holds,
    inboxes,
    keys,
    messages,
    pods,
    policies,
    suppressions,
    threads,
    usage,
    webhooks,
)
from postroom.operations.ways import connections, webhook_list
from postroom.operations.writing import templates
from postroom.web import public
from postroom.web.api.accounts import domain_routes, people_routes
from postroom.web.api.events import events, waiting
from postroom.web.api.events import webhooks as webhook_posts
from postroom.web.api.mailbox import messages as downloads
from postroom.web.api.mailbox import search
from postroom.web.api.mailbox import threads as thread_deletion
from postroom.web.api.outward import calendar, drafts, redirect, send
from postroom.web.api.ways import connections as connection_checks
from postroom.web.interface.bodies.send_body import require_idempotency_key
from postroom.web.interface.bodies.uploads import read_with_files
from postroom.web.requests.request_body import read_optional
from postroom.web.routing import ACCOUNT, POD, PUBLIC, SCOPED, Route

NEW_INBOX = (
    *(errors.InvalidMailboxName, errors.InvalidDomain, errors.AddressTaken),
    errors.InvalidWebhookUrl,
)
NEW_KEY = (errors.ApiKeyLimitReached,)
OLD_KEY = (errors.LastKey,)
OLD_POD = (errors.DefaultPod, errors.PodNotEmpty, errors.PodHasDomains)
LISTED_WEBHOOK = (errors.InvalidWebhookUrl, errors.WebhookLimitReached, errors.ClientIdTaken)
LINK = (errors.InvalidSignature,)
TEXT = (errors.NoText,)
SEND = (
    *(errors.MissingIdempotencyKey, errors.FeatureRequiresPaidPlan, errors.IdempotencyKeyReused),
    *(errors.RecipientNotAllowed, errors.RecipientSuppressed, errors.ColdOutreachLimit, errors.LoopDetected),
)
NEW_DRAFT = (errors.DraftLimitReached,)
CHANGE_DRAFT = (errors.DraftChanged,)
SEND_DRAFT = (*SEND, errors.DraftChanged, errors.PayloadTooLarge)
MISSING = (errors.NotFound,)
OLD_TEMPLATE = (errors.TemplateExists,)
NEW_TEMPLATE = (*MISSING, *OLD_TEMPLATE, errors.TemplateLimitReached)
TEST = (errors.NoWebhookUrl, errors.WebhookFailed)
AGAIN = (errors.NothingToDo, errors.RecipientNotAllowed, errors.RecipientSuppressed)
CANCEL = (errors.NothingToDo,)
APPROVE = (errors.NotHeld, errors.ContentChanged)
REJECT = (errors.NotHeld,)
NEW_CONNECTION = (errors.InvalidTarget, errors.ConnectionLimitReached)

ROUTES = (
    Route("GET", "/v1/me", keys.who_am_i, SCOPED, NOTHING),
    Route(
        "POST",
        "/v1/inboxes",
        inboxes.create_inbox,
        POD,
        MANAGING,
        201,
        NEW_INBOX,
        prepare=webhook_posts.require_allowed_own_url,
    ),
    Route("GET", "/v1/inboxes", inboxes.list_inboxes, SCOPED, READING),
    Route("GET", "/v1/inboxes/{inbox_id}", inboxes.get_inbox, SCOPED, READING),
    Route(
        "PATCH",
        "/v1/inboxes/{inbox_id}",
        inboxes.change_inbox,
        POD,
        MANAGING,
        200,
        (errors.InvalidWebhookUrl,),
        prepare=webhook_posts.require_allowed_own_url,
    ),
    Route("DELETE", "/v1/inboxes/{inbox_id}", inboxes.delete_inbox, POD, MANAGING, 204),
    Route(
        "POST",
        "/v1/inboxes/{inbox_id}/webhook/test",
        webhook_posts.test_inbox_webhook,
        POD,
        MANAGING,
        200,
        TEST,
    ),
    Route(
        "POST",
        "/v1/inboxes/{inbox_id}/webhook/rotate-secret",
        webhooks.rotate_inbox_secret,
        POD,
        MANAGING,
        200,
        (errors.NoWebhookUrl,),
    ),
    Route("POST", "/v1/inboxes/{inbox_id}/api-keys", keys.create_inbox_key, ACCOUNT, MANAGING, 201, NEW_KEY),
    Route("GET", "/v1/inboxes/{inbox_id}/api-keys", keys.list_inbox_keys, ACCOUNT, READING),
    Route(
        "DELETE", "/v1/inboxes/{inbox_id}/api-keys/{key_id}", keys.delete_inbox_key, ACCOUNT, MANAGING, 204
    ),
    Route("GET", "/v1/account", pods.get_account, ACCOUNT, READING),
    Route("PATCH", "/v1/account", pods.change_account, ACCOUNT, MANAGING),
    Route("POST", "/v1/api-keys", keys.create_api_key, ACCOUNT, MANAGING, 201, NEW_KEY),
    Route("GET", "/v1/api-keys", keys.list_api_keys, ACCOUNT, READING),
    Route("GET", "/v1/api-keys/{key_id}", keys.get_api_key, ACCOUNT, READING),
    Route("PATCH", "/v1/api-keys/{key_id}", keys.change_api_key, ACCOUNT, MANAGING, 200, OLD_KEY),
    Route("DELETE", "/v1/api-keys/{key_id}", keys.delete_api_key, ACCOUNT, MANAGING, 204, OLD_KEY),
    Route("POST", "/v1/pods", pods.create_pod, ACCOUNT, MANAGING, 201, (errors.ClientIdTaken,)),
    Route("GET", "/v1/pods", pods.list_pods, POD, READING),
    Route("GET", "/v1/pods/{pod_id}", pods.get_pod, POD, READING),
    Route("PATCH", "/v1/pods/{pod_id}", pods.change_pod, ACCOUNT, MANAGING, 200, (errors.ClientIdTaken,)),
    Route("DELETE", "/v1/pods/{pod_id}", pods.delete_pod, ACCOUNT, MANAGING, 204, OLD_POD),
    Route("POST", "/v1/pods/{pod_id}/api-keys", keys.create_pod_key, ACCOUNT, MANAGING, 201, NEW_KEY),
    Route("GET", "/v1/pods/{pod_id}/api-keys", keys.list_pod_keys, ACCOUNT, READING),
    Route("DELETE", "/v1/pods/{pod_id}/api-keys/{key_id}", keys.delete_pod_key, ACCOUNT, MANAGING, 204),
    *people_routes.ROUTES,
    Route("GET", "/v1/inboxes/{inbox_id}/threads", threads.list_threads, SCOPED, READING, is_kept=True),
    Route(
        "GET", "/v1/inboxes/{inbox_id}/messages", messages.list_inbox_messages, SCOPED, READING, is_kept=True
    ),
    Route("GET", "/v1/threads", threads.list_all_threads, SCOPED, READING, is_kept=True),
    Route("GET", "/v1/search", search.search_messages, SCOPED, READING),
    Route("GET", "/v1/usage", usage.get_usage, SCOPED, READING, seconds=10.0),
    Route("GET", "/v1/threads/{thread_id}", threads.get_thread, SCOPED, READING),
    Route("PATCH", "/v1/threads/{thread_id}", threads.change_thread, SCOPED, WRITING),
    Route("DELETE", "/v1/threads/{thread_id}", thread_deletion.delete_thread, POD, MANAGING, 204),
    Route("GET", "/v1/threads/{thread_id}/messages", threads.list_thread_messages, SCOPED, READING),
    Route("GET", "/v1/messages/{message_id}", messages.get_message, SCOPED, READING),
    Route(
        "DELETE",
        "/v1/messages/{message_id}",
        messages.delete_message,
        POD,
        MANAGING,
        204,
        after=downloads.remove_blobs,
    ),
    Route("GET", "/v1/messages/{message_id}/raw", downloads.get_raw_message, SCOPED, READING),
    Route(
        "GET",
        "/v1/attachments/{message_id}/{filename}",
        downloads.get_attachment,
        SCOPED,
        READING,
        200,
        LINK,
        also=(302,),
    ),
    Route(
        "GET",
        "/v1/attachments/{message_id}/{filename}/text",
        messages.get_attachment_text,
        SCOPED,
        READING,
        200,
        TEXT,
    ),
    Route(
        "GET",
        "/v1/attachments/{message_id}/{filename}/preview",
        downloads.get_attachment_preview,
        SCOPED,
        READING,
        200,
        (errors.NoPreview,),
    ),
    Route("GET", "/v1/events", events.list_events, SCOPED, READING, 200, MISSING),
    Route(
        *("POST", "/v1/inboxes/{inbox_id}/send", send.send_message, SCOPED, WRITING, 200, SEND),
        read=read_with_files,
        header="Idempotency-Key",
        before_body=require_idempotency_key,
        proves=True,
    ),
    Route(
        *("POST", "/v1/inboxes/{inbox_id}/drafts", drafts.create_draft, SCOPED, DRAFTING, 201, NEW_DRAFT),
        read=read_with_files,
    ),
    Route("GET", "/v1/inboxes/{inbox_id}/drafts", drafts.list_drafts, SCOPED, READING),
    Route("GET", "/v1/drafts/{draft_id}", drafts.get_draft, SCOPED, READING),
    Route(
        *("PATCH", "/v1/drafts/{draft_id}", drafts.change_draft, SCOPED, DRAFTING, 200, CHANGE_DRAFT),
        read=read_with_files,
        is_versioned=True,
    ),
    Route(
        *("DELETE", "/v1/drafts/{draft_id}", drafts.delete_draft, SCOPED, DRAFTING, 204, CHANGE_DRAFT),
        is_versioned=True,
    ),
    Route(
        *("POST", "/v1/drafts/{draft_id}/attachments", drafts.add_draft_files, SCOPED, DRAFTING, 201),
        errors=CHANGE_DRAFT,
        read=read_with_files,
        is_versioned=True,
    ),
    Route(
        *("DELETE", "/v1/drafts/{draft_id}/attachments/{filename}", drafts.delete_draft_file),
        *(SCOPED, DRAFTING, 204),
        errors=CHANGE_DRAFT,
        is_versioned=True,
    ),
    Route(
        *("POST", "/v1/drafts/{draft_id}/send", drafts.send_draft, SCOPED, WRITING, 200, SEND_DRAFT),
        header="Idempotency-Key",
        read=read_optional,
        is_versioned=True,
        answers_gone=True,
    ),
    Route("POST", "/v1/templates", templates.create_template, POD, MANAGING, 201, NEW_TEMPLATE),
    Route("GET", "/v1/templates", templates.list_templates, SCOPED, READING),
    Route("GET", "/v1/templates/{template_id}", templates.get_template, SCOPED, READING),
    Route(
        "PATCH", "/v1/templates/{template_id}", templates.change_template, POD, MANAGING, 200, OLD_TEMPLATE
    ),
    Route("DELETE", "/v1/templates/{template_id}", templates.delete_template, POD, MANAGING, 204),
    Route(
        "POST",
        "/v1/messages/{message_id}/calendar/respond",
        calendar.respond_to_invitation,
        SCOPED,
        WRITING,
        200,
        (*SEND, errors.NotAnInvitation),
        header="Idempotency-Key",
        before_body=require_idempotency_key,
    ),
    Route(
        "POST",
        "/v1/messages/{message_id}/redirect",
        redirect.redirect_message,
        SCOPED,
        WRITING,
        200,
        (*SEND, errors.NotRedirectable),
        header="Idempotency-Key",
        before_body=require_idempotency_key,
    ),
    Route("POST", "/v1/messages/{message_id}/retry", messages.retry_message, SCOPED, SENDING, 200, AGAIN),
    Route("POST", "/v1/messages/{message_id}/cancel", messages.cancel_message, SCOPED, WRITING, 200, CANCEL),
    Route("PATCH", "/v1/messages/{message_id}", messages.change_message, SCOPED, WRITING, 200, CANCEL),
    Route("POST", "/v1/messages/{message_id}/approve", holds.approve_message, POD, APPROVING, 200, APPROVE),
    Route("POST", "/v1/messages/{message_id}/reject", holds.reject_message, POD, APPROVING, 200, REJECT),
    Route("GET", "/v1/approvals", holds.list_approvals, SCOPED, READING),
    Route("GET", "/v1/pause", holds.get_pause, SCOPED, READING, 200, MISSING),
    Route("PUT", "/v1/pause", holds.put_pause, POD, MANAGING, 200, MISSING),
    Route("DELETE", "/v1/pause", holds.delete_pause, POD, MANAGING, 200, MISSING),
    Route("GET", "/v1/inboxes/{inbox_id}/limits", holds.get_inbox_limits, SCOPED, READING),
    Route("GET", "/v1/suppressions", suppressions.list_suppressions, ACCOUNT, READING),
    Route("POST", "/v1/suppressions", suppressions.add_suppression, ACCOUNT, MANAGING, 201),
    Route("DELETE", "/v1/suppressions/{address}", suppressions.delete_suppression, ACCOUNT, MANAGING, 204),
    *domain_routes.ROUTES,
    Route("GET", "/v1/connections", connections.list_connections, POD, READING),
    Route(
        "POST",
        "/v1/connections",
        connections.create_connection,
        POD,
        MANAGING,
        201,
        NEW_CONNECTION,
        prepare=connection_checks.require_allowed,
    ),
    Route("GET", "/v1/connections/{connection_id}", connections.get_connection, POD, READING),
    Route(
        "PATCH",
        "/v1/connections/{connection_id}",
        connections.change_connection,
        POD,
        MANAGING,
        200,
        (errors.InvalidTarget,),
        prepare=connection_checks.require_allowed,
    ),
    Route("DELETE", "/v1/connections/{connection_id}", connections.delete_connection, POD, MANAGING, 204),
    Route("POST", "/v1/connections/{connection_id}/test", connection_checks.test_connection, POD, MANAGING),
    Route(
        "GET", "/v1/inboxes/{inbox_id}/wait", waiting.wait_for_message, SCOPED, READING, 200, (), also=(204,)
    ),
    Route("GET", "/v1/webhook", webhooks.get_webhook, ACCOUNT, READING, 200, MISSING),
    Route(
        "PUT",
        "/v1/webhook",
        webhooks.put_webhook,
        ACCOUNT,
        MANAGING,
        200,
        (errors.InvalidWebhookUrl,),
        prepare=webhook_posts.require_allowed_url,
    ),
    Route("DELETE", "/v1/webhook", webhooks.delete_webhook, ACCOUNT, MANAGING, 204, MISSING),
    Route("POST", "/v1/webhook/test", webhook_posts.test_webhook, ACCOUNT, MANAGING, 200, TEST),
    Route(
        "POST", "/v1/webhook/rotate-secret", webhooks.rotate_webhook_secret, ACCOUNT, MANAGING, 200, MISSING
    ),
    Route(
        "POST",
        "/v1/webhooks",
        webhook_list.create_webhook,
        ACCOUNT,
        MANAGING,
        201,
        LISTED_WEBHOOK,
        prepare=webhook_posts.require_allowed_listed_url,
    ),
    Route("GET", "/v1/webhooks", webhook_list.list_webhooks, ACCOUNT, READING),
    Route("GET", "/v1/webhooks/{webhook_id}", webhook_list.get_listed_webhook, ACCOUNT, READING),
    Route(
        "PATCH",
        "/v1/webhooks/{webhook_id}",
        webhook_list.change_webhook,
        ACCOUNT,
        MANAGING,
        200,
        (errors.InvalidWebhookUrl,),
        prepare=webhook_posts.require_allowed_listed_url,
    ),
    Route("DELETE", "/v1/webhooks/{webhook_id}", webhook_list.delete_listed_webhook, ACCOUNT, MANAGING, 204),
    Route(
        "POST",
        "/v1/webhooks/{webhook_id}/test",
        webhook_posts.test_listed_webhook,
        ACCOUNT,
        MANAGING,
        200,
        (errors.WebhookFailed,),
    ),
    Route(
        "POST",
        "/v1/webhooks/{webhook_id}/rotate-secret",
        webhook_list.rotate_listed_webhook_secret,
        ACCOUNT,
        MANAGING,
    ),
    Route("GET", "/v1/webhook/deliveries", webhooks.list_webhook_deliveries, ACCOUNT, READING),
    Route("POST", "/v1/webhook/deliveries/retry", webhook_posts.retry_failed_deliveries, ACCOUNT, MANAGING),
    Route(
        "POST",
        "/v1/webhook/deliveries/{delivery_id}/retry",
        webhooks.retry_webhook_delivery,
        ACCOUNT,
        MANAGING,
    ),
    Route("POST", "/v1/messages/{message_id}/release", messages.release_message, POD, MANAGING, 200, CANCEL),
    Route("GET", "/v1/policy", policies.get_policy, SCOPED, READING, 200, MISSING),
    Route("PUT", "/v1/policy", policies.put_policy, POD, MANAGING, 200, MISSING),
    Route("PUT", "/v1/policy/mode", policies.put_policy_mode, POD, MANAGING, 200, MISSING),
    Route("POST", "/v1/policy/rules", policies.add_policy_rule, POD, MANAGING, 201, MISSING),
    Route("DELETE", "/v1/policy/rules/{rule_id}", policies.delete_policy_rule, POD, MANAGING, 204),
    Route("GET", "/v1/policy/audit", policies.list_policy_audit, SCOPED, READING, 200, MISSING),
    Route("GET", "/v1/audit", audit_log.list_audit, POD, MANAGING),
    Route("GET", "/health", public.health, PUBLIC, NOTHING),
    Route("GET", "/ready", public.ready, PUBLIC, NOTHING, 200, (errors.Unavailable,)),
    Route("GET", "/.well-known/oauth-protected-resource", public.describe_mcp, PUBLIC, NOTHING),
    Route("GET", "/.well-known/oauth-protected-resource/mcp", public.describe_mcp_below, PUBLIC, NOTHING),
    Route("GET", "/.well-known/mta-sts.txt", public.mta_sts_policy, PUBLIC, NOTHING),
    Route("GET", public.AUTOCONFIG, public.autoconfig, PUBLIC, NOTHING, 200, MISSING),
    Route("GET", "/metrics", public.metrics, PUBLIC, NOTHING),
    Route("GET", "/openapi.json", public.openapi, PUBLIC, NOTHING),
    Route("GET", "/llms.txt", public.llms, PUBLIC, NOTHING),
    Route("GET", "/docs", public.docs, PUBLIC, NOTHING),
    Route("GET", "/docs/{file}", public.docs_file, PUBLIC, NOTHING),
)

ROUTE_OF = {route.operation: route for route in ROUTES}
