"""Links that take or give one file once: scope, name, type and size are fixed when they are made."""

import secrets
from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom import ids, limits
from postroom.accounts import accounts
from postroom.accounts.keys import Caller, hash_token
from postroom.clock import HOUR, MINUTE
from postroom.errors import BadRequest, NotFound, UploadLimitReached
from postroom.storage.database import Row, Tx, all_of, insert, item_from_row, one_of

UPLOAD, DOWNLOAD = "upload", "download"
PATHS = {UPLOAD: "/uploads/", DOWNLOAD: "/downloads/"}
LIFETIME = limits.FILE_LINK_MINUTES * MINUTE
WAITS_FOR = limits.UPLOADED_HOURS * HOUR
TOKEN_BYTES = 32
TOKEN_CHARACTERS = 43  # as base64url
MEGABYTES_WAITING = limits.UPLOADS_WAITING_BYTES // limits.MEGABYTE


class FileLink(Struct, frozen=True):
    id: str
    kind: str
    account_id: str
    inbox_id: str
    key_id: str
    message_id: str | None
    filename: str
    content_type: str
    size_bytes: int
    created_at: int
    expires_at: int
    stored_at: int | None = None  # when the bytes of an upload were stored
    content: bytes | None = None
    blob: str | None = None


class NamedFile(Struct, frozen=True):
    """What a link is made for. `message_id` has it, if it is to be downloaded."""

    filename: str
    content_type: str
    size_bytes: int
    message_id: str | None = None


def add(tx: Tx, caller: Caller, kind: str, inbox_id: str, file: NamedFile, now: int) -> tuple[FileLink, str]:
    """Also returns the path of the link, which is known only now."""
    if kind == UPLOAD:
        accounts.lock(tx, caller.account_id)
        _require_room(tx, caller.account_id, file.size_bytes, now)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    link = FileLink(
        id=ids.new(ids.UPLOAD if kind == UPLOAD else ids.DOWNLOAD, now),
        kind=kind,
        account_id=caller.account_id,
        inbox_id=inbox_id,
        key_id=caller.key_id,
        message_id=file.message_id,
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    values = {name: getattr(link, name) for name in FileLink.__struct_fields__}
    insert(tx, "file_links", token_hash=hash_token(token), **values)
    return link, f"{PATHS[kind]}{token}"


def _require_room(tx: Tx, account_id: str, size_bytes: int, now: int) -> None:
    row = tx.one(
        "select count(*) as number, coalesce(sum(size_bytes), 0) as bytes from file_links"
        " where account_id = :account_id and kind = 'upload' and expires_at > :now",
        account_id=account_id,
        now=now,
    )
    assert row is not None
    is_full = int(row["bytes"]) + size_bytes > limits.UPLOADS_WAITING_BYTES
    if is_full or row["number"] >= limits.UPLOADS_WAITING:
        raise UploadLimitReached(
            f"At most {limits.UPLOADS_WAITING} uploads and {MEGABYTES_WAITING} MB of an account wait to be"
            " attached. Attach some, or wait until they expire."
        )


def find_by_path(tx: Tx, kind: str, path: str, now: int) -> FileLink:
    """Does not use the link up. It ends with the key that made it."""
    row = tx.one(
        "select * from file_links where token_hash = :token_hash and kind = :kind and expires_at > :now"
        " and stored_at is null and exists (select 1 from keys where keys.id = file_links.key_id"
        " and (keys.expires_at is null or keys.expires_at > :now))",
        token_hash=hash_token(path.removeprefix(PATHS[kind])),
        kind=kind,
        now=now,
    )
    if row is None:
        raise _gone()
    return _to_link(row)


def list_message_ids(tx: Tx, tokens: Iterable[str]) -> list[str]:
    """Return the messages whose files downloads with these tokens give; of any text, most are none."""
    hashes = sorted(hash_token(token) for token in tokens if len(token) == TOKEN_CHARACTERS)
    rows = tx.many(
        "select message_id from (values :rows) as asked join file_links on token_hash = column1"
        " where message_id is not null",
        [(each,) for each in hashes],
    )
    return sorted({row["message_id"] for row in rows})


def use_up(tx: Tx, link: FileLink) -> None:
    """A download; of two at once, one gets NotFound."""
    if not tx.run("delete from file_links where id = :id", id=link.id):
        raise _gone()


def store(tx: Tx, link: FileLink, content: bytes | None, blob: str | None, now: int) -> None:
    """The bytes of an upload; of two at once, one gets NotFound."""
    is_stored = tx.run(
        "update file_links set content = :content, blob = :blob, stored_at = :now, expires_at = :expires_at"
        " where id = :id and stored_at is null and expires_at > :now",
        id=link.id,
        content=content,
        blob=blob,
        now=now,
        expires_at=now + WAITS_FOR,
    )
    if not is_stored:
        raise _gone()


def _gone() -> NotFound:
    return NotFound("There is no such link: it was used, has expired or was never made. Ask for a new one.")


def list_stored(tx: Tx, inbox_id: str, upload_ids: Sequence[str], now: int) -> dict[str, FileLink]:
    """The uploads of an inbox by their ids; raises for one that is not there, or not there yet."""
    rows = all_of(
        tx,
        "select * from file_links where :wanted and inbox_id = :inbox_id and kind = 'upload'"
        " and expires_at > :now",
        "id",
        list(dict.fromkeys(upload_ids)),
        inbox_id=inbox_id,
        now=now,
    )
    found = {row["id"]: _to_link(row) for row in rows}
    for upload_id in upload_ids:
        if upload_id not in found:
            raise _unknown()
        if found[upload_id].stored_at is None:
            raise BadRequest(
                f"The file of {upload_id} has not arrived. PUT it to the url of the upload first.",
                field="attachments",
            )
    return found


def take(tx: Tx, inbox_id: str, upload_ids: Sequence[str], now: int) -> None:
    """Uses up stored uploads of this inbox, each of which is named once."""
    is_wanted, wanted = one_of("id", upload_ids)
    taken = tx.run(
        f"delete from file_links where {is_wanted} and inbox_id = :inbox_id and stored_at is not null"
        " and expires_at > :now",
        inbox_id=inbox_id,
        now=now,
        **wanted,
    )
    if taken < len(upload_ids):
        raise _unknown()


def _unknown() -> BadRequest:
    return BadRequest(
        "An uploadId is not an upload that waits for this inbox: it was used, has expired or was never made."
        " Create a new one with POST /v1/uploads.",
        field="attachments",
    )


def find_used_blobs(tx: Tx, blobs: Sequence[str]) -> set[str]:
    return {row["blob"] for row in all_of(tx, "select blob from file_links where :wanted", "blob", blobs)}


def _to_link(row: Row) -> FileLink:
    return item_from_row(FileLink, row, content=None if row["content"] is None else bytes(row["content"]))
