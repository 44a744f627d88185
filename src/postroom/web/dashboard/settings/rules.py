"""When a send needs approval, and who may write to an inbox or be written to."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from starlette.responses import Response

from postroom import fields
from postroom.accounts.rules import approval, limits
from postroom.accounts.rules.approval import Approval, OverPerDay
from postroom.accounts.rules.disclosure import Disclosure
from postroom.accounts.rules.limits import Budget
from postroom.errors import BadRequest
from postroom.limits import APPROVAL_HOURS
from postroom.operations import inboxes, pods, policies
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import Action, runs
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, plain
from postroom_mail.writing.disclosure import languages

PATH = "/app/settings"
LONGEST_DAYS = 3650
SENTENCES = {
    "always": "every send",
    "strangers": "a recipient never wrote to the inbox, or only forged email came from it",
    "attachments": "it carries files",
    "links": "it contains a link or a network address",
    "risk": "its thread has a suspicious message",
}
CHOICES = {"words": approval.WORDS, "sentences": SENTENCES, "languages": sorted(languages())}  # of the form


class ApprovalForm(Struct, rename="camel", frozen=True):
    when: list[str] = []
    over_per_day: str = ""
    expires_hours: int = APPROVAL_HOURS
    reviewers: str = ""
    approvals: int = 1
    origin_guard: Literal["", "off", "mark", "hold", "refuse"] | None = (
        None  # None: the form has no such field
    )
    trusted_values: str | None = None
    disclosure_text: str | None = None
    disclosure_header: bool = False
    disclosure_language: str = ""
    disclosure_nothing: bool = False


class RetentionForm(Struct, rename="camel", frozen=True):
    retention_days: str = ""


class PolicyQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    pod_id: str = ""


class ModeForm(PolicyQuery, rename="camel", frozen=True, kw_only=True):
    mode: Literal["none", "allowlist", "inherit"]
    direction: Literal["inbound", "outbound"]


class RuleForm(PolicyQuery, rename="camel", frozen=True, kw_only=True):
    type: Literal["allow", "block", "trust"]
    value: str
    direction: Literal["inbound", "outbound"]


def read_approval(form: ApprovalForm) -> Approval | None:
    rules: list[str | OverPerDay] = [*form.when]
    if (over := read_number(form.over_per_day, "overPerDay")) is not None:
        rules.append(OverPerDay(over))
    people = [address.strip() for address in form.reviewers.replace(",", "\n").split("\n") if address.strip()]
    return Approval(rules, form.expires_hours, people, form.approvals) if rules or people else None


def read_others(form: ApprovalForm) -> dict[str, str | list[str] | Disclosure | None]:
    """Return the fields of the origin guard and the disclosure that the form has."""
    given: dict[str, str | list[str] | Disclosure | None] = {}
    if form.disclosure_text is not None:
        words, language = form.disclosure_text.strip() or None, form.disclosure_language or None
        said = Disclosure(words, form.disclosure_header, language)
        given["disclosure"] = said if said != Disclosure() or form.disclosure_nothing else None
    if form.origin_guard is not None:
        given["origin_guard"] = form.origin_guard or None
    if form.trusted_values is not None:
        given["trusted_values"] = [each.strip() for each in form.trusted_values.splitlines() if each.strip()]
    return given


def read_number(value: str, field: str) -> int | None:
    """Return None if empty: then nothing is set."""
    if not value.strip():
        return None
    if not (value.strip().isascii() and value.strip().isdigit() and len(value) < 10):
        raise BadRequest(f"{field} must be a number. Leave it empty for the default.", field=field)
    return int(value)


def read_budget(per_minute: str, per_day: str, cold_per_day: str) -> Budget:
    return Budget(
        read_number(per_minute, "perMinute"),
        read_number(per_day, "perDay"),
        read_number(cold_per_day, "coldPerDay"),
    )


async def show_rules(context: PageContext) -> Response:
    account = (await context.ask(pods.get_account)) if context.call.scope.is_account else None
    return await context.show(
        "rules.html",
        "settings",
        title="Settings",
        account=account,
        **CHOICES,
        limits=plain(limits.in_force(context.call.resources.config, context.call.caller.account_limits)),
    )


def saves_rules(operation: Callable[..., Any], change: Callable[..., Struct], to: str) -> Action:
    """Return a page that saves the approval rules of what its path names."""

    def rules_of(form: ApprovalForm) -> dict[str, Any]:
        return {"body": change(approval=read_approval(form), **read_others(form))}

    return runs(operation, to, "Saved.", ApprovalForm, rules_of)


set_rules = saves_rules(pods.change_account, pods.AccountChange, PATH)
set_retention = runs(
    pods.change_account,
    PATH,
    lambda form: f"Emails are kept {days_in_words(form)}.",
    RetentionForm,
    lambda form: {"body": pods.AccountChange(retention_days=read_days(form.retention_days))},
)


def days_in_words(form: RetentionForm) -> str:
    days = read_days(form.retention_days)
    return "forever" if days is None else f"for {days} days"


def read_days(value: str) -> int | None:
    days = read_number(value, "retentionDays")
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise BadRequest(
            f"Enter 1 to {LONGEST_DAYS} days, or leave the field empty to keep emails forever.",
            field="retentionDays",
        )
    return days


def scope_filter_of(query: PolicyQuery) -> fields.ScopeFilter:
    return fields.ScopeFilter(query.inbox_id or None, query.pod_id or None)


async def show_policy(context: PageContext, query: PolicyQuery) -> Response:
    """Show the chosen level, and the policies of the levels above it."""
    found = await context.ask(policies.get_policy, query=scope_filter_of(query))
    asked = policies.PolicyAuditQuery(inbox_id=query.inbox_id or None, pod_id=query.pod_id or None, limit=20)
    stopped = (await context.ask(policies.list_policy_audit, query=asked))["data"]
    return await context.show(
        "policy.html",
        "settings",
        title="Policy",
        policy=found,
        above=[
            (name, (await context.ask(policies.get_policy, query=at)))
            for name, at in await levels_above(context, query)
        ],
        query=query,
        stopped=stopped,
    )


async def levels_above(context: PageContext, query: PolicyQuery) -> list[tuple[str, fields.ScopeFilter]]:
    """Return the levels above: the whole scope of the person, and the pod of an inbox."""
    if not query.inbox_id and not query.pod_id:
        return []
    if not query.inbox_id or not context.call.scope.is_account:
        return [("at the level above", fields.ScopeFilter())]
    inbox = await context.run(inboxes.get_inbox, inbox_id=query.inbox_id)
    return [
        ("for the account", fields.ScopeFilter()),
        ("for its pod", fields.ScopeFilter(None, inbox.pod_id)),
    ]


def page_of(form: PolicyQuery) -> str:
    return link(f"{PATH}/policy", inboxId=form.inbox_id, podId=form.pod_id)


set_mode = runs(
    policies.put_policy_mode,
    page_of,
    "Saved.",
    ModeForm,
    lambda form: {
        "query": scope_filter_of(form),
        "body": policies.ModeChange(form.mode, form.direction),
    },
)
add_rule = runs(
    policies.add_policy_rule,
    page_of,
    "Rule added.",
    RuleForm,
    lambda form: {
        "query": scope_filter_of(form),
        "body": policies.NewRule(form.type, form.value, form.direction),
    },
)
remove_rule = undo.delayed(
    policies.delete_policy_rule,
    page_of,
    "Removing the rule in {seconds} seconds.",
    PolicyQuery,
    lambda form: {"query": scope_filter_of(form)},
)
