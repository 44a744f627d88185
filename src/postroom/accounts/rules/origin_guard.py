"""What happens to a send that carries a value elsewhere, on all levels; and the values that are trusted."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from postroom.errors import BadRequest
from postroom.limits import ADDRESS_CHARACTERS
from postroom.storage.database import Tx
from postroom_mail.screening import values
from postroom_mail.screening.values import Value

OFF, MARK, HOLD, REFUSE = "off", "mark", "hold", "refuse"
STEPS = (OFF, MARK, HOLD, REFUSE)  # the strictest last
ORIGIN = "origin"  # the reason of a hold
TRUSTED_LIMIT = 200

GuardStep = Annotated[
    Literal["off", "mark", "hold", "refuse"],
    Meta(
        description="What happens to a send that carries a value of a received email to other people."
        " The strictest of account, pod, inbox and key counts; by default `hold` for OAuth, else `mark`."
    ),
]
TrustedValues = Annotated[
    list[Annotated[str, Meta(max_length=ADDRESS_CHARACTERS)]],
    Meta(
        max_length=TRUSTED_LIMIT,
        description="Domains, addresses, account and telephone numbers that any send may carry.",
    ),
]


def in_force(levels: Sequence[str | None], of_key: str | None) -> str:
    """Return the strictest step of those that are set; a word that this version does not know holds."""
    given = [each for each in (*levels, of_key) if each is not None]
    known = [each if each in STEPS else HOLD for each in given]
    return max(known, key=STEPS.index, default=MARK)


def check_and_encode(given: Sequence[str] | None) -> str | None:
    """Return trusted values as they are stored; an empty list is none."""
    if not given:
        return None
    for each in given:
        if not each.strip() or "\0" in each:
            raise BadRequest(
                f"trustedValues has an empty value: {each!r}. Leave it out.", field="trustedValues"
            )
    return msgspec.json.encode(list(dict.fromkeys(each.strip() for each in given))).decode()


def decode(stored: str | None) -> list[str]:
    return [] if stored is None else msgspec.json.decode(stored, type=list[str])


def list_trusted(tx: Tx, inbox_id: str) -> list[str]:
    """Return the trusted values of the inbox's account and pod, and the verified domains of the account."""
    row = tx.one(
        "select accounts.id as account_id, accounts.trusted_values as of_account,"
        " pods.trusted_values as of_pod from inboxes join pods on pods.id = inboxes.pod_id"
        " join accounts on accounts.id = inboxes.account_id where inboxes.id = :id",
        id=inbox_id,
    )
    if row is None:
        return []
    own = tx.all(
        "select name from domains where account_id = :id and verified_at is not null limit :most",
        id=row["account_id"],
        most=TRUSTED_LIMIT,
    )
    return [*decode(row["of_account"]), *decode(row["of_pod"]), *(each["name"] for each in own)]


def is_trusted(value: Value, trusted: Iterable[str]) -> bool:
    """Return whether it is one of them, or lies in a domain among them."""
    said = value.key.partition(":")[2]
    domain = values.domain_in(value)
    for each in trusted:
        wanted = each.lower().removeprefix("@")
        if said.lower() == wanted or value.shown.lower() == wanted or value.key in values.held_by(each):
            return True
        if domain and is_within(domain, wanted.removeprefix("*.")):
            return True
    return False


def is_within(domain: str, other: str) -> bool:
    return domain == other or domain.endswith(f".{other}")
