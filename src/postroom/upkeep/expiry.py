"""Removes expired rows: which tables, and after how long."""

from postroom import limits
from postroom.accounts import audit, audit_chain, dkim_keys
from postroom.accounts.oauth import grants, oauth_clients
from postroom.clock import DAY
from postroom.deliverability import domain_reports
from postroom.events import feedback, tool_calls
from postroom.inward import greylist
from postroom.outward.notices import system_emails
from postroom.queue import delayed_actions, dmarc_results, idempotency, report_deliveries, tls_sessions
from postroom.queue.providers import counts, paces, warm_ups
from postroom.storage.database import Tx
from postroom.upkeep.deletion import delete_all

EVENT_LIFETIME = limits.EVENTS_DAYS * DAY
HANDOVER_LIFETIME = 5 * DAY
CREATION_LIFETIME = 2 * DAY
REPLY_LIFETIME = 2 * DAY
CODE_REMEMBERED = DAY  # within this time after its end, a code used again ends its grant

EXPIRING = (
    ("events", "id", "created_at", EVENT_LIFETIME),
    ("inbox_creations", "inbox_id", "created_at", CREATION_LIFETIME),
    ("handovers", "inbox_id, content_hash", "received_at", HANDOVER_LIFETIME),
    ("posts", "connection_id, post_id", "received_at", HANDOVER_LIFETIME),
    ("idempotency_keys", "account_id, idempotency_key", "created_at", idempotency.LIFETIME),
    ("sessions", "id", "expires_at", 0),
    ("login_links", "token_hash", "expires_at", 0),
    ("mail_links", "token_hash", "expires_at", 0),
    ("letters", "id", "created_at", system_emails.LIFETIME),
    ("challenges", "token_hash", "expires_at", 0),
    ("oauth_codes", "code_hash", "expires_at", CODE_REMEMBERED),
    ("oauth_used_tokens", "token_hash", "expires_at", 0),
    ("device_codes", "request_hash", "expires_at", 0),
    ("check_answers", "sender", "answered_at", DAY),
    ("domain_reports", "owner, domain, kind, report_hash, position", "received_at", domain_reports.LIFETIME),
    ("provider_hours", "account_id, pod_id, provider, hour_at", "hour_at", counts.LIFETIME),
    ("provider_paces", "provider", "slowed_at", paces.FORGOTTEN),
    ("warm_ups", "domain, provider", "day_at", warm_ups.FORGOTTEN),
    ("dkim_keys", "owner, domain, selector", "retired_at", dkim_keys.REMEMBERED),
    (
        "tls_sessions",
        "day, domain, policy_type, policy, result, host, ip, reason",
        "noted_at",
        tls_sessions.LIFETIME,
    ),
    ("tls_reports", "domain, day", "created_at", report_deliveries.LIFETIME),
    ("dmarc_results", "id", "noted_at", dmarc_results.LIFETIME),
    ("dmarc_reports", "domain, day", "created_at", report_deliveries.LIFETIME),
    ("greylist", "bucket", "seen_at", greylist.REMEMBERED),
    ("notifications", "id", "created_at", EVENT_LIFETIME),
    ("feedback", "id", "created_at", feedback.LIFETIME),
    ("delayed_actions", "id", "due_at", delayed_actions.LIFETIME),
    ("tool_calls", "key_id, minute, tool, inbox_id, outcome", "called_at", tool_calls.LIFETIME),
    ("file_links", "id", "expires_at", 0),
    ("writers", "thread_id, person", "until_at", 0),
    ("webhooks", "owner", "expires_at", 0),
    ("shown_links", "token_hash", "shown_at", audit.LIFETIME),
    ("jobs", "id", "finished_at", audit.LIFETIME),
    ("rule_matches", "rule_id, message_id", "matched_at", EVENT_LIFETIME),
    ("rule_replies", "inbox_id, address, day", "day", REPLY_LIFETIME),
    ("policy_audit", "id", "created_at", audit.LIFETIME),
)


def expire_rows(tx: Tx, now: int, rows: int) -> int:
    """Returns the number of rows removed: 0 when nothing is left to do."""
    removed = 0
    for table, key, moment, lifetime in EXPIRING:
        removed += tx.run(
            f"delete from {table} where ({key}) in"
            f" (select {key} from {table} where {moment} < :limit order by {moment} limit :rows)",
            limit=now - lifetime,
            rows=rows,
        )
    removed += audit_chain.expire(tx, now - audit.LIFETIME, rows)
    removed += grants.remove_expired(tx, now, rows)
    return removed + oauth_clients.remove_unused(tx, now, rows)


def expire_deliveries(tx: Tx, now: int, rows: int) -> int:
    """Expire deliveries: of webhooks with their events, of an email with it."""
    found = tx.all(
        "select id from deliveries where kind = 'webhook' and finished_at < :limit limit :rows",
        limit=now - EVENT_LIFETIME,
        rows=rows,
    )
    delivery_ids = [row["id"] for row in found]
    delete_all(tx, "attempts", "delivery_id", delivery_ids)
    return delete_all(tx, "deliveries", "id", delivery_ids)
