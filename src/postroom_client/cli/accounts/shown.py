"""Show keys, pods, policies, domains, webhooks and usage, where columns alone are not enough."""

from typing import TYPE_CHECKING, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.context import FAILED, CommandContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postroom_client.results import (
        Actor,
        ApiKey,
        AuditEntry,
        ConnectionTest,
        Deliverability,
        DnsRecord,
        Domain,
        DomainHealth,
        DomainKey,
        DomainReports,
        HealthCheck,
        InboxLimits,
        Meter,
        Pause,
        Pod,
        Policy,
        PolicyRule,
        ReceivingProvider,
        Usage,
        Webhook,
        WebhookDelivery,
    )

MODES = {
    "inherit": "as on the level above",
    "none": "all but blocked addresses",
    "allowlist": "only allowed addresses",
}
TOKEN = ("id", "name", "token")
KEEP_TOKEN = "The token is shown only once: save it."  # noqa: S105 (a sentence)
KEEP_SECRET = "The secret is shown only once: save it."  # noqa: S105 (a sentence)


def key_scope_name(key: "ApiKey") -> str:
    return key.inbox_id or key.pod_id or "account"


def key_shown(key: "ApiKey") -> str:
    return f"{key.token_prefix}…{key.last4}"


def last_used(key: "ApiKey") -> str:
    return output.ago(key.last_used_at) or "never"


KEY = (
    "id",
    "name",
    ("scope", key_scope_name),
    ("key", key_shown),
    "permissions",
    "expires expires_at",
    ("last used", last_used),
)


def pod_name(pod: "Pod") -> str:
    return pod.name or ("default" if pod.is_default else "")


def named(actor: "Actor | None") -> str:
    return "" if actor is None else actor.name or actor.id


def decided(entry: "AuditEntry") -> str:
    return entry.action if entry.count == 1 else f"{entry.action} ({entry.count} times)"


def show_policy(context: CommandContext, policy: "Policy") -> None:
    for name, direction in (("inbound", policy.inbound), ("outbound", policy.outbound)):
        output.print_text(f"{name:<8}  {direction.mode} ({MODES[direction.mode]})")
        if direction.rules:
            output.print_table(("id", "type", "whom value"), direction.rules)


def show_rule(context: CommandContext, rule: "PolicyRule") -> None:
    output.print_human(output.record([("id", rule.id), (rule.type, rule.value)]))


def show_pause(context: CommandContext, found: "Pause") -> None:
    if not found.paused:
        output.print_human(output.record([("sending", "not paused")]))
        return
    pairs = [("sending", "paused"), ("since", output.ago(found.since)), ("by", named(found.by))]
    pairs += [("why", found.reason)] if found.reason else []
    output.print_human(output.record(pairs))
    output.note("End it: postroom resume")


def show_limits(context: CommandContext, limits: "InboxLimits") -> None:
    rows = [
        _meter("per minute", limits.per_minute),
        _meter("per day", limits.per_day),
        _meter("new recipients per day", limits.cold_per_day),
    ]
    output.print_human(output.table(("SENDS", "LIMIT", "USED", "RESETS"), rows))


def _meter(name: str, meter: "Meter") -> output.Row:
    resets = "" if meter.resets_at is None else f"{meter.resets_at:%Y-%m-%d %H:%M:%S %Z}"
    return name, "none" if meter.limit is None else str(meter.limit), str(meter.used), resets


def show_domain(context: CommandContext, domain: "Domain") -> None:
    output.print_human(
        output.record([("id", domain.id), ("domain", domain.domain), ("status", domain.status)])
    )
    for record in domain.records:
        output.print_text(f"\n{_describe(record)}")
    output.print_text("")
    output.print_table(("key selector", "algorithm", ("state", _key_state)), domain.dkim)
    if domain.status != "verified":
        output.note(f"\nWhen the records are set: postroom domains verify {domain.domain}")


def _key_state(key: "DomainKey") -> str:
    if key.removable_at is None:
        return key.state
    return f"{key.state}: its record can be removed after {key.removable_at:%Y-%m-%d %H:%M %Z}"


