"""How an email that an agent wrote says so, on account, pod and inbox: the nearest that is set."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroom.errors import BadRequest
from postroom.storage.database import Tx
from postroom_mail.writing.disclosure import languages

READY = "ready"  # in place of the account's own words
WORDS_CHARACTERS = 500


class Disclosure(Struct, frozen=True, forbid_unknown_fields=True):
    """How an email that an agent wrote says so. An empty object says nothing, whatever the level above."""

    text: (
        Annotated[
            str,
            Meta(
                max_length=WORDS_CHARACTERS,
                description="The line at the end of its text: your own words, or `ready` for ready ones.",
            ),
        ]
        | None
    ) = None
    header: Annotated[bool, Meta(description="Whether it has the header field `AI-Disclosure`.")] = False
    language: (
        Annotated[
            str,
            Meta(
                description="The language of ready words; by default that of the thread.",
                extra_json_schema={"enum": sorted(languages())},
            ),
        ]
        | None
    ) = None


def check_and_encode(given: Disclosure | None) -> str | None:
    """Validates and encodes it for storage."""
    if given is None:
        return None
    if given.language is not None and given.language not in languages():
        known = ", ".join(sorted(languages()))
        raise BadRequest(
            f"disclosure.language is {given.language[:20]!r}. Use one of {known}.", field="disclosure"
        )
    if given.text is not None and (not given.text.strip() or not given.text.isprintable()):
        raise BadRequest(
            f"disclosure.text is {given.text[:50]!r}. Use one line of words, `{READY}`, or null.",
            field="disclosure",
        )
    return msgspec.json.encode(given).decode()


def decode(stored: str | None) -> Disclosure | None:
    return None if stored is None else msgspec.json.decode(stored, type=Disclosure)


def in_force(tx: Tx, inbox_id: str) -> str | None:
    """Return what counts for an inbox, as it is stored."""
    row = tx.one(
        "select coalesce(inboxes.disclosure, pods.disclosure, accounts.disclosure) as disclosure from inboxes"
        " join pods on pods.id = inboxes.pod_id join accounts on accounts.id = inboxes.account_id"
        " where inboxes.id = :id",
        id=inbox_id,
    )
    return None if row is None else row["disclosure"]
