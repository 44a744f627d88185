"""Addresses of inboxes where a request may name an id: in paths, queries, bodies and the stream.

An address becomes the id of its inbox before anything else is checked. An unknown one becomes
an id that no inbox has. So scope, errors and their order are those of ids.
"""

from typing import Any, TypeVar

from msgspec import Struct, structs

from postroom.errors import ApiError
from postroom.mailbox import inboxes
from postroom.resources import Resources
from postroom.web.answers import is_of_agentmail
from postroom.web.call import Call
from postroom.web.mcp import Narrowing
from postroom.web.routing import Found

T = TypeVar("T")


async def to_ids(resources: Resources, given: list[str]) -> list[str]:
    if not any("@" in each for each in given):
        return given
    return await resources.db.read(inboxes.with_ids, given)


async def in_path(resources: Resources, found: Found | ApiError) -> Found | ApiError:
    if isinstance(found, ApiError) or "@" not in found[1].get("inbox_id", ""):
        return found
    route, values = found
    (inbox_id,) = await to_ids(resources, [values["inbox_id"]])
    return route, {**values, "inbox_id": inbox_id}


async def in_narrowing(resources: Resources, narrowing: Narrowing) -> Narrowing:
    """Return the scope with an id in an address of MCP."""
    if "@" not in (narrowing.inbox_id or ""):
        return narrowing
    (inbox_id,) = await to_ids(resources, [narrowing.inbox_id or ""])
    return structs.replace(narrowing, inbox_id=inbox_id)


async def in_fields(call: Call, given: T) -> T:
    """Return the fields with ids in `inbox_id` and `inbox_ids` of a query, a body or an action of a rule.

    /v0 reads addresses separately.
    """
    if not isinstance(given, Struct) or is_of_agentmail(call.request):
        return given
    changed: dict[str, Any] = {}
    for name in ("inbox_id", "inbox_ids"):
        value = getattr(given, name, None)
        if isinstance(value, list):
            changed[name] = await to_ids(call.resources, value)
        elif isinstance(value, str) and "@" in value:
            changed[name] = ",".join(await to_ids(call.resources, value.split(",")))
    actions = getattr(given, "actions", None)
    if isinstance(actions, list):  # of a rule: copyTo names an inbox
        changed["actions"] = [await in_fields(call, action) for action in actions]
    return structs.replace(given, **changed) if changed else given
