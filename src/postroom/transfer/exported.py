"""Reads files of `postroom accounts export`: dates to the millisecond, labels and aliases."""

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from postroom.clock import from_iso
from postroom.errors import BadRequest
from postroom.mailbox import labels
from postroom.transfer.mbox import FiledMail, walk_mbox


def list_inboxes(folder: Path) -> dict[str, list[str]]:
    """Return the addresses of the exported inboxes, each with its aliases."""
    try:
        described = json.loads((folder / "account.json").read_bytes())
        found = {
            str(each["address"]): list(map(str, each.get("aliases", ()))) for each in described["inboxes"]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest(f"{folder} is not an export of an account: account.json: {error}.") from None
    if wrong := [address for address in found if "/" in address or address.startswith(".")]:
        raise BadRequest(f"{folder} is not an export of an account: '{wrong[0]}' is not an address.")
    return found


def list_mails(folder: Path, address: str, now: int) -> list[FiledMail]:
    """List the emails, oldest first. Blocked ones are left out: they were never let into the inbox."""
    place = folder / address
    try:
        mails = list(walk_mbox(place / "mail.mbox", now))
        with (place / "messages.jsonl").open("rb") as lines:
            described = [json.loads(line) for line in lines]
    except OSError as error:
        raise BadRequest(f"{place} is not a complete export: {error}.") from None
    except ValueError as error:
        raise BadRequest(f"{place} is not a complete export: messages.jsonl: {error}.") from None
    if len(mails) != len(described):
        raise BadRequest(
            f"{place} is not a complete export: {len(mails)} emails, and {len(described)} in messages.jsonl."
        )
    try:
        found = [
            _described(mail, message, now)
            for mail, message in zip(mails, described, strict=True)
            if not message["blocked"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"{place} is not a complete export: messages.jsonl: {error!r}.") from None
    return sorted(found, key=lambda mail: mail.at)


def _described(mail: FiledMail, message: dict[str, Any], now: int) -> FiledMail:
    given = tuple(map(str, message["labels"]))
    labels.require_valid(given, "labels")
    return replace(mail, at=min(from_iso(message["createdAt"]), now), labels=given)
