"""Drafts: mails written in steps, and sent as a whole."""

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import uuid4

from postroom_client.calls.sending import (
    UPLOAD_TIMEOUT_SECONDS,
    Addresses,
    File,
    listed,
    read_files,
    spell_moment,
)
from postroom_client.charge_results import Draft
from postroom_client.results import Page, Sent
from postroom_client.transport.exchange import Call, decoded, nothing, path, present


class DraftFields(TypedDict, total=False):
    """Those of a send. None clears; attachments that are given stand in for all that were there."""

    to: Addresses | None
    cc: Addresses | None
    bcc: Addresses | None
    subject: str | None
    body: str | None
    body_html: str | None
    thread_id: str | None
    include_quote: bool | None
    reply_to: str | None
    reply_all: bool | None
    forward_of: str | None
    automated: bool | None
    headers: Mapping[str, str] | None
    metadata: Mapping[str, str] | None
    send_at: datetime | str | None
    undo_seconds: int | None
    attachments: Sequence[File] | None


def create_draft(inbox_id: str, **fields: Unpack[DraftFields]) -> Call[Draft]:
    """Begin a mail: any field of a send may still be missing."""
    target = path("v1", "inboxes", inbox_id, "drafts")
    body = _to_json(fields)
    return Call(
        "POST",
        target,
        decoded(Draft),
        json=body,
        is_repeatable=False,
        timeout_seconds=UPLOAD_TIMEOUT_SECONDS,
    )


def list_drafts(inbox_id: str, *, limit: int = 50, offset: int = 0) -> Call[Page[Draft]]:
    """The drafts of an inbox, newest first."""
    query = present(limit=limit, offset=offset)
    return Call("GET", path("v1", "inboxes", inbox_id, "drafts"), decoded(Page[Draft]), query=query)


def get_draft(draft_id: str) -> Call[Draft]:
    """A draft by its id."""
    return Call("GET", path("v1", "drafts", draft_id), decoded(Draft))


def update_draft(draft_id: str, **fields: Unpack[DraftFields]) -> Call[Draft]:
    """Change what is given; None clears it."""
    target = path("v1", "drafts", draft_id)
    return Call(
        "PATCH", target, decoded(Draft), json=_to_json(fields), timeout_seconds=UPLOAD_TIMEOUT_SECONDS
    )


def delete_draft(draft_id: str) -> Call[None]:
    """Throw a draft away."""
    return Call("DELETE", path("v1", "drafts", draft_id), nothing)


def add_draft_files(draft_id: str, attachments: Sequence[File]) -> Call[Draft]:
    """Attach files beside those that are there."""
    return Call(
        "POST",
        path("v1", "drafts", draft_id, "attachments"),
        decoded(Draft),
        files=read_files(attachments),
        is_repeatable=False,
        timeout_seconds=UPLOAD_TIMEOUT_SECONDS,
    )


def delete_draft_file(draft_id: str, filename: str) -> Call[None]:
    """Take a file out of a draft."""
    return Call("DELETE", path("v1", "drafts", draft_id, "attachments", filename), nothing)


def send_draft(draft_id: str, *, idempotency_key: str | None = None) -> Call[Sent]:
    """Send a draft, which is then gone. The same key gives the same answer again."""
    headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
    return Call("POST", path("v1", "drafts", draft_id, "send"), decoded(Sent), headers=headers)


def _to_json(fields: DraftFields) -> dict[str, Any]:
    return {_camel(name): _value(name, value) for name, value in fields.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ("to", "cc", "bcc"):
        return listed(value)
    if name == "send_at":
        return spell_moment(value)
    if name == "attachments":
        return [
            {
                "filename": file.filename,
                "contentType": file.content_type,
                "data": base64.b64encode(file.content).decode(),
            }
            for file in read_files(value)
        ]
    return value
