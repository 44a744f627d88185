"""Approval: when a send waits for a person, on account, pod, inbox and key. All levels add up."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroom.errors import BadRequest
from postroom.limits import APPROVAL_HOURS, APPROVALS
from postroom_mail.mime.address import normalize, validate

ALWAYS, STRANGERS, ATTACHMENTS, LINKS, RISK = "always", "strangers", "attachments", "links", "risk"
WORDS = (ALWAYS, STRANGERS, ATTACHMENTS, LINKS, RISK)
OVER_PER_DAY = "overPerDay"
KEY = "key"  # the reason for a send by a key that may only draft
LONGEST_HOURS = 30 * 24
REVIEWERS_LIMIT = 10
RULES_LIMIT = 20


class OverPerDay(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    over_per_day: int


# Limits are only described here: `require_valid` checks them, and stored values are read in any case.
class Approval(Struct, rename="camel", frozen=True):
    when: Annotated[
        list[str | OverPerDay],
        Meta(
            description=f"When a send waits: {', '.join(WORDS)}, or overPerDay.",
            extra_json_schema={"maxItems": RULES_LIMIT},
        ),
    ] = []
    expires_hours: Annotated[
        int,
        Meta(description="How long it waits.", extra_json_schema={"minimum": 1, "maximum": LONGEST_HOURS}),
    ] = APPROVAL_HOURS
    reviewers: Annotated[
        list[str],
        Meta(
            description="Addresses of reviewers, who are asked by mail.",
            extra_json_schema={"maxItems": REVIEWERS_LIMIT},
        ),
    ] = []
    approvals: Annotated[
        int,
        Meta(
            description="How many different people have to approve.",
            extra_json_schema={"minimum": 1, "maximum": APPROVALS},
        ),
    ] = 1


class Conditions(Struct, frozen=True):
    """The combined conditions of all levels for one send."""

    words: frozenset[str] = frozenset()
    over_per_day: int | None = None
    expires_hours: int = APPROVAL_HOURS
    reviewers: tuple[str, ...] = ()
    approvals: int = 1


NONE = Conditions()


def require_valid(approval: Approval) -> Approval:
    """Raises BadRequest with the field; reviewers are returned in normalized form."""
    if len(approval.when) > RULES_LIMIT:
        raise BadRequest(f"approval.when has at most {RULES_LIMIT} rules.", field="approval")
    for rule in approval.when:
        if isinstance(rule, OverPerDay):
            if rule.over_per_day < 0:
                raise BadRequest("overPerDay must be 0 or more.", field="approval")
        elif rule not in WORDS:
            known = ", ".join(WORDS)
            raise BadRequest(
                f"'{rule[:50]}' is not an approval rule. There are {known} and {{overPerDay: n}}.",
                field="approval",
            )
    if not 1 <= approval.expires_hours <= LONGEST_HOURS:
        raise BadRequest(f"expiresHours must be 1 to {LONGEST_HOURS}.", field="approval")
    if not 1 <= approval.approvals <= APPROVALS:
        raise BadRequest(f"approvals must be 1 to {APPROVALS}.", field="approval")
    return msgspec.structs.replace(approval, reviewers=_require_reviewers(approval.reviewers))


def _require_reviewers(addresses: list[str]) -> list[str]:
    if len(addresses) > REVIEWERS_LIMIT:
        raise BadRequest(f"approval has at most {REVIEWERS_LIMIT} reviewers.", field="approval")
    try:
        return list(dict.fromkeys(normalize(validate(address)) for address in addresses))
    except ValueError as error:
        raise BadRequest(f"A reviewer is not an address: {error}", field="approval") from None


def check_and_encode(approval: Approval | None) -> str | None:
    """Validates and encodes it for storage."""
    return encode(None if approval is None else require_valid(approval))


def encode(approval: Approval | None) -> str | None:
    return None if approval is None else msgspec.json.encode(approval).decode()


def decode(stored: str | None) -> Approval | None:
    return None if stored is None else msgspec.json.decode(stored, type=Approval)


def add_up(stored: Iterable[str | None]) -> Conditions:
    """Combine the stored conditions. One that this version cannot read or does not know holds everything."""
    levels = [level for level in stored if level is not None]
    if not levels:
        return NONE
    words: set[str] = set()
    counts: list[int] = []
    hours: list[int] = []
    reviewers: list[str] = []
    people: list[int] = []
    for level in levels:
        try:
            approval = msgspec.json.decode(level, type=Approval)
        except msgspec.DecodeError:
            words.add(ALWAYS)
            continue
        words |= {rule for rule in approval.when if isinstance(rule, str)}
        counts += [rule.over_per_day for rule in approval.when if isinstance(rule, OverPerDay)]
        hours += [approval.expires_hours] if approval.when else []
        reviewers += approval.reviewers
        people.append(approval.approvals)
    if not words <= set(WORDS):
        words = (words & set(WORDS)) | {ALWAYS}
    return Conditions(
        frozenset(words),
        min(counts, default=None),
        min(hours, default=APPROVAL_HOURS),
        tuple(dict.fromkeys(reviewers)),
        max(people, default=1),
    )
