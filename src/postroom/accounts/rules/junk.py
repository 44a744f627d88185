"""What happens to junk, on account, pod and inbox: the nearest that is set, else the server's setting."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from postroom.errors import BadRequest
from postroom.storage.database import Tx, all_of

MARK, FOLDER, REJECT = "mark", "folder", "reject"
Action = Literal["mark", "folder", "reject"]


class JunkRules(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    """What happens to junk. `mark` only says so in the message; `folder` keeps it out of lists, threads and
    searches. `reject` also refuses email in SMTP from `rejectThreshold` on, if all its recipients here do.
    """

    action: Action = "mark"
    threshold: Annotated[
        float,
        Meta(
            description="From this score on an email is junk.",
            extra_json_schema={"exclusiveMinimum": 0, "maximum": 1},
        ),
    ] = 0.9
    reject_threshold: Annotated[
        float,
        Meta(
            description="With `reject`: from this score on an email is refused in SMTP.",
            extra_json_schema={"exclusiveMinimum": 0, "maximum": 1},
        ),
    ] = 0.99


def require_valid(rules: JunkRules) -> JunkRules:
    for name, value in (("threshold", rules.threshold), ("rejectThreshold", rules.reject_threshold)):
        if not 0 < value <= 1:
            raise BadRequest(f"junk.{name} is {value:g}. Use a number above 0, up to 1.", field="junk")
    if rules.reject_threshold < rules.threshold:
        raise BadRequest(
            f"junk.rejectThreshold is {rules.reject_threshold:g}, below junk.threshold {rules.threshold:g}."
            " Use at least the threshold.",
            field="junk",
        )
    return rules


def check_and_encode(rules: JunkRules | None) -> str | None:
    """Validates and encodes it for storage."""
    return None if rules is None else msgspec.json.encode(require_valid(rules)).decode()


def decode(stored: str | None) -> JunkRules | None:
    return None if stored is None else msgspec.json.decode(stored, type=JunkRules)


def in_force(tx: Tx, inbox_ids: Sequence[str], default: str) -> dict[str, JunkRules]:
    """Return the rules of each inbox; `default` is the server's action."""
    rows = all_of(
        tx,
        "select inboxes.id, coalesce(inboxes.junk, pods.junk, accounts.junk) as rules from inboxes"
        " join pods on pods.id = inboxes.pod_id join accounts on accounts.id = inboxes.account_id"
        " where :wanted",
        "inboxes.id",
        sorted(inbox_ids),
    )
    otherwise = msgspec.convert({"action": default}, JunkRules)
    return {row["id"]: decode(row["rules"]) or otherwise for row in rows}
