"""Takes an erased contact out of the event log: the events stay, in their order, without what was written."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from postroom.accounts.audit_erasure import mention_of
from postroom.accounts.scope import Scope, default_pod
from postroom.events.payload import no_message
from postroom.storage import packing
from postroom.storage.database import Tx, update
from postroom_mail.mime.address import normalize

ERASED = "erased"  # what stands where the address was
# The fields of a message's event that stay: they say what happened, not what was written.
KEPT = frozenset("event event_id inbox_id thread_id occurred_at".split())


class ErasedEvents(Struct, frozen=True):
    """How many events were looked at and emptied, and the position of the last; None at the end."""

    examined: int
    erased: int
    last: int | None


def erase_some(tx: Tx, scope: Scope, address: str, after: int, until: int, rows: int) -> ErasedEvents:
    """Erase the content of the next events that name the address, unless their message still exists."""
    found = tx.all(
        "select events.id, events.position, events.pod_id, events.payload, events.message_id,"
        " messages.id as there from events left join messages on messages.id = events.message_id"
        " where account_id = :account_id and position > :after and events.created_at <= :until"
        " order by position limit :rows",
        account_id=scope.account_id,
        after=after,
        until=until,
        rows=rows,
    )
    mention, erased = mention_of(address), 0
    for row in found:
        stored = packing.unpack_json(bytes(row["payload"]))
        pod_id = row["pod_id"] or default_pod(scope.account_id)
        is_ours = scope.pod_id in (None, pod_id) and row["there"] is None
        if is_ours and mention.search(stored.decode(errors="replace")):
            left = without_content(stored, address)
            update(tx, "events", row["id"], payload=packing.pack(left) or left, text_files="")
            erased += 1
    return ErasedEvents(len(found), erased, found[-1]["position"] if len(found) == rows else None)


def without_content(stub: bytes, address: str) -> bytes:
    """Return the event without its content. One of a message keeps only ids; others lose the address."""
    event: dict[str, Any] = msgspec.json.decode(stub)
    message = event["message"]
    if message["id"]:
        left = {name: value for name, value in event.items() if name in KEPT}
        event = {**left, "message": no_message(message["received_at"], message["id"])}
        event = msgspec.to_builtins(event)
    return msgspec.json.encode(without_address(event, address))


def without_address(value: Any, address: str) -> Any:
    """Return JSON without the address: people with it are left out, and in texts it is replaced."""
    return _without(value, address, mention_of(address))


def _without(value: Any, address: str, mention: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return mention.sub(ERASED, value)
    if isinstance(value, list):
        return [_without(each, address, mention) for each in value if not _is_person(each, address)]
    if isinstance(value, dict):
        return {name: _without(each, address, mention) for name, each in value.items()}
    return value


def _is_person(value: Any, address: str) -> bool:
    return isinstance(value, dict) and normalize(str(value.get("address", ""))) == address
