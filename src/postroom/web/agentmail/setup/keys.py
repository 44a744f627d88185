"""API keys of /v0, whose permissions are finer than ours: they are stored, and checked there."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import UNSET

from postroom.accounts import keys, permissions
from postroom.accounts.keys import Caller, Key
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.config import Config
from postroom.errors import BadRequest, Forbidden
from postroom.fields import iso
from postroom.mailbox import inboxes
from postroom.operations import keys as verbs
from postroom.resources import Tx
from postroom.web.agentmail import paging, shapes
from postroom.web.agentmail.setup import setup_shapes

MOST = 1000  # a list of keys is short
SENDING = ("message_send", "message_reply", "draft_send")
WRITING = ("message_update", "draft_create", "draft_update", "draft_delete")
MANAGED = ["inbox", "message", "webhook", "domain", "list_entry", "api_key", "pod"]
CHANGES = ("create", "update", "delete")


def ours_of(word: str) -> str | None:
    """Return our permission that a key needs for this one. None if it allows nothing here."""
    if word in SENDING:
        return permissions.SEND
    if word in WRITING:
        return permissions.DRAFT
    if word == "webhook_read":
        return permissions.MANAGE
    if word.endswith("_read") and not word.startswith(("calendar", "file")):
        return permissions.READ
    noun, _, change = word.rpartition("_")
    return permissions.MANAGE if noun in MANAGED and change in CHANGES else None


def show(tx: Tx, key: Key) -> shapes.Page:
    inbox = None if key.inbox_id is None else inboxes.find(tx, key.inbox_id)
    words = {} if key.words is None else {"permissions": dict.fromkeys(key.words.split(), True)}
    return {
        "api_key_id": key.id,
        "type": "bearer",
        "prefix": key.token_prefix,
        "name": key.name or key.id,
        "pod_id": key.pod_id,
        "inbox_id": None if inbox is None else inbox.address,
        "created_at": to_iso(key.created_at),
        "updated_at": to_iso(key.created_at),
        "used_at": iso(key.last_used_at),
        "expires_at": iso(key.expires_at),
        **words,
    }


def create_key(
    tx: Tx, caller: Caller, place: Scope, body: setup_shapes.NewKey, config: Config, now: int
) -> shapes.Page:
    if body.public_key is not None:
        raise BadRequest("Keys here are bearer keys: public_key is not supported.", field="public_key")
    words = read_words(caller, body.permissions)
    usual = permissions.OF_AN_INBOX if place.inbox_id is not None else permissions.ALL
    possible = [word for word in usual if word != permissions.APPROVE]
    asked = possible if words is None else ours(words, possible)
    new = verbs.NewKey(name=body.name or "", permissions=asked, expires_at=body.expires_at)
    made: Any = verbs.create(tx, caller, place, new, config, now)
    if words is not None:
        keys.set_v0_permissions(tx, made.id, words)
    return {**show(tx, keys.get(tx, caller.account_id, made.id)), "api_key": made.token}


def read_words(caller: Caller, given: Mapping[str, bool] | None) -> Collection[str] | None:
    """Return the permissions given, else those of the key's maker.

    None if that has no /v0 permissions either.
    """
    words = None if given is None else [word for word, is_given in given.items() if is_given]
    if caller.words is None or words is None:
        return caller.words if words is None else words
    if not caller.words.issuperset(words):
        raise Forbidden("A key cannot create a key that may do more than itself.", field="permissions")
    return words


def ours(words: Iterable[str], possible: Collection[str]) -> list[str]:
    needed = {ours_of(word) for word in words}
    found = [word for word in possible if word in needed]
    if not found:
        raise BadRequest("permissions has none that exist here.", field="permissions")
    return found


def list_keys(tx: Tx, place: Scope, query: shapes.PageQuery) -> shapes.Page:
    found, _ = keys.list_of(tx, place, MOST, 0)
    return paging.page_of("api_keys", paging.part_of(found, query), query, partial(show, tx))


def get_of(tx: Tx, place: Scope, key_id: str) -> Key:
    """Return a key of any scope if the place is the account, else one with exactly this scope."""
    return keys.get(tx, place.account_id, key_id) if place.is_account else keys.get_of(tx, place, key_id)


def get_key(tx: Tx, place: Scope, key_id: str) -> shapes.Page:
    return show(tx, get_of(tx, place, key_id))


def change_key(
    tx: Tx,
    caller: Caller,
    place: Scope,
    key_id: str,
    body: setup_shapes.KeyChange,
    config: Config,
    now: int,
) -> shapes.Page:
    """Change a key. Its permissions can only be reduced."""
    key = get_of(tx, place, key_id)
    change = verbs.KeyChange(name=body.name)
    words = None if body.permissions is UNSET else read_words(caller, body.permissions)
    if words is not None:
        if key.words is not None and not set(words) <= set(key.words.split()):
            raise BadRequest("permissions can only be removed. Create a new key.", field="permissions")
        change = verbs.KeyChange(name=body.name, permissions=ours(words, key.permissions))
    verbs.change_api_key(tx, caller, key.id, change, config, now)
    if words is not None:
        keys.set_v0_permissions(tx, key.id, words)
    return show(tx, keys.get(tx, caller.account_id, key.id))


def delete_key(tx: Tx, caller: Caller, place: Scope, key_id: str, now: int) -> None:
    verbs.delete_api_key(tx, caller, get_of(tx, place, key_id).id, now)
