"""The audit log: who decided what, from where, before and after."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field
from starlette.responses import Response

from postroom.accounts import audit
from postroom.fields import Offset
from postroom.operations import audit_log
from postroom.operations.audit_log import AuditQuery
from postroom.web.call import Tx
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.page_context import PageContext
from postroom.web.dashboard.settings import audit_targets

SHOWN = 50
EXPORTED = 5000
PAGE = 100


class AuditLogQuery(Struct, frozen=True):
    action: str = ""
    actor: str = ""
    inbox_id: str = field(name="inboxId", default="")
    since: str = ""  # a day
    offset: Offset = 0


def asked(query: AuditLogQuery, limit: int, offset: int) -> AuditQuery:
    return AuditQuery(
        since=f"{query.since}T00:00:00Z" if query.since else None,
        actor=query.actor or None,
        action=query.action or None,
        inbox_id=query.inbox_id or None,
        limit=limit,
        offset=offset,
    )


async def show_audit(context: PageContext, query: AuditLogQuery) -> Response:
    page = await context.ask(audit_log.list_audit, query=asked(query, SHOWN, query.offset))
    targets = await context.read(audit_targets.describe, context.call.scope, page["data"])
    choices = await context.read(read_choices, context)
    return await context.show(
        "audit.html",
        "settings",
        title="Audit",
        entries=[{**entry, "what": target} for entry, target in zip(page["data"], targets, strict=True)],
        total=page["total"],
        query=query,
        limit=SHOWN,
        **choices,
    )


def read_choices(tx: Tx, context: PageContext) -> dict[str, Any]:
    """Return the choices for the menus: what was done in the account, and who did something lately."""
    scope = context.call.scope
    return {"actions": audit.list_actions(tx, scope.account_id), "actors": audit.list_actors(tx, scope)}


async def export(context: PageContext, query: AuditLogQuery) -> Response:
    entries: list[dict[str, Any]] = []
    while len(entries) < EXPORTED:
        page = (await context.ask(audit_log.list_audit, query=asked(query, PAGE, len(entries))))["data"]
        entries += page
        if len(page) < PAGE:
            break
    head = ("at", "actor", "actorId", "address", "action", "count", "target", "before", "after")
    return sheets.to_file("audit.csv", head, to_rows(entries))


def to_rows(entries: list[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    for each in entries:
        actor = each["actor"]
        yield (
            each["at"],
            actor["name"] or actor["type"],
            actor["id"],
            each["address"],
            each["action"],
            each["count"],
            each["target"],
            written(each["before"]),
            written(each["after"]),
        )


def written(value: object) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()