def _describe(record: "DnsRecord") -> str:
    need = "required" if record.required else "recommended"
    found = {True: ", found", False: ", not found", None: ""}[record.found]
    return f"{record.type}  {record.name}\n  {record.value}\n  {record.purpose} ({need}{found})"


def show_health(context: CommandContext, health: "DomainHealth") -> None:
    output.print_table(("state", "check name", "found"), health.data)
    for check in _faulty(health):
        output.note(f"\n{check.name}: {check.why}")
        if check.paste:
            output.print_text(check.paste)


def show_reports(context: CommandContext, reports: "DomainReports") -> None:
    if not reports.data and not reports.tls:
        output.note("No reports yet: other servers send them daily, once you send email to them.")
        return
    output.print_table(("source", "emails count", "spf", "dkim", "disposition"), reports.data)
    if reports.tls:
        output.print_text("")
        output.print_table(("reporter source", "connections count", "policy", "result"), reports.tls)


def show_deliverability(context: CommandContext, found: "Deliverability") -> None:
    counted = ("accepted", "deferred", "bounced", "complained", "tls")
    if not found.data and not found.warm_ups:
        output.note("Nothing was sent to other servers in this time.")
        return
    output.print_table(("provider", *counted, ("seconds", _seconds), ("pace", _pace)), found.data)
    if found.warm_ups:
        limit = ("limit", lambda each: str(each.limit or "no limit"))
        output.print_text("")
        output.print_table(("warm-up domain", "provider", "day", "used", limit), found.warm_ups)


def _seconds(row: "ReceivingProvider") -> str:
    return "" if row.seconds_to_accept is None else f"{row.seconds_to_accept:.1f}"


def _pace(row: "ReceivingProvider") -> str:
    return "" if row.pace is None else f"one in {row.pace.seconds_between:g} s"


def require_healthy(context: CommandContext, health: "DomainHealth", values: "Mapping[str, Any]") -> None:
    if _faulty(health):
        raise typer.Exit(FAILED)


def _faulty(health: "DomainHealth") -> "list[HealthCheck]":
    return [check for check in health.data if check.state in ("missing", "wrong")]


def require_verified(context: CommandContext, domain: "Domain", values: "Mapping[str, Any]") -> None:
    if domain.status != "verified":
        raise typer.Exit(FAILED)


def require_connected(context: CommandContext, test: "ConnectionTest", values: "Mapping[str, Any]") -> None:
    if not test.ok:
        raise typer.Exit(FAILED)


def show_webhook(context: CommandContext, webhook: "Webhook") -> None:
    state = "on" if webhook.enabled else f"off: {webhook.disabled_reason or 'no reason given'}"
    pairs = [("url", webhook.url), ("events", ", ".join(webhook.event_types)), ("state", state)]
    output.print_human(output.record([*pairs, *([("secret", webhook.secret)] if webhook.secret else [])]))


def keep_secret(context: CommandContext, webhook: "Webhook", values: "Mapping[str, Any]") -> None:
    if webhook.secret:
        output.note(KEEP_SECRET)


def attempts(delivery: "WebhookDelivery") -> str:
    return str(len(delivery.attempts))


def last_answer(delivery: "WebhookDelivery") -> str:
    last = delivery.attempts[-1] if delivery.attempts else None
    return "" if last is None else str(last.status or last.answer or "")


def show_usage(context: CommandContext, found: "Usage") -> None:
    """Show the days from the first one with numbers on, or one sentence if nothing happened."""
    counted = ("received", "sent", "failed", "bounced", "complained", "held", "blocked")
    is_busy = [any(getattr(row, name) for name in (*counted, "stored_bytes")) for row in found.data]
    is_of_days = all(row.group[:1].isdigit() for row in found.data)
    if is_of_days and True not in is_busy:
        output.note(f"Nothing was received or sent from {found.first} to {found.last}.")
        return
    rows = found.data[is_busy.index(True) :] if is_of_days else found.data
    output.print_table(("day group" if is_of_days else "group", *counted, "stored stored_bytes"), rows)
